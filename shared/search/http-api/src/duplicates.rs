//! Handlers for duplicates of a search or a project, and for the reviewers' decisions about them.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use imports::duplicates::Decision;
use imports::{FileId, SearchId, StudyRef, Tier};
use jiff::Timestamp;
use operate::http::extract::Parameters;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::combined_listing;
use super::extract::{AuthorizedActor, AuthorizedProject, AuthorizedSearch};
use super::listings::Pairs;
use super::page::PageRequest;
use super::paging::{self, List, Older};
use super::problem::{CommonErrors, Problem};
use super::results::{answer, files};
use super::study::PairList;
use super::{Api, HttpResult, choices};
use service::{DecisionKind, DecisionOutcome, DecisionRequest, EffectiveDecision, Scope};

/// The default and maximum number of duplicates in a page; each one takes a separate read.
const PAIRS: usize = 50;
pub(super) const MAX_PAIRS: usize = 200;
/// The default and maximum number of decisions in a page.
const DECISIONS: usize = 100;
const MAX_DECISIONS: usize = 1_000;

/// Selects a page of duplicates.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct DuplicatesQuery {
    /// Maximum number of duplicates to return, from 1 to 200. The default is 50.
    #[param(minimum = 1, maximum = 200)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
    /// The minimum certainty: `certain`, `likely` or `possible`. The default is `likely`. Studies that are only
    /// `possible` duplicates are not treated as duplicates until a reviewer decides so.
    #[param(inline, value_type = Option<choices::DuplicateTier>)]
    least: Option<String>,
    /// The maximum certainty: `certain` (the default), `likely` or `possible`. With `least=possible` and `most=likely`
    /// the list has the pairs that need a decision.
    #[param(inline, value_type = Option<choices::DuplicateTier>)]
    most: Option<String>,
}

impl DuplicatesQuery {
    /// Returns the minimum and maximum certainty.
    fn tiers(&self) -> Result<(Tier, Tier), Problem> {
        let least = tier("least", self.least.as_deref(), Tier::Likely)?;
        Ok((least, tier("most", self.most.as_deref(), Tier::Certain)?))
    }
}

fn tier(name: &str, asked: Option<&str>, default: Tier) -> Result<Tier, Problem> {
    match asked {
        None => Ok(default),
        Some("certain") => Ok(Tier::Certain),
        Some("likely") => Ok(Tier::Likely),
        Some("possible") => Ok(Tier::Possible),
        Some(_) => Err(Problem::bad(&format!("{name} is \"certain\", \"likely\" or \"possible\""))),
    }
}

/// Lists the studies of an import that repeat an earlier one of its review, each with that study, in the order of
/// files and records.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/duplicates",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
        DuplicatesQuery,
    ),
    responses((status = 200, description = "A page of duplicates", body = PairList), CommonErrors),
)]
pub(super) async fn list_duplicates(
    State(api): State<Arc<Api>>,
    asked: AuthorizedSearch,
    Parameters(query): Parameters<DuplicatesQuery>,
) -> HttpResult {
    let limit = paging::limit(query.limit, PAIRS, MAX_PAIRS)?;
    let (least, most) = query.tiers()?;
    let files = files(asked.stored(&api.service).await?, None)?;
    let listing = Pairs { service: &api.service, search: asked.search, least, most };
    let list = List { of: "duplicates", owner: asked.search.as_uuid() };
    answer(&listing, &files, list, PageRequest { limit, after: query.after.as_deref() }).await
}

/// Lists the studies of a review that repeat an earlier one, each with that study: newest import first, in the order
/// of files and records.
#[utoipa::path(
    get,
    path = "/projects/{project}/duplicates",
    params(("project" = Uuid, Path, description = "The review"), DuplicatesQuery),
    responses((status = 200, description = "A page of duplicates", body = PairList), CommonErrors),
)]
pub(super) async fn list_all_duplicates(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    Parameters(query): Parameters<DuplicatesQuery>,
) -> HttpResult {
    let limit = paging::limit(query.limit, PAIRS, MAX_PAIRS)?;
    let (least, most) = query.tiers()?;
    let list = List { of: "duplicates of all", owner: project.as_uuid() };
    let request = PageRequest { limit, after: query.after.as_deref() };
    let listing = |search| Pairs { service: &api.service, search, least, most };
    combined_listing::answer(&api.service, &Scope::Review(project), listing, list, request).await
}

/// A reviewer's decision about studies.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewDecision {
    /// The decision.
    decision: DecisionKind,
    /// The studies that it is about: two studies, or the one to keep. If another study follows the one to keep, both
    /// are also decided to be the same.
    #[schema(min_items = 1, max_items = 2)]
    studies: Vec<StudyPlace>,
    /// `true` to change nothing if a different decision about the two studies is in effect. The response is then 409.
    #[serde(default)]
    if_undecided: bool,
    /// The decision that an `undo` or `unkeep` undoes: its `at` in the list of decisions. If another decision about the
    /// studies is in effect, nothing changes and the response is 409.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    undoes: Option<Timestamp>,
}

/// Decides that two studies are the same or different, or which study to keep.
///
/// A decision takes precedence over the matching rules until it is undone, whatever is imported later. The duplicate
/// marks that result from it are updated shortly afterwards.
#[utoipa::path(
    post,
    path = "/projects/{project}/duplicates/decisions",
    params(("project" = Uuid, Path, description = "The review")),
    request_body = NewDecision,
    responses(
        (status = 204, description = "The decision was already in effect"),
        (status = 202, description = "The decision is stored; the marks follow"),
        (status = 409, description = "A different decision is in effect", body = ConflictProblem, content_type = "application/problem+json"),
        (status = 422, description = "The decision is invalid, or the review has too many decisions", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn decide(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    AuthorizedActor(person): AuthorizedActor,
    new: Result<Json<NewDecision>, JsonRejection>,
) -> HttpResult {
    let Json(new) = new.map_err(|rejection| Problem::unreadable(&rejection, "a decision"))?;
    let studies: Vec<_> = new.studies.iter().map(StudyPlace::at).collect();
    let NewDecision { decision, if_undecided, undoes, .. } = new;
    let request = DecisionRequest { decision, studies: &studies, if_undecided, undoes };
    match api.service.decide(project, request, &person).await? {
        DecisionOutcome::Accepted { is_new: true } => Ok(StatusCode::ACCEPTED.into_response()),
        DecisionOutcome::Accepted { is_new: false } => Ok(StatusCode::NO_CONTENT.into_response()),
        DecisionOutcome::Decided(decided) => Ok(ConflictProblem::of(decided).into_response()),
        DecisionOutcome::Refused(fault) => {
            Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &fault.to_string()))
        }
        DecisionOutcome::Unknown(place) => {
            let why = format!("the review has no such study: studies[{place}]");
            Err(Problem::new(StatusCode::NOT_FOUND, &why))
        }
    }
}

/// Problem details of a decision that another decision in effect prevents.
#[derive(Serialize, ToSchema)]
struct ConflictProblem {
    #[serde(flatten)]
    problem: Problem,
    /// The decision that is in effect.
    decided: CurrentDecisionView,
}

/// A decision that is in effect.
#[derive(Serialize, ToSchema)]
struct CurrentDecisionView {
    /// The time of the decision.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The reviewer, named as in the list of decisions.
    by: String,
    /// The decision.
    decision: DecisionKind,
}

impl ConflictProblem {
    fn of(EffectiveDecision { at, by, decision }: EffectiveDecision) -> Self {
        let detail = "another decision about these studies is in effect";
        let problem = Problem::new(StatusCode::CONFLICT, detail);
        Self { problem, decided: CurrentDecisionView { at, by, decision } }
    }
}

impl IntoResponse for ConflictProblem {
    fn into_response(self) -> axum::response::Response {
        let content_type = [(header::CONTENT_TYPE, "application/problem+json")];
        (StatusCode::CONFLICT, content_type, Json(self)).into_response()
    }
}

/// A reviewer's decision about studies.
#[derive(Serialize, ToSchema)]
struct StudyDecisionView {
    /// The time of the decision.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// The reviewer: the `sub` of the token, or `somebody` if there are no tokens.
    by: String,
    /// The decision.
    decision: DecisionKind,
    /// The studies that it is about.
    studies: Vec<StudyPlace>,
}

/// The location of a study.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct StudyPlace {
    /// The import that contains it.
    search_id: Uuid,
    /// The file that contains it.
    file_id: Uuid,
    /// The number of its record in the file, from 1.
    record: u64,
}

impl From<StudyRef> for StudyPlace {
    fn from(StudyRef { search_id, file_id, record }: StudyRef) -> Self {
        Self { search_id: search_id.as_uuid(), file_id: file_id.as_uuid(), record }
    }
}

impl StudyPlace {
    fn at(&self) -> StudyRef {
        let (search_id, file_id) = (SearchId::from_uuid(self.search_id), FileId::from_uuid(self.file_id));
        StudyRef { search_id, file_id, record: self.record }
    }
}

impl From<&Decision> for StudyDecisionView {
    fn from(Decision { at, by, about }: &Decision) -> Self {
        let studies = about.studies().into_iter().map(StudyPlace::from).collect();
        Self { at: *at, by: by.clone(), decision: DecisionKind::of(about), studies }
    }
}

/// A page of decisions.
#[derive(Serialize, ToSchema)]
pub(super) struct StudyDecisionList {
    /// The decisions, newest first.
    items: Vec<StudyDecisionView>,
    /// The cursor for the `after` of the next request; null if no more items follow.
    #[schema(required)]
    next: Option<String>,
}

/// Selects a page of decisions.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct DecisionsQuery {
    /// Maximum number of decisions to return, from 1 to 1,000. The default is 100.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
}

/// Lists the decisions of a review with their author and time, newest first, including those that were undone.
#[utoipa::path(
    get,
    path = "/projects/{project}/duplicates/decisions",
    params(("project" = Uuid, Path, description = "The review"), DecisionsQuery),
    responses((status = 200, description = "A page of decisions", body = StudyDecisionList), CommonErrors),
)]
pub(super) async fn list_decisions(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    Parameters(query): Parameters<DecisionsQuery>,
) -> HttpResult {
    let limit = paging::limit(query.limit, DECISIONS, MAX_DECISIONS)?;
    let list = List { of: "decisions", owner: project.as_uuid() };
    let decisions = api.service.decisions(project).await?;
    let all = decisions.all();
    let end = list.after(query.after.as_deref())?.and_then(|Older(end)| usize::try_from(end).ok());
    let earlier = end.and_then(|end| all.get(..end)).unwrap_or(all);
    let items: Vec<_> = earlier.iter().rev().take(limit).map(StudyDecisionView::from).collect();
    let left = earlier.len() - items.len();
    Ok(Json(StudyDecisionList { items, next: (left > 0).then(|| list.next(&Older(left as u64))) })
        .into_response())
}
