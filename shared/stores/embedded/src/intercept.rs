//! A hook before and after every port call.

use async_trait::async_trait;

/// The phase of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Phase {
    /// The call has not begun.
    Before,
    /// The call is done and durable, but the caller does not know yet.
    After,
}

/// A call of a port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Call {
    /// [`saga::ReadDocuments::load`].
    SagaLoad,
    /// [`saga::WriteDocuments::persist`].
    SagaPersist,
    /// [`saga::WriteDocuments::settle`].
    SagaSettle,
    /// [`outbox::SweepOutbox::due`].
    OutboxDue,
    /// [`outbox::SweepOutbox::claim_due`].
    OutboxClaim,
    /// [`outbox::SweepOutbox::settle`].
    OutboxSettle,
    /// [`outbox::SweepOutbox::resolve_unreadable`].
    OutboxTreat,
    /// [`outbox::InspectOutbox::pending`].
    OutboxPending,
    /// [`outbox::InspectOutbox::poisoned`].
    OutboxPoisoned,
    /// [`outbox::InspectOutbox::entries_of`].
    OutboxRead,
    /// [`outbox::InspectOutbox::plan`].
    OutboxPlan,
    /// [`outbox::WriteViews::write`].
    ViewsWrite,
    /// [`outbox::ReadViews::view`].
    ViewsRead,
    /// [`outbox::ReadViews::by_age`].
    ViewsByAge,
    /// [`outbox::ReadViews::unfinished_of`], and their count.
    ViewsUnfinishedOf,
    /// [`outbox::ReadViews::list`].
    ViewsList,
    /// [`outbox::ReadViews::changed`], and the time of the last change.
    ViewsChanged,
    /// [`outbox::CommitSession::commit`].
    SessionCommit,
    /// [`outbox::SettleSessions::find`].
    SessionFind,
    /// [`outbox::SettleSessions::abandon`].
    SessionAbandon,
    /// [`outbox::ReadRecords::record`].
    RecordsRead,
    /// [`outbox::WriteRecords::write_record`].
    RecordsWrite,
    /// [`crate::Store::transaction`].
    Application,
    /// [`dedup::ClaimPartition::claim`].
    LedgerClaim,
    /// [`dedup::ClaimPartition::release`].
    LedgerRelease,
    /// [`dedup::GrantTokens::grant`].
    LedgerGrant,
    /// [`dedup::GrantTokens::begin`].
    LedgerBegin,
    /// [`dedup::GrantTokens::revoke`].
    LedgerRevoke,
    /// [`dedup::CheckTokens::is_granted`].
    LedgerCheck,
    /// [`dedup::ProcessedMessages::is_remembered`].
    ProcessedLook,
    /// [`dedup::ProcessedMessages::remember`].
    ProcessedRemember,
    /// [`messages::SendMessages::send`].
    QueueSend,
    /// [`messages::ReceiveMessages::receive`].
    QueueReceive,
    /// [`messages::ReceiveMessages::answer`].
    QueueAnswer,
    /// [`saga::KeepFailures::failures`].
    FailuresRead,
    /// [`saga::KeepFailures::change`].
    FailuresChange,
    /// [`saga::KeepFailures::select`].
    FailuresSelect,
    /// [`saga::KeepFailures::causes`].
    FailuresGroup,
    /// [`saga::KeepFailures::operation`], and the other reads of operations.
    OperationsRead,
    /// [`saga::KeepFailures::advance`].
    OperationsAdvance,
    /// [`saga::KeepFailures::note`].
    ActsNote,
    /// [`saga::KeepFailures::audit_entries`].
    ActsRead,
    /// [`saga::KeepHistory::remove`].
    HistoryRemove,
    /// `imports::ReportProgress::report`.
    ProgressReport,
    /// `imports::ReadProgress::progress`.
    ProgressRead,
    /// `imports::ParseAttempts::start`.
    ReadingBegin,
    /// `imports::ParseAttempts::save`.
    ReadingReach,
    /// `imports::ParseAttempts::place`.
    ReadingPlace,
    /// `imports::ParseAttempts::end`.
    ReadingPause,
    /// `imports::WriteStudies::store`.
    StudiesStore,
    /// `imports::WriteStudies::discard`.
    StudiesDiscard,
    /// `imports::WriteStudies::remove`.
    StudiesRemove,
    /// `imports::WriteStudies::finish`.
    StudiesFinish,
    /// `imports::WriteStudies::withdraw`.
    StudiesWithdraw,
    /// `imports::CompareStudies::revise`.
    StudiesRevise,
    /// `imports::CompareStudies::sharing`.
    StudiesSharing,
    /// `imports::CompareStudies::mark`.
    StudiesMark,
    /// `imports::ReadStudies::select`, and `imports::ReadStudies::studies_at`.
    StudiesRead,
    /// `imports::ReadStudies::quarantined`.
    StudiesQuarantined,
    /// `imports::ReadStudies::keyed`.
    StudiesKeyed,
    /// `imports::ReadStudies::identities_of`.
    StudiesIdentities,
    /// `imports::ReadStudies::parsed`.
    StudiesParsed,
    /// `imports::ReadStudies::stored_files`.
    StudiesFiles,
    /// `imports::ReadStudies::marked`.
    StudiesMarked,
    /// `imports::ReadStudies::repeating`.
    StudiesRepeating,
    /// `imports::ReadStudies::words`.
    WordsRead,
    /// `imports::IndexWords::unindexed`.
    WordsUnindexed,
    /// `imports::IndexWords::store_words`.
    WordsStore,
    /// `imports::PresignUpload::presign`.
    ObjectsPresign,
    /// `Store::upload`.
    ObjectsUpload,
    /// `imports::ReadObject::head`.
    ObjectsHead,
    /// `imports::ReadObject::open`.
    ObjectsOpen,
    /// `imports::FindObjects::find`.
    ObjectsFind,
    /// `imports::FindObjects::remove`.
    ObjectsRemove,
    /// `imports::KeepExports::keep`.
    ExportsKeep,
    /// `imports::KeepExports::link`.
    ExportsLink,
}

/// A hook around every port call. If it never returns, the caller stops at that point forever, as in a crash.
#[async_trait]
pub trait Intercept: Send + Sync {
    /// Is called and awaited before and after each port call.
    async fn step(&self, call: Call, phase: Phase);
}
