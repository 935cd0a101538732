//! Whether MongoDB can bear what the functions may ask of it.

use saga::Service;
use serde_json::Value;

use super::Finding;
use crate::template::Template;
use crate::template::view::{Function, number};

/// The connections with which a process watches a server, beside its pool.
const WATCHING: u64 = 2;
const RESERVED: &str = "ReservedConcurrentExecutions";
const POOL: &str = "SEARCH_IMPORT_MONGODB_POOL_SIZE";
const LIMIT: &str = "MongoConnectionLimit";
/// The most that runs at once in the account, of this stack and all else.
const ACCOUNT: &str = "AccountConcurrency";
/// While a new version takes over, processes of the one before are still there, with their connections: frozen ones stay for
/// some minutes (<https://docs.aws.amazon.com/lambda/latest/dg/lambda-runtime-environment.html>).
const OVERLAP: u64 = 2;

/// The most connections that all functions together open to one server stay below what it allows, also while a new version
/// takes over.
pub(crate) fn connections(template: &Template) -> Vec<Finding> {
    let Some(limit) = template.parameters.get(LIMIT).and_then(number) else {
        return vec![Finding::new(LIMIT, "is not a number of connections")];
    };
    let account = template.parameters.get(ACCOUNT).and_then(number).unwrap_or(u64::MAX);
    let (mut running, mut total, mut each) = (0, 0, 0);
    let mut findings = Vec::new();
    for function in template.functions().filter(has_database) {
        let pool = function.environment().get(POOL).and_then(|text| text.parse::<u64>().ok());
        match (concurrency(template, &function), pool) {
            (Some(concurrency), Some(pool)) => {
                running += concurrency;
                each = each.max(pool + WATCHING);
                total += concurrency * (pool + WATCHING);
            }
            (None, _) => findings.push(Finding::new(function.id, "may run any number of times at once")),
            (_, None) => findings.push(Finding::new(function.id, format!("{POOL} is not a number"))),
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

/// What is reserved for functions leaves the account the concurrency that Lambda keeps for all others
/// (<https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html>); else it refuses to reserve it when the
/// function is made.
pub(crate) fn reserved(template: &Template) -> Vec<Finding> {
    const UNRESERVED: u64 = 100;
    let Some(account) = template.parameters.get(ACCOUNT).and_then(number) else { return Vec::new() };
    let each = template.functions().filter_map(|function| number(&function.properties[RESERVED]));
    let reserved: u64 = each.sum();
    if reserved == 0 || reserved + UNRESERVED <= account {
        return Vec::new();
    }
    let what =
        format!("is {account}, of which {reserved} are reserved; Lambda wants {UNRESERVED} to be left");
    vec![Finding::new(ACCOUNT, what)]
}

fn has_database(function: &Function<'_>) -> bool {
    function.program().is_some_and(|program| program.services.contains(&Service::DATABASE))
}

/// How many times a function may run at once: as often as is reserved for it, else as its event sources invoke it; none
/// when nothing limits that. A schedule invokes one at a time.
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
    // Without event sources it is the API that invokes it.
    if sum > 0 { Some(sum) } else { throttled(template, function.timeout()) }
}

/// How many requests there are at once if the API lets in as many as it may, and each takes as long as it may: those that come
/// together, and then rate times duration.
fn throttled(template: &Template, seconds: u64) -> Option<u64> {
    let settings = |stage: &Value| {
        let of = |name: &str| number(&stage["DefaultRouteSettings"][name]);
        Some(of("ThrottlingBurstLimit")? + of("ThrottlingRateLimit")? * seconds)
    };
    template.of_type("AWS::ApiGatewayV2::Stage").map(|(_, stage)| settings(stage)).max().flatten()
}
