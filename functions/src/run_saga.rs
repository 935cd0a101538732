//! The function behind the saga queue: what happens to a search next, and what has to be sent for it.
//!
//! How that is done is the engine's business ([`saga::runner`]); what it is, the state machine's
//! ([`mod@imports::saga`]).

use std::sync::Arc;

use imports::Ports;
use imports::queues::{EVENTS, PARSE, SAGA};
use messages::Consumer;
use saga::{Function, Missing, Service, Source};

/// The function's name, in logs and in the messages it sends.
pub const NAME: &str = "run-saga";

/// The function.
pub static FUNCTION: Function<Ports> = Function {
    name: NAME,
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(SAGA),
    sends: &[SAGA, PARSE, EVENTS],
    drains: &[],
    build: Some(build),
};

fn build(ports: &Ports) -> Result<Arc<dyn Consumer>, Missing> {
    ports.engine.run(NAME, ports.saga())
}
