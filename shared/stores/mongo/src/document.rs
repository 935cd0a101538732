//! Saga documents from BSON; how they are written is in [`crate::pipeline`].

use messages::{AttemptId, PartitionKey};
use mongodb::bson::{Bson, DateTime, Document};
use saga::{Content, Document as Saga};
use serde_json::Value;

use crate::entry;
use crate::fault::Fault;
use crate::names::{collections, record};
use crate::value::{count_field, serde_field, to_bson, uuid_field};

/// Reads a stored document.
pub(crate) fn decode(stored: &Document) -> Result<Saga, Fault> {
    read(stored)
        .map_err(|why| Fault::foreign(collections::SAGA, stored.get(record::ID), "a saga document", &why))
}

fn read(stored: &Document) -> Result<Saga, String> {
    Ok(Saga {
        partition: partition(stored)?,
        version: count_field(stored, record::VERSION)?,
        content: read_content(stored)?,
        outbox: entry::readable(stored, record::OUTBOX)?,
    })
}

/// A saga's content in the form that JSON has, its state included.
pub(crate) fn content(content: &Content) -> Result<Bson, Fault> {
    to_bson(&serde_json::to_value(content).map_err(Fault::encode)?)
}

/// The inverse of [`content`].
fn read_content(stored: &Document) -> Result<Content, String> {
    let content: Value = serde_field(stored, record::CONTENT)?;
    serde_json::from_value(content).map_err(|error| format!("its {}: {error}", record::CONTENT))
}

fn partition(stored: &Document) -> Result<PartitionKey, String> {
    uuid_field(stored, record::ID).map(PartitionKey::from_uuid)
}

/// Whether a document counts as absent although MongoDB has not deleted it yet.
pub(crate) fn has_expired(stored: &Document, expired_until: DateTime) -> bool {
    matches!(stored.get(record::COMPLETED_AT), Some(Bson::DateTime(at)) if *at <= expired_until)
}

/// Which version of a document is stored, and who wrote it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Written {
    pub(crate) version: u64,
    /// None where the content is not one of ours.
    pub(crate) attempt: Option<AttemptId>,
}

/// The partition of a document, and how it was written, from no more of it than that.
pub(crate) fn written(stored: &Document) -> Result<(PartitionKey, Written), String> {
    let content = stored.get_document(record::CONTENT).ok();
    let attempt = content.and_then(|content| serde_field(content, "attempt").ok());
    Ok((partition(stored)?, Written { version: count_field(stored, record::VERSION)?, attempt }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Key, date};
    use mongodb::bson::doc;
    use testing::{ManualHost, sample};

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
    fn a_document_comes_back() {
        let (content, document) = stored();
        let saga = decode(&document).unwrap();
        assert_eq!((saga.version, &saga.content, saga.outbox.len()), (4, &content, 0));
        let by = Written { version: 4, attempt: Some(content.attempt) };
        assert_eq!(written(&document).unwrap(), (saga.partition, by));
    }

    #[test]
    fn a_document_of_another_shape_is_unusable_and_named() {
        let (_, mut document) = stored();
        document.insert("Content", doc! { "status": "PROCESSING" });
        let id = uuid_field(&document, "_id").unwrap().to_string();
        let error = decode(&document).unwrap_err().while_doing("loading partition 1");
        let text = error.chain();
        assert!(!error.is_retryable());
        assert!(text.contains("pmSearchImportJobState") && text.contains(&id), "{text}");
        assert_eq!(written(&document).unwrap().1, Written { version: 4, attempt: None });
    }

    #[test]
    fn it_counts_as_absent_from_the_end_of_its_retention_on() {
        let (_, mut document) = stored();
        document.insert("CompletedAt", DateTime::from_millis(1_000));
        assert!(!has_expired(&document, DateTime::from_millis(999)));
        assert!(has_expired(&document, DateTime::from_millis(1_000)));
        document.remove("CompletedAt");
        assert!(!has_expired(&document, DateTime::MAX));
    }
}
