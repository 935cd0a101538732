//! The object key of an uploaded reference file.
//!
//! `{prefix}{project}/{search}/{file}/{token}/{name}`: the key contains everything that the saga needs to know,
//! because a notification of the store contains nothing else. A file that was placed in the bucket by other means has
//! no token; its key has `-` in that position.

use std::fmt;

use uuid::Uuid;
use uuid::fmt::Hyphenated;

use ::messages::Token;

use crate::ids::{FileId, ProjectId, SearchId};
use crate::names::{FileNameError, check_file_name};

/// The maximum length of an object's key, in bytes of UTF-8
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>).
pub const MAX_KEY_BYTES: usize = 1024;

/// The parts of an uploaded file's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectKey {
    /// The prefix that the notification filter selects, such as `uploads/`.
    pub prefix: String,
    /// The review that the file belongs to.
    pub project: ProjectId,
    /// The search that the file belongs to.
    pub search: SearchId,
    /// The file.
    pub file: FileId,
    /// The token of this file's `SearchUploadSaved`; `None` if the file was not uploaded with a form.
    pub token: Option<Token>,
    /// The file name, as the reviewer knows it.
    pub name: String,
}

impl ObjectKey {
    /// Returns the key prefix of all files of a search.
    pub fn folder(prefix: &str, project: ProjectId, search: SearchId) -> String {
        format!("{prefix}{project}/{search}/")
    }

    /// Returns the maximum length of a file name below `prefix`, in bytes of UTF-8: the maximum key length minus the
    /// other parts.
    pub const fn max_name_bytes(prefix: &str) -> usize {
        const IDS: usize = 4 * (Hyphenated::LENGTH + 1);
        MAX_KEY_BYTES.saturating_sub(prefix.len() + IDS)
    }

    /// Parses a decoded key below `prefix`.
    ///
    /// # Errors
    /// Returns an error if the key is longer than [`MAX_KEY_BYTES`], is outside the prefix, or lacks one of the
    /// parts.
    pub fn parse(prefix: &str, key: &str) -> Result<Self, KeyError> {
        if key.len() > MAX_KEY_BYTES {
            return Err(KeyError::TooLong);
        }
        let rest = key.strip_prefix(prefix).ok_or_else(|| KeyError::OutsidePrefix(prefix.to_owned()))?;
        let mut parts = rest.splitn(5, '/');
        let mut part = |name| parts.next().ok_or(KeyError::Missing(name));
        let project = uuid(part("project id")?, "project id")?;
        let search = SearchId::from_uuid(uuid(part("search id")?, "search id")?);
        let file = uuid(part("file id")?, "file id")?;
        let token = match part("token")? {
            "-" => None,
            text => Some(Token::minted_at_entry(search, uuid(text, "token")?)),
        };
        let name = part("file name")?;
        check_file_name(name)?;
        Ok(Self {
            prefix: prefix.to_owned(),
            project: ProjectId::from_uuid(project),
            search,
            file: FileId::from_uuid(file),
            token,
            name: name.to_owned(),
        })
    }
}

fn uuid(text: &str, part: &'static str) -> Result<Uuid, KeyError> {
    // Only the hyphenated form is valid, so that a file has exactly one key.
    if text.len() != Hyphenated::LENGTH {
        return Err(KeyError::Malformed(part));
    }
    Uuid::parse_str(text).map_err(|_| KeyError::Malformed(part))
}

impl fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = self.token.as_ref().map_or("-", Token::unique);
        write!(f, "{}{}/{}/{}/{token}/{}", self.prefix, self.project, self.search, self.file, self.name)
    }
}

/// Returns a name for an object in logs and errors. The key itself contains the token of the upload and must not be
/// logged. An upload is named by the ids of file and search, any other object by a fingerprint of its key.
pub fn nickname(key: &str) -> String {
    let parts: Vec<&str> = key.split('/').collect();
    let ids = parts.windows(3).find(|ids| ids.iter().all(|id| uuid(id, "id").is_ok()));
    match ids {
        Some([_, search, file]) => format!("file {file} of search {search}"),
        _ => {
            let fingerprint = Uuid::new_v5(&Uuid::nil(), key.as_bytes()).as_fields().0;
            format!("the object with fingerprint {fingerprint:08x}")
        }
    }
}

/// Reasons why a key does not belong to an upload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// The key is longer than the store allows.
    #[error("the key is longer than {MAX_KEY_BYTES} bytes")]
    TooLong,
    /// The key is in another part of the bucket.
    #[error("the key does not begin with \"{0}\"")]
    OutsidePrefix(String),
    /// A part is missing.
    #[error("the key has no {0}")]
    Missing(&'static str),
    /// A part is not a UUID.
    #[error("the {0} in the key is not a UUID")]
    Malformed(&'static str),
    /// The file name would be refused in a manifest.
    #[error("the file name in the key is refused: {0}")]
    Name(#[from] FileNameError),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> ObjectKey {
        ObjectKey {
            prefix: "uploads/".into(),
            project: ProjectId::from_uuid(Uuid::from_u128(1)),
            search: SearchId::from_uuid(Uuid::from_u128(2)),
            file: FileId::from_uuid(Uuid::from_u128(3)),
            token: Some(Token::minted_at_entry(SearchId::from_uuid(Uuid::from_u128(2)), Uuid::from_u128(4))),
            name: "My search + 50% (Ärzte).ris".into(),
        }
    }

    #[test]
    fn key_round_trips() {
        for token in [key().token, None] {
            let key = ObjectKey { token, ..key() };
            assert_eq!(ObjectKey::parse("uploads/", &key.to_string()), Ok(key));
        }
    }

    #[test]
    fn longest_name_yields_longest_key() {
        for prefix in ["uploads/", "", "ä/"] {
            let name = "x".repeat(ObjectKey::max_name_bytes(prefix));
            let longest = ObjectKey { prefix: prefix.into(), name, ..key() }.to_string();
            assert_eq!(longest.len(), MAX_KEY_BYTES);
        }
        assert_eq!(ObjectKey::max_name_bytes(&"x".repeat(2_000)), 0);
    }

    #[test]
    fn nickname_is_distinct_and_hides_the_token() {
        let key = key().to_string();
        let [search, file] = [2, 3].map(Uuid::from_u128);
        assert_eq!(nickname(&key), format!("file {file} of search {search}"));
        let by_hand = nickname("uploads/x/secret.ris");
        assert!(!by_hand.contains("secret") && by_hand != nickname("uploads/y/secret.ris"), "{by_hand}");
    }

    #[test]
    fn invalid_key_names_the_wrong_part() {
        let parse = |text: &str| ObjectKey::parse("uploads/", text).unwrap_err();
        assert_eq!(parse("other/x"), KeyError::OutsidePrefix("uploads/".into()));
        assert_eq!(parse("uploads/x/y"), KeyError::Malformed("project id"));
        assert_eq!(parse(&"uploads/".repeat(200)), KeyError::TooLong);
        let short = key().to_string().rsplit_once('/').unwrap().0.to_owned();
        assert_eq!(parse(&short), KeyError::Missing("file name"));
        let nested = format!("{}/more", key());
        assert_eq!(parse(&nested), KeyError::Name(FileNameError::Path));
    }
}
