//! A saga whose database is DynamoDB: documents, sessions, outboxes and views are in one table. On AWS, the queues are
//! in SQS, and the ledger is `onceward::aws::ledger::Ledger`. `AWS_ENDPOINT_URL_DYNAMODB` names a local server.
#![allow(clippy::print_stdout, reason = "the output of a program")]

use std::error::Error;

use onceward::SystemHost;
use onceward::dynamo::{Client, Dynamo, Settings};
use onceward::local::{FaultInjection, Runner};
use onceward::prelude::*;
use serde::{Deserialize, Serialize};

messages! { enum Change of "tickets" to SAGA { Reserved { seat: u32 } = 1, Paid {} = 1 } }

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Ticket {
    seat: u32,
    payments: u32,
    paid_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Default)]
struct Tickets;

impl Saga for Tickets {
    const NAME: &'static str = "tickets";
    type State = Ticket;
    type Event = Change;

    fn transition(&self, ticket: &Ticket, event: &Event<'_, Change>, now: Timestamp) -> Decision<Ticket> {
        let next = match event.body {
            Change::Reserved { seat } => Ticket { seat: *seat, ..ticket.clone() },
            Change::Paid {} => Ticket { payments: ticket.payments + 1, paid_at: Some(now), ..ticket.clone() },
        };
        Decision::to(next, "changed").show().into()
    }

    fn ended_at(&self, ticket: &Ticket) -> Option<Timestamp> {
        ticket.paid_at
    }

    fn view(&self, partition: PartitionKey, ticket: &Ticket) -> Option<View> {
        View::of(partition, ticket, ticket.paid_at.is_some()).ok()
    }
}

static QUEUES: [QueueSpec; 4] = [
    QueueSpec::standard(SAGA, Queue::named("saga-dead")),
    QueueSpec::without_consumer(Queue::named("saga-dead")),
    QueueSpec::standard(CONTROL, Queue::named("control-dead")),
    QueueSpec::without_consumer(Queue::named("control-dead")),
];
static SENDS: [Queue; 2] = [CONTROL, SAGA];
static SAGA_FUNCTION: Function<Engine> = Function::saga::<Tickets>(&SENDS);
static OUTBOX_FUNCTION: Function<Engine> = Function::dispatch_outbox(&SENDS);
static SYSTEM: System<Engine> =
    System { name: "tickets", queues: &QUEUES, functions: &[&SAGA_FUNCTION, &OUTBOX_FUNCTION] };

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let table = format!("tickets-{}", SystemHost.fresh_id().simple());
    let settings = Settings { table, ..Settings::new(SYSTEM.name) };
    let client = Client::new(&onceward::aws::config().await);
    let dynamo = Dynamo::new(client, settings, Arc::new(SystemHost));
    // On AWS, a template creates the table (`onceward::dynamo::table::properties`).
    dynamo.create_table().await?;
    let (dir, stores) = (tempfile::tempdir()?, dynamo.stores());
    let engine = move |engine| Engine { stores: Ok(stores.clone()), ..engine };
    let faults = FaultInjection { copies: 3, ..FaultInjection::default() };
    let runner = Runner::open_with(&SYSTEM, dir.path(), Arc::new(SystemHost), faults, engine).await?;
    let (entry, views) = (runner.ports().entry_point("shop")?, runner.ports().views(Tickets)?);
    let ticket = PartitionKey::named(Tickets::NAME, "17");
    let customer = async {
        for event in [Change::Reserved { seat: 17 }, Change::Paid {}] {
            let mut session = entry.session(ticket);
            session.send(&event)?;
            session.commit().await?;
            runner.settled().await?;
        }
        views.view(ticket).await?.ok_or_else(|| Box::<dyn Error>::from("the ticket is unknown"))
    };
    let view = runner.run_until(customer).await?;
    dynamo.delete_table().await?;
    assert_eq!(view?.body["payments"], 1, "three copies of the payment count once");
    println!("seat 17 was paid once");
    Ok(())
}
