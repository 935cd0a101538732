//! Unreliable connections to services of AWS: requests are rejected or lost, or their responses are lost, late or
//! truncated, more often than the clients' own retries can hide.

use std::time::Duration;

use servers::TestResult;
use servers::amazon::Service;
use servers::net::{Fate, Unreliable};

use super::{Environment, Worker, announce, check, have_ended, impatient, open, searches_to_import};

/// The seed of the random faults.
const SEED: u64 = 13;
/// A delay beyond the time that clients wait for a response.
const TOO_LATE: Duration = aws::ATTEMPT_TIMEOUT.saturating_add(Duration::from_millis(500));

/// Two workers import all searches while the given percentage of requests to a service has one of these fates.
async fn imports_all(service: Service, percent: u8, fates: &[Fate]) -> TestResult {
    Environment::with(async |environment| {
        let plan = Fate::some(SEED, percent, fates.to_vec());
        let way = Unreliable::before(&service.address(), plan).await;
        let program = impatient(&environment).but(service.variable(), &way.address).program();
        let backend = open(&environment, 1).await?;
        let searches = announce(&backend, &environment, searches_to_import()).await?;
        let workers = [(); 2].map(|()| Worker::start(&program, 1));
        have_ended(&environment, searches.len()).await?;
        println!("{service:?}: of {} requests, {:?}", way.requests(), way.faults());
        for fate in fates {
            assert!(way.faults().contains_key(fate), "no request met {fate:?}");
        }
        check(&backend, &environment, &searches, searches.len()).await?;
        workers.into_iter().for_each(Worker::finish);
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn overloaded_ledger_imports_each_once() -> TestResult {
    let fates = [Fate::THROTTLED, Fate::FAILED, Fate::Lost, Fate::Unanswered];
    imports_all(Service::DynamoDb, 20, &fates).await
}

#[tokio::test(flavor = "multi_thread")]
async fn unreliable_queues_import_each_once() -> TestResult {
    let fates = [Fate::FAILED, Fate::Lost, Fate::Unanswered, Fate::Late(TOO_LATE)];
    imports_all(Service::Sqs, 15, &fates).await
}

#[tokio::test(flavor = "multi_thread")]
async fn truncated_downloads_import_each_once() -> TestResult {
    let fates = [Fate::SLOW_DOWN, Fate::Lost, Fate::BrokenOff(500), Fate::BrokenOff(usize::MAX)];
    imports_all(Service::S3, 40, &fates).await
}
