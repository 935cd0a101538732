//! The application's own tables in the transactions of sessions.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use contracts::sample;
use embedded::{Store, WorkVerdict};
use messages::{PartitionKey, SessionId};
use outbox::session::SessionStatus;
use outbox::{CommitOutcome, CommitSession, Key, Owner, SessionRecord, SettleSessions, SweepOutbox, Write};
use uuid::Uuid;

use crate::depot::{Depot, TestResult};

const CREATE: &str = "CREATE TABLE app_booking (seat INTEGER PRIMARY KEY)";

fn id(n: u128) -> Uuid {
    Uuid::from_u128(n)
}

/// A session with one message and one record.
fn session(depot: &Depot, n: u128) -> SessionRecord {
    let now = sample::now(&*depot.host);
    let entry = sample::entry(&*depot.host, PartitionKey::from_uuid(id(n)), now).unwrap();
    let write = Write::new(Key::new("booking", n.to_string()), true);
    SessionRecord {
        id: SessionId::from_uuid(id(n)),
        entries: vec![entry],
        views: Vec::new(),
        reads: Vec::new(),
        writes: vec![write],
        committed_at: now,
    }
}

async fn booked(store: &Store) -> Result<i64, messages::StoreError> {
    store.transaction(|db| db.query_row("SELECT count(*) FROM app_booking", [], |row| row.get(0))).await
}

#[tokio::test]
async fn refused_work_leaves_neither_rows_nor_messages() -> TestResult {
    let depot = Depot::new();
    depot.store.transaction(|db| db.execute_batch(CREATE)).await?;
    let refusing = depot.store.with_work(|db| {
        db.execute("INSERT INTO app_booking VALUES (17)", [])?;
        Ok(WorkVerdict::Refuse)
    });
    let record = session(&depot, 1);
    assert_eq!(refusing.commit(&record).await?, CommitOutcome::Refused);
    assert_eq!(booked(&depot.store).await?, 0);
    assert_eq!(depot.store.find(record.id).await?, SessionStatus::Nothing);
    // The refusal does not affect the other sessions of a group commit.
    let booking = depot.store.with_work(|db| {
        db.execute("INSERT INTO app_booking VALUES (18)", [])?;
        Ok(WorkVerdict::Commit)
    });
    let (other, third) = (session(&depot, 2), session(&depot, 3));
    let (refused, stored) = tokio::join!(refusing.commit(&record), booking.commit(&other));
    assert_eq!((refused?, stored?), (CommitOutcome::Refused, CommitOutcome::Stored));
    assert_eq!(depot.store.commit(&third).await?, CommitOutcome::Stored);
    assert_eq!(booked(&depot.store).await?, 1);
    let due = depot.store.session_outbox().due(sample::later(other.committed_at, 3_600), 10).await?;
    let owners: Vec<Owner> = due.into_iter().filter_map(Result::ok).collect();
    assert_eq!(owners, [Owner::Session(other.id), Owner::Session(third.id)]);
    Ok(())
}

#[tokio::test]
async fn panicking_work_fails_only_its_own_call() -> TestResult {
    let depot = Depot::new();
    depot.store.transaction(|db| db.execute_batch(CREATE)).await?;
    let work = depot.store.with_work(|db| {
        db.execute("INSERT INTO app_booking VALUES (17)", [])?;
        panic!("on purpose")
    });
    let failed = work.commit(&session(&depot, 1)).await.unwrap_err();
    assert!(!failed.is_retryable() && failed.chain().contains("on purpose"), "{failed:?}");
    assert_eq!(booked(&depot.store).await?, 0);
    depot.store.transaction(|db| db.execute("INSERT INTO app_booking VALUES (18)", [])).await?;
    assert_eq!(booked(&depot.store).await?, 1);
    Ok(())
}

#[tokio::test]
async fn failed_work_leaves_nothing_and_is_repeatable() -> TestResult {
    let depot = Depot::new();
    depot.store.transaction(|db| db.execute_batch(CREATE)).await?;
    let calls = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&calls);
    let work = depot.store.with_work(move |db| {
        db.execute("INSERT INTO app_booking VALUES (17)", [])?;
        match counted.fetch_add(1, Ordering::SeqCst) {
            0 => Err(rusqlite::Error::InvalidQuery),
            _ => Ok(WorkVerdict::Commit),
        }
    });
    let record = session(&depot, 1);
    assert!(work.commit(&record).await.is_err());
    assert_eq!(booked(&depot.store).await?, 0);
    assert_eq!(work.commit(&record).await?, CommitOutcome::Stored);
    // The session is stored, so its work is not repeated.
    assert_eq!(work.commit(&record).await?, CommitOutcome::Stored);
    assert_eq!((booked(&depot.store).await?, calls.load(Ordering::SeqCst)), (1, 2));
    Ok(())
}

#[tokio::test]
async fn work_without_messages_runs_once() -> TestResult {
    let depot = Depot::new();
    depot.store.transaction(|db| db.execute_batch(CREATE)).await?;
    let work = depot.store.with_work(|db| {
        db.execute("INSERT INTO app_booking SELECT 1 + count(*) FROM app_booking", [])?;
        Ok(WorkVerdict::Commit)
    });
    let silent = SessionRecord { entries: Vec::new(), writes: Vec::new(), ..session(&depot, 1) };
    for _ in 0..2 {
        assert_eq!(work.commit(&silent).await?, CommitOutcome::Stored);
        assert_eq!(booked(&depot.store).await?, 1);
    }
    Ok(())
}

#[tokio::test]
async fn work_of_abandoned_session_is_not_run() -> TestResult {
    let depot = Depot::new();
    depot.store.transaction(|db| db.execute_batch(CREATE)).await?;
    let work = depot.store.with_work(|db| {
        db.execute("INSERT INTO app_booking VALUES (17)", [])?;
        Ok(WorkVerdict::Commit)
    });
    let record = session(&depot, 1);
    depot.store.abandon(record.id, record.committed_at).await?;
    assert_eq!(work.commit(&record).await?, CommitOutcome::TooLate);
    assert_eq!(booked(&depot.store).await?, 0);
    Ok(())
}

#[tokio::test]
async fn work_that_prevents_next_opening_is_refused() -> TestResult {
    let depot = Depot::new();
    for code in [
        "CREATE VIEW app_seats AS SELECT 1",
        "CREATE TRIGGER app_count AFTER INSERT ON app_booking BEGIN SELECT 1; END",
    ] {
        let batch = format!("{CREATE};{code}");
        let refused = depot.store.transaction(move |db| db.execute_batch(&batch)).await.unwrap_err();
        assert!(
            !refused.is_retryable() && refused.chain().contains("a database with it is refused"),
            "{refused:?}"
        );
        assert!(booked(&depot.store).await.is_err(), "nothing is stored: {code}");
    }
    depot.store.transaction(|db| db.execute_batch(CREATE)).await?;
    let work = depot.store.with_work(|db| {
        db.execute_batch("CREATE VIEW app_seats AS SELECT 1")?;
        Ok(WorkVerdict::Commit)
    });
    assert!(work.commit(&session(&depot, 1)).await.is_err());
    assert_eq!(booked(&depot.store).await?, 0);
    Ok(())
}

#[tokio::test]
async fn work_that_ends_its_transaction_fails() -> TestResult {
    for (n, statement) in [(1, "COMMIT"), (2, "ROLLBACK")] {
        let depot = Depot::new();
        depot.store.transaction(|db| db.execute_batch(CREATE)).await?;
        let work = depot.store.with_work(move |db| {
            db.execute_batch(statement)?;
            Ok(WorkVerdict::Commit)
        });
        let failed = work.commit(&session(&depot, n)).await.unwrap_err();
        assert!(failed.chain().contains("it ended its transaction"), "{}", failed.chain());
        let again = depot.store.transaction(|db| db.execute("INSERT INTO app_booking VALUES (18)", [])).await;
        assert_eq!((again?, booked(&depot.store).await?), (1, 1), "later calls succeed");
    }
    Ok(())
}
