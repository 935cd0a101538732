//! The call depth from a `main` to the conditional write, so that stack traces stay short.

use std::backtrace::Backtrace;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use backend::Backend;
use events::Installation;
use functions::run_saga::FUNCTION;
use imports::queues::SAGA;
use jiff::Timestamp;
use lambda::{SettleVia, Worker};
use messages::{PartitionKey, StoreError};
use outbox::Settlement;
use saga::{Persist, PersistOutcome, WriteDocuments};

/// The maximum number of our own frames from `main` to the store's conditional write, both included. Frames of
/// `messages::panics` do not count: they only catch panics of the state machine.
const MAX_FRAMES: usize = 13;
/// The number of frames above `Worker::answer`: `main`, its async block, that of `functions::run`, `lambda::serve`, and
/// its invocation.
const ABOVE: usize = 5;
/// The crates on the way.
const OURS: [&str; 7] = ["saga", "lambda", "outbox", "dedup", "messages", "imports", "backend"];

/// Records a backtrace of each write.
struct TracingWriter {
    inner: Arc<dyn WriteDocuments>,
    trace: Arc<Mutex<Option<String>>>,
}

#[async_trait]
impl WriteDocuments for TracingWriter {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<PersistOutcome>, StoreError> {
        *self.trace.lock().unwrap() = Some(Backtrace::force_capture().to_string());
        self.inner.persist(writes, now).await
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        self.inner.settle(settlements).await
    }
}

#[tokio::test]
async fn conditional_write_is_few_frames_below_main() {
    let batch = events::event("sqs-saga-good");
    let installation = Installation::admitting(&batch).await;
    let (batch, trace) = (serde_json::from_value(batch).unwrap(), Arc::new(Mutex::new(None)));
    let mut backend: Backend = installation.backend();
    let stores = backend.ports.engine.stores.as_mut().unwrap();
    let inner = Arc::clone(&stores.write_documents);
    stores.write_documents = Arc::new(TracingWriter { inner, trace: Arc::clone(&trace) });
    let consumer = (FUNCTION.build.unwrap())(&backend.ports).unwrap();
    let (engine, consumer) = (&backend.ports.engine, consumer.as_ref());
    let worker = Worker { engine, queue: &SAGA, consumer, settling: SettleVia::ResponseOnly };
    worker.answer(batch, None).await;
    let trace = trace.lock().unwrap().take().expect("nothing was written");
    let is_ours = |place: &&str| {
        OURS.iter().any(|name| place.contains(&format!("/{name}/src/"))) && !place.contains("panics.rs")
    };
    let places = trace.lines().filter_map(|line| line.trim().strip_prefix("at "));
    let ours: Vec<&str> = places.filter(is_ours).collect();
    // The store's own frame counts as that of an adapter.
    let frames = ABOVE + ours.len() + 1;
    assert!(ours.iter().any(|place| place.contains("lambda/src/lib.rs")), "{trace}");
    assert!(frames <= MAX_FRAMES, "{frames} frames: {ours:#?}");
}
