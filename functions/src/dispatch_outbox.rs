//! The function that sends what is left in the outboxes: it settles transactional sessions and sweeps every minute,
//! both with the engine's consumer ([`outbox::control`]).

use std::sync::Arc;

use imports::Ports;
use imports::queues::{CONTROL, EVENTS, PARSE, SAGA};
use messages::Consumer;
use outbox::DispatchOutbox;
use saga::{Function, MissingSetting, Service, Source};

/// The function's name, in logs and in the messages it sends.
pub const NAME: &str = "dispatch-outbox";

/// The function's entry in the table of the application.
pub static FUNCTION: Function<Ports> = Function {
    name: NAME,
    services: &[Service::DATABASE],
    source: Source::Queue(CONTROL),
    sends: &[CONTROL, SAGA, PARSE, EVENTS],
    drains: &[],
    build: Some(build),
};

fn build(ports: &Ports) -> Result<Arc<dyn Consumer>, MissingSetting> {
    Ok(Arc::new(over(ports)?))
}

/// Returns the consumer that settles sessions and sweeps outboxes.
///
/// # Errors
/// Returns an error if no database is configured.
pub fn over(ports: &Ports) -> Result<DispatchOutbox, MissingSetting> {
    ports.engine.dispatch_outbox(NAME)
}
