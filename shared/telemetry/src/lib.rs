//! Logs in one form for every program, and the metrics and traces of functions.
//!
//! - [`start`] starts logging: JSON lines for functions, short lines for people at a terminal;
//! - [`for_function`] does so for a function, and gives the observer that collects the rest of an invocation:
//!   - [`metrics`]: counts in CloudWatch's embedded metric format, one line for each invocation,
//!   - [`trace`]: a span for each message, sent to an OpenTelemetry collector when one is named.
//!
//! Names and reasons of others are escaped, so that no line does anything to a terminal ([`messages::shown`]).
//!
//! What never gets into any of them: the text of references, object keys with their tokens, URIs with credentials.
//! `RUST_LOG` selects what is logged, as usual; without it, everything from `info` on is for machines, and warnings
//! are for people. Libraries that log requests, whose paths are object keys, are heard from `info` on, unless `RUST_LOG`
//! names one of their modules.

mod collect;
mod decisions;
pub mod metrics;
pub mod trace;

use std::sync::Arc;

use messages::Observe;
use messages::shown::Lines;
use tracing_subscriber::EnvFilter;

pub use collect::Collect;
pub use decisions::LogDecisions;
pub use trace::WrongEndpoint;

/// The environment variable that selects what is logged.
pub const FILTER: &str = EnvFilter::DEFAULT_ENV;

/// The libraries that log requests, their headers or what was signed, in detail.
const LOG_REQUESTS: [&str; 12] = [
    "aws_config",
    "aws_runtime",
    "aws_sdk_dynamodb",
    "aws_sdk_s3",
    "aws_sdk_secretsmanager",
    "aws_sdk_sqs",
    "aws_sigv4",
    "aws_smithy_http_client",
    "aws_smithy_runtime",
    "hyper",
    "lambda_runtime",
    "reqwest",
];

/// What people want to know. Of a machine that is not at AWS nobody expects that it knows its region; whoever needs one
/// and finds none says so.
const FOR_PEOPLE: &str = "warn,aws_config::imds=error";

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
    let filter = |default: &str| {
        discreet(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(default)))
    };
    // An error means that logging was started before, and then all is well.
    let _ = match audience {
        Audience::Machine => tracing_subscriber::fmt()
            .json()
            .flatten_event(true)
            .with_env_filter(filter("info"))
            .with_current_span(false)
            .with_writer(|| Lines::of_json(std::io::stdout()))
            .try_init(),
        Audience::Person => tracing_subscriber::fmt()
            .with_env_filter(filter(FOR_PEOPLE))
            .with_target(false)
            // What sets colours would be shown, like whatever else a terminal acts on.
            .with_ansi(false)
            .with_writer(|| Lines::of_text(std::io::stderr()))
            .try_init(),
    };
}

/// The filter without what says too much. A name stands for all targets that begin with it.
fn discreet(filter: EnvFilter) -> EnvFilter {
    let directives = LOG_REQUESTS.iter().filter_map(|library| format!("{library}=info").parse().ok());
    directives.fold(filter, EnvFilter::add_directive)
}

/// Starts logging for a function. What it gives logs each decision, counts, and traces when
/// `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector, such as `http://localhost:4318`.
///
/// # Errors
/// When that variable does not name a collector that spans can be sent to.
pub fn for_function() -> Result<Arc<dyn Observe>, WrongEndpoint> {
    start(Audience::Machine);
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let function = variable("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default();
    let collector = variable(trace::ENDPOINT).map(|endpoint| trace::Collector::at(&endpoint)).transpose()?;
    Ok(Arc::new(Collect::new(function, collector)))
}
