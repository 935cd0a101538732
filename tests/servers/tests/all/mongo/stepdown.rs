//! A primary that steps down.

use std::time::Duration;

use backend::SystemHost;
use contracts::sample;
use mongodb::bson::doc;
use saga::{PersistOutcome, ReadDocuments, WriteDocuments};
use servers::mongo::{OwnServer, eventually};

use super::{Scratch, Setup, TestResult};

/// A step-down disturbs every client, so the test has its own server. The driver waits for the next primary only
/// briefly here, so that the test sees the errors of a longer election.
#[tokio::test]
async fn step_down_delays_writes_made_once() -> TestResult {
    let server = OwnServer::replica_set(&[]).await?;
    let uri = server.uri().replace("directConnection=true", "replicaSet=rs0&serverSelectionTimeoutMS=200");
    let scratch = Scratch::with(&uri, Setup::default()).await?;
    let (host, now) = (&SystemHost, sample::now(&SystemHost));
    let partition = sample::partition(host);
    let first = sample::persist(partition, None, sample::content(host, "before"));
    assert_eq!(scratch.mongo.persist(&[first], now).await?, [PersistOutcome::Stored]);
    let step_down = doc! { "replSetStepDown": 2, "secondaryCatchUpPeriodSecs": 0, "force": true };
    server.admin().await?.run_command(step_down).await?;
    let second = sample::persist(partition, Some(1), sample::content(host, "after"));
    let (mut failures, mut last) = (0, String::new());
    eventually("a write goes through", Duration::from_secs(30), async || {
        match scratch.mongo.persist(std::slice::from_ref(&second), now).await {
            Ok(answers) => {
                assert_eq!(answers, [PersistOutcome::Stored]);
                Ok(true)
            }
            Err(error) if error.is_retryable() => {
                failures += 1;
                last = error.chain();
                Ok(false)
            }
            Err(error) => Err(error),
        }
    })
    .await?;
    println!("{failures} writes failed before one went through");
    assert!(failures > 0, "the step-down was not noticed");
    assert!(last.contains("no MongoDB server takes writes"), "{last}");
    let stored = scratch.mongo.load(&[partition], now).await?.remove(0)?.unwrap();
    assert_eq!((stored.version, stored.content), (2, second.content));
    scratch.end().await
}
