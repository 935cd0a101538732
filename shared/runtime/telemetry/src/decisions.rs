//! Decisions as lines of the log.

use messages::{DecisionRecord, DecisionSink, Verdict};

/// Writes each decision to the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogDecisions {
    /// The name of the system, which the lines contain if it is set.
    pub system: Option<&'static str>,
}

impl DecisionSink for LogDecisions {
    fn observe(&self, observation: DecisionRecord) {
        let DecisionRecord { function, partition, message_id, message, verdict, why, .. } = observation;
        let system = self.system;
        let correlation_id = partition.map(|id| id.to_string());
        let message_id = message_id.map(|id| id.to_string());
        let decision = verdict.name();
        if verdict == Verdict::Rejected {
            tracing::warn!(
                system,
                function,
                correlation_id,
                message_id,
                message_type = message,
                decision,
                why
            );
        } else {
            tracing::info!(
                system,
                function,
                correlation_id,
                message_id,
                message_type = message,
                decision,
                why
            );
        }
    }
}
