//! Unreadable records: junk, which is never readable, and records of a newer version that was rolled back, which are
//! unreadable until the upgrade.

mod world;

use std::collections::BTreeSet;

use messages::{Body, Json, Message, MessageId, PartitionKey};

use crate::time::timestamp;

/// A message version that only a newer version of the program can read.
const LATER: u16 = u16::MAX;

/// The time of the upgrade: before any message is dead-lettered, after the messages of an unreadable document were
/// dead-lettered, or after all waiting messages were dead-lettered.
const UPGRADES_MS: [u64; 3] = [600_000, 18_000_000, 72_000_000];

/// The time that a queue keeps a message of a newer version: the 15 hours of [`messages::Backoff::UPGRADE`], minus an
/// hour for each of a few workers that crash in this time.
const WAITS_MS: u64 = 36_000_000;

/// The time within which junk arrives.
const JUNK_MS: u64 = 100_000;

/// The unreadable records of a schedule.
#[derive(Default)]
pub(crate) struct Damage {
    /// `true` from the rollback of a newer version until the upgrade.
    is_rolled_back: bool,
    /// The time of the upgrade.
    upgrades_at: u64,
    /// The number of messages that the newer version still sends.
    messages: u64,
    /// The number of documents that the newer version still writes.
    documents: u64,
    /// The partitions of those documents.
    unreadable: BTreeSet<PartitionKey>,
    /// The unreadable messages that were put into queues.
    junk: Vec<String>,
}

/// Returns `true` if the failure is that a record of a newer version cannot be read.
pub(crate) fn names_later_release(reason: &str) -> bool {
    reason.contains("version 65535")
}

/// Returns the message as a newer version would have sent it; `None` if it is not a message.
fn of_later_release(body: &str) -> Option<String> {
    let mut message = Message::decode(body).ok()?;
    message.body.version = LATER;
    message.encode().ok()
}

pub(crate) fn is_of_later_release(body: &str) -> bool {
    Message::decode(body).is_ok_and(|message| message.body.version == LATER)
}

fn foreign(id: MessageId) -> String {
    let partition = PartitionKey::from_uuid(id.as_uuid());
    let body = Body { system: "elsewhere".into(), name: "Thing".into(), version: 1, data: Json::default() };
    let message = Message::new(id, "elsewhere", partition, timestamp(0), body);
    message.encode().unwrap_or_default()
}

impl Damage {
    /// Returns `true` if a newer version was rolled back, so that this version cannot read data of the newer version.
    pub(crate) fn is_expected(&self) -> bool {
        self.is_rolled_back
    }

    /// All records that are written from now on are readable.
    pub(crate) fn stop(&mut self) {
        (self.messages, self.documents) = (0, 0);
    }
}
