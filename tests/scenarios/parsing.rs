//! Reading of one file: repeated, resumed, and by two workers concurrently.

use std::fmt::Write;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use backend::Backend;
use contracts::ManualHost;
use dedup::ProcessedMessages;
use embedded::{Call, Phase};
use functions::parse_references::{self, ParseReferences};
use futures::future::{join, join_all};
use imports::queues::{PARSE, SAGA, UPLOADS};
use imports::{
    AttemptState, Duplicate, FileFence, FileId, JobState, Outcome, ParseAttempts, ParsedFile, PreparedStudy,
    Progress, QuarantinedRecord, ReadStudies, ReadingStatus, Reason, ReportProgress, SearchId, Study,
    WriteBatching, WriteStudies,
};
use jiff::{SignedDuration, Timestamp};
use messages::{Consumer, Disposition, Host, ReceiveMessages, ReceivedMessage, StoreError};
use references::{READER_VERSION, work};
use service::AnnouncedSearch;
use uuid::Uuid;

use crate::world::{CrashAt, TWO_RECORDS, World, deliveries, without_time_limit};

/// Records the calls and may fail.
pub(crate) struct RecordingStore {
    store: Arc<dyn WriteStudies>,
    /// The records of each call.
    calls: Mutex<Vec<Vec<u64>>>,
    /// The index of the call that fails.
    fails: Option<usize>,
    /// The clock, which each call advances by one second.
    host: Arc<ManualHost>,
}

#[async_trait]
impl WriteStudies for RecordingStore {
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
        quarantined: Vec<QuarantinedRecord>,
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
struct ProgressCounter(Mutex<Vec<Progress>>);

#[async_trait]
impl ReportProgress for ProgressCounter {
    async fn report(&self, _: SearchId, _: FileId, progress: Progress) -> Result<(), StoreError> {
        self.0.lock().unwrap().push(progress);
        Ok(())
    }
}

fn parser(world: &World) -> ParseReferences {
    ParseReferences::over(&world.backend.ports).unwrap()
}

/// Returns the consumer of parse commands, with another parser.
fn guarded(world: &World, parser: ParseReferences) -> Arc<dyn Consumer> {
    world.backend.ports.engine.guard(parse_references::NAME, parser).unwrap()
}

pub(crate) fn recording(world: &World, fails: Option<usize>) -> (Arc<dyn Consumer>, Arc<RecordingStore>) {
    let mut parser = ParseReferences { push_bytes: 64 << 10, ..parser(world) };
    let (store, host) = (parser.studies.clone(), Arc::clone(&world.host));
    let recording = Arc::new(RecordingStore { store, calls: Mutex::default(), fails, host });
    parser.studies = recording.clone();
    (guarded(world, parser), recording)
}

/// Creates a search and receives its parse commands.
pub(crate) async fn commands(
    world: &World,
    files: &[(&str, &str)],
) -> (AnnouncedSearch, Vec<ReceivedMessage>) {
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

/// Returns `true` if the store of processed messages contains a command.
async fn is_remembered(world: &World, command: &ReceivedMessage) -> bool {
    let message = messages::Message::decode(&command.delivery.body).unwrap();
    let token = message.reply_token.unwrap();
    let key = format!("{}:{}:{token}", parse_references::NAME, message.id);
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
async fn failed_handler_stores_nothing_and_runs_again() {
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

/// An operator may redrive a command after weeks.
#[tokio::test]
async fn answered_command_is_not_repeated_after_expiry() {
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
async fn handled_command_is_acknowledged_without_handler() {
    let world = World::new();
    let (_, batch) = commands(&world, &[("a.ris", TWO_RECORDS)]).await;
    let (function, recording) = recording(&world, None);
    for _ in 0..2 {
        assert_eq!(function.consume(&deliveries(&batch), None).await, [Disposition::Acknowledge]);
    }
    assert_eq!(*recording.calls.lock().unwrap(), [[1, 2]]);
}

#[tokio::test]
async fn concurrent_copies_store_studies_once() {
    let world = World::new();
    let file = many_records(2_500);
    let (announced, batch) = commands(&world, &[("a.ris", &file)]).await;
    let batch = deliveries(&batch);
    let function = world.functions.behind(&PARSE);
    // Another process has separate ports.
    let elsewhere = world.crashing(&CrashAt::new(Call::StudiesRemove, Phase::Before, 1));
    let elsewhere = elsewhere.behind(&PARSE);
    let (one, other) = join(function.consume(&batch, None), elsewhere.consume(&batch, None)).await;
    assert_eq!([one, other].concat(), vec![Disposition::Acknowledge; 2]);
    let file_id = announced.files[0].file_id;
    let studies = world.store().studies(announced.search_id, file_id, 0, 10_000).await.unwrap();
    assert_eq!(studies.iter().map(|study| study.record).collect::<Vec<_>>(), (1..=2_500).collect::<Vec<_>>());
}

/// The crash of several concurrent copies counts as the crash of one attempt.
#[tokio::test]
async fn concurrent_copies_count_as_one_attempt() {
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

/// Returns the first record of an attempt, which shows how much of the file was stored before.
fn begins_at(recording: &RecordingStore) -> u64 {
    recording.calls.lock().unwrap()[0][0]
}

#[tokio::test]
async fn interrupted_parse_resumes_at_checkpoint() {
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

/// An invocation lasts 2 s, and each batch takes 1 s. Forty invocations read the file, and none counts as a failure.
/// The template allows this chain of messages, which Lambda would otherwise stop as a recursive loop.
#[tokio::test]
async fn large_file_is_read_in_several_invocations() {
    let world = World::new();
    let file = many_records(42_000);
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
    assert!(begun_at.len() >= 40 && begun_at.is_sorted_by(|a, b| a < b), "{begun_at:?}");
    world.run().await;
    let job = world.job(announced.search_id).await;
    assert_eq!((job.state, job.studies()), (JobState::Completed, 42_000));
    let file_id = announced.files[0].file_id;
    let studies = world.store().studies(announced.search_id, file_id, 0, 50_000).await.unwrap();
    assert!(studies.iter().map(|study| study.record).eq(1..=42_000));
}

/// A clock that advances by a microsecond for each unit of work that is counted on the thread of the test.
struct WorkClock {
    host: Arc<ManualHost>,
    /// The work that was done before the clock was started.
    before: u64,
}

impl WorkClock {
    fn started(world: &World) -> Arc<Self> {
        Arc::new(Self { host: Arc::clone(&world.host), before: work::spent() })
    }
}

#[async_trait]
impl Host for WorkClock {
    fn now(&self) -> Timestamp {
        let micros = i64::try_from(work::spent() - self.before).unwrap();
        self.host.now() + SignedDuration::from_micros(micros)
    }

    fn fresh_id(&self) -> Uuid {
        self.host.fresh_id()
    }

    fn random_id(&self) -> Uuid {
        self.host.random_id()
    }

    fn unit_random(&self) -> f64 {
        self.host.unit_random()
    }

    async fn sleep(&self, duration: Duration) {
        self.host.sleep(duration).await;
    }
}

/// Each of the two slow records takes longer than an invocation, which the first record that an attempt reads may do.
#[tokio::test]
async fn slow_record_resumes_in_next_invocation() {
    let world = World::new();
    let short = |n: usize| format!("@book{{b{n}, title = {{Book {n}}}}}\n");
    let slow = format!("@book{{slow, title = {{{}}}}}\n", "\\'{\\'{\\'{\\'{?}}}}".repeat(30_000));
    let file = [(0..40).map(short).collect(), slow.clone(), slow, (40..80).map(short).collect()].concat();
    let (announced, mut batch) = commands(&world, &[("a.bib", &file)]).await;
    let (mut begun_at, mut overruns) = (Vec::new(), Vec::new());
    while !batch.is_empty() {
        let clock = WorkClock::started(&world);
        let Backend { ports, config } = world.backend.clone();
        let ports = backend::embedded(&world.store, clock.clone(), ports.engine.observer, config).ports;
        let (store, host) =
            (ports.study_stores.as_ref().unwrap().write_studies.clone(), Arc::clone(&world.host));
        let recording = Arc::new(RecordingStore {
            store,
            calls: Mutex::default(),
            fails: None,
            host: ManualHost::seeded(1).into(),
        });
        let parser = ParseReferences {
            push_bytes: 64 << 10,
            threads: NonZeroUsize::MIN,
            studies: recording.clone(),
            ..ParseReferences::over(&ports).unwrap()
        };
        let engine = without_time_limit(ports.engine);
        let function = engine.guard(parse_references::NAME, parser).unwrap();
        let deadline = host.now() + SignedDuration::from_secs(1);
        assert_eq!(function.consume(&deliveries(&batch), Some(deadline)).await, [Disposition::Acknowledge]);
        overruns.push(clock.now().duration_since(deadline).as_secs_f64());
        begun_at.push(recording.calls.lock().unwrap().first().map(|records| records[0]));
        world.store().answer(&PARSE, &batch[0].receipt, &Disposition::Acknowledge).await.unwrap();
        batch = world.take(&PARSE).await;
    }
    // After the deadline, at most the records of a chunk are found.
    for (first, overrun) in std::iter::zip(&begun_at, &overruns) {
        let is_slow = [Some(41), Some(42)].contains(first);
        assert!(is_slow || *overrun < 4.0, "{begun_at:?} {overruns:?}");
    }
    assert!(begun_at.contains(&Some(41)) && begun_at.is_sorted_by(|a, b| a < b), "{begun_at:?}");
    world.run().await;
    let job = world.job(announced.search_id).await;
    assert_eq!((job.state, job.studies()), (JobState::Completed, 82));
}

/// An earlier version may have numbered the records differently.
#[tokio::test]
async fn file_read_by_other_version_is_reread() {
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

/// During a deployment, both versions may work on one file.
#[tokio::test]
async fn overtaken_copy_stores_nothing() {
    let world = World::new();
    let (announced, batch) = commands(&world, &[("a.ris", TWO_RECORDS)]).await;
    let (search_id, file_id) = (announced.search_id, announced.files[0].file_id);
    let fence = world.store().start(search_id, file_id, READER_VERSION - 1).await.unwrap().fence;
    let of_before = FileFence { search_id, file_id, fence };
    world.deliver(&PARSE, &batch).await;
    let shifted = testing::search::study(search_id, file_id, 3);
    let refused = world.store().store(&of_before, vec![shifted], vec![]).await.unwrap_err();
    assert!(refused.is_retryable(), "{}", refused.chain());
    assert!(world.store().discard(&of_before, None).await.is_err());
    world.run().await;
    assert_eq!(world.studies(search_id).await.len(), 2);
}

/// A refused file may be readable with other settings. A slower copy of the command must not store its results then.
#[tokio::test]
async fn copy_of_command_for_refused_file_stores_nothing() {
    let world = World::new();
    let (announced, batch) = commands(&world, &[("a.ris", TWO_BAD)]).await;
    let (search_id, file_id) = (announced.search_id, announced.files[0].file_id);
    let fence = world.store().start(search_id, file_id, READER_VERSION).await.unwrap().fence;
    let slower = FileFence { search_id, file_id, fence };
    world.deliver(&PARSE, &batch).await;
    let late = testing::search::study(search_id, file_id, 2);
    assert!(world.store().store(&slower, vec![late], vec![]).await.is_err());
    let stored = world.store().studies(search_id, file_id, 0, 10).await.unwrap();
    assert_eq!(stored, []);
}

#[tokio::test]
async fn file_crashing_parser_five_times_is_refused() {
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

/// Eight crashes of workers do not refuse a file that was read further in between.
#[tokio::test]
async fn file_progressing_between_crashes_is_read() {
    let world = World::new();
    let (announced, batch) = commands(&world, &[("a.ris", TWO_RECORDS)]).await;
    let (search_id, file_id) = (announced.search_id, announced.files[0].file_id);
    for attempt in 0..8 {
        let fence = world.store().start(search_id, file_id, READER_VERSION).await.unwrap().fence;
        if attempt == 4 {
            let checkpoint = ReadingStatus::Within(serde_json::json!({ "of": "an attempt" }));
            world.store().save(&FileFence { search_id, file_id, fence }, &checkpoint).await.unwrap();
        }
    }
    world.deliver(&PARSE, &batch).await;
    world.run().await;
    let job = world.job(search_id).await;
    assert!(matches!(job.files[0].outcome, Some(Outcome::Completed(_))), "{job:?}");
}

/// An unavailable store does not count as a crash, however often it happens.
#[tokio::test]
async fn store_failures_never_refuse_file() {
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

/// Stores the start of an attempt without confirming it for a while, and records its end only at the third try.
struct UnconfirmedStarts {
    inner: Arc<dyn ParseAttempts>,
    /// The number of starts that remain unconfirmed.
    begins: Mutex<u32>,
    /// The number of tries to record the end of the last attempt.
    pauses: Mutex<u32>,
}

#[async_trait]
impl ParseAttempts for UnconfirmedStarts {
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

/// An attempt does not count as a crash if its start is unconfirmed, or if its end is recorded only at the third try.
#[tokio::test]
async fn unconfirmed_attempts_never_refuse_file() {
    let world = World::new();
    let (announced, batch) = commands(&world, &[("a.ris", TWO_RECORDS)]).await;
    let mut parser = parser(&world);
    let (begins, pauses) = (Mutex::new(12), Mutex::default());
    parser.attempts = Arc::new(UnconfirmedStarts { inner: parser.attempts, begins, pauses });
    let function = guarded(&world, parser);
    for _ in 0..12 {
        assert!(is_retried(&function.consume(&deliveries(&batch), None).await));
    }
    world.deliver(&PARSE, &batch).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
}

#[tokio::test]
async fn progress_is_reported_each_second_and_at_end() {
    let world = World::new();
    let file = many_records(40_000);
    let (_, batch) = commands(&world, &[("a.ris", &file)]).await;
    let mut parser = parser(&world);
    let counting = Arc::new(ProgressCounter(Mutex::default()));
    parser.progress = counting.clone();
    let function = guarded(&world, parser);
    // The clock does not move, and the progress is checked three times.
    assert!(file.len() > 2 * (512 << 10));
    assert_eq!(function.consume(&deliveries(&batch), None).await, [Disposition::Acknowledge]);
    let reports = counting.0.lock().unwrap().clone();
    assert_eq!(reports.len(), 2, "{reports:?}");
    assert!(0 < reports[0].records && reports[0].records < 40_000);
    assert_eq!(reports[1], Progress { records: 40_000, bytes: file.len() as u64 });
}

const TWO_BAD: &str = "TY  - JOUR\nER  - \n\nTY  - JOUR\nTI  - Good\nER  - \n\nTY  - JOUR\nER  - \n";

#[tokio::test]
async fn mostly_unreadable_file_fails_with_first_reasons() {
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
async fn unreadable_record_limit_is_configurable() {
    let mut config = backend::Config::default();
    config.search.max_quarantined_percent = 70;
    let world = World::with(config);
    let announced = world.announce(&["a.ris"]).await;
    world.upload(&announced, 0, TWO_BAD).await;
    world.run().await;
    assert_eq!(world.job(announced.search_id).await.state, JobState::Completed);
}

/// Returns a file with equal numbers of unreadable and readable records.
fn half_unreadable(records: usize) -> String {
    format!("Title\n{}", "a\nb,c\n".repeat(records / 2))
}

#[tokio::test]
async fn file_with_too_many_records_is_refused() {
    let mut config = backend::Config::default();
    config.search.max_records = 1_999;
    let world = World::with(config);
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

/// All unreadable records are counted, whether a file is read at once or resumed in the middle.
#[tokio::test]
async fn first_unreadable_records_are_kept() {
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

/// The store holds a whole batch in memory, several times over.
#[tokio::test]
async fn store_batches_are_limited_by_count_and_size() {
    let world = World::new();
    let small = many_records(20_000);
    let abstracts = "x".repeat(1 << 20);
    let large: String =
        (0..20).map(|n| format!("TY  - JOUR\nTI  - {n}\nAB  - {abstracts}\nER  - \n\n")).collect();
    for (file, max, records) in [(small, 1_000, 20_000), (large, 4, 20)] {
        let (_, batch) = commands(&world, &[("a.ris", &file)]).await;
        let (function, recording) = recording(&world, None);
        function.consume(&deliveries(&batch), None).await;
        let calls = recording.calls.lock().unwrap().clone();
        assert!(calls.iter().all(|call| call.len() <= max), "{calls:?}");
        assert!(calls.concat().into_iter().eq(1..=records));
    }
}

const FIRST: &str = "TY  - JOUR\nTI  - Early mobilisation\nAU  - Müller, Jürgen\nPY  - 2019\nDO  - 10.5555/a\nER  - \n\n\
                     TY  - JOUR\nTI  - Another\nC2  - 30000077\nER  - \n";
const SECOND: &str = "TY  - JOUR\nTI  - EARLY MOBILISATION.\nAU  - Muller, J\nPY  - 2019\nER  - \n\n\
                      TY  - JOUR\nTI  - New\nER  - \n\n\
                      TY  - JOUR\nTI  - Anders\nC2  - 30000077\nER  - \n\n\
                      TY  - JOUR\nTI  - Early Mobilisation\nDO  - https://doi.org/10.5555/A\nER  - \n";

/// Returns, for each study of the second file, the record of the first file that it repeats, and the reason.
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
async fn duplicate_marks_do_not_depend_on_order() {
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
async fn refused_file_leaves_no_mark() {
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
