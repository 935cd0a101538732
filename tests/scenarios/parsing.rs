//! One file: read again, read on, and read by two at once.

use std::fmt::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use dedup::ProcessedMessages;
use embedded::{Call, Phase};
use functions::parse_references::{self, ParseReferences};
use futures::future::{join, join_all};
use imports::queues::{PARSE, SAGA, UPLOADS};
use imports::{
    AttemptState, Duplicate, FileFence, FileId, JobState, Outcome, ParseAttempts, ParsedFile, PreparedStudy,
    Progress, Quarantined, ReadStudies, ReadingStatus, Reason, ReportProgress, SearchId, Study,
    WriteBatching, WriteStudies,
};
use jiff::SignedDuration;
use messages::{Consumer, Disposition, Host, ReceiveMessages, Received, StoreError};
use references::READER_VERSION;
use service::AnnouncedSearch;
use testing::ManualHost;

use crate::world::{CrashAt, TWO_RECORDS, World, deliveries};

/// Remembers what it is asked to store, and may fail.
pub(crate) struct Recording {
    store: Arc<dyn WriteStudies>,
    /// The records of each call.
    calls: Mutex<Vec<Vec<u64>>>,
    /// The call that fails, from 0.
    fails: Option<usize>,
    /// The clock, on which each call takes a second.
    host: Arc<ManualHost>,
}

#[async_trait]
impl WriteStudies for Recording {
    fn batching(&self) -> WriteBatching {
        self.store.batching()
    }

    fn prepare(&self, study: Study) -> Result<PreparedStudy, StoreError> {
        Ok(PreparedStudy::new((study.record, self.store.prepare(study)?)))
    }

    async fn store_prepared(
        &self,
        file: &FileFence,
        studies: Vec<PreparedStudy>,
        quarantined: Vec<Quarantined>,
    ) -> Result<(), StoreError> {
        let studies = studies.into_iter().map(PreparedStudy::into_inner::<(u64, PreparedStudy)>);
        let studies = studies.collect::<Result<Vec<_>, _>>()?;
        let (mut records, studies): (Vec<_>, Vec<_>) = studies.into_iter().unzip();
        records.extend(quarantined.iter().map(|quarantined| quarantined.record.number));
        let call = {
            let mut calls = self.calls.lock().unwrap();
            calls.push(records);
            calls.len() - 1
        };
        self.host.advance(Duration::from_secs(1));
        if self.fails == Some(call) {
            return Err(StoreError::unavailable("storing studies", "cut off"));
        }
        self.store.store_prepared(file, studies, quarantined).await
    }

    async fn discard(&self, file: &FileFence, then: Option<&ReadingStatus>) -> Result<FileFence, StoreError> {
        self.store.discard(file, then).await
    }

    async fn remove(
        &self,
        search: SearchId,
        file: FileId,
        refused: &ReadingStatus,
    ) -> Result<(), StoreError> {
        self.store.remove(search, file, refused).await
    }

    async fn finish(&self, file: &ParsedFile) -> Result<(), StoreError> {
        self.store.finish(file).await
    }

    async fn withdraw(
        &self,
        search: SearchId,
        file: FileId,
        refused: &ReadingStatus,
    ) -> Result<(), StoreError> {
        self.store.withdraw(search, file, refused).await
    }
}

/// Counts reports.
struct Counting(Mutex<Vec<Progress>>);

#[async_trait]
impl ReportProgress for Counting {
    async fn report(&self, _: SearchId, _: FileId, progress: Progress) -> Result<(), StoreError> {
        self.0.lock().unwrap().push(progress);
        Ok(())
    }
}

fn parser(world: &World) -> ParseReferences {
    ParseReferences::over(&world.backend.ports).unwrap()
}

/// What stands behind the queue of parse commands, with another parser.
fn guarded(world: &World, parser: ParseReferences) -> Arc<dyn Consumer> {
    world.backend.ports.engine.guard(parse_references::NAME, parser).unwrap()
}

pub(crate) fn recording(world: &World, fails: Option<usize>) -> (Arc<dyn Consumer>, Arc<Recording>) {
    let mut parser = ParseReferences { push_bytes: 64 << 10, ..parser(world) };
    let (store, host) = (parser.studies.clone(), Arc::clone(&world.host));
    let recording = Arc::new(Recording { store, calls: Mutex::default(), fails, host });
    parser.studies = recording.clone();
    (guarded(world, parser), recording)
}

/// A search whose parse commands are there.
pub(crate) async fn commands(world: &World, files: &[(&str, &str)]) -> (AnnouncedSearch, Vec<Received>) {
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    let announced = world.announce(&names).await;
    for (index, (_, content)) in files.iter().enumerate() {
        world.upload(&announced, index, content).await;
    }
    world.deliver_all(&[&UPLOADS, &SAGA]).await;
    (announced, world.take(&PARSE).await)
}

fn is_retried(answers: &[Disposition]) -> bool {
    matches!(answers, [Disposition::Retry { .. }])
}

/// Whether the filter's store has anything of a command.
async fn is_remembered(world: &World, command: &Received) -> bool {
    let message = messages::Message::decode(&command.delivery.body).unwrap();
    let key = format!("{}:{}", parse_references::NAME, message.id);
    world.store().is_remembered(&key, world.host.now()).await.unwrap()
}

pub(crate) fn many_records(count: usize) -> String {
    let mut file = String::new();
    for n in 1..=count {
        write!(file, "TY  - JOUR\nTI  - Study {n}\nER  - \n\n").unwrap();
    }
    file
}

#[tokio::test]
async fn a_handler_that_fails_leaves_no_trace_in_the_store_and_runs_again() {
    let world = World::new();
    let (announced, batch) = commands(&world, &[("a.ris", TWO_RECORDS)]).await;
    let (failing, _) = recording(&world, Some(0));
    assert!(is_retried(&failing.consume(&deliveries(&batch), None).await));
    assert!(!is_remembered(&world, &batch[0]).await);
    assert_eq!(
        world.functions.behind(&PARSE).consume(&deliveries(&batch), None).await,
        [Disposition::Acknowledge]
    );
    assert!(is_remembered(&world, &batch[0]).await);
    assert_eq!(world.studies(announced.search_id).await.len(), 2);
}

/// An operator may put a command back into its queue after weeks.
#[tokio::test]
async fn a_command_that_was_answered_is_not_carried_out_again_once_it_is_forgotten() {
    let world = World::new();
    let (announced, batch) = commands(&world, &[("a.ris", TWO_RECORDS)]).await;
    world.deliver(&PARSE, &batch).await;
    let replies = world.take(&SAGA).await;
    world.deliver(&SAGA, &replies).await;
    let stored = world.studies(announced.search_id).await;
    for days in [1, 14, 20] {
        world.host.advance(Duration::from_secs(days * 86_400));
        let (function, recording) = recording(&world, None);
        assert_eq!(function.consume(&deliveries(&batch), None).await, [Disposition::Acknowledge]);
        assert!(recording.calls.lock().unwrap().is_empty(), "{days} days later");
    }
    assert_eq!(world.studies(announced.search_id).await, stored);
}

#[tokio::test]
async fn a_command_that_was_handled_is_acknowledged_without_running_the_handler() {
    let world = World::new();
    let (_, batch) = commands(&world, &[("a.ris", TWO_RECORDS)]).await;
    let (function, recording) = recording(&world, None);
    for _ in 0..2 {
        assert_eq!(function.consume(&deliveries(&batch), None).await, [Disposition::Acknowledge]);
    }
    assert_eq!(*recording.calls.lock().unwrap(), [[1, 2]]);
}

#[tokio::test]
async fn two_copies_at_once_store_the_studies_once() {
    let world = World::new();
    let file = many_records(2_500);
    let (announced, batch) = commands(&world, &[("a.ris", &file)]).await;
    let batch = deliveries(&batch);
    let function = world.functions.behind(&PARSE);
    // Another process has ports of its own.
    let elsewhere = world.crashing(&CrashAt::new(Call::StudiesRemove, Phase::Before, 1));
    let elsewhere = elsewhere.behind(&PARSE);
    let (one, other) = join(function.consume(&batch, None), elsewhere.consume(&batch, None)).await;
    assert_eq!([one, other].concat(), vec![Disposition::Acknowledge; 2]);
    let file_id = announced.files[0].file_id;
    let studies = world.store().studies(announced.search_id, file_id, 0, 10_000).await.unwrap();
    assert_eq!(studies.iter().map(|study| study.record).collect::<Vec<_>>(), (1..=2_500).collect::<Vec<_>>());
}

/// However many copies are delivered at once, a crash of all of them is that of one attempt.
#[tokio::test]
async fn copies_at_once_in_one_process_are_one_attempt_and_one_crash() {
    let world = World::new();
    let (announced, batch) = commands(&world, &[("a.ris", TWO_RECORDS)]).await;
    let batch = deliveries(&batch);
    let crash = CrashAt::new(Call::StudiesStore, Phase::Before, 1);
    let functions = world.crashing(&crash);
    let function = functions.behind(&PARSE);
    crash.kill(join_all((0..9).map(|_| function.consume(&batch, None)))).await;
    let (search, file) = (announced.search_id, announced.files[0].file_id);
    let known = world.store().start(search, file, READER_VERSION).await.unwrap();
    assert_eq!(known.begun, 1);
}

/// What was read of the file by then is stored: the first call of each attempt says where it began.
fn begins_at(recording: &Recording) -> u64 {
    recording.calls.lock().unwrap()[0][0]
}

#[tokio::test]
async fn a_parse_that_was_broken_off_goes_on_from_the_last_place_that_it_remembered() {
    let world = World::new();
    let file = many_records(20_000);
    let (announced, batch) = commands(&world, &[("a.ris", &file)]).await;
    let (failing, before) = recording(&world, Some(10));
    assert!(is_retried(&failing.consume(&deliveries(&batch), None).await));
    let stored: usize = before.calls.lock().unwrap()[..10].iter().map(Vec::len).sum();
    let (function, after) = recording(&world, None);
    assert_eq!(function.consume(&deliveries(&batch), None).await, [Disposition::Acknowledge]);
    assert!((2..=stored as u64 + 1).contains(&begins_at(&after)));
    assert_eq!(after.calls.lock().unwrap().last().unwrap().last(), Some(&20_000));
    world.run().await;
    let job = world.job(announced.search_id).await;
    assert_eq!((job.state, job.studies()), (JobState::Completed, 20_000));
}

/// An invocation has 2 s, and each batch takes one: several of them read the file, and none counts as a failure.
#[tokio::test]
async fn a_file_that_takes_longer_than_one_invocation_is_read_in_several() {
    let world = World::new();
    let file = many_records(20_000);
    let (announced, mut batch) = commands(&world, &[("a.ris", &file)]).await;
    let mut begun_at = Vec::new();
    loop {
        let (function, recording) = recording(&world, None);
        let deadline = world.host.now().checked_add(SignedDuration::from_secs(2)).unwrap();
        assert_eq!(batch[0].delivery.receive_count, 1, "the command is a fresh one");
        let answers = function.consume(&deliveries(&batch), Some(deadline)).await;
        assert_eq!(answers, [Disposition::Acknowledge]);
        world.store().answer(&PARSE, &batch[0].receipt, &answers[0]).await.unwrap();
        begun_at.extend(recording.calls.lock().unwrap().first().map(|records| records[0]));
        batch = world.take(&PARSE).await;
        if batch.is_empty() {
            break;
        }
    }
    assert!(begun_at.len() > 2 && begun_at.is_sorted_by(|a, b| a < b), "{begun_at:?}");
    world.run().await;
    let job = world.job(announced.search_id).await;
    assert_eq!((job.state, job.studies()), (JobState::Completed, 20_000));
    let file_id = announced.files[0].file_id;
    let studies = world.store().studies(announced.search_id, file_id, 0, 30_000).await.unwrap();
    assert!(studies.iter().map(|study| study.record).eq(1..=20_000));
}

/// The release before may have counted the records otherwise.
#[tokio::test]
async fn what_a_reader_of_another_version_has_read_is_read_anew() {
    let world = World::new();
    let file = many_records(20_000);
    let (announced, batch) = commands(&world, &[("a.ris", &file)]).await;
    let (search, file_id) = (announced.search_id, announced.files[0].file_id);
    let (failing, _) = recording(&world, Some(10));
    failing.consume(&deliveries(&batch), None).await;
    let mut place = world.store().start(search, file_id, READER_VERSION).await.unwrap().place.unwrap();
    for reader in [serde_json::json!(0), serde_json::json!("unknown")] {
        let ReadingStatus::Within(checkpoint) = &mut place else { panic!("{place:?}") };
        checkpoint["reader"] = reader;
        let fence = world.store().start(search, file_id, READER_VERSION).await.unwrap().fence;
        let held = FileFence { search_id: search, file_id, fence };
        world.store().save(&held, &place).await.unwrap();
        let (failing, recording) = recording(&world, Some(2));
        failing.consume(&deliveries(&batch), None).await;
        assert_eq!(begins_at(&recording), 1);
    }
    world.deliver(&PARSE, &batch).await;
    world.run().await;
    assert_eq!(world.job(search).await.studies(), 20_000);
}

/// In the middle of a deployment both releases may be at work on one file.
#[tokio::test]
async fn a_copy_that_another_reader_has_overtaken_stores_nothing_more() {
    let world = World::new();
    let (announced, batch) = commands(&world, &[("a.ris", TWO_RECORDS)]).await;
    let (search_id, file_id) = (announced.search_id, announced.files[0].file_id);
    let fence = world.store().start(search_id, file_id, READER_VERSION - 1).await.unwrap().fence;
    let of_before = FileFence { search_id, file_id, fence };
    world.deliver(&PARSE, &batch).await;
    let shifted = testing::sample::search::study(search_id, file_id, 3);
    let refused = world.store().store(&of_before, vec![shifted], vec![]).await.unwrap_err();
    assert!(refused.is_retryable(), "{}", refused.chain());
    assert!(world.store().discard(&of_before, None).await.is_err());
    world.run().await;
    assert_eq!(world.studies(search_id).await.len(), 2);
}

/// What is refused once may be readable by other settings; whatever a slower copy makes of it then is not stored.
#[tokio::test]
async fn a_copy_of_a_command_whose_file_was_refused_stores_nothing_more() {
    let world = World::new();
    let (announced, batch) = commands(&world, &[("a.ris", TWO_BAD)]).await;
    let (search_id, file_id) = (announced.search_id, announced.files[0].file_id);
    let fence = world.store().start(search_id, file_id, READER_VERSION).await.unwrap().fence;
    let slower = FileFence { search_id, file_id, fence };
    world.deliver(&PARSE, &batch).await;
    let late = testing::sample::search::study(search_id, file_id, 2);
    assert!(world.store().store(&slower, vec![late], vec![]).await.is_err());
    let stored = world.store().studies(search_id, file_id, 0, 10).await.unwrap();
    assert_eq!(stored, []);
}

#[tokio::test]
async fn a_file_that_makes_the_parser_crash_five_times_is_refused() {
    let world = World::new();
    let (announced, batch) = commands(&world, &[("a.ris", TWO_RECORDS)]).await;
    let (search, file) = (announced.search_id, announced.files[0].file_id);
    for crashes in 0..5 {
        assert_eq!(world.store().start(search, file, READER_VERSION).await.unwrap().begun, crashes);
    }
    world.deliver(&PARSE, &batch).await;
    world.run().await;
    let job = world.job(search).await;
    let Some(Outcome::Failed { reason }) = &job.files[0].outcome else { panic!("{job:?}") };
    assert_eq!(reason, "reading it made the parser crash 5 times");
}

/// A store that is away is no crash, however often.
#[tokio::test]
async fn failures_of_stores_never_make_a_file_be_refused() {
    let world = World::new();
    let (announced, batch) = commands(&world, &[("a.ris", TWO_RECORDS)]).await;
    for _ in 0..18 {
        let (failing, _) = recording(&world, Some(0));
        assert!(is_retried(&failing.consume(&deliveries(&batch), None).await));
    }
    world.deliver(&PARSE, &batch).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
}

/// Stores that an attempt begins, and does not confirm it for a while; notes the end of each at the third try.
struct Unconfirmed {
    inner: Arc<dyn ParseAttempts>,
    /// How many more times a beginning is not confirmed.
    begins: Mutex<u32>,
    /// The tries to end the last attempt.
    pauses: Mutex<u32>,
}

#[async_trait]
impl ParseAttempts for Unconfirmed {
    async fn start(&self, search: SearchId, file: FileId, reader: u32) -> Result<AttemptState, StoreError> {
        let reading = self.inner.start(search, file, reader).await?;
        *self.pauses.lock().unwrap() = 0;
        let mut left = self.begins.lock().unwrap();
        if *left == 0 {
            return Ok(reading);
        }
        *left -= 1;
        Err(StoreError::unavailable("beginning", "waiting for replication timed out"))
    }

    async fn save(&self, file: &FileFence, place: &ReadingStatus) -> Result<(), StoreError> {
        self.inner.save(file, place).await
    }

    async fn place(&self, search: SearchId, file: FileId) -> Result<Option<ReadingStatus>, StoreError> {
        self.inner.place(search, file).await
    }

    async fn end(&self, search: SearchId, file: FileId) -> Result<(), StoreError> {
        let tries = {
            let mut pauses = self.pauses.lock().unwrap();
            *pauses += 1;
            *pauses
        };
        if tries < 3 {
            return Err(StoreError::unavailable("pausing", "cut off"));
        }
        self.inner.end(search, file).await
    }
}

/// Nor is an attempt that may have been noted, or whose end is noted at the third try only.
#[tokio::test]
async fn attempts_that_a_store_does_not_confirm_never_make_a_file_be_refused() {
    let world = World::new();
    let (announced, batch) = commands(&world, &[("a.ris", TWO_RECORDS)]).await;
    let mut parser = parser(&world);
    let (begins, pauses) = (Mutex::new(12), Mutex::default());
    parser.attempts = Arc::new(Unconfirmed { inner: parser.attempts, begins, pauses });
    let function = guarded(&world, parser);
    for _ in 0..12 {
        assert!(is_retried(&function.consume(&deliveries(&batch), None).await));
    }
    world.deliver(&PARSE, &batch).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
}

#[tokio::test]
async fn progress_is_reported_once_a_second_and_at_the_end() {
    let world = World::new();
    let file = many_records(40_000);
    let (_, batch) = commands(&world, &[("a.ris", &file)]).await;
    let mut parser = parser(&world);
    let counting = Arc::new(Counting(Mutex::default()));
    parser.progress = counting.clone();
    let function = guarded(&world, parser);
    // The clock stands still, and there are three looks at it.
    assert!(file.len() > 2 * (512 << 10));
    assert_eq!(function.consume(&deliveries(&batch), None).await, [Disposition::Acknowledge]);
    let reports = counting.0.lock().unwrap().clone();
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert!(0 < reports[0].records && reports[0].records < 40_000);
    assert_eq!(reports[1], Progress { records: 40_000, bytes: file.len() as u64 });
}

const TWO_BAD: &str = "TY  - JOUR\nER  - \n\nTY  - JOUR\nTI  - Good\nER  - \n\nTY  - JOUR\nER  - \n";

#[tokio::test]
async fn a_file_with_more_bad_than_good_records_fails_with_the_first_reasons() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_BAD).await;
    world.run().await;
    let job = world.job(announced.search_id).await;
    let Some(Outcome::Failed { reason }) = &job.files[0].outcome else { panic!("{job:?}") };
    assert!(
        reason
            .starts_with("2 of 3 records cannot be read, more than the 50 % tolerated: record 1 (line 1): "),
        "{reason}"
    );
    assert!(reason.contains("; record 3 (line 8): "), "{reason}");
    assert!(world.studies(announced.search_id).await.is_empty());
}

#[tokio::test]
async fn how_many_records_may_be_bad_is_a_setting() {
    let config = backend::Config { max_quarantined_percent: 70, ..backend::Config::default() };
    let world = World::with(config);
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_BAD).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
}

/// A file of as many unreadable records as readable ones.
fn half_unreadable(records: usize) -> String {
    format!("Title\n{}", "a\nb,c\n".repeat(records / 2))
}

#[tokio::test]
async fn a_file_of_more_records_than_the_limit_is_refused_and_leaves_nothing() {
    let world = World::with(backend::Config { max_records: 1_999, ..backend::Config::default() });
    let announced = world.announce(&["a.csv", "b.csv"]).await;
    world.upload(&announced, 0, &half_unreadable(2_000)).await;
    world.upload(&announced, 1, &format!("Title\n{}", "a\n".repeat(1_999))).await;
    world.run().await;
    let job = world.job(announced.search_id).await;
    let Some(Outcome::Failed { reason }) = &job.files[0].outcome else { panic!("{job:?}") };
    assert_eq!(reason, "the file has more than 1,999 records, the limit");
    let file = announced.files[0].file_id;
    assert_eq!(world.store().studies(announced.search_id, file, 0, 1).await.unwrap(), []);
    assert_eq!(world.store().quarantined(announced.search_id, file, 0, 1).await.unwrap(), []);
    assert!(matches!(job.files[1].outcome, Some(Outcome::Completed(_))), "{job:?}");
}

/// All of them are counted, whether a file is read at once or goes on in the middle.
#[tokio::test]
async fn of_unreadable_records_the_first_are_kept() {
    for goes_on in [false, true] {
        let world = World::new();
        let (announced, mut batch) = commands(&world, &[("a.csv", &half_unreadable(60_000))]).await;
        let (search, file) = (announced.search_id, announced.files[0].file_id);
        while !batch.is_empty() {
            let (_, recording) = recording(&world, None);
            let studies: Arc<dyn WriteStudies> = recording;
            let parser = ParseReferences { kept_unreadable: 25_000, studies, ..parser(&world) };
            let deadline = world.host.now().checked_add(SignedDuration::from_secs(20)).unwrap();
            let answers =
                guarded(&world, parser).consume(&deliveries(&batch), goes_on.then_some(deadline)).await;
            assert_eq!(answers, [Disposition::Acknowledge]);
            world.store().answer(&PARSE, &batch[0].receipt, &answers[0]).await.unwrap();
            batch = world.take(&PARSE).await;
        }
        world.run().await;
        let Some(Outcome::Completed(counts)) = &world.job(search).await.files[0].outcome else { panic!() };
        assert_eq!((counts.records, counts.studies, counts.quarantined), (60_000, 30_000, 30_000));
        let kept = world.store().quarantined(search, file, 0, 60_000).await.unwrap();
        let numbers = kept.iter().map(|kept| kept.record.number);
        assert!(numbers.eq((1..=25_000).map(|n| 2 * n)), "{} are kept", kept.len());
    }
}

/// Whoever stores them holds all of a batch in memory, several times over.
#[tokio::test]
async fn records_are_stored_by_the_thousand_and_by_the_megabyte() {
    let world = World::new();
    let small = many_records(20_000);
    let abstracts = "x".repeat(1 << 20);
    let large: String =
        (0..20).map(|n| format!("TY  - JOUR\nTI  - {n}\nAB  - {abstracts}\nER  - \n\n")).collect();
    for (file, most, records) in [(small, 1_000, 20_000), (large, 4, 20)] {
        let (_, batch) = commands(&world, &[("a.ris", &file)]).await;
        let (function, recording) = recording(&world, None);
        function.consume(&deliveries(&batch), None).await;
        let calls = recording.calls.lock().unwrap().clone();
        assert!(calls.iter().all(|call| call.len() <= most), "{calls:?}");
        assert!(calls.concat().into_iter().eq(1..=records));
    }
}

const FIRST: &str = "TY  - JOUR\nTI  - Early mobilisation\nAU  - Müller, Jürgen\nPY  - 2019\nDO  - 10.5555/a\nER  - \n\n\
                     TY  - JOUR\nTI  - Another\nC2  - 77\nER  - \n";
const SECOND: &str = "TY  - JOUR\nTI  - EARLY MOBILISATION.\nAU  - Muller, J\nPY  - 2019\nER  - \n\n\
                      TY  - JOUR\nTI  - New\nER  - \n\n\
                      TY  - JOUR\nTI  - Anders\nC2  - 77\nER  - \n\n\
                      TY  - JOUR\nTI  - Early Mobilisation\nDO  - https://doi.org/10.5555/A\nER  - \n";

/// For each study of the second file the record of the first that it repeats, and why.
async fn marks(world: &World, announced: &AnnouncedSearch) -> Vec<Option<(u64, Reason)>> {
    let (first, second) = (announced.files[0].file_id, announced.files[1].file_id);
    let studies = world.studies(announced.search_id).await;
    assert!(studies.iter().filter(|study| study.file_id == first).all(|study| study.duplicate.is_none()));
    let count = world.store().marked(announced.search_id, second).await.unwrap().duplicates();
    assert_eq!(count, 3);
    let marked = studies.iter().filter(|study| study.file_id == second).map(|study| {
        let Duplicate { file_id, record, reason, .. } = study.duplicate?;
        assert_eq!(file_id, first);
        Some((record, reason))
    });
    marked.collect()
}

#[tokio::test]
async fn duplicates_are_marked_the_same_in_whatever_order_files_are_read() {
    let expected =
        [Some((1, Reason::TitleYearAuthor)), None, Some((2, Reason::Pmid)), Some((1, Reason::DoiTitle))];
    let files = [("a.ris", FIRST), ("b.ris", SECOND)];
    for order in [[0, 1], [1, 0]] {
        let world = World::new();
        let (announced, batch) = commands(&world, &files).await;
        for index in order {
            world.deliver(&PARSE, &batch[index..=index]).await;
        }
        world.run().await;
        assert_eq!(marks(&world, &announced).await, expected, "{order:?}");
    }
    let world = World::new();
    let (announced, batch) = commands(&world, &files).await;
    let (one, other) = (deliveries(&batch[..1]), deliveries(&batch[1..]));
    let function = world.functions.behind(&PARSE);
    join(function.consume(&one, None), function.consume(&other, None)).await;
    world.run().await;
    assert_eq!(marks(&world, &announced).await, expected);
}

#[tokio::test]
async fn a_refused_file_leaves_no_mark_behind() {
    let world = World::new();
    let refused = format!("{FIRST}\nTY  - JOUR\nTI  - {}\nER  - \n", "x".repeat(5 << 20));
    let files = [("a.ris", refused.as_str()), ("b.ris", SECOND)];
    let (announced, batch) = commands(&world, &files).await;
    world.deliver(&PARSE, &batch).await;
    world.run().await;
    let second = announced.files[1].file_id;
    let studies = world.store().studies(announced.search_id, second, 0, 10).await.unwrap();
    assert_eq!(studies.len(), 4);
    assert!(studies.iter().all(|study| study.duplicate.is_none()), "{studies:?}");
}
