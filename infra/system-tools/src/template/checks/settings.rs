//! Checks of the functions' environments against the settings that they read.

use std::collections::BTreeSet;

use aws::queues::Queues;
use backend::Config;
use saga::{Service, System};
use serde_json::Value;

use super::{Finding, store};
use crate::template::Template;
use crate::template::view::Function;

/// The services of the engine.
const ENGINE: [Service; 5] =
    [Service::DATABASE, Service::LEDGER, Service::TOKENS, Service::PROCESSED, Service::DEPTHS];

/// Settings that every function reads, with exceptions to the usual rule.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// Settings with a default that is wrong on Lambda. They have to be set.
    pub needed: &'static [&'static str],
    /// Settings that functions on Lambda do not read.
    pub unused: &'static [&'static str],
}

/// The template deploys exactly the functions of the application.
pub(crate) fn functions<P>(system: &System<P>, template: &Template) -> Vec<Finding> {
    let deployed: Vec<Function<'_>> = template.functions().collect();
    let unknown = deployed.iter().filter(|function| function.declaration(system).is_none());
    let unknown = unknown
        .map(|function| Finding::new(function.id, format!("there is no function {:?}", function.name)));
    let is_missing = |name: &str| deployed.iter().all(|function| function.name != name);
    let missing = system.functions.iter().filter(|declared| is_missing(declared.name));
    let missing =
        missing.map(|declared| Finding::new("Resources", format!("{} is not deployed", declared.name)));
    unknown.chain(missing).collect()
}

/// Without a version of the secret, functions read the current one.
const SECRET_VERSION: &str = "MONGODB_URI_SECRET_VERSION";

/// Checks that the template sets only variables that a function reads, and all variables without a default.
pub(crate) fn names<P>(system: &System<P>, settings: Settings, template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    let general = general(system, settings);
    let is_dynamo = store::is_dynamo(system, template);
    let mut optional = general.clone();
    optional.retain(|name| !settings.needed.contains(&name.as_str()));
    optional.insert(SECRET_VERSION.to_owned());
    for function in template.functions() {
        let Some(declared) = function.declaration(system) else { continue };
        let own = read_by(system, is_dynamo, declared);
        let (read, set) =
            (own.union(&general).cloned().collect(), function.environment().into_keys().collect());
        let difference = |one: &BTreeSet<String>, other, how| -> Vec<Finding> {
            one.difference(other).map(|name| Finding::new(function.id, format!("{name} {how}"))).collect()
        };
        let needed = BTreeSet::difference(&read, &optional).cloned().collect();
        findings.extend(difference(&needed, &set, "is read and not set"));
        findings.extend(difference(&set, &read, "is set and not read"));
    }
    findings
}

/// Returns the variables that a function reads in addition to the general ones: those of its services and of telemetry,
/// and the addresses of its queues. The settings of the database are the table on DynamoDB, or the settings of MongoDB.
pub(crate) fn read_by<P>(
    system: &System<P>,
    is_dynamo: bool,
    function: &saga::Function<P>,
) -> BTreeSet<String> {
    let queues = function.queues(system.queues);
    let queues = queues.iter().map(|queue| Queues::setting(system.name, queue));
    let telemetry = [telemetry::FILTER, telemetry::trace::ENDPOINT].map(str::to_owned);
    let table = backend::store_table(system.name);
    let is_read = |name: &String| (table.as_ref() == Some(name)) == is_dynamo;
    let (database, others): (Vec<Service>, Vec<Service>) =
        function.services.iter().copied().partition(|service| *service == Service::DATABASE);
    let database = of(system.name, &database).into_iter().filter(is_read);
    of(system.name, &others).into_iter().chain(database).chain(queues).chain(telemetry).collect()
}

/// Returns the settings that every function reads.
fn general<P>(system: &System<P>, settings: Settings) -> BTreeSet<String> {
    let own = system.functions.iter().flat_map(|function| function.services);
    let services: Vec<Service> = ENGINE.iter().chain(own).copied().collect();
    let services = of(system.name, &services);
    let on_lambda = |name: &String| !services.contains(name) && !settings.unused.contains(&name.as_str());
    Config::names_of(system.name).into_iter().filter(on_lambda).collect()
}

/// Returns the settings of services.
fn of(system: &str, services: &[Service]) -> BTreeSet<String> {
    services.iter().flat_map(|service| backend::settings(system, *service)).collect()
}

/// A function's environment stays within Lambda's limit of 4 KB
/// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>) for all names of queues. Values that
/// only AWS knows are assumed to have their maximum length: the address of a queue in the region with the longest name.
pub(crate) fn environment_size(template: &Template) -> Vec<Finding> {
    const MAX_BYTES: usize = 4_096;
    const LONGEST: usize =
        "https://sqs.ap-southeast-1.amazonaws.com/123456789012/a-stack-of-26-characters-in-parse-unreadable"
            .len();
    let length = |value: &Value| value.as_str().map_or(LONGEST, |text| text.len().max(1));
    let mut findings = Vec::new();
    for function in template.functions() {
        let variables = function.properties["Environment"]["Variables"].as_object().into_iter().flatten();
        let taken: usize = variables.map(|(name, value)| name.len() + length(value)).sum();
        if taken > MAX_BYTES {
            let what =
                format!("has an environment of up to {taken} bytes, and Lambda's limit is {MAX_BYTES}");
            findings.push(Finding::new(function.id, what));
        }
    }
    findings
}

/// Every function starts with its settings.
pub(crate) fn values<P>(system: &System<P>, template: &Template) -> Vec<Finding> {
    let faults = |function: Function<'_>| {
        Some(Finding::new(
            function.id,
            Config::from_pairs(system.name, function.environment()).err()?.to_string(),
        ))
    };
    template.functions().filter_map(faults).collect()
}

/// Lambda drops no log line that `LogFilter` accepts. Without a level, it keeps JSON lines at INFO and above
/// (<https://docs.aws.amazon.com/lambda/latest/dg/monitoring-cloudwatchlogs-log-level.html>).
pub(crate) fn levels(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in template.functions() {
        let logging = &function.properties["LoggingConfig"];
        if logging["LogFormat"] != "JSON" {
            findings.push(Finding::new(function.id, "does not log as JSON, which queries and levels need"));
        }
        if logging["ApplicationLogLevel"] != "TRACE" {
            findings.push(Finding::new(function.id, "has lines dropped by Lambda that LogFilter asks for"));
        }
    }
    findings
}
