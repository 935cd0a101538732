//! The application's own collections in the transactions of sessions, in the database of a system other than the search
//! import.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use backend::SystemHost;
use contracts::sample;
use messages::PartitionKey;
use mongo::{SessionWork, WorkVerdict, collections};
use mongodb::bson::{Document, doc};
use mongodb::error::{Error, ErrorKind, WriteFailure};
use mongodb::{ClientSession, Database};
use outbox::session::SessionStatus;
use outbox::{CommitOutcome, CommitSession, ReadRecords, SessionRecord, SettleSessions};
use servers::mongo::uri;

use super::{Scratch, Setup, TestResult};

const HOST: &SystemHost = &SystemHost;
const SEATS: &str = "app_seats";
const DUPLICATE_KEY: i32 = 11_000;

async fn scratch() -> Result<Scratch, Box<dyn std::error::Error + Send + Sync>> {
    Scratch::with(&uri(), Setup { system: "seat-bookings".to_owned(), ..Setup::default() }).await
}

/// Books a seat unless it is taken.
#[derive(Clone)]
struct Book {
    seat: i32,
    runs: Arc<AtomicU32>,
}

impl Book {
    fn seat(seat: i32) -> Self {
        Self { seat, runs: Arc::default() }
    }

    fn runs(&self) -> u32 {
        self.runs.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl SessionWork for Book {
    async fn run(&self, database: &Database, session: &mut ClientSession) -> Result<WorkVerdict, Error> {
        self.runs.fetch_add(1, Ordering::SeqCst);
        let seats = database.collection::<Document>(SEATS);
        match seats.insert_one(doc! { "_id": self.seat }).session(session).await {
            Err(error) if is_taken(&error) => Ok(WorkVerdict::Refuse),
            inserted => inserted.map(|_| WorkVerdict::Commit),
        }
    }
}

fn is_taken(error: &Error) -> bool {
    matches!(error.kind.as_ref(), ErrorKind::Write(WriteFailure::WriteError(write)) if write.code == DUPLICATE_KEY)
}

async fn seats(scratch: &Scratch) -> Result<u64, Error> {
    scratch.collection(SEATS).count_documents(doc! {}).await
}

#[tokio::test]
async fn application_document_commits_with_session() -> TestResult {
    let scratch = scratch().await?;
    let (booked, refused) = (sample::session(HOST).unwrap(), sample::session(HOST).unwrap());
    let work = Book::seat(17);
    let adapter = scratch.mongo.with_work(work.clone());
    assert_eq!(adapter.commit(&booked).await?, CommitOutcome::Stored);
    assert_eq!(adapter.commit(&refused).await?, CommitOutcome::Refused, "the seat is taken");
    assert_eq!(scratch.mongo.find(booked.id).await?, SessionStatus::Committed);
    assert_eq!(scratch.mongo.find(refused.id).await?, SessionStatus::Nothing);
    assert!(scratch.mongo.record(&booked.writes[0].key).await?.is_some());
    assert!(scratch.mongo.record(&refused.writes[0].key).await?.is_none());
    assert_eq!(seats(&scratch).await?, 1);
    // The session is stored, so its work is not repeated.
    assert_eq!(adapter.commit(&booked).await?, CommitOutcome::Stored);
    assert_eq!(work.runs(), 2);
    scratch.end().await
}

#[tokio::test]
async fn work_without_messages_runs_once() -> TestResult {
    let scratch = scratch().await?;
    let silent = SessionRecord { entries: Vec::new(), writes: Vec::new(), ..sample::session(HOST).unwrap() };
    let work = Book::seat(17);
    for _ in 0..2 {
        assert_eq!(scratch.mongo.with_work(work.clone()).commit(&silent).await?, CommitOutcome::Stored);
    }
    assert_eq!((work.runs(), seats(&scratch).await?), (1, 1));
    scratch.end().await
}

#[tokio::test]
async fn work_is_repeated_after_conflict_and_stored_once() -> TestResult {
    let scratch = scratch().await?;
    let conflict = doc! { "errorCode": 112, "errorLabels": ["TransientTransactionError"] };
    for (seat, command) in [(1, "insert"), (2, "commitTransaction")] {
        let (record, work) = (sample::session(HOST).unwrap(), Book::seat(seat));
        let fault = scratch.fail(1, &[command], conflict.clone()).await?;
        assert_eq!(scratch.mongo.with_work(work).commit(&record).await?, CommitOutcome::Stored, "{command}");
        fault.off().await?;
        assert_eq!(scratch.mongo.find(record.id).await?, SessionStatus::Committed, "{command}");
    }
    assert_eq!(seats(&scratch).await?, 2);
    scratch.end().await
}

#[tokio::test]
async fn work_of_abandoned_session_is_not_run() -> TestResult {
    let scratch = scratch().await?;
    let (record, work) = (sample::session(HOST).unwrap(), Book::seat(17));
    scratch.mongo.abandon(record.id, record.committed_at).await?;
    assert_eq!(scratch.mongo.with_work(work.clone()).commit(&record).await?, CommitOutcome::TooLate);
    assert_eq!((work.runs(), seats(&scratch).await?), (0, 0));
    scratch.end().await
}

/// The transaction of the engine's own statements keeps the same rules.
#[tokio::test]
async fn refused_statements_are_rolled_back() -> TestResult {
    struct Refuse;
    #[async_trait]
    impl SessionWork for Refuse {
        async fn run(&self, database: &Database, session: &mut ClientSession) -> Result<WorkVerdict, Error> {
            database.collection(SEATS).insert_one(doc! { "_id": 17 }).session(session).await?;
            Ok(WorkVerdict::Refuse)
        }
    }
    let scratch = scratch().await?;
    assert_eq!(scratch.mongo.transaction(&Refuse).await?, WorkVerdict::Refuse);
    assert_eq!(seats(&scratch).await?, 0);
    assert_eq!(scratch.mongo.transaction(&Book::seat(18)).await?, WorkVerdict::Commit);
    assert_eq!(seats(&scratch).await?, 1);
    scratch.end().await
}

#[tokio::test]
async fn collections_have_names_of_their_system() -> TestResult {
    let scratch = scratch().await?;
    scratch.mongo.commit(&sample::session(HOST).unwrap()).await?;
    let mut names = scratch.database.list_collection_names().await?;
    names.sort();
    let expected = [
        "decisions",
        "failure_audit",
        "failure_operations",
        "failures",
        "records",
        "sagas",
        "sessions",
        "views",
    ];
    assert_eq!(names, expected.map(|name| format!("seat_bookings_{name}")));
    // The error about a document of another program names the collection as the operator knows it.
    let partition = sample::partition(HOST);
    let name = mongo::collection_name("seat-bookings", collections::SAGA);
    scratch.collection(&name).insert_one(doc! { "_id": foreign(partition) }).await?;
    let error = saga::ReadDocuments::load(&scratch.mongo, &[partition], sample::now(HOST)).await?.remove(0);
    let text = error.unwrap_err().chain();
    assert!(text.contains("seat_bookings_sagas"), "{text}");
    scratch.end().await
}

fn foreign(partition: PartitionKey) -> mongodb::bson::Bson {
    let bytes = partition.as_uuid().as_bytes().to_vec();
    mongodb::bson::Binary { subtype: mongodb::bson::spec::BinarySubtype::Uuid, bytes }.into()
}
