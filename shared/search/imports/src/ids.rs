//! Identifiers, one type each, so that no two of them can be mistaken for one another.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use messages::{Host, MessageId, PartitionKey, SessionId, Token, uuid_ids};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use uuid::Uuid;

use crate::manifest::{FileNameError, check_name};

/// The timer under which the files of a search are awaited.
pub const TIMEOUT: &str = "timeout";

/// One import of one or more reference files into a project: a partition of the engine. Used once and never again.
pub type SearchId = PartitionKey;

uuid_ids! {
    /// One systematic review.
    ProjectId,
    /// One uploaded reference file. Announced ones sort in the manifest's order.
    FileId,
    /// Names one scheduled timeout, so that one that fires late is not mistaken for the current one.
    TimeoutId,
}

/// The name of the token of a search's announcement. Earlier versions announced a search in the session of this id.
pub fn announcement(search: SearchId) -> SessionId {
    SessionId::from_uuid(Uuid::new_v5(&search.as_uuid(), b"announcement"))
}

/// The token of the message that tells that a file was stored: the same for every form that uploads the file.
pub fn upload_token(search: SearchId, file: FileId) -> Token {
    Token::minted_at_entry(search, Uuid::new_v5(&file.as_uuid(), b"upload"))
}

/// The token of a withdrawal, however often it is asked for.
pub fn withdrawal_token(search: SearchId) -> Token {
    Token::minted_at_entry(search, Uuid::new_v5(&search.as_uuid(), b"withdrawal"))
}

/// The search that a client asked for under a key of its own: asked for again, it is the same one. Without the secret
/// nobody can tell its id from project and key.
pub fn keyed_search(secret: &Secret, project: ProjectId, key: &str) -> SearchId {
    let mut mac = Hmac::<Sha256>::new(&secret.block().into());
    mac.update(project.as_uuid().as_bytes());
    mac.update(key.as_bytes());
    let mut id = [0; 16];
    // Half of the code: an id has no room for more.
    id.iter_mut().zip(mac.finalize().into_bytes()).for_each(|(id, code)| *id = code);
    SearchId::from_uuid(uuid::Builder::from_custom_bytes(id).into_uuid())
}

/// The same as releases before secrets derived it.
pub fn guessable_keyed_search(project: ProjectId, key: &str) -> SearchId {
    SearchId::from_uuid(Uuid::new_v5(&project.as_uuid(), key.as_bytes()))
}

/// What makes the ids of keyed searches known to this deployment alone: four random ids, a block of SHA-256.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret([Uuid; 4]);

impl Secret {
    /// A new one.
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

/// What the ids of named projects are derived in.
const PROJECT_NAMES: Uuid = Uuid::from_u128(0x7c6e_2f0b_91d5_4a3e_8b64_0c5d_a19f_37e2);

impl ProjectId {
    /// The project of this name. The id follows from the name, so nobody has to remember which is which: named again,
    /// wherever, it is the same project.
    ///
    /// # Errors
    /// When the name is empty, has more than [`crate::manifest::MAX_NAME_CHARS`] characters, or control characters.
    pub fn named(name: &str) -> Result<Self, FileNameError> {
        check_name(name)?;
        Ok(Self::from_uuid(Uuid::new_v5(&PROJECT_NAMES, name.as_bytes())))
    }

    /// The project that a user means: by its id, or else by its name.
    ///
    /// # Errors
    /// As [`ProjectId::named`].
    pub fn meant_by(text: &str) -> Result<Self, FileNameError> {
        text.parse().or_else(|_| Self::named(text))
    }
}

impl FileId {
    /// The `index`-th file of a search's manifest, below 256. Like version 7 ids they sort in the manifest's order.
    pub fn announced(search: SearchId, index: u8) -> Self {
        let mut bytes = Uuid::new_v5(&search.as_uuid(), b"files").into_bytes();
        bytes[15] = index;
        Self::from_uuid(Uuid::from_bytes(bytes))
    }
}

impl TimeoutId {
    /// The timeout that the handling of message `cause` schedules: the id of its timer's message.
    pub fn caused_by(cause: &MessageId) -> Self {
        Self::from_uuid(cause.named(TIMEOUT).as_uuid())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The id, computed by another program, is in databases: it must never change.
    #[test]
    fn a_project_is_meant_by_its_id_or_by_its_name() {
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
    fn the_id_of_a_keyed_search_depends_on_secret_project_and_key() {
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
