//! A transactional session: a request writes a row of the application's own table and sends a command, together or not
//! at all.
#![allow(clippy::print_stdout, reason = "the output of a program")]

use std::error::Error;

use onceward::SystemHost;
use onceward::local::{FaultInjection, Runner};
use onceward::prelude::*;
use onceward::sqlite::{Store, WorkVerdict};

const MAIL: Queue = Queue::named("mail");

messages! {
    /// Commands for the mail server.
    enum Mail of "bookings" to MAIL {
        /// Confirm a seat.
        Confirm { seat: u32 } = 1,
    }
}

static QUEUES: [QueueSpec; 3] = [
    QueueSpec::without_consumer(MAIL),
    QueueSpec::standard(CONTROL, Queue::named("control-dead")),
    QueueSpec::without_consumer(Queue::named("control-dead")),
];
static SENDS: [Queue; 2] = [CONTROL, MAIL];
static DISPATCH_OUTBOX: Function<Engine> = Function::dispatch_outbox(&SENDS);
static SYSTEM: System<Engine> = System { name: "bookings", queues: &QUEUES, functions: &[&DISPATCH_OUTBOX] };

/// Books a seat. Returns `false` if it is taken; then no mail is sent.
async fn book(entry: &EntryPoint, store: &Store, seat: u32, guest: String) -> Result<bool, Box<dyn Error>> {
    let mut session = entry.session(PartitionKey::named("bookings", &seat.to_string()));
    session.send(&Mail::Confirm { seat })?;
    let work = store.with_work(move |db| {
        let booked = "INSERT INTO app_booking (seat, guest) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
        Ok(match db.execute(booked, (seat, &guest))? {
            0 => WorkVerdict::Refuse,
            _ => WorkVerdict::Commit,
        })
    });
    match session.commit_with(&work).await {
        Ok(_) => Ok(true),
        Err(CommitError::Refused) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir()?;
    let runner = Runner::open(&SYSTEM, dir.path(), Arc::new(SystemHost), FaultInjection::default()).await?;
    let store = runner.store().ok_or("the runner has no data directory")?;
    let create = "CREATE TABLE IF NOT EXISTS app_booking (seat INTEGER PRIMARY KEY, guest TEXT NOT NULL)";
    store.transaction(move |db| db.execute_batch(create)).await?;
    let entry = runner.ports().entry_point("web")?;
    let requests = async {
        assert!(book(&entry, store, 17, "Ada".to_owned()).await?);
        assert!(!book(&entry, store, 17, "Grace".to_owned()).await?, "the seat is taken");
        assert!(book(&entry, store, 18, "Grace".to_owned()).await?);
        runner.settled().await?;
        Ok::<_, Box<dyn Error>>(())
    };
    runner.run_until(requests).await??;
    let count = "SELECT count(*) FROM app_booking";
    let rows: i64 = store.transaction(move |db| db.query_row(count, [], |row| row.get(0))).await?;
    let mails = store.count_messages().await?.get(&MAIL).map_or(0, |depth| depth.visible);
    assert_eq!((rows, mails), (2, 2), "one mail for each row");
    println!("{rows} seats are booked, and {mails} mails are queued");
    Ok(())
}
