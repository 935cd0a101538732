//! Identifiers, one type each, so that no two of them can be mistaken for one another.

use messages::{MessageId, PartitionKey, SessionId, Token, uuid_ids};
use uuid::Uuid;

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

/// The session that announces a search: a request that is made again is the same session.
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

/// The search that a client asked for under a key of its own: asked for again, it is the same one.
pub fn keyed_search(project: ProjectId, key: &str) -> SearchId {
    SearchId::from_uuid(Uuid::new_v5(&project.as_uuid(), key.as_bytes()))
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
