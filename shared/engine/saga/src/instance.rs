//! The instances of sagas, and the messages between them.
//!
//! A saga sends an event to an instance of any saga of its system with [`Advance::notify`](crate::Advance::notify), or
//! with [`Advance::request`](crate::Advance::request) if the instance is to reply. An instance that does not exist
//! begins with the event, so a child is started by its first event. The attempt that decides about the cause grants the
//! token of the event to the receiving partition *before* it stores the effect, like a session does before its commit.
//! Only the attempt that stores the effect has a message with its token, so no later attempt can grant a token that was
//! used.

use std::collections::BTreeMap;
use std::fmt;
use std::marker::PhantomData;

use dedup::GrantTokens;
use futures::future::try_join_all;
use jiff::Timestamp;
use messages::{MessageId, PartitionKey, Payload, Queue, StoreError, Token};
use uuid::Uuid;

use crate::decision::{Advance, Effect};
use crate::state_machine::Saga;

/// The queue of events. In a system with several sagas, this queue belongs to one of them; see [`Instance::with_id`].
pub const SAGA: Queue = Queue::named("saga");

/// An instance of a saga. Instances of different sagas have different partitions, even if their ids are equal.
pub struct Instance<S> {
    partition: PartitionKey,
    saga: PhantomData<fn() -> S>,
}

impl<S: Saga> Instance<S> {
    /// Returns the instance with an id. For the saga behind the queue [`SAGA`], the partition is the id itself. For any
    /// other saga, the partition is derived from the id and the saga's queue.
    pub fn with_id(id: Uuid) -> Self {
        let queue = S::Event::QUEUE;
        let id = if queue == SAGA { id } else { Uuid::new_v5(&id, queue.name().as_bytes()) };
        Self::at(PartitionKey::from_uuid(id))
    }

    /// Returns the instance with a name, such as the number of an order.
    pub fn named(name: &str) -> Self {
        Self::with_id(PartitionKey::named(S::NAME, name).as_uuid())
    }

    /// Returns the instance of a partition, such as that of an event ([`Event::partition`](crate::Event::partition)).
    pub fn at(partition: PartitionKey) -> Self {
        Self { partition, saga: PhantomData }
    }

    /// Returns the partition of the instance.
    pub fn partition(&self) -> PartitionKey {
        self.partition
    }
}

impl<S> Clone for Instance<S> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<S> Copy for Instance<S> {}

impl<S> PartialEq for Instance<S> {
    fn eq(&self, other: &Self) -> bool {
        self.partition == other.partition
    }
}

impl<S> Eq for Instance<S> {}

impl<S> fmt::Debug for Instance<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Instance").field(&self.partition).finish()
    }
}

impl<S> Advance<S> {
    /// Sends an event to an instance of a saga: of this saga, or of another one of the system. An instance that does
    /// not exist begins with it.
    #[must_use]
    pub fn notify<T: Saga>(self, to: &Instance<T>, event: &T::Event) -> Self {
        self.with_event(to, event, false)
    }

    /// Sends an event to an instance of a saga, which is to reply with an event of this saga; see
    /// [`Event::requester`](crate::Event::requester). An instance that ends while the request is on its way never
    /// replies, so a request to an instance that may end needs a timer.
    #[must_use]
    pub fn request<T: Saga>(self, to: &Instance<T>, event: &T::Event) -> Self {
        self.with_event(to, event, true)
    }

    fn with_event<T: Saga>(self, instance: &Instance<T>, event: &T::Event, is_request: bool) -> Self {
        let partition = instance.partition();
        self.with(event, |to, body| Effect::Notify { to, partition, body, is_request })
    }
}

/// Returns the token of an event that enters a partition from outside of it. Each caller passes a namespace of its own,
/// such as its session or attempt.
pub(crate) fn entry_token(partition: PartitionKey, message: MessageId, namespace: &[u8]) -> Token {
    Token::minted_at_entry(partition, Uuid::new_v5(&message.as_uuid(), namespace))
}

/// Returns the tokens of each partition.
pub(crate) fn by_partition(tokens: &[(PartitionKey, Token)]) -> BTreeMap<PartitionKey, Vec<Token>> {
    let mut all = BTreeMap::<PartitionKey, Vec<Token>>::new();
    for (partition, token) in tokens {
        all.entry(*partition).or_default().push(token.clone());
    }
    all
}

/// Grants tokens, with one call for each partition.
pub(crate) async fn grant_all(
    ledger: &dyn GrantTokens,
    tokens: &BTreeMap<PartitionKey, Vec<Token>>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let grants = tokens.iter().map(|(partition, tokens)| ledger.grant(*partition, tokens, now));
    try_join_all(grants).await.map(drop)
}

/// Revokes tokens, with one call for each partition.
pub(crate) async fn revoke_all(
    ledger: &dyn GrantTokens,
    tokens: &BTreeMap<PartitionKey, Vec<Token>>,
    now: Timestamp,
) -> Result<(), StoreError> {
    let revocations = tokens.iter().map(|(partition, tokens)| ledger.revoke(*partition, tokens, now));
    try_join_all(revocations).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::toy::{Other, Toy};

    #[test]
    fn partitions_of_two_sagas_differ_for_one_id() {
        let id = Uuid::from_u128(7);
        assert_eq!(Instance::<Toy>::with_id(id).partition().as_uuid(), id, "stored ids do not change");
        assert_ne!(Instance::<Other>::with_id(id).partition().as_uuid(), id);
        assert_eq!(Instance::<Toy>::named("a").partition(), PartitionKey::named(Toy::NAME, "a"));
        assert_ne!(Instance::<Toy>::named("a").partition(), Instance::<Other>::named("a").partition());
    }
}
