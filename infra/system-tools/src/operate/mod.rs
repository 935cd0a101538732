//! The operator's commands for any system: instances, failures, outboxes and health.
//!
//! They work on the data directory or the services that the settings of the system select, while other programs may be
//! working there.

mod failures;
mod instances;
mod outbox;
mod serve;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use backend::{BackendKind, Config, SystemHost};
use embedded::{Settings, Store};
use local::output;
use messages::Host;
use messages::store::chain;
use operate::Health;
use operate::health::{Report, counted};
use saga::{Engine, Service, System};

/// The options and the subcommands of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Folder with the data, for systems that run on one machine [default: that of the settings]
    #[arg(long, global = true, value_name = "DIR")]
    pub data_dir: Option<PathBuf>,
    /// Print JSON: one object, or one on each line
    #[arg(long, global = true)]
    pub json: bool,
    /// The command
    #[command(subcommand)]
    pub command: Command,
}

/// The commands of operators.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List the instances that have not ended, the oldest first
    List(instances::List),
    /// Show the stored document and the history of an instance
    Show(instances::Which),
    /// Pause an instance: its messages wait until it is resumed
    Pause(instances::Action),
    /// Resume a paused instance
    Resume(instances::Action),
    /// End an instance permanently: later messages are ignored, and effects that were decided are still performed
    Terminate(instances::Termination),
    /// Send an event to an instance, once for each --id
    Send(instances::Send),
    /// List the events that can be sent
    Events,
    /// Show and retry failures: dead-lettered messages and exhausted effects
    #[command(subcommand)]
    Failures(failures::Command),
    /// Show and change effects that are stored and not performed yet
    #[command(subcommand)]
    Outbox(outbox::Command),
    /// Show what responds, what waits, and what an operator has to do
    Health,
    /// Serve the same functions as an HTTP API, and on a page for browsers
    Serve(serve::Serve),
    /// List the latest actions of operators
    Audit {
        /// Number of actions
        #[arg(long, value_name = "N", default_value_t = 100)]
        limit: usize,
    },
}

/// An opened system.
pub(crate) struct OpenSystem<P: 'static> {
    pub(crate) system: &'static System<P>,
    pub(crate) engine: Engine,
    pub(crate) json: bool,
}

/// The access that a command needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Change,
}

impl Command {
    /// The health check writes a small record.
    fn access(&self) -> Access {
        match self {
            Self::List(_) | Self::Show(_) | Self::Events | Self::Audit { .. } => Access::Read,
            Self::Failures(command) if command.is_read_only() => Access::Read,
            Self::Outbox(command) if command.is_read_only() => Access::Read,
            Self::Pause(_)
            | Self::Resume(_)
            | Self::Terminate(_)
            | Self::Send(_)
            | Self::Failures(_)
            | Self::Outbox(_)
            | Self::Health
            | Self::Serve(_) => Access::Change,
        }
    }
}

/// Performs a command. Returns `true` on success, and for `health` if no problem needs an operator.
pub async fn run<P>(system: &'static System<P>, args: &Args) -> anyhow::Result<bool> {
    if let Command::Events = args.command {
        return instances::events(system, args.json);
    }
    let engine = open(system, args).await?;
    let opened = OpenSystem { system, engine, json: args.json };
    match &args.command {
        Command::List(list) => instances::list(&opened, list).await,
        Command::Show(which) => instances::show(&opened, which).await,
        Command::Pause(action) => instances::control(&opened, saga::Control::Pause, action).await,
        Command::Resume(action) => instances::control(&opened, saga::Control::Resume, action).await,
        Command::Terminate(ending) => {
            instances::control(&opened, saga::Control::Terminate, &ending.action()).await
        }
        Command::Send(send) => instances::send(&opened, send).await,
        // Needs no stores.
        Command::Events => Ok(true),
        Command::Failures(command) => failures::run(&opened, command).await,
        Command::Outbox(command) => outbox::run(&opened, command).await,
        Command::Health => health(&opened).await,
        Command::Serve(args) => serve::run(opened, args).await,
        Command::Audit { limit } => failures::audit(&opened, *limit).await,
    }
}

/// Opens the data directory or the services of the system.
async fn open<P>(system: &System<P>, args: &Args) -> anyhow::Result<Engine> {
    let mut config = Config::from_env_of(system.name)?;
    if let Some(dir) = &args.data_dir {
        config.data_dir.clone_from(dir);
        config.backend = BackendKind::Embedded;
    }
    let host: Arc<dyn Host> = Arc::new(SystemHost);
    match config.backend {
        BackendKind::Embedded => {
            let dir = config.data_dir.clone();
            let settings = || Settings::of(system.name, system.queues);
            // Opening it for changes would create a missing data directory.
            let store = Store::open_read_only(&dir, Arc::clone(&host), settings()).map_err(|error| {
                anyhow!(
                    "{} cannot be read as a data directory of {} ({}); name the folder of the running system with \
                     --data-dir",
                    dir.display(),
                    system.name,
                    chain(&error)
                )
            })?;
            let store = match args.command.access() {
                Access::Read => store,
                Access::Change => {
                    drop(store);
                    Store::open(&dir, Arc::clone(&host), settings())?
                }
            };
            Ok(backend::engine::embedded(system, &Arc::new(store), host, Arc::new(()), config).ports)
        }
        BackendKind::Aws => {
            let services: &[Service] = match args.command.access() {
                Access::Read => &[Service::DATABASE],
                Access::Change => &[Service::DATABASE, Service::LEDGER],
            };
            backend::complete(&config, services, &[]).await?;
            Ok(backend::engine::services(system, config, host, Arc::new(())).await?.ports)
        }
    }
}

/// Prints the health. Returns `true` if no problem needs an operator.
async fn health<P>(opened: &OpenSystem<P>) -> anyhow::Result<bool> {
    let report = Health::over(&opened.engine)?.report(opened.system, &program()).await;
    if opened.json {
        output::json(&report)?;
    } else {
        show_health(&report)?;
    }
    Ok(report.concerns.is_empty())
}

fn show_health(report: &Report) -> anyhow::Result<()> {
    for part in &report.parts {
        output::line(&format!("{}: {}", part.name, part.why.unwrap_or("ok")))?;
    }
    for queue in report.queues.iter().filter(|queue| queue.total() > 0) {
        let oldest = queue.oldest_seconds.map(|age| format!(", the oldest for {age} s")).unwrap_or_default();
        let count = counted(queue.total(), "message waits", "messages wait");
        output::line(&format!("queue {}: {count}{oldest}", queue.queue))?;
    }
    let unknown = || "unknown".to_owned();
    let swept = report.last_sweep.map_or_else(|| "never".to_owned(), |at| at.to_string());
    let count = |count: Option<u64>| count.map_or_else(unknown, |count| count.to_string());
    output::line(&format!("last sweep: {swept}"))?;
    let unfinished = report.unfinished.map_or_else(unknown, |count| count.to_string());
    output::line(&format!("unfinished instances: {unfinished}"))?;
    output::line(&format!("open failures: {}", count(report.activity.open_failures)))?;
    match report.concerns.as_slice() {
        [] => output::line("no problems found")?,
        concerns => concerns.iter().try_for_each(|concern| output::line(concern))?,
    }
    Ok(())
}

/// Returns the command line of these commands, for the next steps that messages name.
pub(crate) fn program() -> String {
    let path = std::env::args_os().next().map(PathBuf::from);
    let name = path.as_deref().and_then(|path| path.file_stem()?.to_str());
    format!("{} operate", name.unwrap_or("tools"))
}
