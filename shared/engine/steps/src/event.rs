//! The messages: the events of a run, and the two commands of an activity.

use std::fmt;

use jiff::Timestamp;
use messages::{Kind, Payload, Queue};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::StepSaga;
use crate::activity::Activity;

/// The events of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "data", bound = "I: StepSaga")]
#[allow(missing_docs, reason = "the names of the fields are clear")]
pub enum StepEvent<I> {
    /// A client started the run. `list_version` is the version of the list if the event is of an earlier version.
    Started {
        key: String,
        input: I,
        at: Timestamp,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        list_version: Option<u16>,
    },
    /// An activity performed a step.
    StepCompleted { step: String, output: Value },
    /// The other system refused a step.
    StepRefused { step: String, reason: String },
    /// An attempt failed without an outcome, and the list decides about the next one.
    StepFailed { step: String, attempt: u32, reason: String, after_seconds: Option<u32> },
    /// An activity undid a step.
    StepUndone { step: String },
    /// The other system refused to undo a step.
    UndoRefused { step: String, reason: String },
    /// A signal resolved a step.
    Resolved { step: String, value: Value },
    /// A signal rejected a step.
    Rejected { step: String, reason: String },
    /// A client cancelled the run.
    Cancelled { reason: String },
    /// A deadline has passed.
    DeadlinePassed { deadline: String },
    /// The next attempt at a step is due.
    RetryDue { step: String },
}

impl<I: StepSaga> Payload for StepEvent<I> {
    const SYSTEM: &'static str = I::SYSTEM;
    const QUEUE: Queue = I::QUEUE;
    const KINDS: &'static [Kind] = &[
        Kind { name: "Started", version: I::VERSION },
        Kind { name: "StepCompleted", version: 1 },
        Kind { name: "StepRefused", version: 1 },
        Kind { name: "StepFailed", version: 1 },
        Kind { name: "StepUndone", version: 1 },
        Kind { name: "UndoRefused", version: 1 },
        Kind { name: "Resolved", version: 1 },
        Kind { name: "Rejected", version: 1 },
        Kind { name: "Cancelled", version: 1 },
        Kind { name: "DeadlinePassed", version: 1 },
        Kind { name: "RetryDue", version: 1 },
    ];

    fn kind(&self) -> &'static Kind {
        &Self::KINDS[match self {
            Self::Started { .. } => 0,
            Self::StepCompleted { .. } => 1,
            Self::StepRefused { .. } => 2,
            Self::StepFailed { .. } => 3,
            Self::StepUndone { .. } => 4,
            Self::UndoRefused { .. } => 5,
            Self::Resolved { .. } => 6,
            Self::Rejected { .. } => 7,
            Self::Cancelled { .. } => 8,
            Self::DeadlinePassed { .. } => 9,
            Self::RetryDue { .. } => 10,
        }]
    }

    /// Only `Started` has several versions. The run follows the list of the version that started it, because that version
    /// performed the steps at the start.
    fn upcast(name: &str, from: u16, mut data: Value) -> Result<Value, String> {
        if name != "Started" {
            return Err(format!("version {from} of {name} is not supported"));
        }
        data["input"] = I::upcast(from, data["input"].take())?;
        if data["list_version"].is_null() {
            data["list_version"] = from.into();
        }
        Ok(data)
    }
}

/// The purpose of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ask {
    /// Perform a step, in this attempt.
    Perform { attempt: u32 },
    /// Perform the step again under the same key until it has an outcome.
    Repeat,
    /// Undo the step.
    Undo,
}

/// The two kinds of commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// The command to perform a step.
    Perform,
    /// The command to undo the step.
    Undo,
}

/// A step and the input of its activity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Order<T> {
    /// The name of the step.
    pub step: String,
    /// The number of the attempt if the run decides about the next one; otherwise the queue redelivers the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<u32>,
    /// `true` if the run waits for the outcome of the command without limit. If the command is dead-lettered, it waits
    /// there for an operator.
    #[serde(default, skip_serializing_if = "is_false")]
    pub until_outcome: bool,
    /// The queue of the list that sent the command, which receives the reply; `None` in commands of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply_to: Option<Queue>,
    /// The input of the activity.
    pub input: T,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it with a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

/// A command to an activity. Its name is [`Activity::PERFORM`] or [`Activity::UNDO`].
pub struct Command<A: Activity> {
    /// The kind of the command.
    pub verb: Verb,
    /// The step.
    pub order: Order<A::Input>,
}

impl<A: Activity> Command<A> {
    pub(crate) fn new(verb: Verb, order: Order<A::Input>) -> Self {
        Self { verb, order }
    }
}

impl<A: Activity> Clone for Command<A> {
    fn clone(&self) -> Self {
        Self { verb: self.verb, order: self.order.clone() }
    }
}

impl<A: Activity> fmt::Debug for Command<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple(self.kind().name).field(&self.order).finish()
    }
}

impl<A: Activity> PartialEq for Command<A> {
    fn eq(&self, other: &Self) -> bool {
        self.verb == other.verb && self.order == other.order
    }
}

/// The form of a command on the wire.
#[derive(Serialize, Deserialize)]
struct TaggedCommand<N, T> {
    #[serde(rename = "type")]
    name: N,
    data: T,
}

impl<A: Activity> Serialize for Command<A> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        TaggedCommand { name: self.kind().name, data: &self.order }.serialize(serializer)
    }
}

impl<'de, A: Activity> Deserialize<'de> for Command<A> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let TaggedCommand { name, data: order } =
            TaggedCommand::<String, Order<A::Input>>::deserialize(deserializer)?;
        match name.as_str() {
            name if name == A::PERFORM => Ok(Self { verb: Verb::Perform, order }),
            name if name == A::UNDO => Ok(Self { verb: Verb::Undo, order }),
            name => Err(serde::de::Error::custom(format!("{name} is not a command of this activity"))),
        }
    }
}

impl<A: Activity> Payload for Command<A> {
    const SYSTEM: &'static str = A::SYSTEM;
    /// This constant is not used, because each step names its own queue.
    const QUEUE: Queue = Queue::named("steps");
    const KINDS: &'static [Kind] =
        &[Kind { name: A::PERFORM, version: A::VERSION }, Kind { name: A::UNDO, version: A::VERSION }];

    fn kind(&self) -> &'static Kind {
        match self.verb {
            Verb::Perform => &Self::KINDS[0],
            Verb::Undo => &Self::KINDS[1],
        }
    }

    fn upcast(_: &str, from: u16, mut data: Value) -> Result<Value, String> {
        data["input"] = A::upcast(from, data["input"].take())?;
        Ok(data)
    }
}
