//! All studies of a search at once: in the answer, or as an object that is made for whoever asks.

use std::collections::BTreeMap;
use std::future::ready;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use futures::stream::TryStreamExt;
use imports::{ExportLink, ProjectId, Which};
use messages::StoreError;
use serde::{Deserialize, Serialize};

use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;
use writers::Format;

use super::extract::{AskedExport, AskedSearch};

use super::problem::{Problem, Refused};
use super::results::{Asked, files, read};
use super::{Answer, Answers, Api};
use service::exported_studies::{Export, Wanted};
use service::study_view::StudyView;
use service::{Exported, export_file};

/// The most of an export that is sent as a whole, in bytes.
const WHOLE_EXPORT_BYTES: usize = 5_000_000;
/// How often studies are read for it, 500 at a time at most: there may be few among many that are asked for.
const WHOLE_EXPORT_READS: usize = 40;
/// The maximum number of exports of one project that are sent at a time. Each reads studies as fast as its client receives
/// them.
pub(super) const MAX_SENT: usize = 8;

/// The exports that are being sent, by project.
#[derive(Default)]
pub(super) struct Exports(Arc<Mutex<BTreeMap<ProjectId, usize>>>);

/// An export that is being sent, until this is dropped.
struct Sending {
    project: ProjectId,
    all: Arc<Mutex<BTreeMap<ProjectId, usize>>>,
}

impl Exports {
    /// Counts one more export; returns `None` if the project has the maximum number.
    fn begin(&self, project: ProjectId) -> Option<Sending> {
        // A panic cannot leave a count half changed, so a poisoned lock is used as it is.
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let sent = all.entry(project).or_default();
        *sent = Some(*sent + 1).filter(|sent| *sent <= MAX_SENT)?;
        Some(Sending { project, all: Arc::clone(&self.0) })
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sent) = all.get_mut(&self.project) {
            *sent -= 1;
            if *sent == 0 {
                all.remove(&self.project);
            }
        }
    }
}

/// When to look again for an export that is being made.
const LOOK_AGAIN: Duration = Duration::from_secs(2);

/// How to export the studies.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportQuery {
    /// `jsonl` (where nothing is said): a line for each study, with the fields that it has in lists. Or `ris`, `csv`, `xlsx`,
    /// `bibtex`, `nbib`, `csl-json`, or the tables of `rayyan` and `asreview`.
    format: Option<String>,
    /// Which studies: `all` (where nothing is said), `unique` or `duplicates`.
    studies: Option<String>,
}

/// An export to be made.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewExport {
    /// As in the query of `…/export`.
    #[serde(default)]
    format: Option<String>,
    /// As in the query of `…/export`.
    #[serde(default)]
    studies: Option<String>,
}

/// An export as an object of its own.
#[derive(Serialize, ToSchema)]
pub(super) struct ExportView {
    /// What it is asked for by; null where nothing has to be made first.
    #[schema(required)]
    export_id: Option<Uuid>,
    /// `being_made`, or `ready`.
    state: &'static str,
    /// Where a GET downloads it once it is ready, without further credentials; below this API if it begins with a slash.
    #[schema(required)]
    url: Option<String>,
    /// Until when `url` can be used, as RFC 3339 has it; null if that does not end.
    #[schema(required)]
    expires_at: Option<String>,
    /// Its size in bytes, where it is known.
    #[schema(required)]
    size_bytes: Option<u64>,
}

impl ExportView {
    fn being_made(export_id: Uuid) -> Self {
        let export_id = Some(export_id);
        Self { export_id, state: "being_made", url: None, expires_at: None, size_bytes: None }
    }

    fn ready(export_id: Uuid, link: ExportLink) -> Self {
        Self {
            export_id: Some(export_id),
            state: "ready",
            url: Some(link.url),
            expires_at: Some(link.expires_at.to_string()),
            size_bytes: Some(link.size_bytes),
        }
    }

    /// One that is made while it is sent.
    fn streamed(search: &AskedSearch, project: Uuid, wanted: &Wanted) -> Self {
        let mut url = format!("/projects/{project}/searches/{}/export", search.search);
        if *wanted != Wanted::default() {
            url.push_str(&format!("?format={}&studies={}", wanted.format, name(wanted.studies)));
        }
        Self { export_id: None, state: "ready", url: Some(url), expires_at: None, size_bytes: None }
    }
}

fn wanted(format: Option<&str>, studies: Option<&str>) -> Result<Wanted, Problem> {
    let format = format.map_or(Ok(Format::default()), str::parse);
    let format = format.map_err(|error| Problem::bad(&error.to_string()))?;
    let all = [Which::All, Which::Unique, Which::Duplicates];
    let studies =
        studies.map_or(Some(Which::All), |studies| all.into_iter().find(|which| name(*which) == studies));
    let studies = studies.ok_or_else(|| Problem::bad("studies is one of all, unique and duplicates"))?;
    Ok(Wanted { format, studies })
}

/// How it is asked for.
fn name(studies: Which) -> &'static str {
    match studies {
        Which::All => "all",
        Which::Unique => "unique",
        Which::Duplicates => "duplicates",
    }
}

/// The studies of the files that were read to their end, a line of JSON each, or in the format of another program.
///
/// Where answers are not streamed (see `/config.json`), more than 5 MB, or what would be chosen from more than 20,000 studies, are
/// refused: then have an export made.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/export",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
        ExportQuery,
    ),
    responses(
        (status = 200, description = "All of them; another format has its own media type", body = StudyView, content_type = "application/jsonl"),
        (status = 413, description = "They are more than can be sent at once; have an export made", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "As many exports of the review are being sent as may be at a time", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn export_studies(
    State(api): State<Arc<Api>>,
    asked: AskedSearch,
    query: Asked<ExportQuery>,
) -> Answer {
    let ExportQuery { format, studies } = read(query)?;
    let wanted = wanted(format.as_deref(), studies.as_deref())?;
    let stored = asked.stored(&api.function).await?;
    let sending = api.exports.begin(stored.job.project_id).ok_or_else(|| {
        let detail = format!(
            "{MAX_SENT} exports of this review are being sent, as many as are sent at a time; ask again when one of them \
             has ended"
        );
        Problem::new(StatusCode::TOO_MANY_REQUESTS, &detail)
    })?;
    let sources = api.function.sources_for(&stored.job, &wanted).await?;
    let files = files(stored, None)?;
    let studies = Arc::clone(&api.function.studies);
    let mut export = Export::of(studies, asked.search, files, &wanted, sources);
    let body = match api.answers {
        // An empty piece would say that nothing follows.
        Answers::Streamed => Body::from_stream(export.pieces().try_filter(move |piece| {
            let _until_the_end = &sending;
            ready(!piece.is_empty())
        })),
        Answers::Whole => {
            let (mut whole, mut reads) = (Vec::new(), 0);
            while let Some(piece) = export.next().await? {
                whole.extend(piece);
                reads += 1;
                if whole.len() > WHOLE_EXPORT_BYTES || reads > WHOLE_EXPORT_READS {
                    let detail = "the export, or what it is chosen from, is larger than an answer may be; POST to …/exports \
                                  has it made";
                    return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
                }
            }
            Body::from(whole)
        }
    };
    // The name has nothing that would have to be escaped.
    let disposition =
        HeaderValue::from_str(&format!("attachment; filename=\"{}\"", export_file(wanted.format)));
    let disposition = disposition.map_err(|error| StoreError::unusable("naming an export", error))?;
    let kind = HeaderValue::from_static(wanted.format.media_type());
    Ok(([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, disposition)], body).into_response())
}

/// Has an export made: the studies of the files that are read to their end by now, of any size.
///
/// It is made once for each request, and kept for a day. Where answers are streamed there is nothing to make, and the answer
/// is 200 with the address of the stream.
#[utoipa::path(
    post,
    path = "/projects/{project}/searches/{search}/exports",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
    ),
    request_body = NewExport,
    responses(
        (status = 200, description = "It can be had at once", body = ExportView),
        (status = 202, description = "It will be made; `Location` is where to ask for it", body = ExportView),
        (status = 429, description = "The search has 20 exports, which are kept for a day, or 4 of the review are being made", body = Problem, content_type = "application/problem+json"),
        Refused,
    ),
)]
pub(super) async fn make_export(
    State(api): State<Arc<Api>>,
    asked: AskedSearch,
    new: Result<Json<NewExport>, JsonRejection>,
) -> Answer {
    let Json(new) = new.map_err(|rejection| Problem::unreadable(&rejection, "an export"))?;
    let wanted = wanted(new.format.as_deref(), new.studies.as_deref())?;
    let stored = asked.stored(&api.function).await?;
    let project = stored.job.project_id.as_uuid();
    if api.answers == Answers::Streamed {
        return Ok(Json(ExportView::streamed(&asked, project, &wanted)).into_response());
    }
    let export = api.function.make_export(&stored, &wanted).await?;
    let export = export.map_err(|why| Problem::new(StatusCode::TOO_MANY_REQUESTS, &why.to_string()))?;
    let location = format!("/projects/{project}/searches/{}/exports/{export}", asked.search);
    let body = Json(ExportView::being_made(export.as_uuid()));
    let again = LOOK_AGAIN.as_secs().to_string();
    let headers = [(header::LOCATION, location), (header::RETRY_AFTER, again)];
    Ok((StatusCode::ACCEPTED, headers, body).into_response())
}

/// Whether an export is made, and where it can be had.
///
/// The link is good for 15 minutes; asking again gives another one. One that is not made within an hour is not there.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/exports/{export}",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The search"),
        ("export" = Uuid, Path, description = "The export"),
    ),
    responses((status = 200, description = "It is made, or is being made", body = ExportView), Refused),
)]
pub(super) async fn show_export(
    State(api): State<Arc<Api>>,
    asked: AskedSearch,
    AskedExport(export): AskedExport,
) -> Answer {
    let id = export.as_uuid();
    let exported = api.function.export(&asked.caller, asked.search, export).await?;
    match exported.ok_or_else(Problem::no_such_search)? {
        Exported::Ready(link) => Ok(Json(ExportView::ready(id, link)).into_response()),
        Exported::Awaited => {
            let again = [(header::RETRY_AFTER, LOOK_AGAIN.as_secs().to_string())];
            Ok((again, Json(ExportView::being_made(id))).into_response())
        }
        Exported::Unknown => {
            let detail = "there is no such export: it was not made, or it is older than a day";
            Err(Problem::new(StatusCode::NOT_FOUND, detail))
        }
    }
}
