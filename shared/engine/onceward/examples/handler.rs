//! An idempotent handler that calls an external service: each charge reaches the card provider under one idempotency
//! key, and the reply is sent once.
#![allow(clippy::print_stdout, reason = "the output of a program")]

use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use onceward::SystemHost;
use onceward::dedup::{CommandMessage, HandlerResult};
use onceward::local::{FaultInjection, Runner};
use onceward::prelude::*;

const CARDS: Queue = Queue::named("cards");

messages! {
    /// Commands for the handler.
    enum Command of "cards" to CARDS {
        /// Charge a card.
        Charge { card: String, cents: u64 } = 1,
    }
}

/// The client of the card provider. The provider ignores a request whose key it knows.
#[derive(Default)]
struct Provider {
    charges: Mutex<BTreeMap<String, u64>>,
    calls: Mutex<u32>,
}

impl Provider {
    fn charge(&self, idempotency_key: &str, cents: u64) -> Result<(), &'static str> {
        let (Ok(mut charges), Ok(mut calls)) = (self.charges.lock(), self.calls.lock()) else {
            return Err("the provider is broken");
        };
        charges.insert(idempotency_key.to_owned(), cents);
        *calls += 1;
        // The first request arrived, but its answer was lost.
        if *calls == 1 { Err("the provider did not answer") } else { Ok(()) }
    }
}

static PROVIDER: LazyLock<Provider> = LazyLock::new(Provider::default);

struct ChargeCards;

#[async_trait]
impl Handler for ChargeCards {
    type Command = Command;

    async fn handle(
        &self,
        request: &CommandMessage<Command>,
        _: &Reporter,
        _: Option<Timestamp>,
    ) -> Result<HandlerResult, HandlerError> {
        let Command::Charge { cents, .. } = &request.command;
        // Every delivery of the command has the same id, so the provider can recognize a repeated request.
        let charged = PROVIDER.charge(&request.message.id.to_string(), *cents);
        let soon = Some(Duration::from_millis(10));
        charged.map_err(|reason| HandlerError::Retry { reason: reason.to_owned(), after: soon })?;
        Ok(HandlerResult::completed("charged"))
    }
}

static QUEUES: [QueueSpec; 2] = [
    QueueSpec::standard(CARDS, Queue::named("cards-dead")),
    QueueSpec::without_consumer(Queue::named("cards-dead")),
];
static CHARGE_CARDS: Function<Engine> = Function {
    name: "charge-cards",
    services: &[Service::PROCESSED, Service::TOKENS],
    source: Source::Queue(CARDS),
    sends: &[],
    drains: &[],
    build: Some(|engine| engine.guard("charge-cards", ChargeCards)),
};
static SYSTEM: System<Engine> = System { name: "cards", queues: &QUEUES, functions: &[&CHARGE_CARDS] };

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (dir, faults) = (tempfile::tempdir()?, FaultInjection { copies: 3, ..FaultInjection::default() });
    let runner = Runner::open(&SYSTEM, dir.path(), Arc::new(SystemHost), faults).await?;
    let engine = runner.ports();
    let send = async {
        for (card, cents) in [("4711", 100), ("4712", 20)] {
            let command = Command::Charge { card: card.to_owned(), cents };
            engine.send_now("shop", PartitionKey::named("cards", card), &command).await?;
        }
        runner.settled().await?;
        Ok::<_, Box<dyn Error>>(())
    };
    runner.run_until(send).await??;
    let charges = PROVIDER.charges.lock()?;
    assert_eq!(charges.values().sum::<u64>(), 120, "each card is charged once");
    println!("six deliveries of two commands: {} charges", charges.len());
    Ok(())
}
