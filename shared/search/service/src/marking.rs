//! Marking the duplicates of a project when a file is added or removed, or a decision changes.
//!
//! # Why concurrent workers are correct
//!
//! Every worker works in this order:
//!
//! 1. It stores its change: the file is listed as complete, removed from the list, or the decision is stored.
//! 2. It increments the project's revision ([`CompareStudies::revise`]).
//! 3. It reads the decisions and every study that the change may affect: the studies of the file, their candidates, and
//!    all studies that are the same as these.
//! 4. It stores the marks that follow from what it has read ([`imports::duplicates::marks`]), with its revision. A
//!    store replaces a mark only if the new one has an equal or later revision.
//!
//! Consider two workers whose revisions are `r < s`. The first one stored its change before it drew `r`, and the second
//! one started to read after it drew `s`. Therefore, the second worker sees both changes, and its marks win even if the
//! first worker writes later. The final marks are therefore those of the complete project, in whatever order the
//! workers write. If a worker read before storing its change or before drawing its revision, two workers could miss
//! each other's files, and neither would mark the pair.
//!
//! A result without a mark must also be able to replace a mark. The second worker may keep a study that the first one
//! is about to mark, because a study that only the second one sees contradicts the match. Therefore, a pass over an
//! added file also stores "no mark" for each study that is connected to an earlier one (module `connected`). Such
//! studies are few, because a study to keep is usually the first one of its group.
//!
//! A file that is refused is never listed, so no mark names one of its studies. One case is left. A worker that stalls
//! in step 3 may have read a listing with a file that is then removed, and afterwards other studies are added. The
//! worker that removes the file cannot see those studies, and the worker that adds them stores no mark for a study
//! without candidates. Therefore, no later revision keeps the stalled worker from marking them as duplicates of a study
//! that no longer exists. Therefore each worker checks, after step 4, that the studies named by its marks are still
//! listed.
//!
//! # Why each group is settled once
//!
//! A pass over an added file remembers which studies it has settled (`progress`). It does not read, compare or mark
//! them again, and compares each pair of unrelated studies once. All marks of a pass have the same revision, so a
//! repetition could only store the same marks again. A closure that a limit cuts off is not remembered.
//!
//! Memory is bounded: studies are compared in batches, each with at most [`MAX_CANDIDATES_PER_KEY`] candidates for
//! each of its keys.

mod connected;
mod lookups;
mod progress;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use futures::future::try_join;
use imports::duplicates::{ComparedStudy, Content, Edge, Reason, Tier, compare, marks};
use imports::{
    Candidate, CompareStudies, Decisions, FileRef, Identity, Mark, ParsedFile, Ports, ProjectId, ReadStudies,
    Revision, SearchId, StudyKeys, StudyRef,
};
use messages::StoreError;
use outbox::ReadRecords;
use saga::MissingSetting;

use self::lookups::{RecentLookups, StudiesByKey};
use self::progress::{Closure, Progress};
use crate::decisions::bulk;

/// The number of studies that are examined by their keys at a time. A larger batch contains more keys that are adjacent
/// in the store, which looks keys up in order.
const KEY_BATCH: usize = 500;

/// The number of studies that are compared together.
const COMPARE_BATCH: usize = 250;

/// The maximum number of candidates for a key: the first ones that were stored. A duplicate is found through any one of
/// them. A key that thousands of different works share, such as the DOI of a supplement, does not indicate a duplicate.
pub const MAX_CANDIDATES_PER_KEY: usize = 50;

/// The maximum number of studies that are marked together. Only a maliciously constructed file exceeds this number for
/// one batch of [`COMPARE_BATCH`].
const MAX_MARKED: usize = 5_000;

/// The maximum number of different pairs that are compared for [`COMPARE_BATCH`] studies. Real studies have two or
/// three candidates each; a malicious file can give each study several hundred candidates, each with several hundred
/// candidates of its own.
const MAX_COMPARED: usize = 50_000;

/// The number of keys that are looked up, and of studies that are read or marked, in one call.
const CALL_BATCH: usize = 1_000;

/// The change that may affect marks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Studies were added. A study needs a mark, or the absence of one, only if another worker may mark it.
    Added,
    /// Studies are removed, or a decision changed. A mark may have to be removed, even if a concurrent worker is about
    /// to store it.
    RemovedOrDecided,
}

/// The end of marking some studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Complete,
    /// The deadline passed, and nothing was marked.
    Interrupted,
}

/// The reason why a page of studies was not compared to its end.
#[derive(Debug)]
enum Stop {
    /// The deadline passed after this record.
    Interrupted(u64),
    Failed(StoreError),
}

impl From<StoreError> for Stop {
    fn from(error: StoreError) -> Self {
        Self::Failed(error)
    }
}

/// Marks the duplicates of projects.
#[derive(Clone)]
pub struct DuplicateMarking {
    /// Reads the compared fields of studies.
    pub stored: Arc<dyn ReadStudies>,
    /// Finds candidates and stores marks.
    pub compare: Arc<dyn CompareStudies>,
    /// Reads the reviewers' decisions.
    pub records: Arc<dyn ReadRecords>,
}

impl DuplicateMarking {
    /// Returns the marking over these ports of an application.
    pub fn over(ports: &Ports) -> Result<Self, MissingSetting> {
        let stores = ports.study_stores()?;
        Ok(Self {
            stored: Arc::clone(&stores.read_studies),
            compare: Arc::clone(&stores.compare_studies),
            records: Arc::clone(&ports.engine.stores()?.records),
        })
    }

    /// Marks the duplicates among the studies of a completed file, beginning after a record, and the duplicates that
    /// these studies cause in other files. If the deadline passes, it returns the last record that was processed.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; some marks may be stored. The call can be repeated.
    pub async fn file_added(
        &self,
        project: ProjectId,
        file: FileRef,
        after: u64,
        has_passed: impl Fn() -> bool + Sync,
    ) -> Result<Option<u64>, StoreError> {
        let mut pass = self.begin_pass(project, None).await?;
        let FileRef { search_id, file_id } = file;
        if !pass.lists(StudyRef { search_id, file_id, record: 0 }).await? {
            // The file was removed concurrently. The worker that removes it marks its neighbours again.
            return Ok(None);
        }
        pass.progress = Some(Progress::new(file));
        pass.file(file, after, Change::Added, has_passed).await
    }

    /// Marks the candidates of a removed file again, from after a record on, while its studies are still stored. If
    /// the deadline passes, it returns the last record that was processed.
    ///
    /// # Errors
    /// Returns the errors of [`DuplicateMarking::file_added`].
    pub async fn file_removed(
        &self,
        project: ProjectId,
        file: FileRef,
        after: u64,
        has_passed: impl Fn() -> bool + Sync,
    ) -> Result<Option<u64>, StoreError> {
        self.begin_pass(project, Some(file))
            .await?
            .file(file, after, Change::RemovedOrDecided, has_passed)
            .await
    }

    /// Marks studies again whose decisions have changed.
    ///
    /// # Errors
    /// Returns the errors of [`DuplicateMarking::file_added`].
    pub async fn decisions_changed(
        &self,
        project: ProjectId,
        studies: &[StudyRef],
    ) -> Result<(), StoreError> {
        let mut pass = self.begin_pass(project, None).await?;
        let mut there = BTreeSet::new();
        for at in studies {
            if pass.lists(*at).await? {
                there.insert(*at);
            }
        }
        let seeds = pass.read(&there).await?;
        let candidates = CandidatesByStudy::new();
        // This call has no cursor from which an interrupted closure could resume. `MAX_MARKED` and `MAX_COMPARED` bound
        // the closure.
        pass.mark_closure(seeds, &candidates, Change::RemovedOrDecided, &|| false).await?;
        pass.store_marks().await
    }

    /// Reads a page of studies of a file, and looks up their keys.
    async fn page(&self, project: ProjectId, file: FileRef, after: u64) -> Result<KeyedPage, StoreError> {
        let studies = self.stored.keyed(file.search_id, file.file_id, after, KEY_BATCH).await?;
        let keys: BTreeSet<u64> =
            studies.iter().filter_map(|study| study.keys.as_ref()).flatten().copied().collect();
        let lookups = self.look_up(project, &Vec::from_iter(keys)).await?;
        Ok(KeyedPage { studies, lookups })
    }

    /// Returns the studies with each of these keys.
    async fn look_up(&self, project: ProjectId, keys: &[u64]) -> Result<StudiesByKey, StoreError> {
        let mut lookups: StudiesByKey = keys.iter().map(|key| (*key, Vec::new())).collect();
        for keys in keys.chunks(CALL_BATCH) {
            for Candidate { key, at } in self.compare.sharing(project, keys, MAX_CANDIDATES_PER_KEY).await? {
                lookups.entry(key).or_default().push(at);
            }
        }
        Ok(lookups)
    }

    async fn begin_pass(
        &self,
        project: ProjectId,
        leaving: Option<FileRef>,
    ) -> Result<MarkingPass<'_>, StoreError> {
        // Draw the revision first: everything read from now on includes all changes up to it.
        let revision = self.compare.revise(project).await?;
        let decisions = bulk::in_effect(self.records.as_ref(), project).await?;
        Ok(MarkingPass {
            of: self,
            project,
            revision,
            decisions,
            leaving,
            files: BTreeMap::new(),
            progress: None,
            recent: RecentLookups::default(),
            unstored: Vec::new(),
        })
    }
}

/// One pass over studies of a project, at a revision.
struct MarkingPass<'a> {
    of: &'a DuplicateMarking,
    project: ProjectId,
    revision: Revision,
    decisions: Decisions,
    /// A removed file whose studies are still compared.
    leaving: Option<FileRef>,
    /// The completed files of each search.
    files: BTreeMap<SearchId, Vec<ParsedFile>>,
    /// The settled studies, if a file was added.
    progress: Option<Progress>,
    recent: RecentLookups,
    /// Marks to be stored, in the order in which they were found.
    unstored: Vec<Mark>,
}

/// The result of the matching rules for two contents, the lesser one first.
type ComparisonCache = HashMap<(Content, Content), Option<(Tier, Reason)>>;

/// Some studies of a file, and the studies that share their keys.
#[derive(Debug, Default)]
struct KeyedPage {
    studies: Vec<StudyKeys>,
    lookups: StudiesByKey,
}

impl KeyedPage {
    fn last(&self) -> Option<u64> {
        self.studies.last().map(|study| study.record)
    }
}

/// The candidates of each study whose keys were looked up. The value is `true` if the two share a key that shows each
/// of them to the other.
type CandidatesByStudy = BTreeMap<StudyRef, BTreeMap<StudyRef, bool>>;

/// The compared fields of a study, and their content.
#[derive(Clone)]
struct KnownStudy {
    identity: Identity,
    content: Content,
}

impl KnownStudy {
    fn new(identity: Identity) -> Self {
        Self { content: identity.fields.content(), identity }
    }
}

type KnownStudies = BTreeMap<StudyRef, KnownStudy>;

impl MarkingPass<'_> {
    /// Compares the studies of a file, from a record on. If the deadline passes, even within a batch, it returns the
    /// last record that was processed. The first batch is always completed, because the next call would begin with it
    /// again.
    async fn file(
        &mut self,
        file: FileRef,
        mut after: u64,
        change: Change,
        has_passed: impl Fn() -> bool + Sync,
    ) -> Result<Option<u64>, StoreError> {
        let (of, project, start) = (self.of, self.project, after);
        let interrupts = |after| after > start && has_passed();
        let mut page = of.page(project, file, after).await?;
        while let Some(last) = page.last() {
            let is_last = page.studies.len() < KEY_BATCH;
            let next = async {
                // An error is reported only after this page was compared.
                Ok(if is_last { Ok(KeyedPage::default()) } else { of.page(project, file, last).await })
            };
            // The store reads the next page while this one is compared.
            page = match try_join(next, self.mark_page(file, page, after, change, &interrupts)).await {
                Ok((Ok(next), ())) => next,
                Ok((Err(error), ())) => {
                    self.store_marks().await?;
                    return Err(error);
                }
                Err(Stop::Failed(error)) => return Err(error),
                Err(Stop::Interrupted(after)) => {
                    self.store_marks().await?;
                    return Ok(Some(after));
                }
            };
            after = last;
        }
        self.store_marks().await?;
        Ok(None)
    }

    /// Compares the studies of a page. `interrupts` is called after each batch and within a batch, with the last record
    /// of the previous batch.
    async fn mark_page(
        &mut self,
        file: FileRef,
        page: KeyedPage,
        mut after: u64,
        change: Change,
        interrupts: &(impl Fn(u64) -> bool + Sync),
    ) -> Result<(), Stop> {
        let last = page.last().unwrap_or(after);
        let (affected, candidates) = self.affected(file, page, change).await?;
        let mut affected = affected.into_iter();
        loop {
            let open = affected.by_ref().filter(|(at, is_forced)| self.is_open(*at, *is_forced, &candidates));
            let together: Vec<_> = open.map(|(at, _)| at).take(COMPARE_BATCH).collect();
            let is_end = together.is_empty();
            if !is_end {
                let seeds = self.read(&together.iter().copied().collect()).await?;
                let ending = self.mark_closure(seeds, &candidates, change, &|| interrupts(after)).await?;
                if ending == Ending::Interrupted {
                    return Err(Stop::Interrupted(after));
                }
            }
            after = together.last().map_or(last, |last| last.record);
            if interrupts(after) {
                return Err(Stop::Interrupted(after));
            }
            if self.unstored.len() >= CALL_BATCH {
                self.store_marks().await?;
            }
            if is_end {
                return Ok(());
            }
        }
    }

    /// Returns `true` if a study has to be compared. It may have been settled with another one, or it may be known to
    /// be unrelated to all its candidates.
    fn is_open(&self, at: StudyRef, is_forced: bool, candidates: &CandidatesByStudy) -> bool {
        let Some(progress) = &self.progress else { return true };
        let mut others = candidates.get(&at).into_iter().flatten();
        !progress.is_settled(at)
            && (is_forced || others.any(|(other, is_mutual)| !progress.is_excluded(at, *other, *is_mutual)))
    }

    /// Returns the studies that may have to be compared, and their candidates. Most studies of an added file have none.
    /// The value is `true` for a study that has to be marked even without candidates.
    async fn affected(
        &mut self,
        file: FileRef,
        KeyedPage { studies, lookups }: KeyedPage,
        change: Change,
    ) -> Result<(BTreeMap<StudyRef, bool>, CandidatesByStudy), StoreError> {
        let FileRef { search_id, file_id } = file;
        let (mut affected, mut candidates, mut by_key) =
            (BTreeMap::new(), CandidatesByStudy::new(), StudiesByKey::new());
        for StudyKeys { record, keys, is_marked } in studies {
            let at = StudyRef { search_id, file_id, record };
            if self.progress.as_ref().is_some_and(|progress| progress.is_settled(at)) {
                continue;
            }
            if change == Change::RemovedOrDecided
                || is_marked
                || keys.is_none()
                || !self.decisions.same_as(at).is_empty()
            {
                affected.insert(at, true);
            }
            if let Some(keys) = keys {
                candidates.insert(at, BTreeMap::new());
                for key in keys {
                    by_key.entry(key).or_default().push(at);
                }
            }
        }
        self.recent = RecentLookups::default();
        self.recent.add(&lookups);
        let add_pair = |at, other, is_mutual| {
            affected.entry(at).or_insert(false);
            *candidates.entry(at).or_default().entry(other).or_default() |= is_mutual;
        };
        self.add_pairs(&by_key, lookups, add_pair).await?;
        Ok((affected, candidates))
    }

    /// Marks studies, all studies that are the same as one of them, and all studies that are the same as one of their
    /// candidates found so far. An interrupted call marks none of these studies.
    async fn mark_closure(
        &mut self,
        seeds: KnownStudies,
        candidates: &CandidatesByStudy,
        change: Change,
        interrupts: &(impl Fn() -> bool + Sync),
    ) -> Result<Ending, StoreError> {
        let mut settled: BTreeSet<StudyRef> = BTreeSet::new();
        let mut edges: BTreeSet<Edge> = BTreeSet::new();
        let mut frontier: BTreeSet<StudyRef> = seeds.keys().copied().collect();
        let (mut known, mut cache) = (seeds, ComparisonCache::new());
        let (mut is_first, mut is_cut) = (true, false);
        let mut related: Vec<StudyRef> = Vec::new();
        while !frontier.is_empty() && settled.len() < MAX_MARKED {
            let found = self.relatives(&frontier, &known, candidates).await?;
            let unknown =
                found.iter().map(|(_, other)| *other).filter(|at| !known.contains_key(at)).collect();
            let read = self.read(&unknown).await?;
            let mut next = BTreeSet::new();
            for (at, other) in found {
                if interrupts() {
                    return Ok(Ending::Interrupted);
                }
                let (Some(one), Some(two)) = (known.get(&at), read.get(&other).or_else(|| known.get(&other)))
                else {
                    continue;
                };
                let verdict = self.decisions.verdict(at, other);
                let compared = tier(&mut cache, one, two);
                if compared.is_none() && verdict.is_none() {
                    continue;
                }
                related.push(other);
                if let Some((tier, reason)) = compared
                    && one.content != two.content
                {
                    let pair = (one.content.min(two.content), one.content.max(two.content));
                    edges.insert(Edge { pair, tier, reason });
                }
                // Sameness is transitive, so whatever is the same as a study belongs to its group. A possible duplicate
                // of a changed study is followed one step only: its own mark may change, but not its group.
                let is_same = compared.is_some_and(|(tier, _)| tier > Tier::Possible) || verdict.is_some();
                let is_changed = is_first || self.progress.as_ref().is_some_and(|progress| progress.has(at));
                if is_same || is_changed && self.may_reference(other, at, change) {
                    next.insert(other);
                }
                if let Some(new) = read.get(&other) {
                    known.entry(other).or_insert_with(|| new.clone());
                }
            }
            settled.append(&mut frontier);
            // A further study is assumed to need as many comparisons as a key has candidates.
            let comparable = MAX_COMPARED.saturating_sub(cache.len()) / MAX_CANDIDATES_PER_KEY;
            let left = MAX_MARKED.saturating_sub(settled.len()).min(comparable);
            next.retain(|at| !settled.contains(at));
            is_cut |= next.len() > left;
            frontier = next.into_iter().take(left).collect();
            is_first = false;
        }
        self.mark(&settled, &known, &edges, change);
        if let Some(progress) = self.progress.as_mut().filter(|_| !is_cut) {
            progress.add(Closure { settled: Vec::from_iter(settled), related });
        }
        Ok(Ending::Complete)
    }

    /// Stores the marks found so far.
    async fn store_marks(&mut self) -> Result<(), StoreError> {
        let marks = std::mem::take(&mut self.unstored);
        for marks in marks.chunks(CALL_BATCH) {
            self.of.compare.mark(self.revision, marks).await?;
        }
        self.verify(&marks).await
    }

    /// Checks, once the marks are stored, that the studies named by the marks are still listed. Studies whose marks
    /// name other studies are marked again. If this worker stalled, the file of a named study may have been removed
    /// before other studies were added. No later revision corrects the marks of these studies (see the module's
    /// documentation).
    async fn verify(&mut self, marks: &[Mark]) -> Result<(), StoreError> {
        let named: Vec<_> = marks.iter().filter_map(|mark| Some((mark.at, mark.duplicate?.of()))).collect();
        if named.is_empty() {
            return Ok(());
        }
        // The lists of files are read again, because those in memory may be as old as the marks.
        self.files.clear();
        let mut outdated = Vec::new();
        for (at, of) in named {
            if !self.lists(of).await? {
                outdated.push(at);
            }
        }
        if outdated.is_empty() {
            Ok(())
        } else {
            Box::pin(self.of.decisions_changed(self.project, &outdated)).await
        }
    }

    /// Returns `true` if the mark of a possible duplicate of a changed study may have to reference that study, or no
    /// longer reference it. A mark references an earlier study, and the other studies of an added file are examined
    /// in their own turn.
    fn may_reference(&self, study: StudyRef, changed: StudyRef, change: Change) -> bool {
        let order = |at: StudyRef| self.listed(at).map(|file| file.order(at.record));
        let is_of_file = study.file() == changed.file();
        change == Change::RemovedOrDecided || !is_of_file && order(changed) < order(study)
    }

    /// Determines the marks of the studies whose candidates are all known. [`Self::store_marks`] stores them.
    fn mark(
        &mut self,
        settled: &BTreeSet<StudyRef>,
        known: &KnownStudies,
        edges: &BTreeSet<Edge>,
        change: Change,
    ) {
        let there = known.iter().filter_map(|(at, KnownStudy { identity, content })| {
            let file = self.listed(*at)?;
            Some(ComparedStudy { file, identity, content: *content })
        });
        let there: Vec<_> = there.collect();
        let edges: Vec<Edge> = edges.iter().copied().collect();
        let after_another = connected::after_another(&there, &edges, &self.decisions);
        let is_news = |(at, duplicate): &(StudyRef, Option<_>)| {
            let is_marked = known.get(at).is_some_and(|study| study.identity.is_marked);
            let may_be_marked = is_marked || after_another.contains(at);
            settled.contains(at)
                && (duplicate.is_some() || may_be_marked || change == Change::RemovedOrDecided)
        };
        let found = marks(&there, &edges, &self.decisions).into_iter().filter(is_news);
        let marks: Vec<Mark> = found.map(|(at, duplicate)| Mark { at, duplicate }).collect();
        self.unstored.extend(marks);
    }

    /// Returns the studies that may be the same as some of these, as pairs. Candidates are looked up unless they are
    /// known.
    async fn relatives(
        &mut self,
        of: &BTreeSet<StudyRef>,
        known: &KnownStudies,
        candidates: &CandidatesByStudy,
    ) -> Result<BTreeSet<(StudyRef, StudyRef)>, StoreError> {
        let (mut found, mut by_key) = (BTreeSet::new(), StudiesByKey::new());
        for at in of {
            self.is_there(*at).await?;
            if let Some(others) = candidates.get(at) {
                let open =
                    others.iter().filter(|(other, is_mutual)| !self.is_excluded(*at, **other, **is_mutual));
                found.extend(open.map(|(other, _)| (*at, *other)));
                continue;
            }
            let Some(study) = known.get(at) else { continue };
            for key in study.identity.fields.keys() {
                by_key.entry(key).or_default().push(*at);
            }
        }
        let mut shared = Vec::new();
        self.candidates(&by_key, |at, other, is_mutual| shared.push((at, other, is_mutual))).await?;
        let open =
            shared.into_iter().filter(|(at, other, is_mutual)| !self.is_excluded(*at, *other, *is_mutual));
        found.extend(open.map(|(at, other, _)| (at, other)));
        for at in of {
            for partner in self.decisions.same_as(*at).to_vec() {
                if self.is_there(partner).await? {
                    found.insert((*at, partner));
                }
            }
        }
        Ok(found)
    }

    fn is_excluded(&self, at: StudyRef, candidate: StudyRef, is_mutual: bool) -> bool {
        self.progress.as_ref().is_some_and(|progress| progress.is_excluded(at, candidate, is_mutual))
    }

    /// Calls `add_pair` with each pair of one of these studies and another study that shares a key with it. The argument
    /// is `true` if a lookup of either study by that key returns the other.
    async fn candidates(
        &mut self,
        by_key: &StudiesByKey,
        add_pair: impl FnMut(StudyRef, StudyRef, bool),
    ) -> Result<(), StoreError> {
        let (known, new): (Vec<u64>, Vec<u64>) = by_key.keys().partition(|key| self.recent.has(**key));
        let mut lookups = self.of.look_up(self.project, &new).await?;
        self.recent.add(&lookups);
        lookups.extend(self.recent.get(&known));
        self.add_pairs(by_key, lookups, add_pair).await
    }

    /// Calls `add_pair` in the same way as [`Self::candidates`], with the results of lookups.
    async fn add_pairs(
        &mut self,
        by_key: &StudiesByKey,
        lookups: StudiesByKey,
        mut add_pair: impl FnMut(StudyRef, StudyRef, bool),
    ) -> Result<(), StoreError> {
        for (key, found) in lookups {
            let is_complete = found.len() < MAX_CANDIDATES_PER_KEY;
            let is_mutual =
                self.progress.as_mut().is_none_or(|progress| progress.note_lookup(key, is_complete));
            for at in found {
                if !self.is_there(at).await? {
                    continue;
                }
                for of in by_key.get(&key).into_iter().flatten().filter(|of| **of != at) {
                    add_pair(*of, at, is_mutual);
                }
            }
        }
        Ok(())
    }

    /// Reads the compared fields of studies.
    async fn read(&self, studies: &BTreeSet<StudyRef>) -> Result<KnownStudies, StoreError> {
        let mut by_file: BTreeMap<FileRef, Vec<u64>> = BTreeMap::new();
        for study in studies {
            by_file.entry(study.file()).or_default().push(study.record);
        }
        let mut read = KnownStudies::new();
        for (FileRef { search_id, file_id }, records) in by_file {
            for records in records.chunks(CALL_BATCH) {
                let found = self.of.stored.identities_of(search_id, file_id, records).await?;
                let at = |record| StudyRef { search_id, file_id, record };
                read.extend(found.into_iter().map(|study| (at(study.record), KnownStudy::new(study))));
            }
        }
        Ok(read)
    }

    /// Returns `true` if a study takes part in the comparison: its file is complete, or is being removed.
    async fn is_there(&mut self, at: StudyRef) -> Result<bool, StoreError> {
        Ok(self.leaving == Some(at.file()) || self.lists(at).await?)
    }

    /// Returns `true` if the file of a study is listed as complete.
    async fn lists(&mut self, at: StudyRef) -> Result<bool, StoreError> {
        if !self.files.contains_key(&at.search_id) {
            let files = self.of.stored.parsed(at.search_id).await?;
            self.files.insert(at.search_id, files);
        }
        Ok(self.listed(at).is_some())
    }

    /// Returns the file of a study, if it is complete.
    fn listed(&self, at: StudyRef) -> Option<&ParsedFile> {
        self.files.get(&at.search_id)?.iter().find(|file| file.file_id == at.file_id)
    }
}

/// Returns the result of the matching rules for two studies, from the cache if possible.
fn tier(cache: &mut ComparisonCache, one: &KnownStudy, other: &KnownStudy) -> Option<(Tier, Reason)> {
    let (lesser, greater) = if one.content <= other.content { (one, other) } else { (other, one) };
    let compared = || compare(&lesser.identity.fields, &greater.identity.fields);
    *cache.entry((lesser.content, greater.content)).or_insert_with(compared)
}
