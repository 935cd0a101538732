//! Restores of the database, the ledger, or both to an earlier time, while the queues keep their messages. Undone work
//! is not repeated, and stored data is not lost.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use embedded::{Call, Phase};
use imports::queues::{CONTROL, PARSE, SAGA, UPLOADS};
use imports::{FindObjects, JobState, Outcome, ProjectId, ReadStudies, SearchId, StoredFile, StudyRef};
use messages::{Disposition, ReceiveMessages};
use outbox::ReadViews;
use rusqlite::Connection;
use saga::failures::{FailureStatus, Retry, Selection};
use service::orphan_studies::{OrphanReason, OrphanStudies};
use service::{
    AfterRestore, AnnouncedSearch, Cancellation, CreateOutcome, DecisionKind, DecisionOutcome,
    DecisionRequest, Deletion, FileRefusal, NewFile, NewRepair, NewSearch, OpenReads, ProjectAccess, Refusal,
    Repair, RestoreOutcome,
};
use tempfile::TempDir;

use crate::failures::{gather, run_to_the_end};
use crate::world::{CrashAt, World, call};

/// The tables of the ledger and of the memory of processed messages.
const LEDGER: [&str; 2] = ["ledger", "processed"];
/// The tables that no restore changes: those of the queues and of the uploaded files.
const OUTSIDE: [&str; 4] = ["message", "upload_grant", "object", "pending_upload"];
/// The number of hours after which all deadlines of a search have passed.
const DEADLINES: u32 = 26;
const HOUR: Duration = Duration::from_secs(3_600);
/// The time after which the document of an ended search has expired.
const LIFETIME: Duration = Duration::from_hours(32 * 24);
/// Two studies with DOIs.
const TWO_STUDIES: &str = "TY  - JOUR\nTI  - First\nDO  - 10.5555/first\nER  - \n\n\
                           TY  - JOUR\nTI  - Second\nDO  - 10.5555/second\nER  - \n";
/// A file that no reader accepts.
const NO_REFERENCES: &str = "\u{1}\u{2}\u{3}";

/// The stores that are restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Database,
    Ledger,
    Both,
}

impl What {
    const ALL: [Self; 3] = [Self::Database, Self::Ledger, Self::Both];

    fn has_database(self) -> bool {
        self != Self::Ledger
    }

    fn includes(self, table: &str) -> bool {
        let is_ledger = LEDGER.contains(&table);
        !OUTSIDE.contains(&table) && if is_ledger { self != Self::Database } else { self.has_database() }
    }
}

/// A copy of all stores at one time.
struct Backup(TempDir);

impl Backup {
    fn take(world: &World) -> Self {
        let folder = TempDir::new().unwrap();
        let copy = folder.path().join("copy.sqlite");
        open(world.folder()).execute("VACUUM INTO ?1", [copy.to_str().unwrap()]).unwrap();
        Self(folder)
    }

    /// Restores the stores of an installation. Its functions have not run again.
    fn restored(&self, world: World, what: What) -> World {
        world.restarted(|folder| {
            let database = open(folder);
            let copy = self.0.path().join("copy.sqlite");
            database.execute("ATTACH DATABASE ?1 AS copy", [copy.to_str().unwrap()]).unwrap();
            let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'";
            let tables: Vec<String> = {
                let mut named = database.prepare(tables).unwrap();
                named.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
            };
            for table in tables.iter().filter(|table| what.includes(table)) {
                let change =
                    format!("DELETE FROM main.{table}; INSERT INTO main.{table} SELECT * FROM copy.{table};");
                database.execute_batch(&change).unwrap();
            }
        })
    }
}

fn open(folder: &Path) -> Connection {
    let database = Connection::open(folder.join("search-import.sqlite")).unwrap();
    database.busy_timeout(Duration::from_secs(5)).unwrap();
    database
}

/// Returns the number of stored studies, whether or not a search counts them.
fn stored(world: &World) -> u32 {
    open(world.folder()).query_row("SELECT count(*) FROM study", [], |row| row.get(0)).unwrap()
}

/// Performs the steps of docs/backup.md before the functions run again.
async fn settle(world: &World, what: What) -> Vec<(SearchId, RestoreOutcome)> {
    let reading = if what.has_database() { OpenReads::End } else { OpenReads::Continue };
    let after = AfterRestore::new(world.functions.start_upload.clone(), reading, "Ann".to_owned());
    // The claims of stopped workers expire.
    world.host.advance(Duration::from_secs(60));
    let mut settled = Vec::new();
    // The operator may repeat the command.
    for _ in 0..2 {
        for job in after.unfinished().await.unwrap() {
            let done = after.settle(job.search_id).await.unwrap();
            assert_ne!(done, RestoreOutcome::Busy, "{}", job.search_id);
            settled.push((job.search_id, done));
        }
        for project in after.projects().await.unwrap().into_iter().filter(|_| what.has_database()) {
            after.compare_decided(project).await.unwrap();
        }
    }
    settled
}

/// Runs the functions every hour until all deadlines of a search have passed.
async fn pass_deadlines(world: &World) {
    for _ in 0..DEADLINES {
        world.pass(HOUR).await;
        world.run().await;
    }
}

/// Runs the installation until all deadlines have passed.
async fn wait_for_deadlines(world: &World) {
    world.run().await;
    pass_deadlines(world).await;
    assert_eq!(world.jobs().unfinished().await.unwrap(), [], "a search waits without a deadline");
}

/// Restores an installation as an operator does: the data, then `after-restore` for each search.
async fn restored(backup: &Backup, world: World, what: What) -> World {
    let world = backup.restored(world, what);
    settle(&world, what).await;
    world
}

/// Announces and uploads a file, whose parse command is then in its queue.
async fn commanded(world: &World) -> AnnouncedSearch {
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_STUDIES).await;
    world.deliver_all(&[&UPLOADS, &CONTROL, &SAGA]).await;
    announced
}

async fn imported(world: &World) -> AnnouncedSearch {
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_STUDIES).await;
    world.run().await;
    world.pass(Duration::from_secs(1)).await;
    world.run().await;
    announced
}

/// Asserts that the search is completed with both studies, and that no other studies are stored.
async fn assert_complete(world: &World, search: SearchId) {
    assert_eq!(world.job(search).await.state, JobState::Completed);
    assert_eq!((world.studies(search).await.len(), stored(world)), (2, 2));
    let parsed = world.store().parsed(search).await.unwrap();
    assert_eq!(parsed.len(), 1);
    let marked = world.store().marked(search, parsed[0].file_id).await.unwrap();
    assert_eq!(marked.duplicates(), 0);
}

async fn repaired(world: &World, search: SearchId) -> SearchId {
    let request = NewRepair::default();
    match world.functions.start_upload.repair(&ProjectAccess::All, search, &request, None).await.unwrap() {
        Repair::Announced(announced) => announced.search_id,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn queued_deletion_is_executed_only_if_recorded() {
    for what in What::ALL {
        let world = World::new();
        let search = imported(&world).await.search_id;
        let backup = Backup::take(&world);
        let deleted = world.functions.start_upload.delete(&ProjectAccess::All, search).await.unwrap();
        assert_eq!(deleted, Deletion::Accepted);
        let world = restored(&backup, world, what).await;
        wait_for_deadlines(&world).await;
        if what.has_database() {
            assert_complete(&world, search).await;
            let prefix = format!("uploads/{}/{search}/", uuid::Uuid::nil());
            assert_eq!(world.store().find(&prefix).await.unwrap().len(), 1, "{what:?}");
        } else {
            assert_eq!((world.jobs().job(search).await.unwrap(), stored(&world)), (None, 0));
        }
    }
}

#[tokio::test]
async fn recorded_deletion_is_executed_after_restore() {
    for what in What::ALL {
        let world = World::new();
        let search = imported(&world).await.search_id;
        world.functions.start_upload.delete(&ProjectAccess::All, search).await.unwrap();
        let backup = Backup::take(&world);
        let later = imported_later(&world).await;
        let world = restored(&backup, world, what).await;
        wait_for_deadlines(&world).await;
        assert_eq!(world.jobs().job(search).await.unwrap(), None);
        assert!(world.store().view(search).await.unwrap().is_some_and(|view| view.is_removed()));
        let expected = if what.has_database() { 0 } else { 2 };
        assert_eq!(stored(&world), expected, "{what:?} {later}");
    }
}

/// Reads another search while the commands of earlier searches wait.
async fn imported_later(world: &World) -> SearchId {
    let announced = world.announce(&["later.ris"]).await;
    world.upload(&announced, 0, TWO_STUDIES).await;
    world.deliver_all(&[&UPLOADS, &CONTROL, &SAGA]).await;
    let (own, others): (Vec<_>, Vec<_>) = world
        .take(&PARSE)
        .await
        .into_iter()
        .partition(|received| received.delivery.body.contains(&announced.search_id.to_string()));
    world.deliver(&PARSE, &own).await;
    world.deliver_all(&[&SAGA]).await;
    drop(others);
    announced.search_id
}

/// The next import of the same file has no duplicates.
#[tokio::test]
async fn parse_command_of_unknown_search_stores_nothing() {
    for what in [What::Database, What::Both] {
        let world = World::new();
        let backup = Backup::take(&world);
        commanded(&world).await;
        let world = restored(&backup, world, what).await;
        world.run().await;
        assert_eq!(stored(&world), 0, "{what:?}");
        let again = imported(&world).await.search_id;
        assert_complete(&world, again).await;
    }
}

/// The queues contain the reply or the command itself.
#[tokio::test]
async fn search_restored_before_reading_is_read_once() {
    for what in What::ALL {
        for is_read in [false, true] {
            let world = World::new();
            let announced = world.announce(&["a.ris"]).await;
            world.run().await;
            let backup = Backup::take(&world);
            world.upload(&announced, 0, TWO_STUDIES).await;
            world.deliver_all(&[&UPLOADS, &SAGA]).await;
            if is_read {
                world.deliver_all(&[&PARSE]).await;
            }
            let world = restored(&backup, world, what).await;
            wait_for_deadlines(&world).await;
            assert_complete(&world, announced.search_id).await;
        }
    }
}

/// The reply counts studies that the restore has removed.
#[tokio::test]
async fn search_restored_during_reading_ignores_earlier_replies() {
    for what in What::ALL {
        for is_answered in [false, true] {
            let world = World::new();
            let announced = commanded(&world).await;
            let backup = Backup::take(&world);
            world.deliver_all(&[&PARSE]).await;
            if is_answered {
                world.deliver_all(&[&SAGA]).await;
            }
            let world = backup.restored(world, what);
            let settled = settle(&world, what).await;
            wait_for_deadlines(&world).await;
            let mut search = announced.search_id;
            if what.has_database() {
                assert_eq!(
                    world.job(search).await.state,
                    JobState::Error,
                    "{what:?} {is_answered} {settled:?}"
                );
                assert_eq!(stored(&world), 0);
                search = repaired(&world, search).await;
                world.run().await;
            }
            assert_complete(&world, search).await;
        }
    }
}

/// The timer fires again with the same message id, and the commands that follow also have their earlier ids.
#[tokio::test]
async fn bucket_scan_is_repeated_after_restore() {
    for what in What::ALL {
        let world = World::new();
        let announced = world.announce(&["a.ris"]).await;
        world.run().await;
        let backup = Backup::take(&world);
        world.upload(&announced, 0, TWO_STUDIES).await;
        lose_notifications(&world).await;
        world.pass(HOUR + Duration::from_secs(1)).await;
        world.deliver_all(&[&SAGA, &PARSE]).await;
        let world = restored(&backup, world, what).await;
        wait_for_deadlines(&world).await;
        assert_complete(&world, announced.search_id).await;
    }
}

/// Loses the notifications of the uploads so far.
async fn lose_notifications(world: &World) {
    for notified in world.take(&UPLOADS).await {
        world.store().answer(&UPLOADS, &notified.receipt, &Disposition::Acknowledge).await.unwrap();
    }
}

/// The search was waiting for the result of the scan at the time of the backup, and the result came later.
#[tokio::test]
async fn answered_bucket_scan_is_repeated_after_restore() {
    for what in What::ALL {
        let world = World::new();
        let announced = world.announce(&["a.ris"]).await;
        world.run().await;
        world.upload(&announced, 0, TWO_STUDIES).await;
        lose_notifications(&world).await;
        world.pass(HOUR + Duration::from_secs(1)).await;
        world.deliver_all(&[&SAGA]).await;
        let backup = Backup::take(&world);
        world.deliver_all(&[&PARSE, &SAGA]).await;
        let world = restored(&backup, world, what).await;
        wait_for_deadlines(&world).await;
        assert_complete(&world, announced.search_id).await;
    }
}

#[tokio::test]
async fn undone_cancellation_deletes_nothing() {
    let world = World::new();
    let announced = commanded(&world).await;
    let reading = world.take(&PARSE).await;
    let backup = Backup::take(&world);
    let cancelled = world.functions.start_upload.cancel(&ProjectAccess::All, announced.search_id).await;
    assert_eq!(cancelled.unwrap(), Cancellation::Accepted);
    world.deliver_all(&[&SAGA]).await;
    let cancelling = world.take(&PARSE).await;
    assert_eq!((reading.len(), cancelling.len()), (1, 1));
    let world = backup.restored(world, What::Both);
    // The operator has not run `after-restore`, and the file is read.
    world.deliver(&PARSE, &reading).await;
    world.deliver_all(&[&SAGA]).await;
    world.deliver(&PARSE, &cancelling).await;
    assert_complete(&world, announced.search_id).await;
}

/// The file is stored for the repaired search, so the bucket scan of the repair does not find it.
#[tokio::test]
async fn repair_with_lost_announcement_finds_its_file() {
    for what in What::ALL {
        let world = World::new();
        let announced = world.announce(&["a.ris", "b.ris"]).await;
        world.upload(&announced, 0, TWO_STUDIES).await;
        world.run().await;
        pass_deadlines(&world).await;
        let original = announced.search_id;
        assert_eq!(world.job(original).await.state, JobState::Error);
        let before = Backup::take(&world);
        let repair = repaired(&world, original).await;
        let backup = if what.has_database() { Backup::take(&world) } else { before };
        world.take(&SAGA).await;
        if what.has_database() {
            world.host.advance(Duration::from_secs(61));
            world.run().await;
            assert_complete(&world, repair).await;
        }
        let world = restored(&backup, world, what).await;
        wait_for_deadlines(&world).await;
        assert_complete(&world, repair).await;
    }
}

/// A queue contains the announcement of the repair, but the restored database does not record the repair.
#[tokio::test]
async fn unrecorded_repair_is_not_repeated() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    world.upload(&announced, 0, TWO_STUDIES).await;
    world.run().await;
    pass_deadlines(&world).await;
    let backup = Backup::take(&world);
    let repair = repaired(&world, announced.search_id).await;
    let world = backup.restored(world, What::Database);
    settle(&world, What::Database).await;
    wait_for_deadlines(&world).await;
    assert_complete(&world, repair).await;
    let start = &world.functions.start_upload;
    let request = NewRepair::default();
    let again = start.repair(&ProjectAccess::All, announced.search_id, &request, None).await.unwrap();
    let expected = Refusal::Files(vec![(0, FileRefusal::UnderRepair(repair))]);
    assert!(matches!(&again, Repair::Refused(refusal) if *refusal == expected), "{again:?}");
}

/// If the ledger was not restored, it may show that the key was used for a repair that is lost.
#[tokio::test]
async fn lost_keyed_repair_is_announced_or_unknown() {
    for is_handled in [false, true] {
        let world = World::new();
        let announced = world.announce(&["a.ris", "b.ris"]).await;
        world.upload(&announced, 0, TWO_STUDIES).await;
        world.run().await;
        pass_deadlines(&world).await;
        let repair = async |world: &World, key: &str| {
            let (start, request) = (&world.functions.start_upload, NewRepair::default());
            start.repair(&ProjectAccess::All, announced.search_id, &request, Some(key)).await.unwrap()
        };
        // The backup contains the secret of the deployment.
        world.functions.start_upload.keyed_search(ProjectId::from_uuid(uuid::Uuid::nil()), "").await.unwrap();
        let backup = Backup::take(&world);
        let first = repair(&world, "key").await;
        assert!(matches!(first, Repair::Announced(_)), "{first:?}");
        if is_handled {
            world.run().await;
        }
        let world = backup.restored(world, What::Database);
        let mut again = repair(&world, "key").await;
        if is_handled {
            assert!(matches!(again, Repair::Refused(Refusal::KeyUnknown)), "{again:?}");
            again = repair(&world, "another key").await;
        }
        let Repair::Announced(again) = again else { panic!("{again:?}") };
        settle(&world, What::Database).await;
        wait_for_deadlines(&world).await;
        assert_complete(&world, again.search_id).await;
    }
}

/// A queue contains the announcement of the repair, but the restored database does not record the repair, and the repaired
/// search has not ended there.
#[tokio::test]
async fn unrecorded_repair_leaves_file_to_restored_search() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    world.upload(&announced, 0, TWO_STUDIES).await;
    world.run().await;
    let backup = Backup::take(&world);
    pass_deadlines(&world).await;
    let original = announced.search_id;
    assert_eq!(world.job(original).await.state, JobState::Error);
    let repair = repaired(&world, original).await;
    let world = restored(&backup, world, What::Database).await;
    wait_for_deadlines(&world).await;
    let outcome = world.job(repair).await.files[0].outcome.clone();
    let Some(Outcome::Failed { reason }) = &outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("before this repair"), "{reason}");
    assert_eq!(world.job(original).await.state, JobState::Error);
    let again = repaired(&world, original).await;
    world.run().await;
    assert_complete(&world, again).await;
}

/// The timer of the search that the restore has removed would end its successor early.
#[tokio::test]
async fn timer_of_lost_search_ends_nothing_after_restore() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let backup = Backup::take(&world);
    world.run().await;
    let attempt_tokens = |world: &World| -> usize {
        let item = "SELECT item FROM ledger WHERE partition_id = ?1";
        let id = announced.search_id.to_string();
        let item: String = open(world.folder()).query_row(item, [id], |row| row.get(0)).unwrap();
        item.matches("\"a:").count()
    };
    assert!(attempt_tokens(&world) > 0, "the ledger admits the timer");
    let world = restored(&backup, world, What::Database).await;
    assert_eq!(attempt_tokens(&world), 0);
    world.upload(&announced, 0, TWO_STUDIES).await;
    wait_for_deadlines(&world).await;
    assert_complete(&world, announced.search_id).await;
}

#[tokio::test]
async fn repair_ignores_objects_of_deleted_searches() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, NO_REFERENCES).await;
    world.run().await;
    let first = repaired(&world, announced.search_id).await;
    world.run().await;
    assert_eq!(world.job(first).await.state, JobState::Error);
    let start = &world.functions.start_upload;
    assert_eq!(start.delete(&ProjectAccess::All, announced.search_id).await.unwrap(), Deletion::Accepted);
    // The objects are stored until the command is handled.
    let asked = start.repair(&ProjectAccess::All, first, &NewRepair::default(), None).await.unwrap();
    assert!(matches!(asked, Repair::Refused(_)), "{asked:?}");
    world.run().await;
    let searches: BTreeSet<SearchId> =
        world.jobs().unfinished().await.unwrap().into_iter().map(|job| job.search_id).collect();
    assert_eq!(searches, BTreeSet::new());
}

async fn orphans(world: &World) -> (OrphanStudies, Vec<(StoredFile, OrphanReason)>) {
    let orphans = OrphanStudies::over(&world.backend.ports, &functions::SYSTEM, "Ann".to_owned()).unwrap();
    let (mut files, mut cursor) = (Vec::new(), None);
    loop {
        let page = orphans.page(cursor).await.unwrap();
        files.extend(page.files);
        let Some(next) = page.next else { return (orphans, files) };
        cursor = Some(next);
    }
}

/// The command to compare the studies of a decision is handled after the backup, so the restored database has the
/// decision without its marks.
#[tokio::test]
async fn marks_follow_decisions_after_restore() {
    for what in What::ALL {
        let world = World::new();
        let imports = [imported(&world).await, imported(&world).await];
        let studies = imports.map(|AnnouncedSearch { search_id, files }| {
            let file_id = files[0].file_id;
            StudyRef { search_id, file_id, record: 1 }
        });
        assert_eq!(marked(&world), 2);
        let project = ProjectId::from_uuid(uuid::Uuid::nil());
        let request = DecisionRequest {
            decision: DecisionKind::Different,
            studies: &studies,
            if_undecided: false,
            undoes: None,
        };
        let decided = world.functions.start_upload.decide(project, request, "Ann").await.unwrap();
        assert_eq!(decided, DecisionOutcome::Accepted { is_new: true });
        let backup = Backup::take(&world);
        world.run().await;
        assert_eq!(marked(&world), 1);
        let world = restored(&backup, world, what).await;
        world.run().await;
        assert_eq!(marked(&world), 1, "{what:?}");
    }
}

/// An action without an entry in the audit log is worse than an entry without an action.
#[tokio::test]
async fn audit_entry_precedes_comparison_after_restore() {
    let world = World::new();
    let imports = [imported(&world).await, imported(&world).await];
    let studies = imports.map(|AnnouncedSearch { search_id, files }| {
        let file_id = files[0].file_id;
        StudyRef { search_id, file_id, record: 1 }
    });
    let project = ProjectId::from_uuid(uuid::Uuid::nil());
    let request = DecisionRequest {
        decision: DecisionKind::Different,
        studies: &studies,
        if_undecided: false,
        undoes: None,
    };
    world.functions.start_upload.decide(project, request, "Ann").await.unwrap();
    let crash = CrashAt::new(Call::SessionCommit, Phase::Before, 1);
    let start = world.crashing(&crash).start_upload;
    let after = AfterRestore::new(start, OpenReads::End, "Ann".to_owned());
    crash.kill(after.compare_decided(project)).await;
    let log = world.functions.failures.store.audit_entries(10).await.unwrap();
    let done: Vec<_> = log.iter().map(|entry| (entry.by.as_str(), entry.did.as_str())).collect();
    assert_eq!(done, [("Ann", "compared after a restore")]);
}

/// Returns the number of studies that are marked as duplicates.
fn marked(world: &World) -> u32 {
    let marked = "SELECT count(*) FROM mark WHERE tier > 0";
    open(world.folder()).query_row(marked, [], |row| row.get(0)).unwrap()
}

/// An earlier version executed every parse command, so it may have left such studies.
#[tokio::test]
async fn orphan_studies_are_listed_and_deleted() {
    let world = World::new();
    let gone = imported(&world).await.search_id;
    let counted = imported(&world).await.search_id;
    let waiting = world.announce(&["b.ris"]).await;
    assert_eq!(orphans(&world).await.1, []);
    for table in ["saga", "job"] {
        let change = format!("DELETE FROM {table} WHERE search_id = ?1");
        open(world.folder()).execute(&change, [gone.to_string()]).unwrap();
    }
    assert_eq!((stored(&world), marked(&world)), (4, 2), "all of the second import are duplicates");
    let (check, found) = orphans(&world).await;
    let [(file, why)] = found[..] else { panic!("{found:?}") };
    assert_eq!((file.search_id, file.studies, why), (gone, 2, OrphanReason::UnknownSearch));
    assert_eq!(stored(&world), 4, "listing changes nothing");
    assert!(check.delete(&file).await.unwrap());
    assert_eq!((stored(&world), marked(&world)), (2, 0));
    assert_eq!(world.studies(counted).await.len(), 2);
    world.upload(&waiting, 0, TWO_STUDIES).await;
    world.deliver_all(&[&UPLOADS, &CONTROL, &SAGA, &PARSE]).await;
    assert_eq!(orphans(&world).await.1, [], "a file that is being read may count later");
}

/// The client repeats its request under the same key, so the search has the id that the messages in the queues name. If
/// the ledger was not restored, it may show that the key was used.
#[tokio::test]
async fn keyed_request_repeated_after_restore_is_imported_once() {
    #[derive(Debug, PartialEq, Eq)]
    enum Progress {
        Commanded,
        Read,
        Completed,
    }
    for what in What::ALL {
        for progress in [Progress::Commanded, Progress::Read, Progress::Completed] {
            let world = World::new();
            let project = ProjectId::from_uuid(uuid::Uuid::nil());
            let file = NewFile { name: "a.ris".to_owned(), size_bytes: TWO_STUDIES.len() as u64 };
            let request = NewSearch { name: "Gambling harms".to_owned(), files: vec![file] };
            world.functions.start_upload.keyed_search(project, "key").await.unwrap();
            let backup = Backup::take(&world);
            let announce = async |world: &World, key: &str| {
                let start = &world.functions.start_upload;
                match start.create_once(project, &request, key).await.unwrap() {
                    CreateOutcome::Announced(announced) => Some(announced),
                    CreateOutcome::Unknown => None,
                    CreateOutcome::Ended(_) => panic!("the file arrived"),
                    CreateOutcome::Differs => panic!("the requests are equal"),
                }
            };
            let announced = announce(&world, "key").await.unwrap();
            world.upload(&announced, 0, TWO_STUDIES).await;
            world.deliver_all(&[&UPLOADS, &CONTROL, &SAGA]).await;
            if progress != Progress::Commanded {
                world.deliver_all(&[&PARSE]).await;
            }
            let replies = world.take(&SAGA).await;
            if progress == Progress::Completed {
                world.deliver(&SAGA, &replies).await;
            }
            for reply in &replies {
                // The test delivers the message later.
                world.store().answer(&SAGA, &reply.receipt, &Disposition::Acknowledge).await.unwrap();
            }
            let world = restored(&backup, world, what).await;
            let mut again = announce(&world, "key").await;
            assert!(again.is_some() || what == What::Database, "{what:?} {progress:?}");
            if again.is_none() {
                again = announce(&world, "another key").await;
                world.upload(again.as_ref().unwrap(), 0, TWO_STUDIES).await;
            }
            let again = again.unwrap().search_id;
            world.deliver_all(&[&UPLOADS, &CONTROL, &SAGA]).await;
            if what.has_database() {
                // The scan finds the file, and the search expects a different reply from the one in the queue.
                if world.job(again).await.state == JobState::Uploading {
                    world.pass(HOUR + Duration::from_secs(1)).await;
                    world.deliver_all(&[&SAGA, &PARSE, &SAGA]).await;
                }
                assert_eq!(world.job(again).await.state, JobState::Parsing, "{what:?} {progress:?}");
            }
            call(&world.functions, &SAGA, &replies).await;
            wait_for_deadlines(&world).await;
            assert_complete(&world, again).await;
        }
    }
}

/// A client sends another request under a key whose first request is undone. The uploads for the first one are stored
/// under the ids of the files of the second one, and their notifications are in a queue or have been handled. A restore
/// of the database alone leaves a ledger that shows that the key was used.
#[tokio::test]
async fn request_reusing_undone_key_reads_own_files() {
    const OTHER: &str = "TY  - JOUR\nTI  - Third\nDO  - 10.5555/third\nER  - \n";
    for (undone_files, files, what, is_notified) in [
        (1, 1, What::Both, true),
        (1, 1, What::Both, false),
        (1, 2, What::Both, true),
        (1, 2, What::Both, false),
        (2, 1, What::Both, false),
        (30, 30, What::Both, false),
        (1, 1, What::Database, true),
    ] {
        let case = format!("{undone_files} {files} {what:?} {is_notified}");
        let world = World::new();
        let project = ProjectId::from_uuid(uuid::Uuid::nil());
        let announce = async |world: &World, name: &str, files: usize| {
            let files =
                (0..files).map(|index| NewFile { name: format!("{name}{index}.ris"), size_bytes: 100 });
            let request = NewSearch { name: "Gambling harms".to_owned(), files: files.collect() };
            world.functions.start_upload.create_once(project, &request, "key").await.unwrap()
        };
        world.functions.start_upload.keyed_search(project, "key").await.unwrap();
        let backup = Backup::take(&world);
        let CreateOutcome::Announced(undone) = announce(&world, "undone", undone_files).await else {
            panic!("refused")
        };
        world.deliver_all(&[&CONTROL, &SAGA]).await;
        for index in 0..undone_files {
            world.upload(&undone, index, TWO_STUDIES).await;
        }
        if is_notified {
            world.run().await;
        }
        let world = restored(&backup, world, what).await;
        let announced = match announce(&world, "other", files).await {
            CreateOutcome::Announced(announced) => announced,
            CreateOutcome::Unknown => {
                assert_eq!(what, What::Database, "the key is refused only if the ledger knows it");
                continue;
            }
            CreateOutcome::Ended(_) => panic!("the import has not ended"),
            CreateOutcome::Differs => panic!("the first request is not stored"),
        };
        assert_eq!(announced.search_id, undone.search_id);
        world.deliver_all(&[&CONTROL, &SAGA, &UPLOADS, &SAGA]).await;
        assert_eq!(world.job(undone.search_id).await.state, JobState::Uploading, "{case}");
        for index in 0..files {
            world.upload(&announced, index, OTHER).await;
        }
        wait_for_deadlines(&world).await;
        let search = announced.search_id;
        assert_eq!(world.job(search).await.state, JobState::Completed, "{case}");
        let studies = world.studies(search).await;
        let titles: BTreeSet<_> = studies.iter().map(|study| study.reference.title.as_str()).collect();
        assert_eq!((studies.len(), titles), (files, BTreeSet::from(["Third"])), "{case}");
        assert_eq!(usize::try_from(stored(&world)).unwrap(), files, "{case}");
    }
}

/// The deletion of the studies was handled before the restore, and its message is remembered.
#[tokio::test]
async fn cancellation_repeated_after_restore_deletes_studies() {
    for what in What::ALL {
        let world = World::new();
        let announced = world.announce(&["a.ris"]).await;
        world.upload(&announced, 0, TWO_STUDIES).await;
        world.deliver_all(&[&UPLOADS, &CONTROL, &SAGA, &PARSE]).await;
        let replies = world.take(&SAGA).await;
        assert_eq!(stored(&world), 2);
        let backup = Backup::take(&world);
        world.functions.start_upload.cancel(&ProjectAccess::All, announced.search_id).await.unwrap();
        world.deliver_all(&[&SAGA, &PARSE]).await;
        assert_eq!(stored(&world), 0);
        let world = restored(&backup, world, what).await;
        world.deliver(&SAGA, &replies).await;
        wait_for_deadlines(&world).await;
        assert_eq!(world.job(announced.search_id).await.state, JobState::Error, "{what:?}");
        assert_eq!(stored(&world), 0, "{what:?}");
    }
}

/// The search abandons its file before the restore and after it, and both commands have the same message id.
#[tokio::test]
async fn file_abandoned_again_after_restore_is_deleted() {
    for what in What::ALL {
        let world = World::new();
        let announced = world.announce(&["a.ris"]).await;
        world.run().await;
        let backup = Backup::take(&world);
        world.upload(&announced, 0, TWO_STUDIES).await;
        for notification in world.take(&UPLOADS).await {
            world.store().answer(&UPLOADS, &notification.receipt, &Disposition::Acknowledge).await.unwrap();
        }
        abandon(&world).await;
        assert_eq!((world.job(announced.search_id).await.state, stored(&world)), (JobState::Error, 0));
        let world = restored(&backup, world, what).await;
        if what.has_database() {
            abandon(&world).await;
        }
        wait_for_deadlines(&world).await;
        assert_eq!(world.job(announced.search_id).await.state, JobState::Error, "{what:?}");
        assert_eq!(stored(&world), 0, "{what:?}");
    }
}

/// Reads the files of a search and withholds the replies until the deadline of the search has passed.
async fn abandon(world: &World) {
    world.pass(HOUR + Duration::from_secs(1)).await;
    world.deliver_all(&[&SAGA, &PARSE, &SAGA, &PARSE]).await;
    assert_eq!(stored(world), 2);
    let replies = world.take(&SAGA).await;
    assert_eq!(replies.len(), 1);
    world.store().answer(&SAGA, &replies[0].receipt, &Disposition::Acknowledge).await.unwrap();
    pass_deadlines(world).await;
}

/// The operator retries the dead letter after the restore.
#[tokio::test]
async fn dead_lettered_deletion_is_executed_only_if_recorded() {
    for what in What::ALL {
        let world = World::new();
        let search = imported(&world).await.search_id;
        let backup = Backup::take(&world);
        let deleted = world.functions.start_upload.delete(&ProjectAccess::All, search).await.unwrap();
        assert_eq!(deleted, Deletion::Accepted);
        for command in world.take(&PARSE).await {
            let answer = Disposition::DeadLetter { reason: "a defect of an earlier version".to_owned() };
            world.store().answer(&PARSE, &command.receipt, &answer).await.unwrap();
        }
        let world = restored(&backup, world, what).await;
        wait_for_deadlines(&world).await;
        gather(&world).await;
        let open = Selection::of(FailureStatus::Open);
        let retry = Retry { selection: open, limit: None, per_second: 50, canary: 0 };
        world.functions.failures.retry(retry, "Ann").await.unwrap();
        run_to_the_end(&world).await;
        wait_for_deadlines(&world).await;
        match what.has_database() {
            true => assert_complete(&world, search).await,
            false => assert_eq!(stored(&world), 0, "{what:?}"),
        }
    }
}

/// A queue contains the parse command of the undone repair, and the client repairs the search again.
#[tokio::test]
async fn undone_repair_is_repeated_once() {
    for what in What::ALL {
        for is_read in [false, true] {
            let world = World::new();
            let announced = world.announce(&["a.ris", "b.ris"]).await;
            world.upload(&announced, 0, TWO_STUDIES).await;
            wait_for_deadlines(&world).await;
            let backup = Backup::take(&world);
            let mut repair = repaired(&world, announced.search_id).await;
            world.deliver_all(&[&CONTROL, &SAGA]).await;
            if is_read {
                world.deliver_all(&[&PARSE]).await;
            }
            let world = restored(&backup, world, what).await;
            wait_for_deadlines(&world).await;
            if what.has_database() {
                assert_eq!((world.jobs().job(repair).await.unwrap(), stored(&world)), (None, 0), "{what:?}");
                repair = repaired(&world, announced.search_id).await;
                world.run().await;
            }
            assert_complete(&world, repair).await;
        }
    }
}

/// A ledger that does not contain the search at all.
#[tokio::test]
async fn ledger_restored_before_announcement_loses_nothing() {
    for is_read in [false, true] {
        let world = World::new();
        let backup = Backup::take(&world);
        let announced = commanded(&world).await;
        if is_read {
            world.deliver_all(&[&PARSE]).await;
        }
        let world = backup.restored(world, What::Ledger);
        settle(&world, What::Ledger).await;
        wait_for_deadlines(&world).await;
        assert_complete(&world, announced.search_id).await;
    }
}

/// A file begins the search before its announcement, and the worker crashes before it writes the view, which lists it.
#[tokio::test]
async fn search_without_view_is_settled_after_restore() {
    let world = World::new();
    let before = Backup::take(&world);
    let announced = world.announce(&["a.ris"]).await;
    let world = before.restored(world, What::Database);
    world.take(&SAGA).await;
    world.upload(&announced, 0, TWO_STUDIES).await;
    world.deliver_all(&[&UPLOADS]).await;
    let stored = world.take(&SAGA).await;
    let crash = CrashAt::new(Call::SagaPersist, Phase::After, 1);
    crash.kill(call(&world.crashing(&crash), &SAGA, &stored)).await;
    let world = before.restored(world, What::Ledger);
    assert_eq!(world.jobs().unfinished().await.unwrap(), [], "the view is written");
    let settled = settle(&world, What::Ledger).await;
    assert_eq!(settled.first(), Some(&(announced.search_id, RestoreOutcome::Reading)));
    wait_for_deadlines(&world).await;
    assert_complete(&world, announced.search_id).await;
}

/// The backup is older than the lifetime of an ended document, and was made before the worker had written the last view.
#[tokio::test]
async fn search_ended_before_restore_is_not_reannounced() {
    for what in [What::Database, What::Both] {
        let world = World::new();
        let announced = commanded(&world).await;
        world.deliver_all(&[&PARSE]).await;
        let last = world.take(&SAGA).await;
        let crash = CrashAt::new(Call::SagaPersist, Phase::After, 1);
        crash.kill(call(&world.crashing(&crash), &SAGA, &last)).await;
        let backup = Backup::take(&world);
        world.pass(LIFETIME).await;
        let world = backup.restored(world, what);
        assert_eq!(settle(&world, what).await, [], "the search has ended");
        wait_for_deadlines(&world).await;
        assert_complete(&world, announced.search_id).await;
    }
}

/// The second restore has the same backup, and the queues contain messages of both lost periods.
#[tokio::test]
async fn search_restored_twice_is_read_once() {
    for what in What::ALL {
        for is_read in [false, true] {
            let mut world = World::new();
            let announced = world.announce(&["a.ris"]).await;
            world.run().await;
            let backup = Backup::take(&world);
            world.upload(&announced, 0, TWO_STUDIES).await;
            for _ in 0..2 {
                world.deliver_all(&[&UPLOADS, &SAGA]).await;
                world.pass(HOUR + Duration::from_secs(1)).await;
                world.deliver_all(&[&SAGA, &PARSE, &SAGA]).await;
                if is_read {
                    world.deliver_all(&[&PARSE]).await;
                }
                world = backup.restored(world, what);
                settle(&world, what).await;
            }
            wait_for_deadlines(&world).await;
            assert_complete(&world, announced.search_id).await;
        }
    }
}

/// The commands were handled after the backup, so no queue contains them.
#[tokio::test]
async fn studies_of_interrupted_deletion_are_found() {
    for what in [What::Database, What::Both] {
        let world = World::new();
        let search = imported(&world).await.search_id;
        world.functions.start_upload.delete(&ProjectAccess::All, search).await.unwrap();
        let backup = Backup::take(&world);
        world.run().await;
        assert_eq!(stored(&world), 0);
        let world = restored(&backup, world, what).await;
        wait_for_deadlines(&world).await;
        let (check, found) = orphans(&world).await;
        let [(file, reason)] = found[..] else { panic!("{found:?}") };
        assert_eq!((file.search_id, reason), (search, OrphanReason::DeletedSearch));
        assert!(check.delete(&file).await.unwrap());
        assert_eq!(stored(&world), 0, "{what:?}");
        let again = imported(&world).await.search_id;
        assert_complete(&world, again).await;
    }
}

#[tokio::test]
async fn studies_of_interrupted_cancellation_are_found() {
    for what in [What::Database, What::Both] {
        let world = World::new();
        let announced = world.announce(&["a.ris"]).await;
        world.upload(&announced, 0, TWO_STUDIES).await;
        world.deliver_all(&[&UPLOADS, &CONTROL, &SAGA, &PARSE]).await;
        world.functions.start_upload.cancel(&ProjectAccess::All, announced.search_id).await.unwrap();
        let replies = world.take(&SAGA).await;
        let (cancellation, _): (Vec<_>, Vec<_>) =
            replies.into_iter().partition(|received| crate::world::body(received).name == "SearchWithdrawn");
        world.deliver(&SAGA, &cancellation).await;
        assert_eq!((world.job(announced.search_id).await.state, stored(&world)), (JobState::Error, 2));
        let backup = Backup::take(&world);
        world.run().await;
        assert_eq!(stored(&world), 0);
        let world = restored(&backup, world, what).await;
        wait_for_deadlines(&world).await;
        let (check, found) = orphans(&world).await;
        let [(file, reason)] = found[..] else { panic!("{found:?}") };
        assert_eq!((file.search_id, reason), (announced.search_id, OrphanReason::UnreadFile));
        assert!(check.delete(&file).await.unwrap());
        assert_eq!(stored(&world), 0, "{what:?}");
    }
}
