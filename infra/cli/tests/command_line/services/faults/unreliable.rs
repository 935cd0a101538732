//! Services of AWS to which the way is unreliable: requests are refused, lost, carried out without an answer, answered
//! late or in part. The more so than the clients' own repetitions can hide.

use std::time::Duration;

use servers::Tested;
use servers::amazon::Service;
use servers::net::{Fate, Unreliable};

use super::{Environment, Worker, announce, check, have_ended, impatient, open, searches_to_import};

/// What the faults are drawn from.
const SEED: u64 = 13;
/// Longer than the clients wait for an answer.
const TOO_LATE: Duration = aws::ATTEMPT_TIMEOUT.saturating_add(Duration::from_millis(500));

/// Two workers import all searches, while this share of the requests to a service meets one of these fates.
async fn imports_all(service: Service, percent: u8, fates: &[Fate]) -> Tested {
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
async fn with_an_overloaded_ledger_each_search_is_imported_once() -> Tested {
    let fates = [Fate::THROTTLED, Fate::FAILED, Fate::Lost, Fate::Unanswered];
    imports_all(Service::DynamoDb, 20, &fates).await
}

#[tokio::test(flavor = "multi_thread")]
async fn with_queues_that_answer_late_or_never_each_search_is_imported_once() -> Tested {
    let fates = [Fate::FAILED, Fate::Lost, Fate::Unanswered, Fate::Late(TOO_LATE)];
    imports_all(Service::Sqs, 15, &fates).await
}

#[tokio::test(flavor = "multi_thread")]
async fn with_files_that_break_off_each_search_is_imported_once() -> Tested {
    let fates = [Fate::SLOW_DOWN, Fate::Lost, Fate::BrokenOff(500), Fate::BrokenOff(usize::MAX)];
    imports_all(Service::S3, 40, &fates).await
}
