//! By what studies of a project are found that may be the same work, and their marks.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::TryStreamExt;
use futures::stream::{self, StreamExt};
use imports::duplicates::Fields;
use imports::{
    Candidate, CompareStudies, Duplicate, DuplicateCounts, FileId, Mark, ProjectId, Reason, Revision,
    SearchId, StudyRef, Tier,
};
use messages::StoreError;
use mongodb::bson::{Bson, Document, doc};
use mongodb::options::ReturnDocument;
use references::Reference;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::Mongo;
use crate::fault::Fault;
use crate::names::collections;
use crate::pipeline::Statement;
use crate::studies::{DUPLICATE, FILE, PROJECT, RECORD, REFERENCE, SEARCH, at, of_file};
use crate::value::{Key, count_field, from_bson, int, literal, serde_field, to_bson};

const ID: &str = "_id";
/// What a study has in common with others, as signed numbers; there is no such field in what releases before stored.
pub(crate) const KEYS: &str = "Keys";
/// How often what a project holds has changed.
const REVISION: &str = "Revision";
/// The revision of a mark, within it.
const BY: &str = "Duplicate.revision";
/// The revision by which a study has no mark.
const UNMARKED: &str = "Unmarked";

/// The most studies that are found by many keys together. Where there are more, each key is looked up by itself.
const FOUND_TOGETHER: usize = 10_000;
/// How many keys are looked up by themselves at the same time.
const AT_ONCE: usize = 8;

/// The keys of a study, as they are stored with it.
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
            let counted = counted.ok_or_else(|| Fault::Answer("it has no document".to_owned()))?;
            count_field(&counted, REVISION).map_err(Fault::Answer)
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
            self.update(collections::STUDY, statements).await?.expect_none_taken()
        };
        self.call(format!("marking {} studies", marks.len()), work).await
    }
}

impl Mongo {
    /// Makes the keys of studies that a release before has stored; returns how many these were. It may be repeated, and be
    /// broken off.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn make_missing_keys(&self) -> Result<u64, StoreError> {
        let mut made = 0;
        loop {
            let some = self.call("making keys of studies".to_owned(), make_some(self)).await?;
            if some == 0 {
                return Ok(made);
            }
            made += some;
        }
    }
}

/// How many keys are made in one call.
const MADE_AT_ONCE: i64 = 1_000;

async fn make_some(mongo: &Mongo) -> Result<u64, Fault> {
    let studies = mongo.collection(collections::STUDY).await?;
    // Null is in the index where there is no such field.
    let missing = studies.find(doc! { KEYS: null }).projection(doc! { REFERENCE: 1 }).limit(MADE_AT_ONCE);
    let missing: Vec<Document> = missing.await?.try_collect().await?;
    let statements = missing.iter().map(|study| {
        // Whoever reads a study that cannot be read is told so. None is found by what it says.
        let made =
            serde_field::<Reference>(study, REFERENCE).map(|reference| keys(&reference)).unwrap_or_default();
        let filter = doc! { ID: study.get(ID).cloned().unwrap_or(Bson::Null) };
        Statement { filter, pipeline: vec![doc! { "$set": { KEYS: made } }], upsert: false }
    });
    let statements: Vec<Statement> = statements.collect();
    let made = statements.len() as u64;
    if made > 0 {
        mongo.update(collections::STUDY, statements).await?.expect_none_taken()?;
    }
    Ok(made)
}

async fn sharing(
    mongo: &Mongo,
    project: ProjectId,
    keys: &[u64],
    limit: usize,
) -> Result<Vec<Candidate>, Fault> {
    let together = with_keys(mongo, project, keys, FOUND_TOGETHER).await?;
    let is_all = together.len() < FOUND_TOGETHER;
    let mut found: BTreeMap<u64, Vec<Candidate>> = BTreeMap::new();
    for (relative, shared) in &together {
        for key in shared {
            let key = key.cast_unsigned();
            if keys.binary_search(&key).is_ok() {
                found.entry(key).or_default().push(Candidate { key, at: *relative });
            }
        }
    }
    let (few, many): (Vec<u64>, Vec<u64>) =
        keys.iter().partition(|key| is_all && found.get(key).is_none_or(|found| found.len() <= limit));
    let mut relatives: Vec<Candidate> = few.iter().filter_map(|key| found.remove(key)).flatten().collect();
    // In the order of the index: those that were stored first.
    let of_many = stream::iter(many).map(|key| async move {
        let studies = with_keys(mongo, project, &[key], limit).await?;
        Ok::<_, Fault>(studies.into_iter().map(move |(at, _)| Candidate { key, at }).collect::<Vec<_>>())
    });
    relatives.extend(of_many.buffered(AT_ONCE).try_concat().await?);
    Ok(relatives)
}

/// Studies that have one of these keys, each with all of its own.
async fn with_keys(
    mongo: &Mongo,
    project: ProjectId,
    keys: &[u64],
    limit: usize,
) -> Result<Vec<(StudyRef, Vec<i64>)>, Fault> {
    let keys: Vec<i64> = keys.iter().map(|key| key.cast_signed()).collect();
    let which = doc! { PROJECT: project.as_uuid().key(), KEYS: { "$in": keys } };
    let fields = doc! { SEARCH: 1, FILE: 1, RECORD: 1, KEYS: 1 };
    let studies = mongo.collection(collections::STUDY).await?;
    let found = studies.find(which).projection(fields).limit(int(limit)).await?;
    let decode = async |stored: Document| {
        let read = || Ok::<_, String>((at(&stored)?, serde_field(&stored, KEYS)?));
        read().map_err(|why| Fault::foreign(collections::STUDY, stored.get(ID), "a study", &why))
    };
    found.map_err(Fault::from).and_then(decode).try_collect().await
}

/// What a later revision has said of a study stays.
fn statement(revision: Revision, mark: &Mark) -> Result<Statement, Fault> {
    let later = doc! { "$gt": int(revision) };
    let filter = doc! { ID: mark.at.id().key(), "$nor": [{ BY: later.clone() }, { UNMARKED: later }] };
    let update = match mark.duplicate {
        None => vec![doc! { "$set": { UNMARKED: int(revision) } }, doc! { "$unset": DUPLICATE }],
        Some(duplicate) => {
            let mut stored = Stored::from(duplicate);
            stored.revision = Some(int(revision));
            vec![doc! { "$set": { DUPLICATE: literal(to_bson(&stored)?) } }, doc! { "$unset": UNMARKED }]
        }
    };
    Ok(Statement { filter, pipeline: update, upsert: false })
}

/// The mark of a study of this search.
pub(crate) fn decode(search: SearchId, stored: &Document) -> Result<Option<Duplicate>, String> {
    let Some(stored) = stored.get(DUPLICATE).cloned() else { return Ok(None) };
    Ok(Some(from_bson::<Stored>(stored)?.of(search)))
}

/// How many studies of a file have which mark.
pub(crate) async fn marked(mongo: &Mongo, search: SearchId, file: FileId) -> Result<DuplicateCounts, Fault> {
    let mut which = of_file(search, file);
    which.insert(DUPLICATE, doc! { "$exists": true });
    let kind = doc! { "tier": "$Duplicate.tier", "line": "$Duplicate.line" };
    let stages = [doc! { "$match": which }, doc! { "$group": { ID: kind, "count": { "$sum": 1_i64 } } }];
    let counts = mongo.collection(collections::STUDY).await?.aggregate(stages).await?;
    let counts: Vec<Document> = counts.try_collect().await?;
    let mut marked = DuplicateCounts::default();
    for counted in counts {
        let kind = counted.get_document(ID).cloned().unwrap_or_default();
        let is_said =
            from_bson::<Reason>(kind.get("line").cloned().unwrap_or(Bson::Null)) == Ok(Reason::Said);
        // Marks of releases before have no tier, and are certain.
        let tier =
            from_bson::<Tier>(kind.get("tier").cloned().unwrap_or(Bson::Null)).unwrap_or(Tier::Certain);
        let count = match tier {
            _ if is_said => &mut marked.said,
            Tier::Certain => &mut marked.certain,
            Tier::Likely => &mut marked.likely,
            Tier::Possible => &mut marked.possible,
        };
        *count += count_field::<u64>(&counted, "count").map_err(Fault::Answer)?;
    }
    Ok(marked)
}

/// A mark as releases before read it too: they know three reasons, take every mark for a certain one, and look for the study
/// that it names in the same search.
#[derive(Serialize, Deserialize)]
struct Stored {
    of: Uuid,
    file_id: FileId,
    position: u32,
    record: u64,
    reason: Earlier,
    /// None in marks of releases before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tier: Option<Tier>,
    /// The reason, if it is none of those three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    line: Option<Reason>,
    /// None in marks of releases that looked within one search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    search_id: Option<SearchId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    revision: Option<i64>,
}

/// The reasons of the first releases.
#[derive(Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Earlier {
    Doi,
    Pmid,
    TitleYearAuthor,
}

impl Earlier {
    /// What comes closest to a reason.
    fn to(reason: Reason) -> Self {
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

impl From<Duplicate> for Stored {
    fn from(duplicate: Duplicate) -> Self {
        let Duplicate { search_id, file_id, position, record, tier, reason } = duplicate;
        let earlier = Earlier::to(reason);
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

impl Stored {
    fn of(self, search: SearchId) -> Duplicate {
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
    fn a_mark_comes_back_as_it_was_stored_and_has_a_reason_that_earlier_releases_know() {
        for reason in Reason::ALL {
            let stored = serde_json::to_value(Stored::from(mark(*reason))).unwrap();
            assert!(["doi", "pmid", "title_year_author"].contains(&stored["reason"].as_str().unwrap()));
            let read: Stored = serde_json::from_value(stored).unwrap();
            assert_eq!(read.of(SearchId::from_uuid(Uuid::nil())), mark(*reason));
        }
    }

    #[test]
    fn a_mark_of_an_earlier_release_is_certain_and_of_the_same_search() {
        let id = Uuid::nil();
        let stored =
            serde_json::json!({ "of": id, "file_id": id, "position": 0, "record": 4, "reason": "doi" });
        let search = SearchId::from_uuid(Uuid::max());
        let read = serde_json::from_value::<Stored>(stored).unwrap().of(search);
        assert_eq!(
            (read.search_id, read.tier, read.reason, read.record),
            (search, Tier::Certain, Reason::Doi, 4)
        );
    }
}
