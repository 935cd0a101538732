//! Handlers that export all studies of a search, in the response or as an object that is created on request.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use futures::stream::TryStreamExt;
use imports::{ExportLink, StudyFilter};
use messages::StoreError;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;
use writers::Format;

use super::export_slots::MAX_SENT;
use super::extract::{AuthorizedSearch, ExportParam};
use super::problem::{CommonErrors, Problem};
use super::results::{QueryResult, files, read};
use super::{Api, BodyMode, HttpResult};
use service::exported_studies::{Export, ExportOptions};
use service::study_view::StudyView;
use service::{ExportState, export_file};

/// The maximum size of an export that is sent in one buffered response, in bytes.
const BUFFERED_EXPORT_BYTES: usize = 5_000_000;
/// The maximum number of reads, of up to 500 studies each, for a buffered export: a selection may choose few studies
/// among many.
const BUFFERED_EXPORT_READS: usize = 40;
/// The interval at which a client should poll for an export that is being created.
const EXPORT_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Selects the format and the studies of an export.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct ExportQuery {
    /// The format. `jsonl` (the default) has a line of JSON for each study, with the same fields as in lists. The
    /// other formats are `ris`, `endnote-xml`, `csv`, `xlsx`, `bibtex`, `nbib`, `csl-json`, and the tables of
    /// `rayyan` and `asreview`.
    format: Option<String>,
    /// The studies to export: `all` (the default), `unique` or `duplicates`.
    studies: Option<String>,
}

/// A request to create an export.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewExport {
    /// The format, as in the query of `…/export`.
    #[serde(default)]
    format: Option<String>,
    /// The studies, as in the query of `…/export`.
    #[serde(default)]
    studies: Option<String>,
}

/// An export that can be downloaded as an object.
#[derive(Serialize, ToSchema)]
pub(super) struct ExportView {
    /// The id of the export; null if nothing has to be created first.
    #[schema(required)]
    export_id: Option<Uuid>,
    /// `being_made` or `ready`.
    state: &'static str,
    /// The URL that a GET downloads it from once it is ready, without further credentials; relative to this API if it
    /// begins with a slash.
    #[schema(required)]
    url: Option<String>,
    /// The time until which `url` can be used, in RFC 3339 format; null if it does not expire.
    #[schema(required)]
    expires_at: Option<String>,
    /// The size in bytes, if it is known.
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

    /// Returns an export that is created while it is sent.
    fn streamed(search: &AuthorizedSearch, project: Uuid, wanted: &ExportOptions) -> Self {
        let mut url = format!("/projects/{project}/searches/{}/export", search.search);
        if *wanted != ExportOptions::default() {
            url.push_str(&format!("?format={}&studies={}", wanted.format, name(wanted.studies)));
        }
        Self { export_id: None, state: "ready", url: Some(url), expires_at: None, size_bytes: None }
    }
}

fn wanted(format: Option<&str>, studies: Option<&str>) -> Result<ExportOptions, Problem> {
    let format = format.map_or(Ok(Format::default()), str::parse);
    let format = format.map_err(|error| Problem::bad(&error.to_string()))?;
    let all = [StudyFilter::All, StudyFilter::Unique, StudyFilter::Duplicates];
    let studies = studies
        .map_or(Some(StudyFilter::All), |studies| all.into_iter().find(|which| name(*which) == studies));
    let studies = studies.ok_or_else(|| Problem::bad("studies is one of all, unique and duplicates"))?;
    Ok(ExportOptions { format, studies })
}

/// Returns the name of a selection in requests.
fn name(studies: StudyFilter) -> &'static str {
    match studies {
        StudyFilter::All => "all",
        StudyFilter::Unique => "unique",
        StudyFilter::Duplicates => "duplicates",
    }
}

/// Exports the studies of all files that were read completely, as a line of JSON for each study or in another format.
///
/// If responses are not streamed (see `/config.json`), an export of more than 5 MB, or a selection from more than
/// 20,000 studies, is refused. In that case, request the creation of an export.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/export",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
        ExportQuery,
    ),
    responses(
        (status = 200, description = "The studies; other formats have their own media types", body = StudyView, content_type = "application/jsonl"),
        (status = 413, description = "The export is too large for one response; request the creation of an export", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The review has the maximum number of concurrent exports", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn export_studies(
    State(api): State<Arc<Api>>,
    asked: AuthorizedSearch,
    query: QueryResult<ExportQuery>,
) -> HttpResult {
    let ExportQuery { format, studies } = read(query)?;
    let wanted = wanted(format.as_deref(), studies.as_deref())?;
    let stored = asked.stored(&api.service).await?;
    let sending = api.exports.begin(stored.job.project_id).ok_or_else(|| {
        let detail = format!(
            "{MAX_SENT} exports of this review are being sent, which is the maximum; try again when one of them has ended"
        );
        Problem::new(StatusCode::TOO_MANY_REQUESTS, &detail)
    })?;
    let sources = api.service.sources_for(&stored.job, &wanted).await?;
    let files = files(stored, None)?;
    let studies = Arc::clone(&api.service.studies);
    let mut export = Export::of(studies, asked.search, files, &wanted, sources);
    let body = match api.body_mode {
        // An empty chunk would end the body.
        BodyMode::Streaming => Body::from_stream(export.pieces().try_filter(move |piece| {
            let _until_the_end = &sending;
            ready(!piece.is_empty())
        })),
        BodyMode::Buffered => {
            let (mut whole, mut reads) = (Vec::new(), 0);
            while let Some(piece) = export.next().await? {
                whole.extend(piece);
                reads += 1;
                if whole.len() > BUFFERED_EXPORT_BYTES || reads > BUFFERED_EXPORT_READS {
                    let detail = "the export, or the studies it is selected from, is too large for one response; send a POST to \
                                  …/exports instead";
                    return Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail));
                }
            }
            Body::from(whole)
        }
    };
    // The name contains no characters that need escaping.
    let disposition =
        HeaderValue::from_str(&format!("attachment; filename=\"{}\"", export_file(wanted.format)));
    let disposition = disposition.map_err(|error| StoreError::unusable("naming an export", error))?;
    let kind = HeaderValue::from_static(wanted.format.media_type());
    Ok(([(header::CONTENT_TYPE, kind), (header::CONTENT_DISPOSITION, disposition)], body).into_response())
}

/// Creates an export of any size, with the studies of all files that have been read completely.
///
/// Each request creates an export, which is stored for a day. If responses are streamed, nothing has to be created;
/// the response is 200 with the URL of the stream.
#[utoipa::path(
    post,
    path = "/projects/{project}/searches/{search}/exports",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
    ),
    request_body = NewExport,
    responses(
        (status = 200, description = "The export can be downloaded immediately", body = ExportView),
        (status = 202, description = "The export will be created; `Location` is its URL", body = ExportView),
        (status = 429, description = "The import already has 20 stored exports, or 4 exports of the review are being created", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn make_export(
    State(api): State<Arc<Api>>,
    asked: AuthorizedSearch,
    new: Result<Json<NewExport>, JsonRejection>,
) -> HttpResult {
    let Json(new) = new.map_err(|rejection| Problem::unreadable(&rejection, "an export"))?;
    let wanted = wanted(new.format.as_deref(), new.studies.as_deref())?;
    let stored = asked.stored(&api.service).await?;
    let project = stored.job.project_id.as_uuid();
    if api.body_mode == BodyMode::Streaming {
        return Ok(Json(ExportView::streamed(&asked, project, &wanted)).into_response());
    }
    let export = api.service.make_export(&stored, &wanted).await?;
    let export = export.map_err(|why| Problem::new(StatusCode::TOO_MANY_REQUESTS, &why.to_string()))?;
    let location = format!("/projects/{project}/searches/{}/exports/{export}", asked.search);
    let body = Json(ExportView::being_made(export.as_uuid()));
    let again = EXPORT_POLL_INTERVAL.as_secs().to_string();
    let headers = [(header::LOCATION, location), (header::RETRY_AFTER, again)];
    Ok((StatusCode::ACCEPTED, headers, body).into_response())
}

/// Returns the state of an export and, once it is ready, its URL.
///
/// The URL is valid for 15 minutes; repeat the request for a new one. An export that is not created within an hour
/// does not exist.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/exports/{export}",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
        ("export" = Uuid, Path, description = "The export"),
    ),
    responses((status = 200, description = "The export is ready or is being created", body = ExportView), CommonErrors),
)]
pub(super) async fn show_export(
    State(api): State<Arc<Api>>,
    asked: AuthorizedSearch,
    ExportParam(export): ExportParam,
) -> HttpResult {
    let id = export.as_uuid();
    let exported = api.service.export(&asked.caller, asked.search, export).await?;
    match exported.ok_or_else(Problem::no_such_search)? {
        ExportState::Ready(link) => Ok(Json(ExportView::ready(id, link)).into_response()),
        ExportState::Awaited => {
            let again = [(header::RETRY_AFTER, EXPORT_POLL_INTERVAL.as_secs().to_string())];
            Ok((again, Json(ExportView::being_made(id))).into_response())
        }
        ExportState::Unknown => {
            let detail = "there is no such export: it was not created, or it is older than a day";
            Err(Problem::new(StatusCode::NOT_FOUND, detail))
        }
    }
}
