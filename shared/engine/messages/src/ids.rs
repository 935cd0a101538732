//! Identifiers, one type each, so that no two of them can be mistaken for one another.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Defines newtypes of a UUID, one for each kind of thing, so that no two of them can be mistaken for one another.
#[macro_export]
macro_rules! uuid_ids {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {$(
        $(#[$doc])*
        #[derive(
            Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash,
            $crate::macros::serde::Serialize, $crate::macros::serde::Deserialize,
            $crate::macros::schemars::JsonSchema,
        )]
        #[serde(transparent, crate = "::messages::macros::serde")]
        #[schemars(inline, crate = "::messages::macros::schemars")]
        pub struct $name($crate::macros::uuid::Uuid);

        impl $name {
            /// Wraps a UUID that is already known to name this kind of thing.
            pub const fn from_uuid(id: $crate::macros::uuid::Uuid) -> Self {
                Self(id)
            }

            /// The UUID itself.
            pub const fn as_uuid(&self) -> $crate::macros::uuid::Uuid {
                self.0
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(&self.0, f)
            }
        }

        impl ::std::str::FromStr for $name {
            type Err = $crate::macros::uuid::Error;

            fn from_str(text: &str) -> Result<Self, Self::Err> {
                $crate::macros::uuid::Uuid::parse_str(text).map(Self)
            }
        }
    )*};
}

uuid_ids! {
    /// One saga: the correlation id of its messages, and the key of its document and of its ledger item. Used once and
    /// never again.
    PartitionKey,
    /// One logical message, however many copies of it are delivered.
    MessageId,
    /// One transactional session; its control message has the same id.
    SessionId,
    /// One try of one worker at one group of messages. A retry is a new attempt.
    AttemptId,
}

impl PartitionKey {
    /// The partition that `name` stands for in `saga`, such as an order by its number: named again, it is the same one.
    pub fn named(saga: &str, name: &str) -> Self {
        Self(Uuid::new_v5(&Uuid::nil(), format!("{saga}\n{name}").as_bytes()))
    }
}

impl MessageId {
    /// The id of the `index`-th message that this one causes.
    ///
    /// Derived (UUID version 5), never random: a repeated dispatch repeats the same ids, so a receiver
    /// can distinguish a copy from a new message.
    pub fn derive(&self, index: usize) -> Self {
        Self(Uuid::new_v5(&self.0, &(index as u64).to_be_bytes()))
    }

    /// The id of the message that a timer of this name sends, when this message schedules it.
    pub fn named(&self, timer: &str) -> Self {
        Self(Uuid::new_v5(&self.0, timer.as_bytes()))
    }

    /// The id of a message that reports a fact named by `parts`, such as one version of one stored object.
    pub fn of_fact(namespace: Uuid, parts: &[&str]) -> Self {
        Self(Uuid::new_v5(&namespace, parts.join("\n").as_bytes()))
    }
}

/// Permission to process one message, kept in the partition that will consume it. It tells the first copy of a message
/// from the second, and is no password: who may send to a queue is what the queue's permissions say. Those of attempts
/// cannot be guessed all the same ([`crate::Host::random_id`]); those of entry points follow from the ids of what they
/// are for, so that a request that is made again is the same request.
///
/// The name tells the origin: `a:{partition}:{attempt}:{n}` was minted by an attempt of a worker,
/// `s:{partition}:{uuid}` by an entry point. Garbage collection may only ever remove the former.
/// `{partition}` is the last twelve hexadecimal digits of the partition's key, so that a message with the token of
/// another partition is recognised as faulty and not mistaken for a duplicate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Token(String);

impl Token {
    /// The longest token accepted from outside, in bytes; ours are about 55.
    pub const MAX_BYTES: usize = 100;

    /// The `n`-th token minted by `attempt` inside a partition.
    pub fn minted_by_attempt(partition: PartitionKey, attempt: &AttemptId, n: usize) -> Self {
        Self(format!("a:{}:{attempt}:{n}", Self::partition_tag(partition)))
    }

    /// A token for a partition, minted by an entry point; `unique` is fresh for each token.
    pub fn minted_at_entry(partition: PartitionKey, unique: Uuid) -> Self {
        Self(format!("s:{}:{unique}", Self::partition_tag(partition)))
    }

    fn partition_tag(partition: PartitionKey) -> String {
        format!("{:012x}", partition.as_uuid().as_u128() & 0xffff_ffff_ffff)
    }

    /// Reads a token that arrived in a message.
    ///
    /// # Errors
    /// When it does not have the form of a token: another prefix, or longer than [`Token::MAX_BYTES`].
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
    pub fn is_for(&self, partition: PartitionKey) -> bool {
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
        let partition = PartitionKey::from_uuid(Uuid::from_u128(4));
        let minted = Token::minted_by_attempt(partition, &attempt, 0);
        assert!(minted.is_from_attempt() && minted.is_from(&attempt) && !minted.is_from(&other));
        let granted = Token::minted_at_entry(partition, Uuid::from_u128(3));
        assert!(!granted.is_from_attempt() && !granted.is_from(&attempt));
        assert_eq!(granted.unique(), Uuid::from_u128(3).to_string());
    }

    #[test]
    fn a_token_tells_its_partition() {
        let [partition, other] = [4, 5].map(|n| PartitionKey::from_uuid(Uuid::from_u128(n)));
        let attempt = AttemptId::from_uuid(Uuid::from_u128(1));
        for token in [
            Token::minted_at_entry(partition, Uuid::from_u128(3)),
            Token::minted_by_attempt(partition, &attempt, 0),
        ] {
            assert!(token.is_for(partition) && !token.is_for(other));
        }
    }

    #[test]
    fn a_foreign_or_oversized_token_is_refused() {
        assert_eq!(Token::parse("x:1"), Err(MalformedToken));
        assert_eq!(Token::parse(&format!("s:{}", "9".repeat(200))), Err(MalformedToken));
    }
}
