//! The functions' environments against the settings that they read.

use std::collections::BTreeSet;

use aws::queues::Queues;
use backend::Config;
use backend::config::NOT_ON_LAMBDA;
use functions::SYSTEM;
use imports::Ports;
use imports::ports::{BUCKET, EXPORTS, LINKS, OBJECTS, UPLOADS};
use saga::Service;

use super::Finding;
use crate::template::Template;
use crate::template::view::Function;

const SERVICES: [Service; 9] = [
    Service::DATABASE,
    Service::LEDGER,
    Service::TOKENS,
    Service::PROCESSED,
    OBJECTS,
    BUCKET,
    UPLOADS,
    EXPORTS,
    LINKS,
];

/// The template deploys every function, and nothing else.
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

/// Every variable that a function reads is set, and none that it does not read.
pub(crate) fn names(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in template.functions() {
        let Some(program) = function.program() else { continue };
        let (read, set) = (read_by(program), function.environment().into_keys().collect());
        let difference = |one: &BTreeSet<String>, other, how| -> Vec<Finding> {
            one.difference(other).map(|name| Finding::new(function.id, format!("{name} {how}"))).collect()
        };
        findings.extend(difference(&read, &set, "is read and not set"));
        findings.extend(difference(&set, &read, "is set and not read"));
    }
    findings
}

/// The variables that a function reads: all general settings, those of its services, and the addresses of its queues.
fn read_by(program: &saga::Function<Ports>) -> BTreeSet<String> {
    let names = |services: &[Service]| -> BTreeSet<String> {
        services
            .iter()
            .flat_map(|service| backend::settings(*service))
            .map(|name| (*name).to_owned())
            .collect()
    };
    let of_any_service = names(&SERVICES);
    let general = Config::names().into_iter().filter(|name| !of_any_service.contains(name));
    let general = general.filter(|name| !NOT_ON_LAMBDA.contains(&name.as_str()));
    let queues = program.queues(SYSTEM.queues);
    let queues = queues.iter().map(Queues::setting);
    let telemetry = [telemetry::FILTER, telemetry::trace::ENDPOINT].map(str::to_owned);
    general.chain(names(program.services)).chain(queues).chain(telemetry).collect()
}

/// No function refuses to start because of its settings.
pub(crate) fn values(template: &Template) -> Vec<Finding> {
    let faults = |function: Function<'_>| {
        Some(Finding::new(function.id, Config::from_pairs(function.environment()).err()?.to_string()))
    };
    template.functions().filter_map(faults).collect()
}
