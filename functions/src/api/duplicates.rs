//! Studies that are there twice: of a search, of a project, and what people say of them.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::IntoResponse;
use imports::duplicates::Decision;
use imports::{FileId, SearchId, StudyAt, Tier};
use jiff::Timestamp;
use outbox::Cursor;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use super::extract::{AskedPerson, AskedProject, AskedSearch};
use super::listings::Pairs;
use super::page::{self, Most};
use super::paging::{self, List, Place};
use super::problem::{Problem, Refused};
use super::results::{PAGE_BYTES, answer, files, read};
use super::study::{PageBody, PairList};
use super::{Answer, Api};
use service::study_view::RecordPlace;
use service::{Decided, Word};

/// How many duplicates a page has by default, and at most: each takes a read of its own.
const PAIRS: usize = 50;
pub(super) const MAX_PAIRS: usize = 200;
/// How many searches are looked through for a page of a project's duplicates.
const SEARCHES: usize = 50;
/// How many decisions a page has by default, and at most.
const DECISIONS: usize = 100;
const MAX_DECISIONS: usize = 1_000;

/// Which page of the duplicates to return, and which duplicates.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DuplicatesQuery {
    /// How many duplicates, from 1 to 200; 50.
    limit: Option<usize>,
    /// Where the page before ended: its `next`.
    after: Option<String>,
    /// Only those that are at least as sure as this: `certain`, `likely` or `possible`; `likely`. Those that are only possible
    /// are not taken for duplicates: somebody has to say it.
    least: Option<String>,
}

impl DuplicatesQuery {
    fn least(&self) -> Result<Tier, Problem> {
        match self.least.as_deref() {
            Some("certain") => Ok(Tier::Certain),
            None | Some("likely") => Ok(Tier::Likely),
            Some("possible") => Ok(Tier::Possible),
            Some(_) => Err(Problem::bad("least is \"certain\", \"likely\" or \"possible\"")),
        }
    }
}

/// The studies of a search that repeat an earlier one of its project, each beside that one, in the order of files and
/// records.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/duplicates",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
        DuplicatesQuery,
    ),
    responses((status = 200, description = "Some of them", body = PairList), Refused),
)]
pub(super) async fn list_duplicates(
    State(api): State<Arc<Api>>,
    asked: AskedSearch,
    query: Result<Query<DuplicatesQuery>, QueryRejection>,
) -> Answer {
    let query = read(query)?;
    let limit = paging::limit(query.limit, PAIRS, MAX_PAIRS)?;
    let least = query.least()?;
    let files = files(asked.stored(&api.function).await?, None)?;
    let shelf = Pairs { function: &api.function, search: asked.search, least };
    let list = List { of: "duplicates", owner: asked.search.as_uuid() };
    answer(&shelf, &files, list, (limit, query.after.as_deref())).await
}

/// A place among the duplicates of a project: in the search after another one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct PairPlace {
    after: Option<Cursor>,
    within: RecordPlace,
}

impl Place for PairPlace {
    fn written(&self) -> String {
        let after = self.after.as_ref().map_or_else(String::new, Place::written);
        format!("{}_{after}", self.within.written())
    }

    fn read(text: &str) -> Option<Self> {
        let (within, after) = text.split_once('_')?;
        let after = if after.is_empty() { None } else { Some(Cursor::read(after)?) };
        Some(Self { after, within: RecordPlace::read(within)? })
    }
}

/// The studies of a project that repeat an earlier one, each beside that one: the latest search first, in the order of files
/// and records.
#[utoipa::path(
    get,
    path = "/projects/{project}/duplicates",
    params(("project" = Uuid, Path, description = "The review"), DuplicatesQuery),
    responses((status = 200, description = "Some of them", body = PairList), Refused),
)]
pub(super) async fn list_all_duplicates(
    State(api): State<Arc<Api>>,
    AskedProject(project): AskedProject,
    query: Result<Query<DuplicatesQuery>, QueryRejection>,
) -> Answer {
    let query = read(query)?;
    let limit = paging::limit(query.limit, PAIRS, MAX_PAIRS)?;
    let least = query.least()?;
    let list = List { of: "duplicates of all", owner: project.as_uuid() };
    let mut place: PairPlace = list.after(query.after.as_deref())?.unwrap_or_default();
    let jobs = api.function.jobs.of_project(project, place.after, SEARCHES).await?;
    let mut items: Vec<Box<RawValue>> = Vec::new();
    let mut bytes = 0;
    for job in &jobs.items {
        let files = api.function.studies.parsed(job.search_id).await?;
        let shelf = Pairs { function: &api.function, search: job.search_id, least };
        let most = Most { items: limit - items.len(), bytes: PAGE_BYTES.saturating_sub(bytes) };
        let (found, next) = page::page(&shelf, &files, Some(place.within), most).await?;
        bytes += found.iter().map(|item| item.get().len()).sum::<usize>();
        items.extend(found);
        if let Some(within) = next {
            let next = Some(list.next(&PairPlace { within, ..place }));
            return Ok(Json(PageBody { items, next }).into_response());
        }
        let after = Cursor { created_at: job.created_at, partition: job.search_id };
        place = PairPlace { after: Some(after), within: RecordPlace::default() };
        if items.len() == limit {
            break;
        }
    }
    let next = (jobs.next.is_some() || items.len() == limit).then(|| list.next(&place));
    Ok(Json(PageBody { items, next }).into_response())
}

/// Something that is said of studies.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewDecision {
    /// What is said.
    decision: Word,
    /// Of which studies: two, or the one to keep.
    studies: Vec<StudyPlace>,
}

/// Say of two studies that they are the same work, or are not; or which study is to be kept.
///
/// It stands above the rules, whatever is imported later, until it is taken back. The marks that follow from it are there some
/// moments later.
#[utoipa::path(
    post,
    path = "/projects/{project}/duplicates/decisions",
    params(("project" = Uuid, Path, description = "The review")),
    request_body = NewDecision,
    responses(
        (status = 204, description = "It held already"),
        (status = 202, description = "It is written down, and the marks follow"),
        (status = 422, description = "It makes no sense, or the project has too many decisions", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn decide(
    State(api): State<Arc<Api>>,
    AskedProject(project): AskedProject,
    AskedPerson(person): AskedPerson,
    new: Result<Json<NewDecision>, JsonRejection>,
) -> Answer {
    let Json(new) = new.map_err(|rejection| Problem::unreadable(&rejection, "what is decided"))?;
    let studies: Vec<_> = new.studies.iter().map(StudyPlace::at).collect();
    match api.function.decide(project, new.decision, &studies, &person).await? {
        Decided::Accepted { is_new: true } => Ok(StatusCode::ACCEPTED.into_response()),
        Decided::Accepted { is_new: false } => Ok(StatusCode::NO_CONTENT.into_response()),
        Decided::Refused(fault) => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &fault.to_string())),
        Decided::Unknown(place) => {
            let why = format!("the project has no such study: studies[{place}]");
            Err(Problem::new(StatusCode::NOT_FOUND, &why))
        }
    }
}

/// What somebody has said of studies.
#[derive(Serialize, ToSchema)]
struct VerdictView {
    /// When it was said.
    #[schema(value_type = String, format = DateTime)]
    at: Timestamp,
    /// Who has said it: the `sub` of their token, or `somebody` where there are none.
    by: String,
    /// What was said.
    decision: Word,
    /// Of which studies.
    studies: Vec<StudyPlace>,
}

/// Where a study is.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct StudyPlace {
    /// The search that brought it.
    search_id: Uuid,
    /// Its file.
    file_id: Uuid,
    /// Its place among the records of the file, from 1.
    record: u64,
}

impl From<StudyAt> for StudyPlace {
    fn from(StudyAt { search_id, file_id, record }: StudyAt) -> Self {
        Self { search_id: search_id.as_uuid(), file_id: file_id.as_uuid(), record }
    }
}

impl StudyPlace {
    fn at(&self) -> StudyAt {
        let (search_id, file_id) = (SearchId::from_uuid(self.search_id), FileId::from_uuid(self.file_id));
        StudyAt { search_id, file_id, record: self.record }
    }
}

impl From<&Decision> for VerdictView {
    fn from(Decision { at, by, about }: &Decision) -> Self {
        let studies = about.studies().into_iter().map(StudyPlace::from).collect();
        Self { at: *at, by: by.clone(), decision: Word::of(about), studies }
    }
}

/// Some of what was said of the studies of a project.
#[derive(Serialize, ToSchema)]
pub(super) struct VerdictList {
    /// What the page has, the latest first.
    items: Vec<VerdictView>,
    /// Where the page ends, for the `after` of the next one; null when nothing follows.
    #[schema(required)]
    next: Option<String>,
}

/// Which page of the decisions to return.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct DecisionsQuery {
    /// How many decisions, from 1 to 1000; 100.
    limit: Option<usize>,
    /// Where the page before ended: its `next`.
    after: Option<String>,
}

/// So many were said before.
struct Earlier(usize);

impl Place for Earlier {
    fn written(&self) -> String {
        self.0.to_string()
    }

    fn read(text: &str) -> Option<Self> {
        text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok().map(Self))?
    }
}

/// What was said of the studies of a project, by whom and when, the latest first. What was taken back is among it.
#[utoipa::path(
    get,
    path = "/projects/{project}/duplicates/decisions",
    params(("project" = Uuid, Path, description = "The review"), DecisionsQuery),
    responses((status = 200, description = "Some of it", body = VerdictList), Refused),
)]
pub(super) async fn list_decisions(
    State(api): State<Arc<Api>>,
    AskedProject(project): AskedProject,
    query: Result<Query<DecisionsQuery>, QueryRejection>,
) -> Answer {
    let query = read(query)?;
    let limit = paging::limit(query.limit, DECISIONS, MAX_DECISIONS)?;
    let list = List { of: "decisions", owner: project.as_uuid() };
    let decisions = api.function.decisions(project).await?;
    let all = decisions.all();
    let Earlier(end) = list.after(query.after.as_deref())?.unwrap_or(Earlier(all.len()));
    let earlier = all.get(..end).unwrap_or(all);
    let items: Vec<_> = earlier.iter().rev().take(limit).map(VerdictView::from).collect();
    let left = earlier.len() - items.len();
    Ok(Json(VerdictList { items, next: (left > 0).then(|| list.next(&Earlier(left))) }).into_response())
}
