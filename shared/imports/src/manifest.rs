//! What a search announces before its files arrive, and what each stored file says of itself.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::ids::FileId;

/// The most files that one search may have. It bounds the saga's document, its tokens and its outbox.
pub const MAX_FILES: usize = 50;
/// The longest name of a search or of a file, in characters. A file name of 255 characters is the most that
/// common file systems take.
pub const MAX_NAME_CHARS: usize = 255;
/// The largest object that one presigned POST can create, in bytes: 5 GB
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html>). Deployments set a lower one.
pub const MAX_FILE_BYTES: u64 = 5_000_000_000;

/// What `start-upload` announces: the search's name and its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The search's name, as the reviewer knows it.
    pub name: String,
    /// Its files, 1 to [`MAX_FILES`].
    pub files: Vec<ManifestFile>,
}

/// One announced file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ManifestFile {
    /// The file's id, minted by `start-upload`.
    pub file_id: FileId,
    /// Its name without a path.
    pub name: String,
    /// Its announced size in bytes, at least 1.
    pub size_bytes: u64,
}

impl Manifest {
    /// Every fault of the manifest; none means valid. `max_file_bytes` is the deployment's own limit.
    pub fn faults(&self, max_file_bytes: u64) -> Vec<ManifestFault> {
        let mut faults = Vec::new();
        if let Err(error) = check_name(&self.name) {
            faults.push(ManifestFault::SearchName(error));
        }
        if self.files.is_empty() || self.files.len() > MAX_FILES {
            faults.push(ManifestFault::FileCount(self.files.len()));
        }
        let mut seen = BTreeSet::new();
        // However many files are announced, the number of faults stays bounded.
        for (index, file) in self.files.iter().take(MAX_FILES).enumerate() {
            if !seen.insert(file.file_id) {
                faults.push(ManifestFault::RepeatedFile(file.file_id));
            }
            if let Err(error) = check_file_name(&file.name) {
                faults.push(ManifestFault::FileName { index, error });
            }
            if file.size_bytes == 0 {
                faults.push(ManifestFault::EmptyFile { index });
            } else if file.size_bytes > max_file_bytes {
                faults.push(ManifestFault::FileTooLarge { index, limit_bytes: max_file_bytes });
            }
        }
        faults
    }
}

/// One thing that is wrong with a manifest.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ManifestFault {
    /// The search's name.
    #[error("the search's name {0}")]
    SearchName(FileNameError),
    /// No file, or more than [`MAX_FILES`].
    #[error("a search has 1 to {MAX_FILES} files, not {0}")]
    FileCount(usize),
    /// Two entries with one id.
    #[error("file {0} is announced twice")]
    RepeatedFile(FileId),
    /// A file's name; `index` counts from 0 in the manifest's order.
    #[error("the file name {error}")]
    FileName {
        /// Place in the manifest.
        index: usize,
        /// What is wrong with it.
        error: FileNameError,
    },
    /// A file without content.
    #[error("the file is empty")]
    EmptyFile {
        /// Place in the manifest.
        index: usize,
    },
    /// A file over the limit.
    #[error("the file is larger than the limit of {limit_bytes} bytes")]
    FileTooLarge {
        /// Place in the manifest.
        index: usize,
        /// The limit it exceeds.
        limit_bytes: u64,
    },
}

impl ManifestFault {
    /// The place in the manifest of the file at fault, where the fault is that of one file.
    pub fn file_index(&self) -> Option<usize> {
        match self {
            Self::FileName { index, .. } | Self::EmptyFile { index } | Self::FileTooLarge { index, .. } => {
                Some(*index)
            }
            Self::SearchName(_) | Self::FileCount(_) | Self::RepeatedFile(_) => None,
        }
    }
}

/// Why a name is refused. Reads after "the name".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileNameError {
    /// Nothing in it.
    #[error("is empty")]
    Empty,
    /// Over [`MAX_NAME_CHARS`].
    #[error("is longer than {MAX_NAME_CHARS} characters")]
    TooLong,
    /// Line breaks, NUL and their like.
    #[error("contains a control character")]
    Control,
    /// A path where a plain name belongs.
    #[error("contains a path")]
    Path,
}

fn check_name(name: &str) -> Result<(), FileNameError> {
    match name {
        _ if name.trim().is_empty() => Err(FileNameError::Empty),
        _ if name.chars().count() > MAX_NAME_CHARS => Err(FileNameError::TooLong),
        _ if name.chars().any(char::is_control) => Err(FileNameError::Control),
        _ => Ok(()),
    }
}

/// Checks a file's name: a plain name without a path.
///
/// # Errors
/// The first thing that is wrong with it.
pub fn check_file_name(name: &str) -> Result<(), FileNameError> {
    check_name(name)?;
    if name.contains(['/', '\\']) || name == "." || name == ".." { Err(FileNameError::Path) } else { Ok(()) }
}

/// What an uploaded file says of itself and of its search: the object's user metadata, fixed by the presigned
/// upload. With it, the last file's arrival starts the parsing even when `SearchUploadStarted` is late.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadMetadata {
    /// The search's name.
    pub search_name: String,
    /// How many files the search has.
    pub expected_files: usize,
}

impl UploadMetadata {
    const SEARCH_NAME: &'static str = "search-name";
    const EXPECTED_FILES: &'static str = "expected-files";

    /// As user metadata of the object. Names are percent-encoded, because S3 takes only ASCII reliably
    /// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>).
    pub fn to_map(&self) -> BTreeMap<String, String> {
        let name = utf8_percent_encode(&self.search_name, NON_ALPHANUMERIC).to_string();
        BTreeMap::from([
            (Self::SEARCH_NAME.to_owned(), name),
            (Self::EXPECTED_FILES.to_owned(), self.expected_files.to_string()),
        ])
    }

    /// Reads the metadata of a stored object; `None` when it has none of ours.
    ///
    /// # Errors
    /// When it has some of ours, but not all or not in a valid form.
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

/// Why an object's metadata is not valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MetadataError {
    /// One of the two entries is absent.
    #[error("the upload's metadata has no \"{0}\"")]
    Missing(&'static str),
    /// Not a name a search can have.
    #[error("the upload's metadata has an invalid \"search-name\"")]
    SearchName,
    /// Not a number from 1 to [`MAX_FILES`].
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
        Manifest { name: "Gambling harms".into(), files: files.collect() }
    }

    #[test]
    fn every_fault_of_a_manifest_is_reported_at_once() {
        let long = "x".repeat(1000);
        let faults = manifest(&[("a.ris", 0), ("../b.ris", 5), (&long, 5), ("c\n.ris", 200)]).faults(100);
        assert_eq!(
            faults.iter().map(ManifestFault::file_index).collect::<Vec<_>>(),
            [Some(0), Some(1), Some(2), Some(3), Some(3)]
        );
        assert_eq!(manifest(&[]).faults(100), [ManifestFault::FileCount(0)]);
        assert_eq!(manifest(&vec![("a", 1); 51]).faults(100), [ManifestFault::FileCount(51)]);
        assert_eq!(manifest(&[("a.ris", 100)]).faults(100), []);
    }

    #[test]
    fn metadata_survives_the_object_store_and_names_what_is_wrong() {
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
