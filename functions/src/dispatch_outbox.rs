//! The function that leaves nothing unsent: it settles transactional sessions, and sweeps every minute. Both are the
//! engine's ([`outbox::control`]).

use std::sync::Arc;

use imports::Ports;
use imports::queues::{CONTROL, EVENTS, PARSE, SAGA};
use messages::Consumer;
use outbox::DispatchOutbox;
use saga::{Function, Missing, Service, Source};

/// The function's name, in logs and in the messages it sends.
pub const NAME: &str = "dispatch-outbox";

/// The function.
pub static FUNCTION: Function<Ports> = Function {
    name: NAME,
    services: &[Service::DATABASE],
    source: Source::Queue(CONTROL),
    sends: &[CONTROL, SAGA, PARSE, EVENTS],
    drains: &[],
    build: Some(build),
};

fn build(ports: &Ports) -> Result<Arc<dyn Consumer>, Missing> {
    Ok(Arc::new(over(ports)?))
}

/// What settles sessions and sweeps outboxes.
///
/// # Errors
/// When no database is configured.
pub fn over(ports: &Ports) -> Result<DispatchOutbox, Missing> {
    ports.engine.dispatch_outbox(NAME)
}
