//! What a search announces before its files arrive, and what each stored file says of itself.

use std::collections::{BTreeMap, BTreeSet};

use percent_encoding::{NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use serde::{Deserialize, Serialize};

use crate::ids::{FileId, SearchId};

/// The most files that one search may have. It bounds the saga's document, its tokens and its outbox.
pub const MAX_FILES: usize = 50;
/// The longest name of a search or of a file, in characters. A file name of 255 characters is the most that
/// common file systems take.
pub const MAX_NAME_CHARS: usize = 255;
/// The largest object that one presigned POST can create, in bytes: 5 GB
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/upload-objects.html>). Deployments set a lower one.
pub const MAX_FILE_BYTES: u64 = 5_000_000_000;

/// The most user metadata that S3 keeps with an object, names and values together, in bytes
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>).
const MAX_METADATA_BYTES: usize = 2_048;
/// What each name of user metadata begins with in a form. Whether it counts is not said, so it does here.
const METADATA_PREFIX: &str = "x-amz-meta-";

/// What a deployment takes of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ManifestLimits {
    /// The largest file, in bytes.
    pub max_file_bytes: u64,
    /// The longest name of a file, in bytes of UTF-8: what its upload's key has room for, see
    /// [`crate::ObjectKey::max_name_bytes`].
    pub max_file_name_bytes: usize,
    /// The longest name of a search, in bytes as its uploads' metadata has it, see [`UploadMetadata::MAX_NAME_BYTES`].
    pub max_search_name_bytes: usize,
}

impl ManifestLimits {
    /// What every deployment takes. It is for announcements that somebody has accepted: those of a release before this one
    /// had no limits in bytes.
    pub const ACCEPTED: Self = Self {
        max_file_bytes: MAX_FILE_BYTES,
        max_file_name_bytes: usize::MAX,
        max_search_name_bytes: usize::MAX,
    };
}

/// What `start-upload` announces: the search's name and its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Manifest {
    /// The search's name, as the reviewer knows it.
    pub name: String,
    /// Its files, 1 to [`MAX_FILES`].
    pub files: Vec<ManifestFile>,
    /// The search that it repairs, if it does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repairs: Option<SearchId>,
}

/// One announced file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ManifestFile {
    /// The file's id, minted by `start-upload`.
    pub file_id: FileId,
    /// Its name without a path.
    pub name: String,
    /// Its announced size in bytes, at least 1.
    pub size_bytes: u64,
}

impl Manifest {
    /// Every fault of the manifest; none means valid.
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
        // However many files are announced, the number of faults stays bounded.
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
    /// A file's name that the key of its upload has no room for.
    #[error("takes {bytes} bytes of UTF-8, and the key of its upload has room for {allowed}")]
    TooManyBytes {
        /// How many bytes it has.
        bytes: usize,
        /// How many it may have.
        allowed: usize,
    },
    /// A search's name that the metadata of its uploads has no room for.
    #[error(
        "takes {bytes} bytes with all but ASCII letters and digits percent-encoded, and an upload's metadata has room for {allowed}"
    )]
    TooManyEncoded {
        /// How many bytes it takes.
        bytes: usize,
        /// How many it may take.
        allowed: usize,
    },
    /// Line breaks, NUL and their like.
    #[error("contains a control character")]
    Control,
    /// A path where a plain name belongs.
    #[error("contains a path")]
    Path,
}

/// Checks a name: of a search, or of a project.
pub(crate) fn check_name(name: &str) -> Result<(), FileNameError> {
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

/// A search's name as an upload's metadata has it.
fn encoded(name: &str) -> String {
    utf8_percent_encode(name, NON_ALPHANUMERIC).to_string()
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

    /// The longest name of a search, in bytes as the metadata has it: what S3 keeps, less all the rest.
    pub const MAX_NAME_BYTES: usize = MAX_METADATA_BYTES
        - (METADATA_PREFIX.len() + Self::SEARCH_NAME.len())
        - (METADATA_PREFIX.len() + Self::EXPECTED_FILES.len())
        // As many digits as the largest number of files has.
        - MAX_FILES.ilog10() as usize
        - 1;

    /// As user metadata of the object. Names are percent-encoded, because S3 takes only ASCII reliably
    /// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/UsingMetadata.html>).
    pub fn to_map(&self) -> BTreeMap<String, String> {
        BTreeMap::from([
            (Self::SEARCH_NAME.to_owned(), encoded(&self.search_name)),
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
        Manifest { name: "Gambling harms".into(), files: files.collect(), repairs: None }
    }

    fn limits() -> ManifestLimits {
        ManifestLimits { max_file_bytes: 100, ..ManifestLimits::ACCEPTED }
    }

    #[test]
    fn a_file_name_is_limited_by_the_bytes_that_its_key_has_room_for() {
        let limits = ManifestLimits { max_file_name_bytes: 868, ..limits() };
        let named = |name: String| manifest(&[("a.ris", 1), (&name, 1)]).faults(&limits);
        assert_eq!(named("\u{1f4da}".repeat(217)), []);
        let [fault] = &named("\u{1f4da}".repeat(218))[..] else { panic!() };
        let error = FileNameError::TooManyBytes { bytes: 872, allowed: 868 };
        assert_eq!(*fault, ManifestFault::FileName { index: 1, error });
        assert_eq!(
            fault.to_string(),
            "the file name takes 872 bytes of UTF-8, and the key of its upload has room for 868"
        );
    }

    #[test]
    fn a_search_name_is_limited_by_the_bytes_that_metadata_has_room_for() {
        let most = UploadMetadata::MAX_NAME_BYTES;
        let limits = ManifestLimits { max_search_name_bytes: most, ..limits() };
        let named = |name: String| Manifest { name, ..manifest(&[("a.ris", 1)]) }.faults(&limits);
        // Three bytes each, and each byte is three in the metadata.
        assert_eq!(named("検".repeat(most / 9)), []);
        let [fault] = &named("検".repeat(most / 9 + 1))[..] else { panic!() };
        let error = FileNameError::TooManyEncoded { bytes: (most / 9 + 1) * 9, allowed: most };
        assert_eq!(*fault, ManifestFault::SearchName(error));
        let names = [("検".repeat(most / 9) + &"a".repeat(most % 9), MAX_FILES), ("x".repeat(255), 1)];
        for (search_name, expected_files) in names {
            let map = UploadMetadata { search_name, expected_files }.to_map();
            let bytes = |(name, value): (&String, &String)| METADATA_PREFIX.len() + name.len() + value.len();
            assert!(map.iter().map(bytes).sum::<usize>() <= MAX_METADATA_BYTES);
        }
    }

    #[test]
    fn every_fault_of_a_manifest_is_reported_at_once() {
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
