//! Cancelled and deleted searches: nothing of them remains.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use embedded::{Call, Phase};
use imports::queues::{CONTROL, PARSE, SAGA, UPLOADS};
use imports::{FindObjects, JobState, ProjectId, ReadObject, ReadStudies, SearchId};
use jiff::SignedDuration;
use messages::{Disposition, Host, ReceiveMessages, ReceivedMessage};
use outbox::{ReadViews, WriteViews};
use service::{Cancellation, Deletion, ProjectAccess};

use crate::parsing::commands;
use crate::sessions::settle;
use crate::world::{self, CrashAt, Functions, Slow, TWO_RECORDS, World, body, deliveries};

/// The reader is cancelled during the second batch.
#[tokio::test]
async fn search_cancelled_during_read_keeps_nothing() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    let search = announced.search_id;
    for file in 0..2 {
        world.upload(&announced, file, &TWO_RECORDS.repeat(1_000)).await;
    }
    world.deliver_all(&[&UPLOADS, &CONTROL, &SAGA]).await;
    let commands = world.take(&PARSE).await;
    let [first, second] = &commands[..] else { panic!("{commands:?}") };
    world.deliver(&PARSE, std::slice::from_ref(first)).await;
    let stall = CrashAt::new(Call::StudiesStore, Phase::Before, 2);
    let functions = world.crashing(&stall);
    let queue = PARSE;
    let reading = world::call(&functions, &queue, std::slice::from_ref(second));
    let answers = stall
        .stall(reading, async {
            let asked = world.functions.start_upload.cancel(&ProjectAccess::All, search).await.unwrap();
            assert_eq!(asked, Cancellation::Accepted);
            world.run().await;
        })
        .await;
    assert!(matches!(answers[..], [Disposition::Retry { .. }]), "{answers:?}");
    world.host.advance(Duration::from_secs(61));
    world.run().await;
    let job = world.job(search).await;
    assert_eq!((job.state, job.studies()), (JobState::Error, 0));
    assert_eq!(job.reason.as_deref(), Some(imports::saga::CANCELLED));
    assert_eq!(world.studies(search).await, []);
    assert_eq!(world.store().parsed(search).await.unwrap(), []);
    let again = world.functions.start_upload.cancel(&ProjectAccess::All, search).await.unwrap();
    assert_eq!(again, Cancellation::Accepted);
}

#[tokio::test]
async fn search_whose_uploads_timed_out_is_not_cancelled() {
    let world = World::new();
    let search = world.announce(&["a.ris"]).await.search_id;
    world.run().await;
    // The deadline of the uploads, and that of the scan of the bucket.
    for _ in 0..2 {
        world.pass(Duration::from_secs(25 * 3600)).await;
        world.run().await;
    }
    let job = world.job(search).await;
    assert!(job.reason.as_deref().is_some_and(|reason| reason.starts_with("upload timed out")), "{job:?}");
    let asked = world.functions.start_upload.cancel(&ProjectAccess::All, search).await.unwrap();
    assert_eq!(asked, Cancellation::TooLate);
}

#[tokio::test]
async fn ended_search_is_deleted_with_all_data() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let (search, start_upload) = (announced.search_id, &world.functions.start_upload);
    world.run().await;
    assert_eq!(start_upload.delete(&ProjectAccess::All, search).await.unwrap(), Deletion::Running);
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    world.pass(Duration::from_secs(1)).await;
    let other = world.announce(&["b.ris"]).await;
    world.upload(&other, 0, TWO_RECORDS).await;
    world.run().await;
    let file = world.job(search).await.files[0].file_id;
    let late = world.store().view(search).await.unwrap().unwrap();
    for wanted in [Deletion::Accepted, Deletion::Unknown] {
        assert_eq!(start_upload.delete(&ProjectAccess::All, search).await.unwrap(), wanted);
    }
    world.run().await;
    // A late copy of an effect does not restore it.
    world.store().write(&[late]).await.unwrap();
    assert_eq!(world.jobs().job(search).await.unwrap(), None);
    let listed = world.jobs().of_project(ProjectId::from_uuid(uuid::Uuid::nil()), None, 10).await.unwrap();
    assert_eq!(listed.items.iter().map(|job| job.search_id).collect::<Vec<_>>(), [other.search_id]);
    assert_eq!(world.store().studies(search, file, 0, 10).await.unwrap(), []);
    let key = &announced.files[0].upload.fields["key"];
    assert_eq!(world.store().head(embedded::BUCKET, key, None).await.unwrap(), None);
    assert_eq!(world.store().decisions(search).await.unwrap(), [], "nor what was decided about its messages");
    assert!(!world.store().decisions(other.search_id).await.unwrap().is_empty());
    assert_eq!(world.studies(other.search_id).await.len(), 2);
}

#[tokio::test]
async fn crashed_deletion_completes_or_never_started() {
    for (call, phase) in [
        (Call::SessionCommit, Phase::Before),
        (Call::SessionCommit, Phase::After),
        (Call::ViewsWrite, Phase::Before),
        (Call::ViewsWrite, Phase::After),
    ] {
        let world = World::new();
        let announced = world.announce(&["a.ris"]).await;
        world.upload(&announced, 0, TWO_RECORDS).await;
        world.run().await;
        world.pass(Duration::from_secs(1)).await;
        let file = world.job(announced.search_id).await.files[0].file_id;
        let crash = CrashAt::new(call, phase, 1);
        crash
            .kill(world.crashing(&crash).start_upload.delete(&ProjectAccess::All, announced.search_id))
            .await;
        settle(&world).await;
        world.run().await;
        let left = world.store().studies(announced.search_id, file, 0, 10).await.unwrap().len();
        let is_there = world.jobs().job(announced.search_id).await.unwrap().is_some();
        let begun = (call, phase) != (Call::SessionCommit, Phase::Before);
        assert_eq!((is_there, left), if begun { (false, 0) } else { (true, 2) }, "{call:?} {phase:?}");
    }
}

#[tokio::test]
async fn crashed_deletion_is_finished_by_next_delivery() {
    for call in
        [Call::StudiesRemove, Call::ObjectsFind, Call::ObjectsRemove, Call::HistoryRemove, Call::ViewsWrite]
    {
        for phase in [Phase::Before, Phase::After] {
            let world = World::new();
            let announced = world.announce(&["a.ris"]).await;
            world.upload(&announced, 0, TWO_RECORDS).await;
            world.run().await;
            world.pass(Duration::from_secs(1)).await;
            let file = world.job(announced.search_id).await.files[0].file_id;
            world.functions.start_upload.delete(&ProjectAccess::All, announced.search_id).await.unwrap();
            let commands = world.take(&PARSE).await;
            let crash = CrashAt::new(call, phase, 1);
            let functions = world.crashing(&crash);
            crash.kill(world::call(&functions, &PARSE, &commands)).await;
            world.host.advance(Duration::from_secs(61));
            world.run().await;
            let prefix = format!("uploads/{}/{}/", uuid::Uuid::nil(), announced.search_id);
            assert_eq!(world.store().find(&prefix).await.unwrap(), [], "{call:?} {phase:?}");
            let studies = world.store().studies(announced.search_id, file, 0, 10).await.unwrap();
            assert_eq!(studies, [], "{call:?} {phase:?}");
            assert_eq!(world.jobs().job(announced.search_id).await.unwrap(), None);
        }
    }
}

/// Functions whose invocations last one second, which is enough for part of a file.
struct Turns<'a> {
    world: &'a World,
    functions: Functions,
}

impl<'a> Turns<'a> {
    fn new(world: &'a World) -> Self {
        Self::with(world, Call::StudiesSharing)
    }

    /// Returns functions for which this call takes as long as an invocation lasts.
    fn with(world: &'a World, slow: Call) -> Self {
        let functions = world.crashing(&Arc::new(Slow(slow, Arc::clone(&world.host))));
        Self { world, functions }
    }

    /// Handles a command for one second; returns the messages that are visible then.
    async fn take(&self, batch: &[ReceivedMessage]) -> Vec<ReceivedMessage> {
        let deadline = self.world.host.now().checked_add(SignedDuration::from_secs(1)).unwrap();
        let answers = self.functions.behind(&PARSE).consume(&deliveries(batch), Some(deadline)).await;
        assert_eq!(answers, [Disposition::Acknowledge]);
        self.world.store().answer(&PARSE, &batch[0].receipt, &answers[0]).await.unwrap();
        self.world.take(&PARSE).await
    }

    /// Starts a search whose file is read and whose studies are partly marked; returns the command that continues the
    /// marking.
    async fn begin(&self, file: &str) -> (SearchId, Vec<ReceivedMessage>) {
        let (announced, parse) = commands(self.world, &[("a.ris", file)]).await;
        let reading_on = self.take(&parse).await;
        assert_eq!(body(&reading_on[0]).name, "StartParsing", "some of its studies are marked");
        assert_eq!(self.world.store().parsed(announced.search_id).await.unwrap().len(), 1);
        self.world.host.advance(Duration::from_secs(1));
        (announced.search_id, reading_on)
    }

    /// Returns the number of studies of `search` that repeat a study of `other`.
    async fn repeated(&self, search: SearchId, other: SearchId) -> usize {
        let studies = self.world.studies(search).await;
        studies.iter().filter(|study| study.duplicate.is_some_and(|of| of.search_id == other)).count()
    }
}

/// Returns each study twice, because studies without shared keys are not looked up.
fn studies_twice(which: Range<u32>) -> String {
    let study = |n| format!("TY  - JOUR\nTI  - Study {n}\nC2  - {}\nER  - \n\n", 30_000_000 + n);
    which.flat_map(|n| [study(n), study(n)]).collect()
}

fn a_thousand_studies() -> String {
    studies_twice(0..500)
}

/// Each invocation lasts one second, which is enough for some of the studies. The reader that wanted to continue runs
/// in between.
#[tokio::test]
async fn large_file_is_deleted_in_several_invocations() {
    let world = World::new();
    let turns = Turns::new(&world);
    let file = a_thousand_studies();
    let (search, reading_on) = turns.begin(&file).await;
    let (other, parse) = commands(&world, &[("b.ris", &file)]).await;
    world.deliver(&PARSE, &parse).await;
    assert_eq!(turns.repeated(other.search_id, search).await, 1_000);
    let stall = CrashAt::new(Call::ReadingBegin, Phase::Before, 1);
    let functions = world.crashing(&stall);
    let (mut batch, mut named) = (Vec::new(), Vec::new());
    stall
        .stall(world::call(&functions, &PARSE, &reading_on), async {
            let asked = world.functions.start_upload.cancel(&ProjectAccess::All, search).await.unwrap();
            assert_eq!(asked, Cancellation::Accepted);
            world.deliver_all(&[&CONTROL, &SAGA]).await;
            batch = turns.take(&world.take(&PARSE).await).await;
            named.push(turns.repeated(other.search_id, search).await);
        })
        .await;
    while !batch.is_empty() {
        assert_eq!(body(&batch[0]).name, "TakeBackFiles");
        assert!(named.len() < 10, "the marking resumes where it stopped: {named:?}");
        batch = turns.take(&batch).await;
        named.push(turns.repeated(other.search_id, search).await);
    }
    assert_eq!(named, [750, 500, 250, 0, 0]);
    assert_eq!(world.studies(search).await, []);
}

/// Each invocation lasts one second, which is enough for half of a file. A deletion that did not recognise the deleted
/// files would take longer in each invocation, and never end.
#[tokio::test]
async fn deletion_of_many_files_takes_several_invocations() {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris", "c.ris"]).await;
    let search = announced.search_id;
    for file in 0..3 {
        world.upload(&announced, file, TWO_RECORDS).await;
    }
    world.run().await;
    world.host.advance(Duration::from_secs(1));
    let files = world.job(search).await.files;
    let asked = world.functions.start_upload.delete(&ProjectAccess::All, search).await.unwrap();
    assert_eq!(asked, Deletion::Accepted);
    world.deliver_all(&[&CONTROL]).await;
    let turns = Turns::with(&world, Call::ReadingPlace);
    let (mut batch, mut left) = (world.take(&PARSE).await, Vec::new());
    while !batch.is_empty() {
        assert!(left.len() < 10, "the deletion resumes where it stopped: {left:?}");
        batch = turns.take(&batch).await;
        let mut studies = 0;
        for file in &files {
            studies += world.store().studies(search, file.file_id, 0, 10).await.unwrap().len();
        }
        left.push(studies);
    }
    assert_eq!(left, [6, 4, 4, 2, 2, 0]);
    assert_eq!(world.jobs().job(search).await.unwrap(), None);
}

/// An earlier search is read while the duplicates of a later one are marked, and the worker that continues the marking
/// sees it.
#[tokio::test]
async fn file_added_during_marking_is_included() {
    let world = World::new();
    let turns = Turns::new(&world);
    let (earlier, parse_earlier) = commands(&world, &[("a.ris", &a_thousand_studies())]).await;
    world.host.advance(Duration::from_secs(1));
    let (later, mut batch) = turns.begin(&studies_twice(250..750)).await;
    world.deliver(&PARSE, &parse_earlier).await;
    let mut count = 0;
    while !batch.is_empty() {
        assert_eq!(body(&batch[0]).name, "StartParsing");
        batch = turns.take(&batch).await;
        count += 1;
    }
    assert!(count > 1, "it took {count} turns");
    assert_eq!(turns.repeated(earlier.search_id, earlier.search_id).await, 500);
    assert_eq!(turns.repeated(later, earlier.search_id).await, 500);
    assert_eq!(turns.repeated(later, later).await, 250);
}

/// The studies of this search are hidden, so no other study may be marked as a duplicate of them. Otherwise a second
/// import of the file would consist of duplicates only.
#[tokio::test]
async fn file_abandoned_by_search_is_deleted() {
    let dead = || Disposition::DeadLetter { reason: "it was received too often".to_owned() };
    for (how, answer) in [("never ends", Disposition::Acknowledge), ("is given up", dead())] {
        let world = World::new();
        let (turns, file) = (Turns::new(&world), a_thousand_studies());
        let (search, reading_on) = turns.begin(&file).await;
        world.store().answer(&PARSE, &reading_on[0].receipt, &answer).await.unwrap();
        world.run().await;
        world.pass(Duration::from_secs(24 * 3_600)).await;
        world.run().await;
        assert_eq!(world.job(search).await.state, JobState::Error, "{how}");
        assert_eq!(world.studies(search).await, [], "{how}");
        assert_eq!(world.store().parsed(search).await.unwrap(), [], "{how}");
        let (again, parse) = commands(&world, &[("a.ris", &file)]).await;
        world.deliver(&PARSE, &parse).await;
        // A late duplicate of the command.
        world::call(&world.functions, &PARSE, &reading_on).await;
        world.run().await;
        assert_eq!(world.job(again.search_id).await.studies(), 1_000, "{how}");
        assert_eq!(turns.repeated(again.search_id, search).await, 0, "{how}");
    }
}
