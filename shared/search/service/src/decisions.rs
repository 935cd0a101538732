//! Decisions of reviewers about duplicates: two studies are the same or different, or one of them is to be kept.
//!
//! All decisions of a project form one record. A decision is stored in a session that also sends the command to
//! compare the studies again, so either both happen or neither does, and concurrent decisions are never lost.

use imports::duplicates::{DECISIONS, Decision, DecisionFault, DecisionSubject, Decisions, Verdict};
use imports::messages::CompareStudies;
use imports::{ParseCommand, ProjectId, StudyRef};
use messages::StoreError;
use outbox::Key;
use outbox::session::CommitError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::tries::MAX_TRIES;
use crate::{Error, ProjectAccess, SearchService};

/// The type of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = Word)]
pub enum DecisionKind {
    /// Two studies are the same work.
    Same,
    /// Two studies are not the same work.
    Different,
    /// The decision about two studies is undone; the matching rules apply again.
    Undo,
    /// Of all studies that are the same work, this one is kept.
    Keep,
    /// The earliest study is kept, as if this one had not been chosen.
    Unkeep,
}

/// The outcome of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DecisionOutcome {
    /// The decision is in effect.
    Accepted {
        /// `true` if it was not in effect before, so that marks may change.
        is_new: bool,
    },
    /// Nothing is changed.
    Refused(DecisionRefusal),
    /// The study at this index of the request does not exist.
    Unknown(usize),
}

/// Reasons to refuse a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecisionRefusal {
    /// The number of studies is wrong.
    #[error("\"same\", \"different\" and \"undo\" apply to two studies, \"keep\" and \"unkeep\" to one")]
    Number,
    /// The decision contradicts others, or there are too many.
    #[error(transparent)]
    Decision(#[from] DecisionFault),
}

impl DecisionKind {
    /// Returns the subject of the decision, or `None` if the number of studies is wrong.
    fn about(self, studies: &[StudyRef]) -> Option<DecisionSubject> {
        let pair = |verdict| {
            let [one, other] = studies else { return None };
            Some(DecisionSubject::Pair { studies: (*one, *other), verdict })
        };
        let keep = |keep| {
            let [study] = studies else { return None };
            Some(DecisionSubject::Keep { study: *study, keep })
        };
        match self {
            Self::Same => pair(Some(Verdict::Same)),
            Self::Different => pair(Some(Verdict::Different)),
            Self::Undo => pair(None),
            Self::Keep => keep(true),
            Self::Unkeep => keep(false),
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

pub(crate) fn key(project: ProjectId) -> Key {
    Key::new(DECISIONS, project.to_string())
}

fn read(project: ProjectId, body: Option<Value>) -> Result<Decisions, StoreError> {
    let decisions = body.map(|body| Decisions::deserialize(&body)).transpose();
    let doing = || format!("reading the decisions of project {project}");
    Ok(decisions.map_err(|error| StoreError::unusable(doing(), error))?.unwrap_or_default())
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
        word: DecisionKind,
        studies: &[StudyRef],
        by: &str,
    ) -> Result<DecisionOutcome, Error> {
        let caller = ProjectAccess::Only([project].into());
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
        let Some((about, first)) = word.about(studies).zip(studies.first()) else {
            return Ok(DecisionOutcome::Refused(DecisionRefusal::Number));
        };
        for _ in 0..MAX_TRIES {
            let mut session = self.entry.session(first.search_id);
            let body = session.read(key(project)).await?.map(|record| record.body);
            let mut decisions = read(project, body)?;
            let decision = Decision { at: self.host().now(), by: by.to_owned(), about };
            match decisions.add(decision) {
                Ok(true) => {}
                Ok(false) => return Ok(DecisionOutcome::Accepted { is_new: false }),
                Err(fault) => return Ok(DecisionOutcome::Refused(fault.into())),
            }
            let failed = |error| StoreError::unusable("serializing a decision", error);
            session.write(key(project), serde_json::to_value(&decisions).map_err(failed)?);
            let command = CompareStudies { project_id: project, studies: studies.to_vec() };
            session.send(&ParseCommand::CompareStudies(command))?;
            match self.commit(session, "stored a decision about studies").await {
                // Another decision in the same project was stored concurrently.
                Err(Error::Commit(error)) if error.is_refused() => {}
                done => return done.map(|()| DecisionOutcome::Accepted { is_new: true }),
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Returns all decisions of a project, in chronological order.
    pub async fn decisions(&self, project: ProjectId) -> Result<Decisions, StoreError> {
        let record = self.entry.sessions.records.record(&key(project)).await?;
        read(project, record.map(|record| record.body))
    }
}
