//! The contract of [`CommitSession`], [`SettleSessions`], [`ReadRecords`], [`WriteRecords`] and the [`InspectOutbox`] of
//! sessions.
//!
//! - here: messages and views, stored together or not at all;
//! - [`records`]: an application's own data.

use futures::future::join;
use messages::{Host, PartitionKey, SessionId, StoreError};
use outbox::session::SessionStatus;
use outbox::{
    CommitOutcome, CommitSession, Entry, InspectOutbox, Owner, ReadRecords, ReadViews, SessionRecord,
    SettleSessions, Settlement, WriteRecords,
};

use crate::{CheckResult, outboxes, sample};

pub mod records;

/// The adapter under test.
pub struct Ports<'a> {
    /// Commits.
    pub commit: &'a dyn CommitSession,
    /// Settles.
    pub settle: &'a dyn SettleSessions,
    /// Sweeps, and reads single outboxes.
    pub sweep: &'a dyn InspectOutbox,
    /// Reads the views that sessions write.
    pub views: &'a dyn ReadViews,
    /// Reads the records that the sessions write.
    pub records: &'a dyn ReadRecords,
    /// Writes records without a session.
    pub write_records: &'a dyn WriteRecords,
    /// Ids and time.
    pub host: &'a dyn Host,
}

impl<'a> Ports<'a> {
    /// Takes all ports from one store, except the sweep.
    pub fn of<S>(store: &'a S, sweep: &'a dyn InspectOutbox, host: &'a dyn Host) -> Self
    where
        S: CommitSession + SettleSessions + ReadViews + ReadRecords + WriteRecords,
    {
        Self { commit: store, settle: store, sweep, views: store, records: store, write_records: store, host }
    }
}

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    commit_stores_data_and_messages(ports).await?;
    a_repeated_commit_changes_nothing(ports).await?;
    commit_without_messages_writes_only_data(ports).await?;
    every_view_of_session_is_stored(ports).await?;
    existing_view_is_not_replaced(ports).await?;
    abandoned_session_commits_nothing(ports).await?;
    committed_session_is_not_abandoned(ports).await?;
    concurrent_commit_and_abandon_have_one_winner(ports).await?;
    swept_entries_leave_the_record(ports).await?;
    records::all(ports).await
}

/// A session that is ready to commit.
struct PreparedSession {
    record: SessionRecord,
    partition: PartitionKey,
}

impl PreparedSession {
    fn new(ports: &Ports<'_>, entries: usize) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let (partition, now) = (sample::partition(ports.host), sample::now(ports.host));
        let entries =
            (0..entries).map(|_| sample::entry(ports.host, partition, now)).collect::<Result<Vec<_>, _>>()?;
        let record = SessionRecord {
            id: SessionId::from_uuid(ports.host.fresh_id()),
            entries,
            views: vec![sample::view(ports.host, partition, 0, false)],
            reads: Vec::new(),
            writes: Vec::new(),
            committed_at: now,
        };
        Ok(Self { record, partition })
    }

    async fn commit(&self, ports: &Ports<'_>) -> Result<CommitOutcome, StoreError> {
        ports.commit.commit(&self.record).await
    }

    async fn is_due(&self, ports: &Ports<'_>) -> Result<bool, StoreError> {
        let owner = Owner::Session(self.record.id);
        outboxes::is_due(ports.sweep, owner, sample::now(ports.host), 100_000).await
    }

    async fn has_view(&self, ports: &Ports<'_>) -> Result<bool, StoreError> {
        Ok(ports.views.view(self.partition).await?.is_some())
    }
}

/// Data and messages are stored together.
pub async fn commit_stores_data_and_messages(ports: &Ports<'_>) -> CheckResult {
    let session = PreparedSession::new(ports, 2)?;
    assert_eq!(ports.settle.find(session.record.id).await?, SessionStatus::Nothing);
    assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
    assert_eq!(ports.settle.find(session.record.id).await?, SessionStatus::Committed);
    assert!(session.has_view(ports).await? && session.is_due(ports).await?);
    Ok(())
}

/// This holds even after its messages were sent: they are not sent again.
pub async fn a_repeated_commit_changes_nothing(ports: &Ports<'_>) -> CheckResult {
    let session = PreparedSession::new(ports, 1)?;
    session.commit(ports).await?;
    assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
    assert_eq!(sweep(ports, &session).await?.len(), 1);
    assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
    assert!(!session.is_due(ports).await?);
    Ok(())
}

/// A session may show several instances.
pub async fn every_view_of_session_is_stored(ports: &Ports<'_>) -> CheckResult {
    let session = PreparedSession::new(ports, 1)?;
    let shown: Vec<_> =
        (0..3).map(|_| sample::view(ports.host, sample::partition(ports.host), 0, false)).collect();
    let record = SessionRecord { views: shown.clone(), ..session.record };
    assert_eq!(ports.commit.commit(&record).await?, CommitOutcome::Stored);
    for view in shown {
        assert_eq!(ports.views.view(view.partition).await?, Some(view));
    }
    Ok(())
}

/// Sweeps do not find the session.
pub async fn commit_without_messages_writes_only_data(ports: &Ports<'_>) -> CheckResult {
    let session = PreparedSession::new(ports, 0)?;
    assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
    assert!(session.has_view(ports).await?);
    assert!(!session.is_due(ports).await?);
    assert_eq!(ports.settle.find(session.record.id).await?, SessionStatus::Committed);
    Ok(())
}

/// The saga may have written the view first.
pub async fn existing_view_is_not_replaced(ports: &Ports<'_>) -> CheckResult {
    let (mut first, mut second) = (PreparedSession::new(ports, 1)?, PreparedSession::new(ports, 1)?);
    let [list, other] = [ports.host.fresh_id(), ports.host.fresh_id()];
    first.record.views[0].also_in.insert(list);
    first.commit(ports).await?;
    let before = ports.views.view(first.partition).await?;
    assert_eq!(before.as_slice(), first.record.views);
    assert_eq!(ports.views.list(list, None, 9).await?.items, first.record.views);
    let mut late = sample::view(ports.host, first.partition, 9, true);
    late.also_in.insert(other);
    second.record.views = vec![late];
    assert_eq!(second.commit(ports).await?, CommitOutcome::Stored);
    assert_eq!(ports.views.view(first.partition).await?, before);
    assert_eq!(ports.views.list(other, None, 9).await?.items, []);
    Ok(())
}

/// Neither the data nor the messages of the session are stored.
pub async fn abandoned_session_commits_nothing(ports: &Ports<'_>) -> CheckResult {
    let session = PreparedSession::new(ports, 1)?;
    let now = sample::now(ports.host);
    for _ in 0..2 {
        assert_eq!(ports.settle.abandon(session.record.id, now).await?, SessionStatus::Tombstone);
    }
    assert_eq!(session.commit(ports).await?, CommitOutcome::TooLate);
    assert_eq!(ports.settle.find(session.record.id).await?, SessionStatus::Tombstone);
    assert!(!session.has_view(ports).await? && !session.is_due(ports).await?);
    Ok(())
}

/// Committed messages are sent.
pub async fn committed_session_is_not_abandoned(ports: &Ports<'_>) -> CheckResult {
    let session = PreparedSession::new(ports, 1)?;
    session.commit(ports).await?;
    assert_eq!(
        ports.settle.abandon(session.record.id, sample::now(ports.host)).await?,
        SessionStatus::Committed
    );
    assert!(session.is_due(ports).await?);
    Ok(())
}

/// Both callers learn the same outcome.
pub async fn concurrent_commit_and_abandon_have_one_winner(ports: &Ports<'_>) -> CheckResult {
    for _ in 0..5 {
        let session = PreparedSession::new(ports, 1)?;
        let now = sample::now(ports.host);
        let (committed, found) =
            join(session.commit(ports), ports.settle.abandon(session.record.id, now)).await;
        match (committed?, found?) {
            (CommitOutcome::Stored, SessionStatus::Committed) => {
                assert!(session.has_view(ports).await? && session.is_due(ports).await?);
            }
            (CommitOutcome::TooLate, SessionStatus::Tombstone) => {
                assert!(!session.has_view(ports).await? && !session.is_due(ports).await?);
            }
            disagreement => panic!("{disagreement:?}"),
        }
    }
    Ok(())
}

/// Entries are sent in the order of staging by one sweep at a time. A late repetition of the commit still finds the
/// record.
pub async fn swept_entries_leave_the_record(ports: &Ports<'_>) -> CheckResult {
    let session = PreparedSession::new(ports, 3)?;
    session.commit(ports).await?;
    let stored = ports.sweep.entries_of(Owner::Session(session.record.id)).await?;
    assert_eq!(stored, session.record.entries.iter().cloned().map(Ok).collect::<Vec<_>>());
    let swept: Vec<_> = sweep(ports, &session).await?.into_iter().map(|entry| entry.id).collect();
    assert_eq!(swept, session.record.entries.iter().map(|entry| entry.id).collect::<Vec<_>>());
    assert!(!session.is_due(ports).await?);
    assert_eq!(ports.sweep.entries_of(Owner::Session(session.record.id)).await?, []);
    assert_eq!(ports.settle.find(session.record.id).await?, SessionStatus::Committed);
    Ok(())
}

async fn sweep(ports: &Ports<'_>, session: &PreparedSession) -> Result<Vec<Entry>, StoreError> {
    let (owner, now) = (Owner::Session(session.record.id), sample::now(ports.host));
    let claimed = outboxes::claim(ports.sweep, owner, now, sample::later(now, 300)).await?;
    let next = sample::later(now, 301);
    assert_eq!(outboxes::claim(ports.sweep, owner, now, next).await?, [], "it is claimed");
    let done = |entry: &Entry| Settlement { id: entry.id, claim: entry.claimed_until, keep: None };
    outboxes::settle(ports.sweep, owner, &claimed.iter().map(done).collect::<Vec<_>>()).await?;
    Ok(claimed)
}
