//! The decision log.

use messages::{Observation, Observe, PartitionKey, StoreError};
use rusqlite::{Connection, params};

use crate::Store;
use crate::fault::Fault;
use crate::value::{from_json, json};

/// The most decisions kept per partition, the latest; an import of the largest size with every message delivered ten
/// times stays below.
pub const MAX_DECISIONS: usize = 10_000;

/// Decisions are stored with the next commit, and nobody waits for them: they are for people.
impl Observe for Store {
    fn observe(&self, observation: Observation) {
        self.engine().write_unheard("taking note of a decision", move |db| append(db, &observation));
    }
}

impl Store {
    /// What was decided about the messages of a partition, in order.
    ///
    /// # Errors
    /// When the store does not answer, or holds something that is not an observation.
    pub async fn decisions(&self, partition: PartitionKey) -> Result<Vec<Observation>, StoreError> {
        let doing = format!("reading the decisions about partition {partition}");
        self.engine().read(doing, move |db| list(db, &partition.to_string())).await
    }

    /// The decisions about messages whose partition is unknown, in order.
    ///
    /// # Errors
    /// As [`Store::decisions`].
    pub async fn decisions_of_no_partition(&self) -> Result<Vec<Observation>, StoreError> {
        self.engine().read("reading the decisions about no partition".to_owned(), |db| list(db, "")).await
    }
}

fn append(db: &Connection, observation: &Observation) -> Result<(), Fault> {
    let partition = observation.partition.map(|id| id.to_string()).unwrap_or_default();
    let last: i64 = db
        .prepare_cached("SELECT coalesce(max(n), 0) FROM decision WHERE search_id = ?1")?
        .query_row([&partition], |row| row.get(0))?;
    let n = last + 1;
    db.prepare_cached("INSERT INTO decision VALUES (?1, ?2, ?3)")?.execute(params![
        partition,
        n,
        json(observation)?
    ])?;
    let oldest = n - crate::value::limit(MAX_DECISIONS);
    if oldest > 0 {
        db.prepare_cached("DELETE FROM decision WHERE search_id = ?1 AND n <= ?2")?
            .execute(params![partition, oldest])?;
    }
    Ok(())
}

fn list(db: &Connection, partition: &str) -> Result<Vec<Observation>, Fault> {
    let mut statement =
        db.prepare_cached("SELECT observation FROM decision WHERE search_id = ?1 ORDER BY n")?;
    let texts = statement.query_map([partition], |row| row.get::<_, String>(0))?;
    texts.map(|text| from_json(&text?)).collect()
}
