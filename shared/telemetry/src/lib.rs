//! Logs in one form for every program: JSON lines for functions, short lines for people at a terminal.
//!
//! What never gets into a log: the text of references, object keys with their tokens, URIs with credentials.
//! `RUST_LOG` selects what is logged, as usual; without it, everything from `info` on is for machines, and warnings
//! are for people.

use contracts::{Observation, Observe, Verdict};
use tracing_subscriber::EnvFilter;

/// The environment variable that selects what is logged.
pub const FILTER: &str = EnvFilter::DEFAULT_ENV;

/// Who reads the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// A log store: one JSON object a line, on standard output.
    Machine,
    /// A person at a terminal: short lines on standard error, warnings only unless `RUST_LOG` says otherwise.
    Person,
}

/// Starts logging. A second call changes nothing.
pub fn start(audience: Audience) {
    let filter =
        |default: &str| EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default));
    // An error means that logging was started before, and then all is well.
    let _ = match audience {
        Audience::Machine => tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_env_filter(filter("info"))
            .with_current_span(false)
            .try_init(),
        Audience::Person => tracing_subscriber::fmt()
            .with_env_filter(filter("warn"))
            .with_target(false)
            .with_writer(std::io::stderr)
            .try_init(),
    };
}

/// Writes each decision to the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogDecisions;

impl Observe for LogDecisions {
    fn observe(&self, observation: Observation) {
        let Observation { function, search_id, message_id, message, verdict, why, .. } = observation;
        let search_id = search_id.map(|id| id.to_string());
        let message_id = message_id.map(|id| id.to_string());
        let verdict_name = verdict.name();
        if verdict == Verdict::Rejected {
            tracing::warn!(
                function,
                search_id,
                message_id,
                message_type = message,
                decision = verdict_name,
                why
            );
        } else {
            tracing::info!(
                function,
                search_id,
                message_id,
                message_type = message,
                decision = verdict_name,
                why
            );
        }
    }
}
