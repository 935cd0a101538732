//! Lost, repeated and throttled calls.

use std::error::Error;

use aws_sdk_dynamodb::Client;
use backend::SystemHost;
use contracts::sample;
use futures::future::try_join_all;
use messages::{Host, StoreError};
use outbox::records::RecordRead;
use outbox::{
    CommitOutcome, CommitSession, InspectOutbox, Key, Owner, ReadRecords, SessionRecord, Settlement,
    SweepOutbox, Write,
};
use saga::{Persist, PersistOutcome, ReadDocuments, WriteDocuments};
use serde_json::json;
use servers::amazon::{Service, config_at};
use servers::net::{Fate, ScriptedServer, Unreliable};
use servers::{TestResult, unique};

use super::{impatient, store, suites, with_store};

/// Runs all suites while the first attempt of every call has a fate. The client repeats the call.
async fn suites_with(fate: Fate) -> TestResult {
    with_store(|plain| async move {
        let table = &plain.settings().table;
        let proxy = Unreliable::before_first_attempts(&Service::DynamoDb.address(), fate).await;
        let store = store(impatient(&proxy.address).await, table);
        suites::documents_of(&store, table).await?;
        suites::sessions_of(&store).await?;
        suites::views_of(&store).await?;
        suites::failures_of(&store, table).await?;
        suites::history_of(&store).await?;
        assert!(proxy.faults().values().sum::<usize>() > 500, "{:?}", proxy.faults());
        Ok(())
    })
    .await
}

/// Every write takes effect and is then repeated. No port reports its own write as a conflict.
#[tokio::test]
async fn suites_pass_if_every_first_response_is_lost() -> TestResult {
    suites_with(Fate::Unanswered).await
}

/// A request that never arrives is simpler than a lost response, and the random faults below contain it.
mod deep {
    use super::*;

    #[tokio::test]
    async fn suites_pass_if_every_first_request_is_lost() -> TestResult {
        suites_with(Fate::Lost).await
    }

    #[tokio::test]
    async fn suites_pass_if_every_first_request_is_throttled() -> TestResult {
        suites_with(Fate::THROTTLED).await
    }
}

/// No response to a claim arrives, not even to one of the client's retries. The worker finds its claim nevertheless.
#[tokio::test]
async fn claim_without_response_is_recognised() -> TestResult {
    with_store(|plain| async move {
        let now = SystemHost.now();
        let partition = sample::partition(&SystemHost);
        let entry = sample::entry(&SystemHost, partition, now)?;
        let content = sample::content(&SystemHost, "claimed");
        let write = Persist { add: vec![entry.clone()], ..sample::persist(partition, None, content) };
        assert_eq!(plain.persist(&[write], now).await?, [PersistOutcome::Stored]);

        // The first request reads the document.
        let is_claim = |request| (1..=aws::MAX_ATTEMPTS as usize).contains(&request);
        let fate = move |request| if is_claim(request) { Fate::Unanswered } else { Fate::Passed };
        let proxy = Unreliable::before(&Service::DynamoDb.address(), fate).await;
        let outbox = store(impatient(&proxy.address).await, &plain.settings().table).saga_outbox();
        let owner = Owner::Saga(partition);
        let claimed = contracts::outboxes::claim(&outbox, owner, now, sample::later(now, 300)).await?;
        assert_eq!(claimed.iter().map(|entry| entry.id).collect::<Vec<_>>(), [entry.id]);
        assert_eq!(proxy.faults(), [(Fate::Unanswered, 3)].into());
        Ok(())
    })
    .await
}

/// Workers count in one document and in one record, with random faults. A failed call is repeated by its worker, as a
/// queue redelivers a message. No count is lost or made twice.
#[tokio::test]
async fn concurrent_workers_lose_and_repeat_nothing() -> TestResult {
    const WORKERS: usize = 4;
    const EACH: usize = 10;
    with_store(|plain| async move {
        let fates = vec![Fate::Lost, Fate::Unanswered, Fate::THROTTLED, Fate::FAILED];
        let proxy = Unreliable::before(&Service::DynamoDb.address(), Fate::some(20_261_127, 30, fates)).await;
        let store = store(impatient(&proxy.address).await, &plain.settings().table);
        let (partition, key) = (sample::partition(&SystemHost), Key::new("count", "total"));
        let worker = async || {
            for _ in 0..EACH {
                count_in_document(&store, partition).await?;
                count_in_record(&store, &key).await?;
            }
            Ok::<_, StoreError>(())
        };
        try_join_all((0..WORKERS).map(|_| worker())).await?;
        let document = plain.load_latest(partition, SystemHost.now()).await?.ok_or("it is stored")?;
        assert_eq!((document.version, document.outbox.len()), (40, 40));
        let record = plain.record(&key).await?.ok_or("it is stored")?;
        assert_eq!((record.revision, record.body), (40, json!(40)));
        assert_eq!(proxy.faults().len(), 4, "{:?}", proxy.faults());
        Ok(())
    })
    .await
}

/// Adds one entry to a document. A refused or failed write may have been made, so the document is read again: its outbox
/// contains the entry of every write that was made.
async fn count_in_document(
    store: &dynamo::Dynamo,
    partition: messages::PartitionKey,
) -> Result<(), StoreError> {
    let now = SystemHost.now();
    let entry = sample::entry(&SystemHost, partition, now).expect("a sample");
    loop {
        let Ok(stored) = store.load_latest(partition, now).await else { continue };
        if stored.as_ref().is_some_and(|stored| stored.outbox.iter().any(|found| found.id == entry.id)) {
            return Ok(());
        }
        let loaded = stored.map(|stored| stored.version);
        let content = sample::content(&SystemHost, "counted");
        let write = Persist { add: vec![entry.clone()], ..sample::persist(partition, loaded, content) };
        match store.persist(std::slice::from_ref(&write), now).await {
            Ok(outcomes) if outcomes == [PersistOutcome::Stored] => return Ok(()),
            Ok(_) => {}
            Err(error) if error.is_retryable() => {}
            Err(error) => return Err(error),
        }
    }
}

/// Increments a record in a session.
async fn count_in_record(store: &dynamo::Dynamo, key: &Key) -> Result<(), StoreError> {
    loop {
        let Ok(found) = store.record(key).await else { continue };
        let (revision, count) =
            found.map_or((0, 0), |record| (record.revision, record.body.as_u64().unwrap_or(0)));
        let session = SessionRecord {
            id: messages::SessionId::from_uuid(SystemHost.fresh_id()),
            entries: Vec::new(),
            views: Vec::new(),
            reads: vec![RecordRead { key: key.clone(), revision }],
            writes: vec![Write::new(key.clone(), json!(count + 1))],
            committed_at: SystemHost.now(),
        };
        loop {
            match store.commit(&session).await {
                Ok(CommitOutcome::Stored) => return Ok(()),
                Ok(_) => break,
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[tokio::test]
async fn limits_are_checked_before_the_call() {
    let server = ScriptedServer::start(|_, _| (500, String::new())).await;
    let store = store(Client::new(&config_at(&server.address).await), "store");
    let session = |writes| SessionRecord {
        id: messages::SessionId::from_uuid(SystemHost.fresh_id()),
        entries: Vec::new(),
        views: Vec::new(),
        reads: Vec::new(),
        writes,
        committed_at: SystemHost.now(),
    };
    let write = |n: usize, body: usize| Write::new(Key::new("sample", n.to_string()), "x".repeat(body));
    for (writes, limit) in [
        ((0..100).map(|n| write(n, 1)).collect(), "101 items"),
        (vec![write(0, 410_000)], "409600 bytes for an item"),
        ((0..12).map(|n| write(n, 400_000)).collect::<Vec<_>>(), "4194304 bytes for a transaction"),
    ] {
        let error = store.commit(&session(writes)).await.unwrap_err();
        assert!(!error.is_retryable() && error.chain().contains(limit), "{}", error.chain());
    }
    let content = sample::with_state(&SystemHost, json!("x".repeat(410_000)));
    let write = sample::persist(sample::partition(&SystemHost), None, content);
    let error = store.persist(&[write], SystemHost.now()).await.unwrap_err();
    assert!(!error.is_retryable() && error.chain().contains("bytes for an item"), "{}", error.chain());
    assert_eq!(server.requests(), 0);
}

/// A settlement that exceeds the size of its item is refused. Others of the call are stored.
#[tokio::test]
async fn refused_settlement_does_not_affect_others() -> TestResult {
    with_store(|store| async move {
        let now = sample::now(&SystemHost);
        let stored = async |content| -> Result<(Owner, Settlement), Box<dyn Error + Send + Sync>> {
            let partition = sample::partition(&SystemHost);
            let entry = sample::entry(&SystemHost, partition, now)?;
            let write = sample::persist(partition, None, content);
            store.persist(&[Persist { add: vec![entry.clone()], ..write }], now).await?;
            Ok((Owner::Saga(partition), Settlement { id: entry.id, claim: None, keep: Some(entry) }))
        };
        let large = sample::with_state(&SystemHost, json!("x".repeat(407_500)));
        let (large, mut failed) = stored(large).await?;
        failed.keep.as_mut().unwrap().error = Some("e".repeat(2_000));
        let mut settlements = vec![(large, vec![failed])];
        // The number of settlements exceeds the number of concurrent calls.
        for _ in 0..20 {
            let (owner, performed) = stored(sample::content(&SystemHost, "small")).await?;
            settlements.push((owner, vec![Settlement { keep: None, ..performed }]));
        }
        let outbox = store.saga_outbox();
        let error = outbox.settle(&settlements).await.unwrap_err();
        assert!(error.chain().contains("bytes for an item"), "{}", error.chain());
        let left: Vec<_> = outbox.pending(None, 100).await?.into_iter().map(|of| of.owner).collect();
        assert_eq!(left, [Some(large)]);
        Ok(())
    })
    .await
}

/// Under load, a server may create the table and answer after the time limit.
#[tokio::test]
async fn table_is_created_and_deleted_despite_lost_responses() -> TestResult {
    let proxy = Unreliable::before_first_attempts(&Service::DynamoDb.address(), Fate::Unanswered).await;
    let store = store(impatient(&proxy.address).await, &unique("created"));
    for _ in 0..2 {
        store.create_table().await?;
    }
    store.delete_table().await?;
    store.delete_table().await?;
    assert!(proxy.faults()[&Fate::Unanswered] >= 4, "{:?}", proxy.faults());
    Ok(())
}

#[tokio::test]
async fn missing_table_names_its_setting() {
    let table = unique("missing");
    let store = store(super::super::client().await, &table);
    let error = store.load_latest(sample::partition(&SystemHost), SystemHost.now()).await.unwrap_err();
    let expected = format!("there is no table \"{table}\" (set by SAMPLES_STORE_TABLE)");
    assert!(error.is_retryable() && error.chain().ends_with(&expected), "{}", error.chain());
}
