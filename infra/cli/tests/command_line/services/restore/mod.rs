//! Restores of the database, the ledger, or both to an earlier time, on real servers and in the test's own time. The
//! queues keep their messages.
//!
//! The tests check the statements of docs/backup.md about each case.

mod backup;

use std::time::Duration;

use imports::queues::{PARSE, QUEUES, SAGA};
use imports::{JobState, SearchId};
use mongo::collections;
use mongodb::bson::{Bson, Document, doc};
use serde_json::{Value, json};
use servers::TestResult;
use service::{
    AfterRestore, AnnouncedSearch, Deletion, NewRepair, OpenReads, ProjectAccess, Repair, RestoreOutcome,
    SearchService,
};
use uuid::Uuid;

use self::backup::Backup;
use super::Environment;
use super::deployment::{Deployment, Unexpected};

/// The number of records in the file.
const RECORDS: u64 = 3;
/// Hours after which every deadline of a search has passed.
const DEADLINES: u32 = 26;
const HOUR: Duration = Duration::from_secs(3_600);
const HALF_AN_HOUR: Duration = Duration::from_secs(1_800);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RestoredStores {
    Both,
    Database,
    Ledger,
}

/// The progress between the backup and the restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Since {
    /// The queues contain messages from the time between backup and restore.
    UnderWay,
    /// All uploaded files have been read, and the queues are empty.
    Done,
}

/// Searches in different states at the time of the backup.
struct Searches {
    /// No file has arrived in time, and the timeout message waits in its queue.
    timing_out: AnnouncedSearch,
    announced: AnnouncedSearch,
    /// One of two files has arrived.
    uploading: AnnouncedSearch,
    /// The parse commands wait in their queue.
    parsing: [AnnouncedSearch; 2],
    /// The search is deleted after the backup.
    completed: AnnouncedSearch,
}

impl Searches {
    async fn begin(deployment: &Deployment) -> Result<Self, Unexpected> {
        let one = |name: &str| deployment.announce_one(name.to_owned(), 1);
        let timing_out = one("timing out").await?;
        deployment.pass(1).await?;
        deployment.host.advance(HALF_AN_HOUR);
        let searches = Self {
            timing_out,
            announced: one("announced").await?,
            uploading: deployment.announce_one("uploading".to_owned(), 2).await?,
            parsing: [one("parsing").await?, one("parsing too").await?],
            completed: one("completed").await?,
        };
        deployment.pass(1).await?;
        deployment.upload(&[searches.completed.clone(), searches.uploading.clone()]).await?;
        deployment.run().await?;
        deployment.upload(&searches.parsing).await?;
        deployment.deliver(&SAGA).await?;
        deployment.host.advance(HALF_AN_HOUR);
        deployment.sweep().await?;
        assert_eq!((deployment.depth(&PARSE).await?, deployment.depth(&SAGA).await?), (2, 1));
        use JobState::{Completed, Parsing, Uploading};
        for (search, state) in
            searches.all().into_iter().zip([Uploading, Uploading, Uploading, Parsing, Parsing, Completed])
        {
            assert_eq!(state_of(deployment, search).await?, Some(state));
        }
        Ok(searches)
    }

    fn all(&self) -> [SearchId; 6] {
        let [first, second] = &self.parsing;
        [&self.timing_out, &self.announced, &self.uploading, first, second, &self.completed]
            .map(|search| search.search_id)
    }

    /// Continues the work: the missing files arrive, and another search is announced.
    async fn continue_work(
        &self,
        deployment: &Deployment,
        since: Since,
    ) -> Result<AnnouncedSearch, Unexpected> {
        deployment.host.advance(Duration::from_secs(1));
        // One of the files has been read, but the saga has not received its event yet.
        assert_eq!(deployment.deliver_one(&PARSE).await?, 1);
        let start = SearchService::over(&deployment.backend.ports, &functions::SYSTEM)?;
        let deleted = start.delete(&ProjectAccess::All, self.completed.search_id).await?;
        assert_eq!(deleted, Deletion::Accepted);
        deployment.upload(&[self.announced.clone(), self.timing_out.clone()]).await?;
        deployment.upload_file(&self.uploading, 1).await?;
        let later = deployment.announce_one("later".to_owned(), 1).await?;
        deployment.upload_file(&later, 0).await?;
        if since == Since::Done {
            deployment.pass(2).await?;
            for search in self.all().into_iter().chain([later.search_id]) {
                let expected = (search != self.completed.search_id).then_some(JobState::Completed);
                assert_eq!(state_of(deployment, search).await?, expected);
            }
        }
        Ok(later)
    }
}

async fn state_of(deployment: &Deployment, search: SearchId) -> Result<Option<JobState>, Unexpected> {
    Ok(deployment.backend.ports.jobs()?.job(search).await?.map(|job| job.state))
}

/// Performs the operator's steps from docs/backup.md after the restore, before the functions run again.
async fn follow_the_runbook(deployment: &Deployment, what: RestoredStores) -> TestResult {
    let reading = match what {
        RestoredStores::Ledger => OpenReads::Continue,
        RestoredStores::Both | RestoredStores::Database => OpenReads::End,
    };
    let start = SearchService::over(&deployment.backend.ports, &functions::SYSTEM)?;
    let after = AfterRestore::new(start, reading, "Ann".to_owned());
    for job in deployment.backend.ports.jobs()?.unfinished().await? {
        assert_ne!(after.settle(job.search_id).await?, RestoreOutcome::Busy, "{}", job.search_id);
    }
    Ok(())
}

/// Waits until all deadlines of the searches have passed.
async fn wait_for_deadlines(deployment: &Deployment) -> TestResult {
    deployment.pass(5).await?;
    for _ in 0..DEADLINES {
        deployment.host.advance(HOUR);
        deployment.pass(1).await?;
    }
    Ok(())
}

/// Repairs the cancelled searches.
async fn repair(deployment: &Deployment, searches: &[SearchId]) -> Result<Vec<SearchId>, Unexpected> {
    let start = SearchService::over(&deployment.backend.ports, &functions::SYSTEM)?;
    let mut repairs = Vec::new();
    for search in searches {
        if state_of(deployment, *search).await? == Some(JobState::Error) {
            let request = NewRepair::default();
            match start.repair(&ProjectAccess::All, *search, &request, None).await? {
                Repair::Announced(announced) => repairs.push(announced.search_id),
                other => panic!("{search} cannot be repaired: {other:?}"),
            }
        }
    }
    deployment.pass(5).await?;
    Ok(repairs)
}

/// Checks that no search waits, queues and outboxes are empty, and each file that a search has read is stored once.
async fn check(deployment: &Deployment, environment: &Environment, searches: &[SearchId]) -> TestResult {
    let (jobs, study_stores) = (deployment.backend.ports.jobs()?, deployment.backend.ports.study_stores()?);
    assert_eq!(jobs.unfinished().await?, [], "a search never ends");
    let mut stored = 0;
    for search in searches {
        let Some(job) = jobs.job(*search).await? else { continue };
        for file in &job.files {
            let studies = study_stores.read_studies.studies(*search, file.file_id, 0, 100).await?;
            let records: Vec<u64> = studies.iter().map(|study| study.record).collect();
            let expected = if job.state == JobState::Completed { RECORDS } else { 0 };
            assert_eq!(records, (1..=expected).collect::<Vec<_>>(), "{:?}: {file:?}", job.name);
            stored += expected;
        }
    }
    let database = environment.database().await?;
    let count =
        async |name: &str, filter| database.collection::<Document>(name).count_documents(filter).await;
    assert_eq!(count(collections::STUDY, doc! {}).await?, stored, "a study belongs to no search");
    for name in [collections::SAGA, collections::SESSION] {
        assert_eq!(
            count(name, doc! { "Outbox.0": { "$exists": true } }).await?,
            0,
            "{name} has effects left"
        );
    }
    for spec in QUEUES.iter().filter(|spec| spec.receive_limit.is_some()) {
        assert_eq!(deployment.depth(&spec.queue).await?, 0, "queue {}", spec.queue);
        let dead = spec.dead_letters.as_ref().unwrap();
        assert_eq!(deployment.depth(dead).await?, 0, "queue {dead}");
    }
    Ok(())
}

/// Checks that `check` finds and deletes exactly the studies of an import that does not exist.
async fn check_deletes_orphans(environment: &Environment) -> TestResult {
    let check =
        |options: &[&str]| environment.program().run(&[&["check", "--json"], options].concat()).lines();
    assert_eq!(check(&[]), Vec::<Value>::new(), "every study belongs to an import");
    let studies = environment.database().await?.collection::<Document>(collections::STUDY);
    let mut orphan = studies.find_one(doc! {}).await?.ok_or("no study is stored")?;
    let search = Uuid::new_v4();
    orphan.insert("_id", Bson::from(mongodb::bson::Uuid::new()));
    orphan.insert("SearchId", Bson::from(mongodb::bson::Uuid::from_bytes(search.into_bytes())));
    studies.insert_one(orphan).await?;
    let before = studies.count_documents(doc! {}).await?;
    for (options, is_deleted) in [(&[][..], false), (&["--delete"][..], true)] {
        let found = check(options);
        let found: Vec<_> =
            found.iter().map(|file| (&file["search_id"], &file["studies"], &file["deleted"])).collect();
        assert_eq!(found, [(&json!(search), &json!(1), &json!(is_deleted))]);
    }
    assert_eq!(studies.count_documents(doc! {}).await?, before - 1);
    assert_eq!(check(&[]), Vec::<Value>::new());
    Ok(())
}

/// The expected final states: of the searches in the backup, in their order, and of the one announced later.
type Ends = ([Option<JobState>; 6], Option<JobState>);

async fn rehearse(what: RestoredStores, since: Since, expected: Ends) -> TestResult {
    Environment::with(async |environment| {
        let deployment = Deployment::open(&environment, &QUEUES).await?;
        let searches = Searches::begin(&deployment).await?;
        let backup = Backup::take(&environment).await?;
        let later = searches.continue_work(&deployment, since).await?;
        if what != RestoredStores::Ledger {
            backup.restore_database(&environment).await?;
        }
        if what != RestoredStores::Database {
            backup.restore_tables(&environment).await?;
        }
        let unfinished = deployment.backend.ports.jobs()?.unfinished().await?.len();
        let shown = environment.program().run(&["after-restore", "--dry-run", "--json"]).lines();
        assert_eq!(shown.len(), unfinished);
        follow_the_runbook(&deployment, what).await?;
        wait_for_deadlines(&deployment).await?;
        let mut ends = Vec::new();
        for search in searches.all() {
            ends.push(state_of(&deployment, search).await?);
        }
        assert_eq!(
            (ends.as_slice(), state_of(&deployment, later.search_id).await?),
            (&expected.0[..], expected.1)
        );
        let mut all = searches.all().to_vec();
        all.push(later.search_id);
        let repairs = repair(&deployment, &all).await?;
        for search in &repairs {
            assert_eq!(
                state_of(&deployment, *search).await?,
                Some(JobState::Completed),
                "a repair reads it again"
            );
        }
        all.extend(repairs);
        check(&deployment, &environment, &all).await?;
        check_deletes_orphans(&environment).await
    })
    .await
}

use JobState::{Completed, Error};

/// Searches that were being read are cancelled. Searches that wait for files find them and continue.
const RECOVERED: [Option<JobState>; 6] = {
    let (completed, cancelled) = (Some(Completed), Some(Error));
    [completed, completed, completed, cancelled, cancelled, completed]
};

/// Every search continues, and the deleted search stays deleted.
const CONTINUED: [Option<JobState>; 6] = {
    let completed = Some(Completed);
    [completed, completed, completed, completed, completed, None]
};

#[tokio::test(flavor = "multi_thread")]
async fn full_restore_with_later_messages_in_queues() -> TestResult {
    rehearse(RestoredStores::Both, Since::UnderWay, (RECOVERED, None)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn full_restore_after_reading() -> TestResult {
    rehearse(RestoredStores::Both, Since::Done, (RECOVERED, None)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn database_restore_with_later_messages_in_queues() -> TestResult {
    // The later search is recreated from the notification of its file, and the ledger has its token.
    rehearse(RestoredStores::Database, Since::UnderWay, (RECOVERED, Some(Completed))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn database_restore_after_reading() -> TestResult {
    rehearse(RestoredStores::Database, Since::Done, (RECOVERED, None)).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ledger_restore_with_later_messages_in_queues() -> TestResult {
    rehearse(RestoredStores::Ledger, Since::UnderWay, (CONTINUED, Some(Completed))).await
}

#[tokio::test(flavor = "multi_thread")]
async fn ledger_restore_after_reading() -> TestResult {
    rehearse(RestoredStores::Ledger, Since::Done, (CONTINUED, Some(Completed))).await
}
