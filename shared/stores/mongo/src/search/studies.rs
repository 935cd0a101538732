//! Studies and quarantined records, with ids that are derived from search, file and record.

use std::collections::HashSet;

use async_trait::async_trait;
use futures::TryStreamExt;
use imports::words::{BucketRange, WordPart};
use imports::{
    DamagedRecord, DuplicateCounts, FileFence, FileId, FileRef, Identity, ParsedFile, PreparedStudy,
    ProjectId, QuarantinedRecord, ReadStudies, ReadingStatus, SearchId, Selection, StoredFile, Study,
    StudyId, StudyKeys, StudyRef, Tier, WriteStudies,
};
use messages::StoreError;
use mongodb::ClientSession;
use mongodb::bson::{self, Bson, Document, RawDocumentBuf, doc};
use mongodb::error::{Error, ErrorKind};
use references::Reference;

use super::names::collections;
use super::names::study::{DUPLICATE, FILE, KEYS, PROJECT, RECORD, REFERENCE, SEARCH};
use super::study_key::{of_file, study_ref};
use super::{duplicates, files, parse_attempts, words};
use crate::Mongo;
use crate::driver_error::DUPLICATE_KEY;
use crate::error::CallError;
use crate::transaction::{self, Step, Work};
use crate::value::{Key, batch_size, count_field, int, needs_escape, serde_field, to_bson, uuid_field};

const ID: &str = "_id";
const LINE: &str = "Line";
/// Position of the record in its file. Studies of earlier versions lack this field.
const BYTES: &str = "Bytes";
const QUARANTINE: &str = "Quarantine";

fn encode_study(study: &Study) -> Result<Document, CallError> {
    let mut document = doc! {
        ID: study.id.key(),
        PROJECT: study.project_id.as_uuid().key(),
        SEARCH: study.search_id.key(),
        FILE: study.file_id.key(),
        RECORD: int(study.record),
        LINE: int(study.line),
        REFERENCE: encode_reference(&study.reference)?,
        KEYS: duplicates::keys(&study.reference),
    };
    if let Some(bytes) = &study.bytes {
        document.insert(BYTES, to_bson(bytes)?);
    }
    Ok(document)
}

/// Encodes a record like [`to_bson`], in half the time if no name of its fields has to be escaped.
fn encode_reference(reference: &Reference) -> Result<Bson, CallError> {
    match reference.extra.keys().any(|name| needs_escape(name)) {
        true => Ok(to_bson(reference)?),
        false => Ok(bson::serialize_to_bson(reference)?),
    }
}

fn decode_study(stored: &Document) -> Result<Study, String> {
    let StudyRef { search_id, file_id, record } = study_ref(stored)?;
    Ok(Study {
        // Use the stored id as it is. Only serde can create an id that is not derived.
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

/// Decodes a study that was loaded with the fields of [`identity_fields`]. An unreadable study matches no other;
/// reading it reports the cause.
fn decode_identity(stored: &Document) -> Result<Identity, String> {
    let record = count_field(stored, RECORD)?;
    let identity = match serde_field::<Reference>(stored, REFERENCE) {
        Ok(reference) => Identity::of(record, &reference),
        Err(error) => {
            tracing::warn!(record, error, "a study that cannot be read is compared with no other");
            Identity { record, ..Identity::default() }
        }
    };
    Ok(Identity { is_marked: stored.contains_key(DUPLICATE), ..identity })
}

/// Decodes a study that was loaded with its keys only.
fn decode_keyed(stored: &Document) -> Result<StudyKeys, String> {
    let keys: Option<Vec<i64>> =
        stored.get(KEYS).cloned().map(crate::value::from_bson).transpose()?.flatten();
    let keys = keys.map(|keys| keys.into_iter().map(i64::cast_unsigned).collect());
    Ok(StudyKeys { record: count_field(stored, RECORD)?, keys, is_marked: stored.contains_key(DUPLICATE) })
}

/// Returns the projection of the fields that identify a study.
fn identity_fields() -> Document {
    let of_reference = [
        "title",
        "authors",
        "year",
        "journal",
        "volume",
        "issue",
        "pages",
        "doi",
        "pmid",
        "pmcid",
        "embase_id",
        "wos_id",
        "trial_ids",
        "abstract",
        "url",
        "type",
        "extra",
    ];
    let mut fields = doc! { RECORD: 1, format!("{DUPLICATE}.record"): 1 };
    fields.extend(of_reference.map(|field| (format!("{REFERENCE}.{field}"), Bson::Int32(1))));
    fields
}

/// Reads the identities of some studies of a file.
async fn identities_of(
    mongo: &Mongo,
    FileRef { search_id, file_id }: FileRef,
    records: &[u64],
) -> Result<Vec<Identity>, CallError> {
    let ids = records.iter().map(|record| StudyId::of(search_id, file_id, *record).key());
    let ids: Vec<Bson> = ids.collect();
    let studies = mongo.collection(collections::STUDY).await?;
    let found = studies.find(doc! { ID: { "$in": ids } }).projection(identity_fields());
    let found = found.limit(int(records.len())).batch_size(batch_size(records.len())).await?;
    let decode = async |stored: Document| {
        decode_identity(&stored)
            .map_err(|why| CallError::unreadable(collections::STUDY, stored.get(ID), "a study", &why))
    };
    found.map_err(CallError::from).and_then(decode).try_collect().await
}

/// Encodes a quarantined record. The id of a quarantined record is derived in the same way as the id of a study,
/// because each record is either a study or quarantined.
fn encode_quarantined(record: &QuarantinedRecord) -> Result<Document, CallError> {
    Ok(doc! {
        ID: StudyId::of(record.search_id, record.file_id, record.record.number).key(),
        SEARCH: record.search_id.key(),
        FILE: record.file_id.key(),
        RECORD: int(record.record.number),
        QUARANTINE: to_bson(&record.record)?,
    })
}

fn decode_quarantined(stored: &Document) -> Result<QuarantinedRecord, String> {
    let StudyRef { search_id, file_id, .. } = study_ref(stored)?;
    Ok(QuarantinedRecord { search_id, file_id, record: serde_field(stored, QUARANTINE)? })
}

#[async_trait]
impl WriteStudies for Mongo {
    fn prepare(&self, study: Study) -> Result<PreparedStudy, StoreError> {
        let doing = || format!("preparing study {} of file {}", study.record, study.file_id);
        encode_study(&study).map(PreparedStudy::new).map_err(|error| error.while_doing(doing()))
    }

    async fn store_prepared(
        &self,
        file: &FileFence,
        studies: Vec<PreparedStudy>,
        quarantined: Vec<QuarantinedRecord>,
    ) -> Result<(), StoreError> {
        let doing =
            format!("storing {} studies and {} quarantined records", studies.len(), quarantined.len());
        let studies = studies.into_iter().map(PreparedStudy::into_inner).collect::<Result<_, _>>()?;
        let work = async {
            let quarantined = quarantined.iter().map(encode_quarantined).collect::<Result<Vec<_>, _>>()?;
            transaction::run(self, &StudyTransaction { file, studies, quarantined }).await
        };
        let is_held = self.call(doing.clone(), work).await?;
        if is_held { Ok(()) } else { Err(FileFence::overtaken(doing)) }
    }

    async fn discard(&self, file: &FileFence, then: Option<&ReadingStatus>) -> Result<FileFence, StoreError> {
        let doing = format!("discarding file {} of search {}", file.file_id, file.search_id);
        parse_attempts::discard(self, file, then, &doing).await
    }

    async fn remove(
        &self,
        search: SearchId,
        file: FileId,
        refused: &ReadingStatus,
    ) -> Result<(), StoreError> {
        let doing = format!("removing file {file} of search {search}");
        parse_attempts::remove(self, search, file, refused, &doing).await
    }

    async fn finish(&self, file: &ParsedFile) -> Result<(), StoreError> {
        let doing = format!("recording the completion of file {} of search {}", file.file_id, file.search_id);
        self.call(doing, transaction::run(self, &files::FinishTransaction(file))).await
    }

    async fn withdraw(
        &self,
        search: SearchId,
        file: FileId,
        refused: &ReadingStatus,
    ) -> Result<(), StoreError> {
        let doing = format!("withdrawing file {file} of search {search}");
        parse_attempts::withdraw(self, search, file, refused, &doing).await
    }
}

/// Transaction that stores records of a file if it has the fence.
struct StudyTransaction<'a> {
    file: &'a FileFence,
    studies: Vec<Document>,
    quarantined: Vec<Document>,
}

#[async_trait]
impl Work for StudyTransaction<'_> {
    /// `true` if the fence of the file is still the fence of this attempt.
    type Answer = bool;

    async fn stage(&self, mongo: &Mongo, client: &mut ClientSession) -> Result<Step<bool>, CallError> {
        if !parse_attempts::lock_fence(mongo, client, self.file).await? {
            return Ok(Step::Abort(false));
        }
        let all = [(collections::QUARANTINE, &self.quarantined), (collections::STUDY, &self.studies)];
        for (collection, documents) in all {
            let new = missing(mongo, client, collection, documents).await?;
            if new.is_empty() {
                continue;
            }
            match mongo.collection(collection).await?.insert_many(new).session(&mut *client).await {
                // A worker of a version without fences stores the same records concurrently.
                Err(error) if is_only_repetition(&error) => return Ok(Step::Retry(error.into())),
                inserted => inserted?,
            };
        }
        Ok(Step::Commit(true))
    }
}

/// Returns the documents that are not stored yet.
async fn missing<'a>(
    mongo: &Mongo,
    client: &mut ClientSession,
    collection: &'static str,
    documents: &'a [Document],
) -> Result<Vec<&'a Document>, CallError> {
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

/// Returns whether an insert failed only because some documents were stored before.
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
        let query = StudyQuery { marked, ..STUDIES };
        let work = page(self, &query, FileRef::new(search, file), PageBounds { after, limit, bytes });
        self.call(format!("reading the studies of file {file} of search {search}"), work).await
    }

    async fn quarantined(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<QuarantinedRecord>, StoreError> {
        let work = page(
            self,
            &QUARANTINED,
            FileRef::new(search, file),
            PageBounds { after, limit, bytes: usize::MAX },
        );
        self.call(format!("reading the quarantined records of file {file} of search {search}"), work).await
    }

    async fn keyed(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<StudyKeys>, StoreError> {
        let work =
            page(self, &KEYED, FileRef::new(search, file), PageBounds { after, limit, bytes: usize::MAX });
        self.call(format!("reading the keys of the studies of file {file} of search {search}"), work).await
    }

    async fn identities_of(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
    ) -> Result<Vec<Identity>, StoreError> {
        let doing = format!("reading identities of studies of file {file} of search {search}");
        self.call(doing, identities_of(self, FileRef::new(search, file), records)).await
    }

    async fn parsed(&self, search: SearchId) -> Result<Vec<ParsedFile>, StoreError> {
        self.call(format!("reading the completed files of search {search}"), files::parsed(self, search))
            .await
    }

    async fn stored_files(
        &self,
        after: Option<FileRef>,
        limit: usize,
    ) -> Result<Vec<StoredFile>, StoreError> {
        let (mut files, mut after) = (Vec::new(), after);
        // Counting the studies of a large file takes long, so each file has its own time limit.
        while files.len() < limit {
            let next = stored_file_after(self, after);
            let Some(file) = self.call("reading which files have studies".to_owned(), next).await? else {
                break;
            };
            after = Some(FileRef::new(file.search_id, file.file_id));
            files.push(file);
        }
        Ok(files)
    }

    async fn marked(&self, search: SearchId, file: FileId) -> Result<DuplicateCounts, StoreError> {
        let doing = format!("counting the marks of file {file} of search {search}");
        self.call(doing, duplicates::marked(self, search, file)).await
    }

    async fn studies_at(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
        bytes: usize,
    ) -> Result<Vec<Study>, StoreError> {
        let numbers: Vec<i64> = records.iter().copied().map(int).collect();
        let mut filter = of_file(search, file);
        filter.insert(RECORD, doc! { "$in": numbers });
        let work = found(self, &STUDIES, filter, PageBounds { limit: records.len(), bytes, after: 0 });
        self.call(format!("reading some studies of file {file} of search {search}"), work).await
    }

    async fn repeating(
        &self,
        search: SearchId,
        file: FileId,
        records: &[u64],
        limit: usize,
    ) -> Result<Vec<(u64, StudyRef)>, StoreError> {
        let doing = format!("reading the duplicates of studies of file {file} of search {search}");
        self.call(doing, duplicates::repeating(self, FileRef::new(search, file), records, limit)).await
    }

    async fn words(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        buckets: &[BucketRange],
    ) -> Result<Option<WordPart>, StoreError> {
        let work = words::words(self, FileRef::new(search, file), after, buckets);
        self.call(format!("reading words of file {file} of search {search}"), work).await
    }
}

/// Returns the next file in the order of the index.
async fn stored_file_after(mongo: &Mongo, after: Option<FileRef>) -> Result<Option<StoredFile>, CallError> {
    let studies = mongo.collection(collections::STUDY).await?;
    let later = after.map_or_else(Document::new, |FileRef { search_id, file_id }| {
        let same_search = doc! { SEARCH: search_id.key(), FILE: { "$gt": file_id.key() } };
        doc! { "$or": [same_search, { SEARCH: { "$gt": search_id.key() } }] }
    });
    let found = studies
        .find_one(later)
        .sort(doc! { SEARCH: 1, FILE: 1, RECORD: 1 })
        .projection(doc! { SEARCH: 1, FILE: 1, RECORD: 1, PROJECT: 1 })
        .await?;
    let Some(found) = found else { return Ok(None) };
    let unreadable = |why: String| CallError::unreadable(collections::STUDY, found.get(ID), "a study", &why);
    let StudyRef { search_id, file_id, .. } = study_ref(&found).map_err(unreadable)?;
    let project_id = ProjectId::from_uuid(uuid_field(&found, PROJECT).map_err(unreadable)?);
    let count = studies.count_documents(doc! { SEARCH: search_id.key(), FILE: file_id.key() });
    Ok(Some(StoredFile { search_id, file_id, project_id, studies: count.await? }))
}

/// Query of a collection of records.
struct StudyQuery<T> {
    collection: &'static str,
    what: &'static str,
    /// Minimum tier of the mark; `None` for all studies.
    marked: Option<Tier>,
    /// Projection; empty for all fields.
    fields: fn() -> Document,
    decode: fn(&Document) -> Result<T, String>,
}

const STUDIES: StudyQuery<Study> = StudyQuery {
    collection: collections::STUDY,
    what: "a study",
    marked: None,
    fields: Document::new,
    decode: decode_study,
};
const KEYED: StudyQuery<StudyKeys> = StudyQuery {
    collection: collections::STUDY,
    what: "a study",
    marked: None,
    fields: || doc! { RECORD: 1, KEYS: 1, format!("{DUPLICATE}.record"): 1 },
    decode: decode_keyed,
};
const QUARANTINED: StudyQuery<QuarantinedRecord> = StudyQuery {
    collection: collections::QUARANTINE,
    what: "a quarantined record",
    marked: None,
    fields: Document::new,
    decode: decode_quarantined,
};

/// Start and maximum size of a page.
struct PageBounds {
    after: u64,
    limit: usize,
    bytes: usize,
}

async fn page<T>(
    mongo: &Mongo,
    query: &StudyQuery<T>,
    file: FileRef,
    bounds: PageBounds,
) -> Result<Vec<T>, CallError> {
    let mut filter = of_file(file.search_id, file.file_id);
    filter.insert(RECORD, doc! { "$gt": int(bounds.after) });
    if let Some(least) = query.marked {
        filter.insert(DUPLICATE, doc! { "$exists": true });
        let less_sure = [Tier::Possible, Tier::Likely].into_iter().filter(|tier| *tier < least);
        let less_sure = less_sure.map(|tier| to_bson(&tier)).collect::<Result<Vec<_>, _>>()?;
        // Marks of earlier versions have no tier and are certain.
        filter.insert(format!("{DUPLICATE}.tier"), doc! { "$nin": less_sure });
    }
    found(mongo, query, filter, bounds).await
}

/// Returns the records that a filter selects, in order.
async fn found<T>(
    mongo: &Mongo,
    query: &StudyQuery<T>,
    filter: Document,
    PageBounds { limit, bytes: max_bytes, .. }: PageBounds,
) -> Result<Vec<T>, CallError> {
    if limit == 0 {
        // MongoDB interprets 0 as no limit.
        return Ok(Vec::new());
    }
    let collection = mongo.collection(query.collection).await?.clone_with_type::<RawDocumentBuf>();
    let find = collection.find(filter).projection((query.fields)()).sort(doc! { RECORD: 1 });
    let mut cursor = find.limit(int(limit)).batch_size(batch_size(limit)).await?;
    let (mut found, mut bytes) = (Vec::new(), 0_usize);
    while bytes < max_bytes
        && let Some(stored) = cursor.try_next().await?
    {
        bytes = bytes.saturating_add(stored.as_bytes().len());
        let stored = Document::try_from(stored.as_ref()).map_err(CallError::encode)?;
        let unreadable =
            |why: String| CallError::unreadable(query.collection, stored.get(ID), query.what, &why);
        let decoded = (query.decode)(&stored).map_err(unreadable);
        // The next page starts after the number of the damaged record. Without a number the whole page fails.
        let with_number = |error: CallError| match count_field(&stored, RECORD) {
            Ok(record) => CallError::DamagedItem(
                DamagedRecord { record, before: found.len(), source: error.into() }.into(),
            ),
            Err(_) => error,
        };
        found.push(decoded.map_err(with_number)?);
    }
    Ok(found)
}
