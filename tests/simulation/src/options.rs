//! The options and the results of a simulation.

use std::fmt;

use crate::coverage::Coverage;

/// How the functions tell duplicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// By tokens in a ledger.
    Ledger,
    /// By versions, the ids of processed messages and states alone.
    Optimistic,
}

impl Mode {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Ledger, Self::Optimistic];
}

/// The options of a simulation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// With a ledger or without.
    pub mode: Mode,
    /// A defect to plant, for proving that it is found.
    pub mutant: Option<Mutant>,
    /// Whether to write down what happens.
    pub trace: bool,
    /// The maximum number of steps of a schedule; a schedule that needs more does not come to rest.
    pub max_steps: u64,
}

impl Config {
    /// A plain simulation.
    pub fn new(mode: Mode) -> Self {
        Self { mode, mutant: None, trace: false, max_steps: 30_000 }
    }
}

/// A defect that can be planted between the functions and their ports. Each one of [`Mutant::ENGINE`] is to be found on
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
    /// A command that is sent once more has other tokens than the first time.
    TokensMintedAgain,
    /// A token is removed when its message is claimed, not when it is done with.
    TokenRemovedAtClaim,
    /// Tokens of other attempts are collected by an attempt that stored nothing.
    GarbageWithoutPersist,
    /// A release does not ask whether the partition is still the caller's.
    ReleaseWithoutFence,
    /// A release asks whether its lease lasts by the worker's own clock, and not for the fence.
    LeaseByOwnClock,
    /// A ledger item is forgotten when a lease would be over, and not when no message can come any more.
    ItemForgottenEarly,
    /// A document that cannot be read fails everything that is loaded with it.
    UnreadableFailsBatch,
    /// A message of a newer version is dead-lettered at its first delivery.
    LaterVersionRefused,
    /// A redriven dead letter gets a new id.
    RedrivenAsNew,
    /// Messages have other ids each time they are sent.
    RandomEffectIds,
    /// The outbox is read first and its entries are marked in a second step.
    ReadThenMarkClaim,
    /// Every failure is tried again in place, and not conflicts alone.
    RetryOnEveryError,
    /// A message is dropped for what an earlier version of its document says.
    StaleDropBelieved,
    /// A version that is not newer counts as proof that an unknown write was not made.
    EarlierIsConflict,
    /// An unreadable outbox entry fails the claim of all due entries.
    UnreadableStopsSweep,
    /// An outbox entry is exhausted after it has failed for minutes.
    GivesUpSoon,
    /// An exhausted entry is requeued without granting its tokens again.
    RequeueWithoutTokens,
    /// A command is carried out again although its answer has taken effect.
    ReplyTokenUnchecked,
    /// Tokens are added to a partition without a limit.
    MintsWithoutRoom,
    /// An outbox keeps what evidently was sent until it is settled.
    SentStays,
    /// A partition is taken from its holder, even if the holder's change is not stored.
    NobodyIsWaitedFor,
    /// A claim is granted whatever the fence is, and so are late copies of its request.
    ClaimWithoutFence,
    /// A ledger item is forgotten 30 days after it was touched last, whatever its document waits for.
    ItemForgottenAfterMonth,
    /// A message that is dropped together with one that is handled leaves its token.
    DroppedKeepsToken,
    /// A message that is dropped although the document waits for it is waited for still.
    DroppedIsAwaited,
    /// A write that comes twice is made twice, because it is of the attempt that made the last one.
    WriteRepeated,
    /// A failure counts as retried before its message is sent.
    RetriedBeforeSent,
    /// A function that starts while the database is away exits, and each delivery that it was started for comes again.
    ExitsWithoutStore,
    /// The table of the application omits a queue that its functions send to.
    QueueUndeclared,
    /// One that the application plants in its own ports, by its name.
    Own(&'static str),
}

impl Mutant {
    /// Those of the engine.
    pub const ENGINE: [Self; 30] = [
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
        Self::NobodyIsWaitedFor,
        Self::ClaimWithoutFence,
        Self::WriteRepeated,
        Self::RetriedBeforeSent,
        Self::ExitsWithoutStore,
        Self::QueueUndeclared,
    ];

    /// Those of the engine that are found only on applications that wait for months, or that drop messages which they wait
    /// for.
    pub const OF_SOME: [Self; 3] =
        [Self::ItemForgottenAfterMonth, Self::DroppedKeepsToken, Self::DroppedIsAwaited];

    /// In which modes it is a defect. Without a ledger, tokens, fences and garbage do not exist.
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
            | Self::ReplyTokenUnchecked
            | Self::MintsWithoutRoom
            | Self::NobodyIsWaitedFor
            | Self::ClaimWithoutFence
            | Self::ItemForgottenAfterMonth
            | Self::DroppedKeepsToken
            | Self::DroppedIsAwaited => &[Mode::Ledger],
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
    /// I4: nothing of a failed attempt is honoured, and no needed token is removed.
    TokensAreKept,
    /// I5: a duplicate changes nothing.
    DuplicatesChangeNothing,
    /// I6: what is stored stays bounded.
    Bounded,
    /// I7: everything comes to rest.
    Quiescence,
    /// I8: nothing waits without a deadline that is stored.
    WaitsHaveDeadlines,
    /// I9: a record that cannot be read costs nothing but itself.
    BadRecordsStayAlone,
    /// I10: what an operator may repeat does no harm.
    RepeatsDoNoHarm,
    /// The transactional session: data stored and message sent, or neither.
    SessionIsAtomic,
    /// Only a conflict is tried again in place; everything else goes back to its queue.
    RetriesAreScoped,
    /// One worker at a time is inside a partition, while its lease lasts.
    OneInside,
    /// The functions answer each delivery, and never panic.
    Answers,
    /// The invariants of the workload.
    Application,
}

impl Invariant {
    /// Its short name.
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

/// Something that must not happen did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The violated invariant.
    pub invariant: Invariant,
    /// How.
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

/// Totals of one schedule, or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stats {
    /// Choices of the scheduler.
    pub steps: u64,
    /// Messages put into queues, copies included.
    pub sent: u64,
    /// Copies received.
    pub received: u64,
    /// Faults of every kind.
    pub faults: u64,
    /// Partitions with stored data.
    pub partitions: u64,
    /// Those that ended well.
    pub completed: u64,
    /// Those that ended otherwise.
    pub failed: u64,
    /// Stale duplicates delivered after the end.
    pub stale: u64,
    /// Redriven dead letters.
    pub redriven: u64,
    /// Calls that failed because their service was away.
    pub outages: u64,
    /// Outbox entries that could not be read.
    pub unreadable: u64,
    /// Requeued outbox entries.
    pub requeued: u64,
}

impl Stats {
    /// Adds those of another run.
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
    /// The first violation, at which the schedule was broken off.
    pub violation: Option<Violation>,
    /// Totals.
    pub stats: Stats,
    /// The coverage.
    pub coverage: Coverage,
    /// One line for each thing that happened, when that was asked for.
    pub trace: Vec<String>,
}
