//! Transactions of sessions that meet conflicts, cuts and silence: both record and data, or neither.

use std::time::Duration;

use backend::SystemHost;
use futures::future::try_join_all;
use messages::{Host, PartitionKey, SessionId, StoreError};
use mongodb::bson::doc;
use outbox::records::Read;
use outbox::session::Found;
use outbox::{CommitSession, Committed, Key, ReadRecords, ReadViews, SessionRecord, SettleSessions, Write};
use serde_json::json;
use servers::mongo::{OwnServer, eventually};
use testing::sample;

use super::faults::unknown;
use super::{Scratch, Setup, Tested};

const HOST: &SystemHost = &SystemHost;

struct Prepared {
    record: SessionRecord,
    partition: PartitionKey,
}

impl Prepared {
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

    /// With a record that it has read and one that it writes.
    fn reading(mut self, key: &Key, revision: u64, writes: &Key) -> Self {
        self.record.reads.push(Read { key: key.clone(), revision });
        let body = json!(self.record.id.to_string());
        self.record.writes.push(Write { key: writes.clone(), body });
        self
    }

    /// Whether the record is there, and the view.
    async fn stored(&self, scratch: &Scratch) -> Result<(Found, bool), StoreError> {
        Ok((scratch.mongo.find(self.record.id).await?, scratch.mongo.view(self.partition).await?.is_some()))
    }
}

#[tokio::test]
async fn a_transaction_that_meets_a_conflict_or_a_cut_is_repeated() -> Tested {
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
        let session = Prepared::new();
        let fault = scratch.fail(1, &[command], how).await?;
        assert_eq!(scratch.mongo.commit(&session.record).await?, Committed::Stored, "{command}");
        fault.off().await?;
        assert_eq!(session.stored(&scratch).await?, (Found::Committed, true), "{command}");
    }
    scratch.end().await
}

#[tokio::test]
async fn a_transaction_that_cannot_be_made_leaves_neither_record_nor_data() -> Tested {
    let scratch = Scratch::new().await?;
    for command in ["insert", "update"] {
        let session = Prepared::new();
        let fault = scratch.fail(100, &[command], doc! { "closeConnection": true }).await?;
        unknown(scratch.mongo.commit(&session.record).await);
        fault.off().await?;
        assert_eq!(session.stored(&scratch).await?, (Found::Nothing, false), "{command}");
        assert_eq!(scratch.mongo.bury(session.record.id, sample::now(HOST)).await?, Found::Tombstone);
        let late = scratch.mongo.commit(&session.record).await?;
        assert_eq!((late, session.stored(&scratch).await?), (Committed::TooLate, (Found::Tombstone, false)));
    }
    scratch.end().await
}

/// As when a function is killed before its commit arrives. Until the server gives the transaction up the session can
/// neither be found nor be buried, and no answer claims otherwise.
#[tokio::test]
async fn a_transaction_that_is_left_open_is_neither_stored_nor_buried_until_the_server_gives_it_up() -> Tested
{
    let server = OwnServer::replica_set(&["transactionLifetimeLimitSeconds=3"]).await?;
    let setup = Setup { call_timeout: Duration::from_secs(1), ..Setup::default() };
    let scratch = Scratch::with(&server.uri(), setup).await?;
    let session = Prepared::new();
    let fault = scratch.fail(100, &["commitTransaction"], doc! { "closeConnection": true }).await?;
    unknown(scratch.mongo.commit(&session.record).await);
    fault.off().await?;
    assert_eq!(session.stored(&scratch).await?, (Found::Nothing, false));
    unknown(scratch.mongo.bury(session.record.id, sample::now(HOST)).await);
    eventually("the session is buried", Duration::from_secs(30), async || {
        match scratch.mongo.bury(session.record.id, sample::now(HOST)).await {
            Ok(found) => Ok(found == Found::Tombstone),
            Err(error) if error.is_retryable() => Ok(false),
            Err(error) => Err(error),
        }
    })
    .await?;
    assert_eq!(scratch.mongo.commit(&session.record).await?, Committed::TooLate);
    assert_eq!(session.stored(&scratch).await?, (Found::Tombstone, false));
    Ok(())
}

#[tokio::test]
async fn a_commit_that_no_majority_confirmed_is_unknown_and_repeating_it_finds_it_stored() -> Tested {
    let scratch = Scratch::new().await?;
    let session = Prepared::new();
    let how = doc! { "writeConcernError": { "code": 64, "errmsg": "waiting for replication timed out" } };
    let fault = scratch.fail(100, &["commitTransaction"], how).await?;
    unknown(scratch.mongo.commit(&session.record).await);
    fault.off().await?;
    assert_eq!(session.stored(&scratch).await?, (Found::Committed, true));
    assert_eq!(scratch.mongo.commit(&session.record).await?, Committed::Stored);
    scratch.end().await
}

fn fresh() -> Key {
    Key::new("sample", HOST.fresh_id().to_string())
}

/// Writes a record so often.
async fn put(scratch: &Scratch, key: &Key, times: usize) -> Tested {
    for _ in 0..times {
        let mut session = Prepared::new();
        session.record.writes.push(Write { key: key.clone(), body: json!("put") });
        assert_eq!(scratch.mongo.commit(&session.record).await?, Committed::Stored);
    }
    Ok(())
}

async fn revision(scratch: &Scratch, key: &Key) -> Result<u64, StoreError> {
    Ok(scratch.mongo.record(key).await?.map_or(0, |record| record.revision))
}

/// Many at once, as two requests that were sent twice: whether the record was there before or not.
#[tokio::test]
async fn of_sessions_that_have_read_the_same_record_one_is_stored_and_the_others_have_read_something_else()
-> Tested {
    let scratch = Scratch::new().await?;
    for (before, rivals) in [(0, 2), (1, 2), (0, 8), (3, 8)] {
        let key = fresh();
        put(&scratch, &key, before).await?;
        let read = revision(&scratch, &key).await?;
        let sessions: Vec<_> = (0..rivals).map(|_| Prepared::new().reading(&key, read, &key)).collect();
        let commits = sessions.iter().map(|session| scratch.mongo.commit(&session.record));
        let answers = try_join_all(commits).await?;
        let winners: Vec<_> =
            sessions.iter().zip(&answers).filter(|(_, answer)| **answer == Committed::Stored).collect();
        assert_eq!(winners.len(), 1, "{answers:?}");
        let losers = answers.iter().filter(|answer| **answer == Committed::Changed).count();
        assert_eq!(losers, rivals - 1, "{answers:?}");
        let stored = scratch.mongo.record(&key).await?.unwrap();
        assert_eq!((stored.revision, stored.body), (read + 1, json!(winners[0].0.record.id.to_string())));
        for (session, answer) in sessions.iter().zip(&answers) {
            let is_stored = *answer == Committed::Stored;
            let expected = if is_stored { (Found::Committed, true) } else { (Found::Nothing, false) };
            assert_eq!(session.stored(&scratch).await?, expected);
        }
    }
    scratch.end().await
}

/// Write skew: neither writes what the other writes, and a snapshot alone would let both pass. In whichever order two
/// are made, one after the other, the second has read something else.
#[tokio::test]
async fn of_two_sessions_that_each_read_what_the_other_writes_one_is_stored() -> Tested {
    let scratch = Scratch::new().await?;
    for round in 0..20 {
        let (left, right) = (fresh(), fresh());
        // What is absent is guarded otherwise than what is there.
        put(&scratch, &left, round % 2).await?;
        put(&scratch, &right, (round / 2) % 2).await?;
        let (read_left, read_right) = (revision(&scratch, &left).await?, revision(&scratch, &right).await?);
        let one = Prepared::new().reading(&left, read_left, &right);
        let two = Prepared::new().reading(&right, read_right, &left);
        let (one, two) = futures::join!(scratch.mongo.commit(&one.record), scratch.mongo.commit(&two.record));
        let mut answers = [format!("{:?}", one?), format!("{:?}", two?)];
        answers.sort();
        assert_eq!(answers, ["Changed", "Stored"]);
    }
    scratch.end().await
}

/// Each only makes sure that the record is still there, and none of them changes it.
#[tokio::test]
async fn sessions_that_only_read_the_same_record_are_all_stored_and_leave_its_revision() -> Tested {
    let scratch = Scratch::new().await?;
    let (there, absent) = (fresh(), fresh());
    put(&scratch, &there, 1).await?;
    let sessions = (0..4).map(|_| {
        let mut session = Prepared::new().reading(&there, 1, &fresh());
        session.record.reads.push(Read { key: absent.clone(), revision: 0 });
        session
    });
    let sessions: Vec<_> = sessions.collect();
    let answers = try_join_all(sessions.iter().map(|session| scratch.mongo.commit(&session.record))).await?;
    assert_eq!(answers, [Committed::Stored; 4]);
    assert_eq!((revision(&scratch, &there).await?, revision(&scratch, &absent).await?), (1, 0));
    scratch.end().await
}

/// What a session without messages reads is checked too, though nothing tells afterwards that it was stored.
#[tokio::test]
async fn a_session_that_stores_nothing_else_still_checks_what_it_has_read() -> Tested {
    let scratch = Scratch::new().await?;
    let key = fresh();
    put(&scratch, &key, 2).await?;
    for (read, expected) in [(2, Committed::Stored), (1, Committed::Changed), (0, Committed::Changed)] {
        let mut session = Prepared::new();
        session.record.entries.clear();
        session.record.views.clear();
        session.record.reads.push(Read { key: key.clone(), revision: read });
        assert_eq!(scratch.mongo.commit(&session.record).await?, expected);
    }
    scratch.end().await
}
