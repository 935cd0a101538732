//! The decision log: the history in the order of insertion.

use async_trait::async_trait;
use messages::{DecisionRecord, DecisionSink, PartitionKey, RecordedVerdict, StoreError};
use rusqlite::{Connection, params};
use saga::KeepHistory;
use saga::history::Place;
use uuid::Uuid;

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::{from_json, json, limit, uint};

/// The maximum number of decisions kept per partition, the latest ones. An import of the maximum size with ten
/// deliveries of every message stays below it.
pub const MAX_DECISIONS: usize = 10_000;

/// Decisions are stored with the next commit without waiting for it: they are for operators.
impl DecisionSink for Store {
    fn observe(&self, observation: DecisionRecord) {
        if !self.settings().history {
            return;
        }
        self.threads().write_detached("recording a decision", move |db| append(db, &observation));
    }
}

#[async_trait]
impl KeepHistory for Store {
    async fn append(&self, observations: &[DecisionRecord]) -> Result<(), StoreError> {
        let observations = observations.to_vec();
        let work =
            move |db: &Connection| observations.iter().try_for_each(|observation| append(db, observation));
        self.threads().write("storing decisions".to_owned(), work).await
    }

    async fn history(
        &self,
        partition: Option<PartitionKey>,
        after: Option<Place>,
        limit: usize,
    ) -> Result<Vec<(Place, DecisionRecord<RecordedVerdict>)>, StoreError> {
        let partition = name(partition);
        // No row has a number that large.
        let after = after.map_or(0, |place| i64::try_from(place.sequence).unwrap_or(i64::MAX));
        let doing = "reading the history of a partition".to_owned();
        self.threads().read(doing, move |db| list(db, &partition, after, limit)).await
    }

    async fn remove(&self, partition: PartitionKey) -> Result<(), StoreError> {
        let doing = format!("removing the history of partition {partition}");
        let work = move |db: &Connection| {
            db.prepare_cached("DELETE FROM decision WHERE search_id = ?1")?
                .execute([partition.to_string()])?;
            Ok(())
        };
        self.change(Call::HistoryRemove, doing, work).await
    }
}

impl Store {
    /// Returns the decisions about the messages of a partition, in order.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable, or contains something that is not an observation.
    pub async fn decisions(
        &self,
        partition: PartitionKey,
    ) -> Result<Vec<DecisionRecord<RecordedVerdict>>, StoreError> {
        let all = self.history(Some(partition), None, MAX_DECISIONS).await?;
        Ok(all.into_iter().map(|(_, observation)| observation).collect())
    }
}

/// Observations without a partition are stored under the empty text.
fn name(partition: Option<PartitionKey>) -> String {
    partition.map(|id| id.to_string()).unwrap_or_default()
}

/// No further decisions are stored for a deleted partition, for example about the effects of its deletion.
const INSERT: &str = "INSERT INTO decision SELECT ?1, ?2, ?3
    WHERE NOT EXISTS (SELECT 1 FROM job WHERE search_id = ?1 AND project_id = ?4)";

fn append(db: &Connection, observation: &DecisionRecord) -> Result<(), Fault> {
    let partition = name(observation.partition);
    let last: i64 = db
        .prepare_cached("SELECT coalesce(max(n), 0) FROM decision WHERE search_id = ?1")?
        .query_row([&partition], |row| row.get(0))?;
    let n = last + 1;
    db.prepare_cached(INSERT)?.execute(params![partition, n, json(observation)?, Uuid::max().to_string()])?;
    let oldest = n - limit(MAX_DECISIONS);
    if oldest > 0 {
        db.prepare_cached("DELETE FROM decision WHERE search_id = ?1 AND n <= ?2")?
            .execute(params![partition, oldest])?;
    }
    Ok(())
}

fn list(
    db: &Connection,
    partition: &str,
    after: i64,
    max: usize,
) -> Result<Vec<(Place, DecisionRecord<RecordedVerdict>)>, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT n, observation FROM decision WHERE search_id = ?1 AND n > ?2 ORDER BY n LIMIT ?3",
    )?;
    let rows = statement.query_map(params![partition, after, limit(max)], |row| {
        Ok((row.get::<_, i64>(0)?, row.get::<_, String>(1)?))
    })?;
    rows.map(|row| {
        let (n, text) = row?;
        let observation: DecisionRecord<RecordedVerdict> = from_json(&text)?;
        Ok((Place { at: observation.at, sequence: uint(n).into() }, observation))
    })
    .collect()
}
