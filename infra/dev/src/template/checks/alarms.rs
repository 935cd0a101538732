//! Checks that alarms report problems.

use messages::Metric;
use serde_json::Value;

use crate::template::view::referred;
use crate::template::{Finding, Template};

/// Returns findings for the resources whose metric no alarm watches; `what` describes the metric.
fn unwatched<'a>(
    template: &Template,
    resources: impl Iterator<Item = &'a str>,
    namespace: &str,
    metric: &str,
    what: &str,
) -> Vec<Finding> {
    let blind = resources.filter(|resource| !is_watched(template, namespace, metric, resource));
    blind.map(|resource| Finding::new(resource, format!("no alarm watches {what}"))).collect()
}

/// Returns `true` if an alarm watches a metric of a resource.
fn is_watched(template: &Template, namespace: &str, metric: &str, resource: &str) -> bool {
    template.of_type("AWS::CloudWatch::Alarm").any(|(_, alarm)| {
        let mut dimensions = alarm["Dimensions"].as_array().into_iter().flatten();
        alarm["Namespace"] == namespace
            && alarm["MetricName"] == metric
            && dimensions.any(|dimension| template.is_of(&dimension["Value"], resource))
    })
}

/// Individual failures in a batch do not count as errors of the function
/// (<https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>). The receive counts of messages
/// show an outage of a service. The number of redeliveries is not significant: it may be three messages per hour, or a
/// file that is read in many invocations.
pub(crate) fn retries(template: &Template) -> Vec<Finding> {
    let worked = template.functions().filter(|function| function.sources(template).next().is_some());
    unwatched(
        template,
        worked.map(|function| function.id),
        "SearchImport",
        Metric::RETRIED_DELIVERIES.name(),
        "what it retries",
    )
}

/// The oldest message of a queue ages if its function or pipe is too slow or does not receive.
pub(crate) fn ages(template: &Template) -> Vec<Finding> {
    let sources = template.functions().flat_map(|function| function.sources(template));
    let piped = template.of_type("AWS::Pipes::Pipe").filter_map(|(_, pipe)| referred(&pipe["Source"]));
    unwatched(
        template,
        sources.map(|source| source.queue.id).chain(piped),
        "AWS/SQS",
        "ApproximateAgeOfOldestMessage",
        "the age of its messages",
    )
}

/// Scheduled work reports a metric each time, and an alarm sounds if the metric is missing. Lambda's own `Invocations`
/// (<https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html>) does not distinguish the event
/// sources of a function, so a busy queue would hide a missing schedule.
pub(crate) fn schedules(template: &Template) -> Vec<Finding> {
    let is_scheduled = |properties: &Value| {
        let mut events = properties["Events"].as_object().into_iter().flat_map(|events| events.values());
        events.any(|event| event["Type"] == "Schedule")
    };
    let is_missed = |function: &str| {
        template.of_type("AWS::CloudWatch::Alarm").any(|(_, alarm)| {
            let mut dimensions = alarm["Dimensions"].as_array().into_iter().flatten();
            alarm["Namespace"] == "SearchImport"
                && alarm["Statistic"] == "SampleCount"
                && alarm["TreatMissingData"] == "breaching"
                && dimensions.any(|dimension| template.is_of(&dimension["Value"], function))
        })
    };
    let scheduled = template.functions().filter(|function| is_scheduled(function.properties));
    let unmissed = scheduled.filter(|function| !is_missed(function.id));
    unmissed
        .map(|function| Finding::new(function.id, "no alarm sounds when its schedule does not start it"))
        .collect()
}

/// A response of 503 is a success of the function
/// (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html>).
pub(crate) fn answers(template: &Template) -> Vec<Finding> {
    let apis = template.of_type("AWS::ApiGatewayV2::Api").map(|(id, _)| id);
    unwatched(template, apis, "AWS/ApiGateway", "5xx", "its answers of 5xx")
}

/// Sending a failed event to its destination may fail
/// (<https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html>).
pub(crate) fn deliveries(template: &Template) -> Vec<Finding> {
    let sends = |properties: &Value| !properties["EventInvokeConfig"]["DestinationConfig"].is_null();
    let sending = template.functions().filter(|function| sends(function.properties));
    unwatched(
        template,
        sending.map(|function| function.id),
        "AWS/Lambda",
        "DestinationDeliveryFailures",
        "what it cannot deliver",
    )
}

/// Faults that `report-faults` reports to searches end them in error, which no other metric shows.
pub(crate) fn unread(template: &Template) -> Vec<Finding> {
    let reporting = template.functions().filter(|function| function.name == functions::report_faults::NAME);
    unwatched(
        template,
        reporting.map(|function| function.id),
        "SearchImport",
        imports::queues::UNREAD_FILES.name(),
        "the files that were never read",
    )
}

/// Messages that Lambda stops as a loop are lost.
pub(crate) fn loops(template: &Template) -> Vec<Finding> {
    let functions = template.functions().map(|function| function.id);
    unwatched(
        template,
        functions,
        "AWS/Lambda",
        "RecursiveInvocationsDropped",
        "the messages that Lambda stops as a loop",
    )
}

/// If a topic is configured, every alarm notifies it.
pub(crate) fn notifications(template: &Template) -> Vec<Finding> {
    if template.parameters.get("AlarmTopicArn").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Vec::new();
    }
    let alarms = template.of_type("AWS::CloudWatch::Alarm");
    let silent = alarms.filter(|(_, alarm)| alarm["AlarmActions"].as_array().is_none_or(Vec::is_empty));
    silent.map(|(id, _)| Finding::new(id, "notifies no topic")).collect()
}
