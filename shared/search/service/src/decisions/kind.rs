//! The types of decisions, and the rules of bulk actions.

use imports::StudyRef;
use imports::duplicates::{DecisionSubject, Verdict};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The type of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum DecisionKind {
    /// Two studies are the same work.
    Same,
    /// Two studies are not the same work.
    Different,
    /// The decision about two studies is undone; the matching rules apply again.
    Undo,
    /// This study is kept among those that are the same work.
    Keep,
    /// The earliest study is kept, as if this one had not been chosen.
    Unkeep,
}

impl DecisionKind {
    /// Returns the subjects of the decision, or `None` if the number of studies is wrong.
    pub(super) fn about(self, studies: &[StudyRef]) -> Option<Vec<DecisionSubject>> {
        let pair = |one, other, verdict| DecisionSubject::Pair { studies: (one, other), verdict };
        let keep = |study, keep| DecisionSubject::Keep { study, keep };
        match (self, studies) {
            (Self::Same, &[one, other]) => Some(vec![pair(one, other, Some(Verdict::Same))]),
            (Self::Different, &[one, other]) => Some(vec![pair(one, other, Some(Verdict::Different))]),
            (Self::Undo, &[one, other]) => Some(vec![pair(one, other, None)]),
            (Self::Keep, &[study]) => Some(vec![keep(study, true)]),
            (Self::Keep, &[study, other]) => {
                Some(vec![pair(study, other, Some(Verdict::Same)), keep(study, true)])
            }
            (Self::Unkeep, &[study]) => Some(vec![keep(study, false)]),
            _ => None,
        }
    }

    /// Returns the type of a stored decision.
    pub fn of(about: &DecisionSubject) -> Self {
        match about {
            DecisionSubject::Pair { verdict: Some(Verdict::Same), .. } => Self::Same,
            DecisionSubject::Pair { verdict: Some(Verdict::Different), .. } => Self::Different,
            DecisionSubject::Pair { verdict: None, .. } => Self::Undo,
            DecisionSubject::Keep { keep: true, .. } => Self::Keep,
            DecisionSubject::Keep { keep: false, .. } => Self::Unkeep,
        }
    }
}

/// A rule that selects pairs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Rule {
    /// Undecided certain pairs are the same.
    Certain,
    /// Undecided pairs with the same DOI are the same.
    SameDoi,
    /// Undecided pairs with the same PubMed ID and title are the same.
    SamePmidAndTitle,
    /// The study of a database is kept in certain and likely pairs.
    PreferredSource,
}
