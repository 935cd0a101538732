//! A report in the text format of Prometheus
//! (<https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>).

use std::fmt::Write;

use jiff::Timestamp;

use service::health::Report;

/// The format's media type.
pub(super) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";
/// The prefix of every metric's name.
const PREFIX: &str = "search_import_";

/// Labels with their values, and the value of the metric that has them.
type Sample<'a> = (Vec<(&'static str, &'a str)>, u64);

/// Formats a report. Unknown values are omitted.
pub(super) fn text(report: &Report, streams: u64) -> String {
    let mut text = String::new();
    let version = env!("CARGO_PKG_VERSION");
    family(&mut text, "info", "The version of the program.", [(vec![("version", version)], 1)]);
    let parts = report.parts.iter().map(|part| (vec![("part", part.name.as_str())], u64::from(part.ok)));
    family(&mut text, "up", "Whether a store or queue responds.", parts);
    let messages = report.queues.iter().flat_map(|queue| {
        let of = |state| vec![("queue", queue.queue.as_str()), ("state", state)];
        [(of("visible"), queue.visible), (of("in_flight"), queue.in_flight), (of("delayed"), queue.delayed)]
    });
    family(&mut text, "queue_messages", "Messages in a queue.", messages);
    let ages = report
        .queues
        .iter()
        .filter_map(|queue| Some((vec![("queue", queue.queue.as_str())], queue.oldest_seconds?)));
    family(&mut text, "queue_oldest_message_age_seconds", "Age of the oldest message of a queue.", ages);
    let searches =
        report.searches.iter().flatten().map(|(state, count)| (vec![("state", state.as_str())], *count));
    family(&mut text, "open_searches", "Searches that have not ended.", searches);
    let swept = report.last_sweep.as_ref().and_then(|at| at.parse::<Timestamp>().ok());
    let swept = swept.and_then(|at| u64::try_from(at.as_second()).ok());
    // Without the database, nothing is known about effects.
    let effect_age = report.searches.as_ref().map(|_| report.oldest_effect_seconds.unwrap_or(0));
    let running = report.searches.as_ref().map(|_| u64::from(report.operation.is_some()));
    for (name, help, value) in [
        ("live_streams", "Clients that follow changes.", Some(streams)),
        ("last_sweep_timestamp_seconds", "When the last complete sweep of the outboxes ended.", swept),
        ("oldest_effect_age_seconds", "Time since the oldest effect became due.", effect_age),
        ("open_failures", "Failures that are open.", report.open_failures),
        ("poisoned_effects", "Effects that have exhausted their retries.", report.poisoned_effects),
        ("dead_letters", "Messages in dead-letter queues that are not collected yet.", report.dead_letters),
        ("has_worker", "Whether a worker runs.", report.has_worker.map(u64::from)),
        ("free_bytes", "Free space on the disk of the data directory.", report.free_bytes),
        ("operation_running", "Whether an operation on failures is running.", running),
    ] {
        family(&mut text, name, help, value.map(|value| (Vec::new(), value)));
    }
    text
}

/// Writes a gauge with its samples; writes nothing if there are none.
fn family<'a>(text: &mut String, name: &str, help: &str, samples: impl IntoIterator<Item = Sample<'a>>) {
    let mut samples = samples.into_iter().peekable();
    if samples.peek().is_none() {
        return;
    }
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "# HELP {PREFIX}{name} {help}\n# TYPE {PREFIX}{name} gauge");
    for (labels, value) in samples {
        let labels: Vec<String> =
            labels.iter().map(|(label, value)| format!("{label}=\"{}\"", escaped(value))).collect();
        let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
        let _ = writeln!(text, "{PREFIX}{name}{labels} {value}");
    }
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_empty_families_omitted() {
        let mut text = String::new();
        family(&mut text, "a", "One.", [(vec![("b", "c\"\\\n"), ("d", "e")], 7)]);
        family(&mut text, "none", "None.", []);
        let expected = "# HELP search_import_a One.\n# TYPE search_import_a gauge\n\
                        search_import_a{b=\"c\\\"\\\\\\n\",d=\"e\"} 7\n";
        assert_eq!(text, expected);
    }
}
