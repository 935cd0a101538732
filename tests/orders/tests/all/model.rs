//! One order in every interleaving: the faults of each configuration break no invariant.

use jiff::Timestamp;
use messages::Message;
use model::{Budget, Check, Property, Protocol, always, check, input, reply, report, sometimes};
use orders::{Command, OrderEvent, Orders, Step};

/// Returns the protocol of an order that is placed and paid in any sequence.
fn protocol(budget: Budget) -> Protocol<Orders> {
    let placed = OrderEvent::Placed { number: "4711".into(), cents: 100, at: Timestamp::UNIX_EPOCH };
    let inputs = vec![input(0, &placed), input(1, &OrderEvent::Paid { cents: 100 })];
    Protocol { saga: Orders, inputs, replies, budget }
}

fn replies(message: &Message) -> Vec<Message> {
    match message.read() {
        Ok(Command::Ship { number }) => {
            let shipped = OrderEvent::Shipped { carrier: "dhl".into(), tracking: format!("1Z-{number}") };
            vec![reply(message, &shipped), report(message, &OrderEvent::NotShipped {})]
        }
        // A message for other systems has no reply.
        Err(_) => Vec::new(),
    }
}

fn properties() -> Vec<Property<Check<Orders>>> {
    vec![
        always("an order that is at rest has ended", |_, system| {
            !system.is_at_rest() || system.has_ended() || system.has_expired()
        }),
        sometimes("an order is shipped", |_, system| {
            system.state().is_some_and(|order| matches!(order.step, Step::Shipped { .. }))
        }),
        sometimes("a payment overtakes its order", |_, system| {
            system.state().is_some_and(|order| matches!(order.step, Step::Prepaid { .. }))
        }),
    ]
}

#[test]
fn dead_lettered_command_ends_order_once() {
    let mut properties = properties();
    properties.push(sometimes("an order ends unshipped", |_, system| {
        system.state().is_some_and(|order| matches!(order.step, Step::Unshipped { .. }))
    }));
    let budget = Budget { failures: 1, crashes: 1, ..Budget::NONE };
    check("a dead-lettered command and a crash", protocol(budget), properties);
}

#[test]
fn crash_and_lost_lease_keep_invariants() {
    let budget = Budget { crashes: 1, expiries: 1, ..Budget::NONE };
    check("a crash and a lost lease", protocol(budget), properties());
}

#[test]
fn duplicates_and_lost_lease_keep_invariants() {
    let budget = Budget { copies: 1, expiries: 1, ..Budget::NONE };
    check("duplicates and a lost lease", protocol(budget), properties());
}

#[test]
fn concurrent_sweep_keeps_invariants() {
    let budget = Budget { crashes: 1, sweeps: 1, ..Budget::NONE };
    check("a crash and a sweep in addition to the workers", protocol(budget), properties());
}

#[test]
fn concurrent_payment_and_timer_keep_invariants() {
    let mut properties = properties();
    properties.push(sometimes("an order is given up", |_, system| {
        system.state().is_some_and(|order| matches!(order.step, Step::Overdue { .. }))
    }));
    let budget = Budget { crashes: 1, timers: 1, ..Budget::NONE };
    check("a crash and the timer", protocol(budget), properties);
}
