//! The function of the HTTP API (the crate `http-api`) over the use cases of [`service`].

use imports::Ports;
use imports::ports::{LINKS, OBJECTS, UPLOADS};
use imports::queues::{CONTROL, PARSE, SAGA};
use saga::{Function, Service, Source};
use service::NAME;

/// The function's entry in the table of the application.
pub static FUNCTION: Function<Ports> = Function {
    name: NAME,
    services: &[
        Service::DATABASE,
        Service::LEDGER,
        Service::TOKENS,
        Service::DEPTHS,
        OBJECTS,
        UPLOADS,
        LINKS,
    ],
    source: Source::Requests,
    sends: &[CONTROL, SAGA, PARSE],
    drains: &[],
    build: None,
};
