//! The workload that engines are compared with: a saga of five events, sent over HTTP.
//!
//! A tally writes down each event that it is given, copies included, and ends with the fifth. So its state alone shows
//! what was lost or took effect twice, whichever engine keeps it. Every engine answers the same three requests:
//!
//! - `POST /tally/{key}/begin`, for engines in which a saga is announced before its first event;
//! - `POST /tally/{key}/event` with `{"event": n}`, answered with 200 once that event cannot be lost any more;
//! - `POST /tally/{key}/state`, answered with `{"events": [..]}`, in the order in which they took effect.
//!
//! [`clients`] sends them to any engine, [`server`] is ours behind them; `infra/engines.py` brings the others.

pub mod clients;
pub mod hops;
pub mod server;
mod workload;

use imports::queues::{EVENTS as NEWS, QUEUES};
use jiff::Timestamp;
use messages::messages;
use saga::{Decision, Engine, Event, Function, SAGA, Saga, Service, Source, System};
use serde::{Deserialize, Serialize};

/// How many events each saga has.
pub const EVENTS: u8 = 5;

messages! {
    /// What happens to a tally.
    #[allow(missing_docs, reason = "the names of the fields say it")]
    pub enum TallyEvent of "tallies" to SAGA {
        /// Something is to be written down.
        Counted { event: u8 } = 1,
    }
}

messages! {
    /// What others are told.
    #[allow(missing_docs, reason = "the names of the fields say it")]
    pub enum TallyNews of "tallies" to NEWS {
        /// All events have come.
        TallyEnded { events: Vec<u8> } = 1,
    }
}

/// What is remembered of a tally.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// The events, in the order in which they took effect. That none is here twice is the engine's doing: the state
    /// machine does not look.
    pub events: Vec<u8>,
    /// When the last one came.
    pub ended_at: Option<Timestamp>,
}

/// The saga.
#[derive(Debug, Clone, Copy)]
pub struct Tallies {
    /// Whether the end is announced, which makes the engine send a message.
    pub announce: bool,
}

impl Saga for Tallies {
    const NAME: &'static str = "tallies";
    type State = Tally;
    type Event = TallyEvent;

    fn transition(&self, tally: &Tally, event: &Event<'_, TallyEvent>, now: Timestamp) -> Decision<Tally> {
        let TallyEvent::Counted { event } = event.body;
        if tally.ended_at.is_some() {
            return Decision::ignore("it has ended");
        }
        let mut next = tally.clone();
        next.events.push(*event);
        if next.events.len() < usize::from(EVENTS) {
            return Decision::to(next, "written down").into();
        }
        next.ended_at = Some(now);
        let news = TallyNews::TallyEnded { events: next.events.clone() };
        let ended = Decision::to(next, "that was the last one");
        if self.announce { ended.send(&news).into() } else { ended.into() }
    }

    fn ended_at(&self, tally: &Tally) -> Option<Timestamp> {
        tally.ended_at
    }

    /// Nothing is asked, so nobody needs a token for an answer.
    fn tokens(&self, _: &[&TallyEvent]) -> usize {
        0
    }
}

static RUN: Function<Engine> = Function {
    name: "tallies",
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(SAGA),
    sends: &[NEWS],
    drains: &[],
    build: None,
};

/// Its queues are the search import's, so that whatever provisions those serves this, too.
static SYSTEM: System<Engine> = System { name: "tallies", queues: &QUEUES, functions: &[&RUN] };
