//! The number of calls that one message costs in `run-saga`, measured with counting ports.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context;
use async_trait::async_trait;
use backend::{Config, Mode, SystemHost};
use dedup::GrantTokens;
use embedded::{Call, Intercept, Phase, Settings, Store};
use imports::queues::{PARSE, QUEUES};
use imports::{ParseCommand, SearchId};
use messages::{Consumer, Delivery, Disposition, Host, Message, ReceiveMessages};
use saga::{Persist, ReadDocuments, WriteDocuments};
use serde::Serialize;

use crate::bench::prices::Prices;
use crate::bench::searches::{self, Search};

/// The cost of one situation.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The mode in which duplicates are recognized.
    pub mode: &'static str,
    /// The situation.
    pub situation: &'static str,
    /// The number of delivered messages.
    pub messages: usize,
    /// The number of batches.
    pub batches: usize,
    /// Calls to the ledger, in DynamoDB.
    pub dynamodb: u64,
    /// Calls to the store of sagas and views, in MongoDB.
    pub mongodb: u64,
    /// Sends of up to ten messages, to SQS.
    pub sends: u64,
    /// The maximum number of DynamoDB and MongoDB calls per message, if the design sets a bound.
    pub bound: Option<(f64, f64)>,
    /// US dollars per million messages: ledger, queue requests and invocations. A MongoDB cluster is paid by the hour.
    pub dollars_per_million: f64,
}

impl Row {
    /// Returns the number of DynamoDB and MongoDB calls per message.
    pub fn per_message(&self) -> (f64, f64) {
        let messages = self.messages.max(1) as f64;
        (self.dynamodb as f64 / messages, self.mongodb as f64 / messages)
    }

    /// Returns `true` if the bound holds.
    pub fn holds(&self) -> bool {
        let (dynamodb, mongodb) = self.per_message();
        self.bound.is_none_or(|bound| dynamodb <= bound.0 && mongodb <= bound.1)
    }
}

/// A duplicate of a handled message, of a search that has not ended.
const DUPLICATE: &str = "duplicate";

/// Measures every situation in both modes, in a temporary folder below `dir`.
///
/// # Errors
/// Returns an error if a store is unavailable, or if a situation does not occur.
pub async fn measure(dir: &Path) -> anyhow::Result<Vec<Row>> {
    let prices = Prices::shipped()?;
    let mut rows = Vec::new();
    for mode in [Mode::Ledger, Mode::Optimistic] {
        let folder = tempfile::tempdir_in(dir)?;
        rows.extend(Bench::open(folder.path(), mode)?.all(&prices).await?);
    }
    Ok(rows)
}

/// The function with counting ports, and the plain store for other changes.
struct Bench {
    store: Store,
    counter: Arc<Counter>,
    run_saga: Arc<dyn Consumer>,
    tokens: Arc<dyn GrantTokens>,
    host: Arc<dyn Host>,
    mode: Mode,
}

/// The number of calls of each type.
type Counts = BTreeMap<Call, u64>;

/// Counts calls, and simulates a concurrent writer if a situation needs one.
struct Counter {
    counts: Mutex<Counts>,
    store: Store,
    rival: Mutex<Option<SearchId>>,
}

#[async_trait]
impl Intercept for Counter {
    async fn step(&self, call: Call, phase: Phase) {
        if phase == Phase::After {
            return;
        }
        *self.counts.lock().unwrap_or_else(PoisonError::into_inner).entry(call).or_default() += 1;
        if call == Call::SagaPersist {
            let rival = self.rival.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(search) = rival {
                self.overtake(search).await;
            }
        }
    }
}

impl Counter {
    /// Stores the document like another worker, without changing its content.
    async fn overtake(&self, search: SearchId) {
        let now = SystemHost.now();
        let loaded = self.store.load(&[search], now).await.unwrap_or_default();
        for document in loaded.into_iter().flatten().flatten() {
            let write = Persist {
                partition: search,
                loaded: Some(document.version),
                version: document.version + 1,
                content: document.content,
                add: Vec::new(),
                cancel: Vec::new(),
            };
            // If this fails, the conflict is missing, and the situation reports it.
            let _ = self.store.persist(&[write], now).await;
        }
    }
}

/// The service of a call on AWS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Service {
    DynamoDb,
    MongoDb,
    Sqs,
}

/// Returns the service of a call; `None` for the bucket, whose calls cost almost nothing.
fn service_of(call: Call) -> Option<Service> {
    match call {
        Call::LedgerClaim
        | Call::LedgerRelease
        | Call::LedgerGrant
        | Call::LedgerCheck
        | Call::ProcessedLook
        | Call::ProcessedRemember => Some(Service::DynamoDb),
        Call::QueueSend | Call::QueueReceive | Call::QueueAnswer => Some(Service::Sqs),
        Call::ObjectsPresign | Call::ObjectsUpload | Call::ObjectsHead | Call::ObjectsOpen => None,
        _ => Some(Service::MongoDb),
    }
}

impl Bench {
    fn open(dir: &Path, mode: Mode) -> anyhow::Result<Self> {
        let host: Arc<dyn Host> = Arc::new(SystemHost);
        let store = Store::open(dir, Arc::clone(&host), Settings::new(&QUEUES))?;
        let counter =
            Arc::new(Counter { counts: Mutex::default(), store: store.clone(), rival: Mutex::default() });
        let counting = Arc::new(store.with_intercept(counter.clone()));
        let config = Config { mode, data_dir: dir.to_owned(), ..Config::default() };
        let backend = |store| backend::embedded(store, Arc::clone(&host), counting.clone(), config.clone());
        let run_saga = super::run_saga(&backend(&counting).ports)?;
        // Tokens granted in advance do not count.
        let tokens = Arc::clone(&backend(&Arc::new(store.clone())).ports.engine.partitions()?.tokens);
        Ok(Self { tokens, store, counter, run_saga, host, mode })
    }

    async fn all(&self, prices: &Prices) -> anyhow::Result<Vec<Row>> {
        let ledger = self.mode == Mode::Ledger;
        let bound = |dynamodb: f64, mongodb: f64| Some((if ledger { dynamodb } else { 0.0 }, mongodb));
        let (quiet, sending) = (bound(1.0, 2.0), bound(1.0, 3.0));
        let duplicate = bound(0.0, 1.0);
        let mut rows = Vec::new();
        let mut whole = Counts::new();
        let mut alone = |situation, bound, counts: &Counts| {
            rows.push(row(self.mode, situation, 1, 1, bound, counts, prices));
            if situation != DUPLICATE {
                counts.iter().for_each(|(call, count)| *whole.entry(*call).or_default() += count);
            }
        };

        let search = self.begin().await?;
        let [first, last] = &search.saved[..] else { anyhow::bail!("a measured search has two files") };
        alone("creation", quiet, &self.deliver(&[&search.started]).await?);
        alone(DUPLICATE, duplicate, &self.deliver(&[&search.started]).await?);
        alone("transition, nothing to send", quiet, &self.deliver(&[first]).await?);
        alone("transition that starts parsing", sending, &self.deliver(&[last]).await?);
        let replies = self.replies().await?;
        let [one, two] = &replies[..] else { anyhow::bail!("{} commands were sent, not 2", replies.len()) };
        alone("transition, a file reported", quiet, &self.deliver(&[one]).await?);
        alone("transition that ends the search", bound(2.0, 3.0), &self.deliver(&[two]).await?);
        rows.push(row(self.mode, "all five messages of a search", 5, 5, bound(1.2, 2.4), &whole, prices));
        // The tokens have been removed, which only the ledger can confirm.
        let (counts, late) = (self.deliver(&[two]).await?, bound(1.0, 1.0));
        rows.push(row(self.mode, "duplicate after the end", 1, 1, late, &counts, prices));

        let search = self.begin().await?;
        self.deliver(&[&search.started]).await?;
        *self.counter.rival.lock().unwrap_or_else(PoisonError::into_inner) = Some(search.id);
        let counts = self.deliver(&[&search.saved[0]]).await?;
        anyhow::ensure!(counts.get(&Call::SagaPersist) == Some(&2), "there was no conflict");
        rows.push(row(self.mode, "conflict, tried again once", 1, 1, None, &counts, prices));

        let (batch, bound) = (self.batch().await?, bound(1.0, 0.4));
        let last: Vec<&Message> = batch.iter().filter_map(|search| search.saved.last()).collect();
        let counts = self.deliver(&last).await?;
        rows.push(row(self.mode, "batch of 10 searches", last.len(), 1, bound, &counts, prices));
        Ok(rows)
    }

    async fn begin(&self) -> anyhow::Result<Search> {
        Search::begin(&self.host, self.tokens.as_ref()).await
    }

    /// Creates ten searches that wait for their last file.
    async fn batch(&self) -> anyhow::Result<Vec<Search>> {
        let mut searches = Vec::new();
        for _ in 0..10 {
            let search = self.begin().await?;
            self.deliver(&[&search.started]).await?;
            self.deliver(&[&search.saved[0]]).await?;
            searches.push(search);
        }
        Ok(searches)
    }

    /// Handles messages as one batch. Returns the calls made.
    async fn deliver(&self, messages: &[&Message]) -> anyhow::Result<Counts> {
        let mut batch = Vec::new();
        for (n, message) in messages.iter().enumerate() {
            let body = message.encode().context("encoding a message")?;
            batch.push(Delivery { record_id: n.to_string(), body, receive_count: 1, reason: None });
        }
        std::mem::take(&mut *self.counter.counts.lock().unwrap_or_else(PoisonError::into_inner));
        let answers = self.run_saga.consume(&batch, None).await;
        let done = answers.iter().all(|answer| *answer == Disposition::Acknowledge);
        anyhow::ensure!(done, "a message was not handled: {answers:?}");
        Ok(std::mem::take(&mut *self.counter.counts.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Returns the parser's replies to the sent commands.
    async fn replies(&self) -> anyhow::Result<Vec<Message>> {
        let received = self.store.receive(&PARSE, 10, std::time::Duration::from_secs(60)).await?;
        let mut replies = Vec::new();
        for received in received {
            let command = Message::decode(&received.delivery.body)?;
            let ParseCommand::StartParsing(parse) = command.read()? else { continue };
            replies.push(searches::reply(&command, &parse, self.host.now())?);
        }
        Ok(replies)
    }
}

/// Returns the price of messages in a number of batches.
fn row(
    mode: Mode,
    situation: &'static str,
    messages: usize,
    batches: usize,
    bound: Option<(f64, f64)>,
    counts: &Counts,
    prices: &Prices,
) -> Row {
    let sum = |service: Service| {
        let of_service = counts.iter().filter(|(call, _)| service_of(**call) == Some(service));
        of_service.map(|(_, count)| count).sum()
    };
    let (dynamodb, mongodb, sends) = (sum(Service::DynamoDb), sum(Service::MongoDb), sum(Service::Sqs));
    // Each batch needs one request to receive it, one to delete it, and one invocation.
    let requests = sends + 2 * batches as u64;
    let dollars = dynamodb as f64 * prices.dynamodb_write_unit.per_million
        + requests as f64 * prices.sqs_request.per_million
        + batches as f64 * prices.lambda_request.per_million;
    Row {
        mode: if mode == Mode::Ledger { "ledger" } else { "optimistic" },
        situation,
        messages,
        batches,
        dynamodb,
        mongodb,
        sends,
        bound,
        dollars_per_million: dollars / messages.max(1) as f64,
    }
}
