//! Records of the application.

use std::collections::BTreeMap;

use async_trait::async_trait;
use jiff::Timestamp;
use messages::StoreError;
use outbox::records::{KEPT_AFTER_EXPIRY, OwnedRecord, RecordRead};
use outbox::{Key, ReadRecords, StoredRecord, Write, WriteRecords};
use serde_json::Value;

use crate::Dynamo;
use crate::error::MalformedItem;
use crate::item::{self, Item, number, readable, text};
use crate::names::attributes::{CONTENT, EXPIRES, REVISION};
use crate::transaction::{Content, Step};
use crate::update::{Change, Knowledge};

/// Returns the key of a record. The length of the kind separates it from the id, which may contain any characters.
fn key(key: &Key) -> String {
    format!("record#{}#{}#{}", key.kind.len(), key.kind, key.id)
}

impl Content {
    fn of(body: Option<&Value>, expires_at: Option<Timestamp>, doing: &str) -> Result<Self, StoreError> {
        let json = |body| serde_json::to_string(body).map_err(|error| StoreError::unusable(doing, error));
        Ok(Self { body: body.map(json).transpose()?, expires_at })
    }

    /// Returns the item of a record with this content.
    fn item(self, key: &str, revision: u64) -> Item {
        let mut item = item::new(key);
        item::set(&mut item, REVISION, number(revision));
        if let Some(second) = self.deleted_from() {
            item::set(&mut item, EXPIRES, number(second));
        }
        if let Some(body) = self.body {
            item::set(&mut item, CONTENT, text(body));
        }
        item
    }
}

/// Returns the time from which a record counts as absent. TTL deletes it some days later.
fn expires_at(stored: &Item) -> Result<Option<Timestamp>, MalformedItem> {
    let second: Option<i64> = item::number_of(stored, EXPIRES)?;
    let at = second.map(|second| Timestamp::from_second(second.saturating_sub(KEPT_AFTER_EXPIRY.as_secs())));
    at.transpose().map_err(|_| MalformedItem(EXPIRES))
}

#[async_trait]
impl ReadRecords for Dynamo {
    async fn stored_record(&self, wanted: &Key) -> Result<Option<StoredRecord>, StoreError> {
        let doing = format!("reading record {wanted}");
        let Some(stored) = self.get(&key(wanted), &doing).await? else { return Ok(None) };
        let body =
            stored.contains_key(CONTENT).then(|| item::from_json(&stored, CONTENT, &doing)).transpose()?;
        let revision = readable(item::revision(&stored), &doing)?;
        Ok(Some(StoredRecord { revision, body, expires_at: readable(expires_at(&stored), &doing)? }))
    }
}

#[async_trait]
impl WriteRecords for Dynamo {
    async fn write_record(&self, write: &Write) -> Result<(), StoreError> {
        let (doing, key) = (format!("writing record {}", write.key), key(&write.key));
        let content = Content::of(write.body.as_ref(), write.expires_at, &doing)?;
        self.change_item(&key, Knowledge::Nothing, &doing, |stored| {
            let found = readable(stored.map(item::revision).transpose(), &doing)?.unwrap_or(0);
            Ok(Change::Write(content.clone().item(&key, found.saturating_add(1)), ()))
        })
        .await
    }

    async fn advance_record(&self, record: &OwnedRecord) -> Result<(), StoreError> {
        let (doing, key) = (format!("writing record {}", record.key), key(&record.key));
        let StoredRecord { revision, body, expires_at } = record.stored();
        let content = Content::of(body.as_ref(), expires_at, &doing)?;
        self.change_item(&key, Knowledge::Nothing, &doing, |stored| {
            let found = readable(stored.map(item::revision).transpose(), &doing)?.unwrap_or(0);
            Ok(match found < revision {
                true => Change::Write(content.clone().item(&key, revision), ()),
                false => Change::Keep(()),
            })
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
    content: Content,
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
        access.content = Content::of(write.body.as_ref(), write.expires_at, doing)?;
    }
    let step = |(key, Access { read, writes, content })| match writes {
        0 => Step::Check { key, revision: read.unwrap_or(0) },
        _ => Step::Write { key, read, writes, content },
    };
    Ok(Some(accesses.into_iter().map(step).collect()))
}
