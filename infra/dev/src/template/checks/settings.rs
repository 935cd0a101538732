//! Checks of the functions' environments against the settings that they read.

use std::collections::BTreeSet;

use aws::queues::Queues;
use backend::Config;
use backend::search::NOT_ON_LAMBDA;
use functions::SYSTEM;
use imports::Ports;
use imports::ports::{BUCKET, EXPORTS, LINKS, OBJECTS, UPLOADS};
use saga::Service;
use serde_json::Value;

use super::Finding;
use crate::template::Template;
use crate::template::view::Function;

const SERVICES: [Service; 10] = [
    Service::DATABASE,
    Service::LEDGER,
    Service::TOKENS,
    Service::PROCESSED,
    Service::DEPTHS,
    OBJECTS,
    BUCKET,
    UPLOADS,
    EXPORTS,
    LINKS,
];

/// The template deploys exactly the functions of the application.
pub(crate) fn functions(template: &Template) -> Vec<Finding> {
    let deployed: Vec<Function<'_>> = template.functions().collect();
    let unknown = deployed.iter().filter(|function| function.program().is_none());
    let unknown = unknown
        .map(|function| Finding::new(function.id, format!("there is no function {:?}", function.binary)));
    let missing = SYSTEM
        .functions
        .iter()
        .filter(|program| deployed.iter().all(|function| function.binary != program.name));
    let missing =
        missing.map(|program| Finding::new("Resources", format!("{} is not deployed", program.name)));
    unknown.chain(missing).collect()
}

/// Settings that the program has a default for, but whose default is wrong on Lambda: the embedded backend, and access
/// to all projects without a token. The roles and the bucket contain the prefix of keys.
const NEEDED: [&str; 4] = [
    "SEARCH_IMPORT_BACKEND",
    "SEARCH_IMPORT_KEY_PREFIX",
    "SEARCH_IMPORT_OPERATOR_SCOPE",
    "SEARCH_IMPORT_PROJECTS_CLAIM",
];

/// Without a version of the secret, functions read the current one.
const SECRET_VERSION: &str = "MONGODB_URI_SECRET_VERSION";

/// Only variables that a function reads are set, and every variable without a default.
pub(crate) fn names(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut optional = general();
    optional.retain(|name| !NEEDED.contains(&name.as_str()));
    optional.insert(SECRET_VERSION.to_owned());
    for function in template.functions() {
        let Some(program) = function.program() else { continue };
        let (read, set) = (read_by(program), function.environment().into_keys().collect());
        let difference = |one: &BTreeSet<String>, other, how| -> Vec<Finding> {
            one.difference(other).map(|name| Finding::new(function.id, format!("{name} {how}"))).collect()
        };
        let needed = read.difference(&optional).cloned().collect();
        findings.extend(difference(&needed, &set, "is read and not set"));
        findings.extend(difference(&set, &read, "is set and not read"));
    }
    findings
}

/// Returns the variables that a function reads: general settings, those of its services, and the addresses of its
/// queues.
fn read_by(program: &saga::Function<Ports>) -> BTreeSet<String> {
    let queues = program.queues(SYSTEM.queues);
    let queues = queues.iter().map(|queue| Queues::setting(imports::SYSTEM, queue));
    let telemetry = [telemetry::FILTER, telemetry::trace::ENDPOINT].map(str::to_owned);
    general().into_iter().chain(of(program.services)).chain(queues).chain(telemetry).collect()
}

/// Returns the settings that every function reads.
fn general() -> BTreeSet<String> {
    let services = of(&SERVICES);
    let on_lambda = |name: &String| !services.contains(name) && !NOT_ON_LAMBDA.contains(&name.as_str());
    Config::names_of(imports::SYSTEM).into_iter().filter(on_lambda).collect()
}

/// Returns the settings of services.
fn of(services: &[Service]) -> BTreeSet<String> {
    services.iter().flat_map(|service| backend::settings(imports::SYSTEM, *service)).collect()
}

/// A function's environment stays within Lambda's limit of 4 KB
/// (<https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html>) for all names of queues. Values that
/// only AWS knows are assumed to have their maximum length: the address of a queue in the region with the longest name.
pub(crate) fn room(template: &Template) -> Vec<Finding> {
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
pub(crate) fn values(template: &Template) -> Vec<Finding> {
    let faults = |function: Function<'_>| {
        Some(Finding::new(
            function.id,
            Config::from_pairs(imports::SYSTEM, function.environment()).err()?.to_string(),
        ))
    };
    template.functions().filter_map(faults).collect()
}
