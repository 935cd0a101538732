//! The checks of a template that apply to any system.

mod capacity;
mod data_protection;
pub mod permissions;
mod queues;
mod settings;
mod store;

use std::fmt;

use saga::System;

use crate::template::Template;

pub use permissions::OwnCalls;
pub use settings::Settings;

/// A violation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The logical id of the resource.
    pub resource: String,
    /// A description of the fault and of the expected value.
    pub what: String,
}

impl Finding {
    /// Returns a finding about a resource.
    pub fn new(resource: &str, what: impl Into<String>) -> Self {
        Self { resource: resource.to_owned(), what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.resource, self.what)
    }
}

/// The rules of an application in addition to its table.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// The calls to the services of the application itself.
    pub own_calls: OwnCalls,
    /// The settings that every function reads.
    pub settings: Settings,
}

impl Default for Rules {
    fn default() -> Self {
        Self { own_calls: |_, _, _| Vec::new(), settings: Settings::default() }
    }
}

/// Returns the findings about a template, ordered by resource.
pub fn check<P>(system: &System<P>, rules: &Rules, template: &Template) -> Vec<Finding> {
    let mut findings = check_deployed(system, rules, template);
    let as_written = [
        capacity::reserved,
        data_protection::retention,
        data_protection::tables,
        data_protection::secure_transport,
        settings::environment_size,
        settings::levels,
    ];
    findings.extend(as_written.into_iter().flat_map(|check| check(template)));
    // A deployment that was read back does not contain the property.
    findings.extend(queues::loops(system, template));
    findings.sort();
    findings
}

/// Returns the findings about a deployment, given as the template that was read back. A deployment does not contain all
/// values of its template.
pub fn check_deployed<P>(system: &System<P>, rules: &Rules, template: &Template) -> Vec<Finding> {
    let of_template = [
        queues::visibility,
        queues::receive_counts,
        queues::dead_letters,
        queues::partial_responses,
        permissions::wildcards,
    ];
    let of_system = [
        queues::lifetimes,
        queues::sources,
        queues::schedules,
        queues::agreed,
        capacity::connections,
        settings::functions,
        settings::values,
        store::table,
    ];
    let mut findings: Vec<Finding> = of_template.into_iter().flat_map(|check| check(template)).collect();
    findings.extend(of_system.into_iter().flat_map(|check| check(system, template)));
    findings.extend(permissions::grants(system, rules.own_calls, template));
    findings.extend(settings::names(system, rules.settings, template));
    findings.sort();
    findings
}
