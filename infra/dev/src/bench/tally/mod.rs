//! The workload for comparing engines: a saga of five events, sent over HTTP.
//!
//! A tally records each event, including duplicates, and ends with the fifth. Its state therefore shows lost and
//! repeated events, independently of the engine. Every engine handles the same three requests:
//!
//! - `POST /tally/{key}/begin`, for engines that require an announcement before a saga's first event;
//! - `POST /tally/{key}/event` with `{"event": n}`, which returns 200 once the event is durable;
//! - `POST /tally/{key}/state`, which returns `{"events": [..]}` in the order in which they took effect.
//!
//! [`workload`] draws the events, [`clients`] sends them to any engine, and [`server`] handles them with ours.
//! `infra/engines.py` starts the other engines.

pub mod clients;
pub mod hops;
pub mod server;
pub mod workload;

use imports::queues::{EVENTS as NEWS, QUEUES};
use jiff::Timestamp;
use messages::messages;
use saga::{Decision, Engine, Event, Function, SAGA, Saga, Service, Source, System};
use serde::{Deserialize, Serialize};

/// The number of events in each saga.
pub const EVENTS: u8 = 5;

messages! {
    /// The events of a tally.
    #[allow(missing_docs, reason = "the names of the fields say it")]
    pub enum TallyEvent of "tallies" to SAGA {
        /// An event to record.
        Counted { event: u8 } = 1,
    }
}

messages! {
    /// The events that a tally publishes.
    #[allow(missing_docs, reason = "the names of the fields say it")]
    pub enum TallyNews of "tallies" to NEWS {
        /// All events have arrived.
        TallyEnded { events: Vec<u8> } = 1,
    }
}

/// The state of a tally.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// The events, in the order in which they took effect. The engine alone drops duplicates: the state machine does
    /// not check them.
    pub events: Vec<u8>,
    /// The time of the last event.
    pub ended_at: Option<Timestamp>,
}

/// The saga.
#[derive(Debug, Clone, Copy)]
pub struct Tallies {
    /// `true` if the end is announced with a message.
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

    /// A tally makes no requests, so no reply needs a token.
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

/// The system uses the queues of the search import, so that the same resources can be used.
static SYSTEM: System<Engine> = System { name: "tallies", queues: &QUEUES, functions: &[&RUN] };
