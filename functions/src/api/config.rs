//! What a client has to know of the deployment before it offers anything.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use imports::ProjectId;
use imports::manifest::{MAX_FILES, MAX_NAME_CHARS};
use references::Format;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::duplicates::MAX_PAIRS;
use super::results::MAX_PAGE as MAX_RECORDS_PAGE;
use super::searches::MAX_PAGE as MAX_SEARCHES_PAGE;
use super::{Answers, Api};
use service::{MAX_RAW_BYTES, Operator, ProjectAccess};

/// What the deployment is and takes.
#[derive(Serialize, ToSchema)]
pub(super) struct ConfigView {
    /// The version of the program that answers.
    version: &'static str,
    /// What it can do beyond the operations that every deployment has.
    features: FeaturesView,
    /// What it takes at most.
    limits: LimitsView,
    /// Who asks.
    caller: CallerView,
    /// The formats of files that it reads, by the names that it shows.
    formats: Vec<String>,
}

/// What a caller may see and change.
#[derive(Serialize, ToSchema)]
struct CallerView {
    /// The ids of the projects that are theirs; null where all are.
    #[schema(required)]
    projects: Option<Vec<Uuid>>,
    /// Whether they may operate the deployment.
    is_operator: bool,
}

impl CallerView {
    fn of(caller: &ProjectAccess, operator: Option<&Operator>) -> Self {
        let projects = match caller {
            ProjectAccess::All => None,
            ProjectAccess::Only(projects) => Some(projects.iter().map(ProjectId::as_uuid).collect()),
        };
        Self { projects, is_operator: operator.is_some() }
    }
}

/// What a deployment can do beyond the operations that every one has.
#[derive(Serialize, ToSchema)]
struct FeaturesView {
    /// Whether it tells of changes by itself. If not, ask again with the ETag of the last answer.
    live: bool,
    /// Whether exports of any size are streamed. If not, larger ones are refused with 413.
    stream_exports: bool,
    /// Whether it imports sample files with faults when it is asked to.
    trials: bool,
}

/// What a deployment takes at most.
#[derive(Serialize, ToSchema)]
struct LimitsView {
    /// Files of a search.
    max_files: usize,
    /// Bytes of a file.
    max_file_bytes: u64,
    /// Characters of a name of a search or file.
    max_name_chars: usize,
    /// Bytes of one record; a larger one refuses its file.
    max_record_bytes: usize,
    /// Records of a file.
    max_records: u64,
    /// Unreadable records that are kept of a file; more are only counted.
    max_kept_unread: u64,
    /// Searches of a project that are under way.
    max_open_searches: usize,
    /// Bytes that the files of these searches come to.
    max_open_bytes: u64,
    /// Searches of a page.
    max_searches_page: usize,
    /// Studies, or unreadable records, of a page.
    max_records_page: usize,
    /// Duplicates of a page.
    max_duplicates_page: usize,
    /// Bytes of a record whose text is shown.
    max_raw_bytes: usize,
}

/// What this deployment is and takes, and what its caller may do.
#[utoipa::path(
    get,
    path = "/config.json",
    responses((status = 200, description = "The deployment", body = ConfigView)),
)]
pub(super) async fn show_config(
    State(api): State<Arc<Api>>,
    Extension(caller): Extension<ProjectAccess>,
    operator: Option<Extension<Operator>>,
) -> Json<ConfigView> {
    let settings = &api.function.settings;
    let streams = api.answers == Answers::Streamed;
    Json(ConfigView {
        version: env!("CARGO_PKG_VERSION"),
        features: FeaturesView { live: streams, stream_exports: streams, trials: api.trials.is_some() },
        limits: LimitsView {
            max_files: MAX_FILES,
            max_file_bytes: settings.max_file_bytes,
            max_name_chars: MAX_NAME_CHARS,
            max_record_bytes: settings.max_record_bytes,
            max_records: settings.max_records,
            max_kept_unread: settings.kept_unreadable,
            max_open_searches: settings.allowance.searches,
            max_open_bytes: settings.allowance.bytes,
            max_searches_page: MAX_SEARCHES_PAGE,
            max_records_page: MAX_RECORDS_PAGE,
            max_duplicates_page: MAX_PAIRS,
            max_raw_bytes: MAX_RAW_BYTES,
        },
        caller: CallerView::of(&caller, operator.as_ref().map(|Extension(operator)| operator)),
        formats: Format::ALL.iter().map(ToString::to_string).collect(),
    })
}
