//! Checks of the page and the HTTP API, which share a host name.

use serde_json::Value;

use crate::template::view::referred;
use crate::template::{Finding, Template};

/// Every route of the HTTP API is available under the host name of the page, with its method and without caching.
/// Otherwise the bucket would respond with an unrelated error.
pub(crate) fn paths(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, distribution) in template.of_type("AWS::CloudFront::Distribution") {
        let config = &distribution["DistributionConfig"];
        let behaviors = config["CacheBehaviors"].as_array().map_or(&[][..], Vec::as_slice);
        for (_, route) in template.of_type("AWS::ApiGatewayV2::Route") {
            let Some((method, path)) = route["RouteKey"].as_str().and_then(|key| key.split_once(' ')) else {
                continue;
            };
            let takes = |behavior: &&Value| {
                let mut methods = behavior["AllowedMethods"].as_array().into_iter().flatten();
                let pattern = behavior["PathPattern"].as_str().unwrap_or_default();
                is_api(config, &behavior["TargetOriginId"])
                    && is_of(pattern, path)
                    && methods.any(|allowed| allowed == method)
                    && behavior["CachePolicyId"] == CACHING_DISABLED
            };
            if !behaviors.iter().any(|behavior| takes(&behavior)) {
                findings.push(Finding::new(id, format!("does not hand {method} {path} on, uncached")));
            }
        }
    }
    findings
}

/// Returns the id of the managed policy with this name
/// (<https://docs.aws.amazon.com/AmazonCloudFront/latest/DeveloperGuide/using-managed-cache-policies.html>).
const CACHING_DISABLED: &str = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad";

fn is_api(config: &Value, origin: &Value) -> bool {
    let mut origins = config["Origins"].as_array().into_iter().flatten();
    let found = origins.find(|known| known["Id"] == *origin);
    found.is_some_and(|found| found["CustomOriginConfig"]["OriginProtocolPolicy"] == "https-only")
}

/// Matches a pattern, which ends in a star or is a whole path.
fn is_of(pattern: &str, path: &str) -> bool {
    pattern.strip_suffix('*').map_or(pattern == path, |prefix| path.starts_with(prefix))
}

/// Only CloudFront can read the page's bucket, with signed requests over TLS.
pub(crate) fn closed(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, distribution) in template.of_type("AWS::CloudFront::Distribution") {
        let config = &distribution["DistributionConfig"];
        let origins = config["Origins"].as_array().into_iter().flatten();
        for origin in origins.filter(|origin| origin["S3OriginConfig"].is_object()) {
            let access = referred(&origin["OriginAccessControlId"]);
            let access = access.and_then(|access| template.resources.get(access));
            let signs = access.is_some_and(|access| {
                access["Properties"]["OriginAccessControlConfig"]["SigningBehavior"] == "always"
            });
            if !signs {
                findings
                    .push(Finding::new(id, "reads its bucket unsigned, so the bucket would have to be open"));
            }
        }
        let behaviors = config["CacheBehaviors"].as_array().into_iter().flatten();
        for behavior in behaviors.chain([&config["DefaultCacheBehavior"]]) {
            if !["redirect-to-https", "https-only"]
                .iter()
                .any(|only| behavior["ViewerProtocolPolicy"] == *only)
            {
                findings.push(Finding::new(id, "answers without TLS"));
            }
        }
    }
    findings
}
