//! The sender of a request between sagas.

use std::marker::PhantomData;

use messages::{Message, PartitionKey, Payload, ReplyAddress, Token};
use serde::{Deserialize, Serialize};

/// The sender of a request, whose saga has the events `E`, with the permission to reply once. A saga that does not
/// reply immediately keeps the requester in its state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(bound = "")]
pub struct Requester<E> {
    partition: PartitionKey,
    /// `None` without a ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    token: Option<Token>,
    #[serde(skip)]
    events: PhantomData<fn() -> E>,
}

impl<E: Payload> Requester<E> {
    /// Returns the sender of a request; `None` if the message is not a request of a saga with these
    /// events.
    pub(crate) fn of(message: &Message) -> Option<Self> {
        let ReplyAddress { queue, partition } = message.reply_to.as_ref()?;
        let (partition, token) = (*partition, message.reply_token.clone());
        (*queue == E::QUEUE).then_some(Self { partition, token, events: PhantomData })
    }

    /// Returns the partition of the requester.
    pub fn partition(&self) -> PartitionKey {
        self.partition
    }

    pub(crate) fn token(&self) -> Option<&Token> {
        self.token.as_ref()
    }
}
