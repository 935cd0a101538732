//! Large data outside of the queues (claim check): a text of 4 MB is in an object store, and the message has its key.
#![allow(clippy::print_stdout, reason = "the output of a program")]

use std::error::Error;
use std::path::{Path, PathBuf};

use onceward::SystemHost;
use onceward::dedup::{CommandMessage, HandlerResult};
use onceward::local::{FaultInjection, Runner};
use onceward::prelude::*;
use onceward::uuid::Uuid;

const TEXTS: Queue = Queue::named("texts");
messages! { enum Command of "texts" to TEXTS { CountWords { text: Uuid } = 1 } }

/// Returns the file of an object. An object never changes, so a reader gets the data that the message means.
fn object(store: &Path, key: Uuid) -> PathBuf {
    store.join(key.to_string())
}

/// The engine, and the object store, here a folder.
#[derive(Clone)]
struct Ports(Engine, PathBuf);

impl AsRef<Engine> for Ports {
    fn as_ref(&self) -> &Engine {
        &self.0
    }
}

impl AsMut<Engine> for Ports {
    fn as_mut(&mut self) -> &mut Engine {
        &mut self.0
    }
}

struct CountWords(PathBuf);

#[async_trait]
impl Handler for CountWords {
    type Command = Command;

    async fn handle(
        &self,
        request: &CommandMessage<Command>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        let Command::CountWords { text } = request.command;
        // An object that cannot be read now may be readable later.
        let retry = |error: std::io::Error| HandlerError::Retry { reason: error.to_string(), after: None };
        let words = std::fs::read_to_string(object(&self.0, text)).map_err(retry)?.split_whitespace().count();
        println!("{words} words in an object of 4 MB");
        Ok(HandlerResult::completed("counted"))
    }
}

static QUEUES: [QueueSpec; 4] = [
    QueueSpec::standard(TEXTS, Queue::named("texts-dead")),
    QueueSpec::without_consumer(Queue::named("texts-dead")),
    QueueSpec::standard(CONTROL, Queue::named("control-dead")),
    QueueSpec::without_consumer(Queue::named("control-dead")),
];
static COUNT: Function<Ports> = Function {
    name: "count",
    services: &[Service::PROCESSED, Service::TOKENS],
    source: Source::Queue(TEXTS),
    sends: &[],
    drains: &[],
    build: Some(|ports| ports.0.guard("count", CountWords(ports.1.clone()))),
};
static SENDS: [Queue; 2] = [CONTROL, TEXTS];
static OUTBOX: Function<Ports> = Function::dispatch_outbox(&SENDS);
static SYSTEM: System<Ports> = System { name: "texts", queues: &QUEUES, functions: &[&COUNT, &OUTBOX] };

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (dir, folder, host) = (tempfile::tempdir()?, tempfile::tempdir()?, Arc::new(SystemHost));
    let objects = folder.path().to_owned();
    let opened = objects.clone();
    let ports = move |engine| Ports(engine, opened.clone());
    let runner =
        Runner::open_with(&SYSTEM, dir.path(), host.clone(), FaultInjection::default(), ports).await?;
    let entry = runner.ports().0.entry_point("web")?;
    let upload = async {
        // The object first: a request that crashes here leaves an object without a message, which a lifecycle rule of
        // the store deletes, and never a message without an object.
        let key = host.random_id();
        std::fs::write(object(&objects, key), "word ".repeat(800_000))?;
        let mut session = entry.session(PartitionKey::from_uuid(key));
        session.send(&Command::CountWords { text: key })?;
        session.commit().await?;
        Ok::<_, Box<dyn Error>>(runner.settled().await?)
    };
    runner.run_until(upload).await?
}
