//! Types that the world and the application share.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::Arc;

use messages::{Json, Message, MessageId, PartitionKey, Queue, Token};
use outbox::{Key, View};
use saga::Persist;
use serde_json::Value;

use crate::options::Violation;

/// The result of a check.
pub type CheckResult = Result<(), Violation>;

/// Returns the maximum stored size of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The total number of messages that change the instance's state.
    pub messages: usize,
    /// The number of expected replies and timers, in total.
    pub awaited: usize,
    /// The number of simultaneous entries in the instance's outbox.
    pub outbox: usize,
    /// The number of tokens granted by entry points, in total.
    pub granted: usize,
}

impl Default for Bounds {
    fn default() -> Self {
        Self { messages: 16, awaited: 8, outbox: 16, granted: usize::MAX }
    }
}

impl Bounds {
    /// No bounds.
    pub const NONE: Self =
        Self { messages: usize::MAX, awaited: usize::MAX, outbox: usize::MAX, granted: usize::MAX };
}

/// A state whose type only the workload knows.
pub(crate) type State = Arc<dyn Any + Send + Sync>;

/// A function behind a queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Station {
    pub(crate) function: &'static str,
    pub(crate) queue: Queue,
}

/// The required content of a write, according to the saga's transitions.
pub(crate) struct ExpectedWrite {
    /// The stored state.
    pub(crate) state: Json,
    /// The messages, by their ids.
    pub(crate) messages: BTreeMap<MessageId, WantedMessage>,
    /// The id of the last view.
    pub(crate) shown: Option<MessageId>,
    /// The last contents of records.
    pub(crate) records: BTreeMap<Key, Option<Value>>,
    /// The running timers after the write.
    pub(crate) timers: BTreeMap<String, MessageId>,
    /// The messages of timers that were cancelled.
    pub(crate) cancelled: Vec<MessageId>,
}

/// One message that a write has to contain.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct WantedMessage {
    pub(crate) queue: Queue,
    /// The partition that the message goes to.
    pub(crate) partition: PartitionKey,
    pub(crate) name: String,
    /// `true` if the message expects a reply.
    pub(crate) asks: bool,
    /// `true` if a timer sends the message.
    pub(crate) is_timer: bool,
    /// The token of the request that the message answers, if another partition made the request.
    pub(crate) answers: Option<Token>,
}

/// A write with its parsed states.
pub(crate) struct ObservedWrite<'a> {
    pub(crate) write: &'a Persist,
    pub(crate) before: Option<&'a State>,
    pub(crate) after: &'a State,
    pub(crate) messages: &'a [Message],
    pub(crate) views: &'a [View],
}

/// The function that settles sessions and sweeps, if a system does not name one.
pub(crate) const SETTLES: &str = "dispatch-outbox";

/// Returns the functions that consume the queues of sagas.
pub(crate) fn sagas_of(stations: &[Station], queues: &[Queue]) -> Vec<&'static str> {
    let runs_saga = |station: &&Station| queues.contains(&station.queue);
    stations.iter().filter(runs_saga).map(|station| station.function).collect()
}
