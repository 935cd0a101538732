//! History of decisions about messages: one document per decision.

use async_trait::async_trait;
use futures::TryStreamExt;
use jiff::Timestamp;
use messages::{DecisionRecord, PartitionKey, RecordedVerdict, StoreError};
use mongodb::bson::oid::ObjectId;
use mongodb::bson::{Bson, Document, doc};
use saga::KeepHistory;
use saga::history::Place;

use crate::Mongo;
use crate::error::CallError;
use crate::names::collections;
use crate::names::history::{AT, EXPIRES_AT, PARTITION};
use crate::value::{Key, date, int, nanos, serde_field, to_bson};

/// An object id, unique and ascending within one process.
const ID: &str = "_id";
const BODY: &str = "Decision";

const WHAT: &str = "a decision";

#[async_trait]
impl KeepHistory for Mongo {
    async fn append(&self, observations: &[DecisionRecord]) -> Result<(), StoreError> {
        if observations.is_empty() {
            return Ok(());
        }
        let work = async {
            let stored = observations.iter().map(|observation| encode(self, observation));
            let stored = stored.collect::<Result<Vec<_>, _>>()?;
            self.collection(collections::HISTORY).await?.insert_many(stored).ordered(false).await?;
            Ok(())
        };
        self.call("storing decisions".to_owned(), work).await
    }

    async fn history(
        &self,
        partition: Option<PartitionKey>,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<(Place, DecisionRecord<RecordedVerdict>)>, StoreError> {
        self.call("reading the history of a partition".to_owned(), read(self, partition, after, limit)).await
    }

    async fn remove(&self, partition: PartitionKey) -> Result<(), StoreError> {
        let work = async {
            self.collection(collections::HISTORY)
                .await?
                .delete_many(doc! { PARTITION: partition.key() })
                .await?;
            Ok(())
        };
        self.call(format!("removing the history of partition {partition}"), work).await
    }
}

fn key(partition: Option<PartitionKey>) -> Bson {
    partition.map_or(Bson::Null, |partition| partition.key())
}

fn encode(mongo: &Mongo, observation: &DecisionRecord) -> Result<Document, CallError> {
    let expires_at = observation.at.checked_add(mongo.history_retention()).unwrap_or(Timestamp::MAX);
    Ok(doc! {
        ID: ObjectId::new(),
        PARTITION: key(observation.partition),
        AT: nanos(observation.at),
        EXPIRES_AT: date(expires_at),
        BODY: to_bson(observation)?,
    })
}

fn decode(stored: &Document) -> Result<(Place, DecisionRecord<RecordedVerdict>), CallError> {
    let unreadable = |why: &str| CallError::unreadable(collections::HISTORY, stored.get(ID), WHAT, why);
    let id = stored.get_object_id(ID).map_err(|error| unreadable(&error.to_string()))?;
    let observation: DecisionRecord<RecordedVerdict> =
        serde_field(stored, BODY).map_err(|why| unreadable(&why))?;
    Ok((Place { at: observation.at, sequence: sequence(id) }, observation))
}

async fn read(
    mongo: &Mongo,
    partition: Option<PartitionKey>,
    after: Option<Place>,
    limit: usize,
) -> Result<Vec<(Place, DecisionRecord<RecordedVerdict>)>, CallError> {
    if limit == 0 {
        // MongoDB interprets 0 as no limit.
        return Ok(Vec::new());
    }
    let mut filter = doc! { PARTITION: key(partition) };
    if let Some(Place { at, sequence }) = after {
        let at = nanos(at);
        // The first condition bounds the scan of the index. The others skip the decisions of that instant that were
        // read before.
        filter.insert(AT, doc! { "$gte": at });
        filter.insert("$or", vec![doc! { AT: { "$gt": at } }, doc! { ID: { "$gt": object_id(sequence) } }]);
    }
    let history = mongo.collection(collections::HISTORY).await?;
    let found = history.find(filter).sort(doc! { AT: 1, ID: 1 }).limit(int(limit)).await?;
    let found: Vec<Document> = found.try_collect().await?;
    found.iter().map(decode).collect()
}

fn sequence(id: ObjectId) -> u128 {
    id.bytes().into_iter().fold(0, |sequence, byte| sequence << 8 | u128::from(byte))
}

/// The inverse of [`sequence`].
fn object_id(sequence: u128) -> ObjectId {
    let [_, _, _, _, bytes @ ..] = sequence.to_be_bytes();
    ObjectId::from_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sequence_of_an_id_round_trips_in_order() {
        let ids = [
            ObjectId::from_bytes([0; 12]),
            ObjectId::new(),
            ObjectId::new(),
            ObjectId::from_bytes([255; 12]),
        ];
        assert!(ids.map(sequence).is_sorted());
        assert_eq!(ids.map(|id| object_id(sequence(id))), ids);
    }
}
