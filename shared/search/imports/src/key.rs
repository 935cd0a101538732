//! The object key of an uploaded reference file.
//!
//! `{prefix}{project}/{search}/{file}/{token}/{name}`: everything that a notification of the store must tell
//! is in the key, because a notification carries nothing else. A file that somebody drops into the bucket by
//! hand has no token; its key has `-` in that place.

use std::fmt;

use uuid::Uuid;
use uuid::fmt::Hyphenated;

use messages::Token;

use crate::ids::{FileId, ProjectId, SearchId};
use crate::manifest::{FileNameError, check_file_name};

/// The longest key an object may have, in bytes of UTF-8
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/object-keys.html>).
pub const MAX_KEY_BYTES: usize = 1024;

/// The parts of an uploaded file's key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectKey {
    /// What the notification filter selects by, such as `uploads/`.
    pub prefix: String,
    /// The review the file is for.
    pub project: ProjectId,
    /// The import it is part of.
    pub search: SearchId,
    /// The file.
    pub file: FileId,
    /// Permission to process this file's `SearchUploadSaved`; none when it was put there by hand.
    pub token: Option<Token>,
    /// The file's name as the reviewer knows it.
    pub name: String,
}

impl ObjectKey {
    /// What the keys of all files of a search begin with.
    pub fn folder(prefix: &str, project: ProjectId, search: SearchId) -> String {
        format!("{prefix}{project}/{search}/")
    }

    /// The longest name that a file below `prefix` may have, in bytes of UTF-8: what the other parts leave of the longest
    /// key.
    pub const fn max_name_bytes(prefix: &str) -> usize {
        const IDS: usize = 4 * (Hyphenated::LENGTH + 1);
        MAX_KEY_BYTES.saturating_sub(prefix.len() + IDS)
    }

    /// Reads a decoded key below `prefix`.
    ///
    /// # Errors
    /// When the key is longer than [`MAX_KEY_BYTES`], lies outside the prefix, or has not the parts above.
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
    // Only the hyphenated form: one file must not have two keys.
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

/// What an object is called in logs and errors, which its key must not be: it holds the token of its upload. An upload is
/// called by the ids of file and search; anything else by a fingerprint of the key.
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

/// Why a key is not that of an upload.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Longer than the store allows.
    #[error("the key is longer than {MAX_KEY_BYTES} bytes")]
    TooLong,
    /// Another part of the bucket.
    #[error("the key does not begin with \"{0}\"")]
    OutsidePrefix(String),
    /// Too few parts.
    #[error("the key has no {0}")]
    Missing(&'static str),
    /// A part that is not a UUID.
    #[error("the {0} in the key is not a UUID")]
    Malformed(&'static str),
    /// A file name that no manifest would be accepted with.
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
    fn a_key_reads_back_as_what_it_was_written_from() {
        for token in [key().token, None] {
            let key = ObjectKey { token, ..key() };
            assert_eq!(ObjectKey::parse("uploads/", &key.to_string()), Ok(key));
        }
    }

    #[test]
    fn the_longest_name_makes_the_longest_key() {
        for prefix in ["uploads/", "", "ä/"] {
            let name = "x".repeat(ObjectKey::max_name_bytes(prefix));
            let longest = ObjectKey { prefix: prefix.into(), name, ..key() }.to_string();
            assert_eq!(longest.len(), MAX_KEY_BYTES);
        }
        assert_eq!(ObjectKey::max_name_bytes(&"x".repeat(2_000)), 0);
    }

    #[test]
    fn a_nickname_tells_objects_apart_and_holds_no_token() {
        let key = key().to_string();
        let [search, file] = [2, 3].map(Uuid::from_u128);
        assert_eq!(nickname(&key), format!("file {file} of search {search}"));
        let by_hand = nickname("uploads/x/secret.ris");
        assert!(!by_hand.contains("secret") && by_hand != nickname("uploads/y/secret.ris"), "{by_hand}");
    }

    #[test]
    fn a_key_that_is_not_ours_says_which_part_is_wrong() {
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
