//! Late duplicates, before and after the search's document has expired.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use backend::{Backend, Config, SystemHost};
use contracts::RecordingSink;
use functions::{SYSTEM, run_saga};
use imports::ProjectId;
use imports::queues::SAGA;
use local::{FaultInjection, Runner};
use messages::{Delivery, Disposition, Host, Outgoing, SendError, SendMessages, Verdict};
use mongo::collections;
use mongodb::bson::{DateTime, Document, doc};
use servers::TestResult;
use servers::mongo::eventually;
use service::{NewFile, NewSearch, SearchService};

use super::{Environment, upload};
use crate::program::bundled;

/// MongoDB's TTL monitor runs once a minute by default.
const TIMEOUT: Duration = Duration::from_secs(130);

/// Sends messages, and records the messages to the saga.
struct MessageRecorder {
    inner: Arc<dyn SendMessages>,
    sent: Mutex<Vec<Outgoing>>,
}

#[async_trait]
impl SendMessages for MessageRecorder {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        let of_saga = messages.iter().filter(|message| message.queue == SAGA);
        self.sent.lock().unwrap().extend(of_saga.cloned());
        self.inner.send(messages).await
    }
}

/// A finished import, and every message sent to its saga.
struct FinishedImport {
    backend: Backend,
    messages: Vec<Outgoing>,
    sent: Arc<MessageRecorder>,
    seen: Arc<RecordingSink>,
}

impl FinishedImport {
    async fn new(environment: &Environment) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let config = Config::from_pairs(imports::SYSTEM, environment.settings.clone())?;
        let seen = Arc::new(RecordingSink::default());
        let mut backend = backend::open(config, Arc::new(SystemHost), seen.clone()).await?;
        let engine = &mut backend.ports.engine;
        let sent = Arc::new(MessageRecorder { inner: Arc::clone(&engine.send), sent: Mutex::default() });
        engine.send = sent.clone();
        let runner = Runner::new(&SYSTEM, backend.ports.clone(), None, FaultInjection::default());
        let content = std::fs::read(bundled("psycinfo.ris"))?;
        let file = NewFile { name: "psycinfo.ris".into(), size_bytes: content.len() as u64 };
        let request = NewSearch { name: "late".into(), files: vec![file] };
        let project = ProjectId::from_uuid(SystemHost.fresh_id());
        let announced =
            SearchService::over(&backend.ports, &functions::SYSTEM)?.create(project, &request).await?;
        upload(environment, &announced.files[0].upload, &content).await?;
        let jobs = backend.ports.jobs()?;
        let sagas = environment.database().await?.collection::<Document>(collections::SAGA);
        let ended = eventually("the search has ended and its outbox is empty", TIMEOUT, async || {
            let job = jobs.job(announced.search_id).await?;
            let waiting = sagas.count_documents(doc! { "Outbox.0": { "$exists": true } }).await?;
            let done = waiting == 0 && job.is_some_and(|job| job.state.has_ended());
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(done)
        });
        runner.run_until(ended).await??;
        let messages = std::mem::take(&mut *sent.sent.lock().unwrap());
        seen.take();
        Ok(Self { backend, messages, sent, seen })
    }

    /// Redelivers all messages. Returns the decisions.
    async fn deliver_again(&self) -> Result<Vec<Verdict>, saga::MissingSetting> {
        let again = |message: &Outgoing| Delivery {
            record_id: message.id.to_string(),
            body: message.body.clone(),
            receive_count: 2,
            reason: None,
        };
        let batch: Vec<Delivery> = self.messages.iter().map(again).collect();
        let build = run_saga::FUNCTION.build.expect("it is behind a queue");
        let answers = build(&self.backend.ports)?.consume(&batch, None).await;
        assert!(answers.iter().all(|answer| *answer == Disposition::Acknowledge), "{answers:?}");
        Ok(self.seen.take())
    }
}

async fn sagas(environment: &Environment) -> Result<u64, mongodb::error::Error> {
    environment.database().await?.collection::<Document>(collections::SAGA).count_documents(doc! {}).await
}

#[tokio::test(flavor = "multi_thread")]
async fn late_duplicate_without_ledger_changes_nothing() -> TestResult {
    Environment::with(async |environment| {
        let environment = environment.but("SEARCH_IMPORT_MODE", "optimistic");
        let finished = FinishedImport::new(&environment).await?;
        let before =
            environment.database().await?.collection::<Document>(collections::SAGA).find_one(doc! {}).await?;
        let verdicts = finished.deliver_again().await?;
        assert_eq!(verdicts.len(), finished.messages.len());
        let harmless = |verdict: &Verdict| matches!(verdict, Verdict::Ignored | Verdict::Recovered);
        assert!(verdicts.iter().all(harmless), "{verdicts:?}");
        assert_eq!(finished.sent.sent.lock().unwrap().len(), 0, "nothing follows from it");
        let after =
            environment.database().await?.collection::<Document>(collections::SAGA).find_one(doc! {}).await?;
        assert_eq!(before, after);
        Ok(())
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn late_duplicate_after_expiry_is_dropped_by_token() -> TestResult {
    Environment::with(async |environment| {
        let finished = FinishedImport::new(&environment).await?;
        let long_ago = DateTime::from_millis(1_000);
        let sagas_of_all = environment.database().await?.collection::<Document>(collections::SAGA);
        sagas_of_all.update_many(doc! {}, doc! { "$set": { "CompletedAt": long_ago } }).await?;
        eventually("the document has expired", TIMEOUT, async || {
            Ok::<_, mongodb::error::Error>(sagas(&environment).await? == 0)
        })
        .await?;
        let verdicts = finished.deliver_again().await?;
        assert_eq!(verdicts, vec![Verdict::Duplicate; finished.messages.len()]);
        assert_eq!(finished.sent.sent.lock().unwrap().len(), 0, "nothing follows from it");
        assert_eq!(sagas(&environment).await?, 0, "the search does not restart");
        Ok(())
    })
    .await
}
