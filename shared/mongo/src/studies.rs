//! Studies and quarantined records, each once: their ids follow from search, file and record.

use async_trait::async_trait;
use contracts::{FileId, SearchId, StoreError};
use futures::TryStreamExt;
use futures::future::try_join;
use imports::{Quarantined, ReadStudies, Study, StudyId, WriteStudies};
use mongodb::bson::{Bson, Document, doc};
use mongodb::error::{Error, ErrorKind};
use uuid::Uuid;

use crate::Mongo;
use crate::fault::{DUPLICATE_KEY, Fault};
use crate::names::collections;
use crate::value::{Key, count_field, field, int, serde_field, to_bson, uuid};

const ID: &str = "_id";
pub(crate) const SEARCH: &str = "SearchId";
pub(crate) const FILE: &str = "FileId";
pub(crate) const RECORD: &str = "Record";
const PROJECT: &str = "ProjectId";
const LINE: &str = "Line";
const REFERENCE: &str = "Reference";
const QUARANTINE: &str = "Quarantine";

fn encode_study(study: &Study) -> Result<Document, Fault> {
    Ok(doc! {
        ID: study.id.key(),
        PROJECT: study.project_id.as_uuid().key(),
        SEARCH: study.search_id.key(),
        FILE: study.file_id.key(),
        RECORD: int(study.record),
        LINE: int(study.line),
        REFERENCE: to_bson(&study.reference)?,
    })
}

fn decode_study(stored: &Document) -> Result<Study, String> {
    let (search_id, file_id, record) = place(stored)?;
    Ok(Study {
        // Serde is the one way to make an id that is not derived, and a stored id need not be: it is what it is.
        id: crate::value::from_bson::<StudyId>(Bson::String(id(stored, ID)?.to_string()))?,
        project_id: contracts::ProjectId::from_uuid(id(stored, PROJECT)?),
        search_id,
        file_id,
        record,
        line: count_field(stored, LINE)?,
        reference: serde_field(stored, REFERENCE)?,
    })
}

/// A record is a study or quarantined, so the same rule gives an id to both.
fn encode_quarantined(record: &Quarantined) -> Result<Document, Fault> {
    Ok(doc! {
        ID: StudyId::of(record.search_id, record.file_id, record.record.number).key(),
        SEARCH: record.search_id.key(),
        FILE: record.file_id.key(),
        RECORD: int(record.record.number),
        QUARANTINE: to_bson(&record.record)?,
    })
}

fn decode_quarantined(stored: &Document) -> Result<Quarantined, String> {
    let (search_id, file_id, _) = place(stored)?;
    Ok(Quarantined { search_id, file_id, record: serde_field(stored, QUARANTINE)? })
}

fn place(stored: &Document) -> Result<(SearchId, FileId, u64), String> {
    let (search, file) = (id(stored, SEARCH)?, id(stored, FILE)?);
    Ok((SearchId::from_uuid(search), FileId::from_uuid(file), count_field(stored, RECORD)?))
}

fn id(stored: &Document, name: &str) -> Result<Uuid, String> {
    uuid(field(stored, name)?).ok_or_else(|| format!("its {name} is not a UUID"))
}

#[async_trait]
impl WriteStudies for Mongo {
    async fn store(&self, studies: &[Study], quarantined: &[Quarantined]) -> Result<(), StoreError> {
        let doing =
            format!("storing {} studies and {} quarantined records", studies.len(), quarantined.len());
        let work = async {
            let studies = studies.iter().map(encode_study).collect::<Result<Vec<_>, _>>()?;
            let quarantined = quarantined.iter().map(encode_quarantined).collect::<Result<Vec<_>, _>>()?;
            try_join(
                insert(self, collections::STUDY, studies),
                insert(self, collections::QUARANTINE, quarantined),
            )
            .await?;
            Ok(())
        };
        self.call(doing, work).await
    }

    async fn discard(&self, search: SearchId, file: FileId) -> Result<(), StoreError> {
        let delete = async |collection| {
            self.collection(collection).delete_many(of_file(search, file)).await.map_err(Fault::from)
        };
        let work = async {
            try_join(delete(collections::STUDY), delete(collections::QUARANTINE)).await?;
            Ok(())
        };
        self.call(format!("discarding file {file} of search {search}"), work).await
    }
}

fn of_file(search: SearchId, file: FileId) -> Document {
    doc! { SEARCH: search.key(), FILE: file.key() }
}

/// Inserts what is not there yet.
async fn insert(mongo: &Mongo, collection: &'static str, documents: Vec<Document>) -> Result<(), Fault> {
    if documents.is_empty() {
        return Ok(());
    }
    match mongo.collection(collection).insert_many(documents).ordered(false).await {
        Err(error) if is_only_repetition(&error) => Ok(()),
        inserted => Ok(inserted.map(|_| ())?),
    }
}

/// Whether nothing is wrong but that some of the documents were stored before.
fn is_only_repetition(error: &Error) -> bool {
    let ErrorKind::InsertMany(many) = error.kind.as_ref() else { return false };
    let errors = many.write_errors.as_deref().unwrap_or_default();
    many.write_concern_error.is_none()
        && !errors.is_empty()
        && errors.iter().all(|error| error.code == DUPLICATE_KEY)
}

#[async_trait]
impl ReadStudies for Mongo {
    async fn studies(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Study>, StoreError> {
        let work = page(self, &STUDIES, (search, file), (after, limit));
        self.call(format!("reading the studies of file {file} of search {search}"), work).await
    }

    async fn quarantined(
        &self,
        search: SearchId,
        file: FileId,
        limit: usize,
    ) -> Result<Vec<Quarantined>, StoreError> {
        let work = page(self, &QUARANTINED, (search, file), (0, limit));
        self.call(format!("reading the quarantined records of file {file} of search {search}"), work).await
    }
}

/// What a collection holds.
struct Shelf<T> {
    collection: &'static str,
    what: &'static str,
    decode: fn(&Document) -> Result<T, String>,
}

const STUDIES: Shelf<Study> = Shelf { collection: collections::STUDY, what: "a study", decode: decode_study };
const QUARANTINED: Shelf<Quarantined> =
    Shelf { collection: collections::QUARANTINE, what: "a quarantined record", decode: decode_quarantined };

async fn page<T>(
    mongo: &Mongo,
    shelf: &Shelf<T>,
    (search, file): (SearchId, FileId),
    (after, limit): (u64, usize),
) -> Result<Vec<T>, Fault> {
    if limit == 0 {
        // MongoDB takes 0 for no limit.
        return Ok(Vec::new());
    }
    let mut filter = of_file(search, file);
    filter.insert(RECORD, doc! { "$gt": int(after) });
    let found =
        mongo.collection(shelf.collection).find(filter).sort(doc! { RECORD: 1 }).limit(int(limit)).await?;
    let foreign =
        |stored: &Document, why: &str| Fault::foreign(shelf.collection, stored.get(ID), shelf.what, why);
    found
        .map_err(Fault::from)
        .and_then(async |stored| (shelf.decode)(&stored).map_err(|why| foreign(&stored, &why)))
        .try_collect()
        .await
}
