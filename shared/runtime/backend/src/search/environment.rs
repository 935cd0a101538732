//! Conversion of the environment to the settings of the search import.

use std::time::Duration;

use imports::manifest::{MAX_FILE_BYTES, MAX_NAME_CHARS};
use imports::ports::Quota;
use imports::{Deadlines, ObjectKey, ProjectId, Settings, exports};

use super::settings::SearchSettings;
use crate::config::reader::{Reader, span};
use crate::config::{Config, Faults};

/// See [`SearchSettings::max_record_bytes`].
const MAX_RECORD_BYTES: usize = 5 << 20;

impl Default for Config {
    fn default() -> Self {
        Self::of(imports::SYSTEM)
    }
}

impl Config {
    /// Reads the settings of the search import from the environment of the process.
    ///
    /// # Errors
    /// Returns all settings that are wrong.
    pub fn from_env() -> Result<Self, Faults> {
        Self::from_env_of(imports::SYSTEM)
    }

    /// Returns the settings of the application.
    pub fn settings(&self) -> Settings {
        let search = &self.search;
        Settings {
            key_prefix: search.key_prefix.clone(),
            max_file_bytes: search.max_file_bytes,
            max_record_bytes: search.max_record_bytes,
            max_records: search.max_records,
            max_quarantined_percent: search.max_quarantined_percent,
            upload_valid_for: search.upload_valid_for,
            deadlines: search.deadlines,
            quota: search.quota,
            ..Settings::default()
        }
    }

    /// Reads the settings of the search import; other systems have none of them.
    pub(crate) fn read_search(&mut self, reader: &mut Reader<'_>) {
        if reader.system() == imports::SYSTEM {
            self.services.upload_bucket = reader.own_text("UPLOAD_BUCKET");
            self.search = SearchSettings::read(reader);
        }
    }
}

impl SearchSettings {
    fn read(reader: &mut Reader<'_>) -> Self {
        let default = Self::default();
        let from_1 = "a number, at least 1";
        let upload_valid_for = Duration::from_secs(reader.read(
            "UPLOAD_VALID_SECONDS",
            default.upload_valid_for.as_secs(),
            |seconds| (1..=604_800).contains(seconds),
            "a number of seconds from 1 to 604800",
        ));
        let fits = |prefix: &String| {
            ObjectKey::max_name_bytes(prefix) >= MAX_NAME_CHARS && !prefix.starts_with(exports::PREFIX)
        };
        let must_fit = "text of at most 621 bytes, so that file names of 255 characters fit into a key, and not below \
                        exports/";
        Self {
            project: project(reader, default.project),
            key_prefix: reader.read("KEY_PREFIX", default.key_prefix, fits, must_fit),
            max_file_bytes: reader.read(
                "MAX_FILE_BYTES",
                default.max_file_bytes,
                |bytes| (1..=MAX_FILE_BYTES).contains(bytes),
                "a number of bytes from 1 to 5000000000",
            ),
            max_record_bytes: reader.read(
                "MAX_RECORD_BYTES",
                default.max_record_bytes,
                |bytes| (1..=MAX_RECORD_BYTES).contains(bytes),
                "a number of bytes from 1 to 5242880",
            ),
            max_records: reader.read("MAX_RECORDS", default.max_records, |n| *n > 0, from_1),
            max_quarantined_percent: reader.read(
                "MAX_QUARANTINED_PERCENT",
                default.max_quarantined_percent,
                |percent| *percent <= 100,
                "a number from 0 to 100",
            ),
            upload_valid_for,
            deadlines: deadlines(reader, upload_valid_for, default.deadlines),
            quota: quota(reader, default.quota),
            projects_claim: reader.own_text("PROJECTS_CLAIM"),
            operator_scope: reader.own_text("OPERATOR_SCOPE").unwrap_or(default.operator_scope),
            page_key_sha256: page_key_sha256(reader),
        }
    }
}

/// Reads the time limits of a search. It waits for uploads at least as long as an upload form is valid.
fn deadlines(reader: &mut Reader<'_>, upload_valid_for: Duration, default: Deadlines) -> Deadlines {
    let upload = reader.seconds("UPLOAD_TIMEOUT_SECONDS", default.upload.unsigned_abs());
    let parse = reader.seconds("PARSE_TIMEOUT_SECONDS", default.parse.unsigned_abs());
    Deadlines { upload: span(upload.max(upload_valid_for)), parse: span(parse) }
}

fn quota(reader: &mut Reader<'_>, default: Quota) -> Quota {
    Quota {
        searches: reader.read("MAX_OPEN_SEARCHES", default.searches, |n| *n > 0, "a number, at least 1"),
        bytes: reader.read("MAX_OPEN_BYTES", default.bytes, |n| *n > 0, "a number of bytes, at least 1"),
    }
}

fn page_key_sha256(reader: &mut Reader<'_>) -> Option<String> {
    let hash = reader.own_text("PAGE_KEY_SHA256")?;
    let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    if hash.len() != 64 || !hash.bytes().all(is_digit) {
        // Omit the value: it may be the key itself.
        reader.faults.push(
            "SEARCH_IMPORT_PAGE_KEY_SHA256 must be the SHA-256 hash of a key, as 64 lower-case hexadecimal digits"
                .to_owned(),
        );
    }
    Some(hash)
}

fn project(reader: &mut Reader<'_>, default: ProjectId) -> ProjectId {
    let Some(text) = reader.own_text("PROJECT") else { return default };
    ProjectId::meant_by(&text).unwrap_or_else(|error| {
        reader.faults.push(format!("SEARCH_IMPORT_PROJECT names no project: the name {error}"));
        default
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::search::NOT_ON_LAMBDA;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn upload_timeout_is_at_least_form_validity() {
        let upload = |settings: &[(&str, &str)]| {
            Config::from_pairs(imports::SYSTEM, pairs(settings))
                .map(|config| config.search.deadlines.upload.as_secs())
        };
        let (valid, timeout) = ("SEARCH_IMPORT_UPLOAD_VALID_SECONDS", "SEARCH_IMPORT_UPLOAD_TIMEOUT_SECONDS");
        assert_eq!(upload(&[]), Ok(3_600));
        assert_eq!(upload(&[(valid, "7200")]), Ok(7_200));
        assert_eq!(upload(&[(valid, "60"), (timeout, "120")]), Ok(120));
        assert!(upload(&[(timeout, "0")]).is_err());
    }

    #[test]
    fn key_prefix_leaves_capacity_for_names() {
        let read = |prefix: &str| {
            Config::from_pairs(imports::SYSTEM, pairs(&[("SEARCH_IMPORT_KEY_PREFIX", prefix)]))
        };
        assert!(read(&"x".repeat(621)).is_ok());
        assert!(read(&"x".repeat(622)).unwrap_err().to_string().contains("at most 621 bytes"));
        assert!(read("exports/mine/").unwrap_err().to_string().contains("not below exports/"));
    }

    #[test]
    fn maximum_of_unreadable_records_is_a_percentage() {
        let read = |percent: &str| {
            Config::from_pairs(imports::SYSTEM, pairs(&[("SEARCH_IMPORT_MAX_QUARANTINED_PERCENT", percent)]))
                .map(|config| config.search.max_quarantined_percent)
        };
        assert_eq!((read("0"), read("100")), (Ok(0), Ok(100)));
        assert!(read("101").unwrap_err().to_string().contains("from 0 to 100"));
    }

    #[test]
    fn names_contain_every_setting() {
        let names = Config::names_of(imports::SYSTEM);
        for name in ["MONGODB_URI", "MONGODB_DATABASE", "SEARCH_IMPORT_MODE", "SEARCH_IMPORT_OUTBOX_BATCH"] {
            assert!(names.contains(name), "{names:?}");
        }
        assert!(NOT_ON_LAMBDA.iter().all(|name| names.contains(*name)), "{names:?}");
    }

    #[test]
    fn all_faults_are_reported_together() {
        let faults = Config::from_pairs(
            imports::SYSTEM,
            pairs(&[
                ("SEARCH_IMPORT_MODE", "maybe"),
                ("SEARCH_IMPORT_MAX_FILE_BYTES", "0"),
                ("SEARCH_IMPORT_CONCURRENCY", "-1"),
            ]),
        )
        .unwrap_err()
        .to_string();
        for name in ["MODE", "MAX_FILE_BYTES", "CONCURRENCY"] {
            assert!(faults.contains(name), "{faults}");
        }
    }

    #[test]
    fn search_import_requires_mongodb() {
        let table = [("SEARCH_IMPORT_STORE_TABLE", "store")];
        let fault = Config::from_pairs(imports::SYSTEM, pairs(&table)).unwrap_err().to_string();
        assert!(
            fault.contains("SEARCH_IMPORT_STORE_TABLE is set, but search-import requires MongoDB"),
            "{fault}"
        );
    }

    #[test]
    fn empty_environment_gives_defaults() {
        assert_eq!(Config::from_pairs(imports::SYSTEM, []), Ok(Config::default()));
    }
}
