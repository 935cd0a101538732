//! Records of an application: read in an open session, and written with its commit.

use futures::future::join;
use jiff::{SignedDuration, Unit};
use messages::StoreError;
use outbox::records::RecordRead;
use outbox::session::SessionStatus;
use outbox::{CommitOutcome, Key, OwnedRecord, Record, SessionRecord, StoredRecord, Write};
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
    removed_record_is_absent_and_keeps_its_revision(ports).await?;
    absence_after_a_removal_is_checked(ports).await?;
    expiry_is_stored_to_the_second(ports).await?;
    removed_record_of_instance_never_comes_back(ports).await?;
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

/// The next write of the record counts on, so a session that has read the removed content is refused. The store does not
/// interpret an empty body as a removal.
pub async fn removed_record_is_absent_and_keeps_its_revision(ports: &Ports<'_>) -> CheckResult {
    let now = ports.host.now();
    for is_in_session in [false, true] {
        let key = fresh(ports);
        let store = async |write: Write| -> CheckResult {
            if is_in_session {
                let session = PreparedSession::with_records(ports, 1, Vec::new(), vec![write])?;
                assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
            } else {
                ports.write_records.write_record(&write).await?;
            }
            Ok(())
        };
        store(write(&key, Value::Null)).await?;
        assert_eq!(ports.records.record(&key).await?, Some(Record { revision: 1, body: Value::Null }));
        let late = PreparedSession::with_records(ports, 0, vec![read(&key, 1)], vec![write(&key, json!(9))])?;
        store(Write::removal(key.clone(), now)).await?;
        assert_eq!(ports.records.record(&key).await?, None);
        let removed = ports.records.stored_record(&key).await?.ok_or("its revision is lost")?;
        assert_eq!((removed.revision, &removed.body), (2, &None));
        assert!(removed.expires_at >= Some(now), "{removed:?}");
        store(write(&key, json!("again"))).await?;
        let again = StoredRecord { revision: 3, body: Some(json!("again")), expires_at: None };
        assert_eq!(ports.records.stored_record(&key).await?, Some(again));
        assert_eq!(late.commit(ports).await?, CommitOutcome::Changed);
        // A record that never existed is removed as well.
        let absent = fresh(ports);
        store(Write::removal(absent.clone(), now)).await?;
        assert_eq!((ports.records.record(&absent).await?, revision(ports, &absent).await?), (None, 1));
    }
    Ok(())
}

/// A session that has read the absence of a removed record is refused if the record was written in between.
pub async fn absence_after_a_removal_is_checked(ports: &Ports<'_>) -> CheckResult {
    let (key, other) = (fresh(ports), fresh(ports));
    put(ports, &key, json!("first"), 0).await?;
    let removal = Write::removal(key.clone(), ports.host.now());
    let removes = PreparedSession::with_records(ports, 1, vec![read(&key, 1)], vec![removal])?;
    assert_eq!(removes.commit(ports).await?, CommitOutcome::Stored);
    for written in [&key, &other] {
        let session = |revision| {
            PreparedSession::with_records(
                ports,
                0,
                vec![read(&key, revision)],
                vec![write(written, json!(2))],
            )
        };
        for outdated in [0, 1] {
            assert_eq!(session(outdated)?.commit(ports).await?, CommitOutcome::Changed);
        }
    }
    let session =
        |to: &Key| PreparedSession::with_records(ports, 0, vec![read(&key, 2)], vec![write(to, json!(3))]);
    assert_eq!(session(&other)?.commit(ports).await?, CommitOutcome::Stored, "it is still absent");
    assert_eq!(session(&key)?.commit(ports).await?, CommitOutcome::Stored);
    assert_eq!(session(&other)?.commit(ports).await?, CommitOutcome::Changed);
    assert_eq!(ports.records.record(&key).await?, Some(Record { revision: 3, body: json!(3) }));
    Ok(())
}

/// The expiry of a record is replaced by each write.
pub async fn expiry_is_stored_to_the_second(ports: &Ports<'_>) -> CheckResult {
    let second = ports.host.now().checked_add(SignedDuration::from_hours(1))?.round(Unit::Second)?;
    let within = second.checked_sub(SignedDuration::from_millis(1))?;
    let key = fresh(ports);
    let until = |body, at| write(&key, json!(body)).until(at);
    let session = PreparedSession::with_records(ports, 0, Vec::new(), vec![until(1, within)])?;
    assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
    for (revision, next) in [(1, until(2, second)), (2, write(&key, json!(3)))] {
        let stored = ports.records.stored_record(&key).await?.ok_or("it was not stored")?;
        assert_eq!((stored.revision, stored.expires_at), (revision, Some(second)));
        assert!(stored.clone().at(within).is_some() && stored.at(second).is_none());
        ports.write_records.write_record(&next).await?;
    }
    let stored = StoredRecord { revision: 3, body: Some(json!(3)), expires_at: None };
    assert_eq!(ports.records.stored_record(&key).await?, Some(stored));
    Ok(())
}

/// Earlier writes are repeated after the removal, and change nothing. A later write creates the record again.
pub async fn removed_record_of_instance_never_comes_back(ports: &Ports<'_>) -> CheckResult {
    let key = fresh(ports);
    let now = ports.host.now();
    let steps =
        [(3, false, Some(3)), (5, true, None), (4, false, None), (5, true, None), (6, false, Some(6))];
    for (revision, is_removal, found) in steps {
        let removed_at = is_removal.then_some(now);
        let record = OwnedRecord { key: key.clone(), revision, body: json!(revision), removed_at };
        ports.write_records.advance_record(&record).await?;
        let body = ports.records.record(&key).await?.map(|record| record.body);
        assert_eq!(body, found.map(|number: u64| json!(number)), "after {revision}");
    }
    assert_eq!(revision(ports, &key).await?, 6);
    Ok(())
}

/// Effects are repeated, and are performed in another order than they were staged. A session that has read an earlier
/// revision is refused.
pub async fn record_of_instance_never_goes_back(ports: &Ports<'_>) -> CheckResult {
    let key = fresh(ports);
    let advance = async |revision| {
        let record = OwnedRecord { key: key.clone(), revision, body: json!(revision), removed_at: None };
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
    Write::new(key.clone(), body)
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
    Ok(ports.records.stored_record(key).await?.map_or(0, |record| record.revision))
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
    // Extended JSON of MongoDB.
    let extended = [json!({ "$numberLong": "5" }), json!([{ "$numberDouble": "NaN", "$oid": "" }])];
    for body in simple.into_iter().chain(extended).chain([precise]) {
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
    for messages in [0, 1] {
        let key = fresh(ports);
        let (reads, writes) = (vec![read(&key, 0)], vec![write(&key, json!("once"))]);
        let mut session = PreparedSession::with_records(ports, messages, reads, writes)?;
        for _ in 0..2 {
            assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
        }
        // The session has read its own write in between.
        session.record.reads.push(read(&key, 1));
        assert_eq!(session.commit(ports).await?, CommitOutcome::Stored);
        assert_eq!(revision(ports, &key).await?, 1);
    }
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
            let only_records = SessionRecord { views: Vec::new(), ..late.record };
            assert_eq!(ports.commit.commit(&only_records).await?, CommitOutcome::Changed);
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
