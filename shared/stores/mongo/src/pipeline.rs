//! The changes of a record with an outbox, as statements whose update is a pipeline.
//!
//! A pipeline computes the new record from the stored one within one atomic write, so that each change can keep
//! the fields that are derived from the outbox ([`record::READY_AT`], [`record::PENDING`]) right by itself.
//!
//! Whatever comes from outside is wrapped as a [`literal`].

use jiff::{SignedDuration, Timestamp};
use mongodb::bson::{Bson, Document, doc};
use outbox::{Settlement, UnreadableAction};
use saga::Persist;

use crate::document;
use crate::entry;
use crate::fault::Fault;
use crate::names::record;
use crate::place::Place;
use crate::value::{Key, date, expired_until, int, literal, nanos};

/// One statement of an `update` command.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Statement {
    /// Selects the document.
    pub(crate) filter: Document,
    /// What becomes of it.
    pub(crate) pipeline: Vec<Document>,
    /// Whether the document is inserted when no document matches.
    pub(crate) upsert: bool,
}

impl Statement {
    /// As the command takes it.
    pub(crate) fn into_document(self) -> Document {
        doc! { "q": self.filter, "u": self.pipeline, "upsert": self.upsert }
    }
}

/// The write of a saga document, on condition of what was loaded.
///
/// With nothing loaded it matches a document whose retention has passed, which counts as absent, and inserts one
/// otherwise: then a document that lives has the id already, and the server answers with a duplicate key. The
/// outbox of an expired document stays: an effect that was not performed, or is poisoned, is never dropped.
pub(crate) fn persist(
    write: &Persist,
    now: Timestamp,
    retention: SignedDuration,
) -> Result<Statement, Fault> {
    let mut filter = doc! { record::ID: write.partition.key() };
    match write.loaded {
        None => filter.insert(record::COMPLETED_AT, doc! { "$lte": expired_until(now, retention) }),
        Some(loaded) => filter.insert(record::VERSION, int(loaded)),
    };
    // An entry that is added again takes the place of the one that was there.
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
        record::VERSION: int(write.loaded.unwrap_or(0).saturating_add(1)),
        record::CONTENT: literal(document::content(&write.content)?),
        record::COMPLETED_AT: write.content.ended_at.map_or(removed(), |at| literal(date(at))),
        record::OUTBOX: { "$concatArrays": [staying, entry::literals(&write.add)?] },
    } };
    Ok(Statement { filter, pipeline: vec![set, derived()], upsert: write.loaded.is_none() })
}

/// The settling of entries of one record, each on condition of its claim.
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
    // Only a record that holds one of them is touched; nothing is computed for one that was settled before.
    let ids: Vec<Bson> = settlements.iter().map(|settlement| settlement.id.key()).collect();
    Statement {
        filter: doc! { record::ID: id, format!("{}.{}", record::OUTBOX, entry::ID): { "$in": ids } },
        pipeline: vec![doc! { "$set": { record::OUTBOX: outbox } }, derived()],
        upsert: false,
    }
}

/// The claiming of all ready entries of one record.
pub(crate) fn claim(id: Bson, now: Timestamp, until: Timestamp) -> Statement {
    let (now, until) = (nanos(now), nanos(until));
    let ready_at = format!("$$this.{}", entry::READY_AT);
    // Null sorts before every number, so it has to be excluded: a poisoned entry is never ready.
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

/// The treatment of entries of one record that cannot be read: of those with this id, whatever it is, or of those
/// without one; of all of them when the record's own id cannot be read. Nothing is said about what else is in them.
pub(crate) fn resolve_unreadable(place: &Place, treatment: &UnreadableAction) -> Statement {
    let is_meant = match place {
        Place::Record { .. } => doc! { "$literal": true },
        Place::Entry { id: Some(id), .. } => {
            doc! { "$eq": [format!("$$this.{}", entry::ID), literal(id.clone())] }
        }
        Place::Entry { id: None, .. } => {
            doc! { "$eq": [{ "$type": format!("$$this.{}", entry::ID) }, "missing"] }
        }
    };
    let outbox = match treatment {
        UnreadableAction::Delete => {
            doc! { "$filter": { "input": path(record::OUTBOX), "cond": { "$not": [is_meant] } } }
        }
        UnreadableAction::Poison(why) => changed(is_meant, entry::poisoned(why)),
        UnreadableAction::Requeue(now) => changed(is_meant, entry::requeued(*now)),
    };
    Statement {
        filter: doc! { record::ID: place.record().clone() },
        pipeline: vec![doc! { "$set": { record::OUTBOX: outbox } }, derived()],
        upsert: false,
    }
}

fn changed(is_meant: Document, fields: Document) -> Document {
    let is_document = doc! { "$eq": [{ "$type": "$$this" }, "object"] };
    doc! { "$map": {
        "input": path(record::OUTBOX),
        "as": "this",
        "in": { "$cond": [
            { "$and": [is_document, is_meant] },
            { "$mergeObjects": ["$$this", literal(fields)] },
            "$$this",
        ] },
    } }
}

/// The fields that follow from the outbox.
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

/// The value of a field that is to be absent.
fn removed() -> Bson {
    Bson::String("$$REMOVE".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::{ManualHost, sample};

    #[test]
    fn a_creating_write_is_conditional_on_expiry_and_a_later_one_on_the_version() {
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

    /// Server-side evaluation of anything that a reviewer wrote would be an injection.
    #[test]
    fn names_from_outside_reach_the_server_only_as_literals() {
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
