//! What functions decided.

use std::sync::{Mutex, PoisonError};

use messages::{Observation, Observe, Verdict};

/// An observer that keeps what became of each message.
#[derive(Debug, Default)]
pub struct Seen(Mutex<Vec<Verdict>>);

impl Seen {
    /// The verdicts since the last look, in order.
    pub fn take(&self) -> Vec<Verdict> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observe for Seen {
    fn observe(&self, observation: Observation) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(observation.verdict);
    }
}
