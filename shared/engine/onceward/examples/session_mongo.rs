//! A transactional session on MongoDB: a request writes a document of the application's own collection and sends a
//! command, together or not at all. `MONGODB_URI` is the address of a replica set.
#![allow(clippy::print_stdout, reason = "the output of a program")]

use std::error::Error;

use onceward::SystemHost;
use onceward::local::{FaultInjection, Runner};
use onceward::mongo::mongodb::bson::{Document, doc};
use onceward::mongo::mongodb::{self, ClientSession, Database};
use onceward::mongo::{Mongo, OnDifference, SessionWork, Settings, Uri, WorkVerdict};
use onceward::prelude::*;
use onceward::saga::Stores;

const MAIL: Queue = Queue::named("mail");

messages! {
    /// Commands for the mail server.
    enum Mail of "bookings" to MAIL {
        /// Confirm a seat.
        Confirm { seat: i32 } = 1,
    }
}

/// Books a seat unless it is taken.
struct Book {
    seat: i32,
    guest: &'static str,
}

#[async_trait]
impl SessionWork for Book {
    async fn run(
        &self,
        db: &Database,
        session: &mut ClientSession,
    ) -> Result<WorkVerdict, mongodb::error::Error> {
        let seats = db.collection::<Document>("app_bookings");
        let taken = seats.find_one(doc! { "_id": self.seat }).session(&mut *session).await?;
        if taken.is_some() {
            return Ok(WorkVerdict::Refuse);
        }
        seats.insert_one(doc! { "_id": self.seat, "guest": self.guest }).session(session).await?;
        Ok(WorkVerdict::Commit)
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
async fn book(entry: &EntryPoint, mongo: &Mongo, booking: Book) -> Result<bool, Box<dyn Error>> {
    let mut session = entry.session(PartitionKey::named("bookings", &booking.seat.to_string()));
    session.send(&Mail::Confirm { seat: booking.seat })?;
    match session.commit_with(&mongo.with_work(booking)).await {
        Ok(_) => Ok(true),
        Err(CommitError::Refused) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let database = format!("bookings_{}", SystemHost.fresh_id().simple());
    let settings =
        Settings { database, ..Settings::new(SYSTEM.name, Uri::new(std::env::var("MONGODB_URI")?)) };
    let mongo = Arc::new(Mongo::connect(&settings).await?);
    mongo.ensure_indexes(OnDifference::Report).await?;
    // The queues are in a data directory here, and in SQS on AWS.
    let (dir, stores) =
        (tempfile::tempdir()?, Stores::of(&mongo, mongo.saga_outbox(), mongo.session_outbox()));
    let engine = move |engine| Engine { stores: Ok(stores.clone()), ..engine };
    let faults = FaultInjection::default();
    let runner = Runner::open_with(&SYSTEM, dir.path(), Arc::new(SystemHost), faults, engine).await?;
    let (entry, store) =
        (runner.ports().entry_point("web")?, runner.store().ok_or("there is no data directory")?);
    assert!(book(&entry, &mongo, Book { seat: 17, guest: "Ada" }).await?);
    assert!(!book(&entry, &mongo, Book { seat: 17, guest: "Grace" }).await?, "the seat is taken");
    assert!(book(&entry, &mongo, Book { seat: 18, guest: "Grace" }).await?);
    let seats = mongo.application_database().await?.collection::<Document>("app_bookings");
    let (booked, mails) = (seats.count_documents(doc! {}).await?, store.count_messages().await?);
    let mails = mails.get(&MAIL).map_or(0, |depth| depth.visible);
    mongo.drop_database().await?;
    assert_eq!((booked, mails), (2, 2), "one mail for each document");
    println!("{booked} seats are booked, and {mails} mails are queued");
    Ok(())
}
