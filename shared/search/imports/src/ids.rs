//! Identifiers, each with its own type, so that they cannot be confused.

use std::fmt;

use ::messages::{Host, MessageId, PartitionKey, SessionId, Token, uuid_ids};
use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;

use crate::names::{FileNameError, check_name};

/// The name of the timer that limits the wait for a search's files.
pub const TIMEOUT: &str = "timeout";

/// The id of a search: one import of reference files into a project, and a partition of the engine. It is never
/// reused.
pub type SearchId = PartitionKey;

uuid_ids! {
    /// A systematic review.
    ProjectId,
    /// An uploaded reference file. The ids of announced files sort in the order of the manifest.
    FileId,
    /// A scheduled timeout. The id distinguishes a late timeout from the current one.
    TimeoutId,
}

/// Returns the name of the token of a search's announcement. Earlier versions announced a search in the session with
/// this id.
pub fn announcement(search: SearchId) -> SessionId {
    SessionId::from_uuid(Uuid::new_v5(&search.as_uuid(), b"announcement"))
}

/// Returns the token of the message that reports a stored file. All forms that upload the file share it.
pub fn upload_token(search: SearchId, file: FileId) -> Token {
    Token::minted_at_entry(search, Uuid::new_v5(&file.as_uuid(), b"upload"))
}

/// Returns the token of a cancellation; repeated requests share it.
pub fn withdrawal_token(search: SearchId) -> Token {
    Token::minted_at_entry(search, Uuid::new_v5(&search.as_uuid(), b"withdrawal"))
}

/// Returns the id of the search that a client requested under a key. Repeated requests get the same id. Without the
/// secret, the id cannot be derived from project and key.
pub fn keyed_search(secret: &Secret, project: ProjectId, key: &str) -> SearchId {
    let mut mac = Hmac::<Sha256>::new(&secret.block().into());
    mac.update(project.as_uuid().as_bytes());
    mac.update(key.as_bytes());
    let mut id = [0; 16];
    // Half of the code, because an id has only 16 bytes.
    id.iter_mut().zip(mac.finalize().into_bytes()).for_each(|(id, code)| *id = code);
    SearchId::from_uuid(uuid::Builder::from_custom_bytes(id).into_uuid())
}

/// Returns the id as versions before secrets derived it.
pub fn guessable_keyed_search(project: ProjectId, key: &str) -> SearchId {
    SearchId::from_uuid(Uuid::new_v5(&project.as_uuid(), key.as_bytes()))
}

/// The secret that makes the ids of keyed searches unpredictable outside this deployment: four random ids, which fill
/// a block of SHA-256.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret([Uuid; 4]);

impl Secret {
    /// Returns a new secret.
    pub fn random(host: &dyn Host) -> Self {
        Self(std::array::from_fn(|_| host.random_id()))
    }

    fn block(&self) -> [u8; 64] {
        let mut block = [0; 64];
        block.iter_mut().zip(self.0.iter().flat_map(Uuid::as_bytes)).for_each(|(byte, part)| *byte = *part);
        block
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret")
    }
}

/// The namespace of the ids of named projects.
const PROJECT_NAMES: Uuid = Uuid::from_u128(0x7c6e_2f0b_91d5_4a3e_8b64_0c5d_a19f_37e2);

impl ProjectId {
    /// Returns the project with this name. The id is derived from the name, so no mapping has to be stored.
    ///
    /// # Errors
    /// Returns an error if the name is empty, has more than [`crate::manifest::MAX_NAME_CHARS`] characters, or
    /// contains control characters.
    pub fn named(name: &str) -> Result<Self, FileNameError> {
        check_name(name)?;
        Ok(Self::from_uuid(Uuid::new_v5(&PROJECT_NAMES, name.as_bytes())))
    }

    /// Returns the project that a user names by its id or its name.
    ///
    /// # Errors
    /// Returns the errors of [`ProjectId::named`].
    pub fn meant_by(text: &str) -> Result<Self, FileNameError> {
        text.parse().or_else(|_| Self::named(text))
    }
}

impl FileId {
    /// Returns the id of the `index`-th file of a search's manifest, below 256. Like version 7 ids, these sort in the
    /// manifest's order.
    pub fn announced(search: SearchId, index: u8) -> Self {
        let mut bytes = Uuid::new_v5(&search.as_uuid(), b"files").into_bytes();
        bytes[15] = index;
        Self::from_uuid(Uuid::from_bytes(bytes))
    }
}

impl TimeoutId {
    /// Returns the timeout that the handling of message `cause` schedules: the id of its timer's message.
    pub fn caused_by(cause: &MessageId) -> Self {
        Self::from_uuid(cause.for_timer(TIMEOUT).as_uuid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The id, computed by another program, is stored in databases and must never change.
    #[test]
    fn project_is_named_by_id_or_name() {
        let named = ProjectId::named("gambling").unwrap();
        assert_eq!(named.to_string(), "8ea67dbe-1a2e-5e16-9606-7f529d41598e");
        assert_eq!(ProjectId::meant_by("gambling"), Ok(named));
        assert_eq!(ProjectId::meant_by(&named.to_string()), Ok(named));
        assert_ne!(ProjectId::meant_by("Gambling"), Ok(named));
        assert!(ProjectId::meant_by(&"ä".repeat(255)).is_ok());
        for refused in ["", "  ", "a\nb", &"ä".repeat(256)] {
            assert!(ProjectId::meant_by(refused).is_err(), "{refused:?}");
        }
    }

    /// The first 16 bytes of HMAC-SHA256, computed by another program, with version and variant of a custom UUID.
    #[test]
    fn keyed_id_depends_on_secret_project_and_key() {
        let secret = |n| Secret([n; 4].map(Uuid::from_u128));
        let id = |of, project, key: &str| {
            keyed_search(&secret(of), ProjectId::from_uuid(Uuid::from_u128(project)), key).to_string()
        };
        assert_eq!(id(1, 2, "key"), "62deb447-46ee-8127-90d7-d0dda18b216c");
        for other in [id(2, 2, "key"), id(1, 3, "key"), id(1, 2, "Key")] {
            assert_ne!(other, id(1, 2, "key"));
        }
        assert_eq!(format!("{:?}", secret(1)), "Secret");
    }
}
