//! Saga documents from BSON; how they are written is in [`crate::pipeline`].

use contracts::{AttemptId, SearchId};
use jiff::Timestamp;
use mongodb::bson::{Bson, DateTime, Document};
use worker::document::{Content, Document as Saga};

use crate::entry;
use crate::fault::Fault;
use crate::names::{collections, record};
use crate::value::{count_field, field, serde_field, uuid};

/// Reads a stored document.
pub(crate) fn decode(stored: &Document) -> Result<Saga, Fault> {
    read(stored)
        .map_err(|why| Fault::foreign(collections::SAGA, stored.get(record::ID), "a saga document", &why))
}

fn read(stored: &Document) -> Result<Saga, String> {
    let (search_id, version, content) = read_content(stored)?;
    let outbox = entry::decode_all(stored, record::OUTBOX)?;
    Ok(Saga { search_id, version, content, outbox })
}

/// A stored document without its outbox.
pub(crate) fn content(stored: &Document) -> Result<(SearchId, u64, Content), Fault> {
    read_content(stored)
        .map_err(|why| Fault::foreign(collections::SAGA, stored.get(record::ID), "a saga document", &why))
}

fn read_content(stored: &Document) -> Result<(SearchId, u64, Content), String> {
    Ok((id(stored)?, count_field(stored, record::VERSION)?, serde_field(stored, record::CONTENT)?))
}

fn id(stored: &Document) -> Result<SearchId, String> {
    let id = uuid(field(stored, record::ID)?).ok_or("its _id is not a UUID")?;
    Ok(SearchId::from_uuid(id))
}

/// Whether a document counts as absent although MongoDB has not deleted it yet.
pub(crate) fn has_expired(stored: &Document, expired_until: DateTime) -> bool {
    matches!(stored.get(record::COMPLETED_AT), Some(Bson::DateTime(at)) if *at <= expired_until)
}

/// The search and the attempt that wrote its document, from no more of it than that.
pub(crate) fn author(stored: &Document) -> Result<(SearchId, AttemptId), Fault> {
    let read = || {
        let content = stored.get_document(record::CONTENT).map_err(|error| error.to_string())?;
        Ok::<_, String>((id(stored)?, serde_field(content, "attempt")?))
    };
    read().map_err(|why| Fault::foreign(collections::SAGA, stored.get(record::ID), "a saga document", &why))
}

/// When a document's content says that its search ended.
pub(crate) fn completed_at(content: &Content) -> Option<Timestamp> {
    content.state.completed_at()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::{Key, date, to_bson};
    use mongodb::bson::doc;
    use testing::{ManualHost, sample};

    fn stored() -> (Content, Document) {
        let host = ManualHost::seeded(1);
        let content = sample::ended(&host, sample::now(&host));
        let document = doc! {
            "_id": sample::search(&host).key(),
            "Version": 4_i64,
            "Content": to_bson(&content).unwrap(),
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
        assert_eq!(author(&document).unwrap(), (saga.search_id, content.attempt));
    }

    #[test]
    fn a_document_of_another_shape_is_unusable_and_named() {
        let (_, mut document) = stored();
        document.insert("Content", doc! { "status": "PROCESSING" });
        let id = uuid(document.get("_id").unwrap()).unwrap().to_string();
        for error in [decode(&document).unwrap_err(), author(&document).unwrap_err()] {
            let error = error.while_doing("loading search 1");
            let text = error.chain();
            assert!(!error.is_retryable());
            assert!(text.contains("pmSearchImportJobState") && text.contains(&id), "{text}");
        }
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
