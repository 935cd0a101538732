//! Identifiers, each with its own type so that they cannot be confused.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// Defines newtypes of a UUID, so that identifiers of different things cannot be confused.
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
            /// Wraps a UUID that identifies such a thing.
            pub const fn from_uuid(id: $crate::macros::uuid::Uuid) -> Self {
                Self(id)
            }

            /// Returns the UUID.
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
    /// The key of a saga instance: the correlation id of its messages, and the key of its document and of its ledger
    /// item. Never reused.
    PartitionKey,
    /// The id of a logical message; all its duplicates share it.
    MessageId,
    /// The id of a transactional session; its control message has the same id.
    SessionId,
    /// The id of an attempt of a worker at a group of messages. A retry is a new attempt.
    AttemptId,
}

impl PartitionKey {
    /// Returns the partition of a name in `saga`, such as the number of an order; the same name always has the same
    /// partition.
    pub fn named(saga: &str, name: &str) -> Self {
        Self(Uuid::new_v5(&Uuid::nil(), format!("{saga}\n{name}").as_bytes()))
    }
}

impl AttemptId {
    /// Returns the attempt that follows this one if its claim was refused and is made again at another fence.
    #[must_use]
    pub fn at_fence(self, fence: u64) -> Self {
        Self(Uuid::new_v5(&self.0, &fence.to_be_bytes()))
    }
}

impl MessageId {
    /// Returns the id of the `index`-th message that this one causes.
    ///
    /// It is derived (UUID version 5) and never random: a repeated dispatch has the same ids, so a receiver can
    /// distinguish a duplicate from a new message.
    pub fn derive(&self, index: usize) -> Self {
        Self(Uuid::new_v5(&self.0, &(index as u64).to_be_bytes()))
    }

    /// Returns the id of the message of a timer that this message schedules.
    pub fn for_timer(&self, timer: &str) -> Self {
        Self(Uuid::new_v5(&self.0, timer.as_bytes()))
    }

    /// Returns the id of a message that reports a fact identified by `parts`, such as one version of one stored object.
    pub fn for_fact(namespace: Uuid, parts: &[&str]) -> Self {
        Self(Uuid::new_v5(&namespace, parts.join("\n").as_bytes()))
    }
}

/// The permission to process one message, stored in the partition that consumes it. It distinguishes the first delivery
/// of a message from its duplicates. It is not a password: the permissions of a queue decide who may send to it. Tokens
/// of attempts cannot be guessed nevertheless ([`crate::Host::random_id`]); tokens of entry points are derived from the
/// ids of their requests, so that a repeated request has the same token.
///
/// The prefix states the origin: `a:{partition}:{attempt}:{n}` was created by an attempt of a worker,
/// `s:{partition}:{uuid}` by an entry point. Only tokens of the first type may be garbage-collected. `{partition}` is
/// the last twelve hexadecimal digits of the partition's key, so that a message with the token of another partition is
/// detected as faulty and not treated as a duplicate.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Token(String);

impl Token {
    /// The maximum length of a token from outside, in bytes; tokens of this system have about 55.
    pub const MAX_BYTES: usize = 100;

    /// Returns the `n`-th token of an attempt in a partition.
    pub fn minted_by_attempt(partition: PartitionKey, attempt: &AttemptId, n: usize) -> Self {
        Self(format!("a:{}:{attempt}:{n}", Self::partition_tag(partition)))
    }

    /// Returns a token of an entry point for a partition; `unique` is new for each token.
    pub fn minted_at_entry(partition: PartitionKey, unique: Uuid) -> Self {
        Self(format!("s:{}:{unique}", Self::partition_tag(partition)))
    }

    fn partition_tag(partition: PartitionKey) -> String {
        format!("{:012x}", partition.as_uuid().as_u128() & 0xffff_ffff_ffff)
    }

    /// Parses a token of a received message.
    ///
    /// # Errors
    /// Returns an error if it does not have the form of a token: another prefix, or longer than [`Token::MAX_BYTES`].
    pub fn parse(text: &str) -> Result<Self, MalformedToken> {
        let ours = text.starts_with("a:") || text.starts_with("s:");
        if ours && text.len() <= Self::MAX_BYTES { Ok(Self(text.to_owned())) } else { Err(MalformedToken) }
    }

    /// Returns `true` if an attempt of a worker created the token. Only such tokens are eligible for garbage
    /// collection.
    pub fn is_from_attempt(&self) -> bool {
        self.0.starts_with("a:")
    }

    /// Returns `true` if this attempt created the token.
    pub fn is_from(&self, attempt: &AttemptId) -> bool {
        self.is_from_attempt() && self.0.split(':').nth(2) == Some(&attempt.to_string())
    }

    /// Returns `true` if the token can belong to this partition.
    pub fn is_for(&self, partition: PartitionKey) -> bool {
        self.0.split(':').nth(1) == Some(&Self::partition_tag(partition))
    }

    /// Returns the part that distinguishes this token from others of its origin and partition.
    pub fn unique(&self) -> &str {
        self.0.splitn(3, ':').nth(2).unwrap_or_default()
    }

    /// Returns the token as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The error of a text that does not have the form of a token.
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
    fn token_identifies_its_origin() {
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
    fn token_identifies_its_partition() {
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
    fn foreign_or_oversized_token_is_refused() {
        assert_eq!(Token::parse("x:1"), Err(MalformedToken));
        assert_eq!(Token::parse(&format!("s:{}", "9".repeat(200))), Err(MalformedToken));
    }
}
