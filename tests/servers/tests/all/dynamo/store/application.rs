//! The application's own tables in the transactions of sessions.

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::types::{AttributeValue, Put, TransactWriteItem};
use backend::SystemHost;
use contracts::sample;
use dynamo::Dynamo;
use messages::{Host, PartitionKey, SessionId};
use outbox::session::SessionStatus;
use outbox::{CommitOutcome, CommitSession, ReadRecords, SessionRecord, SettleSessions};
use servers::amazon::{Service, config};
use servers::net::{Fate, Unreliable};
use servers::{TestResult, cleaned_up, unique};

use super::{impatient, store, with_store};

const HOST: &SystemHost = &SystemHost;

/// A table of seats, which the store does not know. The key attribute of this table has the same name as the key
/// attribute of the store.
struct Seats {
    client: Client,
    table: String,
}

impl Seats {
    /// Runs a test with a table of seats and a store.
    async fn with<F: Future<Output = TestResult>>(test: impl FnOnce(Self, Dynamo) -> F) -> TestResult {
        let client = Client::new(&config(Service::DynamoDb).await);
        let table = unique("seats");
        let seats = store(client.clone(), &table);
        seats.create_table().await?;
        let clean = async { seats.delete_table().await.expect("the table can be deleted") };
        let seats = Self { client, table: table.clone() };
        cleaned_up(with_store(|store| test(seats, store)), clean).await
    }

    /// Books a seat unless it is taken.
    fn book(&self, seat: u32) -> Vec<TransactWriteItem> {
        let put = Put::builder()
            .table_name(&self.table)
            .item("pk", AttributeValue::S(seat.to_string()))
            .condition_expression("attribute_not_exists(pk)");
        vec![TransactWriteItem::builder().put(put.build().unwrap()).build()]
    }

    async fn count(&self) -> Result<i32, aws_sdk_dynamodb::Error> {
        Ok(self.client.scan().table_name(&self.table).consistent_read(true).send().await?.count())
    }
}

#[tokio::test]
async fn item_of_application_commits_with_session() -> TestResult {
    Seats::with(|seats, store| async move {
        let (booked, refused) = (sample::session(HOST).unwrap(), sample::session(HOST).unwrap());
        let adapter = store.with_work(seats.book(17));
        assert_eq!(adapter.commit(&booked).await?, CommitOutcome::Stored);
        assert_eq!(adapter.commit(&refused).await?, CommitOutcome::Refused, "the seat is taken");
        assert_eq!(store.find(booked.id).await?, SessionStatus::Committed);
        assert_eq!(store.find(refused.id).await?, SessionStatus::Nothing);
        assert!(store.record(&booked.writes[0].key).await?.is_some());
        assert!(store.record(&refused.writes[0].key).await?.is_none());
        assert_eq!(adapter.commit(&booked).await?, CommitOutcome::Stored, "it is stored already");
        assert_eq!(seats.count().await?, 1);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn work_without_messages_is_stored_once() -> TestResult {
    Seats::with(|seats, store| async move {
        let silent =
            SessionRecord { entries: Vec::new(), writes: Vec::new(), ..sample::session(HOST).unwrap() };
        for _ in 0..2 {
            assert_eq!(store.with_work(seats.book(17)).commit(&silent).await?, CommitOutcome::Stored);
        }
        assert_eq!(seats.count().await?, 1);
        Ok(())
    })
    .await
}

/// The view of the session exists, so the transaction is made a second time without it.
#[tokio::test]
async fn work_is_stored_once_although_transaction_is_repeated() -> TestResult {
    Seats::with(|seats, plain| async move {
        let proxy = Unreliable::before_first_attempts(&Service::DynamoDb.address(), Fate::Unanswered).await;
        let store = store(impatient(&proxy.address).await, &plain.settings().table);
        let booked = sample::session(HOST).unwrap();
        let view = sample::view(HOST, PartitionKey::from_uuid(booked.id.as_uuid()), 1, false);
        for (seat, id) in [(1, booked.id), (2, SessionId::from_uuid(HOST.fresh_id()))] {
            let booked = SessionRecord { id, views: vec![view.clone()], ..booked.clone() };
            assert_eq!(store.with_work(seats.book(seat)).commit(&booked).await?, CommitOutcome::Stored);
        }
        assert_eq!(seats.count().await?, 2);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn work_of_abandoned_session_is_not_stored() -> TestResult {
    Seats::with(|seats, store| async move {
        let record = sample::session(HOST).unwrap();
        store.abandon(record.id, record.committed_at).await?;
        assert_eq!(store.with_work(seats.book(17)).commit(&record).await?, CommitOutcome::TooLate);
        assert_eq!(seats.count().await?, 0);
        Ok(())
    })
    .await
}
