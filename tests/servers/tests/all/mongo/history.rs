//! The cost of history, and its order across processes.

use std::sync::Arc;

use backend::SystemHost;
use contracts::history::{noted, observation};
use contracts::{RecordingSink, sample};
use imports::FileId;
use messages::{DecisionSink, Delivery, Disposition, Host};
use mongo::collections;
use mongodb::bson::doc;
use saga::KeepHistory;
use saga::history::Recorder;

use super::race::{consumer, saved};
use super::{Scratch, TestResult};

/// Returns the commands for a batch of ten messages, each about a separate search.
async fn batch(scratch: &Scratch, observer: Arc<dyn DecisionSink>) -> Vec<String> {
    let deliveries = (0..10).map(|_| {
        let message = saved(sample::partition(&SystemHost), FileId::from_uuid(SystemHost.fresh_id()));
        Delivery { record_id: "1".into(), body: message.encode().unwrap(), receive_count: 1, reason: None }
    });
    let deliveries: Vec<Delivery> = deliveries.collect();
    let function = consumer(&scratch.mongo, Arc::clone(&observer));
    scratch.commands();
    assert_eq!(function.consume(&deliveries, None).await, vec![Disposition::Acknowledge; 10]);
    observer.flush().await;
    scratch.commands()
}

#[tokio::test]
async fn history_of_batch_takes_one_command() -> TestResult {
    let scratch = Scratch::new().await?;
    let seen = || Arc::new(RecordingSink::default());
    let without = batch(&scratch, seen()).await;
    let recorder = Recorder::new(seen(), Arc::new(scratch.mongo.clone()), Arc::new(SystemHost));
    let with = batch(&scratch, Arc::new(recorder)).await;
    assert_eq!(with, [without, vec!["insert".to_owned()]].concat());
    // Each message was handled, and a command was sent for it.
    let history = scratch.collection(collections::HISTORY);
    assert_eq!(history.count_documents(doc! {}).await?, 20);
    scratch.end().await
}

#[tokio::test]
async fn history_of_processes_is_ordered_by_time() -> TestResult {
    let scratch = Scratch::new().await?;
    let partition = sample::partition(&SystemHost);
    let decided = [0, 1, 2, 3].map(|n| observation(&SystemHost, partition, n, n.into()));
    let [first, second, third, fourth] = decided.clone();
    scratch.mongo.append(&[second, fourth]).await?;
    scratch.mongo.append(&[first, third]).await?;
    let found = scratch.mongo.history(Some(partition), None, 10).await?;
    assert_eq!(found.into_iter().map(|(_, observation)| observation).collect::<Vec<_>>(), noted(&decided));
    scratch.end().await
}

/// A verdict of a newer version is shown unchanged.
#[tokio::test]
async fn unknown_verdict_is_listed_in_history() -> TestResult {
    let scratch = Scratch::new().await?;
    let partition = sample::partition(&SystemHost);
    scratch.mongo.append(&[0, 1].map(|n| observation(&SystemHost, partition, n, n.into()))).await?;
    let history = scratch.collection(collections::HISTORY);
    let later = doc! { "$set": { "Decision.verdict": "postponed" } };
    history.update_one(doc! { "Decision.why": { "$regex": "^decision 0" } }, later).await?;
    let found = scratch.mongo.history(Some(partition), None, 10).await?;
    let verdicts: Vec<&str> = found.iter().map(|(_, observation)| observation.verdict.name()).collect();
    assert_eq!(verdicts, ["postponed", "ignored"]);
    scratch.end().await
}
