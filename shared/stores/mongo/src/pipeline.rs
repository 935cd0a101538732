//! Changes of a record with an outbox, as statements whose update is a pipeline.
//!
//! A pipeline computes the new record from the stored one in one atomic write. Each change can therefore update the
//! fields that are derived from the outbox ([`record::READY_AT`], [`record::PENDING`]).
//!
//! All values from outside are wrapped as a [`literal`].

use jiff::{SignedDuration, Timestamp};
use mongodb::bson::{Bson, Document, doc};
use outbox::{Settlement, UnreadableAction};
use saga::Persist;

use crate::document;
use crate::entry;
use crate::entry_location::EntryLocation;
use crate::error::CallError;
use crate::names::record;
use crate::value::{Key, date, expired_until, int, literal, nanos};

/// One statement of an `update` command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    /// Filter that selects the document.
    pub(crate) filter: Document,
    /// Update of the document.
    pub(crate) pipeline: Vec<Document>,
    /// `true` if a document is inserted if none matches.
    pub(crate) upsert: bool,
}

impl Statement {
    /// Returns the statement in the form of the command.
    pub(crate) fn into_document(self) -> Document {
        doc! { "q": self.filter, "u": self.pipeline, "upsert": self.upsert }
    }
}

/// Returns the write of a saga document, on condition that the loaded version is still stored.
///
/// If no document was loaded, the filter matches an expired document, which counts as absent. Otherwise the statement
/// inserts one; if an unexpired document has the id, the server answers with a duplicate key. The outbox of an expired
/// document is kept, so that no pending or exhausted effect is lost.
pub(crate) fn persist(
    write: &Persist,
    now: Timestamp,
    retention: SignedDuration,
) -> Result<Statement, CallError> {
    let mut filter = doc! { record::ID: write.partition.key() };
    match write.loaded {
        None => filter.insert(record::COMPLETED_AT, doc! { "$lte": expired_until(now, retention) }),
        Some(loaded) => filter.insert(record::VERSION, int(loaded)),
    };
    // An added entry replaces a stored one with the same id.
    let leaving: Vec<Bson> = write
        .cancel
        .iter()
        .copied()
        .chain(write.add.iter().map(|entry| entry.id))
        .map(|id| id.key())
        .collect();
    let staying = doc! { "$filter": {
        "input": { "$ifNull": [path(record::OUTBOX), []] },
        "cond": { "$not": [{ "$in": ["$$this.id", literal(leaving)] }] },
    } };
    let set = doc! { "$set": {
        record::VERSION: int(write.version),
        record::CONTENT: literal(document::content(&write.content)?),
        record::COMPLETED_AT: write.content.ended_at.map_or(removed(), |at| literal(date(at))),
        record::OUTBOX: { "$concatArrays": [staying, entry::literals(&write.add)?] },
    } };
    Ok(Statement { filter, pipeline: vec![set, derived()], upsert: write.loaded.is_none() })
}

/// Returns the settlement of entries of one record, each on condition of its claim.
pub(crate) fn settle(id: Bson, settlements: &[Settlement]) -> Statement {
    let identity =
        |entry: &str| doc! { "id": format!("{entry}.id"), "claim": format!("{entry}.claimed_until") };
    let done: Vec<Document> = settlements
        .iter()
        .filter(|settlement| settlement.keep.is_none())
        .map(|settlement| entry::identity(settlement.id, settlement.claim))
        .collect();
    let staying = doc! { "$filter": {
        "input": path(record::OUTBOX),
        "cond": { "$not": [{ "$in": [identity("$$this"), literal(done)] }] },
    } };
    let kept: Vec<Document> = settlements
        .iter()
        .filter_map(|settlement| settlement.keep.as_ref().map(|keep| (settlement, keep)))
        .map(|(settlement, keep)| {
            let expected = entry::identity(settlement.id, settlement.claim);
            doc! {
                "case": { "$eq": [identity("$$this"), literal(expected)] },
                "then": { "$mergeObjects": ["$$this", literal(entry::progress(keep))] },
            }
        })
        .collect();
    let outbox = if kept.is_empty() {
        staying
    } else {
        doc! { "$map": { "input": staying, "as": "this", "in": { "$switch": { "branches": kept, "default": "$$this" } } } }
    };
    // The filter skips records without these entries, so repeated settlements compute nothing.
    let ids: Vec<Bson> = settlements.iter().map(|settlement| settlement.id.key()).collect();
    Statement {
        filter: doc! { record::ID: id, format!("{}.{}", record::OUTBOX, entry::ID): { "$in": ids } },
        pipeline: vec![doc! { "$set": { record::OUTBOX: outbox } }, derived()],
        upsert: false,
    }
}

/// Returns the claim of all ready entries of one record.
pub(crate) fn claim(id: Bson, now: Timestamp, until: Timestamp) -> Statement {
    let (now, until) = (nanos(now), nanos(until));
    let ready_at = format!("$$this.{}", entry::READY_AT);
    // Exclude null, the value of exhausted entries, because it sorts before every number.
    let is_ready = doc! { "$and": [{ "$isNumber": &ready_at }, { "$lte": [&ready_at, now] }] };
    let claimed = doc! { "$mergeObjects": ["$$this", {
        entry::CLAIMED_UNTIL: until,
        entry::READY_AT: { "$max": [until, &ready_at] },
    }] };
    let outbox = doc! { "$map": {
        "input": path(record::OUTBOX),
        "as": "this",
        "in": { "$cond": [is_ready, claimed, "$$this"] },
    } };
    Statement {
        filter: doc! { record::ID: id, record::READY_AT: { "$lte": now } },
        pipeline: vec![doc! { "$set": { record::OUTBOX: outbox } }, derived()],
        upsert: false,
    }
}

/// Returns the action on unreadable entries of one record. The location selects the entries with an id of any type,
/// those without an id, or all entries of the record. The other fields of the entries are not examined.
pub(crate) fn resolve_unreadable(location: &EntryLocation, action: &UnreadableAction) -> Statement {
    let is_selected = match location {
        EntryLocation::Record { .. } => doc! { "$literal": true },
        EntryLocation::Entry { id: Some(id), .. } => {
            doc! { "$eq": [format!("$$this.{}", entry::ID), literal(id.clone())] }
        }
        EntryLocation::Entry { id: None, .. } => {
            doc! { "$eq": [{ "$type": format!("$$this.{}", entry::ID) }, "missing"] }
        }
    };
    let outbox = match action {
        UnreadableAction::Delete => {
            doc! { "$filter": { "input": path(record::OUTBOX), "cond": { "$not": [is_selected] } } }
        }
        UnreadableAction::Poison(why) => changed(is_selected, entry::exhausted(why)),
        UnreadableAction::Requeue(now) => {
            let is_found = doc! { "$isNumber": format!("$$this.{}", entry::READY_AT) };
            changed(doc! { "$and": [is_selected, { "$not": [is_found] }] }, entry::requeued(*now))
        }
    };
    Statement {
        filter: doc! { record::ID: location.record().clone() },
        pipeline: vec![doc! { "$set": { record::OUTBOX: outbox } }, derived()],
        upsert: false,
    }
}

fn changed(is_selected: Document, fields: Document) -> Document {
    let is_document = doc! { "$eq": [{ "$type": "$$this" }, "object"] };
    doc! { "$map": {
        "input": path(record::OUTBOX),
        "as": "this",
        "in": { "$cond": [
            { "$and": [is_document, is_selected] },
            { "$mergeObjects": ["$$this", literal(fields)] },
            "$$this",
        ] },
    } }
}

/// Returns the stage that updates the fields derived from the outbox.
fn derived() -> Document {
    let first = doc! { "$min": format!("${}.{}", record::OUTBOX, entry::READY_AT) };
    doc! { "$set": {
        record::READY_AT: { "$ifNull": [first, removed()] },
        record::PENDING: { "$size": path(record::OUTBOX) },
    } }
}

fn path(field: &str) -> String {
    format!("${field}")
}

/// Returns the expression that removes a field.
fn removed() -> Bson {
    Bson::String("$$REMOVE".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use contracts::{ManualHost, sample};

    #[test]
    fn first_write_requires_expiry_later_ones_version() {
        let host = ManualHost::seeded(1);
        let (partition, now) = (sample::partition(&host), sample::now(&host));
        let statement = |loaded| {
            let write = sample::persist(partition, loaded, sample::content(&host, "$$ROOT"));
            persist(&write, now, SignedDuration::from_secs(10)).unwrap()
        };
        let (create, update) = (statement(None), statement(Some(3)));
        assert!(create.upsert && !update.upsert);
        assert!(create.filter.contains_key("CompletedAt") && !create.filter.contains_key("Version"));
        assert_eq!(update.filter.get_i64("Version").unwrap(), 3);
    }

    /// Evaluation of a reviewer's text on the server would be an injection.
    #[test]
    fn outside_values_are_literals() {
        let host = ManualHost::seeded(1);
        let mut write = sample::persist(sample::partition(&host), None, sample::content(&host, "$$ROOT"));
        write.add = vec![sample::entry(&host, write.partition, sample::now(&host)).unwrap()];
        write.add[0].payload = "$$ROOT".to_owned();
        let statement = persist(&write, sample::now(&host), SignedDuration::ZERO).unwrap();
        fn outside_literals(value: &Bson, found: &mut usize) {
            match value {
                Bson::String(text) => *found += usize::from(text == "$$ROOT"),
                Bson::Array(values) => values.iter().for_each(|value| outside_literals(value, found)),
                Bson::Document(document) => document
                    .iter()
                    .filter(|(name, _)| *name != "$literal")
                    .for_each(|(_, value)| outside_literals(value, found)),
                _ => {}
            }
        }
        let mut found = 0;
        outside_literals(&statement.pipeline.into(), &mut found);
        assert_eq!(found, 0);
    }
}
