//! Duplicates among the studies of a project.
//!
//! The matching rules are in the crate `duplicates`. The earliest of several studies of the same work is kept, and each
//! other one has a mark that names it. A possible duplicate has a mark as well. All of them stay stored: reviewers
//! choose which one to keep, and their decisions take precedence over the rules.
//!
//! Studies are ordered by the announcement of their searches, by file and by record. The result does not depend on when
//! they were read: [`marks`] is a pure function of the stored studies.
//!
//! - [`Duplicate`]: a mark and its stored form;
//! - [`Decisions`]: the decisions of reviewers.

mod decisions;
mod mark;

use std::collections::BTreeMap;

pub use ::duplicates::{Content, Edge, Fields, Reason, Tier, Verdict, compare};
use references::Reference;

pub use self::decisions::{DECISIONS, Decision, DecisionFault, DecisionSubject, Decisions, MAX_DECISIONS};
pub use self::mark::Duplicate;
use crate::vocabulary::ParsedFile;
pub use crate::vocabulary::StudyRef;

/// The compared fields of a study.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// The record number in the file.
    pub record: u64,
    /// The compared fields.
    pub fields: Fields,
    /// `true` if the study has a mark.
    pub is_marked: bool,
}

impl Identity {
    /// Returns the identity of record `record` of a file, without a mark.
    pub fn of(record: u64, reference: &Reference) -> Self {
        Self { record, fields: Fields::new(reference), is_marked: false }
    }
}

/// The keys of a study, by which candidates are found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StudyKeys {
    /// The record number in the file.
    pub record: u64,
    /// The [`Fields::keys`] of the study, possibly without keys that no other study of the project has. `None` if an
    /// earlier version stored the study without keys and they are not computed yet.
    pub keys: Option<Vec<u64>>,
    /// `true` if the study has a mark.
    pub is_marked: bool,
}

/// The number of changes of a project so far. Each mark contains the revision of its worker and is replaced only by
/// one with an equal or later revision, so the order of the writes does not matter.
pub type Revision = u64;

/// A study that shares a key with others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Candidate {
    /// The shared key: one of [`Fields::keys`].
    pub key: u64,
    /// The study.
    pub at: StudyRef,
}

/// A study in a comparison.
#[derive(Debug, Clone, Copy)]
pub struct ComparedStudy<'a> {
    /// The file that contains the study.
    pub file: &'a ParsedFile,
    /// The compared fields of the study.
    pub identity: &'a Identity,
    /// The fingerprint of these fields.
    pub content: Content,
}

impl<'a> ComparedStudy<'a> {
    /// Returns study `identity` of a file.
    pub fn of(file: &'a ParsedFile, identity: &'a Identity) -> Self {
        Self { file, identity, content: identity.fields.content() }
    }

    /// Returns the location of the study.
    pub fn at(&self) -> StudyRef {
        self.file.study(self.identity.record)
    }
}

/// Returns the mark of each study, as far as it follows from these studies, in the order of the project.
pub fn marks(
    studies: &[ComparedStudy<'_>],
    edges: &[Edge],
    decisions: &Decisions,
) -> Vec<(StudyRef, Option<Duplicate>)> {
    let mut studies = studies.to_vec();
    studies.sort_by_key(|study| study.file.order(study.identity.record));
    let places: BTreeMap<StudyRef, usize> =
        studies.iter().enumerate().map(|(place, study)| (study.at(), place)).collect();
    let member = |study: &ComparedStudy<'_>| ::duplicates::Member {
        content: study.content,
        keep: decisions.keeps(study.at()),
    };
    let members: Vec<_> = studies.iter().map(member).collect();
    let contents: BTreeMap<Content, Fields> =
        studies.iter().map(|study| (study.content, study.identity.fields.clone())).collect();
    let decided: Vec<_> = decisions
        .verdicts()
        .filter_map(|((one, other), verdict)| {
            let pair = (*places.get(&one)?, *places.get(&other)?);
            Some(::duplicates::ReviewerDecision { pair, verdict })
        })
        .collect();
    let found = ::duplicates::marks(&members, &contents, edges, &decided);
    let named = |mark: ::duplicates::Mark| {
        let of = studies.get(mark.of)?;
        let StudyRef { search_id, file_id, record } = of.at();
        let (position, tier, reason) = (of.file.position, mark.tier, mark.reason);
        Some(Duplicate { search_id, file_id, position, record, tier, reason })
    };
    studies.iter().zip(found).map(|(study, mark)| (study.at(), mark.and_then(named))).collect()
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::ids::{FileId, SearchId};
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
    fn earliest_announced_search_keeps_its_study() {
        let (late, early) = (file(1, 200), file(2, 100));
        let (one, other) = (study(1, "10.1000/a"), study(1, "10.1000/a"));
        let both = [ComparedStudy::of(&late, &one), ComparedStudy::of(&early, &other)];
        let found = marks(&both, &[], &Decisions::default());
        assert_eq!(found[0], (early.study(1), None));
        let (at, mark) = found[1];
        let mark = mark.unwrap();
        assert_eq!((at, mark.of(), mark.tier), (late.study(1), early.study(1), Tier::Certain));
    }

    #[test]
    fn decisions_override_the_rules() {
        let (first, second) = (file(1, 100), file(2, 200));
        let (one, other) = (study(1, "10.1000/a"), study(1, "10.1000/a"));
        let both = [ComparedStudy::of(&first, &one), ComparedStudy::of(&second, &other)];
        let mut decisions = Decisions::default();
        let mut say = |about| {
            decisions
                .add(Decision { at: jiff::Timestamp::UNIX_EPOCH, by: "berg".to_owned(), about })
                .unwrap();
            let found = marks(&both, &[], &decisions);
            found.into_iter().find_map(|(at, mark)| mark.map(|mark| (at, mark.of())))
        };
        let (a, b) = (first.study(1), second.study(1));
        assert_eq!(say(DecisionSubject::Keep { study: b, keep: true }), Some((a, b)));
        assert_eq!(say(DecisionSubject::Pair { studies: (b, a), verdict: Some(Verdict::Different) }), None);
        assert_eq!(say(DecisionSubject::Pair { studies: (a, b), verdict: None }), Some((a, b)));
        assert_eq!(say(DecisionSubject::Keep { study: b, keep: false }), Some((b, a)));
    }
}
