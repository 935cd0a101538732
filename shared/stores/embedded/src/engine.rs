//! The engine on a data directory.

use std::sync::Arc;

use messages::{DecisionSink, Host};
use outbox::Policy;
use saga::{Engine, Partitions, Settings, Stores};

use crate::store::Store;

impl Store {
    /// Returns the engine of the application with this name on this data directory, with the default settings. The
    /// store is the history of decisions too; pass it as `observer` to record them.
    pub fn engine(
        self: &Arc<Self>,
        system: &'static str,
        host: Arc<dyn Host>,
        observer: Arc<dyn DecisionSink>,
    ) -> Engine {
        Engine {
            system,
            queue: None,
            overtime: Some(dedup::guard::OVERTIME),
            stores: Ok(Stores::of(self, self.saga_outbox(), self.session_outbox())),
            partitions: Ok(Partitions::of(Arc::clone(self))),
            check_tokens: Ok(self.clone()),
            processed: Ok(self.clone()),
            send: self.clone(),
            receive: self.clone(),
            inspect: self.clone(),
            host,
            observer,
            history: Some(self.clone()),
            policy: Policy::default(),
            session: outbox::session::Options::default(),
            runner: Settings::default(),
            earlier_view: |_| None,
        }
    }
}
