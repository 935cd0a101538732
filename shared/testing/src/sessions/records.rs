//! Records of an application: read in an open session, and written with its commit.

use futures::future::join;
use messages::StoreError;
use outbox::records::RecordRead;
use outbox::session::SessionStatus;
use outbox::{CommitOutcome, Key, OwnedRecord, Record, Write};
use serde_json::{Value, json};

use super::{Ports, PreparedSession};
use crate::CheckResult;

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    an_absent_record_is_none(ports).await?;
    each_commit_increments_the_revision(ports).await?;
    any_json_is_a_body(ports).await?;
    different_records_do_not_conflict(ports).await?;
    commit_fails_if_read_record_was_changed(ports).await?;
    commit_fails_if_absent_record_was_created(ports).await?;
    rejected_session_can_be_committed_again(ports).await?;
    abandoned_session_writes_no_record(ports).await?;
    repeated_commit_writes_no_second_record(ports).await?;
    repeated_commit_without_messages_overwrites_nothing(ports).await?;
    repeated_commit_accepts_its_own_write(ports).await?;
    write_without_session_changes_a_record(ports).await?;
    record_of_instance_never_goes_back(ports).await?;
    concurrent_commits_store_one(ports).await?;
    write_skew_stores_at_most_one(ports).await
}

/// The record does not differ from one written by a session.
pub async fn write_without_session_changes_a_record(ports: &Ports<'_>) -> CheckResult {
    let key = fresh(ports);
    for (revision, body) in [(1, json!("a")), (2, json!({ "b": 1 }))] {
        ports.write_records.write_record(&write(&key, body.clone())).await?;
        assert_eq!(ports.records.record(&key).await?, Some(Record { revision, body }));
    }
    put(ports, &key, json!("c"), 0).await?;
    let reader = PreparedSession::with_records(ports, 0, vec![read(&key, 3)], vec![write(&key, json!("d"))])?;
    ports.write_records.write_record(&write(&key, json!("e"))).await?;
    assert_eq!(reader.commit(ports).await?, CommitOutcome::Changed);
    assert_eq!(ports.records.record(&key).await?, Some(Record { revision: 4, body: json!("e") }));
    Ok(())
}

/// Effects are repeated, and are performed in another order than they were staged. A session that has read an earlier
/// revision is refused.
pub async fn record_of_instance_never_goes_back(ports: &Ports<'_>) -> CheckResult {
    let key = fresh(ports);
    let advance = async |revision| {
        let record = OwnedRecord { key: key.clone(), revision, body: json!(revision) };
        ports.write_records.advance_record(&record).await
    };
    for (revision, stored) in [(3, 3), (3, 3), (2, 3), (7, 7), (1, 7), (8, 8)] {
        advance(revision).await?;
        let expected = Record { revision: stored, body: json!(stored) };
        assert_eq!(ports.records.record(&key).await?, Some(expected), "after {revision}");
    }
    let other = fresh(ports);
    let reader =
        PreparedSession::with_records(ports, 0, vec![read(&key, 8)], vec![write(&other, json!("d"))])?;
    let late = PreparedSession::with_records(ports, 0, vec![read(&key, 8)], vec![write(&other, json!("e"))])?;
    assert_eq!(reader.commit(ports).await?, CommitOutcome::Stored);
    let (first, second) = join(advance(10), advance(9)).await;
    first.and(second)?;
    assert_eq!(ports.records.record(&key).await?, Some(Record { revision: 10, body: json!(10) }));
    assert_eq!(late.commit(ports).await?, CommitOutcome::Changed);
    Ok(())
}

/// Returns a new, unused record.
fn fresh(ports: &Ports<'_>) -> Key {
    Key::new("sample", ports.host.fresh_id().to_string())
}

fn read(key: &Key, revision: u64) -> RecordRead {
    RecordRead { key: key.clone(), revision }
}

fn write(key: &Key, body: Value) -> Write {
    Write { key: key.clone(), body }
}

impl PreparedSession {
    /// Returns a session with `entries` messages that reads and writes records.
    fn with_records(
        ports: &Ports<'_>,
        entries: usize,
        reads: Vec<RecordRead>,
        writes: Vec<Write>,
    ) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let mut session = Self::new(ports, entries)?;
        session.record.reads = reads;
        session.record.writes = writes;
        Ok(session)
    }
}

/// Writes one record, with or without messages.
async fn put(ports: &Ports<'_>, key: &Key, body: Value, entries: usize) -> CheckResult {
    let session = PreparedSession::with_records(ports, entries, Vec::new(), vec![write(key, body)])?;
    assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
    Ok(())
}

async fn revision(ports: &Ports<'_>, key: &Key) -> Result<u64, StoreError> {
    Ok(ports.records.record(key).await?.map_or(0, |record| record.revision))
}

/// The result is neither an error nor an empty record.
pub async fn an_absent_record_is_none(ports: &Ports<'_>) -> CheckResult {
    assert_eq!(ports.records.record(&fresh(ports)).await?, None);
    Ok(())
}

/// Revisions start at 1, with or without messages in the session. The body is the latest one.
pub async fn each_commit_increments_the_revision(ports: &Ports<'_>) -> CheckResult {
    let key = fresh(ports);
    for (revision, entries) in [(1, 0), (2, 1), (3, 0)] {
        let body = json!({ "number": revision, revision.to_string(): "only in this one" });
        put(ports, &key, body.clone(), entries).await?;
        assert_eq!(ports.records.record(&key).await?, Some(Record { revision, body }));
    }
    Ok(())
}

/// The store does not interpret the record.
pub async fn any_json_is_a_body(ports: &Ports<'_>) -> CheckResult {
    // A parser that rounds such a number reads a neighbouring number.
    let precise = json!(97.454_245_102_829_39);
    let simple = [json!(null), json!(-7), json!(0.5), json!("$set"), json!([[], {}]), json!({ "a": [null] })];
    for body in simple.into_iter().chain([precise]) {
        let key = fresh(ports);
        put(ports, &key, body.clone(), 0).await?;
        assert_eq!(ports.records.record(&key).await?, Some(Record { revision: 1, body }));
    }
    Ok(())
}

/// A database client may repeat the commit later, after the record was written again.
pub async fn repeated_commit_without_messages_overwrites_nothing(ports: &Ports<'_>) -> CheckResult {
    let key = fresh(ports);
    let first = PreparedSession::with_records(ports, 0, Vec::new(), vec![write(&key, json!("first"))])?;
    assert_eq!(first.commit(ports).await?, CommitOutcome::Stored);
    put(ports, &key, json!("second"), 0).await?;
    assert_eq!(first.commit(ports).await?, CommitOutcome::Stored);
    let latest = Record { revision: 2, body: json!("second") };
    assert_eq!(ports.records.record(&key).await?, Some(latest));
    Ok(())
}

/// A caller that does not know the outcome may repeat the commit.
pub async fn repeated_commit_accepts_its_own_write(ports: &Ports<'_>) -> CheckResult {
    let key = fresh(ports);
    let reads = vec![read(&key, 0)];
    let session = PreparedSession::with_records(ports, 0, reads, vec![write(&key, json!("once"))])?;
    for _ in 0..2 {
        assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
    }
    assert_eq!(revision(ports, &key).await?, 1);
    Ok(())
}

/// A record is identified by type and id together, with any characters.
pub async fn different_records_do_not_conflict(ports: &Ports<'_>) -> CheckResult {
    let unique = ports.host.fresh_id();
    let keys = [("a", "b/c"), ("a/b", "c"), ("a", "b/C"), ("b", "b/c"), ("a", "b/c ")]
        .map(|(kind, id)| Key::new(format!("{unique}/{kind}"), id));
    let writes = keys.iter().zip(0..).map(|(key, n)| write(key, json!(n))).collect();
    let session = PreparedSession::with_records(ports, 1, Vec::new(), writes)?;
    assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
    for (key, n) in keys.iter().zip(0..) {
        let expected = Record { revision: 1, body: json!(n) };
        assert_eq!(ports.records.record(key).await?, Some(expected), "{key}");
    }
    Ok(())
}

/// This holds with or without messages, and also if the session does not write the records that it has read. An
/// unchanged record does not prevent the commit.
pub async fn commit_fails_if_read_record_was_changed(ports: &Ports<'_>) -> CheckResult {
    let (key, steady) = (fresh(ports), fresh(ports));
    put(ports, &key, json!("first"), 0).await?;
    put(ports, &steady, json!("steady"), 0).await?;
    let reads = || vec![read(&steady, 1), read(&key, 1), read(&fresh(ports), 0)];
    let holds = PreparedSession::with_records(ports, 1, reads(), vec![write(&key, json!("second"))])?;
    assert_eq!(holds.commit(ports).await?, CommitOutcome::Stored);
    for entries in [0, 1] {
        for written in [&key, &steady] {
            let late =
                PreparedSession::with_records(ports, entries, reads(), vec![write(written, json!("late"))])?;
            assert_eq!(late.commit(ports).await?, CommitOutcome::Changed);
            is_refused(ports, &late).await?;
        }
    }
    assert_eq!((revision(ports, &key).await?, revision(ports, &steady).await?), (2, 1));
    Ok(())
}

/// Reading an absent record counts as well.
pub async fn commit_fails_if_absent_record_was_created(ports: &Ports<'_>) -> CheckResult {
    let (key, other) = (fresh(ports), fresh(ports));
    let session = |entries| {
        PreparedSession::with_records(
            ports,
            entries,
            vec![read(&key, 0)],
            vec![write(&other, json!("written"))],
        )
    };
    assert_eq!(session(1)?.commit(ports).await?, CommitOutcome::Stored, "it is absent");
    put(ports, &key, json!("created"), 0).await?;
    for entries in [0, 1] {
        let late = session(entries)?;
        assert_eq!(late.commit(ports).await?, CommitOutcome::Changed);
        is_refused(ports, &late).await?;
    }
    assert_eq!(revision(ports, &other).await?, 1);
    Ok(())
}

async fn is_refused(ports: &Ports<'_>, session: &PreparedSession) -> CheckResult {
    assert_eq!(ports.settle.find(session.record.id).await?, SessionStatus::Nothing);
    assert!(!session.has_view(ports).await? && !session.is_due(ports).await?);
    Ok(())
}

/// The session keeps its id, and has read the records again.
pub async fn rejected_session_can_be_committed_again(ports: &Ports<'_>) -> CheckResult {
    let key = fresh(ports);
    put(ports, &key, json!("in between"), 0).await?;
    let mut session =
        PreparedSession::with_records(ports, 1, vec![read(&key, 0)], vec![write(&key, json!("anew"))])?;
    assert_eq!(session.commit(ports).await?, CommitOutcome::Changed);
    session.record.reads = vec![read(&key, 1)];
    assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
    assert!(session.has_view(ports).await? && session.is_due(ports).await?);
    assert_eq!(revision(ports, &key).await?, 2);
    Ok(())
}

/// This holds even if the records that it has read are unchanged.
pub async fn abandoned_session_writes_no_record(ports: &Ports<'_>) -> CheckResult {
    let key = fresh(ports);
    let session = PreparedSession::with_records(ports, 1, vec![read(&key, 0)], vec![write(&key, json!(1))])?;
    ports.settle.abandon(session.record.id, session.record.committed_at).await?;
    assert_eq!(session.commit(ports).await?, CommitOutcome::TooLate);
    assert_eq!(ports.records.record(&key).await?, None);
    Ok(())
}

/// This holds even if its own commit, or a later one of another session, changed the records that it has read.
pub async fn repeated_commit_writes_no_second_record(ports: &Ports<'_>) -> CheckResult {
    let key = fresh(ports);
    let session =
        PreparedSession::with_records(ports, 1, vec![read(&key, 0)], vec![write(&key, json!("first"))])?;
    for _ in 0..2 {
        assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
        assert_eq!(revision(ports, &key).await?, 1);
    }
    put(ports, &key, json!("second"), 0).await?;
    assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
    let expected = Record { revision: 2, body: json!("second") };
    assert_eq!(ports.records.record(&key).await?, Some(expected));
    Ok(())
}

/// This holds for an existing and for an absent record.
pub async fn concurrent_commits_store_one(ports: &Ports<'_>) -> CheckResult {
    let key = fresh(ports);
    for revision in 0..5 {
        let session = |body| {
            PreparedSession::with_records(
                ports,
                1,
                vec![read(&key, revision)],
                vec![write(&key, json!(body))],
            )
        };
        let (one, two) = (session("one")?, session("two")?);
        let winner = match join(one.commit(ports), two.commit(ports)).await {
            (Ok(CommitOutcome::Stored), Ok(CommitOutcome::Changed)) => "one",
            (Ok(CommitOutcome::Changed), Ok(CommitOutcome::Stored)) => "two",
            other => panic!("{other:?}"),
        };
        let expected = Record { revision: revision + 1, body: json!(winner) };
        assert_eq!(ports.records.record(&key).await?, Some(expected));
        let loser = if winner == "one" { &two } else { &one };
        is_refused(ports, loser).await?;
    }
    Ok(())
}

/// If sessions only checked the records that they write, both would be stored.
pub async fn write_skew_stores_at_most_one(ports: &Ports<'_>) -> CheckResult {
    for _ in 0..5 {
        let (left, right) = (fresh(ports), fresh(ports));
        let session = |reads: &Key, writes: &Key| {
            PreparedSession::with_records(ports, 1, vec![read(reads, 0)], vec![write(writes, json!(1))])
        };
        let (one, two) = (session(&left, &right)?, session(&right, &left)?);
        let (one, two) = join(one.commit(ports), two.commit(ports)).await;
        let stored = [one?, two?].into_iter().filter(|committed| *committed == CommitOutcome::Stored).count();
        assert!(stored <= 1, "both are stored");
    }
    Ok(())
}
