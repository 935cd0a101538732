//! The checks of the templates of this application.

mod alarms;
mod page;
mod permissions;
mod rollout;
mod routes;
mod traces;
mod uploads;

use backend::search::NOT_ON_LAMBDA;
use functions::SYSTEM;
use system_tools::template::checks::{self, Rules, Settings};

use crate::template::{Finding, Template};

/// A check, which returns findings about a template.
type Check = fn(&Template) -> Vec<Finding>;

/// The checks of a deployed template that was read back, and of a template as written.
const OF_BOTH: [Check; 7] = [
    page::paths,
    page::closed,
    routes::authorization,
    routes::operations,
    routes::precedence,
    uploads::prefix,
    uploads::exports,
];

/// The checks of a template as written. A deployment does not contain all of its values.
const AS_WRITTEN: [Check; 13] = [
    alarms::retries,
    alarms::ages,
    alarms::answers,
    alarms::deliveries,
    alarms::loops,
    alarms::unread,
    alarms::schedules,
    alarms::notifications,
    traces::collectors,
    rollout::versions,
    routes::headers,
    uploads::kept,
    uploads::senders,
];

/// The rules of this application. The program has a default for the needed settings, but the default is wrong on
/// Lambda: the embedded backend, and access to all projects without a token. The roles and the bucket contain the
/// prefix of keys.
const RULES: Rules = Rules {
    own_calls: permissions::own_calls,
    settings: Settings {
        needed: &[
            "SEARCH_IMPORT_BACKEND",
            "SEARCH_IMPORT_KEY_PREFIX",
            "SEARCH_IMPORT_OPERATOR_SCOPE",
            "SEARCH_IMPORT_PROJECTS_CLAIM",
        ],
        unused: &NOT_ON_LAMBDA,
    },
};

/// Returns the findings about a template, ordered by resource.
pub fn check(template: &Template) -> Vec<Finding> {
    let own = OF_BOTH.iter().chain(&AS_WRITTEN).flat_map(|check| check(template));
    sorted(checks::check(&SYSTEM, &RULES, template), own)
}

/// Returns the findings about a deployment, given as the template that was read back.
pub fn check_deployed(template: &Template) -> Vec<Finding> {
    let own = OF_BOTH.iter().flat_map(|check| check(template));
    sorted(checks::check_deployed(&SYSTEM, &RULES, template), own)
}

fn sorted(mut findings: Vec<Finding>, own: impl Iterator<Item = Finding>) -> Vec<Finding> {
    findings.extend(own);
    findings.sort();
    findings
}
