//! An application's messages, and reading them.

use std::fmt::Debug;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::json::Json;
use crate::message::{Body, EncodeError, Message};
use crate::queue::Queue;

/// One kind of message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kind {
    /// Its name, the variant's.
    pub name: &'static str,
    /// The version that this release writes, from 1. It reads this one and every earlier one.
    pub version: u16,
}

/// What the messages of one queue say; written by [`messages!`](macro@crate::messages).
pub trait Payload: Serialize + DeserializeOwned + Clone + Debug + PartialEq + Send + Sync + 'static {
    /// The system whose messages they are.
    const SYSTEM: &'static str;
    /// The queue that they are sent to.
    const QUEUE: Queue;
    /// Every kind.
    const KINDS: &'static [Kind];

    /// This one's kind.
    fn kind(&self) -> &'static Kind;

    /// One step: data of version `from` as version `from + 1` has it.
    ///
    /// # Errors
    /// When that version is not supported any more, in words.
    fn upcast(name: &str, from: u16, _data: Value) -> Result<Value, String> {
        Err(format!("nobody reads version {from} of {name}"))
    }

    /// What it says, unread.
    ///
    /// # Errors
    /// When it cannot be written as JSON.
    fn body(&self) -> Result<Body, EncodeError> {
        let tagged: Tagged = serde_json::from_str(&serde_json::to_string(self)?)?;
        let data = tagged.data;
        let kind = self.kind();
        Ok(Body { system: Self::SYSTEM.to_owned(), name: kind.name.to_owned(), version: kind.version, data })
    }
}

/// A message as its enum is written.
#[derive(Deserialize)]
struct Tagged {
    #[serde(default)]
    data: Json,
}

/// Why a message cannot be read by a handler.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is another system's.
    #[error("{name} is a message of {system}, and not for this handler")]
    Foreign {
        /// The other system.
        system: String,
        /// Its message.
        name: String,
    },
    /// A later release may know it.
    #[error("{0} is not known to this release")]
    Unknown(String),
    /// A later release knows it.
    #[error("{name} has version {found}, and this release knows up to {known}")]
    Newer {
        /// The message.
        name: String,
        /// Its version.
        found: u16,
        /// The latest that is known here.
        known: u16,
    },
    /// A later release knows it, and its reader does not wait for that.
    #[error("{0}, and nobody waits for a later one here")]
    TooLate(String),
    /// The data is not what its name and version say.
    #[error("the data of {name} is malformed: {why}")]
    Data {
        /// The message.
        name: String,
        /// What is wrong.
        why: String,
    },
}

impl ReadError {
    /// For a reader that does not wait for a later release.
    #[must_use]
    pub fn for_good(self) -> Self {
        if self.awaits_upgrade() { Self::TooLate(self.to_string()) } else { self }
    }

    /// Whether the message should wait for a later release. Everything else is wrong for good.
    pub fn awaits_upgrade(&self) -> bool {
        matches!(self, Self::Unknown(_) | Self::Newer { .. })
    }
}

impl Message {
    /// What it says, as this release understands it. An earlier version is brought up to date step by step.
    ///
    /// # Errors
    /// When it is not one of these messages, of a later version, or malformed.
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
///         return Err(format!("nobody reads version {from} of {name}"));
///     }
///     data["carrier"] = "post".into();
///     Ok(data)
/// }
///
/// assert_eq!(OrderEvent::Placed { cents: 1 }.kind().version, 1);
/// ```
#[macro_export]
macro_rules! messages {
    (
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
        #[serde(tag = "type", content = "data", crate = "::messages::macros::serde")]
        $vis enum $name { $($(#[$kind_meta])* $kind $body),* }

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
        /// For the tests.
        pub(super) enum Event of "shop" to SAGA {
            /// With a field that came with version 3, after one of version 2.
            Shipped { carrier: String, tracking: String } = 3,
            /// Without data.
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
    fn what_is_written_is_read_back() {
        let event = Event::Shipped { carrier: "dhl".into(), tracking: "1Z".into() };
        let body = event.body().unwrap();
        assert_eq!((body.name.as_str(), body.version), ("Shipped", 3));
        assert_eq!(message("Shipped", 3, body.data.value()).read::<Event>().unwrap(), event);
        assert_eq!(Event::Overdue {}.body().unwrap().data, json!({}));
    }

    #[test]
    fn an_earlier_version_is_brought_up_to_date_step_by_step() {
        let event = message("Shipped", 1, json!({})).read::<Event>().unwrap();
        assert_eq!(event, Event::Shipped { carrier: "post".into(), tracking: "none".into() });
    }

    #[test]
    fn what_a_later_release_may_know_waits_and_what_is_wrong_does_not() {
        let waits = |name, version| message(name, version, json!({})).read::<Event>().unwrap_err();
        assert!(waits("Shipped", 4).awaits_upgrade() && waits("Refunded", 1).awaits_upgrade());
        assert!(!message("Shipped", 3, json!(7)).read::<Event>().unwrap_err().awaits_upgrade());
        let mut foreign = message("Shipped", 3, json!({}));
        foreign.body.system = "bank".into();
        assert!(!foreign.read::<Event>().unwrap_err().awaits_upgrade());
    }
}
