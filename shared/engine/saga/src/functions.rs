//! The functions that most applications have in the same form.

use std::sync::Arc;

use messages::{Payload, Queue};
use outbox::session::CONTROL;

use crate::engine::Engine;
use crate::state_machine::Saga;
use crate::system::{Function, Service, Source};

/// The name of the function that [`Function::dispatch_outbox`] returns.
const DISPATCH_OUTBOX: &str = "dispatch-outbox";

impl<P: AsRef<Engine>> Function<P> {
    /// Returns the function of a saga, which has the saga's name and consumes the queue of its events. `sends` are the
    /// queues that the function sends to.
    pub const fn saga<S: Saga + Default>(sends: &'static [Queue]) -> Self {
        Self {
            name: S::NAME,
            services: &[Service::DATABASE, Service::LEDGER],
            source: Source::Queue(S::Event::QUEUE),
            sends,
            drains: &[],
            build: Some(|ports| ports.as_ref().run(S::NAME, S::default())),
        }
    }

    /// The function of the control queue, which every application with sessions, timers or requests needs: it settles
    /// sessions and sweeps the outboxes. It sends to all queues of the application.
    pub const fn dispatch_outbox(sends: &'static [Queue]) -> Self {
        Self::dispatch_outbox_with(sends, &[Service::DATABASE], &[])
    }

    /// Works like [`Function::dispatch_outbox`]. Its schedule also stores the messages of these dead-letter queues as
    /// failures, and continues the retries of an operator; see [`crate::failures`].
    pub const fn dispatch_outbox_and_failures(sends: &'static [Queue], drains: &'static [Queue]) -> Self {
        // A retry grants tokens, and looks for those of old events.
        Self::dispatch_outbox_with(sends, &[Service::DATABASE, Service::LEDGER, Service::TOKENS], drains)
    }

    const fn dispatch_outbox_with(
        sends: &'static [Queue],
        services: &'static [Service],
        drains: &'static [Queue],
    ) -> Self {
        Self {
            name: DISPATCH_OUTBOX,
            services,
            source: Source::Queue(CONTROL),
            sends,
            drains,
            build: Some(|ports| Ok(Arc::new(ports.as_ref().dispatch_outbox(DISPATCH_OUTBOX)?))),
        }
    }
}
