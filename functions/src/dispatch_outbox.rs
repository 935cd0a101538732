//! The function that sends what is left in the outboxes: it settles transactional sessions and sweeps every minute,
//! both with the engine's consumer ([`outbox::control`]).

use std::sync::Arc;

use imports::Ports;
use imports::queues::{CONTROL, EVENTS, PARSE, SAGA};
use messages::Queue;
use outbox::DispatchOutbox;
use saga::{Function, MissingSetting, Upkeep};
use service::words::WordIndexing;

static SENDS: [Queue; 4] = [CONTROL, SAGA, PARSE, EVENTS];

/// The function's entry in the table of the application.
pub static FUNCTION: Function<Ports> = Function::dispatch_outbox(&SENDS);
/// The function's name, in logs and in the messages it sends.
pub const NAME: &str = FUNCTION.name;

/// Returns the consumer that settles sessions and sweeps outboxes.
pub fn over(ports: &Ports) -> Result<DispatchOutbox, MissingSetting> {
    ports.engine.dispatch_outbox(NAME)
}

/// Returns the indexing of words, for which the schedule of this function leaves most of its time.
pub fn upkeep(ports: &Ports) -> Result<Arc<dyn Upkeep>, MissingSetting> {
    Ok(Arc::new(WordIndexing::over(ports)?))
}
