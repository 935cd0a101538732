//! A server that rejects commands, does not respond, or whose responses are lost. An unknown outcome is reported as
//! such, and repeated commands have no second effect.

use std::time::Duration;

use backend::SystemHost;
use contracts::outboxes::{claim, settle};
use contracts::sample;
use jiff::Timestamp;
use messages::{Host, PartitionKey, StoreError};
use mongo::collections;
use mongodb::bson::{Document, doc};
use outbox::{Entry, Owner, Settlement};
use saga::{Document as Saga, Persist, PersistOutcome, ReadDocuments, WriteDocuments};
use servers::mongo::{Proxy, eventually, uri};

use super::{Scratch, Setup, TestResult};

const HOST: &SystemHost = &SystemHost;

/// Returns a write that creates a partition with an entry to send.
fn create(now: Timestamp) -> Persist {
    let partition = sample::partition(HOST);
    let entry = sample::entry(HOST, partition, now).unwrap();
    Persist { add: vec![entry], ..sample::persist(partition, None, sample::content(HOST, "created")) }
}

async fn stored(scratch: &Scratch, partition: PartitionKey) -> Result<Option<Saga>, StoreError> {
    scratch.mongo.load(&[partition], HOST.now()).await?.remove(0)
}

pub(crate) fn unknown<T: std::fmt::Debug>(answer: Result<T, StoreError>) {
    let error = answer.unwrap_err();
    assert!(error.is_retryable(), "{}", error.chain());
}

#[tokio::test]
async fn lost_write_is_not_made_and_repeatable() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    let refusals: [Document; 3] =
        [doc! { "closeConnection": true }, doc! { "errorCode": 112 }, doc! { "errorCode": 10107 }];
    for how in refusals {
        let write = create(now);
        let fault = scratch.fail(1, &["update"], how.clone()).await?;
        unknown(scratch.mongo.persist(std::slice::from_ref(&write), now).await);
        assert_eq!(stored(&scratch, write.partition).await?, None, "{how}");
        assert_eq!(
            scratch.mongo.persist(std::slice::from_ref(&write), now).await?,
            [PersistOutcome::Stored],
            "{how}"
        );
        fault.off().await?;
    }
    scratch.end().await
}

#[tokio::test]
async fn permanent_rejection_is_marked_permanent() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    let fault = scratch.fail(1, &["update"], doc! { "errorCode": 2 }).await?;
    let error = scratch.mongo.persist(&[create(now)], now).await.unwrap_err();
    assert!(!error.is_retryable() && error.chain().contains("2 (BadValue)"), "{}", error.chain());
    fault.off().await?;
    scratch.end().await
}

#[tokio::test]
async fn write_without_majority_is_unknown_and_names_author() -> TestResult {
    let scratch = Scratch::new().await?;
    let now = sample::now(HOST);
    let how = doc! { "writeConcernError": { "code": 64, "errmsg": "waiting for replication timed out" } };
    let write = create(now);
    let fault = scratch.fail(1, &["update"], how.clone()).await?;
    unknown(scratch.mongo.persist(std::slice::from_ref(&write), now).await);
    fault.off().await?;
    let found = stored(&scratch, write.partition).await?.unwrap();
    assert_eq!((found.version, found.content.attempt), (1, write.content.attempt));
    assert_eq!(scratch.mongo.persist(std::slice::from_ref(&write), now).await?, [PersistOutcome::Conflict]);
    assert_eq!(stored(&scratch, write.partition).await?, Some(found));

    let done = Settlement { id: write.add[0].id, claim: None, keep: None };
    let settlements = [(write.partition, vec![done])];
    let fault = scratch.fail(1, &["update"], how.clone()).await?;
    unknown(scratch.mongo.settle(&settlements).await);
    fault.off().await?;
    scratch.mongo.settle(&settlements).await?;
    assert_eq!(stored(&scratch, write.partition).await?.unwrap().outbox, []);

    let second = create(now);
    scratch.mongo.persist(std::slice::from_ref(&second), now).await?;
    let (sweep, owner) = (scratch.mongo.saga_outbox(), Owner::Saga(second.partition));
    let fault = scratch.fail(2, &["update"], how).await?;
    unknown(claim(&sweep, owner, now, sample::later(now, 300)).await);
    fault.off().await?;
    assert_eq!(
        claim(&sweep, owner, now, sample::later(now, 301)).await?,
        [],
        "no other worker gets it in between"
    );
    assert_eq!(claim(&sweep, owner, sample::later(now, 300), sample::later(now, 600)).await?.len(), 1);
    scratch.end().await
}

/// The client times out, and the write takes place later.
#[tokio::test]
async fn write_outlasting_client_is_made_once() -> TestResult {
    let setup = Setup { call_timeout: Duration::from_millis(300), ..Setup::default() };
    let scratch = Scratch::with(&uri(), setup).await?;
    let now = sample::now(HOST);
    let write = create(now);
    let fault = scratch.fail(1, &["update"], doc! { "blockConnection": true, "blockTimeMS": 1_000 }).await?;
    let error = scratch.mongo.persist(std::slice::from_ref(&write), now).await.unwrap_err();
    assert!(error.is_retryable() && error.chain().ends_with("no answer within 300 ms"), "{}", error.chain());
    assert_eq!(stored(&scratch, write.partition).await?, None, "not yet");
    eventually("the write is made", Duration::from_secs(20), async || {
        Ok::<_, StoreError>(stored(&scratch, write.partition).await?.is_some())
    })
    .await?;
    fault.off().await?;
    assert_eq!(scratch.mongo.persist(std::slice::from_ref(&write), now).await?, [PersistOutcome::Conflict]);
    let found = stored(&scratch, write.partition).await?.unwrap();
    assert_eq!((found.version, found.content, found.outbox), (1, write.content, write.add));
    scratch.end().await
}

/// Creates a database behind a network that loses responses.
async fn behind_a_proxy() -> Result<(Proxy, Scratch), Box<dyn std::error::Error + Send + Sync>> {
    let proxy = Proxy::before(servers::mongo::host().await?).await?;
    let scratch = Scratch::with(&proxy.uri(), Setup::default()).await?;
    Ok((proxy, scratch))
}

#[tokio::test]
async fn write_with_lost_response_is_unknown_and_idempotent() -> TestResult {
    let (proxy, scratch) = behind_a_proxy().await?;
    let now = sample::now(HOST);
    let write = create(now);
    proxy.lose_answer_to("update", collections::SAGA);
    unknown(scratch.mongo.persist(std::slice::from_ref(&write), now).await);
    assert!(proxy.has_cut());
    eventually("the write is made", Duration::from_secs(20), async || {
        Ok::<_, StoreError>(stored(&scratch, write.partition).await?.is_some())
    })
    .await?;
    let found = stored(&scratch, write.partition).await?.unwrap();
    assert_eq!(found.content.attempt, write.content.attempt, "it names who wrote it");
    assert_eq!(scratch.mongo.persist(std::slice::from_ref(&write), now).await?, [PersistOutcome::Conflict]);
    assert_eq!(stored(&scratch, write.partition).await?, Some(found));

    let done = Settlement { id: write.add[0].id, claim: None, keep: None };
    let settlements = [(write.partition, vec![done])];
    proxy.lose_answer_to("update", collections::SAGA);
    unknown(scratch.mongo.settle(&settlements).await);
    assert!(proxy.has_cut());
    scratch.mongo.settle(&settlements).await?;
    assert_eq!(stored(&scratch, write.partition).await?.unwrap().outbox, []);
    scratch.end().await
}

/// The driver repeats the command with the same transaction number, and the server returns the first response again.
/// Otherwise the entries would be blocked until the claim expires, without a worker that knows of it.
#[tokio::test]
async fn claim_with_lost_response_is_not_taken_twice() -> TestResult {
    let (proxy, scratch) = behind_a_proxy().await?;
    let now = sample::now(HOST);
    let write = create(now);
    scratch.mongo.persist(std::slice::from_ref(&write), now).await?;
    let (sweep, owner) = (scratch.mongo.saga_outbox(), Owner::Saga(write.partition));
    proxy.lose_answer_to("update", collections::SAGA);
    let until = sample::later(now, 300);
    let claimed = claim(&sweep, owner, now, until).await?;
    assert!(proxy.has_cut());
    assert_eq!(claimed, [Entry { claimed_until: Some(until), ..write.add[0].clone() }]);
    assert_eq!(claim(&sweep, owner, now, sample::later(now, 301)).await?, []);
    proxy.lose_answer_to("update", collections::SAGA);
    settle(&sweep, owner, &[Settlement { id: claimed[0].id, claim: Some(until), keep: None }]).await?;
    assert!(proxy.has_cut());
    assert_eq!(stored(&scratch, write.partition).await?.unwrap().outbox, []);
    scratch.end().await
}
