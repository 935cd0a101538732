//! What must hold, checked while a schedule runs and when it has come to rest.
//!
//! - [`documents`]: each write of a saga document: I1, I2, I4, I6;
//! - [`effects`]: each effect performed: I2, I3, I4;
//! - [`tokens`]: the ledger after each change: I4, I6;
//! - [`inside`]: one worker at a time in a partition;
//! - [`rest`]: the end: I3, I6, I7, sessions and studies;
//! - [`scope`]: what is tried again in place;
//! - [`stale`]: duplicates that come after the end: I5.

mod documents;
mod effects;
mod inside;
mod rest;
mod scope;
mod stale;
mod tokens;

pub(crate) use stale::ages;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use contracts::{AttemptId, FileId, MessageId, SearchId, SessionId};
use jiff::Timestamp;
use outbox::{Owner, Queue};
use worker::Content;

use crate::workload::Truth;

/// What the checks remember.
#[derive(Default)]
pub(crate) struct Checks {
    /// What really happens outside, by search.
    pub(crate) truth: BTreeMap<SearchId, Truth>,
    /// Every content ever stored, with its version.
    history: BTreeMap<SearchId, Vec<(u64, Arc<Content>)>>,
    /// The messages that changed a state.
    changed: BTreeSet<MessageId>,
    /// Every effect ever stored.
    effects: BTreeMap<(SearchId, MessageId), Effect>,
    /// The effects that write a job, by its revision.
    jobs: BTreeMap<(SearchId, u64), MessageId>,
    /// The parse commands that took effect.
    parsed: BTreeMap<(SearchId, FileId), BTreeSet<MessageId>>,
    /// Files whose parse command was given up.
    given_up: BTreeSet<(SearchId, FileId)>,
    /// Until when an outbox entry is some worker's.
    held: BTreeMap<(Owner, MessageId), Timestamp>,
    /// Tokens granted by entry points.
    granted: BTreeMap<SearchId, usize>,
    /// Claims that were not given back, or not successfully.
    unreleased: BTreeMap<SearchId, usize>,
    /// Sessions whose control message was sent.
    sessions: BTreeMap<SessionId, SearchId>,
    /// The searches that a worker gave up on in the batch it has in hand.
    given_up_by: BTreeSet<(usize, SearchId)>,
    /// The attempt that was admitted last to each partition and has not given it back, and the end of its lease.
    inside: BTreeMap<SearchId, (AttemptId, Timestamp)>,
    /// Every message ever sent, once.
    sent: BTreeMap<MessageId, (Queue, String)>,
}

/// One stored effect.
struct Effect {
    kind: EffectKind,
    payload: String,
    performed: u32,
    cancelled: bool,
}

/// What an effect does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum EffectKind {
    Job,
    Parse(FileId),
    Timeout,
    Ended,
    Started,
    Withdrawn,
}
