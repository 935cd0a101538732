//! Records that cannot be read: junk, for good; and what a later release wrote before it was rolled back, until the
//! upgrade.

mod world;

use std::collections::BTreeSet;

use messages::{Body, Json, Message, MessageId, PartitionKey};

use crate::time::timestamp;

/// The version that nothing but a later release reads.
const LATER: u16 = u16::MAX;

/// When the upgrade comes: in time for every message; when those of an unreadable document are dead letters; when
/// everything that waited is one.
const UPGRADES_MS: [u64; 3] = [600_000, 18_000_000, 72_000_000];

/// The time that a queue keeps a message of a newer version: the 15 hours of [`messages::Backoff::UPGRADE`], minus an
/// hour for each of a few workers that die in the meantime.
const WAITS_MS: u64 = 36_000_000;

/// Junk comes within this time.
const JUNK_MS: u64 = 100_000;

/// The unreadable records of a schedule.
#[derive(Default)]
pub(crate) struct Damage {
    /// Whether a later release was rolled back, and its successor is not here yet.
    is_rolled_back: bool,
    /// When that is.
    upgrades_at: u64,
    /// The number of messages that the newer version still sends.
    messages: u64,
    /// The number of documents that it still writes.
    documents: u64,
    /// The partitions of those documents.
    unreadable: BTreeSet<PartitionKey>,
    /// The unreadable messages that were put into queues.
    junk: Vec<String>,
}

/// Whether a failure is one of reading what a later release wrote.
pub(crate) fn names_later_release(reason: &str) -> bool {
    reason.contains("version 65535")
}

/// Returns the message as a newer version would have sent it; none if it is not a message.
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
    /// Nothing is wrong with anything that is written from now on.
    pub(crate) fn stop(&mut self) {
        (self.messages, self.documents) = (0, 0);
    }
}
