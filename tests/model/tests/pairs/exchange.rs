//! Two sagas: a client requests something of a supplier, which replies at once and is dismissed afterwards.

use jiff::{SignedDuration, Timestamp};
use messages::{Message, PartitionKey, Queue, messages};
use model::pair::{Member, Pair, PairCheck, always, check, sometimes};
use model::{Budget, Defect, Property, input_of, report};
use saga::{Decision, Event, Instance, SAGA, Saga};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const SUPPLIERS: Queue = Queue::named("suppliers");

messages! {
    /// The events of a client.
    enum ClientEvent of "exchange" to SAGA {
        /// The client was created.
        Opened {} = 1,
        /// The supplier has replied.
        Answered {} = 1,
        /// The request was dead-lettered.
        Failed {} = 1,
        /// The deadline has passed without a reply.
        Overdue {} = 1,
    }
}

messages! {
    /// The events of a supplier.
    enum SupplierEvent of "exchange" to SUPPLIERS {
        /// A client requests something.
        Asked {} = 1,
        /// The client needs nothing more.
        Dismissed {} = 1,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
enum Client {
    #[default]
    New,
    Waiting,
    Ended {
        answered: bool,
        at: Timestamp,
    },
}

struct Clients;

impl Saga for Clients {
    const NAME: &'static str = "client";
    type State = Client;
    type Event = ClientEvent;

    fn transition(&self, state: &Client, event: &Event<'_, ClientEvent>, now: Timestamp) -> Decision<Client> {
        let supplier = Instance::<Suppliers>::at(supplier());
        let answered = matches!(event.body, ClientEvent::Answered {});
        match (state, event.body) {
            (Client::New, ClientEvent::Opened {}) => Decision::to(Client::Waiting, "asked")
                .request(&supplier, &SupplierEvent::Asked {})
                .schedule("patience", now + SignedDuration::from_hours(1), &ClientEvent::Overdue {})
                .into(),
            (
                Client::Waiting,
                ClientEvent::Answered {} | ClientEvent::Failed {} | ClientEvent::Overdue {},
            ) => Decision::to(Client::Ended { answered, at: now }, "over")
                .notify(&supplier, &SupplierEvent::Dismissed {})
                .cancel("patience")
                .into(),
            _ => Decision::ignore("not now"),
        }
    }

    fn tokens(&self, events: &[&ClientEvent]) -> usize {
        2 * events.len()
    }

    fn ended_at(&self, state: &Client) -> Option<Timestamp> {
        if let Client::Ended { at, .. } = state { Some(*at) } else { None }
    }
}

/// A supplier that counts its requests. A request that takes effect twice leads to a state that does not exist without
/// faults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Supplier {
    requests: u8,
    dismissed_at: Option<Timestamp>,
}

struct Suppliers;

impl Saga for Suppliers {
    const NAME: &'static str = "supplier";
    type State = Supplier;
    type Event = SupplierEvent;

    fn transition(
        &self,
        state: &Supplier,
        event: &Event<'_, SupplierEvent>,
        now: Timestamp,
    ) -> Decision<Supplier> {
        let mut next = state.clone();
        match (state.dismissed_at, event.body) {
            (None, SupplierEvent::Asked {}) => {
                let Some(requester) = event.requester::<ClientEvent>() else {
                    return Decision::reject("it is not a request");
                };
                next.requests += 1;
                Decision::to(next, "answered").reply(&requester, &ClientEvent::Answered {}).into()
            }
            (None, SupplierEvent::Dismissed {}) => {
                next.dismissed_at = Some(now);
                Decision::to(next, "dismissed").into()
            }
            (Some(_), _) => Decision::ignore("it is dismissed"),
        }
    }

    fn tokens(&self, _: &[&SupplierEvent]) -> usize {
        0
    }

    fn ended_at(&self, state: &Supplier) -> Option<Timestamp> {
        state.dismissed_at
    }
}

fn client() -> PartitionKey {
    PartitionKey::from_uuid(Uuid::from_u128(1))
}

fn supplier() -> PartitionKey {
    PartitionKey::from_uuid(Uuid::from_u128(2))
}

fn pair(budget: Budget) -> Pair<Clients, Suppliers> {
    let reports = |request: &Message| match request.read() {
        Ok(SupplierEvent::Asked {}) => vec![report(request, &ClientEvent::Failed {})],
        _ => Vec::new(),
    };
    Pair {
        first: Member {
            saga: Clients,
            partition: client(),
            inputs: vec![input_of(client(), 1, &ClientEvent::Opened {})],
            replies: reports,
        },
        second: Member {
            saga: Suppliers,
            partition: supplier(),
            inputs: Vec::new(),
            replies: |_| Vec::new(),
        },
        budget,
    }
}

fn properties() -> Vec<Property<PairCheck<Clients, Suppliers>>> {
    vec![
        always("both have ended at rest, unless a request was dead-lettered or a timer runs", |_, system| {
            !system.is_at_rest()
                || (system.first().has_ended() || system.first().has_expired())
                    && (system.second().has_ended() || system.second().has_expired())
        }),
        sometimes("the client is answered", |_, system| {
            matches!(system.first().state(), Some(Client::Ended { answered: true, .. }))
        }),
        sometimes("the wait ends without an answer, if it may", |check, system| {
            check.budget().timers + check.budget().failures == 0
                || matches!(system.first().state(), Some(Client::Ended { answered: false, .. }))
        }),
    ]
}

/// Checks the pair under these faults.
pub(crate) fn keeps_invariants(name: &str, budget: Budget) {
    check(name, pair(budget), properties());
}

#[test]
fn batched_messages_keep_invariants() {
    let budget = Budget { groups: true, timers: 1, duplicates: 1, ..Budget::NONE };
    keeps_invariants("groups, a timer and a duplicate", budget);
}

fn finds(defect: Defect, budget: Budget) {
    check("a defect", pair(Budget { defect: Some(defect), ..budget }), Vec::new());
}

#[test]
#[should_panic(expected = "I4 no token is removed that is still needed")]
fn defect_granted_to_sender_is_found() {
    finds(Defect::GrantedToSender, Budget::NONE);
}

#[test]
#[should_panic(expected = "I4 no token is removed that is still needed")]
fn defect_reply_token_moved_is_found() {
    finds(Defect::ReplyTokenMoved, Budget::NONE);
}

#[test]
#[should_panic(expected = "I4 no token is removed that is still needed")]
fn defect_granted_after_write_is_found() {
    finds(Defect::GrantedAfterWrite, Budget { crashes: 1, ..Budget::NONE });
}

#[test]
#[should_panic(expected = "I4 no token is left once its message is acknowledged")]
fn defect_granted_when_sent_is_found() {
    finds(Defect::GrantedWhenSent, Budget { crashes: 1, timers: 1, ..Budget::NONE });
}

#[test]
#[should_panic(expected = "I4 no token is left once its message is acknowledged")]
fn defect_attempts_share_tokens_is_found() {
    finds(Defect::AttemptsShareTokens, Budget { expiries: 1, duplicates: 1, ..Budget::NONE });
}

#[test]
fn repeated_grant_changes_nothing() {
    let budget = Budget { repeated_grants: 1, duplicates: 1, ..Budget::NONE };
    check("a repeated grant", pair(budget), Vec::new());
}

#[test]
#[should_panic(expected = "I4 no token is left once its message is acknowledged")]
fn defect_copy_of_grant_accepted_is_found() {
    finds(Defect::CopyOfGrantAccepted, Budget { repeated_grants: 1, ..Budget::NONE });
}
