//! Handlers that export the studies of an import or of a review, in the response or as an object that is created on
//! request.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::extract::State;
use axum::extract::rejection::JsonRejection;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::IntoResponse;
use futures::stream;
use imports::exports::content_disposition;
use imports::{ExportLink, ProjectId, SearchId};
use messages::StoreError;
use messages::store::chain;
use operate::http::extract::Parameters;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;
use writers::Format;

use super::export_slots::{ExportSlot, MAX_SENT};
use super::extract::{AuthorizedProject, AuthorizedSearch, ExportParam};
use super::own_threads::on_own_thread;
use super::problem::{CommonErrors, Problem};
use super::selection::{name, scope, selection};
use super::{Api, BodyMode, HttpResult, choices};
use service::exported_studies::{DamagedStudy, Export, ExportOptions, FileToExport};
use service::selection::StudySelection;
use service::study_view::StudyView;
use service::{ExportRefusal, ExportState, FilesToExport, SearchService, export_file};

/// The maximum size of an export that is sent in one buffered response, in bytes. Lambda limits a response to 6 MiB
/// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>), and media types that it does not know as
/// text are sent as base64, which adds a third.
const BUFFERED_EXPORT_BYTES: usize = 4_500_000;
/// The maximum number of reads, of up to 500 studies each, for a buffered export: a selection may choose few studies
/// among many.
const BUFFERED_EXPORT_READS: usize = 40;
/// The interval at which a client should poll for an export that is being created.
const EXPORT_POLL_INTERVAL: Duration = Duration::from_secs(2);

/// Selects the format and the studies of an export.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ExportQuery {
    /// The format. `jsonl` (the default) has a line of JSON for each study, with the same fields as in lists. The
    /// other formats are `ris`, `endnote-xml`, `csv`, `xlsx`, `bibtex`, `nbib`, `csl-json`, and the tables of
    /// `rayyan` and `asreview`.
    #[param(inline, value_type = Option<choices::ExportFormat>)]
    format: Option<String>,
    /// The studies to export: `all` (the default), `unique` or `duplicates`.
    #[param(inline, value_type = Option<choices::Studies>)]
    studies: Option<String>,
    /// `true` completes each study that is not a duplicate with the values of its duplicates: the longest texts, the
    /// longest lists of authors and keywords, and other values that it does not have. Corrected values take precedence.
    merged: Option<bool>,
}

/// Selects the format and the studies of an export of a review.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewExportQuery {
    /// The format, as for the export of an import.
    #[param(inline, value_type = Option<choices::ExportFormat>)]
    format: Option<String>,
    /// The studies to export: `all` (the default), `unique` or `duplicates`.
    #[param(inline, value_type = Option<choices::Studies>)]
    studies: Option<String>,
    /// Exports only the studies of this import and of the imports that repair it.
    search: Option<Uuid>,
    /// Exports only the studies of this file of the import, and of the files that repair it. It requires `search`.
    file: Option<Uuid>,
    /// Exports only studies that contain the words of this text, as in the list of studies.
    #[param(min_length = 1, max_length = 255)]
    text: Option<String>,
    /// Merges duplicates, as for the export of an import.
    merged: Option<bool>,
}

/// A request to create an export of a review.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct NewReviewExport {
    /// The format, as in the query of `…/export`.
    #[serde(default)]
    format: Option<String>,
    /// The studies, as in the query of `…/export`.
    #[serde(default)]
    studies: Option<String>,
    /// Exports only the studies of this import and of the imports that repair it.
    #[serde(default)]
    search: Option<Uuid>,
    /// Exports only the studies of this file of the import, and of the files that repair it. It requires `search`.
    #[serde(default)]
    file: Option<Uuid>,
    /// Exports only studies that contain the words of this text, as in the list of studies.
    #[serde(default)]
    text: Option<String>,
    /// Merges duplicates, as in the query of `…/export`.
    #[serde(default)]
    merged: bool,
}

impl From<ReviewExportQuery> for NewReviewExport {
    fn from(query: ReviewExportQuery) -> Self {
        let ReviewExportQuery { format, studies, search, file, text, merged } = query;
        Self { format, studies, search, file, text, merged: merged.unwrap_or_default() }
    }
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
    /// Merges duplicates, as in the query of `…/export`.
    #[serde(default)]
    merged: bool,
}

/// An export that can be downloaded as an object.
#[derive(Serialize, ToSchema)]
pub(super) struct ExportView {
    /// The id of the export; null if nothing has to be created first.
    #[schema(required)]
    export_id: Option<Uuid>,
    /// The import whose path has the state of the export; null if nothing has to be created first.
    #[schema(required)]
    search_id: Option<Uuid>,
    /// `being_made`, `ready`, or `failed` if the export cannot be created.
    state: &'static str,
    /// The reason why the export failed and the next step; absent in other states.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
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
    fn being_made(search: SearchId, export_id: Uuid) -> Self {
        let (search_id, export_id) = (Some(search.as_uuid()), Some(export_id));
        Self {
            export_id,
            search_id,
            state: "being_made",
            reason: None,
            url: None,
            expires_at: None,
            size_bytes: None,
        }
    }

    fn failed(search: SearchId, export_id: Uuid, damaged: &DamagedStudy) -> Self {
        let reason = Some(damaged.to_string());
        Self { state: "failed", reason, ..Self::being_made(search, export_id) }
    }

    fn ready(search: SearchId, export_id: Uuid, link: ExportLink) -> Self {
        Self {
            export_id: Some(export_id),
            search_id: Some(search.as_uuid()),
            state: "ready",
            reason: None,
            url: Some(link.url),
            expires_at: Some(link.expires_at.to_string()),
            size_bytes: Some(link.size_bytes),
        }
    }

    /// Returns an export that is created while it is sent.
    fn streamed(path: &str, wanted: &ExportOptions, others: &[(&str, Option<String>)]) -> Self {
        let mut query = Vec::new();
        if *wanted != ExportOptions::default() {
            query.push(format!("format={}", wanted.format));
            query.push(format!("studies={}", name(wanted.studies.which)));
        }
        if wanted.merged {
            query.push("merged=true".to_owned());
        }
        let others = others.iter().filter_map(|(name, value)| Some((name, value.as_ref()?)));
        query.extend(others.map(|(name, value)| format!("{name}={}", encoded(value))));
        let query = if query.is_empty() { String::new() } else { format!("?{}", query.join("&")) };
        let url = Some(format!("{path}{query}"));
        Self {
            export_id: None,
            search_id: None,
            state: "ready",
            reason: None,
            url,
            expires_at: None,
            size_bytes: None,
        }
    }
}

/// Percent-encodes a value of a query.
fn encoded(value: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        byte => format!("%{byte:02X}"),
    };
    value.bytes().map(encode).collect()
}

fn wanted(
    format: Option<&str>,
    studies: Option<&str>,
    text: Option<&str>,
    merged: bool,
) -> Result<ExportOptions, Problem> {
    let format = format.map_or(Ok(Format::default()), str::parse);
    let format = format.map_err(|error| Problem::bad(&error.to_string()))?;
    Ok(ExportOptions { format, studies: selection(studies, text)?, merged })
}

/// Exports the studies of all files that were read completely, as a line of JSON for each study or in another format.
///
/// If responses are not streamed (see `/config.json`), an export of more than 4.5 MB, or a selection from more than
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
    Parameters(ExportQuery { format, studies, merged }): Parameters<ExportQuery>,
) -> HttpResult {
    let wanted = wanted(format.as_deref(), studies.as_deref(), None, merged.unwrap_or_default())?;
    let stored = asked.stored(&api.service).await?;
    let (project, import) = (stored.job.project_id, stored.job.name.clone());
    send(&api, project, import.as_deref(), stored.into(), &wanted).await
}

/// Exports the studies of a review, or of one of its imports together with the imports that repair it: those that the
/// list of studies has with the same selection.
///
/// If responses are not streamed, the same limits apply as for the export of an import.
#[utoipa::path(
    get,
    path = "/projects/{project}/export",
    params(("project" = Uuid, Path, description = "The review"), ReviewExportQuery),
    responses(
        (status = 200, description = "The studies; other formats have their own media types", body = StudyView, content_type = "application/jsonl"),
        (status = 413, description = "The export is too large for one response; request the creation of an export", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "The review has more than 1,000 imports", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "The review has the maximum number of concurrent exports", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn export_review(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    Parameters(query): Parameters<ReviewExportQuery>,
) -> HttpResult {
    let asked = NewReviewExport::from(query);
    let wanted = asked.wanted()?;
    let files = asked.files(&api.service, project).await?;
    let import = files.jobs.first().filter(|_| asked.search.is_some()).and_then(|job| job.name.clone());
    send(&api, project, import.as_deref(), files, &wanted).await
}

impl NewReviewExport {
    fn wanted(&self) -> Result<ExportOptions, Problem> {
        wanted(self.format.as_deref(), self.studies.as_deref(), self.text.as_deref(), self.merged)
    }

    async fn files(&self, service: &SearchService, project: ProjectId) -> Result<FilesToExport, Problem> {
        let scope = scope(service, project, self.search, self.file).await?;
        let files = service.files_to_export(&scope).await?;
        files.map_err(|error| Problem::new(StatusCode::UNPROCESSABLE_ENTITY, &error.to_string()))
    }
}

/// Returns the problem of an export that an error ends.
fn unfinished(error: StoreError) -> Problem {
    match DamagedStudy::of(&error) {
        Some(damaged) => Problem::damaged(&damaged.to_string()),
        None => error.into(),
    }
}

/// Counts one more export in progress, or refuses it if the review has the maximum number.
fn begin(api: &Api, project: ProjectId) -> Result<ExportSlot, Problem> {
    api.exports.begin(project).ok_or_else(|| {
        let detail = format!(
            "{MAX_SENT} exports of this review are being sent, which is the maximum; try again when one of them has ended"
        );
        Problem::new(StatusCode::TOO_MANY_REQUESTS, &detail)
    })
}

/// Refuses an export that a damaged study would end.
async fn intact(api: &Api, wanted: &ExportOptions, files: &[FileToExport]) -> Result<(), Problem> {
    let damaged = api.damage.find(&api.service, &wanted.studies, files).await?;
    damaged.map_or(Ok(()), |damaged| Err(Problem::damaged(&damaged.to_string())))
}

/// An export that is sent while it is created.
struct StreamedExport {
    api: Arc<Api>,
    export: Export,
    selection: StudySelection,
    /// Counts the export until its end.
    _slot: ExportSlot,
}

impl StreamedExport {
    /// Returns the next chunk and the rest, or `None` at the end. If a study is damaged or a store becomes unavailable,
    /// the response ends early.
    async fn next(mut self) -> Result<Option<(Vec<u8>, Self)>, StoreError> {
        loop {
            let (piece, rest) = on_own_thread(async move { (self.export.next().await, self) }).await?;
            self = rest;
            match piece {
                // An empty chunk would end the body.
                Ok(Some(piece)) if piece.is_empty() => {}
                Ok(piece) => return Ok(piece.map(|piece| (piece, self))),
                Err(error) => {
                    tracing::error!(error = chain(&error), "an export ended with an error");
                    if let Some(damaged) = DamagedStudy::of(&error) {
                        self.api.damage.add(&self.selection, damaged);
                    }
                    return Err(error);
                }
            }
        }
    }
}

/// Responds with an export. Its file name is composed of the names of the review and the import.
async fn send(
    api: &Arc<Api>,
    project: ProjectId,
    import: Option<&str>,
    FilesToExport { files, jobs }: FilesToExport,
    wanted: &ExportOptions,
) -> HttpResult {
    let slot = begin(api, project)?;
    let sources = api.service.sources_for(&jobs, wanted).await?;
    let review = api.service.review(project).await?.map(|review| review.name);
    let studies = Arc::clone(&api.service.studies);
    if api.body_mode == BodyMode::Streaming {
        intact(api, wanted, &files).await?;
    }
    let mut export = Export::of(studies, files, wanted, sources, &api.service.jobs);
    let body = match api.body_mode {
        BodyMode::Streaming => {
            let stream = StreamedExport {
                api: Arc::clone(api),
                export,
                selection: wanted.studies.clone(),
                _slot: slot,
            };
            Body::from_stream(stream::try_unfold(stream, StreamedExport::next))
        }
        BodyMode::Buffered => {
            let (mut whole, mut reads) = (Vec::new(), 0);
            while let Some(piece) = export.next().await.map_err(unfinished)? {
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
    let name = export_file(&[review.as_deref(), import], wanted.format);
    let disposition = HeaderValue::from_str(&content_disposition(&name));
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
        (status = 429, description = "The import already has 20 stored exports, or 4 exports of the review are being created, or 8 are being sent", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn make_export(
    State(api): State<Arc<Api>>,
    asked: AuthorizedSearch,
    new: Result<Json<NewExport>, JsonRejection>,
) -> HttpResult {
    let Json(new) = new.map_err(|rejection| Problem::unreadable(&rejection, "an export"))?;
    let wanted = wanted(new.format.as_deref(), new.studies.as_deref(), None, new.merged)?;
    let stored = asked.stored(&api.service).await?;
    let project = stored.job.project_id;
    if api.body_mode == BodyMode::Streaming {
        // A browser does not show the error of the download that follows.
        drop(begin(&api, project)?);
        intact(&api, &wanted, &FilesToExport::from(stored).files).await?;
        let path = format!("/projects/{project}/searches/{}/export", asked.search);
        return Ok(Json(ExportView::streamed(&path, &wanted, &[])).into_response());
    }
    make(&api, project, &wanted, &stored.into()).await
}

/// Creates an export of a review of any size, with the studies that the list of studies has with the same selection.
///
/// Each request creates an export, which is stored for a day, or until an import of the review is deleted. `Location` is
/// the URL of its state. If responses are streamed, nothing has to be created; the response is 200 with the URL of the
/// stream.
#[utoipa::path(
    post,
    path = "/projects/{project}/exports",
    params(("project" = Uuid, Path, description = "The review")),
    request_body = NewReviewExport,
    responses(
        (status = 200, description = "The export can be downloaded immediately", body = ExportView),
        (status = 202, description = "The export will be created; `Location` is its URL", body = ExportView),
        (status = 422, description = "The review has no imports, more than 1,000, or too many files for one export", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "There are 20 stored exports of several imports, or 4 exports of the review are being created, or 8 are being sent", body = Problem, content_type = "application/problem+json"),
        CommonErrors,
    ),
)]
pub(super) async fn make_review_export(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    new: Result<Json<NewReviewExport>, JsonRejection>,
) -> HttpResult {
    let Json(new) = new.map_err(|rejection| Problem::unreadable(&rejection, "an export"))?;
    let wanted = new.wanted()?;
    if api.body_mode == BodyMode::Streaming {
        drop(begin(&api, project)?);
        intact(&api, &wanted, &new.files(&api.service, project).await?.files).await?;
        let others = [
            ("search", new.search.map(|id| id.to_string())),
            ("file", new.file.map(|id| id.to_string())),
            ("text", new.text),
        ];
        let path = format!("/projects/{project}/export");
        return Ok(Json(ExportView::streamed(&path, &wanted, &others)).into_response());
    }
    let files = new.files(&api.service, project).await?;
    make(&api, project, &wanted, &files).await
}

/// Requests the creation of an export, and responds with the URL of its state.
async fn make(api: &Api, project: ProjectId, wanted: &ExportOptions, files: &FilesToExport) -> HttpResult {
    let made = api.service.make_export(project, wanted, files).await?;
    let (search, export) = made.map_err(|why| {
        let status = match why {
            ExportRefusal::Empty | ExportRefusal::TooManyFiles(_) => StatusCode::UNPROCESSABLE_ENTITY,
            ExportRefusal::TooMany | ExportRefusal::TooManyUnderWay => StatusCode::TOO_MANY_REQUESTS,
        };
        Problem::new(status, &why.to_string())
    })?;
    let location = format!("/projects/{project}/searches/{search}/exports/{export}");
    let body = Json(ExportView::being_made(search, export.as_uuid()));
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
    responses((status = 200, description = "The export is ready, is being created, or has failed", body = ExportView), CommonErrors),
)]
pub(super) async fn show_export(
    State(api): State<Arc<Api>>,
    asked: AuthorizedSearch,
    ExportParam(export): ExportParam,
) -> HttpResult {
    let id = export.as_uuid();
    let exported = api.service.export(&asked.caller, asked.search, export).await?;
    match exported.ok_or_else(Problem::no_such_search)? {
        ExportState::Ready(link) => Ok(Json(ExportView::ready(asked.search, id, link)).into_response()),
        ExportState::Awaited => {
            let again = [(header::RETRY_AFTER, EXPORT_POLL_INTERVAL.as_secs().to_string())];
            Ok((again, Json(ExportView::being_made(asked.search, id))).into_response())
        }
        ExportState::Failed(damaged) => {
            Ok(Json(ExportView::failed(asked.search, id, &damaged)).into_response())
        }
        ExportState::Unknown => {
            let detail = "there is no such export: it was not created, or it is older than a day";
            Err(Problem::new(StatusCode::NOT_FOUND, detail))
        }
    }
}
