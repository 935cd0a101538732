//! Checks of the collector of traces.

use serde_json::Value;
use telemetry::trace::ENDPOINT;

use crate::template::{Finding, Template};

/// A function outside the VPC does not send to a collector inside it, for which it would wait in vain.
pub(crate) fn collectors(template: &Template) -> Vec<Finding> {
    let is_inside = |properties: &Value| !properties["VpcConfig"].is_null();
    if !template.functions().any(|function| is_inside(function.properties)) {
        return Vec::new();
    }
    let outside = template.functions().filter(|function| {
        let beside = function.properties["Layers"].as_array().is_some_and(|layers| !layers.is_empty());
        !is_inside(function.properties) && !beside
    });
    let asking = outside
        .filter(|function| function.environment().get(ENDPOINT).is_some_and(|address| !address.is_empty()));
    asking
        .map(|function| Finding::new(function.id, "cannot reach the collector, which is in the VPC"))
        .collect()
}
