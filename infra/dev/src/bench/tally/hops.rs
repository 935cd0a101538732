//! The duration of each call of an attempt.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use dedup::{Admission, Claim, ClaimPartition, GrantTokens, Release};
use jiff::Timestamp;
use messages::{Outgoing, PartitionKey, SendError, SendMessages, StoreError, Token};
use outbox::Settlement;
use saga::{Engine, LoadResult, Persist, PersistOutcome, ReadDocuments, WriteDocuments};
use serde::Serialize;

use crate::bench::quantile_ms;

/// The durations of calls by their types.
#[derive(Default)]
pub struct Hops(Mutex<BTreeMap<&'static str, Vec<Duration>>>);

/// The durations of one type of call.
#[derive(Debug, Clone, Serialize)]
pub struct Hop {
    /// The type of call.
    pub hop: &'static str,
    /// The number of calls.
    pub calls: usize,
    /// The median duration.
    pub p50_ms: f64,
    /// The 99th percentile of the duration.
    pub p99_ms: f64,
}

impl Hops {
    async fn time<T>(&self, hop: &'static str, call: impl Future<Output = T>) -> T {
        let began = Instant::now();
        let answer = call.await;
        let took = began.elapsed();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(hop).or_default().push(took);
        answer
    }

    /// Returns all types of calls, ordered by their names.
    pub fn report(&self) -> Vec<Hop> {
        let hops = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let report = hops.iter().map(|(hop, took)| {
            let mut took = took.clone();
            took.sort_unstable();
            Hop { hop, calls: took.len(), p50_ms: quantile_ms(&took, 0.5), p99_ms: quantile_ms(&took, 0.99) }
        });
        report.collect()
    }

    /// Returns the engine with a timer at each port that an attempt calls.
    ///
    /// # Errors
    /// Returns an error if the engine has no database or no ledger.
    pub fn watch(self: &Arc<Self>, mut engine: Engine) -> anyhow::Result<Engine> {
        let mut stores = engine.stores()?.clone();
        stores.read_documents = self.timed(stores.read_documents);
        stores.write_documents = self.timed(stores.write_documents);
        engine.stores = Ok(stores);
        let mut partitions = engine.partitions()?.clone();
        partitions.ledger = self.timed(partitions.ledger);
        partitions.tokens = self.timed(partitions.tokens);
        engine.partitions = Ok(partitions);
        engine.send = self.timed(engine.send);
        Ok(engine)
    }

    fn timed<P: ?Sized>(self: &Arc<Self>, port: Arc<P>) -> Arc<TimedPort<P>> {
        Arc::new(TimedPort { port, hops: Arc::clone(self) })
    }
}

struct TimedPort<P: ?Sized> {
    hops: Arc<Hops>,
    port: Arc<P>,
}

#[async_trait]
impl ClaimPartition for TimedPort<dyn ClaimPartition> {
    async fn claim(&self, claim: &Claim) -> Result<Admission, StoreError> {
        self.hops.time("claim", self.port.claim(claim)).await
    }

    async fn release(&self, release: &Release) -> Result<bool, StoreError> {
        self.hops.time("release", self.port.release(release)).await
    }
}

#[async_trait]
impl GrantTokens for TimedPort<dyn GrantTokens> {
    async fn grant(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.hops.time("grant", self.port.grant(partition, tokens, now)).await
    }

    async fn begin(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        self.hops.time("begin", self.port.begin(partition, tokens, now)).await
    }

    async fn revoke(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        self.hops.time("revoke", self.port.revoke(partition, tokens, now)).await
    }
}

#[async_trait]
impl ReadDocuments for TimedPort<dyn ReadDocuments> {
    async fn load(&self, partitions: &[PartitionKey], now: Timestamp) -> Result<Vec<LoadResult>, StoreError> {
        self.hops.time("load", self.port.load(partitions, now)).await
    }

    async fn load_latest(&self, partition: PartitionKey, now: Timestamp) -> LoadResult {
        self.hops.time("load latest", self.port.load_latest(partition, now)).await
    }
}

#[async_trait]
impl WriteDocuments for TimedPort<dyn WriteDocuments> {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<PersistOutcome>, StoreError> {
        self.hops.time("commit", self.port.persist(writes, now)).await
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        self.hops.time("settle", self.port.settle(settlements)).await
    }
}

#[async_trait]
impl SendMessages for TimedPort<dyn SendMessages> {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        self.hops.time("publish", self.port.send(messages)).await
    }
}
