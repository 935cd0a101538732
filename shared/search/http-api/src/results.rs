//! Handlers for the results of a search: studies, and records that could not be read.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use imports::{FileId, ParsedFile, StudyFilter};
use messages::StoreError;
use operate::http::extract::Parameters;
use serde::Deserialize;
use utoipa::IntoParams;
use uuid::Uuid;

use super::combined_listing;
use super::extract::{AuthorizedProject, AuthorizedSearch, RecordParam};
use super::listings::{Studies, UnreadRecords};
use super::own_threads::on_own_thread;
use super::page::{self, Listing, PAGE_BYTES, Page, PageLimit, PageRequest};
use super::paging::{self, List};
use super::problem::{CommonErrors, Problem};
use super::selection::{scope, selection, words};
use super::study::{PageBody, StudyDetail, StudyList, UnreadDetail, UnreadList, UnreadView};
use super::{Api, HttpResult, choices};
use service::selection::StudySelection;
use service::study_view::{RecordPlace, StudyView};
use service::{Around, Raw, RecordBytes, StoredSearch};

/// The default and maximum number of studies, or of unreadable records, in a page.
const PAGE: usize = 100;
pub(super) const MAX_PAGE: usize = 1_000;

/// Responds with a page of a listing.
pub(super) async fn answer(
    listing: &impl Listing,
    files: &[ParsedFile],
    list: List,
    request: PageRequest<'_>,
) -> HttpResult {
    let limit = PageLimit { items: request.limit, bytes: PAGE_BYTES, is_begun: false };
    let Page { items, damaged, next, .. } =
        page::page(listing, files, list.after(request.after)?, limit).await?;
    Ok(Json(PageBody { items, damaged, next: next.map(|next| list.next(&next)) }).into_response())
}

/// Returns the requested file, or all files that were read completely.
pub(super) fn files(stored: StoredSearch, asked: Option<&str>) -> Result<Vec<ParsedFile>, Problem> {
    let StoredSearch { job, mut files } = stored;
    if let Some(asked) = asked {
        let asked = Uuid::parse_str(asked).map_err(|_| Problem::bad("file is not the id of a file"))?;
        let asked = FileId::from_uuid(asked);
        if !job.files.iter().any(|file| file.file_id == asked) {
            return Err(Problem::new(StatusCode::NOT_FOUND, "the import has no such file"));
        }
        files.retain(|file| file.file_id == asked);
    }
    Ok(files)
}

/// Selects a page of the studies.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct StudiesQuery {
    /// Maximum number of studies to return, from 1 to 1,000. The default is 100.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
    /// Returns only studies of the file with this id.
    #[param(format = Uuid)]
    file: Option<String>,
    /// `only` returns studies that repeat an earlier one; `none` returns the others.
    #[param(inline, value_type = Option<choices::Duplicates>)]
    duplicates: Option<String>,
    /// Returns only studies whose title, authors, abstract, journal and DOI contain all words of this text, ignoring
    /// case and diacritics. Words in quotation marks are adjacent. The last word also matches longer words that begin
    /// with it, unless a space or a quotation mark follows. 1 to 255 characters and up to 32 words.
    #[param(min_length = 1, max_length = 255)]
    text: Option<String>,
}

/// Lists the studies of the files that were read completely, in the order of files and records.
///
/// Up to 10,000 studies are examined for one page, which has up to about 4 MB. While files are still being read, a
/// page has the studies that are available at that time.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/studies",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
        StudiesQuery,
    ),
    responses((status = 200, description = "A page of studies", body = StudyList), CommonErrors),
)]
pub(super) async fn list_studies(
    State(api): State<Arc<Api>>,
    asked: AuthorizedSearch,
    Parameters(query): Parameters<StudiesQuery>,
) -> HttpResult {
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let which = match query.duplicates.as_deref() {
        None => StudyFilter::All,
        Some("only") => StudyFilter::Duplicates,
        Some("none") => StudyFilter::Unique,
        Some(_) => return Err(Problem::bad("duplicates is \"only\" or \"none\"")),
    };
    let selection = StudySelection { which, text: words(query.text.as_deref())? };
    let files = files(asked.stored(&api.service).await?, query.file.as_deref())?;
    let listing = Studies { stored: &*api.service.studies, search: asked.search, selection };
    let list = List { of: "studies", owner: asked.search.as_uuid() };
    answer(&listing, &files, list, PageRequest { limit, after: query.after.as_deref() }).await
}

/// Selects a page of the studies of a review.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct ReviewStudiesQuery {
    /// Maximum number of studies to return, from 1 to 1,000. The default is 100.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
    /// Returns only the studies of this import and of the imports that repair it.
    search: Option<Uuid>,
    /// Returns only the studies of this file of the import, and of the files that repair it. It requires `search`.
    file: Option<Uuid>,
    /// The studies to return: `all` (the default), `unique` or `duplicates`.
    #[param(inline, value_type = Option<choices::Studies>)]
    studies: Option<String>,
    /// Returns only studies whose title, authors, abstract, journal and DOI contain all words of this text, ignoring
    /// case and diacritics. Words in quotation marks are adjacent. The last word also matches longer words that begin
    /// with it, unless a space or a quotation mark follows. 1 to 255 characters and up to 32 words.
    #[param(min_length = 1, max_length = 255)]
    text: Option<String>,
}

/// Lists the studies of a review, or of one of its imports together with the imports that repair it. The newest import
/// of a review comes first; a repair follows its import. An export with the same selection contains the same studies.
///
/// Up to about 20,000 studies are examined for one page, which has up to about 4 MB. A page may be short or empty even
/// if more pages follow.
#[utoipa::path(
    get,
    path = "/projects/{project}/studies",
    params(("project" = Uuid, Path, description = "The review"), ReviewStudiesQuery),
    responses((status = 200, description = "A page of studies", body = StudyList), CommonErrors),
)]
pub(super) async fn list_review_studies(
    State(api): State<Arc<Api>>,
    AuthorizedProject(project): AuthorizedProject,
    Parameters(query): Parameters<ReviewStudiesQuery>,
) -> HttpResult {
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let selection = selection(query.studies.as_deref(), query.text.as_deref())?;
    let scope = scope(&api.service, project, query.search, query.file).await?;
    let list = List { of: "studies of all", owner: query.search.unwrap_or_else(|| project.as_uuid()) };
    let stored = &*api.service.studies;
    let listing = |search| Studies { stored, search, selection: selection.clone() };
    let request = PageRequest { limit, after: query.after.as_deref() };
    combined_listing::answer(&api.service, &scope, listing, list, request).await
}

/// Returns the text of a record.
async fn raw(
    api: &Arc<Api>,
    file: &ParsedFile,
    encoding: &str,
    record: RecordBytes,
) -> Result<Raw, StoreError> {
    let turn = api.service.turn(file, record.record).await;
    let (api, file, encoding) = (Arc::clone(api), file.clone(), encoding.to_owned());
    on_own_thread(async move { api.service.raw(&file, &encoding, record, turn).await }).await?
}

/// Returns the text around the records of a file.
async fn around(
    api: &Arc<Api>,
    file: &ParsedFile,
    encoding: &str,
    record: u64,
) -> Result<Option<Around>, StoreError> {
    let turn = api.service.turn(file, record).await;
    let (api, file, encoding) = (Arc::clone(api), file.clone(), encoding.to_owned());
    on_own_thread(async move { api.service.around(&file, &encoding, record, turn).await }).await?
}

/// Returns one study and the text that it was read from.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/studies/{study}",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
        ("study" = String, Path, description = "The `id` of the study, such as `0-17`"),
    ),
    responses((status = 200, description = "The study", body = StudyDetail), CommonErrors),
)]
pub(super) async fn show_study(
    State(api): State<Arc<Api>>,
    asked: AuthorizedSearch,
    RecordParam(RecordPlace { position, record }): RecordParam,
) -> HttpResult {
    let absent = || Problem::new(StatusCode::NOT_FOUND, "there is no such study");
    let stored = asked.stored(&api.service).await?;
    let (file, encoding) = stored.file(position).ok_or_else(absent)?;
    let study = api.service.study(asked.search, file.file_id, record).await?.ok_or_else(absent)?;
    let record = RecordBytes { record: study.record, bytes: study.bytes.clone() };
    let raw = raw(&api, file, encoding, record).await?;
    Ok(Json(StudyDetail {
        study: StudyView::of(position, study).within(&file.parts).bounded()?,
        raw: raw.into(),
    })
    .into_response())
}

/// Selects a page of the records that were not imported.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(super) struct UnreadQuery {
    /// Maximum number of records to return, from 1 to 1,000. The default is 100.
    #[param(minimum = 1, maximum = 1_000)]
    limit: Option<usize>,
    /// The `next` cursor of the previous page.
    after: Option<String>,
    /// Returns only records of the file with this id.
    #[param(format = Uuid)]
    file: Option<String>,
}

/// Lists the records that were not imported, from the files that were read completely, in the order of files and
/// records.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/quarantine",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
        UnreadQuery,
    ),
    responses((status = 200, description = "A page of records", body = UnreadList), CommonErrors),
)]
pub(super) async fn list_unread(
    State(api): State<Arc<Api>>,
    asked: AuthorizedSearch,
    Parameters(query): Parameters<UnreadQuery>,
) -> HttpResult {
    let limit = paging::limit(query.limit, PAGE, MAX_PAGE)?;
    let stored = asked.stored(&api.service).await?;
    let known = api.service.repairs(&stored.job).await?;
    let files = files(stored, query.file.as_deref())?;
    let listing = UnreadRecords { service: &api.service, search: asked.search, known };
    let list = List { of: "quarantine", owner: asked.search.as_uuid() };
    answer(&listing, &files, list, PageRequest { limit, after: query.after.as_deref() }).await
}

/// Returns one record that was not imported, and its text.
#[utoipa::path(
    get,
    path = "/projects/{project}/searches/{search}/quarantine/{record}",
    params(
        ("project" = Uuid, Path, description = "The review"),
        ("search" = Uuid, Path, description = "The import"),
        ("record" = String, Path, description = "The `id` of the record, such as `0-18`"),
    ),
    responses((status = 200, description = "The record", body = UnreadDetail), CommonErrors),
)]
pub(super) async fn show_unread(
    State(api): State<Arc<Api>>,
    asked: AuthorizedSearch,
    RecordParam(RecordPlace { position, record }): RecordParam,
) -> HttpResult {
    let absent = || Problem::new(StatusCode::NOT_FOUND, "there is no such unreadable record");
    let stored = asked.stored(&api.service).await?;
    let (file, encoding) = stored.file(position).ok_or_else(absent)?;
    let mut found = api.service.studies.quarantined(asked.search, file.file_id, record - 1, 1).await?;
    let unread = found.pop().filter(|unread| unread.record.number == record).ok_or_else(absent)?;
    let of = RecordBytes { record, bytes: Some(unread.record.bytes.clone()) };
    let raw = raw(&api, file, encoding, of).await?;
    let around = around(&api, file, encoding, record).await?.map(Into::into);
    let known = api.service.repairs(&stored.job).await?;
    let unread = UnreadView::of(position, unread, &known).within(&file.parts);
    Ok(Json(UnreadDetail { unread, around, raw: raw.into() }).into_response())
}
