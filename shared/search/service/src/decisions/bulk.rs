//! Decisions about many pairs at once, by a rule.
//!
//! A bulk action is a layer of decisions: it takes effect among the single decisions by its time, and an undo removes
//! the layer. Therefore, an undone action leaves exactly what was in effect without it, including decisions that other
//! reviewers have made since.
//!
//! The actions of a review form one record, and their decisions further ones of at most [`MAX_CHUNK`] decisions.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use imports::duplicates::{Decision, DecisionSubject, Decisions, Fields, Verdict};
use imports::messages::CompareStudies;
use imports::{
    DamagedRecord, Duplicate, FileId, ParseCommand, ParsedFile, ProjectId, Readable, Reason, SearchId,
    Selection, Study, StudyRef, Tier, readable,
};
use jiff::Timestamp;
use messages::StoreError;
use outbox::session::CommitError;
use outbox::{Key, ReadRecords, Record};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::kind::Rule;
use super::{key, read};
use crate::activity::{self, Action, Activity};
use crate::content;
use crate::sources::{KnownSource, usual_database};
use crate::study_view::RecordPlace;
use crate::tries::MAX_TRIES;
use crate::{Error, Scope, ScopePlace, SearchService, TooManyImports};

/// The kind of the records that list the bulk actions of a review. Each record has the id of its review.
const BULK: &str = "bulk-decisions";
/// The kind of the records that contain the decisions of an action.
const CHUNK: &str = "bulk-decisions-chunk";
/// The maximum number of decisions of one request, which form one record.
const MAX_CHUNK: usize = 1_000;
/// The maximum number of reads of one request: one for each pair and file, and [`IMPORT_READS`] for each import.
const MAX_READS: usize = 2_000;
/// The number of reads for one import: one for the state and one for the files.
const IMPORT_READS: usize = 2;
/// The maximum number of bulk actions of a review.
const MAX_ACTIONS: usize = 500;
/// The maximum number of decisions of all bulk actions of a review.
const MAX_DECIDED: u64 = 100_000;
/// The maximum number of decisions of one action. One session undoes it and requests the comparison of both studies of
/// each decision, and a document of MongoDB has up to 16 MiB
/// (<https://www.mongodb.com/docs/manual/reference/limits/#mongodb-limit-BSON-Document-Size>).
const MAX_DECIDED_AT_ONCE: u64 = 40_000;
/// The number of studies of one command to compare them again, whose message has to fit into a queue.
const COMPARED: usize = 400;
/// The number of imports, and of marked studies, that are read at a time.
const JOBS: usize = 50;
const STUDIES: usize = 200;
const STUDY_BYTES: usize = 4 * 1024 * 1024;

const SERIALIZING: &str = "serializing bulk decisions";

/// A bulk action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkAction {
    /// The id of the action.
    pub id: Uuid,
    /// The time at which the action began.
    pub at: Timestamp,
    /// The reviewer.
    pub by: String,
    /// The rule.
    pub rule: Rule,
    /// The database whose studies are kept, for [`Rule::PreferredSource`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The number of decisions.
    pub decided: u64,
    /// The number of records of the action.
    pub chunks: u64,
    /// The time at which the action was undone, and the reviewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub undone: Option<BulkUndo>,
}

/// The time and author of an undo.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkUndo {
    /// The time.
    pub at: Timestamp,
    /// The reviewer.
    pub by: String,
}

/// A request to decide pairs by a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkRequest {
    /// The id of the action; requests with the same id continue it.
    pub id: Uuid,
    /// The rule.
    pub rule: Rule,
    /// The preferred database.
    pub database: Option<String>,
    /// The cursor of the previous request.
    pub after: Option<ScopePlace>,
}

/// The result of a request to decide pairs by a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BulkStep {
    /// The number of decisions that this request has made.
    pub decided: u64,
    /// The cursor for the next request; `None` if all pairs were examined.
    pub next: Option<ScopePlace>,
}

/// Reasons to refuse a bulk action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BulkRefusal {
    /// No database is named.
    #[error("the rule \"preferred_source\" needs a database")]
    NoDatabase,
    /// The action was undone.
    #[error("the bulk action was undone")]
    Undone,
    /// The id belongs to another action.
    #[error("the id belongs to a bulk action with another rule")]
    OtherRule,
    /// The review has the maximum number of actions or decisions.
    #[error(
        "the review has {MAX_ACTIONS} bulk actions or {MAX_DECIDED} decisions of them, which is the maximum"
    )]
    TooMany,
    /// The action has the maximum number of decisions.
    #[error(
        "a bulk action has up to {MAX_DECIDED_AT_ONCE} decisions; apply the rule again to decide the others"
    )]
    TooManyAtOnce,
}

/// The number of decided and undecided pairs of a review.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DecisionProgress {
    /// The pairs that a reviewer has decided.
    pub decided: u64,
    /// The likely and possible pairs that wait for a decision.
    pub open: u64,
    /// The certain pairs, which count as duplicates without a decision.
    pub certain: u64,
}

fn index_key(project: ProjectId) -> Key {
    Key::new(BULK, project.to_string())
}

/// Clients choose the ids of their actions, so the key of a chunk contains the review.
fn chunk_key(project: ProjectId, id: Uuid, chunk: u64) -> Key {
    Key::new(CHUNK, format!("{project}/{id}/{chunk}"))
}

/// The key that earlier versions used for a chunk.
fn earlier_chunk_key(id: Uuid, chunk: u64) -> Key {
    Key::new(CHUNK, format!("{id}/{chunk}"))
}

fn read_index(project: ProjectId, record: Option<Record>) -> Result<Vec<BulkAction>, StoreError> {
    content::or_default(record, || format!("reading the bulk decisions of review {project}"))
}

async fn chunk(
    records: &dyn ReadRecords,
    project: ProjectId,
    id: Uuid,
    number: u64,
) -> Result<Vec<Decision>, StoreError> {
    let record = match records.record(&chunk_key(project, id, number)).await? {
        None => records.record(&earlier_chunk_key(id, number)).await?,
        found => found,
    };
    content::or_default(record, || format!("reading the bulk decision {id}"))
}

async fn decisions_of(
    records: &dyn ReadRecords,
    project: ProjectId,
    action: &BulkAction,
) -> Result<Vec<Decision>, StoreError> {
    let mut decisions = Vec::new();
    for number in 0..action.chunks {
        decisions.extend(chunk(records, project, action.id, number).await?);
    }
    Ok(decisions)
}

/// Returns the decisions of all actions that are not undone.
async fn layers(
    records: &dyn ReadRecords,
    project: ProjectId,
    actions: &[BulkAction],
) -> Result<Vec<Decision>, StoreError> {
    let mut layers = Vec::new();
    for action in actions.iter().filter(|action| action.undone.is_none()) {
        layers.extend(decisions_of(records, project, action).await?);
    }
    Ok(layers)
}

/// Returns the decisions of the bulk actions of a review. The commit of the session is refused if an action is added or
/// undone in between.
pub(super) async fn layers_of(
    session: &mut saga::engine::OpenSession<'_>,
    records: &dyn ReadRecords,
    project: ProjectId,
) -> Result<Vec<Decision>, StoreError> {
    let actions = read_index(project, session.read(index_key(project)).await?)?;
    layers(records, project, &actions).await
}

/// Returns all decisions of a project that are in effect, by single and bulk actions.
pub(crate) async fn in_effect(
    records: &dyn ReadRecords,
    project: ProjectId,
) -> Result<Decisions, StoreError> {
    let single = read(project, records.record(&key(project)).await?)?;
    let actions = read_index(project, records.record(&index_key(project)).await?)?;
    Ok(single.with_layers(layers(records, project, &actions).await?))
}

/// Returns the studies of all decisions of a project, including those of actions that are undone.
pub(crate) async fn ever_decided(
    records: &dyn ReadRecords,
    project: ProjectId,
) -> Result<Vec<StudyRef>, StoreError> {
    let single = read(project, records.record(&key(project)).await?)?;
    let mut decisions = single.all().to_vec();
    for action in read_index(project, records.record(&index_key(project)).await?)? {
        decisions.extend(decisions_of(records, project, &action).await?);
    }
    Ok(studies(decisions.into_iter().map(|decision| decision.about)))
}

/// Returns the studies of decisions, each once.
fn studies(about: impl Iterator<Item = DecisionSubject>) -> Vec<StudyRef> {
    let mut studies: Vec<StudyRef> = about.flat_map(|about| about.studies()).collect();
    studies.sort();
    studies.dedup();
    studies
}

/// Removes the bulk actions of a review, with the commit of the session.
pub(crate) async fn clear(
    session: &mut saga::engine::OpenSession<'_>,
    project: ProjectId,
) -> Result<(), StoreError> {
    for action in read_index(project, session.read(index_key(project)).await?)? {
        for number in 0..action.chunks {
            session.write(chunk_key(project, action.id, number), serde_json::json!([]));
        }
    }
    session.write(index_key(project), serde_json::json!([]));
    Ok(())
}

/// Sends the commands to compare studies again, with the commit of the session.
fn compare_again(
    session: &mut saga::engine::OpenSession<'_>,
    project_id: ProjectId,
    about: impl Iterator<Item = DecisionSubject>,
) -> Result<(), Error> {
    send_comparisons(session, project_id, &studies(about))
}

/// Sends the commands to compare these studies again, with the commit of the session.
pub(crate) fn send_comparisons(
    session: &mut saga::engine::OpenSession<'_>,
    project_id: ProjectId,
    studies: &[StudyRef],
) -> Result<(), Error> {
    for studies in studies.chunks(COMPARED) {
        let command = CompareStudies { project_id, studies: studies.to_vec() };
        session.send(&ParseCommand::CompareStudies(command))?;
    }
    Ok(())
}

/// The pairs that one request has selected.
struct BulkSelection {
    about: Vec<DecisionSubject>,
    next: Option<ScopePlace>,
}

/// Selects pairs by a rule.
struct Selector<'a> {
    of: &'a SearchService,
    rule: Rule,
    database: &'a str,
    decisions: &'a Decisions,
    sources: BTreeMap<SearchId, BTreeMap<FileId, KnownSource>>,
    project: ProjectId,
}

impl Selector<'_> {
    /// Selects pairs from a position on, until enough pairs were found or the request has used up its reads.
    async fn select(&mut self, from: ScopePlace) -> Result<BulkSelection, Error> {
        let (scope, mut place) = (Scope::Review(self.project), from);
        let (mut about, mut reads) = (Vec::new(), 0);
        loop {
            let (jobs, mut within) = self.of.jobs_from(&scope, place, JOBS).await?;
            for job in &jobs.items {
                if reads >= MAX_READS {
                    return Ok(BulkSelection { about, next: Some(place) });
                }
                reads += IMPORT_READS;
                for file in self.of.files_in(&scope, job).await? {
                    if file.position < within.position {
                        continue;
                    }
                    let mut after = if file.position == within.position { within.record } else { 0 };
                    loop {
                        let Readable { items, last, .. } = self.page(&file, after).await?;
                        reads += 1 + items.len();
                        let Some(last) = last else { break };
                        for study in items {
                            about.extend(self.decision(&study).await?);
                        }
                        after = last;
                        // The decisions of another page might not fit into the record of this request.
                        if reads >= MAX_READS || about.len() + STUDIES > MAX_CHUNK {
                            let within = RecordPlace { position: file.position, record: last };
                            let next = Some(ScopePlace::within(job, within));
                            return Ok(BulkSelection { about, next });
                        }
                    }
                    if reads >= MAX_READS {
                        let within = RecordPlace { position: file.position.saturating_add(1), record: 0 };
                        let next = Some(ScopePlace::within(job, within));
                        return Ok(BulkSelection { about, next });
                    }
                }
                (place, within) = (ScopePlace::after(job), RecordPlace::default());
            }
            let Some(after) = jobs.next else { return Ok(BulkSelection { about, next: None }) };
            place = ScopePlace::after_cursor(after);
        }
    }

    /// Returns the next marked studies. Damaged ones are omitted, as in lists.
    async fn page(&self, file: &ParsedFile, after: u64) -> Result<Readable<Study>, StoreError> {
        let least = match self.rule {
            Rule::Certain => Tier::Certain,
            Rule::PreferredSource => Tier::Likely,
            Rule::SameDoi | Rule::SamePmidAndTitle => Tier::Possible,
        };
        let read = |after, limit| {
            let selection = Selection { marked: Some(least), after, limit, bytes: STUDY_BYTES };
            self.of.studies.select(file.search_id, file.file_id, selection)
        };
        readable(after, STUDIES, |study: &Study| study.record, read).await
    }

    /// Returns the decision about a marked study and the study that it repeats.
    async fn decision(&mut self, study: &Study) -> Result<Option<DecisionSubject>, Error> {
        let Some(mark) = study.duplicate else { return Ok(None) };
        let at = StudyRef { search_id: study.search_id, file_id: study.file_id, record: study.record };
        let is_decided = mark.reason == Reason::Said || self.decisions.verdict(at, mark.of()).is_some();
        let same = DecisionSubject::Pair { studies: (at, mark.of()), verdict: Some(Verdict::Same) };
        let applies = match self.rule {
            Rule::Certain => !is_decided,
            Rule::PreferredSource => {
                let is_preferred = self.is_preferred(at).await? && !self.is_preferred(mark.of()).await?;
                let keep = DecisionSubject::Keep { study: at, keep: true };
                return Ok((is_preferred && !self.decisions.keeps(at)).then_some(keep));
            }
            Rule::SameDoi | Rule::SamePmidAndTitle if is_decided => false,
            Rule::SameDoi => {
                study.reference.doi.is_some() && self.equals(study, mark, Fields::has_doi_of).await?
            }
            Rule::SamePmidAndTitle => {
                study.reference.pmid.is_some()
                    && self.equals(study, mark, Fields::has_pmid_and_title_of).await?
            }
        };
        Ok(applies.then_some(same))
    }

    async fn equals(
        &self,
        study: &Study,
        mark: Duplicate,
        test: fn(&Fields, &Fields) -> bool,
    ) -> Result<bool, StoreError> {
        let Duplicate { search_id, file_id, record, .. } = mark;
        let original = match self.of.study(search_id, file_id, record).await {
            // A damaged study equals no other.
            Err(error) if DamagedRecord::of(&error).is_some() => None,
            found => found?,
        };
        Ok(original
            .is_some_and(|original| test(&Fields::new(&study.reference), &Fields::new(&original.reference))))
    }

    /// Returns `true` if a study is from the preferred database.
    async fn is_preferred(&mut self, at: StudyRef) -> Result<bool, StoreError> {
        let sources = match self.sources.entry(at.search_id) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(vacant) => {
                let caller = crate::ProjectAccess::to(self.project);
                let sources = match self.of.find(&caller, at.search_id).await? {
                    Some(job) => self.of.sources(&job, &self.of.repairs(&job).await?.repairs).await?,
                    None => BTreeMap::new(),
                };
                vacant.insert(sources)
            }
        };
        let database = sources.get(&at.file_id).and_then(|known| known.source.database.as_deref());
        Ok(database.is_some_and(|database| database == self.database))
    }
}

impl SearchService {
    /// Decides about pairs of a review by a rule, up to 1,000 per call and among up to 1,000 imports. The action does
    /// not change pairs that a reviewer has decided. A repeated request changes nothing that is decided already.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; the decisions of this call may or may not be stored.
    pub async fn decide_in_bulk(
        &self,
        project: ProjectId,
        request: &BulkRequest,
        by: &str,
    ) -> Result<Result<BulkStep, BulkRefusal>, Error> {
        let database = request.database.as_deref().map(usual_database);
        if request.rule == Rule::PreferredSource && database.is_none() {
            return Ok(Err(BulkRefusal::NoDatabase));
        }
        for _ in 0..MAX_TRIES {
            let mut session = self.entry.session(SearchId::from_uuid(project.as_uuid()));
            let records = self.entry.sessions.records.as_ref();
            // The session reads both records, so that an action never overrules a concurrent decision.
            let single = read(project, session.read(key(project)).await?)?;
            let mut actions = read_index(project, session.read(index_key(project)).await?)?;
            let decisions = single.with_layers(layers(records, project, &actions).await?);
            let known = actions.iter().position(|action| action.id == request.id);
            if let Some(action) = known.and_then(|place| actions.get(place)) {
                if action.undone.is_some() {
                    return Ok(Err(BulkRefusal::Undone));
                }
                if action.rule != request.rule || action.database != database {
                    return Ok(Err(BulkRefusal::OtherRule));
                }
            }
            let mut selector = Selector {
                of: self,
                rule: request.rule,
                database: database.as_deref().unwrap_or_default(),
                decisions: &decisions,
                sources: BTreeMap::new(),
                project,
            };
            let BulkSelection { about, next } = selector.select(request.after.unwrap_or_default()).await?;
            let decided = about.len() as u64;
            if decided == 0 {
                return Ok(Ok(BulkStep { decided, next }));
            }
            let all: u64 = actions.iter().map(|action| action.decided).sum();
            if (known.is_none() && actions.len() >= MAX_ACTIONS) || all + decided > MAX_DECIDED {
                return Ok(Err(BulkRefusal::TooMany));
            }
            let at = decisions.next_time(self.host().now());
            let place = known.unwrap_or(actions.len());
            if known.is_none() {
                actions.push(BulkAction {
                    id: request.id,
                    at,
                    by: by.to_owned(),
                    rule: request.rule,
                    database: database.clone(),
                    decided: 0,
                    chunks: 0,
                    undone: None,
                });
            }
            let Some(action) = actions.get_mut(place) else { continue };
            if action.decided + decided > MAX_DECIDED_AT_ONCE {
                return Ok(Err(BulkRefusal::TooManyAtOnce));
            }
            let chunk = chunk_key(project, action.id, action.chunks);
            (action.decided, action.chunks) = (action.decided + decided, action.chunks + 1);
            let made: Vec<_> =
                about.iter().map(|about| Decision { at, by: by.to_owned(), about: *about }).collect();
            session.write(chunk, content::of(&made, SERIALIZING)?);
            session.write(index_key(project), content::of(&actions, SERIALIZING)?);
            compare_again(&mut session, project, about.into_iter())?;
            let action = Action::DecidedInBulk { id: request.id, rule: request.rule, decided };
            activity::append(&mut session, project, Activity { at, by: by.to_owned(), action }).await?;
            if self.committed(session, "stored decisions about many studies").await? {
                return Ok(Ok(BulkStep { decided, next }));
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Undoes a bulk action: what was in effect without it is in effect again, and later decisions stay. Returns
    /// `None` if there is no such action, and `false` if it was undone before.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; the action may or may not be undone.
    pub async fn undo_bulk(&self, project: ProjectId, id: Uuid, by: &str) -> Result<Option<bool>, Error> {
        for _ in 0..MAX_TRIES {
            let mut session = self.entry.session(SearchId::from_uuid(project.as_uuid()));
            let mut actions = read_index(project, session.read(index_key(project)).await?)?;
            let Some(action) = actions.iter_mut().find(|action| action.id == id) else { return Ok(None) };
            if action.undone.is_some() {
                return Ok(Some(false));
            }
            let at = self.host().now();
            let records = self.entry.sessions.records.as_ref();
            let made = layers(records, project, std::slice::from_ref(action)).await?;
            action.undone = Some(BulkUndo { at, by: by.to_owned() });
            session.write(index_key(project), content::of(&actions, SERIALIZING)?);
            compare_again(&mut session, project, made.into_iter().map(|decision| decision.about))?;
            let entry = Activity { at, by: by.to_owned(), action: Action::UndidBulk { id } };
            activity::append(&mut session, project, entry).await?;
            if self.committed(session, "undid decisions about many studies").await? {
                return Ok(Some(true));
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Returns the bulk actions of a review, oldest first.
    pub async fn bulk_actions(&self, project: ProjectId) -> Result<Vec<BulkAction>, StoreError> {
        read_index(project, self.entry.sessions.records.record(&index_key(project)).await?)
    }

    /// Returns how many pairs of a review are decided and undecided, if it does not have too many imports.
    pub async fn decision_progress(
        &self,
        project: ProjectId,
    ) -> Result<Result<DecisionProgress, TooManyImports>, StoreError> {
        let jobs = match self.jobs_of_review(project).await? {
            Ok(jobs) => jobs,
            Err(too_many) => return Ok(Err(too_many)),
        };
        let decisions = self.decisions(project).await?;
        let mut progress =
            DecisionProgress { decided: decisions.verdicts().count() as u64, ..DecisionProgress::default() };
        for job in &jobs {
            for (_, counts) in self.marked(job).await? {
                progress.open += counts.likely + counts.possible;
                progress.certain += counts.certain;
            }
        }
        Ok(Ok(progress))
    }
}

#[cfg(test)]
mod tests {
    use imports::FileId;
    use messages::Payload;

    use super::*;

    #[test]
    fn undo_of_largest_action_fits_into_one_document() {
        const MAX_DOCUMENT_BYTES: usize = 16 * 1024 * 1024;
        let study = StudyRef {
            search_id: SearchId::from_uuid(Uuid::max()),
            file_id: FileId::from_uuid(Uuid::max()),
            record: 1_999_999,
        };
        let studies = vec![study; COMPARED];
        let command = CompareStudies { project_id: ProjectId::from_uuid(Uuid::max()), studies };
        let body = ParseCommand::CompareStudies(command).body().unwrap();
        let commands = (2 * MAX_DECIDED_AT_ONCE as usize).div_ceil(COMPARED);
        // An outbox entry has less than a kilobyte in addition to the content of its message.
        let bytes = commands * (body.data.value().to_string().len() + 1_024);
        assert!(bytes < MAX_DOCUMENT_BYTES / 4 * 3, "{bytes}");
    }
}
