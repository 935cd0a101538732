//! Event sources for functions under a Lambda emulator.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::bail;
use aws::queues::Queues;
use backend::Config;
use functions::{SYSTEM, dispatch_outbox, report_faults};
use imports::queues::SAGA;
use lambda_host::pump::{Functions, Invocation, Pump, Source};
use local::output;
use messages::Queue;

use crate::args;

/// Delivers messages until the process is asked to stop, and finishes those received by then.
pub(crate) async fn run(args: &args::Pump) -> anyhow::Result<bool> {
    let queues = Queues::from_pairs(imports::SYSTEM, Config::from_env()?.services.queue_urls);
    let sources = sources(args);
    let urls: BTreeMap<Queue, String> = sources
        .iter()
        .filter_map(|source| Some((source.queue.clone(), queues.url(&source.queue)?.to_owned())))
        .collect();
    if urls.is_empty() {
        bail!(
            "{} is not set, nor is the address of another queue with a consumer; `dev provision` \
             prints all of them",
            Queues::setting(imports::SYSTEM, &SAGA)
        );
    }
    let names: Vec<&str> = urls.keys().map(Queue::name).collect();
    output::remark(&format!(
        "delivering {} to the functions at {}; Ctrl-C stops",
        names.join(", "),
        args.functions
    ));
    let pump = Pump {
        system: imports::SYSTEM,
        sqs: aws_sdk_sqs::Client::new(&aws::config().await),
        functions: Functions::at(&args.functions)?,
        scheduled: &[dispatch_outbox::NAME, report_faults::NAME],
        every: Duration::from_secs(args.every),
        visibility: args.visibility.map(Duration::from_secs),
        report: Box::new(|invocation| output::remark(&line(&invocation))),
        urls,
    };
    pump.run_until(&sources, local::stop::asked_to_stop()).await;
    output::remark("stopped");
    Ok(true)
}

fn sources(args: &args::Pump) -> Vec<Source> {
    let with_options = |source: Source| {
        let batch_size = args.batch_size.and_then(|size| usize::try_from(size).ok());
        Source {
            batch_size: batch_size.unwrap_or(source.batch_size),
            window: Duration::from_secs(args.window),
            ..source
        }
    };
    Source::of(&SYSTEM).into_iter().map(with_options).collect()
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
