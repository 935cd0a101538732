//! What must hold of a template.

mod alarms;
mod capacity;
mod kept;
mod page;
mod permissions;
mod queues;
mod routes;
mod running;
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

/// What must hold of a deployment as it was read back, and of a template as it is written.
const OF_BOTH: [Check; 18] = [
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

/// What must hold of a template as it is written: a deployment does not tell all of it.
const AS_WRITTEN: [Check; 18] = [
    alarms::retries,
    alarms::ages,
    alarms::answers,
    alarms::deliveries,
    alarms::unread,
    alarms::schedules,
    alarms::told,
    capacity::reserved,
    kept::data,
    kept::tables,
    kept::closed,
    running::levels,
    running::collectors,
    running::versions,
    running::headers,
    settings::room,
    uploads::kept,
    uploads::senders,
];

/// Everything that is wrong with a template, in the order of its resources.
pub fn check(template: &Template) -> Vec<Finding> {
    findings(template, OF_BOTH.iter().chain(&AS_WRITTEN))
}

/// Everything that is wrong with a deployment, as a template that was read back from it.
pub fn check_deployed(template: &Template) -> Vec<Finding> {
    findings(template, OF_BOTH.iter())
}

fn findings<'a>(template: &Template, checks: impl Iterator<Item = &'a Check>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = checks.flat_map(|check| check(template)).collect();
    findings.sort();
    findings
}
