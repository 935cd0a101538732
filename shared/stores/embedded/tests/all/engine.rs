//! Group commit, index use, and the interceptor.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use contracts::sample;
use dedup::{Entities, Entry, Receipts};
use embedded::{Call, Intercept, Phase};
use futures::future::join_all;
use jiff::SignedDuration;
use messages::PartitionKey;
use outbox::{Owner, ReadViews, SweepOutbox, WriteViews};
use saga::{Persist, WriteDocuments};

use crate::depot::{Depot, TestResult};

#[tokio::test]
async fn failing_write_does_not_affect_its_group() -> TestResult {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    // One partition whose view cannot be stored, as if its row were damaged.
    let broken = sample::view(host, sample::partition(host), 1, false);
    depot.database().execute_batch(&format!(
        "CREATE TRIGGER refuse BEFORE INSERT ON job WHEN NEW.search_id = '{}'
         BEGIN SELECT RAISE(ABORT, 'refused'); END",
        broken.partition
    ))?;
    let mut views: Vec<_> = (0..40).map(|_| sample::view(host, sample::partition(host), 1, false)).collect();
    views.insert(20, broken.clone());
    // The first view of this call is stored before the second one fails, and must be rolled back with it.
    let partial = [sample::view(host, sample::partition(host), 1, false), broken.clone()];
    let both = WriteViews::write(store, &partial);
    let (answers, both) = futures::future::join(
        join_all(views.iter().map(|view| WriteViews::write(store, std::slice::from_ref(view)))),
        both,
    )
    .await;
    assert!(both.is_err() && store.view(partial[0].partition).await?.is_none());
    for (view, answer) in views.iter().zip(answers) {
        let is_broken = view.partition == broken.partition;
        assert_eq!(answer.is_err(), is_broken);
        assert_eq!(store.view(view.partition).await?.is_none(), is_broken);
    }
    Ok(())
}

#[tokio::test]
async fn error_names_operation_and_subject() -> TestResult {
    let depot = Depot::new();
    let partition = sample::partition(&*depot.host);
    depot.database().execute_batch(&format!(
        "INSERT INTO job VALUES ('{partition}', 1, 0, 0, 'not JSON', '{partition}', NULL, 0, NULL)"
    ))?;
    let error = depot.store.view(partition).await.unwrap_err();
    assert!(!error.is_retryable());
    assert!(
        error.chain().starts_with(&format!("reading the view of partition {partition} cannot succeed: "))
    );
    Ok(())
}

#[tokio::test]
async fn record_types_have_separate_outboxes() -> TestResult {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    let partition = sample::partition(host);
    let entry = sample::entry(host, partition, sample::now(host))?;
    let write =
        Persist { add: vec![entry], ..sample::persist(partition, None, sample::content(host, "due")) };
    store.persist(&[write], sample::now(host)).await?;
    assert_eq!(store.saga_outbox().due(sample::now(host), 10).await?, [Ok(Owner::Saga(partition))]);
    assert_eq!(store.session_outbox().due(sample::now(host), 10).await?, []);
    Ok(())
}

#[derive(Default)]
struct Calls(Mutex<Vec<(Call, Phase)>>);

#[async_trait]
impl Intercept for Calls {
    async fn step(&self, call: Call, phase: Phase) {
        self.0.lock().unwrap().push((call, phase));
        if call == Call::ViewsRead {
            std::future::pending::<()>().await;
        }
    }
}

#[tokio::test]
async fn interceptor_sees_and_stops_calls() -> TestResult {
    let depot = Depot::new();
    let calls = Arc::new(Calls::default());
    let store = depot.store.with_intercept(calls.clone());
    let view = sample::view(&*depot.host, sample::partition(&*depot.host), 1, false);
    WriteViews::write(&store, std::slice::from_ref(&view)).await?;
    let stopped = tokio::time::timeout(Duration::from_millis(1), store.view(view.partition)).await;
    assert!(stopped.is_err(), "it never returns");
    assert_eq!(
        *calls.0.lock().unwrap(),
        [
            (Call::ViewsWrite, Phase::Before),
            (Call::ViewsWrite, Phase::After),
            (Call::ViewsRead, Phase::Before),
        ]
    );
    assert_eq!(depot.store.view(view.partition).await?, Some(view), "the other clone is not intercepted");
    Ok(())
}

#[tokio::test]
async fn tokens_admit_only_to_their_entity() -> TestResult {
    let depot = Depot::new();
    let (store, host) = (Arc::new(depot.reopened()), depot.host.clone());
    let lease = SignedDuration::from_secs(30);
    let entities = Entities { ledger: store.clone(), tokens: store, host, lease };
    let [ada, bob] = ["Ada", "Bob"].map(|name| PartitionKey::named("accounts", name));
    let token = entities.issue(ada).await?;
    let refused = entities.admit(bob, &token, &Receipts::default()).await.unwrap_err();
    assert!(!refused.is_retryable(), "{refused}");
    let unsent = entities.issue(ada).await?;
    entities.revoke(ada, std::slice::from_ref(&unsent)).await?;
    let entry = entities.admit(ada, &unsent, &Receipts::default()).await?;
    assert!(matches!(entry, Entry::Duplicate), "{entry:?}");
    let entry = entities.admit(ada, &token, &Receipts::default()).await?;
    assert!(matches!(entry, Entry::Admitted(_)), "{entry:?}");
    Ok(())
}
