//! Identifiers, one type each, so that no two of them can be mistaken for one another.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID that is already known to name this kind of thing.
            pub const fn from_uuid(id: Uuid) -> Self {
                Self(id)
            }

            /// The UUID itself.
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                Uuid::parse_str(text).map(Self)
            }
        }
    };
}

uuid_id! {
    /// One systematic review.
    ProjectId
}
uuid_id! {
    /// One import of one or more reference files into a project: the correlation id of its saga, used once
    /// and never again.
    SearchId
}
uuid_id! {
    /// One uploaded reference file. Announced ones sort in the manifest's order.
    FileId
}
uuid_id! {
    /// One logical message, however many copies of it are delivered.
    MessageId
}
uuid_id! {
    /// One transactional session; its control message has the same id.
    SessionId
}
uuid_id! {
    /// Names one scheduled timeout, so that one that fires late is told from the current one.
    TimeoutId
}
uuid_id! {
    /// One try of one worker at one group of messages. A retry is a new attempt.
    AttemptId
}

impl MessageId {
    /// The id of the `index`-th message that this one causes.
    ///
    /// Derived (UUID version 5), never random: a repeated dispatch repeats the same ids, and whoever receives
    /// them can tell a copy from a new message.
    pub fn derive(&self, index: usize) -> Self {
        Self(Uuid::new_v5(&self.0, &(index as u64).to_be_bytes()))
    }

    /// The id of a message that reports a fact named by `parts`, such as one version of one stored object.
    pub fn of_fact(namespace: Uuid, parts: &[&str]) -> Self {
        Self(Uuid::new_v5(&namespace, parts.join("\n").as_bytes()))
    }
}

impl SessionId {
    /// The session that announces a search: a request that is made again is the same session.
    pub fn announcing(search: SearchId) -> Self {
        Self(Uuid::new_v5(&search.0, b"announcement"))
    }
}

impl SearchId {
    /// The search that a client asked for under a key of its own: asked for again, it is the same one.
    pub fn keyed(project: ProjectId, key: &str) -> Self {
        Self(Uuid::new_v5(&project.0, key.as_bytes()))
    }
}

impl FileId {
    /// The `index`-th file of a search's manifest, below 256. Like version 7 ids they sort in the manifest's order.
    pub fn announced(search: SearchId, index: u8) -> Self {
        let mut bytes = Uuid::new_v5(&search.0, b"files").into_bytes();
        bytes[15] = index;
        Self(Uuid::from_bytes(bytes))
    }
}

impl TimeoutId {
    /// The timeout that the handling of message `cause` schedules.
    pub fn caused_by(cause: &MessageId) -> Self {
        Self(Uuid::new_v5(&cause.as_uuid(), b"timeout"))
    }
}

/// Permission to process one message, kept in the partition that will consume it.
///
/// The name tells the origin: `a:{partition}:{attempt}:{n}` was minted by an attempt of a worker,
/// `s:{partition}:{uuid}` by an entry point (`start-upload`). Garbage collection may only ever remove the former.
/// The partition is told by the last twelve digits of its search's id, so that a message which was given another
/// search's token is known for a wrong one and not taken for a duplicate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Token(String);

impl Token {
    /// The longest token accepted from outside, in bytes; ours are about 55.
    pub const MAX_BYTES: usize = 100;

    /// The `n`-th token minted by `attempt` inside a partition.
    pub fn minted_by_attempt(partition: SearchId, attempt: &AttemptId, n: usize) -> Self {
        Self(format!("a:{}:{attempt}:{n}", Self::partition_tag(partition)))
    }

    /// A token for a partition, minted by an entry point; `unique` is fresh for each token.
    pub fn minted_at_entry(partition: SearchId, unique: Uuid) -> Self {
        Self(format!("s:{}:{unique}", Self::partition_tag(partition)))
    }

    fn partition_tag(partition: SearchId) -> String {
        format!("{:012x}", partition.as_uuid().as_u128() & 0xffff_ffff_ffff)
    }

    /// Reads a token that arrived in a message.
    ///
    /// # Errors
    /// When it is none of ours in form: another prefix, or longer than [`Token::MAX_BYTES`].
    pub fn parse(text: &str) -> Result<Self, MalformedToken> {
        let ours = text.starts_with("a:") || text.starts_with("s:");
        if ours && text.len() <= Self::MAX_BYTES { Ok(Self(text.to_owned())) } else { Err(MalformedToken) }
    }

    /// Whether a worker's attempt minted it, which makes it eligible for garbage collection.
    pub fn is_from_attempt(&self) -> bool {
        self.0.starts_with("a:")
    }

    /// Whether exactly this attempt minted it.
    pub fn is_from(&self, attempt: &AttemptId) -> bool {
        self.is_from_attempt() && self.0.split(':').nth(2) == Some(&attempt.to_string())
    }

    /// Whether it can be a token of this partition.
    pub fn is_for(&self, partition: SearchId) -> bool {
        self.0.split(':').nth(1) == Some(&Self::partition_tag(partition))
    }

    /// What tells this token from others of its origin and partition.
    pub fn unique(&self) -> &str {
        self.0.splitn(3, ':').nth(2).unwrap_or_default()
    }

    /// The token as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A text that has not the form of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a token of this system")]
pub struct MalformedToken;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derived_ids_repeat_and_differ_by_index() {
        let cause = MessageId::from_uuid(Uuid::from_u128(7));
        assert_eq!(cause.derive(1), cause.derive(1));
        assert_ne!(cause.derive(1), cause.derive(2));
    }

    #[test]
    fn a_token_tells_its_origin() {
        let attempt = AttemptId::from_uuid(Uuid::from_u128(1));
        let other = AttemptId::from_uuid(Uuid::from_u128(2));
        let search = SearchId::from_uuid(Uuid::from_u128(4));
        let minted = Token::minted_by_attempt(search, &attempt, 0);
        assert!(minted.is_from_attempt() && minted.is_from(&attempt) && !minted.is_from(&other));
        let granted = Token::minted_at_entry(search, Uuid::from_u128(3));
        assert!(!granted.is_from_attempt() && !granted.is_from(&attempt));
        assert_eq!(granted.unique(), Uuid::from_u128(3).to_string());
    }

    #[test]
    fn a_token_tells_its_partition() {
        let [search, other] = [4, 5].map(|n| SearchId::from_uuid(Uuid::from_u128(n)));
        let attempt = AttemptId::from_uuid(Uuid::from_u128(1));
        for token in [
            Token::minted_at_entry(search, Uuid::from_u128(3)),
            Token::minted_by_attempt(search, &attempt, 0),
        ] {
            assert!(token.is_for(search) && !token.is_for(other));
        }
    }

    #[test]
    fn a_foreign_or_oversized_token_is_refused() {
        assert_eq!(Token::parse("x:1"), Err(MalformedToken));
        assert_eq!(Token::parse(&format!("s:{}", "9".repeat(200))), Err(MalformedToken));
    }
}
