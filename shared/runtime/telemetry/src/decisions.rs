//! Decisions as lines of the log.

use messages::{DecisionRecord, DecisionSink, Verdict};

/// Writes each decision to the log.
#[derive(Debug, Clone, Copy)]
pub struct LogDecisions;

impl DecisionSink for LogDecisions {
    fn observe(&self, observation: DecisionRecord) {
        let DecisionRecord { function, partition, message_id, message, verdict, why, .. } = observation;
        let correlation_id = partition.map(|id| id.to_string());
        let message_id = message_id.map(|id| id.to_string());
        let decision = verdict.name();
        if verdict == Verdict::Rejected {
            tracing::warn!(function, correlation_id, message_id, message_type = message, decision, why);
        } else {
            tracing::info!(function, correlation_id, message_id, message_type = message, decision, why);
        }
    }
}
