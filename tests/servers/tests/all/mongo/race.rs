//! Two replicas that create the same search concurrently, without a ledger.

use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use backend::SystemHost;
use contracts::{RecordingSink, sample};
use dedup::ledger::NoLedger;
use functions::run_saga;
use imports::messages::{ObjectRef, SearchUploadSaved};
use imports::{FileId, ProjectId, SearchEvent, SearchId, SearchImport, UploadMetadata};
use jiff::Timestamp;
use messages::{
    Consumer, DecisionSink, Delivery, Disposition, Host, Message, MessageId, Metric, Outgoing, PartitionKey,
    Payload, Reporter, SendError, SendMessages, StoreError, Verdict,
};
use mongo::Mongo;
use outbox::{Dispatcher, Policy, Settlement};
use saga::{Persist, PersistOutcome, Settings, WriteDocuments, run};
use tokio::sync::Barrier;

use super::{Scratch, TestResult};

/// Delays its first write until the other replica has also found no search.
struct SimultaneousWrites {
    mongo: Mongo,
    barrier: Arc<Barrier>,
    answers: Mutex<Vec<PersistOutcome>>,
}

#[async_trait]
impl WriteDocuments for SimultaneousWrites {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<PersistOutcome>, StoreError> {
        if writes.iter().any(|write| write.loaded.is_none()) {
            self.barrier.wait().await;
        }
        let answers = self.mongo.persist(writes, now).await?;
        self.answers.lock().unwrap().extend(answers.iter().copied());
        Ok(answers)
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        self.mongo.settle(settlements).await
    }
}

/// Records the sent messages.
#[derive(Default)]
struct SentMessages(Mutex<Vec<Outgoing>>);

#[async_trait]
impl SendMessages for SentMessages {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        self.0.lock().unwrap().extend_from_slice(messages);
        messages.iter().map(|_| Ok(())).collect()
    }
}

/// Returns the function on this database, without a ledger.
pub(super) fn consumer(mongo: &Mongo, observer: Arc<dyn DecisionSink>) -> Arc<dyn Consumer> {
    over(mongo, Arc::new(mongo.clone()), Arc::new(SentMessages::default()), observer)
}

fn over(
    mongo: &Mongo,
    write: Arc<dyn WriteDocuments>,
    send: Arc<dyn SendMessages>,
    observer: Arc<dyn DecisionSink>,
) -> Arc<dyn Consumer> {
    let host = Arc::new(SystemHost);
    let reporter = Reporter {
        function: run_saga::NAME,
        host: host.clone(),
        observer,
        began_at: None,
        attempt: None,
        state: None,
    };
    let dispatcher = Dispatcher {
        send,
        views: Arc::new(mongo.clone()),
        records: Arc::new(mongo.clone()),
        earlier_view: imports::job::earlier_view,
        policy: Policy::default(),
        reporter,
    };
    let read = Arc::new(mongo.clone());
    let (ledger, tokens) = (Arc::new(NoLedger), Arc::new(NoLedger));
    let ports = saga::Ports { read, write, ledger, tokens, dispatcher, host };
    run(SearchImport::default(), ports, Settings { admit_untokened: true, ..Settings::default() })
}

struct Replica {
    function: Arc<dyn Consumer>,
    writes: Arc<SimultaneousWrites>,
    sent: Arc<SentMessages>,
    seen: Arc<RecordingSink>,
}

impl Replica {
    fn new(mongo: &Mongo, barrier: &Arc<Barrier>) -> Self {
        let writes = Arc::new(SimultaneousWrites {
            mongo: mongo.clone(),
            barrier: Arc::clone(barrier),
            answers: Mutex::default(),
        });
        let (sent, seen) = (Arc::new(SentMessages::default()), Arc::new(RecordingSink::default()));
        let function = over(mongo, writes.clone(), sent.clone(), seen.clone());
        Self { function, writes, sent, seen }
    }

    async fn handle(&self, message: &Message) -> Vec<Disposition> {
        let body = message.encode().unwrap();
        let delivery = Delivery { record_id: "1".into(), body, receive_count: 1, reason: None };
        self.function.consume(&[delivery], None).await
    }
}

/// Returns the event for the only file of a search, reported by two notifications.
pub(super) fn saved(search: SearchId, file_id: FileId) -> Message {
    let metadata = UploadMetadata { search_name: "raced".into(), expected_files: 1 };
    let object = ObjectRef { bucket: "b".into(), key: "k".into(), version: None, size_bytes: 1 };
    let event = SearchEvent::SearchUploadSaved(SearchUploadSaved {
        project_id: ProjectId::from_uuid(SystemHost.fresh_id()),
        file_id,
        file_name: "a.ris".into(),
        object,
        metadata: metadata.to_map(),
    });
    let (id, now) = (MessageId::from_uuid(SystemHost.fresh_id()), SystemHost.now());
    Message { traceparent: None, ..Message::new(id, "testing", search, now, event.body().unwrap()) }
}

#[tokio::test]
async fn duplicate_key_loser_sends_nothing() -> TestResult {
    let scratch = Scratch::new().await?;
    let barrier = Arc::new(Barrier::new(2));
    let replicas = [Replica::new(&scratch.mongo, &barrier), Replica::new(&scratch.mongo, &barrier)];
    let (search, file) = (sample::partition(&SystemHost), FileId::from_uuid(SystemHost.fresh_id()));
    let (one, other) = (saved(search, file), saved(search, file));
    let (first, second) = tokio::join!(replicas[0].handle(&one), replicas[1].handle(&other));
    assert_eq!((first, second), (vec![Disposition::Acknowledge], vec![Disposition::Acknowledge]));
    let (winner, loser) = match replicas[0].writes.answers.lock().unwrap()[..] {
        [PersistOutcome::Stored] => (&replicas[0], &replicas[1]),
        _ => (&replicas[1], &replicas[0]),
    };
    assert_eq!(*winner.writes.answers.lock().unwrap(), [PersistOutcome::Stored]);
    assert_eq!(*loser.writes.answers.lock().unwrap(), [PersistOutcome::Conflict], "it wrote once, and lost");
    assert_eq!(loser.seen.take(), [Verdict::Ignored]);
    let conflicts = [winner, loser].map(|replica| replica.seen.measured(Metric::CONFLICTS));
    assert_eq!(conflicts, [0, 1], "the taken key is counted");
    assert_eq!(loser.sent.0.lock().unwrap().len(), 0, "its commands never left");
    assert_eq!(winner.sent.0.lock().unwrap().len(), 1, "the file is parsed once");
    scratch.end().await
}
