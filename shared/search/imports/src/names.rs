//! Rules for the names of searches, projects and files.

/// The maximum length of the name of a search or file, in characters. Common file systems allow 255 characters.
pub const MAX_NAME_CHARS: usize = 255;

/// Reasons to refuse a name; the texts follow "the name".
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum FileNameError {
    /// The name is empty.
    #[error("is empty")]
    Empty,
    /// The name has more than [`MAX_NAME_CHARS`] characters.
    #[error("is longer than {MAX_NAME_CHARS} characters")]
    TooLong,
    /// A file's name does not fit into the key of its upload.
    #[error("takes {bytes} bytes of UTF-8, and the key of its upload allows {allowed}")]
    TooManyBytes {
        /// The length of the name in bytes.
        bytes: usize,
        /// The maximum length.
        allowed: usize,
    },
    /// A search's name does not fit into the metadata of its uploads.
    #[error(
        "takes {bytes} bytes with all but ASCII letters and digits percent-encoded, and an upload's metadata allows {allowed}"
    )]
    TooManyEncoded {
        /// The encoded length in bytes.
        bytes: usize,
        /// The maximum length.
        allowed: usize,
    },
    /// The name contains line breaks, NUL or other control characters.
    #[error("contains a control character")]
    Control,
    /// The name is a path instead of a plain name.
    #[error("contains a path")]
    Path,
}

/// Checks the name of a search or project.
pub(crate) fn check_name(name: &str) -> Result<(), FileNameError> {
    match name {
        _ if name.trim().is_empty() => Err(FileNameError::Empty),
        _ if name.chars().count() > MAX_NAME_CHARS => Err(FileNameError::TooLong),
        _ if name.chars().any(char::is_control) => Err(FileNameError::Control),
        _ => Ok(()),
    }
}

/// Checks a file name: a plain name without a path.
///
/// # Errors
/// Returns the first fault of the name.
pub fn check_file_name(name: &str) -> Result<(), FileNameError> {
    check_name(name)?;
    if name.contains(['/', '\\']) || name == "." || name == ".." { Err(FileNameError::Path) } else { Ok(()) }
}
