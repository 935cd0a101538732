//! Whether somebody is told of what goes wrong.

use serde_json::Value;

use super::Finding;
use crate::template::Template;
use crate::template::view::referred;

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
/// in the messages that come again.
pub(crate) fn retries(template: &Template) -> Vec<Finding> {
    let worked = template.functions().filter(|function| function.sources(template).next().is_some());
    let unwatched =
        worked.filter(|function| !is_watched(template, "SearchImport", "MessagesRetried", function.id));
    unwatched.map(|function| Finding::new(function.id, "no alarm looks at what it retries")).collect()
}

/// A queue whose function does not keep up grows old.
pub(crate) fn ages(template: &Template) -> Vec<Finding> {
    let queues =
        template.functions().flat_map(|function| function.sources(template)).map(|source| source.queue);
    let unwatched =
        queues.filter(|queue| !is_watched(template, "AWS/SQS", "ApproximateAgeOfOldestMessage", queue.id));
    unwatched.map(|queue| Finding::new(queue.id, "no alarm looks at the age of its messages")).collect()
}

/// An answer of 503 is a success of the function that gives it
/// (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-metrics.html>).
pub(crate) fn answers(template: &Template) -> Vec<Finding> {
    let apis = template.of_type("AWS::ApiGatewayV2::Api");
    let unwatched = apis.filter(|(id, _)| !is_watched(template, "AWS/ApiGateway", "5xx", id));
    unwatched.map(|(id, _)| Finding::new(id, "no alarm looks at its answers of 5xx")).collect()
}

/// What a function gave up may not get to where it is sent
/// (<https://docs.aws.amazon.com/lambda/latest/dg/monitoring-metrics-types.html>).
pub(crate) fn deliveries(template: &Template) -> Vec<Finding> {
    let sends = |properties: &Value| !properties["EventInvokeConfig"]["DestinationConfig"].is_null();
    let functions = template.functions().filter(|function| sends(function.properties));
    let unwatched = functions
        .filter(|function| !is_watched(template, "AWS/Lambda", "DestinationDeliveryFailures", function.id));
    unwatched.map(|function| Finding::new(function.id, "no alarm looks at what it cannot deliver")).collect()
}

/// What `report-faults` tells searches ends them in error, and nothing else shows it.
pub(crate) fn unread(template: &Template) -> Vec<Finding> {
    let metric = imports::queues::UNREAD_FILES.name();
    let reporting = template.functions().filter(|function| function.binary == functions::report_faults::NAME);
    let unwatched = reporting.filter(|function| !is_watched(template, "SearchImport", metric, function.id));
    unwatched
        .map(|function| Finding::new(function.id, "no alarm looks at the files that were never read"))
        .collect()
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
