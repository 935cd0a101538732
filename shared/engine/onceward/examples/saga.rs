//! A durable saga: an invoice is sent, and paid or overdue. Every message is delivered three times.
#![allow(clippy::print_stdout, reason = "the output of a program")]

use std::error::Error;

use onceward::SystemHost;
use onceward::local::{FaultInjection, Runner};
use onceward::prelude::*;
use serde::{Deserialize, Serialize};

messages! {
    enum Change of "invoices" to SAGA {
        Sent { cents: u64, days: i64 } = 1,
        Paid { cents: u64 } = 1,
        PaymentOverdue {} = 1,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Invoice {
    due_cents: u64,
    paid_cents: u64,
    ended_at: Option<Timestamp>,
}

#[derive(Clone, Copy, Default)]
struct Invoices;

impl Saga for Invoices {
    const NAME: &'static str = "invoices";
    type State = Invoice;
    type Event = Change;

    fn transition(&self, invoice: &Invoice, event: &Event<'_, Change>, now: Timestamp) -> Decision<Invoice> {
        let is_open = invoice.due_cents > 0 && invoice.ended_at.is_none();
        match event.body {
            Change::Sent { cents, days } if invoice.due_cents == 0 => {
                let due_at = now + SignedDuration::from_hours(24 * days);
                Decision::to(Invoice { due_cents: *cents, ..invoice.clone() }, "waiting for the payment")
                    .schedule("payment", due_at, &Change::PaymentOverdue {})
                    .show()
                    .into()
            }
            Change::Paid { cents } if is_open => {
                let paid_cents = invoice.paid_cents + cents;
                let ended_at = (paid_cents >= invoice.due_cents).then_some(now);
                let next = Decision::to(Invoice { paid_cents, ended_at, ..invoice.clone() }, "paid").show();
                if ended_at.is_some() { next.cancel("payment").into() } else { next.into() }
            }
            Change::PaymentOverdue {} if is_open => {
                Decision::to(Invoice { ended_at: Some(now), ..invoice.clone() }, "overdue").show().into()
            }
            _ => Decision::ignore("not expected in this state"),
        }
    }

    fn ended_at(&self, invoice: &Invoice) -> Option<Timestamp> {
        invoice.ended_at
    }

    fn view(&self, partition: PartitionKey, invoice: &Invoice) -> Option<View> {
        View::of(partition, invoice, invoice.ended_at.is_some()).ok()
    }
}

static QUEUES: [QueueSpec; 4] = [
    QueueSpec::standard(SAGA, Queue::named("saga-dead")),
    QueueSpec::without_consumer(Queue::named("saga-dead")),
    QueueSpec::standard(CONTROL, Queue::named("control-dead")),
    QueueSpec::without_consumer(Queue::named("control-dead")),
];
static SENDS: [Queue; 2] = [CONTROL, SAGA];
static SAGA_FUNCTION: Function<Engine> = Function::saga::<Invoices>(&SENDS);
static OUTBOX_FUNCTION: Function<Engine> = Function::dispatch_outbox(&SENDS);
static SYSTEM: System<Engine> =
    System { name: "invoices", queues: &QUEUES, functions: &[&SAGA_FUNCTION, &OUTBOX_FUNCTION] };

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let (dir, faults) = (tempfile::tempdir()?, FaultInjection { copies: 3, ..FaultInjection::default() });
    let runner = Runner::open(&SYSTEM, dir.path(), Arc::new(SystemHost), faults).await?;
    let (entry, views) = (runner.ports().entry_point("shop")?, runner.ports().views(Invoices)?);
    let invoice = PartitionKey::named(Invoices::NAME, "2026-17");
    let (sent, paid) = (Change::Sent { cents: 1_000, days: 30 }, |cents| Change::Paid { cents });
    let customer = async {
        for event in [sent, paid(400), paid(600)] {
            let mut session = entry.session(invoice);
            session.send(&event)?;
            session.commit().await?;
            runner.settled().await?;
        }
        views.view(invoice).await?.ok_or_else(|| Box::<dyn Error>::from("the invoice is unknown"))
    };
    let view = runner.run_until(customer).await??;
    assert_eq!(view.body["paid_cents"], 1_000, "three copies of a payment count once");
    println!("the invoice ended: {}", view.body);
    Ok(())
}
