//! Saga documents from BSON. The module [`crate::pipeline`] writes these values.

use messages::{AttemptId, PartitionKey};
use mongodb::bson::{Bson, DateTime, Document};
use saga::{Content, Document as Saga};
use serde_json::Value;

use crate::entry;
use crate::error::CallError;
use crate::names::{collections, record};
use crate::value::{count_field, serde_field, to_bson, uuid_field};

pub(crate) fn decode(stored: &Document) -> Result<Saga, CallError> {
    read(stored).map_err(|why| {
        CallError::unreadable(collections::SAGA, stored.get(record::ID), "a saga document", &why)
    })
}

fn read(stored: &Document) -> Result<Saga, String> {
    Ok(Saga {
        partition: partition(stored)?,
        version: count_field(stored, record::VERSION)?,
        content: read_content(stored)?,
        outbox: entry::readable(stored, record::OUTBOX)?,
    })
}

/// Encodes the content of a saga, including its state, as its JSON form in BSON.
pub(crate) fn content(content: &Content) -> Result<Bson, CallError> {
    Ok(to_bson(content)?)
}

/// The inverse of [`content`].
fn read_content(stored: &Document) -> Result<Content, String> {
    let content: Value = serde_field(stored, record::CONTENT)?;
    serde_json::from_value(content).map_err(|error| format!("its {}: {error}", record::CONTENT))
}

fn partition(stored: &Document) -> Result<PartitionKey, String> {
    uuid_field(stored, record::ID).map(PartitionKey::from_uuid)
}

/// Returns whether a document has expired, although MongoDB has not deleted it yet.
pub(crate) fn has_expired(stored: &Document, expired_until: DateTime) -> bool {
    matches!(stored.get(record::COMPLETED_AT), Some(Bson::DateTime(at)) if *at <= expired_until)
}

/// Version of a stored document and the attempt that wrote it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredVersion {
    pub(crate) version: u64,
    /// `None` if the content does not have the expected form.
    pub(crate) attempt: Option<AttemptId>,
}

/// Reads the partition and the version of a document that was loaded without its other fields.
pub(crate) fn stored_version(stored: &Document) -> Result<(PartitionKey, StoredVersion), String> {
    let content = stored.get_document(record::CONTENT).ok();
    let attempt = content.and_then(|content| serde_field(content, "attempt").ok());
    Ok((partition(stored)?, StoredVersion { version: count_field(stored, record::VERSION)?, attempt }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Key, date};
    use contracts::{ManualHost, sample};
    use mongodb::bson::doc;

    fn stored() -> (Content, Document) {
        let host = ManualHost::seeded(1);
        let content = sample::ended(&host, sample::now(&host));
        let document = doc! {
            "_id": sample::partition(&host).key(),
            "Version": 4_i64,
            "Content": super::content(&content).unwrap(),
            "CompletedAt": date(sample::now(&host)),
            "Outbox": [],
        };
        (content, document)
    }

    #[test]
    fn document_round_trips() {
        let (content, document) = stored();
        let saga = decode(&document).unwrap();
        assert_eq!((saga.version, &saga.content, saga.outbox.len()), (4, &content, 0));
        let by = StoredVersion { version: 4, attempt: Some(content.attempt) };
        assert_eq!(stored_version(&document).unwrap(), (saga.partition, by));
    }

    #[test]
    fn unexpected_document_is_unusable_and_named() {
        let (_, mut document) = stored();
        document.insert("Content", doc! { "status": "PROCESSING" });
        let id = uuid_field(&document, "_id").unwrap().to_string();
        let error = decode(&document).unwrap_err().while_doing("loading partition 1");
        let text = error.chain();
        assert!(!error.is_retryable());
        assert!(text.contains("pmSearchImportJobState") && text.contains(&id), "{text}");
        assert_eq!(stored_version(&document).unwrap().1, StoredVersion { version: 4, attempt: None });
    }

    #[test]
    fn document_expires_at_end_of_retention() {
        let (_, mut document) = stored();
        document.insert("CompletedAt", DateTime::from_millis(1_000));
        assert!(!has_expired(&document, DateTime::from_millis(999)));
        assert!(has_expired(&document, DateTime::from_millis(1_000)));
        document.remove("CompletedAt");
        assert!(!has_expired(&document, DateTime::MAX));
    }
}
