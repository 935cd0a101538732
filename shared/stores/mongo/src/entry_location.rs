//! Locations of entries and records that may be unreadable, by their stored ids of any type.

use mongodb::bson::{Bson, Document, doc};

use crate::entry;
use crate::error::CallError;
use crate::names::record;

/// Location of one or more outbox entries.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum EntryLocation {
    /// All entries of a record.
    Record {
        /// Id of the record.
        record: Bson,
    },
    /// One entry of a record.
    Entry {
        /// Id of the record.
        record: Bson,
        /// Id of the entry; `None` for all entries without an id.
        id: Option<Bson>,
    },
}

impl EntryLocation {
    /// Returns the location of a stored entry.
    pub(crate) fn of(record: &Bson, entry: &Bson) -> Self {
        let id = entry.as_document().and_then(|entry| entry.get(entry::ID)).cloned();
        Self::Entry { record: record.clone(), id }
    }

    pub(crate) fn record(&self) -> &Bson {
        match self {
            Self::Record { record } | Self::Entry { record, .. } => record,
        }
    }

    /// Writes the location as extended JSON, which an operator can copy.
    pub(crate) fn write(&self) -> String {
        let place = match self {
            Self::Record { record } => doc! { record::ID: record.clone() },
            Self::Entry { record, id } => {
                doc! { record::ID: record.clone(), entry::ID: id.clone().into_iter().collect::<Vec<_>>() }
            }
        };
        // Every BSON document can be serialized.
        serde_json::to_string(&place).unwrap_or_default()
    }

    /// The inverse of [`EntryLocation::write`].
    pub(crate) fn read(text: &str) -> Result<Self, CallError> {
        let unreadable = || CallError::Encode(format!("{text} is not the location of an entry"));
        let mut place: Document = serde_json::from_str(text).map_err(|_| unreadable())?;
        let record = place.remove(record::ID).ok_or_else(unreadable)?;
        match place.remove(entry::ID) {
            None => Ok(Self::Record { record }),
            Some(Bson::Array(ids)) => Ok(Self::Entry { record, id: ids.into_iter().next() }),
            Some(_) => Err(unreadable()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Key;
    use contracts::{ManualHost, sample};
    use mongodb::bson::oid::ObjectId;

    #[test]
    fn location_round_trips_with_ids_of_any_type() {
        let partition = sample::partition(&ManualHost::seeded(1)).key();
        for record in
            [partition.clone(), Bson::ObjectId(ObjectId::from_bytes([7; 12])), "x".into(), Bson::Null]
        {
            for place in [
                EntryLocation::Record { record: record.clone() },
                EntryLocation::Entry { record: record.clone(), id: None },
                EntryLocation::Entry { record: record.clone(), id: Some(partition.clone()) },
                EntryLocation::Entry { record: record.clone(), id: Some(7.5.into()) },
            ] {
                assert_eq!(EntryLocation::read(&place.write()).unwrap(), place);
            }
        }
        assert!(EntryLocation::read("{}").is_err() && EntryLocation::read("17").is_err());
    }
}
