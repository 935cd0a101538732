//! The function for the saga queue: it advances searches and sends their effects, with the engine's runner
//! ([`saga::runner`]) and the state machine of a search ([`mod@imports::saga`]).

use std::sync::Arc;

use imports::Ports;
use imports::queues::{EVENTS, PARSE, SAGA};
use messages::Consumer;
use saga::{Function, MissingSetting, Service, Source};

/// The function's name, in logs and in the messages it sends.
pub const NAME: &str = "run-saga";

/// The function's entry in the table of the application.
pub static FUNCTION: Function<Ports> = Function {
    name: NAME,
    services: &[Service::DATABASE, Service::LEDGER],
    source: Source::Queue(SAGA),
    sends: &[SAGA, PARSE, EVENTS],
    drains: &[],
    build: Some(build),
};

fn build(ports: &Ports) -> Result<Arc<dyn Consumer>, MissingSetting> {
    ports.engine.run(NAME, ports.saga())
}
