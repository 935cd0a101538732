//! What people say of duplicates: that two studies are the same work, or are not, and which one is to be kept.
//!
//! All of it is one record for each project. What is said is written down in a session that also has the studies compared
//! anew: so either both happens or neither does, and of two people who say something at once neither is forgotten.

use imports::duplicates::{About, DECISIONS, Decision, DecisionFault, Decisions, Verdict};
use imports::messages::CompareStudies;
use imports::{ParseCommand, ProjectId, StudyAt};
use messages::StoreError;
use outbox::Key;
use outbox::session::CommitError;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

use crate::{Error, ProjectAccess, SearchService, repair};

/// What can be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Word {
    /// Two studies are the same work.
    Same,
    /// Two studies are not the same work.
    Different,
    /// What was said of two studies is taken back: the rules decide.
    Undo,
    /// Of all studies that are the same work this one is to be kept.
    Keep,
    /// The earliest is to be kept, as if nothing had been said of this one.
    Unkeep,
}

/// What became of something that was said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decided {
    /// It holds. Whether it did not before.
    Accepted {
        /// Whether marks may change.
        is_new: bool,
    },
    /// Nothing is changed.
    Refused(Refused),
    /// There is no such study, by its place in the request.
    Unknown(usize),
}

/// Why something is not written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Too few or too many studies.
    #[error("\"same\", \"different\" and \"undo\" are said of two studies, \"keep\" and \"unkeep\" of one")]
    Number,
    /// What it says.
    #[error(transparent)]
    Decision(#[from] DecisionFault),
}

impl Word {
    /// What it says of studies.
    fn about(self, studies: &[StudyAt]) -> Option<About> {
        let pair = |verdict| {
            let [one, other] = studies else { return None };
            Some(About::Pair { studies: (*one, *other), verdict })
        };
        let keep = |keep| {
            let [study] = studies else { return None };
            Some(About::Keep { study: *study, keep })
        };
        match self {
            Self::Same => pair(Some(Verdict::Same)),
            Self::Different => pair(Some(Verdict::Different)),
            Self::Undo => pair(None),
            Self::Keep => keep(true),
            Self::Unkeep => keep(false),
        }
    }

    /// The word for what was said.
    pub fn of(about: &About) -> Self {
        match about {
            About::Pair { verdict: Some(Verdict::Same), .. } => Self::Same,
            About::Pair { verdict: Some(Verdict::Different), .. } => Self::Different,
            About::Pair { verdict: None, .. } => Self::Undo,
            About::Keep { keep: true, .. } => Self::Keep,
            About::Keep { keep: false, .. } => Self::Unkeep,
        }
    }
}

fn key(project: ProjectId) -> Key {
    Key::new(DECISIONS, project.to_string())
}

fn read(project: ProjectId, body: Option<Value>) -> Result<Decisions, StoreError> {
    let decisions = body.map(|body| Decisions::deserialize(&body)).transpose();
    let doing = || format!("reading what was said of the studies of project {project}");
    Ok(decisions.map_err(|error| StoreError::unusable(doing(), error))?.unwrap_or_default())
}

impl SearchService {
    /// Writes down what somebody says of studies of a project, and has them compared anew. Saying what holds already changes
    /// nothing.
    ///
    /// # Errors
    /// When a store did not answer; it may be written down or not.
    pub async fn decide(
        &self,
        project: ProjectId,
        word: Word,
        studies: &[StudyAt],
        by: &str,
    ) -> Result<Decided, Error> {
        let caller = ProjectAccess::Only([project].into());
        // More are refused, whatever they are.
        for (place, study) in studies.iter().enumerate().take(2) {
            let StudyAt { search_id, file_id, record } = *study;
            let stored = self.stored(&caller, search_id).await?;
            let is_read =
                stored.is_some_and(|stored| stored.files.iter().any(|file| file.file_id == file_id));
            if !is_read || self.study(search_id, file_id, record).await?.is_none() {
                return Ok(Decided::Unknown(place));
            }
        }
        let Some((about, first)) = word.about(studies).zip(studies.first()) else {
            return Ok(Decided::Refused(Refused::Number));
        };
        for _ in 0..repair::TRIES {
            let mut session = self.entry.session(first.search_id);
            let body = session.read(key(project)).await?.map(|record| record.body);
            let mut decisions = read(project, body)?;
            let decision = Decision { at: self.host().now(), by: by.to_owned(), about };
            match decisions.add(decision) {
                Ok(true) => {}
                Ok(false) => return Ok(Decided::Accepted { is_new: false }),
                Err(fault) => return Ok(Decided::Refused(fault.into())),
            }
            let failed = |error| StoreError::unusable("writing down what was said of studies", error);
            session.write(key(project), serde_json::to_value(&decisions).map_err(failed)?);
            let command = CompareStudies { project_id: project, studies: studies.to_vec() };
            session.send(&ParseCommand::CompareStudies(command))?;
            match self.commit(session, "noted what was said of studies").await {
                // Somebody says something in the same project at the same time.
                Err(Error::Commit(error)) if error.is_refused() => {}
                done => return done.map(|()| Decided::Accepted { is_new: true }),
            }
        }
        Err(Error::Commit(CommitError::Changed))
    }

    /// Everything that was said of the studies of a project, in its order.
    ///
    /// # Errors
    /// When the store does not answer.
    pub async fn decisions(&self, project: ProjectId) -> Result<Decisions, StoreError> {
        let record = self.entry.sessions.records.record(&key(project)).await?;
        read(project, record.map(|record| record.body))
    }
}
