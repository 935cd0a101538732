//! A saga as small as can be, brought to the model: it is opened, asks twice at once and waits under a timer. It says
//! nothing about the tokens that it needs, so every attempt to open it mints too few at first.

use jiff::{SignedDuration, Timestamp};
use messages::{Message, Queue, messages};
use model::{Budget, Check, Property, Protocol, always, check, input, reply, sometimes};
use saga::{Decision, Event, SAGA, Saga};
use serde::{Deserialize, Serialize};

const DESK: Queue = Queue::named("desk");

messages! {
    /// What can happen to an errand.
    enum ErrandEvent of "errands" to SAGA {
        /// It is to be done.
        Opened {} = 1,
        /// It may take longer.
        Prolonged {} = 1,
        /// Somebody has answered.
        Answered { question: u8 } = 1,
        /// Somebody has not.
        Overdue {} = 1,
    }
}

messages! {
    /// What the errand asks.
    enum Question of "errands" to DESK {
        /// One of its questions.
        Asked { question: u8 } = 1,
    }
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
enum State {
    #[default]
    New,
    Open {
        waiting: u8,
    },
    Ended {
        in_time: bool,
        at: Timestamp,
    },
}

struct Errand;

impl Saga for Errand {
    const NAME: &'static str = "errand";
    type State = State;
    type Event = ErrandEvent;

    fn transition(&self, state: &State, event: &Event<'_, ErrandEvent>, now: Timestamp) -> Decision<State> {
        use ErrandEvent::{Answered, Opened, Overdue, Prolonged};
        let (due_at, overdue) = (now + SignedDuration::from_hours(1), Overdue {});
        match (state, event.body) {
            (State::New, Opened {}) => Decision::to(State::Open { waiting: 2 }, "asked twice")
                .ask(&Question::Asked { question: 1 })
                .ask(&Question::Asked { question: 2 })
                .schedule("patience", due_at, &overdue)
                .into(),
            (State::Open { .. }, Prolonged {}) => {
                Decision::to(state.clone(), "prolonged").schedule("patience", due_at, &overdue).into()
            }
            (State::Open { waiting: 1 }, Answered { .. }) => {
                Decision::to(State::Ended { in_time: true, at: now }, "over").cancel("patience").into()
            }
            (State::Open { waiting }, Answered { .. }) => {
                Decision::to(State::Open { waiting: waiting - 1 }, "one more").into()
            }
            (State::Open { .. }, Overdue {}) => {
                Decision::to(State::Ended { in_time: false, at: now }, "given up").into()
            }
            (State::New | State::Open { .. } | State::Ended { .. }, _) => Decision::ignore("not now"),
        }
    }

    fn ended_at(&self, state: &State) -> Option<Timestamp> {
        if let State::Ended { at, .. } = state { Some(*at) } else { None }
    }
}

fn desk(message: &Message) -> Vec<Message> {
    let Ok(Question::Asked { question }) = message.read() else { return Vec::new() };
    vec![reply(message, &ErrandEvent::Answered { question })]
}

fn protocol(budget: Budget) -> Protocol<Errand> {
    let inputs = vec![input(1, &ErrandEvent::Opened {}), input(2, &ErrandEvent::Prolonged {})];
    Protocol { saga: Errand, inputs, replies: desk, budget }
}

fn properties() -> Vec<Property<Check<Errand>>> {
    vec![
        always("an errand that is at rest has ended", |_, system| {
            !system.is_at_rest() || system.has_ended() || system.has_expired()
        }),
        sometimes("an attempt with too few tokens claims again", |_, system| system.claims_again()),
        sometimes("a timer's end is reached, if one may fire", |check, system| {
            let given_up = matches!(system.state(), Some(State::Ended { in_time: false, .. }));
            check.budget().timers == 0 || given_up
        }),
    ]
}

#[test]
fn a_saga_that_mints_too_few_tokens_breaks_no_invariant() {
    check("too few tokens and a crash", protocol(Budget { crashes: 1, ..Budget::NONE }), properties());
    check("too few tokens and a lost lease", protocol(Budget { expiries: 1, ..Budget::NONE }), properties());
}

#[test]
fn timers_that_fire_and_are_set_again_break_no_invariant() {
    check("two timers", protocol(Budget { timers: 2, ..Budget::NONE }), properties());
    let budget = Budget { timers: 1, stale: 1, ..Budget::NONE };
    check("a timer and a stale load", protocol(budget), properties());
}

#[test]
#[should_panic(expected = "it always ends in time")]
fn a_property_that_does_not_hold_is_found() {
    let in_time = always("it always ends in time", |_, system| {
        !matches!(system.state(), Some(State::Ended { in_time: false, .. }))
    });
    check("a timer", protocol(Budget { timers: 1, ..Budget::NONE }), vec![in_time]);
}
