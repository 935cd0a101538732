//! The history of a review: who did what, and when.
//!
//! Entries are only ever added. They are stored in pages of [`PAGE`], in the same session as the change that they
//! describe, and the head of a review contains their number. Therefore, a change is recorded if and only if it happens,
//! and a client sees whether there is something new by reading one small record.

use imports::{ProjectId, SearchId, StudyRef};
use jiff::Timestamp;
use messages::StoreError;
use outbox::{Key, Record};
use saga::engine::OpenSession;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use uuid::Uuid;

use crate::content;
use crate::decisions::kind::{DecisionKind, Rule};
use crate::{Error, Role, SearchService};

/// The kind of the records.
const ACTIVITY: &str = "activity";
/// The maximum number of entries in a record.
const PAGE: u64 = 100;

/// An entry of the history of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Activity {
    /// The time of the change.
    pub at: Timestamp,
    /// The user.
    pub by: String,
    /// The change.
    pub action: Action,
}

/// A change of a review.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// A decision about one or two studies.
    Decided {
        /// The decision.
        decision: DecisionKind,
        /// The studies.
        studies: Vec<StudyRef>,
    },
    /// Many pairs were decided together.
    DecidedInBulk {
        /// The bulk action.
        id: Uuid,
        /// The rule that selected the pairs.
        rule: Rule,
        /// The number of decisions.
        decided: u64,
    },
    /// A bulk action was undone.
    UndidBulk {
        /// The bulk action.
        id: Uuid,
    },
    /// The sources of files were set.
    SetSources {
        /// The import.
        search_id: SearchId,
        /// The number of files.
        files: u64,
    },
    /// The role of a member changed.
    ChangedMember {
        /// The name of the member.
        member: String,
        /// The new role; `None` if the person was removed.
        role: Option<Role>,
    },
}

/// The head of a review's history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Head {
    /// The number of entries.
    count: u64,
}

/// A page of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActivityPage {
    /// The entries, newest first, each with its number, from 1.
    pub items: Vec<(u64, Activity)>,
    /// The number of entries that are older than those of the page.
    pub older: u64,
}

fn head_key(project: ProjectId) -> Key {
    Key::new(ACTIVITY, project.to_string())
}

fn page_key(project: ProjectId, page: u64) -> Key {
    Key::new(ACTIVITY, format!("{project}/{page}"))
}

fn parsed<T: DeserializeOwned + Default>(
    project: ProjectId,
    record: Option<Record>,
) -> Result<T, StoreError> {
    content::or_default(record, || format!("reading the history of review {project}"))
}

/// Adds an entry to the history of a review, with the commit of the session.
pub(crate) async fn append(
    session: &mut OpenSession<'_>,
    project: ProjectId,
    entry: Activity,
) -> Result<(), StoreError> {
    let Head { count } = parsed(project, session.read(head_key(project)).await?)?;
    let page = page_key(project, count / PAGE);
    let mut entries: Vec<Activity> = parsed(project, session.read(page.clone()).await?)?;
    entries.push(entry);
    let doing = "serializing the history of a review";
    session.write(page, content::of(&entries, doing)?);
    session.write(head_key(project), content::of(&Head { count: count + 1 }, doing)?);
    Ok(())
}

/// Removes the history of a review when the session is committed.
pub(crate) async fn clear(session: &mut OpenSession<'_>, project: ProjectId) -> Result<(), Error> {
    let Head { count } = parsed(project, session.read(head_key(project)).await?)?;
    for page in 0..count.div_ceil(PAGE) {
        session.write(page_key(project, page), serde_json::json!([]));
    }
    session.write(head_key(project), serde_json::json!({ "count": 0 }));
    Ok(())
}

impl SearchService {
    /// Returns the number of entries in the history of a review.
    pub async fn activity_count(&self, project: ProjectId) -> Result<u64, StoreError> {
        let record = self.entry.sessions.records.record(&head_key(project)).await?;
        parsed(project, record).map(|Head { count }| count)
    }

    /// Returns up to `limit` entries of the history of a review with numbers up to `last`, beginning with the newest.
    pub async fn activity(
        &self,
        project: ProjectId,
        last: Option<u64>,
        limit: usize,
    ) -> Result<ActivityPage, StoreError> {
        let count = self.activity_count(project).await?;
        let mut next = last.unwrap_or(count).min(count);
        let mut items = Vec::new();
        while next > 0 && items.len() < limit {
            let page = (next - 1) / PAGE;
            let record = self.entry.sessions.records.record(&page_key(project, page)).await?;
            let entries: Vec<Activity> = parsed(project, record)?;
            let first = page * PAGE + 1;
            let mut numbered: Vec<_> = (first..=next).zip(entries).collect();
            numbered.reverse();
            numbered.truncate(limit - items.len());
            let before = items.len();
            items.extend(numbered);
            if items.len() == before {
                break;
            }
            next = items.last().map_or(0, |(number, _)| number - 1);
        }
        Ok(ActivityPage { items, older: next })
    }
}
