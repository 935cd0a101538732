//! The mark of a study that is there before, and how it is stored.

use std::cmp::Reverse;

use ::duplicates::{Reason, Tier};
use serde::{Deserialize, Serialize};

use crate::{FileId, StudyId};

/// The mark of a study that is there before. Of two marks the surer one stands, and of two that are as sure that of the
/// earlier study.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Stored", into = "Stored")]
pub struct Duplicate {
    /// The study that it repeats.
    pub of: StudyId,
    /// That study's file.
    pub file_id: FileId,
    /// The place of that file among those of the search, from 0.
    pub position: u32,
    /// That study's record.
    pub record: u64,
    /// How sure it is that the two are the same work. Those that are only possible are not marked.
    pub tier: Tier,
    /// What the two have in common.
    pub reason: Reason,
}

impl Duplicate {
    /// By this order the mark that stands is the first.
    pub fn rank(&self) -> (Reverse<Tier>, u32, u64) {
        (Reverse(self.tier), self.position, self.record)
    }
}

/// A mark in a database that a release before may read: it knows three reasons, and takes every mark for a certain one.
#[derive(Serialize, Deserialize)]
struct Stored {
    of: StudyId,
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
    fn from(Duplicate { of, file_id, position, record, tier, reason }: Duplicate) -> Self {
        let earlier = Earlier::to(reason);
        let line = (earlier.reason() != reason).then_some(reason);
        Self { of, file_id, position, record, reason: earlier, tier: Some(tier), line }
    }
}

impl From<Stored> for Duplicate {
    fn from(Stored { of, file_id, position, record, reason, tier, line }: Stored) -> Self {
        let reason = line.unwrap_or_else(|| reason.reason());
        Self { of, file_id, position, record, tier: tier.unwrap_or(Tier::Certain), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mark_comes_back_as_it_was_stored_and_has_a_reason_that_earlier_releases_know() {
        let of = StudyId::of(
            crate::SearchId::from_uuid(uuid::Uuid::nil()),
            FileId::from_uuid(uuid::Uuid::nil()),
            1,
        );
        let file_id = FileId::from_uuid(uuid::Uuid::nil());
        for reason in Reason::ALL {
            let mark = Duplicate { of, file_id, position: 1, record: 2, tier: Tier::Likely, reason: *reason };
            let stored = serde_json::to_value(mark).unwrap();
            assert!(["doi", "pmid", "title_year_author"].contains(&stored["reason"].as_str().unwrap()));
            assert_eq!(serde_json::from_value::<Duplicate>(stored).unwrap(), mark);
        }
    }

    #[test]
    fn a_mark_of_an_earlier_release_is_certain() {
        let id = uuid::Uuid::nil();
        let stored =
            serde_json::json!({ "of": id, "file_id": id, "position": 0, "record": 4, "reason": "doi" });
        let mark: Duplicate = serde_json::from_value(stored).unwrap();
        assert_eq!((mark.tier, mark.reason, mark.record), (Tier::Certain, Reason::Doi, 4));
    }

    #[test]
    fn the_surer_mark_stands_and_then_that_of_the_earlier_study() {
        let id = uuid::Uuid::nil();
        let of = StudyId::of(crate::SearchId::from_uuid(id), FileId::from_uuid(id), 1);
        let mark = |tier, position, record| Duplicate {
            of,
            file_id: FileId::from_uuid(id),
            position,
            record,
            tier,
            reason: Reason::DoiTitle,
        };
        let in_order = [
            mark(Tier::Certain, 0, 9),
            mark(Tier::Certain, 1, 2),
            mark(Tier::Certain, 1, 3),
            mark(Tier::Likely, 0, 1),
            mark(Tier::Possible, 0, 0),
        ];
        assert!(in_order.is_sorted_by_key(Duplicate::rank));
    }
}
