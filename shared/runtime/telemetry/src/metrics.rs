//! Counts of one invocation, in CloudWatch's embedded metric format
//! (<https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html>).

use std::collections::BTreeMap;

use jiff::Timestamp;
use messages::{Metric, Verdict, naming};
use serde_json::{Map, Value, json};

/// The dimension that distinguishes functions: the same name and value as in Lambda's own metrics.
pub const DIMENSION: &str = "FunctionName";

/// The metrics that are not counts: the maximum of an invocation is reported.
const HIGHEST: [Metric; 2] = [Metric::OUTBOX_AGE, Metric::RETRIED_DELIVERIES];

/// Counts, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Metrics(BTreeMap<&'static str, u64>);

/// The name of the metric that counts decisions of one kind.
pub fn name_of(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Handled => "MessagesHandled",
        Verdict::Duplicate => "MessagesDuplicate",
        Verdict::Ignored => "MessagesIgnored",
        Verdict::Recovered => "MessagesRecovered",
        Verdict::Rejected => "MessagesRejected",
        Verdict::Retried => "MessagesRetried",
        Verdict::Dispatched => "MessagesDispatched",
    }
}

impl Metrics {
    /// Counts a decision about a message; `attempt` is its receive count.
    pub fn count(&mut self, verdict: Verdict, attempt: Option<u32>) {
        *self.0.entry(name_of(verdict)).or_default() += 1;
        if let (Verdict::Retried, Some(attempt)) = (verdict, attempt) {
            self.add(Metric::RETRIED_DELIVERIES, attempt.into());
        }
    }

    /// Adds to a count; of ages and deliveries the highest is kept.
    pub fn add(&mut self, measure: Metric, value: u64) {
        let count = self.0.entry(measure.name()).or_default();
        *count = if HIGHEST.contains(&measure) { value.max(*count) } else { count.saturating_add(value) };
    }

    /// The line that CloudWatch makes metrics of; `None` when nothing was counted. The namespace derives from the
    /// system.
    pub fn line(&self, system: &str, function: &str, now: Timestamp) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let definitions: Vec<Value> =
            self.0.keys().map(|name| json!({ "Name": name, "Unit": unit(name) })).collect();
        let mut line: Map<String, Value> =
            self.0.iter().map(|(name, count)| ((*name).to_owned(), Value::from(*count))).collect();
        line.insert(DIMENSION.to_owned(), function.into());
        line.insert(
            "_aws".to_owned(),
            json!({
                "Timestamp": now.as_millisecond(),
                "CloudWatchMetrics": [
                    { "Namespace": naming::namespace(system), "Dimensions": [[DIMENSION]], "Metrics": definitions }
                ],
            }),
        );
        Some(Value::Object(line).to_string())
    }
}

fn unit(name: &str) -> &'static str {
    if name == Metric::OUTBOX_AGE.name() { "Seconds" } else { "Count" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUDIES: Metric = Metric("Studies");

    #[test]
    fn counts_are_defined_metrics_of_function() {
        let mut metrics = Metrics::default();
        metrics.count(Verdict::Duplicate, Some(7));
        metrics.count(Verdict::Duplicate, Some(7));
        metrics.add(STUDIES, 3);
        metrics.add(STUDIES, 4);
        let line = metrics.line("search-import", "parse", Timestamp::UNIX_EPOCH).unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        assert_eq!((&line["MessagesDuplicate"], &line["Studies"]), (&json!(2), &json!(7)));
        assert_eq!(line[DIMENSION], "parse");
        let directive = &line["_aws"]["CloudWatchMetrics"][0];
        assert_eq!(directive["Namespace"], "SearchImport");
        let defined: Vec<_> =
            directive["Metrics"].as_array().unwrap().iter().map(|metric| metric["Name"].clone()).collect();
        assert_eq!(defined, ["MessagesDuplicate", "Studies"]);
    }

    #[test]
    fn highest_receive_count_of_retries_is_reported() {
        let mut metrics = Metrics::default();
        metrics.count(Verdict::Handled, Some(12));
        for deliveries in [Some(3), Some(9), None, Some(1)] {
            metrics.count(Verdict::Retried, deliveries);
        }
        let line = metrics.line("search-import", "saga", Timestamp::UNIX_EPOCH).unwrap();
        assert!(line.contains("\"RetriedDeliveries\":9") && line.contains("\"MessagesRetried\":4"), "{line}");
    }

    #[test]
    fn highest_age_is_reported_even_if_zero() {
        let mut metrics = Metrics::default();
        metrics.add(Metric::OUTBOX_AGE, 0);
        assert!(
            metrics
                .line("search-import", "sweep", Timestamp::UNIX_EPOCH)
                .unwrap()
                .contains("\"OutboxAge\":0")
        );
        metrics.add(Metric::OUTBOX_AGE, 9);
        metrics.add(Metric::OUTBOX_AGE, 4);
        let line = metrics.line("search-import", "sweep", Timestamp::UNIX_EPOCH).unwrap();
        assert!(line.contains("\"OutboxAge\":9") && line.contains("\"Unit\":\"Seconds\""));
    }

    #[test]
    fn empty_metrics_write_no_line() {
        assert_eq!(Metrics::default().line("search-import", "f", Timestamp::UNIX_EPOCH), None);
    }
}
