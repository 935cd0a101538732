//! The checks of a template.

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

/// A violation.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The logical id of the resource.
    pub resource: String,
    /// A description of the fault and of the expected value.
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

/// A check, which returns findings about a template.
type Check = fn(&Template) -> Vec<Finding>;

/// The checks of a deployed template that was read back, and of a template as written.
const OF_BOTH: [Check; 19] = [
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
    routes::precedence,
    uploads::prefix,
    uploads::exports,
    settings::functions,
    settings::names,
    settings::values,
];

/// The checks of a template as written. A deployment does not contain all of its values.
const AS_WRITTEN: [Check; 19] = [
    alarms::retries,
    alarms::ages,
    alarms::answers,
    alarms::deliveries,
    alarms::loops,
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

/// Returns the findings about a template, ordered by resource.
pub fn check(template: &Template) -> Vec<Finding> {
    findings(template, OF_BOTH.iter().chain(&AS_WRITTEN))
}

/// Returns the findings about a deployment, given as the template that was read back.
pub fn check_deployed(template: &Template) -> Vec<Finding> {
    findings(template, OF_BOTH.iter())
}

fn findings<'a>(template: &Template, checks: impl Iterator<Item = &'a Check>) -> Vec<Finding> {
    let mut findings: Vec<Finding> = checks.flat_map(|check| check(template)).collect();
    findings.sort();
    findings
}
