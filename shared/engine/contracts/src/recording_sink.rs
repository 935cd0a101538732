//! An observer for tests, which stores the decisions and metrics of functions.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use messages::{DecisionRecord, DecisionSink, Metric, Verdict};

/// An observer that stores decisions and metrics.
#[derive(Debug, Default)]
pub struct RecordingSink {
    verdicts: Mutex<Vec<Verdict>>,
    measured: Mutex<BTreeMap<&'static str, u64>>,
}

impl RecordingSink {
    /// Returns the verdicts since the last call, in order.
    pub fn take(&self) -> Vec<Verdict> {
        std::mem::take(&mut *self.verdicts.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns the value of a metric.
    pub fn measured(&self, metric: Metric) -> u64 {
        let measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        measured.get(metric.0).copied().unwrap_or(0)
    }
}

impl DecisionSink for RecordingSink {
    fn observe(&self, observation: DecisionRecord) {
        self.verdicts.lock().unwrap_or_else(PoisonError::into_inner).push(observation.verdict);
    }

    fn measure(&self, measure: Metric, value: u64) {
        *self.measured.lock().unwrap_or_else(PoisonError::into_inner).entry(measure.0).or_default() += value;
    }
}
