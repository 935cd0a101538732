//! Where something is that cannot be read: pointed at by ids as they are stored, whatever they are.

use mongodb::bson::{Bson, Document, doc};

use crate::entry;
use crate::fault::Fault;
use crate::names::record;

/// Where it is.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Place {
    /// A record whose id is none of ours, with all of its entries.
    Record {
        /// The record's id.
        record: Bson,
    },
    /// An entry of a record; without an id all those that have none.
    Entry {
        /// The record's id.
        record: Bson,
        /// The entry's.
        id: Option<Bson>,
    },
}

impl Place {
    /// Where a stored entry is.
    pub(crate) fn of(record: &Bson, entry: &Bson) -> Self {
        let id = entry.as_document().and_then(|entry| entry.get(entry::ID)).cloned();
        Self::Entry { record: record.clone(), id }
    }

    pub(crate) fn record(&self) -> &Bson {
        match self {
            Self::Record { record } | Self::Entry { record, .. } => record,
        }
    }

    /// As extended JSON, which an operator can copy.
    pub(crate) fn write(&self) -> String {
        let place = match self {
            Self::Record { record } => doc! { record::ID: record.clone() },
            Self::Entry { record, id } => {
                doc! { record::ID: record.clone(), entry::ID: id.clone().into_iter().collect::<Vec<_>>() }
            }
        };
        // Whatever is in a document can be written.
        serde_json::to_string(&place).unwrap_or_default()
    }

    /// The inverse of [`Place::write`].
    pub(crate) fn read(text: &str) -> Result<Self, Fault> {
        let foreign = || Fault::Encode(format!("{text} is not the place of an entry"));
        let mut place: Document = serde_json::from_str(text).map_err(|_| foreign())?;
        let record = place.remove(record::ID).ok_or_else(foreign)?;
        match place.remove(entry::ID) {
            None => Ok(Self::Record { record }),
            Some(Bson::Array(ids)) => Ok(Self::Entry { record, id: ids.into_iter().next() }),
            Some(_) => Err(foreign()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Key;
    use mongodb::bson::oid::ObjectId;
    use testing::{ManualHost, sample};

    #[test]
    fn a_place_reads_back_whatever_the_ids_are() {
        let partition = sample::partition(&ManualHost::seeded(1)).key();
        for record in
            [partition.clone(), Bson::ObjectId(ObjectId::from_bytes([7; 12])), "x".into(), Bson::Null]
        {
            for place in [
                Place::Record { record: record.clone() },
                Place::Entry { record: record.clone(), id: None },
                Place::Entry { record: record.clone(), id: Some(partition.clone()) },
                Place::Entry { record: record.clone(), id: Some(7.5.into()) },
            ] {
                assert_eq!(Place::read(&place.write()).unwrap(), place);
            }
        }
        assert!(Place::read("{}").is_err() && Place::read("17").is_err());
    }
}
