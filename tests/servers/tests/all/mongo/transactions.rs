//! Transactions of sessions with conflicts, closed connections and timeouts: record and data are both stored, or
//! neither.

use std::time::Duration;

use backend::SystemHost;
use contracts::sample;
use futures::future::try_join_all;
use messages::{Host, PartitionKey, SessionId, StoreError};
use mongodb::bson::doc;
use outbox::records::RecordRead;
use outbox::session::SessionStatus;
use outbox::{
    CommitOutcome, CommitSession, Key, ReadRecords, ReadViews, SessionRecord, SettleSessions, Write,
};
use serde_json::json;
use servers::mongo::{OwnServer, eventually};

use super::faults::unknown;
use super::{Scratch, Setup, TestResult};

const HOST: &SystemHost = &SystemHost;

struct PreparedSession {
    record: SessionRecord,
    partition: PartitionKey,
}

impl PreparedSession {
    fn new() -> Self {
        let (partition, now) = (sample::partition(HOST), sample::now(HOST));
        let record = SessionRecord {
            id: SessionId::from_uuid(HOST.fresh_id()),
            entries: vec![sample::entry(HOST, partition, now).unwrap()],
            views: vec![sample::view(HOST, partition, 0, false)],
            reads: Vec::new(),
            writes: Vec::new(),
            committed_at: now,
        };
        Self { record, partition }
    }

    /// Adds a record that the session has read, and one that it writes.
    fn reading(mut self, key: &Key, revision: u64, writes: &Key) -> Self {
        self.record.reads.push(RecordRead { key: key.clone(), revision });
        let body = json!(self.record.id.to_string());
        self.record.writes.push(Write::new(writes.clone(), body));
        self
    }

    /// Returns the status of the record, and whether the view is stored.
    async fn stored(&self, scratch: &Scratch) -> Result<(SessionStatus, bool), StoreError> {
        Ok((scratch.mongo.find(self.record.id).await?, scratch.mongo.view(self.partition).await?.is_some()))
    }
}

#[tokio::test]
async fn transaction_is_repeated_after_conflict_or_disconnect() -> TestResult {
    let scratch = Scratch::new().await?;
    let conflict = doc! { "errorCode": 112, "errorLabels": ["TransientTransactionError"] };
    let cut = doc! { "closeConnection": true };
    let faults = [
        ("insert", conflict.clone()),
        ("update", conflict.clone()),
        ("commitTransaction", conflict),
        ("commitTransaction", cut),
    ];
    for (command, how) in faults {
        let session = PreparedSession::new();
        let fault = scratch.fail(1, &[command], how).await?;
        assert_eq!(scratch.mongo.commit(&session.record).await?, CommitOutcome::Stored, "{command}");
        fault.off().await?;
        assert_eq!(session.stored(&scratch).await?, (SessionStatus::Committed, true), "{command}");
    }
    scratch.end().await
}

#[tokio::test]
async fn failed_transaction_leaves_neither_record_nor_data() -> TestResult {
    let scratch = Scratch::new().await?;
    for command in ["insert", "update"] {
        let session = PreparedSession::new();
        let fault = scratch.fail(100, &[command], doc! { "closeConnection": true }).await?;
        unknown(scratch.mongo.commit(&session.record).await);
        fault.off().await?;
        assert_eq!(session.stored(&scratch).await?, (SessionStatus::Nothing, false), "{command}");
        assert_eq!(
            scratch.mongo.abandon(session.record.id, sample::now(HOST)).await?,
            SessionStatus::Tombstone
        );
        let late = scratch.mongo.commit(&session.record).await?;
        assert_eq!(
            (late, session.stored(&scratch).await?),
            (CommitOutcome::TooLate, (SessionStatus::Tombstone, false))
        );
    }
    scratch.end().await
}

/// The function is killed before its commit arrives. Until the server aborts the transaction, the session can be
/// neither found nor abandoned, and no response claims otherwise.
#[tokio::test]
async fn open_transaction_blocks_commit_and_abandon() -> TestResult {
    let server = OwnServer::replica_set(&["transactionLifetimeLimitSeconds=3"]).await?;
    let setup = Setup { call_timeout: Duration::from_secs(1), ..Setup::default() };
    let scratch = Scratch::with(&server.uri(), setup).await?;
    let session = PreparedSession::new();
    let fault = scratch.fail(100, &["commitTransaction"], doc! { "closeConnection": true }).await?;
    unknown(scratch.mongo.commit(&session.record).await);
    fault.off().await?;
    assert_eq!(session.stored(&scratch).await?, (SessionStatus::Nothing, false));
    unknown(scratch.mongo.abandon(session.record.id, sample::now(HOST)).await);
    eventually("the session is buried", Duration::from_secs(30), async || {
        match scratch.mongo.abandon(session.record.id, sample::now(HOST)).await {
            Ok(found) => Ok(found == SessionStatus::Tombstone),
            Err(error) if error.is_retryable() => Ok(false),
            Err(error) => Err(error),
        }
    })
    .await?;
    assert_eq!(scratch.mongo.commit(&session.record).await?, CommitOutcome::TooLate);
    assert_eq!(session.stored(&scratch).await?, (SessionStatus::Tombstone, false));
    Ok(())
}

#[tokio::test]
async fn commit_without_majority_is_unknown_and_repeatable() -> TestResult {
    let scratch = Scratch::new().await?;
    let session = PreparedSession::new();
    let how = doc! { "writeConcernError": { "code": 64, "errmsg": "waiting for replication timed out" } };
    let fault = scratch.fail(100, &["commitTransaction"], how).await?;
    unknown(scratch.mongo.commit(&session.record).await);
    fault.off().await?;
    assert_eq!(session.stored(&scratch).await?, (SessionStatus::Committed, true));
    assert_eq!(scratch.mongo.commit(&session.record).await?, CommitOutcome::Stored);
    scratch.end().await
}

fn fresh() -> Key {
    Key::new("sample", HOST.fresh_id().to_string())
}

/// Writes a record the given number of times.
async fn put(scratch: &Scratch, key: &Key, times: usize) -> TestResult {
    for _ in 0..times {
        let mut session = PreparedSession::new();
        session.record.writes.push(Write::new(key.clone(), json!("put")));
        assert_eq!(scratch.mongo.commit(&session.record).await?, CommitOutcome::Stored);
    }
    Ok(())
}

async fn revision(scratch: &Scratch, key: &Key) -> Result<u64, StoreError> {
    Ok(scratch.mongo.record(key).await?.map_or(0, |record| record.revision))
}

/// Many concurrent sessions, which correspond to two requests that are both sent twice, with and without an existing
/// record.
#[tokio::test]
async fn concurrent_sessions_reading_one_record_commit_once() -> TestResult {
    let scratch = Scratch::new().await?;
    for (before, rivals) in [(0, 2), (1, 2), (0, 8), (3, 8)] {
        let key = fresh();
        put(&scratch, &key, before).await?;
        let read = revision(&scratch, &key).await?;
        let sessions: Vec<_> =
            (0..rivals).map(|_| PreparedSession::new().reading(&key, read, &key)).collect();
        let commits = sessions.iter().map(|session| scratch.mongo.commit(&session.record));
        let answers = try_join_all(commits).await?;
        let winners: Vec<_> =
            sessions.iter().zip(&answers).filter(|(_, answer)| **answer == CommitOutcome::Stored).collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        let losers = answers.iter().filter(|answer| **answer == CommitOutcome::Changed).count();
        assert_eq!(losers, rivals - 1, "{answers:?}");
        let stored = scratch.mongo.record(&key).await?.unwrap();
        assert_eq!((stored.revision, stored.body), (read + 1, json!(winners[0].0.record.id.to_string())));
        for (session, answer) in sessions.iter().zip(&answers) {
            let is_stored = *answer == CommitOutcome::Stored;
            let expected =
                if is_stored { (SessionStatus::Committed, true) } else { (SessionStatus::Nothing, false) };
            assert_eq!(session.stored(&scratch).await?, expected);
        }
    }
    scratch.end().await
}

/// Write skew: the sessions write different records, and snapshot isolation alone would let both commit. In either
/// serial order, the second session would have read a value that the first one changed.
#[tokio::test]
async fn write_skew_commits_one_session() -> TestResult {
    let scratch = Scratch::new().await?;
    for round in 0..20 {
        let (left, right) = (fresh(), fresh());
        // An absent record is guarded differently from an existing one.
        put(&scratch, &left, round % 2).await?;
        put(&scratch, &right, (round / 2) % 2).await?;
        let (read_left, read_right) = (revision(&scratch, &left).await?, revision(&scratch, &right).await?);
        let one = PreparedSession::new().reading(&left, read_left, &right);
        let two = PreparedSession::new().reading(&right, read_right, &left);
        let (one, two) = futures::join!(scratch.mongo.commit(&one.record), scratch.mongo.commit(&two.record));
        let mut answers = [format!("{:?}", one?), format!("{:?}", two?)];
        answers.sort();
        assert_eq!(answers, ["Changed", "Stored"]);
    }
    scratch.end().await
}

/// Each session only checks that the record still exists, and none changes it.
#[tokio::test]
async fn sessions_only_reading_one_record_all_commit() -> TestResult {
    let scratch = Scratch::new().await?;
    let (there, absent) = (fresh(), fresh());
    put(&scratch, &there, 1).await?;
    let sessions = (0..4).map(|_| {
        let mut session = PreparedSession::new().reading(&there, 1, &fresh());
        session.record.reads.push(RecordRead { key: absent.clone(), revision: 0 });
        session
    });
    let sessions: Vec<_> = sessions.collect();
    let answers = try_join_all(sessions.iter().map(|session| scratch.mongo.commit(&session.record))).await?;
    assert_eq!(answers, [CommitOutcome::Stored; 4]);
    assert_eq!((revision(&scratch, &there).await?, revision(&scratch, &absent).await?), (1, 0));
    scratch.end().await
}

/// The reads of a session without messages are also checked, although nothing shows afterwards that it was committed.
#[tokio::test]
async fn session_without_writes_checks_its_reads() -> TestResult {
    let scratch = Scratch::new().await?;
    let key = fresh();
    put(&scratch, &key, 2).await?;
    for (read, expected) in
        [(2, CommitOutcome::Stored), (1, CommitOutcome::Changed), (0, CommitOutcome::Changed)]
    {
        let mut session = PreparedSession::new();
        session.record.entries.clear();
        session.record.views.clear();
        session.record.reads.push(RecordRead { key: key.clone(), revision: read });
        assert_eq!(scratch.mongo.commit(&session.record).await?, expected);
    }
    scratch.end().await
}
