//! An application's messages, and reading them.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::Json;
use crate::message::{Body, EncodeError, Message};
use crate::queue::Queue;

/// A type of message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// The name of the type, which is the name of the variant.
    pub name: &'static str,
    /// The version that this program writes, from 1. It reads this version and all earlier ones.
    pub version: u16,
}

/// The messages of one queue; implemented by [`messages!`](macro@crate::messages).
pub trait Payload: Serialize + DeserializeOwned + Clone + Debug + PartialEq + Send + Sync + 'static {
    /// The system that the messages belong to.
    const SYSTEM: &'static str;
    /// The queue that the messages are sent to.
    const QUEUE: Queue;
    /// All types of messages.
    const KINDS: &'static [Kind];

    /// Returns the type of this message.
    fn kind(&self) -> &'static Kind;

    /// Upgrades data from version `from` to version `from + 1`.
    ///
    /// # Errors
    /// Returns an error if that version is no longer supported, with the reason.
    fn upcast(name: &str, from: u16, _data: Value) -> Result<Value, String> {
        Err(format!("version {from} of {name} is not supported"))
    }

    /// Serializes the message.
    ///
    /// # Errors
    /// Returns an error if the message cannot be represented in JSON, or not be read from it: JSON has no number that is
    /// infinite or not a number, and contains `null` instead.
    fn body(&self) -> Result<Body, EncodeError> {
        let text = serde_json::to_string(self)?;
        serde_json::from_str::<Self>(&text)?;
        let tagged: TaggedData = serde_json::from_str(&text)?;
        let data = tagged.data;
        let kind = self.kind();
        Ok(Body { system: Self::SYSTEM.to_owned(), name: kind.name.to_owned(), version: kind.version, data })
    }
}

/// The serialized form of the enum.
#[derive(Deserialize)]
struct TaggedData {
    #[serde(default)]
    data: Json,
}

/// The reason why a message cannot be read by a handler.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The message belongs to another system.
    #[error("{name} is a message of {system}, and not for this handler")]
    Foreign {
        /// The other system.
        system: String,
        /// The name of the message.
        name: String,
    },
    /// A newer version of the program may know the type.
    #[error("{0} is unknown to this program")]
    Unknown(String),
    /// A newer version of the program knows this version.
    #[error("{name} has version {found}, and this program supports up to {known}")]
    Newer {
        /// The message.
        name: String,
        /// The version of the message.
        found: u16,
        /// The latest version that this program knows.
        known: u16,
    },
    /// A newer version of the program knows it, and its reader does not wait for the upgrade.
    #[error("{0}, and this handler does not wait for an upgrade")]
    TooLate(String),
    /// The data does not match the name and version of the message.
    #[error("the data of {name} is malformed: {why}")]
    Data {
        /// The message.
        name: String,
        /// The reason.
        why: String,
    },
}

impl ReadError {
    /// Converts the error for a reader that does not wait for an upgrade.
    #[must_use]
    pub fn for_good(self) -> Self {
        if self.awaits_upgrade() { Self::TooLate(self.to_string()) } else { self }
    }

    /// Returns `true` if the message should wait for an upgrade. All other errors are permanent.
    pub fn awaits_upgrade(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Newer { .. })
    }
}

impl Message {
    /// Parses the content of the message. An earlier version is upgraded step by step.
    ///
    /// # Errors
    /// Returns an error if it is not one of these messages, has a newer version, or is malformed.
    pub fn read<P: Payload>(&self) -> Result<P, ReadError> {
        let Body { system, name, version, data } = &self.body;
        if system != P::SYSTEM {
            return Err(ReadError::Foreign { system: system.clone(), name: name.clone() });
        }
        let Some(kind) = P::KINDS.iter().find(|kind| kind.name == name) else {
            return Err(ReadError::Unknown(name.clone()));
        };
        if *version > kind.version {
            return Err(ReadError::Newer { name: name.clone(), found: *version, known: kind.version });
        }
        let malformed = |why: String| ReadError::Data { name: name.clone(), why };
        let read = |data: &str| {
            let tagged = format!(r#"{{"type":"{}","data":{data}}}"#, kind.name);
            serde_json::from_str(&tagged).map_err(|error| malformed(error.to_string()))
        };
        if *version == kind.version {
            return read(data.text());
        }
        let upcast =
            (*version..kind.version).try_fold(data.value(), |data, from| P::upcast(name, from, data));
        read(&upcast.map_err(malformed)?.to_string())
    }
}

/// The events of the saga behind a queue, without their types, so that an operator can send them.
#[derive(Clone, Copy)]
pub struct EventTypes {
    /// The system that the events belong to.
    pub system: &'static str,
    /// All types of events.
    pub kinds: &'static [Kind],
    queue: fn() -> Queue,
    check: fn(&Message) -> Result<(), ReadError>,
}

impl EventTypes {
    /// Returns the events `E`.
    pub const fn of<E: Payload>() -> Self {
        Self {
            system: E::SYSTEM,
            kinds: E::KINDS,
            queue: || E::QUEUE,
            check: |message| message.read::<E>().map(drop),
        }
    }

    /// Returns the queue that these messages are sent to.
    pub fn queue(&self) -> Queue {
        (self.queue)()
    }

    /// Checks that a message is one of these events.
    ///
    /// # Errors
    /// Returns the errors of [`Message::read`].
    pub fn check(&self, message: &Message) -> Result<(), ReadError> {
        (self.check)(message)
    }
}

impl Debug for EventTypes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventTypes").field("system", &self.system).field("kinds", &self.kinds).finish()
    }
}

impl PartialEq for EventTypes {
    fn eq(&self, other: &Self) -> bool {
        (self.system, self.kinds, self.queue()) == (other.system, other.kinds, other.queue())
    }
}

impl Eq for EventTypes {}

/// Defines the messages of one queue: their names, data and versions.
///
/// ```
/// use messages::{Payload, Queue, messages};
///
/// const SAGA: Queue = Queue::named("saga");
///
/// messages! {
///     /// What happens to an order.
///     pub enum OrderEvent of "shop" to SAGA {
///         /// It was placed.
///         Placed { cents: u64 } = 1,
///         /// The parcel left.
///         Shipped { carrier: String } = 2,
///     }
///     upcast earlier
/// }
///
/// /// Version 1 of `Shipped` named no carrier.
/// fn earlier(name: &str, from: u16, mut data: serde_json::Value) -> Result<serde_json::Value, String> {
///     if (name, from) != ("Shipped", 1) {
///         return Err(format!("version {from} of {name} is not supported"));
///     }
///     data["carrier"] = "post".into();
///     Ok(data)
/// }
///
/// assert_eq!(OrderEvent::Placed { cents: 1 }.kind().version, 1);
/// ```
///
/// A crate that exports this macro under another path names the path of `serde` first:
/// `#![crate = "::other::messages::macros::serde"]`.
///
/// Mistakes are compile errors. Versions begin with 1:
///
/// ```compile_fail
/// # use messages::{Queue, messages};
/// # const SAGA: Queue = Queue::named("saga");
/// messages! { pub enum OrderEvent of "shop" to SAGA { Placed { cents: u64 } = 0 } }
/// ```
///
/// Later versions need a function that upgrades the earlier ones:
///
/// ```compile_fail
/// # use messages::{Queue, messages};
/// # const SAGA: Queue = Queue::named("saga");
/// messages! { pub enum OrderEvent of "shop" to SAGA { Placed { cents: u64 } = 2 } }
/// ```
///
/// Messages without data have braces:
///
/// ```compile_fail
/// # use messages::{Queue, messages};
/// # const SAGA: Queue = Queue::named("saga");
/// messages! { pub enum OrderEvent of "shop" to SAGA { Cancelled = 1 } }
/// ```
#[macro_export]
macro_rules! messages {
    (
        #![crate = $serde:literal]
        $(#[$meta:meta])*
        $vis:vis enum $name:ident of $system:literal to $queue:path {
            $($(#[$kind_meta:meta])* $kind:ident $body:tt = $version:literal),* $(,)?
        }
        $(upcast $upcast:path)?
    ) => {
        $(#[$meta])*
        #[derive(
            Debug, Clone, PartialEq,
            $crate::macros::serde::Serialize, $crate::macros::serde::Deserialize,
        )]
        #[serde(tag = "type", content = "data", crate = $serde)]
        $vis enum $name { $($(#[$kind_meta])* $kind $body),* }

        const _: () = {
            $(assert!($version >= 1, "versions of messages begin with 1");)*
        };
        $crate::messages!(@versions [$($version),*] $($upcast)?);

        impl $crate::Payload for $name {
            const SYSTEM: &'static str = $system;
            const QUEUE: $crate::Queue = $queue;
            const KINDS: &'static [$crate::Kind] =
                &[$($crate::Kind { name: stringify!($kind), version: $version }),*];

            fn kind(&self) -> &'static $crate::Kind {
                match self {
                    $(Self::$kind { .. } => {
                        const KIND: &$crate::Kind = &$crate::Kind { name: stringify!($kind), version: $version };
                        KIND
                    })*
                }
            }

            $(fn upcast(
                name: &str,
                from: u16,
                data: $crate::macros::serde_json::Value,
            ) -> Result<$crate::macros::serde_json::Value, String> {
                $upcast(name, from, data)
            })?
        }
    };
    (@versions [$($version:literal),*] $upcast:path) => {};
    (@versions [$($version:literal),*]) => {
        const _: () = {
            $(assert!($version <= 1, "a message of version 2 or later needs `upcast FUNCTION` behind the enum");)*
        };
    };
    (
        $(#[$meta:meta])*
        $vis:vis enum $name:ident of $system:literal to $queue:path {
            $($(#[$kind_meta:meta])* $kind:ident $body:tt = $version:literal),* $(,)?
        }
        $(upcast $upcast:path)?
    ) => {
        $crate::messages! {
            #![crate = "::messages::macros::serde"]
            $(#[$meta])*
            $vis enum $name of $system to $queue {
                $($(#[$kind_meta])* $kind $body = $version),*
            }
            $(upcast $upcast)?
        }
    };
    ($($other:tt)*) => {
        ::std::compile_error!(
            "expected `enum NAME of \"system\" to QUEUE { Message { field: Type } = VERSION, … }`, and `upcast FUNCTION` \
             if a version is above 1; a message without data is `Message {}`"
        );
    };
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use serde_json::json;
    use uuid::Uuid;

    use super::*;
    use crate::ids::{MessageId, PartitionKey};

    const SAGA: Queue = Queue::named("saga");

    crate::messages! {
        /// Messages for the tests.
        pub(super) enum Event of "shop" to SAGA {
            /// A payload with a field that was added in version 3, after a field that was added in version 2.
            Shipped { carrier: String, tracking: String } = 3,
            /// A payload without data.
            Overdue {} = 1,
        }
        upcast step
    }

    fn step(_: &str, from: u16, mut data: Value) -> Result<Value, String> {
        match from {
            1 => data["carrier"] = "post".into(),
            _ => data["tracking"] = "none".into(),
        }
        Ok(data)
    }

    fn message(name: &str, version: u16, data: Value) -> Message {
        let body = Body { system: "shop".into(), name: name.into(), version, data: data.into() };
        let id = Uuid::from_u128(1);
        let partition = PartitionKey::from_uuid(id);
        Message::new(MessageId::from_uuid(id), "test", partition, Timestamp::UNIX_EPOCH, body)
    }

    #[test]
    fn payload_round_trips() {
        let event = Event::Shipped { carrier: "dhl".into(), tracking: "1Z".into() };
        let body = event.body().unwrap();
        assert_eq!((body.name.as_str(), body.version), ("Shipped", 3));
        assert_eq!(message("Shipped", 3, body.data.value()).read::<Event>().unwrap(), event);
        assert_eq!(Event::Overdue {}.body().unwrap().data, json!({}));
    }

    #[test]
    fn earlier_version_is_upgraded_stepwise() {
        let event = message("Shipped", 1, json!({})).read::<Event>().unwrap();
        assert_eq!(event, Event::Shipped { carrier: "post".into(), tracking: "none".into() });
    }

    #[test]
    fn only_newer_messages_await_upgrade() {
        let waits = |name, version| message(name, version, json!({})).read::<Event>().unwrap_err();
        assert!(waits("Shipped", 4).awaits_upgrade() && waits("Refunded", 1).awaits_upgrade());
        assert!(!message("Shipped", 3, json!(7)).read::<Event>().unwrap_err().awaits_upgrade());
        let mut foreign = message("Shipped", 3, json!({}));
        foreign.body.system = "bank".into();
        assert!(!foreign.read::<Event>().unwrap_err().awaits_upgrade());
    }
}
