//! The options and the results of a simulation.

use std::fmt;

use crate::coverage::Coverage;

/// The way in which functions detect duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Tokens in a ledger detect duplicates.
    Ledger,
    /// Versions, the ids of processed messages, and states detect duplicates.
    Optimistic,
}

impl Mode {
    /// The list of both modes.
    pub const ALL: [Self; 2] = [Self::Ledger, Self::Optimistic];
}

/// The options of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The mode: with a ledger or without.
    pub mode: Mode,
    /// A defect to plant, for proving that it is found.
    pub mutant: Option<Mutant>,
    /// `true` to record a trace.
    pub trace: bool,
    /// The maximum number of steps of a schedule; a schedule that needs more is considered endless.
    pub max_steps: u64,
}

impl Config {
    /// A simulation without a defect and without a trace.
    pub fn new(mode: Mode) -> Self {
        Self { mode, mutant: None, trace: false, max_steps: 30_000 }
    }
}

/// A defect that can be planted between the functions and their ports. Each of [`Mutant::ENGINE`] must be found on
/// every application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// The write of a saga document ignores the version.
    NoVersionCheck,
    /// The effects of an attempt are not stored with its change.
    OutboxInMemory,
    /// The outbox is cleared before its messages are sent.
    ClearedBeforeSending,
    /// The messages are sent before the change that causes them is stored.
    SentBeforePersisted,
    /// A command that is sent again has different tokens.
    TokensMintedAgain,
    /// A token is removed when its message is claimed, and not after it was handled.
    TokenRemovedAtClaim,
    /// Tokens of other attempts are collected by an attempt that stored nothing.
    GarbageWithoutPersist,
    /// A release does not check that the caller still holds the partition.
    ReleaseWithoutFence,
    /// A release checks its lease by the worker's clock, and not by the fence.
    LeaseByOwnClock,
    /// A ledger item expires at the end of a lease, and not when no message can arrive any more.
    ItemForgottenEarly,
    /// An unreadable document fails all documents that are loaded with it.
    UnreadableFailsBatch,
    /// A message of a newer version is dead-lettered at its first delivery.
    LaterVersionRefused,
    /// A redriven dead letter gets a new id.
    RedrivenAsNew,
    /// Messages have different ids each time they are sent.
    RandomEffectIds,
    /// The outbox is read first and its entries are marked in a second step.
    ReadThenMarkClaim,
    /// Every failure is retried in place, and not only conflicts.
    RetryOnEveryError,
    /// A message is dropped because of an earlier version of its document.
    StaleDropBelieved,
    /// A version that is not newer counts as proof that an unknown write was not made.
    EarlierIsConflict,
    /// An unreadable outbox entry fails the claim of all due entries.
    UnreadableStopsSweep,
    /// An outbox entry is exhausted after it has failed for minutes.
    GivesUpSoon,
    /// An exhausted entry is requeued without granting its tokens again.
    RequeueWithoutTokens,
    /// A command is executed again although its reply has taken effect.
    ReplyTokenUnchecked,
    /// Tokens are added to a partition without a limit.
    MintsWithoutRoom,
    /// An outbox keeps an entry that was evidently sent until it is settled.
    SentStays,
    /// An entry that another worker left is performed without a stored takeover.
    TakeoverIsNotStored,
    /// A partition is claimed from its holder, even if the holder's change is not stored.
    NobodyIsWaitedFor,
    /// A claim is granted regardless of the fence, and so are late duplicates of its request.
    ClaimWithoutFence,
    /// A ledger item expires 30 days after its last change, even if its document expects messages.
    ItemForgottenAfterMonth,
    /// The token of a message that is dropped together with a handled one is not removed.
    DroppedKeepsToken,
    /// A dropped message stays an expected message of its document.
    DroppedIsAwaited,
    /// A message that the saga postpones is acknowledged.
    PostponedIsDropped,
    /// A duplicate write is made twice, because it belongs to the attempt that made the last one.
    WriteRepeated,
    /// A failure counts as retried before its message is sent.
    RetriedBeforeSent,
    /// A function that starts during a database outage exits, so each of its deliveries is redelivered.
    ExitsWithoutStore,
    /// The table of the application omits a queue that its functions send to.
    QueueUndeclared,
    /// The token of an event for another saga is granted after the event was sent.
    TokenAfterSending,
    /// The token of an event for another saga is granted again each time the stored event is sent.
    TokenGrantedAgain,
    /// An event for another saga has another id and another token each time it is sent.
    ChildStartedAgain,
    /// A saga replies to another one without the token of the request.
    ReplyWithoutToken,
    /// A worker processes the messages of a paused instance.
    PauseIgnored,
    /// A message of a paused instance is acknowledged.
    PausedIsDropped,
    /// A worker continues a terminated instance.
    TerminationIgnored,
    /// A repeated command of an operator sends its event again.
    OperatorEventRepeated,
    /// An operator does not notice that a release was refused because the lease had expired.
    OperatorReleaseBelieved,
    /// A late write of a record replaces the content of a newer version of its instance.
    RecordGoesBack,
    /// A store deletes a record of an instance when it is removed, so an earlier write creates it again.
    RemovalForgetsRevision,
    /// A defect that the application plants in its own ports, by its name.
    Own(&'static str),
}

impl Mutant {
    /// The defects of the engine.
    pub const ENGINE: [Self; 31] = [
        Self::NoVersionCheck,
        Self::OutboxInMemory,
        Self::ClearedBeforeSending,
        Self::SentBeforePersisted,
        Self::TokensMintedAgain,
        Self::TokenRemovedAtClaim,
        Self::GarbageWithoutPersist,
        Self::ReleaseWithoutFence,
        Self::LeaseByOwnClock,
        Self::ItemForgottenEarly,
        Self::UnreadableFailsBatch,
        Self::LaterVersionRefused,
        Self::RedrivenAsNew,
        Self::RandomEffectIds,
        Self::ReadThenMarkClaim,
        Self::RetryOnEveryError,
        Self::StaleDropBelieved,
        Self::EarlierIsConflict,
        Self::UnreadableStopsSweep,
        Self::GivesUpSoon,
        Self::RequeueWithoutTokens,
        Self::ReplyTokenUnchecked,
        Self::MintsWithoutRoom,
        Self::SentStays,
        Self::TakeoverIsNotStored,
        Self::NobodyIsWaitedFor,
        Self::ClaimWithoutFence,
        Self::WriteRepeated,
        Self::RetriedBeforeSent,
        Self::ExitsWithoutStore,
        Self::QueueUndeclared,
    ];

    /// The defects of the engine that are found only on applications that wait for months, drop expected messages, or
    /// postpone messages.
    pub const OF_SOME: [Self; 4] = [
        Self::ItemForgottenAfterMonth,
        Self::DroppedKeepsToken,
        Self::DroppedIsAwaited,
        Self::PostponedIsDropped,
    ];

    /// The defects of the engine that only applications with several sagas reveal.
    pub const BETWEEN_SAGAS: [Self; 4] =
        [Self::TokenAfterSending, Self::TokenGrantedAgain, Self::ChildStartedAgain, Self::ReplyWithoutToken];

    /// The defects of the engine that are found only on applications whose instances an operator pauses.
    pub const PAUSED: [Self; 2] = [Self::PauseIgnored, Self::PausedIsDropped];

    /// The defects of the engine that are found only on applications whose instances an operator terminates or sends
    /// events.
    pub const TERMINATED: [Self; 3] =
        [Self::TerminationIgnored, Self::OperatorEventRepeated, Self::OperatorReleaseBelieved];

    /// The defects of the engine that are found only on applications whose transitions write records, and the last one only
    /// if they also remove some. Others name it in [`Workload::hidden_defects`](crate::Workload::hidden_defects).
    pub const OF_RECORDS: [Self; 2] = [Self::RecordGoesBack, Self::RemovalForgetsRevision];

    /// Returns the modes in which the mutant is a defect. Without a ledger, there are no tokens, fences and garbage
    /// collection.
    pub fn modes(self) -> &'static [Mode] {
        match self {
            Self::TokensMintedAgain
            | Self::TokenRemovedAtClaim
            | Self::GarbageWithoutPersist
            | Self::ReleaseWithoutFence
            | Self::LeaseByOwnClock
            | Self::ItemForgottenEarly
            | Self::EarlierIsConflict
            | Self::RequeueWithoutTokens
            | Self::OperatorReleaseBelieved
            | Self::ReplyTokenUnchecked
            | Self::MintsWithoutRoom
            | Self::NobodyIsWaitedFor
            | Self::ClaimWithoutFence
            | Self::ItemForgottenAfterMonth
            | Self::DroppedKeepsToken
            | Self::DroppedIsAwaited
            | Self::TokenAfterSending
            | Self::TokenGrantedAgain
            | Self::ReplyWithoutToken => &[Mode::Ledger],
            // With a ledger, the release removes the token, so a redelivered message is a duplicate.
            Self::TakeoverIsNotStored => &[Mode::Optimistic],
            _ => &Mode::ALL,
        }
    }
}

/// The invariants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// I1: at most one state change per message id.
    OneChangePerMessage,
    /// I2: effects are stored with the change that caused them.
    EffectsWithTheirChange,
    /// I3: every stored effect is performed at least once and takes effect at most once.
    EffectsTakeEffectOnce,
    /// I4: a failed attempt has no effect, and no needed token is removed.
    TokensAreKept,
    /// I5: a duplicate changes nothing.
    DuplicatesChangeNothing,
    /// I6: the stored size is bounded.
    Bounded,
    /// I7: the system becomes idle.
    Quiescence,
    /// I8: everything that waits has a stored deadline.
    WaitsHaveDeadlines,
    /// I9: an unreadable record affects no other record.
    BadRecordsStayAlone,
    /// I10: repeated actions of an operator are safe.
    RepeatsDoNoHarm,
    /// The transactional session: its data is stored and its messages are sent, or neither.
    SessionIsAtomic,
    /// Only conflicts are retried in place; other failures are redelivered by the queue.
    RetriesAreScoped,
    /// Only one worker at a time holds a partition while its lease is valid.
    OneInside,
    /// A paused or terminated instance does not change.
    OperatorIsObeyed,
    /// The functions answer each delivery and never panic.
    Answers,
    /// The invariants of the workload.
    Application,
}

impl Invariant {
    /// Returns the short name of the invariant.
    pub fn code(self) -> &'static str {
        match self {
            Self::OneChangePerMessage => "I1",
            Self::EffectsWithTheirChange => "I2",
            Self::EffectsTakeEffectOnce => "I3",
            Self::TokensAreKept => "I4",
            Self::DuplicatesChangeNothing => "I5",
            Self::Bounded => "I6",
            Self::Quiescence => "I7",
            Self::WaitsHaveDeadlines => "I8",
            Self::BadRecordsStayAlone => "I9",
            Self::RepeatsDoNoHarm => "I10",
            Self::SessionIsAtomic => "session",
            Self::RetriesAreScoped => "retries",
            Self::OneInside => "partition",
            Self::OperatorIsObeyed => "operator",
            Self::Answers => "answers",
            Self::Application => "application",
        }
    }
}

impl fmt::Display for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.code())
    }
}

/// A violation of an invariant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The violated invariant.
    pub invariant: Invariant,
    /// The details.
    pub detail: String,
}

impl From<String> for Violation {
    fn from(detail: String) -> Self {
        Self { invariant: Invariant::Application, detail }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.invariant, self.detail)
    }
}

/// The totals of one or more schedules.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// The choices of the scheduler.
    pub steps: u64,
    /// Messages put into queues, including duplicates.
    pub sent: u64,
    /// Received duplicates.
    pub received: u64,
    /// All faults.
    pub faults: u64,
    /// Partitions with stored data.
    pub partitions: u64,
    /// Partitions that ended successfully.
    pub completed: u64,
    /// Partitions that ended in another state.
    pub failed: u64,
    /// Stale duplicates delivered after the end.
    pub stale: u64,
    /// Redriven dead letters.
    pub redriven: u64,
    /// Calls that failed because their service was unavailable.
    pub outages: u64,
    /// Outbox entries that could not be read.
    pub unreadable: u64,
    /// Requeued outbox entries.
    pub requeued: u64,
}

impl Stats {
    /// Adds the totals of another run.
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.sent += other.sent;
        self.received += other.received;
        self.faults += other.faults;
        self.partitions += other.partitions;
        self.completed += other.completed;
        self.failed += other.failed;
        self.stale += other.stale;
        self.redriven += other.redriven;
        self.outages += other.outages;
        self.unreadable += other.unreadable;
        self.requeued += other.requeued;
    }
}

/// The result of a schedule.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The first violation, which ended the schedule.
    pub violation: Option<Violation>,
    /// The totals.
    pub stats: Stats,
    /// The coverage.
    pub coverage: Coverage,
    /// A line for each event, if a trace was requested.
    pub trace: Vec<String>,
}
