//! The handler that describes the deployment to its clients.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use imports::ProjectId;
use imports::manifest::{MAX_FILES, MAX_NAME_CHARS};
use references::Format;
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use super::duplicates::MAX_PAIRS;
use super::extract::Caller;
use super::problem::{CommonErrors, Problem};
use super::results::MAX_PAGE as MAX_RECORDS_PAGE;
use super::searches::MAX_PAGE as MAX_SEARCHES_PAGE;
use super::{Api, BodyMode};
use service::sources::{KNOWN, Method, VocabularyEntry, platforms};
use service::{MAX_RAW_BYTES, ProjectAccess};

/// The deployment's version, features and limits.
#[derive(Serialize, ToSchema)]
pub(super) struct ConfigView {
    /// The version of the responding program.
    version: &'static str,
    /// Features that not every deployment has.
    features: FeaturesView,
    /// Limits of requests and responses.
    limits: LimitsView,
    /// The permissions of the caller.
    caller: CallerView,
    /// The names of the supported file formats.
    formats: Vec<String>,
    /// The known databases, registers and other sources of records.
    sources: Vec<KnownSourceView>,
    /// The known platforms of databases.
    platforms: Vec<&'static str>,
}

/// A known source of records.
#[derive(Serialize, ToSchema)]
struct KnownSourceView {
    /// Its usual name. Other spellings of it are stored under this name.
    name: &'static str,
    /// How its records are identified.
    method: Method,
}

/// The permissions of the caller.
#[derive(Serialize, ToSchema)]
struct CallerView {
    /// The ids of the reviews that the caller can access, by token or as a member; null if all.
    #[schema(required)]
    projects: Option<Vec<Uuid>>,
    /// The identity under which others make the caller a member of a review: the `sub` of the token. Null if callers do not
    /// sign in; then reviews have no members.
    #[schema(required)]
    name: Option<String>,
    /// `true` if the caller is an operator of the deployment.
    is_operator: bool,
}

impl CallerView {
    fn of(Caller { access, identity, is_operator }: Caller) -> Self {
        let projects = match access {
            ProjectAccess::All => None,
            ProjectAccess::Only(projects) => Some(projects.keys().map(ProjectId::as_uuid).collect()),
        };
        Self { projects, name: identity, is_operator }
    }
}

/// Features that not every deployment has.
#[derive(Serialize, ToSchema)]
struct FeaturesView {
    /// `true` if changes are pushed as events. If `false`, poll with the ETag of the last response.
    live: bool,
    /// `true` if exports of any size are streamed. If `false`, larger exports are refused with 413.
    stream_exports: bool,
    /// `true` if the deployment can run fault trials with sample files.
    trials: bool,
}

/// Limits of requests and responses.
#[derive(Serialize, ToSchema)]
struct LimitsView {
    /// Maximum number of files of an import.
    max_files: usize,
    /// Maximum size of a file, in bytes.
    max_file_bytes: u64,
    /// Maximum length of the name of an import or file, in characters.
    max_name_chars: usize,
    /// Maximum size of a record, in bytes; a file with a larger record is rejected.
    max_record_bytes: usize,
    /// Maximum number of records of a file.
    max_records: u64,
    /// Maximum number of records that were not imported which are stored for a file; further ones are only counted.
    max_kept_unread: u64,
    /// Maximum number of unfinished imports of a review.
    max_open_searches: usize,
    /// Maximum total size of the files of these imports, in bytes.
    max_open_bytes: u64,
    /// Maximum number of imports in a page.
    max_searches_page: usize,
    /// Maximum number of studies, or of records that were not imported, in a page.
    max_records_page: usize,
    /// Maximum number of duplicates in a page.
    max_duplicates_page: usize,
    /// Maximum number of bytes of a record's text that are returned.
    max_raw_bytes: usize,
}

/// Returns the features and limits of this deployment and the permissions of the caller.
#[utoipa::path(
    get,
    path = "/config.json",
    responses((status = 200, description = "The deployment", body = ConfigView), CommonErrors),
)]
pub(super) async fn show_config(
    State(api): State<Arc<Api>>,
    caller: Caller,
) -> Result<Json<ConfigView>, Problem> {
    let settings = &api.service.settings;
    let streams = api.body_mode == BodyMode::Streaming;
    Ok(Json(ConfigView {
        version: env!("CARGO_PKG_VERSION"),
        features: FeaturesView { live: streams, stream_exports: streams, trials: api.trials.is_some() },
        limits: LimitsView {
            max_files: MAX_FILES,
            max_file_bytes: settings.max_file_bytes,
            max_name_chars: MAX_NAME_CHARS,
            max_record_bytes: settings.max_record_bytes,
            max_records: settings.max_records,
            max_kept_unread: settings.kept_unreadable,
            max_open_searches: settings.quota.searches,
            max_open_bytes: settings.quota.bytes,
            max_searches_page: MAX_SEARCHES_PAGE,
            max_records_page: MAX_RECORDS_PAGE,
            max_duplicates_page: MAX_PAIRS,
            max_raw_bytes: MAX_RAW_BYTES,
        },
        caller: CallerView::of(caller),
        formats: Format::ALL.iter().map(ToString::to_string).collect(),
        sources: KNOWN
            .iter()
            .map(|&VocabularyEntry { name, method, .. }| KnownSourceView { name, method })
            .collect(),
        platforms: platforms().collect(),
    }))
}
