//! Whether somebody is told of what goes wrong.

use messages::Measure;
use serde_json::Value;

use super::Finding;
use crate::template::Template;
use crate::template::view::referred;

/// Those of some resources at whose metric no alarm looks; `what` it is of.
fn unwatched<'a>(
    template: &Template,
    resources: impl Iterator<Item = &'a str>,
    (namespace, metric): (&str, &str),
    what: &str,
) -> Vec<Finding> {
    let blind = resources.filter(|resource| !is_watched(template, namespace, metric, resource));
    blind.map(|resource| Finding::new(resource, format!("no alarm looks at {what}"))).collect()
}

/// Whether an alarm looks at a metric of a resource.
fn is_watched(template: &Template, namespace: &str, metric: &str, resource: &str) -> bool {
    template.of_type("AWS::CloudWatch::Alarm").any(|(_, alarm)| {
        let mut dimensions = alarm["Dimensions"].as_array().into_iter().flatten();
        alarm["Namespace"] == namespace
            && alarm["MetricName"] == metric
            && dimensions.any(|dimension| referred(&dimension["Value"]) == Some(resource))
    })
}

/// What fails by itself in a batch is no error of its function
/// (<https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-errorhandling.html>): an outage of what a function uses shows
/// in how often a message comes again. How many come again says little: three messages an hour, or a file that is read in many
/// invocations.
pub(crate) fn retries(template: &Template) -> Vec<Finding> {
    let worked = template.functions().filter(|function| function.sources(template).next().is_some());
    let metric = ("SearchImport", Measure::RETRIED_DELIVERIES.name());
    unwatched(template, worked.map(|function| function.id), metric, "what it retries")
}

/// A queue whose function or pipe does not keep up, or does not take anything, grows old.
pub(crate) fn ages(template: &Template) -> Vec<Finding> {
    let sources = template.functions().flat_map(|function| function.sources(template));
    let piped = template.of_type("AWS::Pipes::Pipe").filter_map(|(_, pipe)| referred(&pipe["Source"]));
    let metric = ("AWS/SQS", "ApproximateAgeOfOldestMessage");
    unwatched(template, sources.map(|source| source.queue.id).chain(piped), metric, "the age of its messages")
}

/// Work that a schedule starts leaves something to measure each time; where it leaves nothing, an alarm sounds. Lambda's own
/// `Invocations` (<https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html>) does not tell what invoked a
/// function: a queue that is busy would hide a schedule that is gone.
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
                && dimensions.any(|dimension| referred(&dimension["Value"]) == Some(function))
        })
    };
    let scheduled = template.functions().filter(|function| is_scheduled(function.properties));
    let unmissed = scheduled.filter(|function| !is_missed(function.id));
    unmissed
        .map(|function| Finding::new(function.id, "no alarm sounds when its schedule does not start it"))
        .collect()
}

/// An answer of 503 is a success of the function that gives it
/// (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html>).
pub(crate) fn answers(template: &Template) -> Vec<Finding> {
    let apis = template.of_type("AWS::ApiGatewayV2::Api").map(|(id, _)| id);
    unwatched(template, apis, ("AWS/ApiGateway", "5xx"), "its answers of 5xx")
}

/// What a function gave up may not get to where it is sent
/// (<https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html>).
pub(crate) fn deliveries(template: &Template) -> Vec<Finding> {
    let sends = |properties: &Value| !properties["EventInvokeConfig"]["DestinationConfig"].is_null();
    let sending = template.functions().filter(|function| sends(function.properties));
    let metric = ("AWS/Lambda", "DestinationDeliveryFailures");
    unwatched(template, sending.map(|function| function.id), metric, "what it cannot deliver")
}

/// What `report-faults` tells searches ends them in error, and nothing else shows it.
pub(crate) fn unread(template: &Template) -> Vec<Finding> {
    let reporting = template.functions().filter(|function| function.binary == functions::report_faults::NAME);
    let metric = ("SearchImport", imports::queues::UNREAD_FILES.name());
    unwatched(template, reporting.map(|function| function.id), metric, "the files that were never read")
}

/// Where a topic is named, every alarm tells it.
pub(crate) fn told(template: &Template) -> Vec<Finding> {
    if template.parameters.get("AlarmTopicArn").and_then(Value::as_str).is_none_or(str::is_empty) {
        return Vec::new();
    }
    let alarms = template.of_type("AWS::CloudWatch::Alarm");
    let silent = alarms.filter(|(_, alarm)| alarm["AlarmActions"].as_array().is_none_or(Vec::is_empty));
    silent.map(|(id, _)| Finding::new(id, "tells nobody")).collect()
}
