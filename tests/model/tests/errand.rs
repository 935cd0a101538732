//! Checks a minimal saga, which is opened, asks questions and waits under a timer. Also injects defects to verify that
//! the model finds them.

use jiff::{SignedDuration, Timestamp};
use messages::{Message, Queue, messages};
use mimalloc::MiMalloc;
use model::{
    Budget, Check, Defect, Property, Protocol, always, check, check_within, deadlines, input, reply, report,
    sometimes,
};
use saga::{Advance, Decision, Event, SAGA, Saga};
use serde::{Deserialize, Serialize};

/// The exploration allocates and frees memory constantly. With the system's allocator, allocation takes half of the
/// processor time.
#[global_allocator]
static ALLOCATOR: MiMalloc = MiMalloc;

const DESK: Queue = Queue::named("desk");

messages! {
    /// The events of an errand.
    enum ErrandEvent of "errands" to SAGA {
        /// The errand was created.
        Opened {} = 1,
        /// The deadline was extended.
        Prolonged {} = 1,
        /// A question was answered.
        Answered { question: u8 } = 1,
        /// A question was declined.
        Declined { question: u8 } = 1,
        /// The deadline has passed without an answer.
        Overdue {} = 1,
    }
}

messages! {
    /// The questions of an errand.
    enum Question of "errands" to DESK {
        /// A question was asked.
        Asked { question: u8 } = 1,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
enum State {
    #[default]
    New,
    Open {
        waiting: u8,
        declined: bool,
    },
    Ended {
        in_time: bool,
        declined: bool,
        at: Timestamp,
    },
}

struct Errand {
    /// The number of questions that are sent together.
    questions: u8,
    /// The number of tokens that the errand declares for an event.
    tokens: usize,
    /// `true` if the errand sets a timer when it is opened.
    has_deadline: bool,
    /// `true` if the errand postpones an extension that overtakes the creation.
    postpones: bool,
}

impl Saga for Errand {
    const NAME: &'static str = "errand";
    type State = State;
    type Event = ErrandEvent;

    fn transition(&self, state: &State, event: &Event<'_, ErrandEvent>, now: Timestamp) -> Decision<State> {
        use ErrandEvent::{Answered, Declined, Opened, Overdue, Prolonged};
        let (due_at, overdue) = (now + SignedDuration::from_hours(1), Overdue {});
        match (state, event.body) {
            (State::New, Opened {}) => {
                let waits = State::Open { waiting: self.questions, declined: false };
                let ask = |asked: Advance<State>, question| asked.ask(&Question::Asked { question });
                let asked = (1..=self.questions).fold(Decision::to(waits, "asked"), ask);
                if self.has_deadline {
                    asked.schedule("patience", due_at, &overdue).into()
                } else {
                    asked.into()
                }
            }
            (State::Open { .. }, Prolonged {}) => {
                Decision::to(state.clone(), "prolonged").schedule("patience", due_at, &overdue).into()
            }
            (State::Open { waiting, declined }, Answered { .. } | Declined { .. }) => {
                let declined = *declined || matches!(event.body, Declined { .. });
                if *waiting == 1 {
                    let ended = State::Ended { in_time: true, declined, at: now };
                    return Decision::to(ended, "over").cancel("patience").into();
                }
                Decision::to(State::Open { waiting: waiting - 1, declined }, "one more").into()
            }
            (State::Open { declined, .. }, Overdue {}) => {
                Decision::to(State::Ended { in_time: false, declined: *declined, at: now }, "given up").into()
            }
            (State::New, Prolonged {}) if self.postpones => Decision::postpone("the errand is not known yet"),
            (State::New | State::Open { .. } | State::Ended { .. }, _) => Decision::ignore("not now"),
        }
    }

    fn tokens(&self, events: &[&ErrandEvent]) -> usize {
        self.tokens * events.len()
    }

    fn ended_at(&self, state: &State) -> Option<Timestamp> {
        if let State::Ended { at, .. } = state { Some(*at) } else { None }
    }
}

fn desk(message: &Message) -> Vec<Message> {
    let Ok(Question::Asked { question }) = message.read() else { return Vec::new() };
    let answer = reply(message, &ErrandEvent::Answered { question });
    vec![answer, report(message, &ErrandEvent::Declined { question })]
}

/// The protocol of an errand that is opened and extended. The errand asks two questions and declares no tokens. Every
/// attempt to open it therefore mints too few tokens at first.
fn protocol(budget: Budget) -> Protocol<Errand> {
    let inputs = vec![input(1, &ErrandEvent::Opened {}), input(2, &ErrandEvent::Prolonged {})];
    Protocol {
        saga: Errand { questions: 2, tokens: 1, has_deadline: true, postpones: false },
        inputs,
        replies: desk,
        budget,
    }
}

/// The smallest protocol with all features: one event, one question, one timer, and enough tokens.
fn least(budget: Budget) -> Protocol<Errand> {
    let inputs = vec![input(1, &ErrandEvent::Opened {})];
    Protocol {
        saga: Errand { questions: 1, tokens: 2, has_deadline: true, postpones: false },
        inputs,
        replies: desk,
        budget,
    }
}

fn properties() -> Vec<Property<Check<Errand>>> {
    vec![
        ends(),
        sometimes("an attempt with too few tokens claims again", |_, system| system.claims_again()),
        timer_ends(),
    ]
}

fn ends() -> Property<Check<Errand>> {
    always("an errand that is at rest has ended", |_, system| {
        !system.is_at_rest() || system.has_ended() || system.has_expired()
    })
}

fn timer_ends() -> Property<Check<Errand>> {
    sometimes("a timer's end is reached, if one may fire", |check, system| {
        let given_up = matches!(system.state(), Some(State::Ended { in_time: false, .. }));
        check.budget().timers == 0 || given_up
    })
}

#[test]
fn too_few_tokens_keep_invariants() {
    check("too few tokens and a crash", protocol(Budget { crashes: 1, ..Budget::NONE }), properties());
    check("too few tokens and a lost lease", protocol(Budget { expiries: 1, ..Budget::NONE }), properties());
}

#[test]
fn kept_claims_keep_invariants() {
    let left = Budget { keep: 2, ..Budget::NONE };
    check("claims are left, and a crash", protocol(Budget { crashes: 1, ..left }), properties());
    check("claims are left, and a lost lease", protocol(Budget { expiries: 1, ..left }), properties());
    check("claims are left, and a duplicate", protocol(Budget { duplicates: 1, ..left }), properties());
    check("claims are left, and a stale load", protocol(Budget { stale: 1, ..left }), properties());
    let all = Budget { crashes: 1, expiries: 1, duplicates: 1, timers: 1, ..left };
    check("claims are left, and one of each", least(all), vec![ends(), timer_ends()]);
}

#[test]
fn repeated_timers_keep_invariants() {
    check("two timers", protocol(Budget { timers: 2, ..Budget::NONE }), properties());
    let budget = Budget { timers: 1, stale: 1, ..Budget::NONE };
    check("a timer and a stale load", protocol(budget), properties());
}

/// Combines the faults of the other tests in one run. To bound the time, it uses the smallest errand with two crashes,
/// two lost leases, one duplicate of any message, and its single timer. A second duplicate more than doubles the number
/// of states, and a second question multiplies it by about fifteen.
#[test]
fn combined_faults_keep_invariants() {
    let budget = Budget { crashes: 2, expiries: 2, duplicates: 1, timers: 1, ..Budget::NONE };
    check("two crashes, two lost leases, a duplicate and a timer", least(budget), vec![ends(), timer_ends()]);
}

/// A configuration whose exploration takes long.
mod deep {
    use super::*;

    /// Without the timer, two duplicates are feasible.
    #[test]
    fn combined_faults_with_two_duplicates_keep_invariants() {
        let budget = Budget { crashes: 2, expiries: 2, duplicates: 2, ..Budget::NONE };
        check("two crashes, two lost leases and two duplicates", least(budget), vec![ends()]);
    }
}

#[test]
fn batched_messages_keep_invariants() {
    let budget = Budget { groups: true, duplicates: 1, ..Budget::NONE };
    check("groups and a duplicate", protocol(budget), properties());
    let budget = Budget { groups: true, duplicates: 1, crashes: 1, ..Budget::NONE };
    let protocol = Protocol {
        saga: Errand { questions: 1, tokens: 2, has_deadline: true, postpones: false },
        ..protocol(budget)
    };
    check("groups, a duplicate and a crash", protocol, vec![ends()]);
}

#[test]
fn failing_handlers_keep_invariants() {
    let budget = Budget { failures: 2, duplicates: 1, ..Budget::NONE };
    let mut properties = properties();
    properties.push(sometimes("an errand ends that was declined", |_, system| {
        matches!(system.state(), Some(State::Ended { declined: true, .. }))
    }));
    check("two failures and a duplicate", protocol(budget), properties);
}

/// The errand postpones an extension that overtakes its creation.
fn postponing(budget: Budget) -> Protocol<Errand> {
    let inputs = vec![input(1, &ErrandEvent::Opened {}), input(2, &ErrandEvent::Prolonged {})];
    let saga = Errand { questions: 1, tokens: 2, has_deadline: true, postpones: true };
    Protocol { saga, inputs, replies: desk, budget }
}

#[test]
fn postponed_messages_keep_invariants() {
    let faults = [
        Budget { crashes: 1, expiries: 1, ..Budget::NONE },
        Budget { duplicates: 1, groups: true, ..Budget::NONE },
    ];
    for budget in faults {
        check("an early message", postponing(budget), vec![ends()]);
    }
}

#[test]
#[should_panic(expected = "I4 no token is removed that is still needed")]
fn defect_postponed_acknowledged_is_found() {
    let budget = Budget { defect: Some(Defect::PostponedAcknowledged), ..Budget::NONE };
    check("a defect", postponing(budget), Vec::new());
}

#[test]
fn full_ledger_keeps_invariants() {
    for room in [0, 3] {
        let budget = Budget { crashes: 2, room: Some(room), ..Budget::NONE };
        let protocol = Protocol {
            saga: Errand { questions: 1, tokens: 1, has_deadline: true, postpones: false },
            ..protocol(budget)
        };
        check("two crashes and no room", protocol, properties());
    }
}

#[test]
#[should_panic(expected = "it always ends in time")]
fn violated_property_is_found() {
    let in_time = always("it always ends in time", |_, system| {
        !matches!(system.state(), Some(State::Ended { in_time: false, .. }))
    });
    check("a timer", protocol(Budget { timers: 1, ..Budget::NONE }), vec![in_time]);
}

/// Checks a protocol with an injected defect; the caller states the property that detects it.
#[test]
fn every_wait_has_a_deadline() {
    check("deadlines", least(Budget { timers: 1, ..Budget::NONE }), vec![deadlines(|_| false)]);
}

#[test]
#[should_panic(
    expected = "I8 nothing waits without a deadline does not hold after\n  a worker receives Opened and loads"
)]
fn wait_without_a_deadline_is_found_and_described() {
    let mut protocol = least(Budget::NONE);
    protocol.saga.has_deadline = false;
    check("no deadline", protocol, vec![deadlines(|_| false)]);
}

#[test]
#[should_panic(expected = "few states has more than 10 states: reduce the inputs or the budget")]
fn number_of_states_is_limited() {
    check_within(10, "few states", least(Budget { crashes: 1, ..Budget::NONE }), Vec::new());
}

fn finds(defect: Defect, budget: Budget) {
    check("a defect", protocol(Budget { defect: Some(defect), ..budget }), Vec::new());
}

#[test]
#[should_panic(expected = "I4 no token is removed that is still needed")]
fn defect_fence_ignored_is_found() {
    finds(Defect::FenceIgnored, Budget { expiries: 1, ..Budget::NONE });
}

#[test]
#[should_panic(expected = "I4 ")]
fn defect_stale_drop_believed_is_found() {
    finds(Defect::StaleDropBelieved, Budget { stale: 1, ..Budget::NONE });
}

#[test]
#[should_panic(expected = "I4 ")]
fn defect_first_token_required_is_found() {
    finds(Defect::FirstTokenRequired, Budget { groups: true, duplicates: 1, ..Budget::NONE });
}

#[test]
#[should_panic(expected = "I4 ")]
fn defect_item_forgotten_early_is_found() {
    finds(Defect::ItemForgottenEarly, Budget::NONE);
}

#[test]
#[should_panic(expected = "I1 ")]
fn defect_begun_again_is_found() {
    finds(Defect::BegunAgain, Budget { duplicates: 1, ..Budget::NONE });
}

#[test]
#[should_panic(expected = "I7 the end can be reached")]
fn defect_lease_without_end_is_found() {
    finds(Defect::LeaseWithoutEnd, Budget { crashes: 1, ..Budget::NONE });
}

#[test]
#[should_panic(expected = "I6 document and ledger stay bounded")]
fn defect_need_forgotten_is_found() {
    finds(Defect::NeedForgotten, Budget::NONE);
}

#[test]
#[should_panic(expected = "I1 ")]
fn defect_forgotten_while_admitted_is_found() {
    finds(Defect::ForgottenWhileAdmitted, Budget { keep: 8, duplicates: 1, ..Budget::NONE });
}

#[test]
#[should_panic(expected = "I1 ")]
fn defect_end_believed_is_found() {
    finds(Defect::EndBelieved, Budget { keep: 8, crashes: 1, duplicates: 1, ..Budget::NONE });
}

#[test]
#[should_panic(expected = "I6 ")]
fn defect_room_ignored_is_found() {
    let budget = Budget { crashes: 2, room: Some(0), defect: Some(Defect::RoomIgnored), ..Budget::NONE };
    check("a defect", least(budget), Vec::new());
}

#[test]
#[should_panic(expected = "an errand that is at rest has ended")]
fn unreported_failed_request_is_found() {
    let replies = |message: &Message| desk(message).into_iter().take(1).collect();
    let budget = Budget { failures: 1, ..Budget::NONE };
    check("a defect", Protocol { replies, ..least(budget) }, vec![ends()]);
}
