//! The attempts at reading files: one document a file.

use async_trait::async_trait;
use imports::reading::{Place, Reading, TrackReading};
use imports::{FileId, SearchId};
use messages::StoreError;
use mongodb::bson::{Document, doc};
use mongodb::options::ReturnDocument;

use crate::Mongo;
use crate::fault::Fault;
use crate::files::by_id;
use crate::names::collections;
use crate::value::{count_field, from_bson, to_bson};

const ID: &str = "_id";
const BEGUN: &str = "Begun";
const PLACE: &str = "Place";
/// A date by the server's clock, for the TTL index: the port passes no time.
pub(crate) const TOUCHED_AT: &str = "TouchedAt";

#[async_trait]
impl TrackReading for Mongo {
    async fn begin(&self, search: SearchId, file: FileId) -> Result<Reading, StoreError> {
        let work = async {
            let update = doc! { "$inc": { BEGUN: 1 }, "$currentDate": { TOUCHED_AT: true } };
            let attempts = self.collection(collections::READING);
            let before = attempts
                .find_one_and_update(by_id(search, file), update)
                .upsert(true)
                .return_document(ReturnDocument::Before)
                .await?;
            let Some(stored) = before else { return Ok(Reading::default()) };
            decode(&stored).map_err(|why| {
                Fault::foreign(collections::READING, stored.get(ID), "the attempts at a file", &why)
            })
        };
        self.call(format!("beginning to read file {file} of search {search}"), work).await
    }

    async fn reach(&self, search: SearchId, file: FileId, place: &Place) -> Result<(), StoreError> {
        let work = async {
            let mut which = by_id(search, file);
            if let Place::Within(_) = place {
                which.insert(format!("{PLACE}.end"), doc! { "$exists": false });
            }
            set(self, which, doc! { PLACE: to_bson(place)? }).await
        };
        self.call(format!("remembering how far file {file} of search {search} is read"), work).await
    }

    async fn pause(&self, search: SearchId, file: FileId) -> Result<(), StoreError> {
        let work = set(self, by_id(search, file), doc! { BEGUN: 0 });
        self.call(format!("ending an attempt at file {file} of search {search}"), work).await
    }
}

/// Only what was begun is there: what was discarded meanwhile stays forgotten.
async fn set(mongo: &Mongo, which: Document, fields: Document) -> Result<(), Fault> {
    let update = doc! { "$set": fields, "$currentDate": { TOUCHED_AT: true } };
    mongo.collection(collections::READING).update_one(which, update).await?;
    Ok(())
}

pub(crate) async fn forget(mongo: &Mongo, search: SearchId, file: FileId) -> Result<(), Fault> {
    mongo.collection(collections::READING).delete_one(by_id(search, file)).await?;
    Ok(())
}

fn decode(stored: &Document) -> Result<Reading, String> {
    let begun = stored.contains_key(BEGUN).then(|| count_field::<u32>(stored, BEGUN)).transpose()?;
    let place = stored.get(PLACE).cloned().map(from_bson::<Place>).transpose()?;
    Ok(Reading { begun: begun.unwrap_or(0), place })
}
