//! The handler that lists the history of a review.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::IntoResponse;
use jiff::Timestamp;
use operate::http::extract::Parameters;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::duplicates::StudyPlace;
use super::extract::AuthorizedProject;
use super::paging::{self, List, Older};
use super::problem::CommonErrors;
use super::{Api, HttpResult};
use service::{Action, Activity, ActivityPage, DecisionKind, Role, Rule};

/// The default and maximum number of entries in a page.
const PAGE: usize = 100;
const MAX_PAGE: usize = 1_000;

/// An entry of the history of a review.
#[derive(Serialize, ToSchema)]
pub(super) struct ActivityView {
    /// The number of the entry, from 1.
    number: u64,
    /// The time of the change.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The user, named as in the list of decisions.
    by: String,
    /// The change.
    #[serde(flatten)]
    action: ReviewActionView,
}

/// A change of a review.
#[derive(Serialize, ToSchema)]
#[serde(tag = "action", rename_all = "snake_case")]
enum ReviewActionView {
    /// A decision about one or two studies.
    Decided {
        /// The decision.
        decision: DecisionKind,
        /// The studies.
        studies: Vec<StudyPlace>,
    },
    /// Many pairs were decided together.
    DecidedInBulk {
        /// The bulk action.
        id: Uuid,
        /// Its rule.
        rule: Rule,
        /// Number of decisions.
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
        search_id: Uuid,
        /// Number of files.
        files: u64,
    },
    /// The role of a member changed.
    ChangedMember {
        /// The name of the member.
        member: String,
        /// The new role; null if the person was removed.
        #[schema(required)]
        role: Option<Role>,
    },
}

impl ActivityView {
    pub(super) fn of(number: u64, Activity { at, by, action }: Activity) -> Self {
        let action = match action {
            Action::Decided { decision, studies } => ReviewActionView::Decided {
                decision,
                studies: studies.into_iter().map(StudyPlace::from).collect(),
            },
            Action::DecidedInBulk { id, rule, decided } => {
                ReviewActionView::DecidedInBulk { id, rule, decided }
            }
            Action::UndidBulk { id } => ReviewActionView::UndidBulk { id },
            Action::ChangedMember { member, role } => ReviewActionView::ChangedMember { member, role },
            Action::SetSources { search_id, files } => {
                ReviewActionView::SetSources { search_id: search_id.as_uuid(), files }
            }
        };
        Self { number, at, by, action }
    }
}

/// A page of the history of a review.
#[derive(Serialize, ToSchema)]
struct ActivityList {
    /// The entries, newest first.
    items: Vec<ActivityView>,
    /// The cursor for the `after` of the next request; null if no more items follow.
    #[schema(required)]
    next: Option<String>,
}

/// Selects a page of the history of a review.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ActivityQuery {
    /// Maximum number of entries to return, from 1 to 1,000. The default is 100.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
}

/// Lists who changed what in a review, newest first: decisions about duplicates, sources of files, and members.
#[utoipa::path(
    get,
    path = "/projects/{project}/activity",
    params(("project" = Uuid, Path, description = "The review"), ActivityQuery),
    responses((status = 200, description = "A page of the history", body = ActivityList), CommonErrors),
)]
pub(super) async fn list_activity(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    Parameters(query): Parameters<ActivityQuery>,
) -> HttpResult {
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let list = List { of: "activity", owner: project.as_uuid() };
    let last = list.after(query.after.as_deref())?.map(|Older(last)| last);
    let ActivityPage { items, older } = api.service.activity(project, last, limit).await?;
    let items = items.into_iter().map(|(number, entry)| ActivityView::of(number, entry)).collect();
    let next = (older > 0).then(|| list.next(&Older(older)));
    Ok(Json(ActivityList { items, next }).into_response())
}
