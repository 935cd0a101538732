//! Checks of the routes of the HTTP API.

use crate::template::{Finding, Template};

/// Every route requires authorization, and a token requires a scope of the route.
pub(crate) fn authorization(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, route) in template.of_type("AWS::ApiGatewayV2::Route") {
        let scopes = route["AuthorizationScopes"].as_array().into_iter().flatten();
        let scopes: Vec<&str> = scopes.filter_map(|scope| scope.as_str()).collect();
        match route["AuthorizationType"].as_str() {
            Some("AWS_IAM") => {}
            Some("JWT") if scopes.is_empty() || scopes.contains(&"") => {
                findings.push(Finding::new(id, "is open to every valid token, whatever its scopes"));
            }
            Some("JWT") => {}
            _ => findings.push(Finding::new(id, "is open to everybody")),
        }
    }
    findings
}

/// Each request has one route. API Gateway prefers a full match to a greedy path
/// (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-routes.html>), and does not document
/// a choice between greedy paths. A route of every method or path would also require a token for preflight requests.
pub(crate) fn precedence(template: &Template) -> Vec<Finding> {
    let routes = template.of_type("AWS::ApiGatewayV2::Route");
    let routes: Vec<(&str, &str)> =
        routes.filter_map(|(id, route)| Some((id, route["RouteKey"].as_str()?))).collect();
    let mut findings = Vec::new();
    for (index, (id, key)) in routes.iter().enumerate() {
        let Some((method, path)) = key.split_once(' ').filter(|(method, _)| *method != "ANY") else {
            findings.push(Finding::new(id, format!("takes every method ({key}), also preflight requests")));
            continue;
        };
        let Some(prefix) = greedy(path) else { continue };
        for (other, key) in routes.iter().skip(index + 1) {
            let others =
                key.split_once(' ').filter(|(of, _)| *of == method).and_then(|(_, path)| greedy(path));
            if others.is_some_and(|others| others.starts_with(prefix) || prefix.starts_with(others)) {
                findings.push(Finding::new(id, format!("takes requests of {other}")));
            }
        }
    }
    findings
}

/// Returns the beginning of a path that ends with a greedy variable.
fn greedy(path: &str) -> Option<&str> {
    path.strip_suffix("+}").and_then(|path| path.rsplit_once('{')).map(|(prefix, _)| prefix)
}
