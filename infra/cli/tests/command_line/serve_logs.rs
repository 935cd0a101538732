//! Logs of a server about exhausted outbox entries and dead-lettered messages.

use std::sync::Arc;
use std::time::Duration;

use backend::{Backend, Config, SystemHost};
use contracts::sample;
use imports::queues::SAGA;
use messages::{Host, MessageId, Outgoing};
use outbox::Entry;
use saga::Persist;
use servers::TestResult;
use servers::mongo::eventually;

use crate::program::Program;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Stores an effect that can never be performed. Returns the entry's id.
async fn hopeless_effect(backend: &Backend) -> Result<MessageId, Box<dyn std::error::Error + Send + Sync>> {
    let host = &SystemHost;
    let (search, now) = (sample::partition(host), sample::now(host));
    let id = MessageId::from_uuid(host.fresh_id());
    let view = Entry::view(id, sample::view(host, search, 1, false), now);
    let entry = Entry { payload: "no view".to_owned(), ..view };
    let write = Persist { add: vec![entry], ..sample::persist(search, None, sample::content(host, "x")) };
    backend.ports.engine.stores()?.write_documents.persist(&[write], now).await?;
    Ok(id)
}

#[tokio::test(flavor = "multi_thread")]
async fn server_logs_exhausted_entries_and_dead_letters() -> TestResult {
    let program = Program::new();
    let config = Config { data_dir: program.data(), ..Config::default() };
    let backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
    let entry = hopeless_effect(&backend).await?;
    let message = MessageId::from_uuid(SystemHost.fresh_id());
    let junk = Outgoing {
        queue: SAGA,
        id: message,
        partition: sample::partition(&SystemHost),
        body: "no message".to_owned(),
        delay: Duration::ZERO,
    };
    for sent in backend.ports.engine.send.send(&[junk]).await {
        sent?;
    }
    let log = program.folder().join("log");
    let mut server = program.start_logging(&["serve", "--listen", "127.0.0.1:0"], &log);
    let told = eventually("both are told", TIMEOUT, async || {
        let said = std::fs::read_to_string(&log)?;
        let line = |words: &[&str]| said.lines().any(|line| words.iter().all(|word| line.contains(word)));
        let effect = line(&["an outbox entry is exhausted", &entry.to_string()]);
        Ok::<_, std::io::Error>(effect && line(&["rejected", "run-saga"]))
    })
    .await;
    let killed = server.kill();
    server.wait()?;
    killed?;
    Ok(told?)
}
