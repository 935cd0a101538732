//! An outage of MongoDB for an hour, on real servers and in the test's own time.

use std::sync::LazyLock;
use std::time::Duration;

use futures::future::join;
use imports::queues::{CONTROL_DEAD, EVENTS, QUEUES, SAGA_DEAD};
use imports::{JobState, SearchId};
use messages::{Host, QueueSpec, StoreError};
use saga::failures::{Failure, FailureStatus, Operation, Phase, Retry, Selection};
use servers::TestResult;
use service::AnnouncedSearch;
use service::health::Health;

use super::super::Environment;
use super::super::deployment::{Deployment, Unexpected};
use super::super::faults::check;

const SECOND: Duration = Duration::from_secs(1);
/// The receive limit of each queue here. It is reached within minutes, so that an hour without the database
/// dead-letters the messages of every queue. The default is 20, which takes more than three hours.
const DELIVERIES: u32 = 5;

/// The queues of the search import with [`DELIVERIES`] as receive limit.
static SHORT_LIVED: LazyLock<Vec<QueueSpec>> = LazyLock::new(|| {
    let spec = |spec: &QueueSpec| QueueSpec {
        receive_limit: spec.receive_limit.map(|_| DELIVERIES),
        ..spec.clone()
    };
    QUEUES.iter().map(spec).collect()
});

/// Searches that the saga has started before the outage, and searches that are announced just before it.
struct Searches {
    known: Vec<AnnouncedSearch>,
    new: Vec<AnnouncedSearch>,
}

impl Searches {
    fn ids(&self) -> Vec<SearchId> {
        self.known.iter().chain(&self.new).map(|announced| announced.search_id).collect()
    }
}

/// Disconnects the database, uploads all files, and lets an hour pass. A known search has one message in flight that
/// needs the database: the notification of its upload. A new search also has its announcement and its control message.
async fn hour_without_database(
    deployment: &Deployment,
    known: usize,
    new: usize,
) -> Result<Searches, Unexpected> {
    let known = deployment.announce(known).await?;
    deployment.pass(1).await?;
    let new = deployment.announce(new).await?;
    deployment.mongo.cut_off();
    deployment.upload(&known).await?;
    deployment.upload(&new).await?;
    let failed = deployment.pass(60).await?;
    assert_eq!(failed, 2 * 60, "neither the sweep nor report-faults can do anything");
    Ok(Searches { known, new })
}

#[tokio::test(flavor = "multi_thread")]
async fn dead_letters_of_outage_are_retried_after_canary() -> TestResult {
    Environment::with_queues(&SHORT_LIVED, async |environment| {
        // Otherwise the searches would scan for their files themselves, and no failure would be left to retry.
        let environment = environment.but("SEARCH_IMPORT_UPLOAD_TIMEOUT_SECONDS", "86400");
        let deployment = Deployment::open(&environment, &SHORT_LIVED).await?;
        let searches = hour_without_database(&deployment, 50, 150).await?;
        assert_eq!(deployment.depth(&SAGA_DEAD).await?, 350, "uploads and announcements");
        assert_eq!(deployment.depth(&CONTROL_DEAD).await?, 150);
        check_queues(&deployment, 500).await?;

        deployment.mongo.restore();
        deployment.found().await?;
        assert_eq!(deployment.pass(2).await?, 0);
        check_queues(&deployment, 0).await?;
        assert_eq!(deployment.all(FailureStatus::Open).await?.len(), 500);
        let report = Health::over(&deployment.backend.ports, &functions::SYSTEM)?.report().await;
        assert_eq!(report.open_failures, Some(500), "{report:?}");
        let shown = environment.program().run(&["failures", "groups", "--json"]).lines();
        let counts: Vec<u64> = shown.iter().filter_map(|group| group["count"].as_u64()).collect();
        assert_eq!(counts.iter().sum::<u64>(), 500);
        assert!((1..=5).contains(&counts.len()), "{shown:?}");

        try_one(&deployment, &searches.known).await?;
        retry_the_others(&deployment).await?;
        deployment.pass(5).await?;
        check_end(&deployment, &environment, &searches).await?;
        assert_eq!(deployment.all(FailureStatus::Retried).await?.len(), 500);
        Ok(())
    })
    .await
}

/// Retries one failure with a visible effect: an uploaded file is read.
async fn try_one(deployment: &Deployment, known: &[AnnouncedSearch]) -> TestResult {
    let jobs = deployment.backend.ports.jobs()?;
    let is_of = |failure: &Failure| known.iter().any(|search| failure.partition == Some(search.search_id));
    let open = deployment.all(FailureStatus::Open).await?;
    let one = open.into_iter().find(is_of).unwrap();
    let search = one.partition.unwrap();
    assert_eq!(jobs.job(search).await?.unwrap().state, JobState::Uploading);
    let selection = Selection { ids: [one.id].into(), ..Selection::of(FailureStatus::Open) };
    let retry = Retry { selection, limit: None, per_second: 50, canary: 0 };
    let operation = deployment.failures.retry(retry, "ann").await?;
    assert_eq!(second_by_second(deployment, &operation).await?, [1, 0]);
    assert_eq!(jobs.job(search).await?.unwrap().state, JobState::Completed);
    let unfinished = jobs.unfinished().await?;
    assert_eq!(unfinished.len(), 199, "no other search has continued");
    Ok(())
}

/// Retries the others as a dry run shows them: one first, and the rest after a minute.
async fn retry_the_others(deployment: &Deployment) -> TestResult {
    let snapshot = deployment.failures.snapshot(Selection::of(FailureStatus::Open)).await?;
    assert_eq!(snapshot.count, 499);
    assert!(snapshot.groups.len() <= 5, "{:?}", snapshot.groups);
    let begun = deployment.host.now();
    let retry = Retry { selection: snapshot.selection, limit: None, per_second: 50, canary: 1 };
    let operation = deployment.failures.retry(retry, "ann").await?;
    let counts = second_by_second(deployment, &operation).await?;
    let took = deployment.host.now().duration_since(begun).as_secs();
    assert_eq!(counts[0], 1, "one is retried first");
    assert!(counts[1..60].iter().all(|count| *count == 0), "and the others wait: {counts:?}");
    assert_eq!(counts.iter().sum::<u64>(), 499);
    assert_eq!(counts.iter().max(), Some(&50), "{counts:?}");
    assert!((70..90).contains(&took), "a minute of watching and ten seconds of work: {took} s");
    Ok(())
}

/// Runs the steps of an operation, one second apart, and delivers all messages. Returns the number of failures retried
/// in each second.
async fn second_by_second(deployment: &Deployment, operation: &Operation) -> Result<Vec<u64>, Unexpected> {
    let (mut counts, mut before) = (Vec::new(), 0);
    loop {
        let step = async {
            // A concurrent step within the same second does not double the rate.
            Ok::<_, StoreError>(
                deployment.failures.run_step(None).await? | deployment.failures.run_step(None).await?,
            )
        };
        let (is_running, delivered) = join(step, deployment.run()).await;
        delivered?;
        let known = deployment.failures.store.operation(operation.id).await?.unwrap();
        counts.push(known.retried - before);
        before = known.retried;
        if !is_running? {
            assert!(matches!(known.phase, Phase::Done { .. }), "{known:?}");
            return Ok(counts);
        }
        deployment.host.advance(SECOND);
        assert!(counts.len() < 200, "the operation does not end: {counts:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn default_queues_survive_hour_without_mongodb() -> TestResult {
    Environment::with(async |environment| {
        let deployment = Deployment::open(&environment, &QUEUES).await?;
        let searches = hour_without_database(&deployment, 20, 10).await?;
        check_queues(&deployment, 0).await?;
        deployment.mongo.restore();
        deployment.found().await?;
        // The longest delay between two deliveries is half an hour.
        deployment.pass(60).await?;
        check_end(&deployment, &environment, &searches).await?;
        assert_eq!(deployment.all(FailureStatus::Retried).await?, []);
        Ok(())
    })
    .await
}

/// Checks the total number of messages in the dead-letter queues.
async fn check_queues(deployment: &Deployment, dead: u64) -> Result<(), Unexpected> {
    let mut found = 0;
    for queue in QUEUES.iter().filter_map(|spec| spec.dead_letters.as_ref()) {
        found += deployment.depth(queue).await?;
    }
    assert_eq!(found, dead);
    Ok(())
}

/// Checks that nothing is lost or duplicated, and that no work remains.
async fn check_end(deployment: &Deployment, environment: &Environment, searches: &Searches) -> TestResult {
    let mut searches = searches.ids();
    // A search that has waited for its file for an hour also scans for it.
    check(&deployment.backend, environment, &searches, 2 * searches.len()).await?;
    searches.sort_unstable();
    let mut read = deployment.log.handled("StartParsing");
    read.sort_unstable();
    assert_eq!(read, searches, "each file is read once");
    assert_eq!(deployment.depth(&EVENTS).await?, searches.len() as u64, "each end is announced once");
    for standing in [FailureStatus::Open, FailureStatus::Retrying] {
        assert_eq!(deployment.all(standing).await?, []);
    }
    let report = Health::over(&deployment.backend.ports, &functions::SYSTEM)?.report().await;
    assert_eq!((report.open_failures, &*report.concerns), (Some(0), &[][..]), "{report:?}");
    for spec in QUEUES.iter().filter(|spec| spec.receive_limit.is_some()) {
        assert_eq!(deployment.depth(&spec.queue).await?, 0, "queue {}", spec.queue);
    }
    Ok(())
}
