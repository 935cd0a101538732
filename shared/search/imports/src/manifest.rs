//! The announcement of a search, and the metadata of its uploaded files.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::ids::{FileId, SearchId};
use crate::names::check_name;

pub use crate::names::{FileNameError, MAX_NAME_CHARS, check_file_name};

/// The maximum number of files of a search. It bounds the saga's document, its tokens and its outbox.
pub const MAX_FILES: usize = 50;
/// The maximum size of an object that a presigned POST can create, in bytes: 5 GB
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html>). Deployments set a lower limit.
pub const MAX_FILE_BYTES: u64 = 5_000_000_000;

/// The maximum size of user metadata that S3 stores with an object, names and values together, in bytes
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>).
const MAX_METADATA_BYTES: usize = 2_048;
/// The prefix of each metadata name in a form. S3 does not document whether it counts towards the limit, so it is
/// counted here.
const METADATA_PREFIX: &str = "x-amz-meta-";

/// The limits of a deployment for announcements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestLimits {
    /// The maximum size of a file, in bytes.
    pub max_file_bytes: u64,
    /// The maximum length of a file name, in bytes of UTF-8, which the key of the upload allows; see
    /// [`crate::ObjectKey::max_name_bytes`].
    pub max_file_name_bytes: usize,
    /// The maximum length of a search's name, in bytes as encoded in the metadata of its uploads; see
    /// [`UploadMetadata::MAX_NAME_BYTES`].
    pub max_search_name_bytes: usize,
}

impl ManifestLimits {
    /// The limits for announcements that were already accepted: earlier versions had no limits in bytes.
    pub const ACCEPTED: Self = Self {
        max_file_bytes: MAX_FILE_BYTES,
        max_file_name_bytes: usize::MAX,
        max_search_name_bytes: usize::MAX,
    };
}

/// The announcement that `start-upload` sends: the search's name and its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Manifest {
    /// The search's name, as the reviewer knows it.
    pub name: String,
    /// Its files, 1 to [`MAX_FILES`].
    pub files: Vec<ManifestFile>,
    /// The search that it repairs, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<SearchId>,
}

/// An announced file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ManifestFile {
    /// The id, created by `start-upload`.
    pub file_id: FileId,
    /// The name without a path.
    pub name: String,
    /// The announced size in bytes, at least 1.
    pub size_bytes: u64,
}

impl Manifest {
    /// Returns all faults of the manifest; empty if it is valid.
    pub fn faults(&self, limits: &ManifestLimits) -> Vec<ManifestFault> {
        let mut faults = Vec::new();
        let name = check_name(&self.name).and_then(|()| {
            let (bytes, allowed) = (encoded(&self.name).len(), limits.max_search_name_bytes);
            if bytes > allowed { Err(FileNameError::TooManyEncoded { bytes, allowed }) } else { Ok(()) }
        });
        if let Err(error) = name {
            faults.push(ManifestFault::SearchName(error));
        }
        if self.files.is_empty() || self.files.len() > MAX_FILES {
            faults.push(ManifestFault::FileCount(self.files.len()));
        }
        let mut seen = BTreeSet::new();
        // The number of faults stays bounded, whatever the number of announced files.
        for (index, file) in self.files.iter().take(MAX_FILES).enumerate() {
            if !seen.insert(file.file_id) {
                faults.push(ManifestFault::RepeatedFile(file.file_id));
            }
            let name = check_file_name(&file.name).and_then(|()| {
                let (bytes, allowed) = (file.name.len(), limits.max_file_name_bytes);
                if bytes > allowed { Err(FileNameError::TooManyBytes { bytes, allowed }) } else { Ok(()) }
            });
            if let Err(error) = name {
                faults.push(ManifestFault::FileName { index, error });
            }
            if file.size_bytes == 0 {
                faults.push(ManifestFault::EmptyFile { index });
            } else if file.size_bytes > limits.max_file_bytes {
                faults.push(ManifestFault::FileTooLarge { index, limit_bytes: limits.max_file_bytes });
            }
        }
        faults
    }
}

/// A fault of a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFault {
    /// The search's name is invalid.
    #[error("the import's name {0}")]
    SearchName(FileNameError),
    /// There are no files, or more than [`MAX_FILES`].
    #[error("an import has 1 to {MAX_FILES} files, not {0}")]
    FileCount(usize),
    /// Two entries have the same id.
    #[error("file {0} is announced twice")]
    RepeatedFile(FileId),
    /// A file's name is invalid; `index` counts from 0 in the manifest's order.
    #[error("the file name {error}")]
    FileName {
        /// The index in the manifest.
        index: usize,
        /// The reason.
        error: FileNameError,
    },
    /// A file has no content.
    #[error("the file is empty")]
    EmptyFile {
        /// The index in the manifest.
        index: usize,
    },
    /// A file exceeds the limit.
    #[error("the file is larger than the limit of {limit_bytes} bytes")]
    FileTooLarge {
        /// The index in the manifest.
        index: usize,
        /// The limit that is exceeded.
        limit_bytes: u64,
    },
}

impl ManifestFault {
    /// Returns the index of the file if the fault concerns a single file.
    pub fn file_index(&self) -> Option<usize> {
        match self {
            Self::FileName { index, .. } | Self::EmptyFile { index } | Self::FileTooLarge { index, .. } => {
                Some(*index)
            }
            Self::SearchName(_) | Self::FileCount(_) | Self::RepeatedFile(_) => None,
        }
    }
}

/// Encodes a search's name as in the metadata of an upload.
fn encoded(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
}

/// The user metadata of an uploaded object, which the presigned upload fixes. It describes the search, so the last
/// file's arrival can start the parsing even if `SearchUploadStarted` is late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadMetadata {
    /// The search's name.
    pub search_name: String,
    /// Number of files of the search.
    pub expected_files: usize,
}

impl UploadMetadata {
    const SEARCH_NAME: &'static str = "search-name";
    const EXPECTED_FILES: &'static str = "expected-files";

    /// The maximum length of a search's name, in bytes as encoded: the limit of S3 minus all other metadata.
    pub const MAX_NAME_BYTES: usize = MAX_METADATA_BYTES
        - (METADATA_PREFIX.len() + Self::SEARCH_NAME.len())
        - (METADATA_PREFIX.len() + Self::EXPECTED_FILES.len())
        // The number of digits of the largest number of files.
        - MAX_FILES.ilog10() as usize
        - 1;

    /// Returns the user metadata of the object. Names are percent-encoded, because S3 supports only ASCII reliably
    /// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>).
    pub fn to_map(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (Self::SEARCH_NAME.to_owned(), encoded(&self.search_name)),
            (Self::EXPECTED_FILES.to_owned(), self.expected_files.to_string()),
        ])
    }

    /// Parses the metadata of a stored object; returns `None` if it has none of these entries.
    ///
    /// # Errors
    /// Returns an error if an entry is missing or invalid.
    pub fn from_map(map: &BTreeMap<String, String>) -> Result<Option<Self>, MetadataError> {
        let (name, count) = match (map.get(Self::SEARCH_NAME), map.get(Self::EXPECTED_FILES)) {
            (None, None) => return Ok(None),
            (Some(name), Some(count)) => (name, count),
            (None, _) => return Err(MetadataError::Missing(Self::SEARCH_NAME)),
            (_, None) => return Err(MetadataError::Missing(Self::EXPECTED_FILES)),
        };
        let search_name =
            percent_decode_str(name).decode_utf8().map_err(|_| MetadataError::SearchName)?.into_owned();
        check_name(&search_name).map_err(|_| MetadataError::SearchName)?;
        let expected_files = count.parse().map_err(|_| MetadataError::ExpectedFiles)?;
        if !(1..=MAX_FILES).contains(&expected_files) {
            return Err(MetadataError::ExpectedFiles);
        }
        Ok(Some(Self { search_name, expected_files }))
    }
}

/// Reasons why an object's metadata is invalid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// One of the two entries is missing.
    #[error("the upload's metadata has no \"{0}\"")]
    Missing(&'static str),
    /// The name is invalid.
    #[error("the upload's metadata has an invalid \"search-name\"")]
    SearchName,
    /// The number is not from 1 to [`MAX_FILES`].
    #[error("the upload's metadata has an invalid \"expected-files\", which is 1 to {MAX_FILES}")]
    ExpectedFiles,
}

#[cfg(test)]
mod tests {
    use super::*;
    use uuid::Uuid;

    fn manifest(files: &[(&str, u64)]) -> Manifest {
        let files = files.iter().enumerate().map(|(n, (name, size_bytes))| ManifestFile {
            file_id: FileId::from_uuid(Uuid::from_u128(n as u128)),
            name: (*name).to_owned(),
            size_bytes: *size_bytes,
        });
        Manifest { name: "Gambling harms".into(), files: files.collect(), repairs: None }
    }

    fn limits() -> ManifestLimits {
        ManifestLimits { max_file_bytes: 100, ..ManifestLimits::ACCEPTED }
    }

    #[test]
    fn file_name_is_limited_by_key_length() {
        let limits = ManifestLimits { max_file_name_bytes: 868, ..limits() };
        let named = |name: String| manifest(&[("a.ris", 1), (&name, 1)]).faults(&limits);
        assert_eq!(named("\u{1f4da}".repeat(217)), []);
        let [fault] = &named("\u{1f4da}".repeat(218))[..] else { panic!() };
        let error = FileNameError::TooManyBytes { bytes: 872, allowed: 868 };
        assert_eq!(*fault, ManifestFault::FileName { index: 1, error });
        assert_eq!(
            fault.to_string(),
            "the file name takes 872 bytes of UTF-8, and the key of its upload allows 868"
        );
    }

    #[test]
    fn search_name_is_limited_by_metadata_size() {
        let max = UploadMetadata::MAX_NAME_BYTES;
        let limits = ManifestLimits { max_search_name_bytes: max, ..limits() };
        let named = |name: String| Manifest { name, ..manifest(&[("a.ris", 1)]) }.faults(&limits);
        // Each character takes three bytes, and each byte takes three in the metadata.
        assert_eq!(named("検".repeat(max / 9)), []);
        let [fault] = &named("検".repeat(max / 9 + 1))[..] else { panic!() };
        let error = FileNameError::TooManyEncoded { bytes: (max / 9 + 1) * 9, allowed: max };
        assert_eq!(*fault, ManifestFault::SearchName(error));
        let names = [("検".repeat(max / 9) + &"a".repeat(max % 9), MAX_FILES), ("x".repeat(255), 1)];
        for (search_name, expected_files) in names {
            let map = UploadMetadata { search_name, expected_files }.to_map();
            let bytes = |(name, value): (&String, &String)| METADATA_PREFIX.len() + name.len() + value.len();
            assert!(map.iter().map(bytes).sum::<usize>() <= MAX_METADATA_BYTES);
        }
    }

    #[test]
    fn all_manifest_faults_are_reported() {
        let long = "x".repeat(1000);
        let faults =
            manifest(&[("a.ris", 0), ("../b.ris", 5), (&long, 5), ("c\n.ris", 200)]).faults(&limits());
        assert_eq!(
            faults.iter().map(ManifestFault::file_index).collect::<Vec<_>>(),
            [Some(0), Some(1), Some(2), Some(3), Some(3)]
        );
        assert_eq!(manifest(&[]).faults(&limits()), [ManifestFault::FileCount(0)]);
        assert_eq!(manifest(&vec![("a", 1); 51]).faults(&limits()), [ManifestFault::FileCount(51)]);
        assert_eq!(manifest(&[("a.ris", 100)]).faults(&limits()), []);
    }

    #[test]
    fn metadata_round_trips_and_reports_faults() {
        let metadata =
            UploadMetadata { search_name: "Spiel & Sucht, 2024 – Nr. 1".into(), expected_files: 3 };
        let map = metadata.to_map();
        assert!(map.values().all(|value| value.is_ascii()));
        assert_eq!(UploadMetadata::from_map(&map), Ok(Some(metadata)));
        assert_eq!(UploadMetadata::from_map(&BTreeMap::new()), Ok(None));
        let with = |key: &str, value: &str| {
            let mut map = map.clone();
            map.insert(key.into(), value.into());
            UploadMetadata::from_map(&map)
        };
        assert_eq!(with("expected-files", "0"), Err(MetadataError::ExpectedFiles));
        assert_eq!(with("expected-files", "many"), Err(MetadataError::ExpectedFiles));
        assert_eq!(with("search-name", "%FF"), Err(MetadataError::SearchName));
        let mut partial = map.clone();
        partial.remove("search-name");
        assert_eq!(UploadMetadata::from_map(&partial), Err(MetadataError::Missing("search-name")));
    }
}
