//! The destination of a reply that does not go to the partition of its request.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::ids::PartitionKey;
use crate::queue_name::Queue;

/// The queue and the partition of a reply. As text: the name of the queue, a slash, and the partition.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ReplyAddress {
    /// The queue.
    pub queue: Queue,
    /// The partition.
    pub partition: PartitionKey,
}

impl fmt::Display for ReplyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.queue, self.partition)
    }
}

impl From<ReplyAddress> for String {
    fn from(address: ReplyAddress) -> Self {
        address.to_string()
    }
}

/// The error of a text that is not a reply address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a queue and a partition with a slash in between")]
pub struct MalformedAddress;

impl FromStr for ReplyAddress {
    type Err = MalformedAddress;

    fn from_str(text: &str) -> Result<Self, MalformedAddress> {
        let (queue, partition) = text.rsplit_once('/').ok_or(MalformedAddress)?;
        let partition = partition.parse().map_err(|_| MalformedAddress)?;
        match queue.is_empty() {
            true => Err(MalformedAddress),
            false => Ok(Self { queue: Queue::from(queue.to_owned()), partition }),
        }
    }
}

impl TryFrom<String> for ReplyAddress {
    type Error = MalformedAddress;

    fn try_from(text: String) -> Result<Self, MalformedAddress> {
        text.parse()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_is_one_text() {
        let text = "\"orders/00000000-0000-0000-0000-000000000007\"";
        let address: ReplyAddress = serde_json::from_str(text).unwrap();
        assert_eq!((address.queue.name(), address.partition.as_uuid().as_u128()), ("orders", 7));
        assert_eq!(serde_json::to_string(&address).unwrap(), text);
        for malformed in ["", "orders", "orders/7", "/00000000-0000-0000-0000-000000000007"] {
            assert_eq!(malformed.parse::<ReplyAddress>(), Err(MalformedAddress), "{malformed}");
        }
    }
}
