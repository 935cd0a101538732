//! Logs in one form for every program, and the metrics and traces of functions.
//!
//! - [`start`] starts logging: JSON lines for functions, short lines for people at a terminal;
//! - [`for_function`] does so for a function, and gives the observer that collects the rest of an invocation:
//!   - [`metrics`]: counts in CloudWatch's embedded metric format, one line for each invocation,
//!   - [`trace`]: a span for each message, sent to an OpenTelemetry collector when one is named.
//!
//! Names and reasons of others are escaped, so that no line does anything to a terminal ([`messages::escape`]).
//!
//! None of them ever contains the text of references, object keys with their tokens, or URIs with credentials.
//! `RUST_LOG` selects the log level, as usual. Its default is `info` for machines and `warn` for people. Libraries that
//! log requests, whose paths are object keys, are heard from `info` on, unless `RUST_LOG` names one of their modules.

mod collect;
mod decisions;
pub mod metrics;
pub mod trace;

use std::io;
use std::sync::Arc;

use messages::DecisionSink;
use messages::escape::Lines;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{LevelFilter, Targets};
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

pub use collect::Collect;
pub use decisions::LogDecisions;
pub use trace::WrongEndpoint;

/// The environment variable that selects the log level.
pub const FILTER: &str = "RUST_LOG";

/// The libraries that log details of requests, such as headers or signed text.
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

/// A machine outside AWS does not know its region; a client that needs one reports that it is missing.
const ASKS_FOR_THE_REGION: &str = "aws_config::imds";

/// The format of the log, with its default level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For a log store: one JSON object per line, on standard output. Each line contains the name of the system.
    Json {
        /// The name.
        system: &'static str,
    },
    /// For a terminal: short lines on standard error, by default only warnings.
    Human,
}

/// Starts logging. A second call changes nothing.
pub fn start(format: LogFormat) {
    let asked = std::env::var(FILTER).ok();
    let filter = filter(asked.as_deref(), format);
    let lines = match format {
        LogFormat::Json { system } => fmt::layer()
            .json()
            .flatten_event(true)
            .with_current_span(false)
            .with_writer(move || NamedLines { system, out: Lines::of_json(std::io::stdout()) })
            .boxed(),
        LogFormat::Human => fmt::layer()
            .with_target(false)
            // Colour codes would be escaped like all other control sequences.
            .with_ansi(false)
            .with_writer(|| Lines::of_text(std::io::stderr()))
            .boxed(),
    };
    // An error means that logging has already been started.
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}

/// A writer that adds the name of a system to objects of JSON, one per call.
struct NamedLines<W> {
    system: &'static str,
    out: W,
}

impl<W: io::Write> io::Write for NamedLines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(fields) = bytes.strip_prefix(b"{\"") {
            let first = serde_json::json!(self.system);
            self.out.write_all(&[format!("{{\"system\":{first},\"").as_bytes(), fields].concat())?;
        } else {
            self.out.write_all(bytes)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Returns the filter of the log: the requested one if it can be parsed, without the request logs of libraries. A name
/// applies to all targets that begin with it, and a longer name takes precedence.
fn filter(asked: Option<&str>, format: LogFormat) -> Targets {
    let unasked = || match format {
        LogFormat::Json { .. } => Targets::new().with_default(LevelFilter::INFO),
        LogFormat::Human => Targets::new()
            .with_default(LevelFilter::WARN)
            .with_target(ASKS_FOR_THE_REGION, LevelFilter::ERROR),
    };
    let asked = asked.filter(|text| !text.is_empty()).and_then(|text| text.parse().ok());
    asked.unwrap_or_else(unasked).with_targets(LOG_REQUESTS.map(|library| (library, LevelFilter::INFO)))
}

/// Starts logging for a function of a system. The namespace of the metrics and the service of the traces are named
/// after the system, and every line of the log contains its name. The returned observer logs each decision, counts, and
/// sends traces if `OTEL_EXPORTER_OTLP_ENDPOINT` names a collector, such as `http://localhost:4318`.
///
/// # Errors
/// Returns an error if that variable does not name a collector that accepts spans.
pub fn for_function(system: &'static str) -> Result<Arc<dyn DecisionSink>, WrongEndpoint> {
    start(LogFormat::Json { system });
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let function = variable("AWS_LAMBDA_FUNCTION_NAME").unwrap_or_default();
    let collector = variable(trace::ENDPOINT).map(|endpoint| trace::Collector::at(&endpoint)).transpose()?;
    Ok(Arc::new(Collect::new(system, function, collector)))
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use tracing_subscriber::filter::LevelFilter;

    use super::*;

    const JSON: LogFormat = LogFormat::Json { system: "shop" };

    #[test]
    fn lines_name_the_system() {
        let mut lines = NamedLines { system: "a \"shop\"", out: Vec::new() };
        for line in ["{\"level\":\"WARN\"}\n", "no object\n", "{}\n"] {
            lines.write_all(line.as_bytes()).unwrap();
        }
        let expected = "{\"system\":\"a \\\"shop\\\"\",\"level\":\"WARN\"}\nno object\n{}\n";
        assert_eq!(String::from_utf8(lines.out).unwrap(), expected);
    }

    /// Returns the most verbose level at which a target is logged.
    fn max_level(asked: &str, format: LogFormat, target: &str) -> LevelFilter {
        let filter = filter(Some(asked), format);
        let levels = [
            LevelFilter::TRACE,
            LevelFilter::DEBUG,
            LevelFilter::INFO,
            LevelFilter::WARN,
            LevelFilter::ERROR,
        ];
        let is_heard =
            |max: &LevelFilter| max.into_level().is_some_and(|level| filter.would_enable(target, &level));
        levels.into_iter().find(is_heard).unwrap_or(LevelFilter::OFF)
    }

    #[test]
    fn default_level_depends_on_audience() {
        for nothing in ["", "functions=loud", "a=b=c"] {
            assert_eq!(max_level(nothing, JSON, "functions::run_saga"), LevelFilter::INFO, "{nothing}");
            assert_eq!(
                max_level(nothing, LogFormat::Human, "functions::run_saga"),
                LevelFilter::WARN,
                "{nothing}"
            );
            assert_eq!(
                max_level(nothing, LogFormat::Human, "aws_config::imds::region"),
                LevelFilter::ERROR,
                "{nothing}"
            );
        }
    }

    #[test]
    fn one_module_can_be_selected() {
        let asked = "warn,functions=debug";
        assert_eq!(max_level(asked, JSON, "functions::run_saga"), LevelFilter::DEBUG);
        assert_eq!(max_level(asked, JSON, "saga::round"), LevelFilter::WARN);
        assert_eq!(max_level("functions=debug", JSON, "saga::round"), LevelFilter::OFF);
    }

    #[test]
    fn request_logging_crates_are_capped_at_info() {
        for library in LOG_REQUESTS {
            assert_eq!(
                max_level("trace", JSON, &format!("{library}::client")),
                LevelFilter::INFO,
                "{library}"
            );
        }
        assert_eq!(max_level("trace,hyper::client=trace", JSON, "hyper::client::conn"), LevelFilter::TRACE);
        assert_eq!(max_level("trace", JSON, "saga::round"), LevelFilter::TRACE);
    }
}
