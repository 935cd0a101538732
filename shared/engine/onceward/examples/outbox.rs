//! The outbox alone: a message is stored with the data, and sent later although the queue is unavailable at first.
#![allow(clippy::print_stdout, reason = "the output of a program")]

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering};

use onceward::SystemHost;
use onceward::messages::{Outgoing, SendError, SendMessages};
use onceward::outbox::Policy;
use onceward::prelude::*;
use onceward::sqlite::{Settings, Store};

const EVENTS: Queue = Queue::named("events");

messages! {
    /// Announcements to other systems.
    enum News of "articles" to EVENTS {
        /// An article was published.
        Published { title: String } = 1,
    }
}

static QUEUES: [QueueSpec; 2] = [QueueSpec::without_consumer(EVENTS), QueueSpec::without_consumer(CONTROL)];
static SYSTEM: System<Engine> = System { name: "articles", queues: &QUEUES, functions: &[] };

/// A queue service that refuses the first announcements.
struct Outage {
    inner: Arc<dyn SendMessages>,
    refusals: AtomicU32,
}

#[async_trait]
impl SendMessages for Outage {
    async fn send(&self, messages: &[Outgoing]) -> Vec<Result<(), SendError>> {
        let is_news = messages.iter().any(|message| message.queue == EVENTS);
        let refuse = |left: u32| left.checked_sub(1);
        if is_news && self.refusals.fetch_update(Ordering::SeqCst, Ordering::SeqCst, refuse).is_ok() {
            let refused = || StoreError::unavailable("sending a message", "the service is down".to_owned());
            return messages.iter().map(|_| Err(refused().into())).collect();
        }
        self.inner.send(messages).await
    }
}

async fn queued(store: &Store) -> Result<u64, StoreError> {
    Ok(store.count_messages().await?.get(&EVENTS).map_or(0, |depth| depth.visible))
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (dir, host) = (tempfile::tempdir()?, Arc::new(SystemHost));
    let store = Arc::new(Store::open(dir.path(), host.clone(), Settings::of(SYSTEM.name, &QUEUES))?);
    let mut engine = store.engine(SYSTEM.name, host, Arc::new(()));
    engine.send = Arc::new(Outage { inner: store.clone(), refusals: AtomicU32::new(3) });
    // Retries immediately, so that this program does not have to wait; the default waits longer each time.
    engine.policy = Policy { max_delay: SignedDuration::ZERO, ..Policy::default() };
    let entry = engine.entry_point("editor")?;
    let mut session = entry.session(PartitionKey::named("articles", "Outboxes"));
    session.write(Key::new("article", "Outboxes"), "An outbox keeps what it cannot send.".into());
    session.send(&News::Published { title: "Outboxes".to_owned() })?;
    // The commit succeeds during the outage.
    session.commit().await?;
    assert_eq!(queued(&store).await?, 0);
    let outbox = engine.dispatch_outbox("sweeper")?;
    let mut sweeps = 0;
    while queued(&store).await? == 0 {
        // On a schedule in production: each minute on Lambda, each second in the local runner.
        outbox.sweep(None).await?;
        sweeps += 1;
    }
    outbox.sweep(None).await?;
    assert_eq!(queued(&store).await?, 1, "it is sent once");
    println!("the announcement was sent by sweep {sweeps}");
    Ok(())
}
