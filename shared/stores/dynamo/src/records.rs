//! Records of the application.

use std::collections::BTreeMap;

use async_trait::async_trait;
use messages::StoreError;
use outbox::records::{OwnedRecord, RecordRead};
use outbox::{Key, ReadRecords, Record, Write, WriteRecords};

use crate::Dynamo;
use crate::item::{self, number, readable};
use crate::names::attributes::{CONTENT, REVISION};
use crate::transaction::Step;
use crate::update::{Change, Knowledge};

/// Returns the key of a record. The length of the kind separates it from the id, which may contain any characters.
fn key(key: &Key) -> String {
    format!("record#{}#{}#{}", key.kind.len(), key.kind, key.id)
}

#[async_trait]
impl ReadRecords for Dynamo {
    async fn record(&self, wanted: &Key) -> Result<Option<Record>, StoreError> {
        let doing = format!("reading record {wanted}");
        let Some(stored) = self.get(&key(wanted), &doing).await? else { return Ok(None) };
        let body = item::from_json(&stored, CONTENT, &doing)?;
        Ok(Some(Record { revision: readable(item::revision(&stored), &doing)?, body }))
    }
}

#[async_trait]
impl WriteRecords for Dynamo {
    async fn write_record(&self, write: &Write) -> Result<(), StoreError> {
        let (doing, key) = (format!("writing record {}", write.key), key(&write.key));
        self.change_item(&key, Knowledge::Nothing, &doing, |stored| {
            let found = readable(stored.map(item::revision).transpose(), &doing)?.unwrap_or(0);
            let mut next = item::new(&key);
            item::set(&mut next, REVISION, number(found.saturating_add(1)));
            item::set(&mut next, CONTENT, item::json(&write.body, &doing)?);
            Ok(Change::Write(next, ()))
        })
        .await
    }

    async fn advance_record(&self, record: &OwnedRecord) -> Result<(), StoreError> {
        let (doing, key) = (format!("writing record {}", record.key), key(&record.key));
        self.change_item(&key, Knowledge::Nothing, &doing, |stored| {
            let found = readable(stored.map(item::revision).transpose(), &doing)?.unwrap_or(0);
            if found >= record.revision {
                return Ok(Change::Keep(()));
            }
            let mut next = item::new(&key);
            item::set(&mut next, REVISION, number(record.revision));
            item::set(&mut next, CONTENT, item::json(&record.body, &doing)?);
            Ok(Change::Write(next, ()))
        })
        .await
    }
}

/// The access of a session to one record.
#[derive(Default)]
struct Access {
    read: Option<u64>,
    /// Each write increments the revision.
    writes: u32,
    content: String,
}

/// Returns the steps for the records of a session, one for each record; `None` if it has read different revisions of one
/// record.
pub(crate) fn steps(
    reads: &[RecordRead],
    writes: &[Write],
    doing: &str,
) -> Result<Option<Vec<Step>>, StoreError> {
    let mut accesses = BTreeMap::<String, Access>::new();
    for read in reads {
        let access = accesses.entry(key(&read.key)).or_default();
        if access.read.replace(read.revision).is_some_and(|earlier| earlier != read.revision) {
            return Ok(None);
        }
    }
    for write in writes {
        let access = accesses.entry(key(&write.key)).or_default();
        access.writes += 1;
        access.content =
            serde_json::to_string(&write.body).map_err(|error| StoreError::unusable(doing, error))?;
    }
    let step = |(key, Access { read, writes, content })| match writes {
        0 => Step::Check { key, revision: read.unwrap_or(0) },
        _ => Step::Write { key, read, writes, content },
    };
    Ok(Some(accesses.into_iter().map(step).collect()))
}
