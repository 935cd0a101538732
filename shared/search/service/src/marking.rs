//! Marking the duplicates of a project, as its files are read, removed, or spoken of.
//!
//! Whoever changes what a project holds stores that first, counts it as a revision, and then looks at all studies that it may
//! concern: those of the file, those alike them, and whatever is the same as these. What each is marked with follows from
//! what is there then ([`imports::duplicates::marks`]). Of two who change something at the same time at least the one with the
//! later revision sees both changes, and its marks stay; so the marks in the end are those of everything, whatever the order. A
//! file that is refused never counts as read, so no mark names a study that is not there. Whoever has stored marks looks
//! whether what they name is still there, because a worker may have stood still while files went and others came.
//!
//! Memory is bounded: some studies at a time are compared, with at most [`MOST_OF_A_KEY`] that have a key in common with each.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use imports::duplicates::{Compared, Content, DECISIONS, Edge, Fields, Reason, Tier, compare, marks};
use imports::{
    CompareStudies, Decisions, FileId, Identity, Keyed, Mark, ParsedFile, ProjectId, ReadStudies, Relative,
    Revision, SearchId, StudyAt,
};
use messages::StoreError;
use outbox::{Key, ReadRecords};
use serde::Deserialize;

/// How many studies are looked at by their keys alone at a time: the more keys there are, the more of them lie beside each other
/// in the store, which is asked for them in their order.
const KEYED_AT_ONCE: usize = 1_000;

/// How many studies are compared together.
const TOGETHER: usize = 250;

/// How many studies with a key in common are looked at: the first that were stored. Copies of a record are found by any of
/// these. What thousands have in common that are not copies, such as the DOI of a supplement, tells nothing.
pub const MOST_OF_A_KEY: usize = 50;

/// The most studies that are marked together. Far more are the same as one of [`TOGETHER`] only in files that are made for it.
const MOST_MARKED: usize = 5_000;

/// The most different pairs that are compared for [`TOGETHER`] studies. Real studies have two or three others each that are
/// alike; a file can be made so that each has some hundred, and these as many again.
const MOST_COMPARED: usize = 50_000;

/// How many keys are looked up, and how many studies are read or marked, in one call.
const IN_A_CALL: usize = 1_000;

/// Whose marks may have changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Studies have come. One that is like no other, and has no mark, needs none.
    Grown,
    /// Studies go, or something was said: a mark may have to go, even one that somebody is about to store.
    Other,
}

/// Marks the duplicates of projects.
#[derive(Clone)]
pub struct Duplicates {
    /// Reads what studies are recognised by.
    pub stored: Arc<dyn ReadStudies>,
    /// Finds them, and marks them.
    pub compare: Arc<dyn CompareStudies>,
    /// Reads what people have said of them.
    pub records: Arc<dyn ReadRecords>,
}

impl Duplicates {
    /// Marks the duplicates among the studies of a file that was read to its end, and those that they make, from after a
    /// record on. Returns up to which record the time was enough, if it was not enough for all.
    ///
    /// # Errors
    /// When a store does not answer; some marks may be stored. It may be repeated.
    pub async fn grown(
        &self,
        project: ProjectId,
        file: (SearchId, FileId),
        after: u64,
        is_over: impl Fn() -> bool,
    ) -> Result<Option<u64>, StoreError> {
        let mut comparing = self.comparing(project, None).await?;
        let (search_id, file_id) = file;
        if !comparing.lists(StudyAt { search_id, file_id, record: 0 }).await? {
            // It was removed meanwhile.
            return Ok(None);
        }
        comparing.file(file, after, Change::Grown, is_over).await
    }

    /// Marks the studies anew that are alike those of a file which is not there any more, from after a record on, while
    /// these are still stored. Returns up to which record the time was enough, if it was not enough for all.
    ///
    /// # Errors
    /// As [`Duplicates::grown`].
    pub async fn shrunk(
        &self,
        project: ProjectId,
        file: (SearchId, FileId),
        after: u64,
        is_over: impl Fn() -> bool,
    ) -> Result<Option<u64>, StoreError> {
        self.comparing(project, Some(file)).await?.file(file, after, Change::Other, is_over).await
    }

    /// Marks the studies anew of which somebody has said something.
    ///
    /// # Errors
    /// As [`Duplicates::grown`].
    pub async fn decided(&self, project: ProjectId, studies: &[StudyAt]) -> Result<(), StoreError> {
        let mut comparing = self.comparing(project, None).await?;
        let mut there = BTreeSet::new();
        for at in studies {
            if comparing.lists(*at).await? {
                there.insert(*at);
            }
        }
        let seeds = comparing.read(&there).await?;
        comparing.settle(seeds, &Alike::new(), Change::Other).await
    }

    async fn comparing(
        &self,
        project: ProjectId,
        leaving: Option<(SearchId, FileId)>,
    ) -> Result<Comparing<'_>, StoreError> {
        // First: whatever is read from now on has all changes up to this one.
        let revision = self.compare.revise(project).await?;
        let said = self.records.record(&Key::new(DECISIONS, project.to_string())).await?;
        let decisions = said.map(|said| Decisions::deserialize(&said.body)).transpose();
        let decisions = decisions.map_err(|error| {
            StoreError::unusable(format!("reading what was said of the studies of project {project}"), error)
        })?;
        let (decisions, files) = (decisions.unwrap_or_default(), BTreeMap::new());
        Ok(Comparing { of: self, project, revision, decisions, leaving, files })
    }
}

/// Comparing studies of a project, as it is at a revision.
struct Comparing<'a> {
    of: &'a Duplicates,
    project: ProjectId,
    revision: Revision,
    decisions: Decisions,
    /// A file whose studies are compared, and are not there any more.
    leaving: Option<(SearchId, FileId)>,
    /// The files of each search that were read to their end.
    files: BTreeMap<SearchId, Vec<ParsedFile>>,
}

/// What the table says of two contents, the lesser one first.
type Told = HashMap<(Content, Content), Option<(Tier, Reason)>>;

/// The studies that have a key.
type Having = BTreeMap<u64, Vec<StudyAt>>;

/// The studies that share a key with a study, of those whose keys were looked up.
type Alike = BTreeMap<StudyAt, BTreeSet<StudyAt>>;

/// A study, and what it is recognised by.
type Known = BTreeMap<StudyAt, (Identity, Content)>;

impl Comparing<'_> {
    /// Compares the studies of a file, from a record on; up to which, if the time was not enough for all.
    async fn file(
        &mut self,
        (search_id, file_id): (SearchId, FileId),
        mut after: u64,
        change: Change,
        is_over: impl Fn() -> bool,
    ) -> Result<Option<u64>, StoreError> {
        let at = |record| StudyAt { search_id, file_id, record };
        loop {
            let page = self.of.stored.keyed(search_id, file_id, after, KEYED_AT_ONCE).await?;
            let Some(last) = page.last().map(|last| last.record) else { return Ok(None) };
            let page = page.into_iter().map(|study| (at(study.record), study));
            let (concerned, alike) = self.concerned(page, change).await?;
            for together in Vec::from_iter(concerned).chunks(TOGETHER) {
                let seeds = self.read(&together.iter().copied().collect()).await?;
                self.settle(seeds, &alike, change).await?;
                after = together.last().map_or(after, |last| last.record);
                if is_over() {
                    return Ok(Some(after));
                }
            }
            after = last;
            if is_over() {
                return Ok(Some(after));
            }
        }
    }

    /// Those of these studies that have to be compared, and what their keys have found. Most of a file that has come are like no
    /// other.
    async fn concerned(
        &mut self,
        studies: impl Iterator<Item = (StudyAt, Keyed)>,
        change: Change,
    ) -> Result<(BTreeSet<StudyAt>, Alike), StoreError> {
        let (mut concerned, mut alike, mut having) = (BTreeSet::new(), Alike::new(), Having::new());
        for (at, Keyed { keys, is_marked, .. }) in studies {
            if change == Change::Other
                || is_marked
                || keys.is_none()
                || !self.decisions.same_as(at).is_empty()
            {
                concerned.insert(at);
            }
            if let Some(keys) = keys {
                alike.insert(at, BTreeSet::new());
                for key in keys {
                    having.entry(key).or_default().push(at);
                }
            }
        }
        let share = |at, other| {
            concerned.insert(at);
            alike.entry(at).or_default().insert(other);
        };
        self.sharing(&having, share).await?;
        Ok((concerned, alike))
    }

    /// Marks studies, and all that are the same as these, or as those that are alike these, as far as that was found already.
    async fn settle(&mut self, seeds: Known, alike: &Alike, change: Change) -> Result<(), StoreError> {
        let mut settled: BTreeSet<StudyAt> = BTreeSet::new();
        let mut edges: BTreeSet<Edge> = BTreeSet::new();
        let mut frontier: BTreeSet<StudyAt> = seeds.keys().copied().collect();
        let (mut known, mut told) = (seeds, Told::new());
        let mut is_first = true;
        while !frontier.is_empty() && settled.len() < MOST_MARKED {
            let found = self.relatives(&frontier, &known, alike).await?;
            let unknown =
                found.iter().map(|(_, other)| *other).filter(|at| !known.contains_key(at)).collect();
            let read = self.read(&unknown).await?;
            let mut next = BTreeSet::new();
            for (at, other) in found {
                let (Some(one), Some((identity, content))) =
                    (known.get(&at), read.get(&other).or_else(|| known.get(&other)))
                else {
                    continue;
                };
                let said = self.decisions.verdict(at, other);
                let compared = tier(&mut told, (one.1, &one.0.fields), (*content, &identity.fields));
                if compared.is_none() && said.is_none() {
                    continue;
                }
                if let Some((tier, reason)) = compared
                    && one.1 != *content
                {
                    edges.insert(Edge { pair: (one.1.min(*content), one.1.max(*content)), tier, reason });
                }
                let is_same = compared.is_some_and(|(tier, _)| tier > Tier::Possible) || said.is_some();
                if is_same || is_first && self.may_name(other, at, change) {
                    next.insert(other);
                }
                if let Some(new) = read.get(&other) {
                    known.entry(other).or_insert_with(|| new.clone());
                }
            }
            settled.append(&mut frontier);
            let comparable = MOST_COMPARED.saturating_sub(told.len()) / MOST_OF_A_KEY;
            let left = MOST_MARKED.saturating_sub(settled.len()).min(comparable);
            frontier = next.into_iter().filter(|at| !settled.contains(at)).take(left).collect();
            is_first = false;
        }
        let marked = self.mark(&settled, &known, &edges, change).await?;
        self.verify(&marked).await
    }

    /// Looks whether what marks name is still there, once they are stored. This worker may have stood still for so long that a
    /// file went meanwhile which it knew, and that others came which whoever took that file back could not see: then nobody
    /// else has a later word about those.
    async fn verify(&mut self, marks: &[Mark]) -> Result<(), StoreError> {
        let named: Vec<_> = marks.iter().filter_map(|mark| Some((mark.at, mark.duplicate?.of()))).collect();
        if named.is_empty() {
            return Ok(());
        }
        self.files.clear();
        let mut outdated = Vec::new();
        for (at, of) in named {
            if !self.lists(of).await? {
                outdated.push(at);
            }
        }
        if outdated.is_empty() { Ok(()) } else { Box::pin(self.of.decided(self.project, &outdated)).await }
    }

    /// Whether the mark of a study that is possibly the same as one that has changed may have to name that one, or to name it
    /// no longer. A mark names an earlier study; and the rest of a file that has grown is looked at in its turn.
    fn may_name(&self, study: StudyAt, changed: StudyAt, change: Change) -> bool {
        let order = |at: StudyAt| self.listed(at).map(|file| file.order(at.record));
        let is_of_file = (study.search_id, study.file_id) == (changed.search_id, changed.file_id);
        change == Change::Other || !is_of_file && order(changed) < order(study)
    }

    /// Stores what follows for those whose relatives are all known, and returns it.
    async fn mark(
        &self,
        settled: &BTreeSet<StudyAt>,
        known: &Known,
        edges: &BTreeSet<Edge>,
        change: Change,
    ) -> Result<Vec<Mark>, StoreError> {
        let there = known.iter().filter_map(|(at, (identity, content))| {
            let file = self.listed(*at)?;
            Some(Compared { file, identity, content: *content })
        });
        let there: Vec<_> = there.collect();
        let edges: Vec<Edge> = edges.iter().copied().collect();
        let is_news = |(at, duplicate): &(StudyAt, Option<_>)| {
            let is_marked = known.get(at).is_some_and(|(identity, _)| identity.is_marked);
            settled.contains(at) && (duplicate.is_some() || is_marked || change == Change::Other)
        };
        let found = marks(&there, &edges, &self.decisions).into_iter().filter(is_news);
        let marks: Vec<Mark> = found.map(|(at, duplicate)| Mark { at, duplicate }).collect();
        for marks in marks.chunks(IN_A_CALL) {
            self.of.compare.mark(self.revision, marks).await?;
        }
        Ok(marks)
    }

    /// The studies that may be the same as some of these, each with the one that it may be the same as. Those that are alike are
    /// looked for unless they were found already.
    async fn relatives(
        &mut self,
        of: &BTreeSet<StudyAt>,
        known: &Known,
        alike: &Alike,
    ) -> Result<BTreeSet<(StudyAt, StudyAt)>, StoreError> {
        let (mut found, mut having) = (BTreeSet::new(), Having::new());
        for at in of {
            self.is_there(*at).await?;
            if let Some(others) = alike.get(at) {
                found.extend(others.iter().map(|other| (*at, *other)));
                continue;
            }
            let Some((identity, _)) = known.get(at) else { continue };
            for key in identity.fields.keys() {
                having.entry(key).or_default().push(*at);
            }
        }
        let share = |at, other| {
            found.insert((at, other));
        };
        self.sharing(&having, share).await?;
        for at in of {
            for partner in self.decisions.same_as(*at).to_vec() {
                if self.is_there(partner).await? {
                    found.insert((*at, partner));
                }
            }
        }
        Ok(found)
    }

    /// Calls `share` with each of these studies that shares a key with another one, and that one.
    async fn sharing(
        &mut self,
        having: &Having,
        mut share: impl FnMut(StudyAt, StudyAt),
    ) -> Result<(), StoreError> {
        let keys: Vec<u64> = having.keys().copied().collect();
        for keys in keys.chunks(IN_A_CALL) {
            for Relative { key, at } in self.of.compare.sharing(self.project, keys, MOST_OF_A_KEY).await? {
                if !self.is_there(at).await? {
                    continue;
                }
                for of in having.get(&key).into_iter().flatten().filter(|of| **of != at) {
                    share(*of, at);
                }
            }
        }
        Ok(())
    }

    /// Reads what studies are recognised by.
    async fn read(&self, studies: &BTreeSet<StudyAt>) -> Result<Known, StoreError> {
        let mut by_file: BTreeMap<(SearchId, FileId), Vec<u64>> = BTreeMap::new();
        for StudyAt { search_id, file_id, record } in studies {
            by_file.entry((*search_id, *file_id)).or_default().push(*record);
        }
        let mut read = Known::new();
        for ((search_id, file_id), records) in by_file {
            for records in records.chunks(IN_A_CALL) {
                let found = self.of.stored.identities_of(search_id, file_id, records).await?;
                let at = |record| StudyAt { search_id, file_id, record };
                read.extend(found.into_iter().map(|study| known(at(study.record), study)));
            }
        }
        Ok(read)
    }

    /// Whether a study is to be compared: its file was read to its end, or is leaving.
    async fn is_there(&mut self, at: StudyAt) -> Result<bool, StoreError> {
        Ok(self.leaving == Some((at.search_id, at.file_id)) || self.lists(at).await?)
    }

    /// Whether the file of a study was read to its end.
    async fn lists(&mut self, at: StudyAt) -> Result<bool, StoreError> {
        if !self.files.contains_key(&at.search_id) {
            let files = self.of.stored.parsed(at.search_id).await?;
            self.files.insert(at.search_id, files);
        }
        Ok(self.listed(at).is_some())
    }

    /// The file of a study, if it was read to its end.
    fn listed(&self, at: StudyAt) -> Option<&ParsedFile> {
        self.files.get(&at.search_id)?.iter().find(|file| file.file_id == at.file_id)
    }
}

fn known(at: StudyAt, identity: Identity) -> (StudyAt, (Identity, Content)) {
    let content = identity.fields.content();
    (at, (identity, content))
}

/// What the table says of two, as far as it says anything.
fn tier(told: &mut Told, one: (Content, &Fields), other: (Content, &Fields)) -> Option<(Tier, Reason)> {
    let (lesser, greater) = if one.0 <= other.0 { (one, other) } else { (other, one) };
    *told.entry((lesser.0, greater.0)).or_insert_with(|| compare(lesser.1, greater.1))
}
