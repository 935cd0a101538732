//! Checks of the routes of the HTTP API.

use serde_json::Value;

use crate::template::{Finding, Template};

/// The description of the HTTP API. A test of the functions compares it with the code.
const DESCRIPTION: &str = include_str!("../../../../../docs/openapi.json");

/// Each operation of the HTTP API has one route, with the operation's scope if clients send tokens. The preflight
/// request of a browser allows its method.
pub(crate) fn operations(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (api, properties) in template.of_type("AWS::ApiGatewayV2::Api") {
        let allowed = properties["CorsConfiguration"]["AllowMethods"].as_array();
        for (method, path, scope) in described() {
            if allowed.is_some_and(|allowed| !allowed.iter().any(|allowed| *allowed == method.as_str())) {
                findings
                    .push(Finding::new(api, format!("does not allow pages the method of {method} {path}")));
            }
            match selected(template, &method, &path).as_slice() {
                [(id, route)] => {
                    let scopes = route["AuthorizationScopes"].as_array().into_iter().flatten();
                    let mut scopes = scopes.filter_map(Value::as_str);
                    if scopes.any(|known| !known.ends_with(&scope)) {
                        findings.push(Finding::new(
                            id,
                            format!("requires another scope than {scope} for {method} {path}"),
                        ));
                    }
                }
                routes => {
                    findings
                        .push(Finding::new(api, format!("has {} routes for {method} {path}", routes.len())));
                }
            }
        }
    }
    findings
}

/// Returns the method, the path and the scope of each operation, and of the description itself.
fn described() -> Vec<(String, String, String)> {
    // A test compares the file with the code that generates it, so it is valid JSON.
    let description: Value = serde_json::from_str(DESCRIPTION).unwrap_or_default();
    let paths = description["paths"].as_object().into_iter().flatten();
    let operations = paths.flat_map(|(path, operations)| {
        let operations = operations.as_object().into_iter().flatten();
        operations.map(move |(method, operation)| {
            let scope = operation["security"][0]["token"][0].as_str().unwrap_or_default();
            (method.to_uppercase(), path.clone(), scope.to_owned())
        })
    });
    operations.chain([("GET".to_owned(), "/openapi.json".to_owned(), "read".to_owned())]).collect()
}

/// Returns the routes that API Gateway selects for a request: a full match, or else a greedy path
/// (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-routes.html>).
fn selected<'a>(template: &'a Template, method: &str, path: &str) -> Vec<(&'a str, &'a Value)> {
    let routes = template.of_type("AWS::ApiGatewayV2::Route").filter_map(|(id, route)| {
        let (of, key) = route["RouteKey"].as_str()?.split_once(' ')?;
        (of == method).then_some((id, route, key))
    });
    let (by_prefix, full): (Vec<_>, Vec<_>) = routes.partition(|(_, _, key)| greedy(key).is_some());
    let matching = |routes: Vec<(&'a str, &'a Value, &str)>, matches: &dyn Fn(&str) -> bool| -> Vec<_> {
        let matching = routes.into_iter().filter(|(_, _, key)| matches(key));
        matching.map(|(id, route, _)| (id, route)).collect()
    };
    let full = matching(full, &|key| is_full_match(key, path));
    if full.is_empty() {
        matching(by_prefix, &|key| greedy(key).is_some_and(|prefix| path.starts_with(prefix)))
    } else {
        full
    }
}

/// Returns `true` if each part of a route's path equals the part of the request's path, or is a variable.
fn is_full_match(route: &str, path: &str) -> bool {
    route.split('/').count() == path.split('/').count()
        && route.split('/').zip(path.split('/')).all(|(ours, asked)| ours == asked || ours.starts_with('{'))
}

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

/// A page may send every header that a signed request needs
/// (<https://docs.aws.amazon.com/AmazonS3/latest/API/sig-v4-header-based-auth.html>).
pub(crate) fn headers(template: &Template) -> Vec<Finding> {
    const SIGNED: [&str; 4] = ["authorization", "x-amz-content-sha256", "x-amz-date", "x-amz-security-token"];
    let mut findings = Vec::new();
    for (id, api) in template.of_type("AWS::ApiGatewayV2::Api") {
        let Some(allowed) = api["CorsConfiguration"]["AllowHeaders"].as_array() else { continue };
        let missing = SIGNED.into_iter().filter(|header| !allowed.iter().any(|one| one == header));
        findings.extend(missing.map(|header| Finding::new(id, format!("does not let a page send {header}"))));
    }
    findings
}
