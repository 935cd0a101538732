//! Two sagas: a parent starts a child, which asks a desk, and waits for its result.

use jiff::{SignedDuration, Timestamp};
use messages::{Message, PartitionKey, Queue, messages};
use model::pair::{Member, Pair, PairCheck, always, check, sometimes};
use model::{Budget, Defect, Property, input_of, reply, report};
use saga::{Decision, Event, Instance, Requester, SAGA, Saga};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

const CHILDREN: Queue = Queue::named("children");
const DESK: Queue = Queue::named("desk");

messages! {
    /// The events of a parent.
    enum ParentEvent of "family" to SAGA {
        /// The parent was created.
        Opened {} = 1,
        /// The child has ended.
        ChildEnded { declined: bool } = 1,
        /// The start of the child was dead-lettered.
        NotStarted {} = 1,
        /// The deadline has passed without a result.
        Overdue {} = 1,
    }
}

messages! {
    /// The events of a child.
    enum ChildEvent of "family" to CHILDREN {
        /// A parent starts the child.
        Started {} = 1,
        /// The desk has answered.
        Answered {} = 1,
        /// The desk has declined.
        Declined {} = 1,
    }
}

messages! {
    /// The questions of a child.
    enum Question of "family" to DESK {
        /// A question was asked.
        Asked {} = 1,
    }
}

/// A parent that counts the results. A result that takes effect twice leads to a state that does not exist without
/// faults.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
struct Parent {
    is_open: bool,
    results: u8,
    ended_at: Option<Timestamp>,
}

struct Parents {
    /// `true` if the parent sets a timer when it is opened.
    has_deadline: bool,
}

impl Saga for Parents {
    const NAME: &'static str = "parent";
    type State = Parent;
    type Event = ParentEvent;

    fn transition(&self, state: &Parent, event: &Event<'_, ParentEvent>, now: Timestamp) -> Decision<Parent> {
        let mut next = state.clone();
        match event.body {
            ParentEvent::Opened {} if !state.is_open => {
                next.is_open = true;
                let due_at = now + SignedDuration::from_hours(1);
                let started = Decision::to(next, "started the child")
                    .request(&Instance::<Children>::at(child()), &ChildEvent::Started {});
                match self.has_deadline {
                    true => started.schedule("patience", due_at, &ParentEvent::Overdue {}).into(),
                    false => started.into(),
                }
            }
            ParentEvent::ChildEnded { .. } if state.is_open => {
                next.results += 1;
                next.ended_at = Some(now);
                Decision::to(next, "the child has ended").cancel("patience").into()
            }
            ParentEvent::NotStarted {} | ParentEvent::Overdue {}
                if state.is_open && state.ended_at.is_none() =>
            {
                next.ended_at = Some(now);
                Decision::to(next, "given up").cancel("patience").into()
            }
            _ => Decision::ignore("not now"),
        }
    }

    fn tokens(&self, events: &[&ParentEvent]) -> usize {
        2 * events.len()
    }

    fn ended_at(&self, state: &Parent) -> Option<Timestamp> {
        state.ended_at
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
enum Child {
    #[default]
    New,
    Asking {
        requester: Requester<ParentEvent>,
    },
    Ended {
        declined: bool,
        at: Timestamp,
    },
}

struct Children;

impl Saga for Children {
    const NAME: &'static str = "child";
    type State = Child;
    type Event = ChildEvent;

    fn transition(&self, state: &Child, event: &Event<'_, ChildEvent>, now: Timestamp) -> Decision<Child> {
        match (state, event.body) {
            (Child::New, ChildEvent::Started {}) => {
                let Some(requester) = event.requester() else {
                    return Decision::reject("no parent has started it");
                };
                Decision::to(Child::Asking { requester }, "started").ask(&Question::Asked {}).into()
            }
            (Child::Asking { requester }, ChildEvent::Answered {} | ChildEvent::Declined {}) => {
                let declined = matches!(event.body, ChildEvent::Declined {});
                Decision::to(Child::Ended { declined, at: now }, "ended")
                    .reply(requester, &ParentEvent::ChildEnded { declined })
                    .into()
            }
            _ => Decision::ignore("not now"),
        }
    }

    fn ended_at(&self, state: &Child) -> Option<Timestamp> {
        if let Child::Ended { at, .. } = state { Some(*at) } else { None }
    }
}

fn parent() -> PartitionKey {
    PartitionKey::from_uuid(Uuid::from_u128(1))
}

fn child() -> PartitionKey {
    PartitionKey::from_uuid(Uuid::from_u128(2))
}

fn not_started(request: &Message) -> Vec<Message> {
    match request.read() {
        Ok(ChildEvent::Started {}) => vec![report(request, &ParentEvent::NotStarted {})],
        _ => Vec::new(),
    }
}

fn desk(question: &Message) -> Vec<Message> {
    let Ok(Question::Asked {}) = question.read() else { return Vec::new() };
    vec![reply(question, &ChildEvent::Answered {}), report(question, &ChildEvent::Declined {})]
}

fn pair(budget: Budget) -> Pair<Parents, Children> {
    let opened = input_of(parent(), 1, &ParentEvent::Opened {});
    Pair {
        first: Member {
            saga: Parents { has_deadline: true },
            partition: parent(),
            inputs: vec![opened],
            replies: not_started,
        },
        second: Member { saga: Children, partition: child(), inputs: Vec::new(), replies: desk },
        budget,
    }
}

fn properties() -> Vec<Property<PairCheck<Parents, Children>>> {
    vec![
        always("a parent that is at rest has ended", |_, system| {
            !system.is_at_rest() || system.first().has_ended() || system.first().has_expired()
        }),
        always("a child that has begun ends", |_, system| {
            !system.is_at_rest() || system.second().state().is_none() || system.second().has_ended()
        }),
        always("a child is started unless its start is dead-lettered", |check, system| {
            let is_started = system.second().has_ended() || system.second().has_expired();
            !system.is_at_rest() || check.budget().failures > 0 || is_started
        }),
        sometimes("a parent has its result", |_, system| {
            system.first().state().is_some_and(|parent| parent.results == 1)
        }),
        sometimes("a child has ended whose parent has not waited, if it may", |check, system| {
            check.budget().timers + check.budget().failures == 0
                || system.second().has_ended()
                    && system
                        .first()
                        .state()
                        .is_some_and(|parent| parent.results == 0 && parent.ended_at.is_some())
        }),
    ]
}

/// Checks the pair under these faults.
pub(crate) fn keeps_invariants(name: &str, budget: Budget) {
    check(name, pair(budget), properties());
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
    finds(Defect::GrantedWhenSent, Budget { crashes: 1, ..Budget::NONE });
}

#[test]
#[should_panic(expected = "I7 no saga waits for a message that is never sent")]
fn unreported_dead_letter_is_found() {
    let mut pair = pair(Budget { failures: 1, ..Budget::NONE });
    pair.first.saga.has_deadline = false;
    pair.first.replies = |_| Vec::new();
    check("a defect", pair, Vec::new());
}
