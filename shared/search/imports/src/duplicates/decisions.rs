//! Decisions of reviewers about the studies of a project.

use std::collections::BTreeMap;

use ::duplicates::Verdict;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::vocabulary::StudyRef;

/// The maximum number of decisions of one project: about 3 MB of the 16 MB that a MongoDB document can have
/// (<https://www.mongodb.com/docs/manual/reference/limits/>).
pub const MAX_DECISIONS: usize = 10_000;

/// The kind of the record that contains the decisions of a project. The record has the id of the project.
pub const DECISIONS: &str = "decisions";

/// A decision and its author.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// The time of the decision.
    pub at: Timestamp,
    /// The reviewer.
    pub by: String,
    /// The subject.
    pub about: DecisionSubject,
}

/// The subject of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecisionSubject {
    /// Two studies are the same work or not.
    Pair {
        /// The studies, in any order.
        studies: (StudyRef, StudyRef),
        /// The verdict; `None` undoes an earlier decision.
        #[serde(with = "words")]
        verdict: Option<Verdict>,
    },
    /// One study is kept among those that are the same work.
    Keep {
        /// The study.
        study: StudyRef,
        /// `false` undoes an earlier decision.
        keep: bool,
    },
}

impl DecisionSubject {
    /// Returns the studies that the decision is about.
    pub fn studies(&self) -> Vec<StudyRef> {
        match self {
            Self::Pair { studies: (one, other), .. } => vec![*one, *other],
            Self::Keep { study, .. } => vec![*study],
        }
    }
}

/// Reasons to refuse a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecisionFault {
    /// The decision names the same study twice.
    #[error("a study is the same as itself")]
    Itself,
    /// The project has the maximum number of decisions.
    #[error("the review has {MAX_DECISIONS} decisions, which is the maximum")]
    TooMany,
}

/// All decisions of a project, in chronological order. Undone decisions stay in the list.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<Decision>", into = "Vec<Decision>")]
pub struct Decisions {
    all: Vec<Decision>,
    /// Decisions that are stored elsewhere; they take effect by their time.
    layers: Vec<Decision>,
    verdicts: BTreeMap<(StudyRef, StudyRef), Verdict>,
    partners: BTreeMap<StudyRef, Vec<StudyRef>>,
    kept: BTreeMap<StudyRef, bool>,
}

impl Decisions {
    /// Returns all decisions, oldest first.
    pub fn all(&self) -> &[Decision] {
        &self.all
    }

    /// Adds a decision. Returns `true` if it changes anything.
    ///
    /// # Errors
    /// Returns an error if the decision is invalid or there are too many.
    pub fn add(&mut self, decision: Decision) -> Result<bool, DecisionFault> {
        match decision.about {
            DecisionSubject::Pair { studies: (one, other), .. } if one == other => {
                return Err(DecisionFault::Itself);
            }
            _ if self.holds(decision.about) => return Ok(false),
            _ if self.all.len() >= MAX_DECISIONS => return Err(DecisionFault::TooMany),
            _ => {}
        }
        self.count(decision.about);
        self.all.push(decision);
        Ok(true)
    }

    /// Returns these decisions together with others that are stored elsewhere. Which one of two decisions is in effect
    /// depends on their time. If the times are equal, the one of `layers` is older.
    #[must_use]
    pub fn with_layers(self, layers: Vec<Decision>) -> Self {
        let mut decisions = Self { all: self.all, layers, ..Self::default() };
        let ordered: Vec<_> = decisions.ordered().into_iter().map(|decision| decision.about).collect();
        for about in ordered {
            decisions.count(about);
        }
        decisions
    }

    /// Returns all decisions in the order in which they take effect. Decisions of one list keep their order, even if
    /// the clock of a machine was behind.
    fn ordered(&self) -> Vec<&Decision> {
        let mut latest = Timestamp::MIN;
        let single = self.all.iter().map(move |decision| {
            latest = latest.max(decision.at);
            (latest, decision)
        });
        let mut all: Vec<_> =
            self.layers.iter().map(|decision| (decision.at, decision)).chain(single).collect();
        all.sort_by_key(|(at, _)| *at);
        all.into_iter().map(|(_, decision)| decision).collect()
    }

    /// Returns the time of a new decision: `now`, or later if the clock of another machine was ahead. Therefore, the
    /// new decision takes effect.
    pub fn next_time(&self, now: Timestamp) -> Timestamp {
        let latest = self.layers.iter().chain(&self.all).map(|decision| decision.at).max();
        let after = latest.and_then(|at| at.checked_add(jiff::SignedDuration::from_nanos(1)).ok());
        after.map_or(now, |after| after.max(now))
    }

    /// Returns the decision by which the current verdict on two studies came into effect.
    pub fn decided(&self, one: StudyRef, other: StudyRef) -> Option<&Decision> {
        let verdict = self.verdict(one, other)?;
        let wanted = sorted(one, other);
        let is_it = |decision: &&Decision| match decision.about {
            DecisionSubject::Pair { studies: (one, other), verdict: made } => {
                sorted(one, other) == wanted && made == Some(verdict)
            }
            DecisionSubject::Keep { .. } => false,
        };
        self.ordered().into_iter().rev().find(is_it)
    }

    /// Returns the decision in effect that a decision about the same studies would undo: the one by which their current
    /// verdict came into effect, or by which the study is kept.
    pub fn in_effect(&self, about: DecisionSubject) -> Option<&Decision> {
        match about {
            DecisionSubject::Pair { studies: (one, other), .. } => self.decided(one, other),
            DecisionSubject::Keep { study, .. } => {
                let kept = DecisionSubject::Keep { study, keep: true };
                let kept = |decision: &&Decision| decision.about == kept;
                self.ordered().into_iter().rev().find(kept).filter(|_| self.keeps(study))
            }
        }
    }

    fn holds(&self, about: DecisionSubject) -> bool {
        match about {
            DecisionSubject::Pair { studies: (one, other), verdict } => {
                self.verdicts.get(&sorted(one, other)).copied() == verdict
            }
            DecisionSubject::Keep { study, keep } => self.keeps(study) == keep,
        }
    }

    fn count(&mut self, about: DecisionSubject) {
        match about {
            DecisionSubject::Pair { studies: (one, other), verdict } => {
                let (one, other) = sorted(one, other);
                match verdict {
                    Some(verdict) => self.verdicts.insert((one, other), verdict),
                    None => self.verdicts.remove(&(one, other)),
                };
                for (one, other) in [(one, other), (other, one)] {
                    let partners = self.partners.entry(one).or_default();
                    partners.retain(|partner| *partner != other);
                    if verdict == Some(Verdict::Same) {
                        partners.push(other);
                    }
                }
            }
            DecisionSubject::Keep { study, keep } => {
                self.kept.insert(study, keep);
            }
        }
    }

    /// Returns the current verdicts, each pair once.
    pub fn verdicts(&self) -> impl Iterator<Item = ((StudyRef, StudyRef), Verdict)> {
        self.verdicts.iter().map(|(pair, verdict)| (*pair, *verdict))
    }

    /// Returns the current verdict on two studies.
    pub fn verdict(&self, one: StudyRef, other: StudyRef) -> Option<Verdict> {
        self.verdicts.get(&sorted(one, other)).copied()
    }

    /// Returns the studies that a reviewer has declared to be the same as `study`.
    pub fn same_as(&self, study: StudyRef) -> &[StudyRef] {
        self.partners.get(&study).map_or(&[], Vec::as_slice)
    }

    /// Returns `true` if a reviewer has chosen to keep this study.
    pub fn keeps(&self, study: StudyRef) -> bool {
        self.kept.get(&study).copied().unwrap_or_default()
    }
}

fn sorted(one: StudyRef, other: StudyRef) -> (StudyRef, StudyRef) {
    (one.min(other), one.max(other))
}

impl From<Vec<Decision>> for Decisions {
    fn from(all: Vec<Decision>) -> Self {
        let mut decisions = Self::default();
        all.iter().for_each(|decision| decisions.count(decision.about));
        Self { all, ..decisions }
    }
}

impl From<Decisions> for Vec<Decision> {
    fn from(decisions: Decisions) -> Self {
        decisions.all
    }
}

/// The serialized form of a verdict.
mod words {
    use ::duplicates::Verdict;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum StoredVerdict {
        Same,
        Different,
        TakenBack,
    }

    // The signature that serde requires.
    pub(super) fn serialize<S: Serializer>(
        verdict: &Option<Verdict>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let word = match verdict {
            Some(Verdict::Same) => StoredVerdict::Same,
            Some(Verdict::Different) => StoredVerdict::Different,
            None => StoredVerdict::TakenBack,
        };
        word.serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Verdict>, D::Error> {
        Ok(match StoredVerdict::deserialize(deserializer)? {
            StoredVerdict::Same => Some(Verdict::Same),
            StoredVerdict::Different => Some(Verdict::Different),
            StoredVerdict::TakenBack => None,
        })
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::{FileId, SearchId};

    fn study(record: u64) -> StudyRef {
        let id = Uuid::nil();
        StudyRef { search_id: SearchId::from_uuid(id), file_id: FileId::from_uuid(id), record }
    }

    fn decision(about: DecisionSubject) -> Decision {
        Decision { at: Timestamp::UNIX_EPOCH, by: "berg".to_owned(), about }
    }

    #[test]
    fn last_decision_holds_and_all_are_listed() {
        let mut decisions = Decisions::default();
        let pair = |studies, verdict| decision(DecisionSubject::Pair { studies, verdict });
        let (a, b) = (study(1), study(2));
        assert_eq!(decisions.add(pair((b, a), Some(Verdict::Same))), Ok(true));
        assert_eq!((decisions.verdict(a, b), decisions.same_as(a)), (Some(Verdict::Same), &[b][..]));
        // A repeated decision changes nothing.
        assert_eq!(decisions.add(pair((a, b), Some(Verdict::Same))), Ok(false));
        assert_eq!(decisions.add(pair((a, b), Some(Verdict::Different))), Ok(true));
        assert_eq!((decisions.verdict(b, a), decisions.same_as(a)), (Some(Verdict::Different), &[][..]));
        assert_eq!(decisions.add(pair((a, b), None)), Ok(true));
        assert_eq!((decisions.verdict(a, b), decisions.all().len()), (None, 3));
        assert_eq!(decisions.add(pair((a, b), None)), Ok(false));

        let stored = serde_json::to_value(&decisions).unwrap();
        assert_eq!(stored[0]["about"]["pair"]["verdict"], "same");
        assert_eq!(serde_json::from_value::<Decisions>(stored).unwrap(), decisions);
    }

    #[test]
    fn layers_apply_by_time_and_are_not_stored() {
        let (a, b, c) = (study(1), study(2), study(3));
        let at = |second: i64, studies, verdict, by: &str| Decision {
            at: Timestamp::from_second(second).unwrap(),
            by: by.to_owned(),
            about: DecisionSubject::Pair { studies, verdict },
        };
        let (same, different) = (Some(Verdict::Same), Some(Verdict::Different));
        let mut decisions = Decisions::default();
        decisions.add(at(10, (a, b), different, "ann")).unwrap();
        decisions.add(at(30, (b, c), different, "bob")).unwrap();
        let layer = [(a, b), (b, c), (a, c)].map(|pair| at(20, pair, same, "cleo")).to_vec();
        let layered = decisions.clone().with_layers(layer);
        // The layer overrules the earlier decision, but not the later one.
        assert_eq!(
            [layered.verdict(a, b), layered.verdict(b, c), layered.verdict(a, c)],
            [same, different, same]
        );
        let authors = [(a, b), (b, c)].map(|(one, other)| layered.decided(one, other).unwrap().by.as_str());
        assert_eq!(authors, ["cleo", "bob"]);
        assert!(layered.next_time(Timestamp::UNIX_EPOCH) > Timestamp::from_second(30).unwrap());
        // Without the layer, the earlier decisions are in effect again.
        let stored = serde_json::from_value::<Decisions>(serde_json::to_value(&layered).unwrap()).unwrap();
        assert_eq!(stored, decisions);
    }

    #[test]
    fn invalid_or_excess_decisions_are_refused() {
        let mut decisions = Decisions::default();
        let itself =
            decision(DecisionSubject::Pair { studies: (study(1), study(1)), verdict: Some(Verdict::Same) });
        assert_eq!(decisions.add(itself), Err(DecisionFault::Itself));
        for record in 0..MAX_DECISIONS as u64 {
            decisions.add(decision(DecisionSubject::Keep { study: study(record), keep: true })).unwrap();
        }
        let another = decision(DecisionSubject::Keep { study: study(1), keep: false });
        assert_eq!(decisions.add(another), Err(DecisionFault::TooMany));
    }
}
