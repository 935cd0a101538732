//! Decisions of reviewers about duplicates: two studies are the same or different, or one of them is to be kept.
//!
//! All decisions of a project form one record. A decision is stored in a session that also sends the command to
//! compare the studies again, so either both happen or neither does, and concurrent decisions are never lost. Decisions
//! about many pairs at once ([`bulk`]) are stored separately, and undone as a whole.

pub(crate) mod bulk;
pub(crate) mod kind;

use imports::duplicates::{DECISIONS, Decision, DecisionFault, DecisionSubject, Decisions};
use imports::messages::CompareStudies;
use imports::{ParseCommand, ProjectId, StudyRef};
use jiff::Timestamp;
use messages::StoreError;
use outbox::session::CommitError;
use outbox::{Key, Record};

use self::kind::DecisionKind;
use crate::activity::{self, Action, Activity};
use crate::content;
use crate::tries::MAX_TRIES;
use crate::{Error, ProjectAccess, SearchService};

/// The outcome of a decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DecisionOutcome {
    /// The decision is in effect.
    Accepted {
        /// `true` if the decision was not in effect before, so that marks may change.
        is_new: bool,
    },
    /// Another decision about the studies is in effect, and the request requires that there is none. Nothing is
    /// changed.
    Decided(EffectiveDecision),
    /// Nothing is changed.
    Refused(DecisionRefusal),
    /// The study at this index of the request does not exist.
    Unknown(usize),
}

/// A decision that is in effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EffectiveDecision {
    /// The time of the decision.
    pub at: Timestamp,
    /// The reviewer.
    pub by: String,
    /// The decision.
    pub decision: DecisionKind,
}

/// A request to decide about studies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DecisionRequest<'a> {
    /// The decision.
    pub decision: DecisionKind,
    /// Two studies, or the one to keep. If another study follows the one to keep, both are also the same work.
    pub studies: &'a [StudyRef],
    /// `true` to change nothing if a different decision about the two studies is in effect.
    pub if_undecided: bool,
    /// The time of the decision that an `undo` or `unkeep` undoes. If another decision about the studies is in effect,
    /// nothing is changed.
    pub undoes: Option<Timestamp>,
}

/// Reasons to refuse a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecisionRefusal {
    /// The number of studies is wrong.
    #[error(
        "\"same\", \"different\" and \"undo\" apply to two studies, \"unkeep\" to one, and \"keep\" to one or two"
    )]
    Number,
    /// Another decision than `undo` and `unkeep` names the decision that it undoes.
    #[error("\"undoes\" belongs to \"undo\" and \"unkeep\"")]
    UndoesNothing,
    /// The decision contradicts others, or there are too many.
    #[error(transparent)]
    Decision(#[from] DecisionFault),
}

pub(crate) fn key(project: ProjectId) -> Key {
    Key::new(DECISIONS, project.to_string())
}

fn read(project: ProjectId, record: Option<Record>) -> Result<Decisions, StoreError> {
    content::or_default(record, || format!("reading the decisions of project {project}"))
}

impl SearchService {
    /// Stores a decision about studies of a project and has them compared again. A decision that is already in effect
    /// changes nothing.
    ///
    /// # Errors
    /// Returns an error if a store is unavailable; the decision may or may not be stored.
    pub async fn decide(
        &self,
        project: ProjectId,
        DecisionRequest { decision, studies, if_undecided, undoes }: DecisionRequest<'_>,
        by: &str,
    ) -> Result<DecisionOutcome, Error> {
        let caller = ProjectAccess::to(project);
        // Requests with more studies are refused below.
        for (place, study) in studies.iter().enumerate().take(2) {
            let StudyRef { search_id, file_id, record } = *study;
            let stored = self.stored(&caller, search_id).await?;
            let is_read =
                stored.is_some_and(|stored| stored.files.iter().any(|file| file.file_id == file_id));
            if !is_read || self.study(search_id, file_id, record).await?.is_none() {
                return Ok(DecisionOutcome::Unknown(place));
            }
        }
        let Some((about, first)) = decision.about(studies).zip(studies.first()) else {
            return Ok(DecisionOutcome::Refused(DecisionRefusal::Number));
        };
        if undoes.is_some() && !matches!(decision, DecisionKind::Undo | DecisionKind::Unkeep) {
            return Ok(DecisionOutcome::Refused(DecisionRefusal::UndoesNothing));
        }
        for _ in 0..MAX_TRIES {
            let mut session = self.entry.session(first.search_id);
            let single = session.read(key(project)).await?;
            let layers = bulk::layers_of(&mut session, self.entry.sessions.records.as_ref(), project).await?;
            let mut decisions = read(project, single)?.with_layers(layers);
            let other = undoes.and_then(|undone| other_than(undone, &decisions, &about));
            let first = contradiction(&decisions, &about).filter(|_| if_undecided);
            if let Some(current) = other.or(first) {
                return Ok(DecisionOutcome::Decided(current));
            }
            let at = decisions.next_time(self.host().now());
            let mut is_new = false;
            for about in &about {
                match decisions.add(Decision { at, by: by.to_owned(), about: *about }) {
                    Ok(added) => is_new |= added,
                    Err(fault) => return Ok(DecisionOutcome::Refused(fault.into())),
                }
            }
            if !is_new {
                return Ok(DecisionOutcome::Accepted { is_new });
            }
            session.write(key(project), content::of(&decisions, "serializing a decision")?);
            let command = CompareStudies { project_id: project, studies: studies.to_vec() };
            session.send(&ParseCommand::CompareStudies(command))?;
            let action = Action::Decided { decision, studies: studies.to_vec() };
            activity::append(&mut session, project, Activity { at, by: by.to_owned(), action }).await?;
            if self.committed(session, "stored a decision about studies").await? {
                return Ok(DecisionOutcome::Accepted { is_new });
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Returns all decisions of a project: the single ones in chronological order, with the bulk actions in effect.
    pub async fn decisions(&self, project: ProjectId) -> Result<Decisions, StoreError> {
        bulk::in_effect(self.entry.sessions.records.as_ref(), project).await
    }
}

/// Returns the decision in effect that differs from one of these.
fn contradiction(decisions: &Decisions, about: &[DecisionSubject]) -> Option<EffectiveDecision> {
    about.iter().find_map(|about| {
        let DecisionSubject::Pair { studies: (one, other), verdict } = *about else { return None };
        let decided = decisions.decided(one, other).filter(|_| decisions.verdict(one, other) != verdict)?;
        Some(decided.clone().into())
    })
}

/// Returns the decision in effect if it is another one than the decision to undo, which was made at `undone`.
fn other_than(
    undone: Timestamp,
    decisions: &Decisions,
    about: &[DecisionSubject],
) -> Option<EffectiveDecision> {
    let current = about.iter().find_map(|about| decisions.in_effect(*about))?;
    (current.at != undone).then(|| current.clone().into())
}

impl From<Decision> for EffectiveDecision {
    fn from(Decision { at, by, about }: Decision) -> Self {
        Self { at, by, decision: DecisionKind::of(&about) }
    }
}
