//! Checks that MongoDB has enough capacity for the functions.

use messages::naming;
use saga::{Service, System};
use serde_json::Value;

use super::{Finding, store};
use crate::template::Template;
use crate::template::view::{Function, number};

/// The number of connections for monitoring a server, in addition to the pool.
const WATCHING: u64 = 2;
const RESERVED: &str = "ReservedConcurrentExecutions";
const POOL: &str = "MONGODB_POOL_SIZE";
/// The limits of an environment, in its file.
const LIMIT: &str = "mongodb_connections";
const ACCOUNT: &str = "account_concurrency";
/// The number of versions with open connections during a deployment. Frozen processes of the previous version exist for
/// some minutes (<https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html>).
const OVERLAP: u64 = 2;

/// The connections that all functions open to one server stay within its limit, also while a new version takes over.
/// DynamoDB has no such limit.
pub(crate) fn connections<P>(system: &System<P>, template: &Template) -> Vec<Finding> {
    if store::is_dynamo(system, template) {
        return Vec::new();
    }
    let setting = naming::setting(system.name, POOL);
    let (limit, account) = (template.limits.mongodb_connections, template.limits.account_concurrency);
    let (mut running, mut total, mut each) = (0, 0, 0);
    let mut findings = Vec::new();
    for function in template.functions().filter(|function| has_database(system, function)) {
        let pool = function.environment().get(&setting).and_then(|text| text.parse::<u64>().ok());
        match (concurrency(template, &function), pool) {
            (Some(concurrency), Some(pool)) => {
                running += concurrency;
                each = each.max(pool + WATCHING);
                total += concurrency * (pool + WATCHING);
            }
            (None, _) => findings.push(Finding::new(function.id, "has no limit of concurrent executions")),
            (_, None) => findings.push(Finding::new(function.id, format!("{setting} is not a number"))),
        }
    }
    if running > account {
        total = account * each;
    }
    let total = total * OVERLAP;
    if total > limit {
        let what = format!(
            "is {limit}, but the functions may open {total} connections to one server while a new version takes over"
        );
        findings.push(Finding::new(LIMIT, what));
    }
    findings
}

/// The reserved concurrency leaves the minimum that Lambda requires for unreserved functions
/// (<https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html>). Otherwise Lambda rejects the
/// reservation when the function is created.
pub(crate) fn reserved(template: &Template) -> Vec<Finding> {
    const UNRESERVED: u64 = 100;
    let account = template.limits.account_concurrency;
    let each = template.functions().filter_map(|function| number(&function.properties[RESERVED]));
    let reserved: u64 = each.sum();
    if reserved == 0 || reserved + UNRESERVED <= account {
        return Vec::new();
    }
    let what = format!("is {account} with {reserved} reserved; Lambda requires {UNRESERVED} unreserved");
    vec![Finding::new(ACCOUNT, what)]
}

fn has_database<P>(system: &System<P>, function: &Function<'_>) -> bool {
    function.declaration(system).is_some_and(|function| function.services.contains(&Service::DATABASE))
}

/// Returns the maximum concurrency of a function: the reserved concurrency, or that of its event sources; `None` if it
/// is unlimited. A schedule invokes one at a time.
fn concurrency(template: &Template, function: &Function<'_>) -> Option<u64> {
    if let Some(reserved) = function.properties.get(RESERVED) {
        return number(reserved);
    }
    let events = function.properties["Events"].as_object().into_iter().flat_map(|events| events.values());
    let each = events.map(|event| match event["Type"].as_str() {
        Some("SQS") => number(&event["Properties"]["ScalingConfig"]["MaximumConcurrency"]),
        Some("Schedule") => Some(1),
        _ => None,
    });
    let sum = each.sum::<Option<u64>>()?;
    // A function without event sources is invoked by the API.
    if sum > 0 { Some(sum) } else { throttled(template, function.timeout()) }
}

/// Returns the maximum number of concurrent requests: the burst, plus the rate times the maximum duration.
fn throttled(template: &Template, seconds: u64) -> Option<u64> {
    let settings = |stage: &Value| {
        let of = |name: &str| number(&stage["DefaultRouteSettings"][name]);
        Some(of("ThrottlingBurstLimit")? + of("ThrottlingRateLimit")? * seconds)
    };
    template.of_type("AWS::ApiGatewayV2::Stage").map(|(_, stage)| settings(stage)).max().flatten()
}
