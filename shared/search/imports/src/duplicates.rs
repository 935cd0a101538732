//! Which studies of a project are there twice.
//!
//! What two records have to have in common is the table of the crate `duplicates`. Of those that are the same work, the
//! earliest is the one to keep, and each other one has a mark that names it; so has one that is only possibly the same. All
//! of them stay: which one a review keeps is for the reviewer to say, and what somebody has said comes before the table.
//!
//! Studies are in the order of their searches' announcements, of files and of records. Nothing depends on when they were
//! read: [`marks`] is a function of what is there.
//!
//! - [`Duplicate`]: a mark, and how it is stored;
//! - [`Decisions`]: what people have said of studies.

mod decisions;
mod mark;

use std::collections::BTreeMap;

pub use ::duplicates::{Content, Edge, Fields, Reason, Tier, Verdict, compare};
use references::Reference;
use serde::{Deserialize, Serialize};

pub use self::decisions::{About, DECISIONS, Decision, DecisionFault, Decisions, MOST_DECISIONS};
pub use self::mark::Duplicate;
use crate::ids::{FileId, SearchId};
use crate::studies::{ParsedFile, StudyId};

/// Where a study is.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct StudyAt {
    /// The search that brought it.
    pub search_id: SearchId,
    /// The file it was in.
    pub file_id: FileId,
    /// Its place among the file's records, from 1.
    pub record: u64,
}

impl StudyAt {
    /// The study's id.
    pub fn id(&self) -> StudyId {
        StudyId::of(self.search_id, self.file_id, self.record)
    }
}

/// What a study is recognised by.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// Its place among the file's records.
    pub record: u64,
    /// What of it is compared.
    pub fields: Fields,
    /// Whether it has a mark.
    pub is_marked: bool,
}

impl Identity {
    /// Of record `record` of a file, which has no mark.
    pub fn of(record: u64, reference: &Reference) -> Self {
        Self { record, fields: Fields::new(reference), is_marked: false }
    }
}

/// By what others find a study.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keyed {
    /// Its place among the file's records.
    pub record: u64,
    /// [`Fields::keys`] of it, without some that no other study of the project has; none where a release before has stored the study,
    /// and they are not made yet.
    pub keys: Option<Vec<u64>>,
    /// Whether it has a mark.
    pub is_marked: bool,
}

/// How often what a project holds has changed. Whoever marks says by which state; a mark gives way only to one of a later
/// state, so it does not matter who writes last.
pub type Revision = u64;

/// A study that has a key in common with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Relative {
    /// What they have in common: one of [`Fields::keys`].
    pub key: u64,
    /// The study.
    pub at: StudyAt,
}

/// A study that is compared with others.
#[derive(Debug, Clone, Copy)]
pub struct Compared<'a> {
    /// The file it was in.
    pub file: &'a ParsedFile,
    /// What it is recognised by.
    pub identity: &'a Identity,
    /// Of which content that is.
    pub content: Content,
}

impl<'a> Compared<'a> {
    /// Study `identity` of a file.
    pub fn of(file: &'a ParsedFile, identity: &'a Identity) -> Self {
        Self { file, identity, content: identity.fields.content() }
    }

    /// Where it is.
    pub fn at(&self) -> StudyAt {
        self.file.study(self.identity.record)
    }
}

/// What each study is marked with, as far as it follows from these; each of them once, in the order of the project.
pub fn marks(
    studies: &[Compared<'_>],
    edges: &[Edge],
    decisions: &Decisions,
) -> Vec<(StudyAt, Option<Duplicate>)> {
    let mut studies = studies.to_vec();
    studies.sort_by_key(|study| study.file.order(study.identity.record));
    let places: BTreeMap<StudyAt, usize> =
        studies.iter().enumerate().map(|(place, study)| (study.at(), place)).collect();
    let member = |study: &Compared<'_>| ::duplicates::Member {
        content: study.content,
        keep: decisions.keeps(study.at()),
    };
    let members: Vec<_> = studies.iter().map(member).collect();
    let contents: BTreeMap<Content, Fields> =
        studies.iter().map(|study| (study.content, study.identity.fields.clone())).collect();
    let said: Vec<_> = decisions
        .verdicts()
        .filter_map(|((one, other), verdict)| {
            let pair = (*places.get(&one)?, *places.get(&other)?);
            Some(::duplicates::ReviewerDecision { pair, verdict })
        })
        .collect();
    let found = ::duplicates::marks(&members, &contents, edges, &said);
    let named = |mark: ::duplicates::Mark| {
        let of = studies.get(mark.of)?;
        let StudyAt { search_id, file_id, record } = of.at();
        let (position, tier, reason) = (of.file.position, mark.tier, mark.reason);
        Some(Duplicate { search_id, file_id, position, record, tier, reason })
    };
    studies.iter().zip(found).map(|(study, mark)| (study.at(), mark.and_then(named))).collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::messages::ObjectRef;

    fn file(search: u128, announced_second: i64) -> ParsedFile {
        ParsedFile {
            search_id: SearchId::from_uuid(Uuid::from_u128(search)),
            file_id: FileId::from_uuid(Uuid::from_u128(search)),
            position: 0,
            name: "a.ris".to_owned(),
            parts: Vec::new(),
            object: ObjectRef { bucket: "b".to_owned(), key: "k".to_owned(), version: None, size_bytes: 1 },
            announced_at: jiff::Timestamp::from_second(announced_second).ok(),
        }
    }

    fn study(record: u64, doi: &str) -> Identity {
        let reference = Reference {
            title: "Zinc for the common cold in children".to_owned(),
            authors: vec!["Berg, A.".to_owned()],
            year: Some(2020),
            doi: Some(doi.to_owned()),
            ..Reference::default()
        };
        Identity::of(record, &reference)
    }

    #[test]
    fn the_study_of_the_search_that_was_announced_first_is_the_one_to_keep() {
        let (late, early) = (file(1, 200), file(2, 100));
        let (one, other) = (study(1, "10.1000/a"), study(1, "10.1000/a"));
        let both = [Compared::of(&late, &one), Compared::of(&early, &other)];
        let found = marks(&both, &[], &Decisions::default());
        assert_eq!(found[0], (early.study(1), None));
        let (at, mark) = found[1];
        let mark = mark.unwrap();
        assert_eq!((at, mark.of(), mark.tier), (late.study(1), early.study(1), Tier::Certain));
    }

    #[test]
    fn what_somebody_has_said_comes_first() {
        let (first, second) = (file(1, 100), file(2, 200));
        let (one, other) = (study(1, "10.1000/a"), study(1, "10.1000/a"));
        let both = [Compared::of(&first, &one), Compared::of(&second, &other)];
        let mut decisions = Decisions::default();
        let mut say = |about| {
            decisions
                .add(Decision { at: jiff::Timestamp::UNIX_EPOCH, by: "berg".to_owned(), about })
                .unwrap();
            let found = marks(&both, &[], &decisions);
            found.into_iter().find_map(|(at, mark)| mark.map(|mark| (at, mark.of())))
        };
        let (a, b) = (first.study(1), second.study(1));
        assert_eq!(say(About::Keep { study: b, keep: true }), Some((a, b)));
        assert_eq!(say(About::Pair { studies: (b, a), verdict: Some(Verdict::Different) }), None);
        assert_eq!(say(About::Pair { studies: (a, b), verdict: None }), Some((a, b)));
        assert_eq!(say(About::Keep { study: b, keep: false }), Some((b, a)));
    }
}
