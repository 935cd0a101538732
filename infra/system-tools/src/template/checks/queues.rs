//! Checks of queues and their functions.

use aws::queues::Queues;
use backend::Config;
use messages::{QueueSpec, naming};
use saga::{Service, System};

use super::Finding;
use crate::template::Template;
use crate::template::view::{Queue, Source, referred};

/// The minimum ratio of a queue's visibility timeout to its function's timeout, which allows for Lambda's own retries
/// (<https://docs.aws.amazon.com/lambda/latest/dg/services-sqs-configure.html>). The batching window is added.
const VISIBILITY_FACTOR: u64 = 6;
/// The minimum receive limit. With a smaller limit, a function that is throttled or restarted once loses messages.
const RECEIVE_COUNT: u64 = 3;
/// The maximum batching window that a deployment can choose. The queue's visibility timeout is fixed and has to be
/// sufficient for every choice.
const MAX_WINDOW: u64 = 20;
/// In optimistic mode, a document has to outlive every message.
const LIFETIME: &str = "MESSAGE_LIFETIME_SECONDS";

/// A message stays hidden until the function that received it has ended.
pub(crate) fn visibility(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in template.functions() {
        for source in function.sources(template) {
            let least = VISIBILITY_FACTOR * function.timeout() + source.window().unwrap_or(0);
            let visibility = source.queue.visibility();
            if visibility < least {
                let what = format!(
                    "hides a message for {visibility} s, but needs {least} s: {VISIBILITY_FACTOR} times the timeout of \
                     {}, and its batch window",
                    function.id
                );
                findings.push(Finding::new(source.queue.id, what));
            }
        }
    }
    findings
}

/// A message is delivered at least a minimum number of times.
pub(crate) fn receive_counts(template: &Template) -> Vec<Finding> {
    let few = |queue: &Queue<'_>| {
        let limit = queue.receive_limit()?;
        let what =
            format!("gives a message up after {limit} deliveries, and should after at least {RECEIVE_COUNT}");
        (limit < RECEIVE_COUNT).then(|| Finding::new(queue.id, what))
    };
    template.queues().filter_map(|queue| few(&queue)).collect()
}

/// Every queue has a dead-letter queue with a longer retention, because a message keeps its age there.
pub(crate) fn dead_letters(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for queue in template.queues() {
        match queue.dead_letters(template) {
            None if takes_dead_letters(template, &queue) => {}
            None => findings.push(Finding::new(queue.id, "has no dead-letter queue")),
            Some(dead) if dead.retention() <= queue.retention() => {
                let what = format!(
                    "keeps messages for {} s, no longer than {} before it, which keeps them for {} s",
                    dead.retention(),
                    queue.id,
                    queue.retention()
                );
                findings.push(Finding::new(dead.id, what));
            }
            Some(_) => {}
        }
    }
    findings
}

/// Returns `true` for a final queue: the dead-letter queue of another queue, or the destination of a function that S3
/// invokes.
fn takes_dead_letters(template: &Template, queue: &Queue<'_>) -> bool {
    let behind = |other: Queue<'_>| other.dead_letters(template).is_some_and(|dead| dead.id == queue.id);
    let on_failure = |function: crate::template::view::Function<'_>| {
        let destination =
            &function.properties["EventInvokeConfig"]["DestinationConfig"]["OnFailure"]["Destination"];
        template.queue(destination).is_some_and(|dead| dead.id == queue.id)
    };
    template.queues().any(behind) || template.functions().any(on_failure)
}

/// Functions report individual failures. A response for a whole batch would repeat handled messages or lose failed
/// ones.
pub(crate) fn partial_responses(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in template.functions() {
        for source in function.sources(template) {
            let types = source.properties["FunctionResponseTypes"].as_array();
            if !types.is_some_and(|types| types.iter().any(|one| one == "ReportBatchItemFailures")) {
                let what = format!("does not report which messages of {} failed", source.queue.id);
                findings.push(Finding::new(function.id, what));
            }
        }
    }
    findings
}

/// The maximum age of a message that the functions assume covers the retention of the queues.
pub(crate) fn lifetimes<P>(system: &System<P>, template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    let setting = naming::setting(system.name, LIFETIME);
    for function in template.functions() {
        let said = Config::from_pairs(system.name, function.environment())
            .ok()
            .map(|config| config.message_lifetime.as_secs());
        for queue in function.sources(template).map(|source| source.queue) {
            let lifetime = lifetime(template, queue);
            if said.is_some_and(|said| said < lifetime) {
                let what = format!(
                    "{setting} is less than the {lifetime} s that a message can live in {} and its dead letters",
                    queue.id
                );
                findings.push(Finding::new(function.id, what));
            }
        }
    }
    findings
}

/// Returns the longest retention from a queue to its last dead-letter queue.
fn lifetime(template: &Template, queue: Queue<'_>) -> u64 {
    let behind = std::iter::successors(Some(queue), |queue| queue.dead_letters(template));
    // A cycle of queues would not terminate.
    behind.take(template.resources.len()).map(|queue| queue.retention()).max().unwrap_or(0)
}

/// Only the queue that a function consumes invokes the function.
pub(crate) fn sources<P>(system: &System<P>, template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in template.functions().filter(|function| function.declaration(system).is_some()) {
        let variables = &function.properties["Environment"]["Variables"];
        let own = function
            .receives(system)
            .and_then(|queue| referred(&variables[Queues::setting(system.name, queue)]));
        let invoking: Vec<&str> = function.sources(template).map(|source| source.queue.id).collect();
        if function.receives(system).is_some() && own.is_none_or(|own| !invoking.contains(&own)) {
            findings.push(Finding::new(function.id, "is not invoked by the queue that it works on"));
        }
        for other in invoking.into_iter().filter(|queue| Some(*queue) != own) {
            findings
                .push(Finding::new(function.id, format!("is invoked by {other}, which it does not work on")));
        }
    }
    findings
}

/// Functions with scheduled work have a schedule, and one of them dispatches the outbox. Without it, no timer fires and
/// no dead letter is collected.
pub(crate) fn schedules<P>(system: &System<P>, template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    let has_outbox = system.functions.iter().any(|function| function.services.contains(&Service::DATABASE));
    if has_outbox && !system.functions.iter().any(|function| function.dispatches_outbox()) {
        let what =
            "has no function behind the queue control, so no timer fires: add Function::dispatch_outbox";
        findings.push(Finding::new(system.name, what));
    }
    for function in template.functions() {
        let Some(declared) = function.declaration(system) else { continue };
        let mut events =
            function.properties["Events"].as_object().into_iter().flat_map(|events| events.values());
        if declared.has_scheduled_work() && !events.any(|event| event["Type"] == "Schedule") {
            findings.push(Finding::new(function.id, "has scheduled work, and no schedule starts it"));
        }
    }
    findings
}

/// Lambda stops messages that come back to the same function about 16 times, unless the function allows it
/// (<https://docs.aws.amazon.com/lambda/latest/dg/invocation-recursion.html>). Work that takes more invocations is a
/// chain of messages to the same queue.
pub(crate) fn loops<P>(system: &System<P>, template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in template.functions() {
        let Some(declared) = function.declaration(system) else { continue };
        let Some(own) = declared.source.queue() else { continue };
        let allows = function.properties["RecursiveLoop"] == "Allow";
        let sends_to_own = declared.sends_in(system.queues).contains(own);
        if sends_to_own && !allows {
            findings.push(Finding::new(function.id, "sends to its own queue, and Lambda stops it as a loop"));
        }
        if !sends_to_own && allows {
            findings
                .push(Finding::new(function.id, "allows loops, although it does not send to its own queue"));
        }
    }
    findings
}

/// Queues have the specified visibility timeout, receive limit and batch size.
pub(crate) fn agreed<P>(system: &System<P>, template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in template.functions() {
        let spec = function.receives(system).and_then(|queue| QueueSpec::of(system.queues, queue));
        let Some(spec) = spec else { continue };
        findings.extend(function.sources(template).flat_map(|source| differences(spec, &source)));
    }
    findings
}

/// Returns the differences between a queue that invokes a function and its specification.
fn differences(spec: &QueueSpec, source: &Source<'_>) -> Vec<Finding> {
    let queue = &source.queue;
    let (visibility, agreed) = (queue.visibility(), spec.visibility.as_secs());
    // A template allows for the longest batching window. A deployment contains only the chosen window.
    let with_window = source.window().map(|_| agreed + MAX_WINDOW);
    let mut findings = Vec::new();
    let mut differs = |what: String| findings.push(Finding::new(queue.id, what));
    if visibility != agreed && Some(visibility) != with_window {
        differs(format!(
            "hides a message for {visibility} s, but the specification has {} s",
            with_window.unwrap_or(agreed)
        ));
    }
    if queue.receive_limit() != spec.receive_limit.map(u64::from) {
        let limit = |limit: Option<u64>| limit.map_or("any number of".to_owned(), |limit| limit.to_string());
        let (is, agreed) = (limit(queue.receive_limit()), limit(spec.receive_limit.map(u64::from)));
        differs(format!("makes {is} deliveries of a message, but the specification has {agreed}"));
    }
    // A deployment may choose a smaller window.
    if source.batch_size() > spec.batch_size as u64 {
        let (is, agreed) = (source.batch_size(), spec.batch_size);
        differs(format!("gives its function {is} messages per batch, but the limit is {agreed}"));
    }
    findings
}
