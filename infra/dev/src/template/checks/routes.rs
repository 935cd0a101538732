//! Checks of the authorization of the HTTP API's routes.

use super::Finding;
use crate::template::Template;

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
