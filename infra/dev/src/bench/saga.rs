//! The number of messages per second that `run-saga` handles, with durable queues and stores, duplicates and
//! reordering.
//!
//! Each search has five events: its announcement, two stored files, two replies. The measurement includes sending a
//! message to a durable queue, receiving it, handling it with the shipped function, and deleting it. A simulated parser
//! replies to each command immediately.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::Context;
use backend::{Config, Mode, SystemHost};
use dedup::GrantTokens;
use embedded::{Settings, Store};
use futures::future::try_join_all;
use imports::queues::{EVENTS, PARSE, QUEUES, SAGA};
use imports::{FileRef, ParseCommand, SearchId};
use messages::{
    Consumer, Delivery, Disposition, Host, Message, MessageId, Outgoing, Queue, ReceiveMessages,
    ReceivedMessage, SendMessages,
};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde::Serialize;

use crate::bench::quantile_ms;
use crate::bench::searches::{self, FILES, Search};

/// The options of the benchmark.
#[derive(Debug, Clone)]
pub struct Options {
    /// The number of searches.
    pub sagas: usize,
    /// The number of concurrent batches.
    pub clients: usize,
    /// The percentage of messages that are sent twice.
    pub duplicates: u32,
    /// The percentage of messages that are swapped with one of the next ten.
    pub reordered: u32,
    /// The mode in which duplicates are recognized.
    pub mode: Mode,
}

/// The result of the benchmark.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The number of searches.
    pub sagas: usize,
    /// The number of messages that `run-saga` handled, including duplicates.
    pub messages: u64,
    /// The time from the first message sent to the last one deleted.
    pub seconds: f64,
    /// Messages per second.
    pub per_second: f64,
    /// The median time from the receipt of a message to its deletion, in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile of this time, in milliseconds.
    pub p99_ms: f64,
    /// The number of files with more than one command, and of ends that were announced twice.
    pub duplicated: usize,
    /// The number of files without a command, and of ends that were never announced.
    pub lost: usize,
}

/// The time without events after which missing messages count as lost.
const STALL: Duration = Duration::from_secs(30);
/// The number of waiting messages at which the sender pauses.
const BACKLOG: u64 = 2_000;
const VISIBILITY: Duration = Duration::from_secs(60);
const IDLE: Duration = Duration::from_millis(5);

/// Runs the benchmark in a temporary folder below `dir`.
pub async fn measure(dir: &Path, options: &Options) -> anyhow::Result<Report> {
    let folder = tempfile::tempdir_in(dir)?;
    let bench = Arc::new(Bench::open(folder.path(), options)?);
    let messages = bench.messages(options).await?;
    let began = Instant::now();
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..options.clients.max(1) {
        tasks.spawn(Arc::clone(&bench).work());
    }
    for seed in 0..4 {
        tasks.spawn(Arc::clone(&bench).parse(seed, options.duplicates));
    }
    tasks.spawn(Arc::clone(&bench).feed(messages));
    while let Some(done) = tasks.join_next().await {
        done.context("a task of the benchmark ended early")??;
    }
    bench.report(options, began.elapsed()).await
}

struct Bench {
    store: Store,
    run_saga: Arc<dyn Consumer>,
    tokens: Arc<dyn GrantTokens>,
    host: Arc<dyn Host>,
    files: usize,
    fed: AtomicBool,
    sent: AtomicU64,
    handled: AtomicU64,
    seen: Mutex<EventLog>,
}

#[derive(Default)]
struct EventLog {
    commands: BTreeMap<FileRef, BTreeSet<MessageId>>,
    latencies: Vec<Duration>,
}

impl Bench {
    fn open(dir: &Path, options: &Options) -> anyhow::Result<Self> {
        let host: Arc<dyn Host> = Arc::new(SystemHost);
        let store = Store::open(dir, Arc::clone(&host), Settings::new(&QUEUES))?;
        let shared = Arc::new(store.clone());
        let config = Config { mode: options.mode, data_dir: dir.to_owned(), ..Config::default() };
        let backend = backend::embedded(&shared, Arc::clone(&host), shared.clone(), config);
        Ok(Self {
            run_saga: super::run_saga(&backend.ports)?,
            tokens: Arc::clone(&backend.ports.engine.partitions()?.tokens),
            store,
            host,
            files: options.sagas * FILES,
            fed: AtomicBool::new(false),
            sent: AtomicU64::new(0),
            handled: AtomicU64::new(0),
            seen: Mutex::default(),
        })
    }

    /// Returns the external messages, with duplicates and reordering.
    async fn messages(&self, options: &Options) -> anyhow::Result<Vec<Outgoing>> {
        let mut random = StdRng::seed_from_u64(1);
        let mut messages = Vec::new();
        let ids: Vec<usize> = (0..options.sagas).collect();
        for chunk in ids.chunks(256) {
            let begun = chunk.iter().map(|_| Search::begin(&self.host, self.tokens.as_ref()));
            for search in try_join_all(begun).await? {
                for message in [&search.started].into_iter().chain(&search.saved) {
                    let outgoing = Outgoing::new(message, SAGA, Duration::ZERO)?;
                    if random.random_ratio(options.duplicates.min(100), 100) {
                        messages.push(outgoing.clone());
                    }
                    messages.push(outgoing);
                }
            }
        }
        for index in 0..messages.len() {
            if random.random_ratio(options.reordered.min(100), 100) {
                let other = (index + random.random_range(1..=10)).min(messages.len() - 1);
                messages.swap(index, other);
            }
        }
        Ok(messages)
    }

    async fn feed(self: Arc<Self>, messages: Vec<Outgoing>) -> anyhow::Result<()> {
        for part in messages.chunks(200) {
            while self.sent.load(Ordering::Relaxed) > self.handled.load(Ordering::Relaxed) + BACKLOG {
                tokio::time::sleep(IDLE).await;
            }
            let sends = part.chunks(10).map(|batch| self.send(batch));
            try_join_all(sends).await?;
        }
        self.fed.store(true, Ordering::Relaxed);
        Ok(())
    }

    async fn send(&self, batch: &[Outgoing]) -> anyhow::Result<()> {
        // Count them before sending, so that the benchmark does not end while they are in flight.
        self.sent.fetch_add(batch.len() as u64, Ordering::Relaxed);
        for result in self.store.send(batch).await {
            result?;
        }
        Ok(())
    }

    fn is_done(&self) -> bool {
        let commands = self.seen.lock().unwrap_or_else(PoisonError::into_inner).commands.len();
        let handled = self.handled.load(Ordering::Relaxed);
        self.fed.load(Ordering::Relaxed)
            && commands == self.files
            && handled >= self.sent.load(Ordering::Relaxed)
    }

    /// Receives from a queue until everything is done, or nothing happens for a long time.
    async fn receive(&self, queue: &Queue) -> anyhow::Result<Vec<ReceivedMessage>> {
        let mut signal = self.store.message_signal();
        let waits_since = Instant::now();
        while !self.is_done() && waits_since.elapsed() < STALL {
            let batch = self.store.receive(queue, 10, VISIBILITY).await?;
            if !batch.is_empty() {
                return Ok(batch);
            }
            signal.wait(IDLE).await;
        }
        Ok(Vec::new())
    }

    async fn answer(
        &self,
        queue: &Queue,
        batch: &[ReceivedMessage],
        answers: &[Disposition],
    ) -> anyhow::Result<()> {
        let answered = batch
            .iter()
            .zip(answers)
            .map(|(received, answer)| self.store.answer(queue, &received.receipt, answer));
        try_join_all(answered).await?;
        Ok(())
    }

    async fn work(self: Arc<Self>) -> anyhow::Result<()> {
        loop {
            let batch = self.receive(&SAGA).await?;
            if batch.is_empty() {
                return Ok(());
            }
            let received_at = Instant::now();
            let deliveries: Vec<Delivery> = batch.iter().map(|received| received.delivery.clone()).collect();
            let answers = self.run_saga.consume(&deliveries, None).await;
            self.answer(&SAGA, &batch, &answers).await?;
            let done = answers.iter().filter(|answer| **answer == Disposition::Acknowledge).count();
            let took = received_at.elapsed();
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.latencies.extend(std::iter::repeat_n(took, done));
            drop(seen);
            self.handled.fetch_add(done as u64, Ordering::Relaxed);
        }
    }

    /// Replies to each command immediately, to some of them twice.
    async fn parse(self: Arc<Self>, seed: u64, duplicates: u32) -> anyhow::Result<()> {
        let mut random = StdRng::seed_from_u64(seed);
        loop {
            let batch = self.receive(&PARSE).await?;
            if batch.is_empty() {
                return Ok(());
            }
            let mut replies = Vec::new();
            for received in &batch {
                let command = Message::decode(&received.delivery.body)?;
                let ParseCommand::StartParsing(parse) = command.read()? else { continue };
                let reply = searches::reply(&command, &parse, self.host.now())?;
                let copies = 1 + usize::from(random.random_ratio(duplicates.min(100), 100));
                replies.extend(vec![Outgoing::new(&reply, SAGA, Duration::ZERO)?; copies]);
                // Count the replies before the command, so that the benchmark does not end too early.
                self.sent.fetch_add(copies as u64, Ordering::Relaxed);
                let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
                seen.commands
                    .entry(FileRef::new(command.partition, parse.file_id))
                    .or_default()
                    .insert(command.id);
            }
            for part in replies.chunks(10) {
                for result in self.store.send(part).await {
                    result?;
                }
            }
            self.answer(&PARSE, &batch, &vec![Disposition::Acknowledge; batch.len()]).await?;
        }
    }

    async fn report(&self, options: &Options, elapsed: Duration) -> anyhow::Result<Report> {
        let mut ends: BTreeMap<SearchId, BTreeSet<MessageId>> = BTreeMap::new();
        for event in self.store.dead_letters(&EVENTS).await? {
            let message = Message::decode(&event.body)?;
            ends.entry(message.partition).or_default().insert(message.id);
        }
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let twice = |count: usize| count > 1;
        let duplicated = seen.commands.values().map(BTreeSet::len).filter(|count| twice(*count)).count()
            + ends.values().map(BTreeSet::len).filter(|count| twice(*count)).count();
        let lost = self.files.saturating_sub(seen.commands.len()) + options.sagas.saturating_sub(ends.len());
        seen.latencies.sort_unstable();
        let messages = self.handled.load(Ordering::Relaxed);
        Ok(Report {
            sagas: options.sagas,
            messages,
            seconds: elapsed.as_secs_f64(),
            per_second: messages as f64 / elapsed.as_secs_f64(),
            p50_ms: quantile_ms(&seen.latencies, 0.5),
            p99_ms: quantile_ms(&seen.latencies, 0.99),
            duplicated,
            lost,
        })
    }
}
