//! Group commit, index use, and the interceptor.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use contracts::JobState;
use embedded::{Intercept, Phase};
use futures::future::join_all;
use imports::{ReadJobs, WriteJobs};
use outbox::{Owner, SweepOutbox};
use testing::sample;
use worker::document::{Persist, WriteSaga};

use crate::depot::{Depot, Tested};

#[tokio::test]
async fn a_failing_write_leaves_its_group_untouched() -> Tested {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    // One search whose job cannot be stored, as if its row were damaged.
    let broken = sample::job(host, sample::search(host), 1, JobState::Parsing);
    depot.database().execute_batch(&format!(
        "CREATE TRIGGER refuse BEFORE INSERT ON job WHEN NEW.search_id = '{}'
         BEGIN SELECT RAISE(ABORT, 'refused'); END",
        broken.search_id
    ))?;
    let mut jobs: Vec<_> =
        (0..40).map(|_| sample::job(host, sample::search(host), 1, JobState::Parsing)).collect();
    jobs.insert(20, broken.clone());
    // The first of this call is stored before the second fails, and must be gone with it.
    let partial = [sample::job(host, sample::search(host), 1, JobState::Parsing), broken.clone()];
    let both = WriteJobs::write(store, &partial);
    let (answers, both) = futures::future::join(
        join_all(jobs.iter().map(|job| WriteJobs::write(store, std::slice::from_ref(job)))),
        both,
    )
    .await;
    assert!(both.is_err() && store.job(partial[0].search_id).await?.is_none());
    for (job, answer) in jobs.iter().zip(answers) {
        let is_broken = job.search_id == broken.search_id;
        assert_eq!(answer.is_err(), is_broken);
        assert_eq!(store.job(job.search_id).await?.is_none(), is_broken);
    }
    Ok(())
}

#[tokio::test]
async fn an_error_says_what_was_being_done_to_what() -> Tested {
    let depot = Depot::new();
    let search = sample::search(&*depot.host);
    depot
        .database()
        .execute_batch(&format!("INSERT INTO job VALUES ('{search}', 1, 0, 0, 'not JSON', NULL)"))?;
    let error = depot.store.job(search).await.unwrap_err();
    assert!(!error.is_retryable());
    assert!(error.chain().starts_with(&format!("reading the job of search {search} cannot succeed: ")));
    Ok(())
}

#[tokio::test]
async fn each_kind_of_record_has_an_outbox_of_its_own() -> Tested {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    let search = sample::search(host);
    let entry = sample::entry(host, search, sample::now(host))?;
    let write = Persist { add: vec![entry], ..sample::persist(search, None, sample::uploading(host, "due")) };
    store.persist(&[write], sample::now(host)).await?;
    assert_eq!(store.saga_outbox().due(sample::now(host), 10).await?, [Owner::Saga(search)]);
    assert_eq!(store.session_outbox().due(sample::now(host), 10).await?, []);
    Ok(())
}

#[derive(Default)]
struct Calls(Mutex<Vec<(&'static str, Phase)>>);

#[async_trait]
impl Intercept for Calls {
    async fn step(&self, call: &'static str, phase: Phase) {
        self.0.lock().unwrap().push((call, phase));
        if call == "jobs.read" {
            std::future::pending::<()>().await;
        }
    }
}

#[tokio::test]
async fn an_interceptor_sees_each_call_twice_and_may_stop_it() -> Tested {
    let depot = Depot::new();
    let calls = Arc::new(Calls::default());
    let store = depot.store.with_intercept(calls.clone());
    let job = sample::job(&*depot.host, sample::search(&*depot.host), 1, JobState::Parsing);
    WriteJobs::write(&store, std::slice::from_ref(&job)).await?;
    let stopped = tokio::time::timeout(Duration::from_millis(1), store.job(job.search_id)).await;
    assert!(stopped.is_err(), "it never returns");
    assert_eq!(
        *calls.0.lock().unwrap(),
        [("jobs.write", Phase::Before), ("jobs.write", Phase::After), ("jobs.read", Phase::Before),]
    );
    assert_eq!(depot.store.job(job.search_id).await?, Some(job), "the other clone is not intercepted");
    Ok(())
}
