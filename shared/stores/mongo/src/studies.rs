//! Studies and quarantined records, each once: their ids follow from search, file and record.

use std::collections::HashSet;

use async_trait::async_trait;
use futures::TryStreamExt;
use imports::{
    DuplicateCounts, FileFence, FileId, Identity, ParsedFile, PreparedStudy, Quarantined, ReadStudies,
    ReadingStatus, SearchId, Selection, Study, StudyId, StudyKeys, StudyRef, Tier, WriteStudies,
};
use messages::StoreError;
use mongodb::ClientSession;
use mongodb::bson::{Bson, Document, RawDocumentBuf, doc};
use mongodb::error::{Error, ErrorKind};
use references::Reference;

use crate::duplicates::KEYS;
use crate::fault::{DUPLICATE_KEY, Fault};
use crate::names::collections;
use crate::transaction::{self, Step, Work};
use crate::value::{Key, count_field, int, serde_field, to_bson, uuid_field};
use crate::{Mongo, duplicates, files, reading};

const ID: &str = "_id";
pub(crate) const SEARCH: &str = "SearchId";
pub(crate) const FILE: &str = "FileId";
pub(crate) const RECORD: &str = "Record";
pub(crate) const PROJECT: &str = "ProjectId";
const LINE: &str = "Line";
/// Where the record is in its file; there is no such field in what releases before stored.
const BYTES: &str = "Bytes";
pub(crate) const REFERENCE: &str = "Reference";
/// The mark of a study that repeats another; there is no such field in others.
pub(crate) const DUPLICATE: &str = "Duplicate";
const QUARANTINE: &str = "Quarantine";

fn encode_study(study: &Study) -> Result<Document, Fault> {
    let mut document = doc! {
        ID: study.id.key(),
        PROJECT: study.project_id.as_uuid().key(),
        SEARCH: study.search_id.key(),
        FILE: study.file_id.key(),
        RECORD: int(study.record),
        LINE: int(study.line),
        REFERENCE: to_bson(&study.reference)?,
        KEYS: duplicates::keys(&study.reference),
    };
    if let Some(bytes) = &study.bytes {
        document.insert(BYTES, to_bson(bytes)?);
    }
    Ok(document)
}

fn decode_study(stored: &Document) -> Result<Study, String> {
    let (search_id, file_id, record) = place(stored)?;
    Ok(Study {
        // Serde is the one way to make an id that is not derived, and a stored id need not be: it is what it is.
        id: crate::value::from_bson::<StudyId>(Bson::String(uuid_field(stored, ID)?.to_string()))?,
        project_id: imports::ProjectId::from_uuid(uuid_field(stored, PROJECT)?),
        search_id,
        file_id,
        record,
        line: count_field(stored, LINE)?,
        bytes: stored.get(BYTES).cloned().map(crate::value::from_bson).transpose()?,
        reference: serde_field(stored, REFERENCE)?,
        duplicate: duplicates::decode(search_id, stored)?,
    })
}

/// A study of which only some fields were asked for.
fn decode_identity(stored: &Document) -> Result<Identity, String> {
    let reference = serde_field::<Reference>(stored, REFERENCE)?;
    let is_marked = stored.contains_key(DUPLICATE);
    Ok(Identity { is_marked, ..Identity::of(count_field(stored, RECORD)?, &reference) })
}

/// The keys of a study, of which nothing else was asked for.
fn decode_keyed(stored: &Document) -> Result<StudyKeys, String> {
    let keys: Option<Vec<i64>> =
        stored.get(KEYS).cloned().map(crate::value::from_bson).transpose()?.flatten();
    let keys = keys.map(|keys| keys.into_iter().map(i64::cast_unsigned).collect());
    Ok(StudyKeys { record: count_field(stored, RECORD)?, keys, is_marked: stored.contains_key(DUPLICATE) })
}

/// What a study is recognised by, and nothing of the rest.
fn identity_fields() -> Document {
    let of_reference = [
        "title", "authors", "year", "journal", "volume", "issue", "pages", "doi", "pmid", "abstract", "extra",
    ];
    let mut fields = doc! { RECORD: 1, format!("{DUPLICATE}.record"): 1 };
    fields.extend(of_reference.map(|field| (format!("{REFERENCE}.{field}"), Bson::Int32(1))));
    fields
}

/// What some studies of a file are recognised by.
async fn identities_of(
    mongo: &Mongo,
    (search, file): (SearchId, FileId),
    records: &[u64],
) -> Result<Vec<Identity>, Fault> {
    let ids: Vec<Bson> = records.iter().map(|record| StudyId::of(search, file, *record).key()).collect();
    let studies = mongo.collection(collections::STUDY).await?;
    let found = studies.find(doc! { ID: { "$in": ids } }).projection(identity_fields()).await?;
    let decode = async |stored: Document| {
        decode_identity(&stored)
            .map_err(|why| Fault::foreign(collections::STUDY, stored.get(ID), "a study", &why))
    };
    found.map_err(Fault::from).and_then(decode).try_collect().await
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

/// Where a study is of which only some fields were asked for.
pub(crate) fn at(stored: &Document) -> Result<StudyRef, String> {
    let (search_id, file_id, record) = place(stored)?;
    Ok(StudyRef { search_id, file_id, record })
}

fn place(stored: &Document) -> Result<(SearchId, FileId, u64), String> {
    let (search, file) = (uuid_field(stored, SEARCH)?, uuid_field(stored, FILE)?);
    Ok((SearchId::from_uuid(search), FileId::from_uuid(file), count_field(stored, RECORD)?))
}

#[async_trait]
impl WriteStudies for Mongo {
    fn prepare(&self, study: Study) -> Result<PreparedStudy, StoreError> {
        let doing = || format!("making study {} of file {} ready", study.record, study.file_id);
        encode_study(&study).map(PreparedStudy::new).map_err(|fault| fault.while_doing(doing()))
    }

    async fn store_prepared(
        &self,
        file: &FileFence,
        studies: Vec<PreparedStudy>,
        quarantined: Vec<Quarantined>,
    ) -> Result<(), StoreError> {
        let doing =
            format!("storing {} studies and {} quarantined records", studies.len(), quarantined.len());
        let studies = studies.into_iter().map(PreparedStudy::into_inner).collect::<Result<_, _>>()?;
        let work = async {
            let quarantined = quarantined.iter().map(encode_quarantined).collect::<Result<Vec<_>, _>>()?;
            transaction::run(self, &Storing { file, studies, quarantined }).await
        };
        let is_held = self.call(doing.clone(), work).await?;
        if is_held { Ok(()) } else { Err(FileFence::overtaken(doing)) }
    }

    async fn discard(&self, file: &FileFence, then: Option<&ReadingStatus>) -> Result<FileFence, StoreError> {
        let doing = format!("discarding file {} of search {}", file.file_id, file.search_id);
        reading::take_back(self, file, then, &doing).await
    }

    async fn remove(
        &self,
        search: SearchId,
        file: FileId,
        refused: &ReadingStatus,
    ) -> Result<(), StoreError> {
        let doing = format!("removing file {file} of search {search}");
        reading::remove(self, search, file, refused, &doing).await
    }

    async fn finish(&self, file: &ParsedFile) -> Result<(), StoreError> {
        let doing = format!("remembering that file {} of search {} was read", file.file_id, file.search_id);
        self.call(doing, transaction::run(self, &files::Finishing(file))).await
    }

    async fn withdraw(
        &self,
        search: SearchId,
        file: FileId,
        refused: &ReadingStatus,
    ) -> Result<(), StoreError> {
        let doing = format!("withdrawing file {file} of search {search}");
        reading::withdraw(self, search, file, refused, &doing).await
    }
}

pub(crate) fn of_file(search: SearchId, file: FileId) -> Document {
    doc! { SEARCH: search.key(), FILE: file.key() }
}

/// What is to be stored of a file while it has its fence.
struct Storing<'a> {
    file: &'a FileFence,
    studies: Vec<Document>,
    quarantined: Vec<Document>,
}

#[async_trait]
impl Work for Storing<'_> {
    /// Whether the file has its fence.
    type Answer = bool;

    async fn stage(&self, mongo: &Mongo, client: &mut ClientSession) -> Result<Step<bool>, Fault> {
        if !reading::hold(mongo, client, self.file).await? {
            return Ok(Step::Leave(false));
        }
        let all = [(collections::QUARANTINE, &self.quarantined), (collections::STUDY, &self.studies)];
        for (collection, documents) in all {
            let new = missing(mongo, client, collection, documents).await?;
            if new.is_empty() {
                continue;
            }
            match mongo.collection(collection).await?.insert_many(new).session(&mut *client).await {
                // A release without fences stores the same right now.
                Err(error) if is_only_repetition(&error) => return Ok(Step::Again(error.into())),
                inserted => inserted?,
            };
        }
        Ok(Step::Commit(true))
    }
}

/// Those documents that are not stored.
async fn missing<'a>(
    mongo: &Mongo,
    client: &mut ClientSession,
    collection: &'static str,
    documents: &'a [Document],
) -> Result<Vec<&'a Document>, Fault> {
    let ids: Vec<&Bson> = documents.iter().filter_map(|document| document.get(ID)).collect();
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let collection = mongo.collection(collection).await?;
    let stored = collection.find(doc! { ID: { "$in": ids } }).projection(doc! { ID: 1 });
    let mut stored = stored.session(&mut *client).await?;
    let stored: Vec<Document> = stored.stream(client).try_collect().await?;
    let stored: HashSet<String> =
        stored.iter().filter_map(|found| Some(found.get(ID)?.to_string())).collect();
    let is_new = |document: &&Document| document.get(ID).is_none_or(|id| !stored.contains(&id.to_string()));
    Ok(documents.iter().filter(is_new).collect())
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
    async fn select(
        &self,
        search: SearchId,
        file: FileId,
        Selection { marked, after, limit, bytes }: Selection,
    ) -> Result<Vec<Study>, StoreError> {
        let shelf = Shelf { marked, ..STUDIES };
        let work = page(self, &shelf, (search, file), Room { after, limit, bytes });
        self.call(format!("reading the studies of file {file} of search {search}"), work).await
    }

    async fn quarantined(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Quarantined>, StoreError> {
        let work = page(self, &QUARANTINED, (search, file), Room { after, limit, bytes: usize::MAX });
        self.call(format!("reading the quarantined records of file {file} of search {search}"), work).await
    }

    async fn keyed(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StudyKeys>, StoreError> {
        let work = page(self, &KEYED, (search, file), Room { after, limit, bytes: usize::MAX });
        self.call(format!("reading the keys of the studies of file {file} of search {search}"), work).await
    }

    async fn identities_of(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
    ) -> Result<Vec<Identity>, StoreError> {
        let doing = format!("reading what some studies of file {file} of search {search} are recognised by");
        self.call(doing, identities_of(self, (search, file), records)).await
    }

    async fn parsed(&self, search: SearchId) -> Result<Vec<ParsedFile>, StoreError> {
        self.call(format!("reading which files of search {search} were read"), files::parsed(self, search))
            .await
    }

    async fn marked(&self, search: SearchId, file: FileId) -> Result<DuplicateCounts, StoreError> {
        let doing = format!("counting the marks of file {file} of search {search}");
        self.call(doing, duplicates::marked(self, search, file)).await
    }
}

/// What a collection holds.
struct Shelf<T> {
    collection: &'static str,
    what: &'static str,
    /// Only those with a mark that is at least as sure as this.
    marked: Option<Tier>,
    /// All of them when there are none.
    fields: fn() -> Document,
    decode: fn(&Document) -> Result<T, String>,
}

const STUDIES: Shelf<Study> = Shelf {
    collection: collections::STUDY,
    what: "a study",
    marked: None,
    fields: Document::new,
    decode: decode_study,
};
const KEYED: Shelf<StudyKeys> = Shelf {
    collection: collections::STUDY,
    what: "a study",
    marked: None,
    fields: || doc! { RECORD: 1, KEYS: 1, format!("{DUPLICATE}.record"): 1 },
    decode: decode_keyed,
};
const QUARANTINED: Shelf<Quarantined> = Shelf {
    collection: collections::QUARANTINE,
    what: "a quarantined record",
    marked: None,
    fields: Document::new,
    decode: decode_quarantined,
};

/// Where a page begins, and what it may come to.
struct Room {
    after: u64,
    limit: usize,
    bytes: usize,
}

async fn page<T>(
    mongo: &Mongo,
    shelf: &Shelf<T>,
    (search, file): (SearchId, FileId),
    Room { after, limit, bytes: most_bytes }: Room,
) -> Result<Vec<T>, Fault> {
    if limit == 0 {
        // MongoDB takes 0 for no limit.
        return Ok(Vec::new());
    }
    let mut filter = of_file(search, file);
    filter.insert(RECORD, doc! { "$gt": int(after) });
    if let Some(least) = shelf.marked {
        filter.insert(DUPLICATE, doc! { "$exists": true });
        let less_sure = [Tier::Possible, Tier::Likely].into_iter().filter(|tier| *tier < least);
        let less_sure = less_sure.map(|tier| to_bson(&tier)).collect::<Result<Vec<_>, _>>()?;
        // Marks of releases before have no tier, and are certain.
        filter.insert(format!("{DUPLICATE}.tier"), doc! { "$nin": less_sure });
    }
    let collection = mongo.collection(shelf.collection).await?.clone_with_type::<RawDocumentBuf>();
    let find = collection.find(filter).projection((shelf.fields)()).sort(doc! { RECORD: 1 });
    let mut cursor = find.limit(int(limit)).await?;
    let (mut found, mut bytes) = (Vec::new(), 0_usize);
    while bytes < most_bytes
        && let Some(stored) = cursor.try_next().await?
    {
        bytes = bytes.saturating_add(stored.as_bytes().len());
        let stored = Document::try_from(stored.as_ref()).map_err(Fault::encode)?;
        let foreign = |why: String| Fault::foreign(shelf.collection, stored.get(ID), shelf.what, &why);
        let decoded = (shelf.decode)(&stored).map_err(foreign);
        // Without its number, no page can follow it.
        let named = |fault: Fault| match count_field(&stored, RECORD) {
            Ok(record) => Fault::Study { record, before: found.len(), source: Box::new(fault) },
            Err(_) => fault,
        };
        found.push(decoded.map_err(named)?);
    }
    Ok(found)
}
