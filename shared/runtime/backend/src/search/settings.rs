//! Settings of the search import, in addition to those of the engine.

use std::time::Duration;

use imports::ports::Quota;
use imports::{Deadlines, ProjectId};
use uuid::Uuid;

/// Settings without a meaning on Lambda, where no data directory exists, every request names its project, and the
/// queues determine the visibility timeout.
pub const NOT_ON_LAMBDA: [&str; 3] =
    ["SEARCH_IMPORT_DATA_DIR", "SEARCH_IMPORT_PROJECT", "SEARCH_IMPORT_VISIBILITY_SECONDS"];

/// Project of commands that name none.
const DEFAULT_PROJECT: ProjectId = ProjectId::from_uuid(Uuid::nil());

/// Default scope of operators.
const OPERATOR_SCOPE: &str = "searches:operate";

/// Settings of the search import.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchSettings {
    /// `SEARCH_IMPORT_PROJECT`: the project of commands that name none, by its id or its name. Default: one shared
    /// project.
    pub project: ProjectId,
    /// `SEARCH_IMPORT_KEY_PREFIX`: the prefix of the keys of uploads. Default: `uploads/`. A longer prefix reduces the
    /// maximum length of file names, because a key has at most 1,024 bytes.
    pub key_prefix: String,
    /// `SEARCH_IMPORT_MAX_FILE_BYTES`: the maximum size of a file. Default: 1 GiB. Maximum: 5 GB, the limit of a
    /// presigned upload.
    pub max_file_bytes: u64,
    /// `SEARCH_IMPORT_MAX_RECORD_BYTES`: the maximum size of a record. Default: 4 MiB. Maximum: 5 MiB, because text in
    /// another encoding may grow to three times its size in UTF-8, and MongoDB limits documents to 16 MiB
    /// (<https://www.mongodb.com/docs/manual/reference/limits/#mongodb-limit-BSON-Document-Size>).
    pub max_record_bytes: usize,
    /// `SEARCH_IMPORT_MAX_RECORDS`: the maximum number of records of a file, including unreadable ones. Default:
    /// 2,000,000. A file with more is rejected as a whole.
    pub max_records: u64,
    /// `SEARCH_IMPORT_MAX_QUARANTINED_PERCENT`: the maximum percentage of unreadable records. Default: 50. A file with
    /// more is rejected as a whole.
    pub max_quarantined_percent: u8,
    /// `SEARCH_IMPORT_UPLOAD_VALID_SECONDS`: the validity of an upload form. Default: 3,600.
    pub upload_valid_for: Duration,
    /// Time limits of a search:
    /// - `SEARCH_IMPORT_UPLOAD_TIMEOUT_SECONDS`: until the next file is uploaded. Default: 3,600. At least the validity
    ///   of an upload form;
    /// - `SEARCH_IMPORT_PARSE_TIMEOUT_SECONDS`: until all files are read, after all of them are uploaded. Default:
    ///   86,400.
    pub deadlines: Deadlines,
    /// Limits of a project's unfinished searches:
    /// - `SEARCH_IMPORT_MAX_OPEN_SEARCHES`: their maximum number. Default: 1,000;
    /// - `SEARCH_IMPORT_MAX_OPEN_BYTES`: the maximum announced size of all their files. Default: 1 TiB.
    pub quota: Quota,
    /// `SEARCH_IMPORT_PROJECTS_CLAIM`: the claim of a caller's token that lists the caller's projects. Default: none,
    /// for callers without tokens, who have access to all projects.
    pub projects_claim: Option<String>,
    /// `SEARCH_IMPORT_OPERATOR_SCOPE`: the scope in the token of an operator. Default: `searches:operate`.
    pub operator_scope: String,
    /// `SEARCH_IMPORT_PAGE_KEY_SHA256`: the SHA-256 hash, in lower-case hexadecimal digits, of the key that the page's
    /// distribution adds to requests. Requests without the key are refused. Default: none, so that clients may also send
    /// requests to the API's own address.
    pub page_key_sha256: Option<String>,
}

impl Default for SearchSettings {
    fn default() -> Self {
        Self {
            project: DEFAULT_PROJECT,
            key_prefix: "uploads/".to_owned(),
            max_file_bytes: 1 << 30,
            max_record_bytes: 4 << 20,
            max_records: 2_000_000,
            max_quarantined_percent: 50,
            upload_valid_for: Duration::from_secs(3_600),
            deadlines: Deadlines::default(),
            quota: Quota::default(),
            projects_claim: None,
            operator_scope: OPERATOR_SCOPE.to_owned(),
            page_key_sha256: None,
        }
    }
}
