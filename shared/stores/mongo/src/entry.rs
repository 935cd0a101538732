//! Outbox entries to and from BSON.

use jiff::Timestamp;
use messages::MessageId;
use mongodb::bson::{Bson, Document, doc};
use outbox::Entry;

use crate::error::CallError;
use crate::names::record;
use crate::value::{
    self, Key, count_field, field, int, int_field, literal, nanos, serde_field, timestamp, to_bson,
};

/// Id of the entry.
pub(crate) const ID: &str = "id";
/// End of the claim in nanoseconds, or null. Present in every entry, so that pipelines can compare it.
pub(crate) const CLAIMED_UNTIL: &str = "claimed_until";
/// Time at which the entry is ready in nanoseconds; null if it is exhausted.
pub(crate) const READY_AT: &str = "ready_at";

const KIND: &str = "kind";
const PAYLOAD: &str = "payload";
const DUE_AT: &str = "due_at";
const ATTEMPTS: &str = "attempts";
const NEXT_ATTEMPT_AT: &str = "next_attempt_at";
pub(crate) const POISONED: &str = "poisoned";
const ERROR: &str = "error";
const REQUEUED: &str = "requeued";

/// Encodes the fields of an entry that an attempt changes. The message never changes.
pub(crate) fn progress(entry: &Entry) -> Document {
    doc! {
        DUE_AT: nanos(entry.due_at),
        ATTEMPTS: int(entry.attempts),
        NEXT_ATTEMPT_AT: nanos(entry.next_attempt_at),
        CLAIMED_UNTIL: time(entry.claimed_until),
        POISONED: entry.poisoned,
        ERROR: entry.error.clone(),
        REQUEUED: int(entry.requeued),
        READY_AT: time(entry.ready_at()),
    }
}

/// Returns the fields that mark an unreadable entry as exhausted.
pub(crate) fn exhausted(why: &str) -> Document {
    doc! { POISONED: true, ERROR: why, READY_AT: Bson::Null }
}

/// Returns whether an entry is exhausted, even if the entry is unreadable.
pub(crate) fn is_exhausted(stored: &Bson) -> bool {
    stored.as_document().is_some_and(|entry| entry.get_bool(POISONED).unwrap_or_default())
}

/// Returns the filter of records with an exhausted entry.
pub(crate) fn has_exhausted() -> Document {
    doc! { format!("{}.{}", record::OUTBOX, POISONED): true }
}

/// Returns the fields that make an unreadable entry due again.
pub(crate) fn requeued(now: Timestamp) -> Document {
    doc! { POISONED: false, CLAIMED_UNTIL: Bson::Null, READY_AT: nanos(now) }
}

pub(crate) fn encode(entry: &Entry) -> Result<Document, CallError> {
    let mut encoded = doc! { ID: entry.id.key(), KIND: to_bson(&entry.kind)?, PAYLOAD: &entry.payload };
    encoded.extend(progress(entry));
    Ok(encoded)
}

/// The inverse of [`encode`].
pub(crate) fn decode(value: &Bson) -> Result<Entry, String> {
    let Bson::Document(entry) = value else { return Err("it is not a document".to_owned()) };
    let at = |name| int_field(entry, name).map(timestamp);
    Ok(Entry {
        id: value::uuid(field(entry, ID)?).map(MessageId::from_uuid).ok_or("its id is not a UUID")?,
        kind: serde_field(entry, KIND)?,
        payload: serde_field(entry, PAYLOAD)?,
        due_at: at(DUE_AT)?,
        attempts: count_field(entry, ATTEMPTS)?,
        next_attempt_at: at(NEXT_ATTEMPT_AT)?,
        claimed_until: match field(entry, CLAIMED_UNTIL)? {
            Bson::Null => None,
            _ => Some(at(CLAIMED_UNTIL)?),
        },
        poisoned: serde_field(entry, POISONED)?,
        error: serde_field(entry, ERROR)?,
        requeued: count_field(entry, REQUEUED)?,
    })
}

/// Returns the stored entries of a record. A missing field counts as empty.
pub(crate) fn stored<'a>(record: &'a Document, name: &str) -> Result<&'a [Bson], String> {
    match record.get(name) {
        None => Ok(&[]),
        Some(Bson::Array(entries)) => Ok(entries),
        Some(_) => Err(format!("its {name} is not an array")),
    }
}

/// Returns the readable entries of a record's outbox. Unreadable entries are left to the sweep and to operators,
/// because every write names the entries that it changes.
pub(crate) fn readable(record: &Document, name: &str) -> Result<Vec<Entry>, String> {
    Ok(stored(record, name)?.iter().filter_map(|entry| decode(entry).ok()).collect())
}

/// Returns the end of the claim of a stored entry, even if the entry is unreadable.
pub(crate) fn claimed_until(entry: &Bson) -> Option<i64> {
    int_field(entry.as_document()?, CLAIMED_UNTIL).ok()
}

/// Returns an entry's id and its expected claim in the form that pipelines build from a stored entry.
pub(crate) fn identity(id: MessageId, claim: Option<Timestamp>) -> Document {
    doc! { "id": id.key(), "claim": time(claim) }
}

/// Encodes entries as a literal of a pipeline.
pub(crate) fn literals(entries: &[Entry]) -> Result<Bson, CallError> {
    Ok(literal(entries.iter().map(encode).collect::<Result<Vec<_>, _>>()?))
}

fn time(at: Option<Timestamp>) -> Option<i64> {
    at.map(nanos)
}

#[cfg(test)]
mod tests {
    use super::*;
    use contracts::{ManualHost, sample};

    fn entry() -> Entry {
        let host = ManualHost::seeded(1);
        sample::entry(&host, sample::partition(&host), Timestamp::from_nanosecond(1_234_567_891).unwrap())
            .unwrap()
    }

    #[test]
    fn entry_round_trips() {
        let plain = entry();
        let tried = Entry {
            attempts: 3,
            next_attempt_at: Timestamp::from_nanosecond(99_000_000_001).unwrap(),
            claimed_until: Some(Timestamp::from_nanosecond(77_000_000_777).unwrap()),
            poisoned: true,
            error: Some("$refused".to_owned()),
            requeued: 2,
            ..plain.clone()
        };
        for entry in [plain, tried] {
            assert_eq!(decode(&encode(&entry).unwrap().into()), Ok(entry));
        }
    }

    #[test]
    fn ready_time_is_null_if_exhausted() {
        let ready = |entry: &Entry| encode(entry).unwrap().get(READY_AT).cloned();
        assert_eq!(ready(&entry()), Some(Bson::Int64(1_234_567_891)));
        assert_eq!(ready(&Entry { poisoned: true, ..entry() }), Some(Bson::Null));
    }

    #[test]
    fn unreadable_entry_does_not_hide_others() {
        let mut unreadable = encode(&entry()).unwrap();
        unreadable.insert(DUE_AT, "tomorrow");
        assert_eq!(decode(&unreadable.clone().into()).unwrap_err(), "its due_at is not a whole number");
        let record = doc! { "Outbox": [encode(&entry()).unwrap(), unreadable] };
        assert_eq!(readable(&record, "Outbox"), Ok(vec![entry()]));
        assert!(readable(&doc! { "Outbox": 7 }, "Outbox").is_err());
    }
}
