//! What must hold of a template.

mod capacity;
mod page;
mod permissions;
mod queues;
mod routes;
mod settings;
mod uploads;

use std::fmt;

use crate::template::Template;

/// Something that does not hold.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The logical id of the resource.
    pub resource: String,
    /// What is wrong with it, and how it should be.
    pub what: String,
}

impl Finding {
    fn new(resource: &str, what: impl Into<String>) -> Self {
        Self { resource: resource.to_owned(), what: what.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.resource, self.what)
    }
}

/// A check: from a template to what is wrong with it.
type Check = fn(&Template) -> Vec<Finding>;

/// All checks.
pub const CHECKS: [Check; 18] = [
    queues::visibility,
    queues::receive_counts,
    queues::dead_letters,
    queues::partial_responses,
    queues::lifetimes,
    queues::sources,
    queues::agreed,
    permissions::wildcards,
    permissions::grants,
    capacity::connections,
    page::paths,
    page::closed,
    routes::authorization,
    uploads::prefix,
    uploads::exports,
    settings::functions,
    settings::names,
    settings::values,
];

/// Everything that is wrong with a template, in the order of its resources.
pub fn check(template: &Template) -> Vec<Finding> {
    let mut findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(template)).collect();
    findings.sort();
    findings
}
