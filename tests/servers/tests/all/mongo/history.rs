//! What it costs to keep history, and its order when several processes write it.

use std::sync::Arc;

use backend::SystemHost;
use imports::FileId;
use messages::{Delivery, Disposition, Host, Observe};
use mongo::collections;
use mongodb::bson::doc;
use saga::KeepHistory;
use saga::history::Recorder;
use testing::history::{noted, observation};
use testing::{Seen, sample};

use super::race::{consumer, saved};
use super::{Scratch, Tested};

/// The commands that a batch of ten messages takes, each about a search of its own.
async fn batch(scratch: &Scratch, observer: Arc<dyn Observe>) -> Vec<String> {
    let deliveries = (0..10).map(|_| {
        let message = saved(sample::partition(&SystemHost), FileId::from_uuid(SystemHost.fresh_id()));
        Delivery { record_id: "1".into(), body: message.encode().unwrap(), receive_count: 1 }
    });
    let deliveries: Vec<Delivery> = deliveries.collect();
    let function = consumer(&scratch.mongo, Arc::clone(&observer));
    scratch.commands();
    assert_eq!(function.consume(&deliveries, None).await, vec![Disposition::Acknowledge; 10]);
    observer.flush().await;
    scratch.commands()
}

#[tokio::test]
async fn the_history_of_a_batch_takes_one_command() -> Tested {
    let scratch = Scratch::new().await?;
    let seen = || Arc::new(Seen::default());
    let without = batch(&scratch, seen()).await;
    let recorder = Recorder::new(seen(), Arc::new(scratch.mongo.clone()), Arc::new(SystemHost));
    let with = batch(&scratch, Arc::new(recorder)).await;
    assert_eq!(with, [without, vec!["insert".to_owned()]].concat());
    // Of each message that it was handled, and that a command was sent for it.
    let history = scratch.collection(collections::HISTORY);
    assert_eq!(history.count_documents(doc! {}).await?, 20);
    scratch.end().await
}

#[tokio::test]
async fn what_several_processes_decided_is_in_the_order_of_time() -> Tested {
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

/// Of a later release: the word is shown as it is.
#[tokio::test]
async fn a_verdict_that_this_release_does_not_know_hides_no_history() -> Tested {
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
