//! Keys that find the candidates of a project's studies, and the marks of duplicates.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::TryStreamExt;
use futures::stream::{self, StreamExt};
use imports::duplicates::Fields;
use imports::{
    Candidate, CompareStudies, Duplicate, DuplicateCounts, FileId, FileRef, Mark, ProjectId, Reason,
    Revision, SearchId, StudyRef, Tier,
};
use messages::StoreError;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::{Hint, ReturnDocument};
use references::Reference;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::indexes::BY_KEY;
use super::names::collections;
use super::names::study::{DUPLICATE, FILE, KEYS, ORIGINAL, PROJECT, RECORD, REFERENCE, SEARCH};
use super::study_key::{of_file, study_ref};
use crate::Mongo;
use crate::error::CallError;
use crate::pipeline::Statement;
use crate::value::{Key, batch_size, count_field, from_bson, int, literal, serde_field, to_bson};

const ID: &str = "_id";
/// Number of changes of a project's studies.
const REVISION: &str = "Revision";
/// Revision of a mark, as a field of the mark.
const BY: &str = "Duplicate.revision";
/// Revision that removed the mark of a study.
const UNMARKED: &str = "Unmarked";

/// Maximum number of studies found by one query with many keys. If there are more, each key is queried separately.
const MAX_FOUND_TOGETHER: usize = 10_000;
/// Number of keys that are queried concurrently.
const CONCURRENT_LOOKUPS: usize = 8;

/// Returns the keys of a study in their stored form.
pub(crate) fn keys(reference: &Reference) -> Vec<i64> {
    Fields::new(reference).keys().into_iter().map(u64::cast_signed).collect()
}

#[async_trait]
impl CompareStudies for Mongo {
    async fn revise(&self, project: ProjectId) -> Result<Revision, StoreError> {
        let work = async {
            let projects = self.collection(collections::PROJECT).await?;
            let counted = projects
                .find_one_and_update(
                    doc! { ID: project.as_uuid().key() },
                    doc! { "$inc": { REVISION: 1_i64 } },
                )
                .upsert(true)
                .return_document(ReturnDocument::After)
                .await?;
            let counted = counted.ok_or_else(|| CallError::InvalidReply("it has no document".to_owned()))?;
            count_field(&counted, REVISION).map_err(CallError::InvalidReply)
        };
        self.call(format!("counting a change of project {project}"), work).await
    }

    async fn sharing(
        &self,
        project: ProjectId,
        keys: &[u64],
        limit: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        let doing = format!("finding studies of project {project} by {} keys", keys.len());
        self.call(doing, sharing(self, project, keys, limit)).await
    }

    async fn mark(&self, revision: Revision, marks: &[Mark]) -> Result<(), StoreError> {
        if marks.is_empty() {
            return Ok(());
        }
        let work = async {
            let statements = marks.iter().map(|mark| statement(revision, mark));
            let statements = statements.collect::<Result<Vec<_>, _>>()?;
            self.update(collections::STUDY, statements).await?.expect_no_conflict()
        };
        self.call(format!("marking {} studies", marks.len()), work).await
    }
}

impl Mongo {
    /// Computes the keys of studies that earlier versions stored without them, and returns the number of these studies.
    /// It may be interrupted and repeated.
    pub async fn make_missing_keys(&self) -> Result<u64, StoreError> {
        let mut made = 0;
        loop {
            let some = self.call("computing keys of studies".to_owned(), make_batch(self)).await?;
            if some == 0 {
                return Ok(made);
            }
            made += some;
        }
    }
}

/// Number of studies whose keys are computed in one call.
const KEY_BATCH: i64 = 1_000;

async fn make_batch(mongo: &Mongo) -> Result<u64, CallError> {
    let studies = mongo.collection(collections::STUDY).await?;
    // The index contains null for documents without the field. The condition on the first field, which every document
    // meets, lets the server look for it in each project.
    let which = doc! { PROJECT: { "$gte": Bson::MinKey }, KEYS: null };
    let missing = studies.find(which).hint(Hint::Name(BY_KEY.to_owned()));
    let missing = missing.projection(doc! { REFERENCE: 1 }).limit(KEY_BATCH);
    let missing: Vec<Document> = missing.await?.try_collect().await?;
    let statements = missing.iter().map(|study| {
        // An unreadable study gets no keys, so it is not a candidate. Readers of the study get the error.
        let made =
            serde_field::<Reference>(study, REFERENCE).map(|reference| keys(&reference)).unwrap_or_default();
        let filter = doc! { ID: study.get(ID).cloned().unwrap_or(Bson::Null) };
        Statement { filter, pipeline: vec![doc! { "$set": { KEYS: made } }], upsert: false }
    });
    let statements: Vec<Statement> = statements.collect();
    let made = statements.len() as u64;
    if made > 0 {
        mongo.update(collections::STUDY, statements).await?.expect_no_conflict()?;
    }
    Ok(made)
}

async fn sharing(
    mongo: &Mongo,
    project: ProjectId,
    keys: &[u64],
    limit: usize,
) -> Result<Vec<Candidate>, CallError> {
    let together = with_keys(mongo, project, keys, MAX_FOUND_TOGETHER).await?;
    let is_complete = together.len() < MAX_FOUND_TOGETHER;
    let mut found: BTreeMap<u64, Vec<Candidate>> = BTreeMap::new();
    for (study, shared) in &together {
        for key in shared {
            let key = key.cast_unsigned();
            if keys.binary_search(&key).is_ok() {
                found.entry(key).or_default().push(Candidate { key, at: *study });
            }
        }
    }
    let (few, many): (Vec<u64>, Vec<u64>) =
        keys.iter().partition(|key| is_complete && found.get(key).is_none_or(|found| found.len() <= limit));
    let mut candidates: Vec<Candidate> = few.iter().filter_map(|key| found.remove(key)).flatten().collect();
    // The query returns studies in the order of the index, so the oldest ones are kept.
    let of_many = stream::iter(many).map(|key| async move {
        let studies = with_keys(mongo, project, &[key], limit).await?;
        Ok::<_, CallError>(studies.into_iter().map(move |(at, _)| Candidate { key, at }).collect::<Vec<_>>())
    });
    candidates.extend(of_many.buffered(CONCURRENT_LOOKUPS).try_concat().await?);
    Ok(candidates)
}

/// Returns studies that have one of these keys, each with all of its keys.
async fn with_keys(
    mongo: &Mongo,
    project: ProjectId,
    keys: &[u64],
    limit: usize,
) -> Result<Vec<(StudyRef, Vec<i64>)>, CallError> {
    let keys: Vec<i64> = keys.iter().map(|key| key.cast_signed()).collect();
    let which = doc! { PROJECT: project.as_uuid().key(), KEYS: { "$in": keys } };
    let fields = doc! { SEARCH: 1, FILE: 1, RECORD: 1, KEYS: 1 };
    let studies = mongo.collection(collections::STUDY).await?;
    let found =
        studies.find(which).projection(fields).limit(int(limit)).batch_size(batch_size(limit)).await?;
    let decode = async |stored: Document| {
        let read = || Ok::<_, String>((study_ref(&stored)?, serde_field(&stored, KEYS)?));
        read().map_err(|why| CallError::unreadable(collections::STUDY, stored.get(ID), "a study", &why))
    };
    found.map_err(CallError::from).and_then(decode).try_collect().await
}

/// Returns the update that sets or removes a mark, unless a later revision has done so.
fn statement(revision: Revision, mark: &Mark) -> Result<Statement, CallError> {
    let later = doc! { "$gt": int(revision) };
    let filter = doc! { ID: mark.at.id().key(), "$nor": [{ BY: later.clone() }, { UNMARKED: later }] };
    let update = match mark.duplicate {
        None => vec![doc! { "$set": { UNMARKED: int(revision) } }, doc! { "$unset": DUPLICATE }],
        Some(duplicate) => {
            let mut stored = MarkDocument::from(duplicate);
            stored.revision = Some(int(revision));
            vec![doc! { "$set": { DUPLICATE: literal(to_bson(&stored)?) } }, doc! { "$unset": UNMARKED }]
        }
    };
    Ok(Statement { filter, pipeline: update, upsert: false })
}

/// Decodes the mark of a study of this search.
pub(crate) fn decode(search: SearchId, stored: &Document) -> Result<Option<Duplicate>, String> {
    let Some(stored) = stored.get(DUPLICATE).cloned() else { return Ok(None) };
    Ok(Some(from_bson::<MarkDocument>(stored)?.into_duplicate(search)))
}

/// Returns the duplicates of some studies of a file. The duplicates of each study are in the order of their ids. A
/// separate query for each study bounds the number of those that are read.
pub(crate) async fn repeating(
    mongo: &Mongo,
    FileRef { search_id, file_id }: FileRef,
    records: &[u64],
    limit: usize,
) -> Result<Vec<(u64, StudyRef)>, CallError> {
    if limit == 0 {
        return Ok(Vec::new());
    }
    let studies = mongo.collection(collections::STUDY).await?;
    let of = |record: u64| StudyRef { search_id, file_id, record }.id().as_uuid();
    let ids = records.iter().map(|record| to_bson(&of(*record))).collect::<Result<Vec<_>, _>>()?;
    let which = |ids: Bson| {
        // Marks of earlier versions have no tier and are certain.
        let possible = to_bson(&Tier::Possible)?;
        Ok::<_, CallError>(doc! { ORIGINAL: ids, "Duplicate.tier": { "$ne": possible } })
    };
    let fields = doc! { SEARCH: 1, FILE: 1, RECORD: 1, "Duplicate.record": 1 };
    let max = records.len().saturating_mul(limit).min(MAX_FOUND_TOGETHER);
    let together = studies.find(which(Bson::Document(doc! { "$in": &ids }))?).projection(fields.clone());
    let mut together: Vec<Document> = together.limit(int(max)).await?.try_collect().await?;
    if together.len() >= max {
        together.clear();
        for id in ids {
            let some = studies.find(which(id)?).projection(fields.clone()).sort(doc! { ID: 1 });
            let some: Vec<Document> = some.limit(int(limit)).await?.try_collect().await?;
            together.extend(some);
        }
    }
    let decode = |stored: &Document| {
        let mark = stored.get_document(DUPLICATE).map_err(|error| error.to_string())?;
        Ok((count_field(mark, "record")?, study_ref(stored)?))
    };
    let unreadable = |stored: &Document, why: String| {
        CallError::unreadable(collections::STUDY, stored.get(ID), "a study", &why)
    };
    let decoded = together.iter().map(|stored| decode(stored).map_err(|why| unreadable(stored, why)));
    let mut found: Vec<(u64, StudyRef)> = decoded.collect::<Result<_, _>>()?;
    found.sort_unstable_by_key(|(original, at)| (*original, at.id()));
    Ok(found)
}

/// Counts the marks of a file's studies.
pub(crate) async fn marked(
    mongo: &Mongo,
    search: SearchId,
    file: FileId,
) -> Result<DuplicateCounts, CallError> {
    let mut which = of_file(search, file);
    which.insert(DUPLICATE, doc! { "$exists": true });
    let kind = doc! { "tier": "$Duplicate.tier", "line": "$Duplicate.line" };
    let stages = [doc! { "$match": which }, doc! { "$group": { ID: kind, "count": { "$sum": 1_i64 } } }];
    let counts = mongo.collection(collections::STUDY).await?.aggregate(stages).await?;
    let counts: Vec<Document> = counts.try_collect().await?;
    let mut marked = DuplicateCounts::default();
    for counted in counts {
        let kind = counted.get_document(ID).cloned().unwrap_or_default();
        let is_decided =
            from_bson::<Reason>(kind.get("line").cloned().unwrap_or(Bson::Null)) == Ok(Reason::Said);
        // Marks of earlier versions have no tier and are certain.
        let tier =
            from_bson::<Tier>(kind.get("tier").cloned().unwrap_or(Bson::Null)).unwrap_or(Tier::Certain);
        let count = match tier {
            _ if is_decided => &mut marked.said,
            Tier::Certain => &mut marked.certain,
            Tier::Likely => &mut marked.likely,
            Tier::Possible => &mut marked.possible,
        };
        *count += count_field::<u64>(&counted, "count").map_err(CallError::InvalidReply)?;
    }
    Ok(marked)
}

/// Stored form of a mark, which earlier versions can read. They support three reasons, treat every mark as certain, and
/// look for the original in the same search.
#[derive(Serialize, Deserialize)]
struct MarkDocument {
    of: Uuid,
    file_id: FileId,
    position: u32,
    record: u64,
    reason: LegacyReason,
    /// `None` in marks of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tier: Option<Tier>,
    /// The exact reason, if it is not one of those three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<Reason>,
    /// `None` in marks of versions that compared studies within one search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    search_id: Option<SearchId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
}

/// Reasons that the first versions support.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum LegacyReason {
    Doi,
    Pmid,
    TitleYearAuthor,
}

impl LegacyReason {
    /// Returns the closest supported reason.
    fn closest_to(reason: Reason) -> Self {
        match reason {
            Reason::Pmid | Reason::PmidAlone => Self::Pmid,
            Reason::Doi
            | Reason::DoiTitle
            | Reason::DoiTitlePage
            | Reason::DoiAuthorPage
            | Reason::DoiTitleJournal
            | Reason::DoiTitleAuthor
            | Reason::DoiUntitled
            | Reason::DoiAuthorAlike
            | Reason::DoiAuthor => Self::Doi,
            _ => Self::TitleYearAuthor,
        }
    }

    fn reason(self) -> Reason {
        match self {
            Self::Doi => Reason::Doi,
            Self::Pmid => Reason::Pmid,
            Self::TitleYearAuthor => Reason::TitleYearAuthor,
        }
    }
}

impl From<Duplicate> for MarkDocument {
    fn from(duplicate: Duplicate) -> Self {
        let Duplicate { search_id, file_id, position, record, tier, reason } = duplicate;
        let earlier = LegacyReason::closest_to(reason);
        let line = (earlier.reason() != reason).then_some(reason);
        let (of, search_id) = (duplicate.of().id().as_uuid(), Some(search_id));
        Self {
            of,
            file_id,
            position,
            record,
            reason: earlier,
            tier: Some(tier),
            line,
            search_id,
            revision: None,
        }
    }
}

impl MarkDocument {
    fn into_duplicate(self, search: SearchId) -> Duplicate {
        let Self { file_id, position, record, reason, tier, line, search_id, .. } = self;
        let (tier, reason) = (tier.unwrap_or(Tier::Certain), line.unwrap_or_else(|| reason.reason()));
        Duplicate { search_id: search_id.unwrap_or(search), file_id, position, record, tier, reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mark(reason: Reason) -> Duplicate {
        let (search_id, file_id) = (SearchId::from_uuid(Uuid::max()), FileId::from_uuid(Uuid::nil()));
        Duplicate { search_id, file_id, position: 1, record: 2, tier: Tier::Likely, reason }
    }

    #[test]
    fn mark_round_trips_with_a_legacy_reason() {
        for reason in Reason::ALL {
            let stored = serde_json::to_value(MarkDocument::from(mark(*reason))).unwrap();
            assert!(["doi", "pmid", "title_year_author"].contains(&stored["reason"].as_str().unwrap()));
            let read: MarkDocument = serde_json::from_value(stored).unwrap();
            assert_eq!(read.into_duplicate(SearchId::from_uuid(Uuid::nil())), mark(*reason));
        }
    }

    #[test]
    fn earlier_mark_is_certain_and_in_same_search() {
        let id = Uuid::nil();
        let stored =
            serde_json::json!({ "of": id, "file_id": id, "position": 0, "record": 4, "reason": "doi" });
        let search = SearchId::from_uuid(Uuid::max());
        let read = serde_json::from_value::<MarkDocument>(stored).unwrap().into_duplicate(search);
        assert_eq!(
            (read.search_id, read.tier, read.reason, read.record),
            (search, Tier::Certain, Reason::Doi, 4)
        );
    }
}
