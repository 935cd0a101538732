//! Event sources for the functions of a system under a Lambda emulator.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use aws::queues::Queues;
use backend::Config;
use lambda_host::pump::{Functions, Invocation, Pump, Source};
use local::output;
use messages::Queue;
use saga::System;

/// The options of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address at which the functions are invoked
    #[arg(long, value_name = "URL", default_value = "http://127.0.0.1:9000")]
    pub functions: String,
    /// Maximum number of messages in one batch [default: that of the queue]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub batch_size: Option<u32>,
    /// Time to wait for a full batch
    #[arg(long, value_name = "SECONDS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=300))]
    pub window: u64,
    /// Visibility timeout of received messages [default: that of the queue]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=43_200))]
    pub visibility: Option<u64>,
    /// Interval at which the schedule invokes the functions that sweep outboxes or collect dead letters
    #[arg(long, value_name = "SECONDS", default_value_t = 60, value_parser = clap::value_parser!(u64).range(1..))]
    pub every: u64,
}

/// Delivers messages until the process is asked to stop, and finishes the messages that were already received.
///
/// # Errors
/// Returns an error if settings are wrong, or the address of no queue is set.
pub async fn run<P>(system: &System<P>, args: &Args) -> anyhow::Result<bool> {
    let queues = Queues::from_pairs(system.name, Config::from_env_of(system.name)?.services.queue_urls);
    let sources = sources(system, args);
    let urls: BTreeMap<Queue, String> = sources
        .iter()
        .filter_map(|source| Some((source.queue.clone(), queues.url(&source.queue)?.to_owned())))
        .collect();
    if urls.is_empty() {
        bail!(
            "{} is not set, nor is the address of another queue with a consumer; `provision` prints all of them",
            Queues::setting(system.name, &saga::SAGA)
        );
    }
    let names: Vec<&str> = urls.keys().map(Queue::name).collect();
    output::remark(&format!(
        "delivering {} to the functions at {}; Ctrl-C stops",
        names.join(", "),
        args.functions
    ));
    let pump = Pump {
        system: system.name,
        sqs: aws_sdk_sqs::Client::new(&aws::config().await),
        functions: Functions::at(&args.functions)?,
        scheduled: scheduled(system),
        every: Duration::from_secs(args.every),
        visibility: args.visibility.map(Duration::from_secs),
        report: Box::new(|invocation| output::remark(&line(&invocation))),
        urls,
    };
    pump.run_until(&sources, local::stop::asked_to_stop()).await;
    output::remark("stopped");
    Ok(true)
}

fn sources<P>(system: &System<P>, args: &Args) -> Vec<Source> {
    let with_options = |source: Source| {
        let batch_size = args.batch_size.and_then(|size| usize::try_from(size).ok());
        Source {
            batch_size: batch_size.unwrap_or(source.batch_size),
            window: Duration::from_secs(args.window),
            ..source
        }
    };
    Source::of(system).into_iter().map(with_options).collect()
}

/// Returns the functions with scheduled work: the one behind the control queue, and those that drain dead letters.
fn scheduled<P>(system: &System<P>) -> Vec<&'static str> {
    let scheduled = system.functions.iter().filter(|function| function.has_scheduled_work());
    scheduled.map(|function| function.name).collect()
}

fn line(invocation: &Invocation) -> String {
    let Invocation { function, messages, kept, fault } = invocation;
    let what = match (messages, kept) {
        (None, _) => "on schedule".to_owned(),
        (Some(messages), 0) => format!("{messages} done"),
        (Some(messages), kept) => format!("{} done, {kept} left to the queue", messages - kept),
    };
    match fault {
        Some(fault) => format!("{function}: {what}: {fault}"),
        None => format!("{function}: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use outbox::session::CONTROL;
    use saga::Function;

    use super::*;

    #[test]
    fn functions_with_scheduled_work_are_scheduled() {
        static CONTROLLED: Function<()> = Function {
            name: "dispatch-outbox",
            services: &[],
            source: saga::Source::Queue(CONTROL),
            sends: &[],
            drains: &[],
            build: None,
        };
        static DRAINING: Function<()> = Function {
            name: "report-faults",
            services: &[],
            source: saga::Source::Requests,
            sends: &[],
            drains: &[Queue::named("saga-dead")],
            build: None,
        };
        static OTHER: Function<()> = Function {
            name: "requests",
            services: &[],
            source: saga::Source::Requests,
            sends: &[],
            drains: &[],
            build: None,
        };
        static SHOP: System<()> =
            System { name: "shop", queues: &[], functions: &[&CONTROLLED, &DRAINING, &OTHER] };
        assert_eq!(scheduled(&SHOP), ["dispatch-outbox", "report-faults"]);
    }
}
