//! What functions decided, and what they counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use messages::{Measure, Observation, Observe, Verdict};

/// An observer that keeps what became of each message, and what was counted.
#[derive(Debug, Default)]
pub struct Seen {
    verdicts: Mutex<Vec<Verdict>>,
    measured: Mutex<BTreeMap<&'static str, u64>>,
}

impl Seen {
    /// The verdicts since the last look, in order.
    pub fn take(&self) -> Vec<Verdict> {
        std::mem::take(&mut *self.verdicts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// How much was counted of a measure.
    pub fn measured(&self, measure: Measure) -> u64 {
        let measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        measured.get(measure.0).copied().unwrap_or(0)
    }
}

impl Observe for Seen {
    fn observe(&self, observation: Observation) {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner).push(observation.verdict);
    }

    fn measure(&self, measure: Measure, value: u64) {
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner).entry(measure.0).or_default() += value;
    }
}
