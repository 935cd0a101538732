//! The metrics and spans of one invocation.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use messages::{DecisionRecord, DecisionSink, Metric};

use crate::LogDecisions;
use crate::metrics::Metrics;
use crate::trace::{Collector, Span};

/// Logs decisions at once, and collects counts and spans until the invocation ends.
pub struct Collect {
    system: &'static str,
    function: String,
    collector: Option<Collector>,
    pending: Mutex<Buffer>,
}

#[derive(Default)]
struct Buffer {
    metrics: Metrics,
    spans: Vec<Span>,
}

impl Collect {
    /// Collects for the function of this name in a system, and sends spans to the collector, if any.
    pub fn new(system: &'static str, function: String, collector: Option<Collector>) -> Self {
        Self { system, function, collector, pending: Mutex::default() }
    }

    fn pending(&self) -> std::sync::MutexGuard<'_, Buffer> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[async_trait]
impl DecisionSink for Collect {
    fn observe(&self, observation: DecisionRecord) {
        let span = self.collector.as_ref().and_then(|_| Span::of(&observation));
        let mut pending = self.pending();
        pending.metrics.count(observation.verdict, observation.attempt);
        pending.spans.extend(span);
        drop(pending);
        LogDecisions.observe(observation);
    }

    fn measure(&self, measure: Metric, value: u64) {
        self.pending().metrics.add(measure, value);
    }

    async fn flush(&self) {
        let Buffer { metrics, spans } = std::mem::take(&mut *self.pending());
        if let Some(line) = metrics.line(self.system, &self.function, jiff::Timestamp::now()) {
            metrics_line(&line);
        }
        if let Some(collector) = &self.collector
            && !spans.is_empty()
            && let Err(error) = collector.send(self.system, &spans).await
        {
            // Spans are only for people: the messages are handled even if their spans are not sent.
            let error = messages::store::chain(&error);
            tracing::warn!(function = self.function, error, spans = spans.len(), "spans were not sent");
        }
    }
}

/// CloudWatch extracts metrics from separate lines, regardless of other log lines.
#[expect(clippy::print_stdout, reason = "standard output is where CloudWatch reads metrics from")]
fn metrics_line(line: &str) {
    println!("{line}");
}
