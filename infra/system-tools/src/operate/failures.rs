//! Commands for failures.

use anyhow::{Context, anyhow};
use local::{output, user_name};
use messages::PartitionKey;
use operate::failures::{follow, selected};
use operate::health::counted;
use saga::failures::{Failure, FailureId, FailureStatus, Failures, Phase, RequestRefusal, Retry, Selection};
use serde_json::json;

use super::{OpenSystem, program};

/// Commands for failures.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List failures in one state, the latest first
    List(ListArgs),
    /// Group failures in one state by cause
    Groups(ListArgs),
    /// Show a failure with its message
    Show {
        /// Id of the failure
        #[arg(value_name = "FAILURE")]
        failure: FailureId,
    },
    /// Retry open failures: send their messages or perform their effects again
    Retry(RetryArgs),
    /// Close failures that need no retry
    Archive(Close),
    /// Delete failures permanently; an exhausted effect is never performed
    Delete(Close),
}

impl Command {
    /// Listing does not collect dead letters, which a worker does.
    pub(super) fn is_read_only(&self) -> bool {
        matches!(self, Self::List(_) | Self::Groups(_) | Self::Show { .. })
    }
}

/// Selects failures.
#[derive(Debug, Default, clap::Args)]
pub struct Filter {
    /// Only failures of this instance
    #[arg(long, value_name = "INSTANCE")]
    pub instance: Option<PartitionKey>,
    /// Only failures of this cause, as `groups` shows it
    #[arg(long, value_name = "CAUSE")]
    pub cause: Option<String>,
    /// Only failures of this dead-letter queue, or `outbox`
    #[arg(long, value_name = "PLACE")]
    pub from: Option<String>,
}

impl Filter {
    fn is_empty(&self) -> bool {
        self.instance.is_none() && self.cause.is_none() && self.from.is_none()
    }

    fn selection(&self, status: FailureStatus) -> Selection {
        Selection {
            partition: self.instance,
            fingerprint: self.cause.clone(),
            place: self.from.clone(),
            ..Selection::of(status)
        }
    }
}

/// Selects the failures to list.
#[derive(Debug, clap::Args)]
pub struct ListArgs {
    /// The failures by their properties
    #[command(flatten)]
    pub filter: Filter,
    /// State: open, retrying, retried, closed or archived
    #[arg(long, value_name = "STATE", default_value = "open", value_parser = status)]
    pub state: FailureStatus,
}

impl ListArgs {
    fn selection(&self) -> Selection {
        self.filter.selection(self.state)
    }
}

fn status(text: &str) -> Result<FailureStatus, String> {
    let names = FailureStatus::ALL.map(FailureStatus::name).join(", ");
    text.parse().map_err(|()| format!("the states are {names}"))
}

/// Selects the failures to retry, and the rate.
#[derive(Debug, clap::Args)]
pub struct RetryArgs {
    /// Ids of failures
    #[arg(value_name = "FAILURE")]
    pub failures: Vec<FailureId>,
    /// The failures by their properties
    #[command(flatten)]
    pub filter: Filter,
    /// All open failures
    #[arg(long, conflicts_with_all = ["failures", "cause", "from", "instance"])]
    pub all: bool,
    /// Maximum number of failures
    #[arg(long, value_name = "N")]
    pub limit: Option<u64>,
    /// Failures per second
    #[arg(long, value_name = "N", default_value_t = 10)]
    pub per_second: u32,
    /// Number of failures that go ahead of the others
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub canary: u32,
    /// Only show what would be retried
    #[arg(long)]
    pub dry_run: bool,
}

/// Failures to close.
#[derive(Debug, clap::Args)]
pub struct Close {
    /// Ids of failures
    #[arg(value_name = "FAILURE", required = true)]
    pub failures: Vec<FailureId>,
    /// Reason for the audit log
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

pub(super) async fn run<P>(opened: &OpenSystem<P>, command: &Command) -> anyhow::Result<bool> {
    let store = &opened.engine.stores()?.failures;
    match command {
        Command::List(listed) => list(opened, listed).await,
        Command::Groups(listed) => {
            groups(&store.causes(&listed.selection()).await?.groups, opened.json)?;
            Ok(true)
        }
        Command::Show { failure } => {
            let found = store.failures(&[*failure]).await?.pop().flatten();
            let found = found.with_context(|| {
                format!(
                    "there is no failure {failure}; `{} failures list` lists the open failures",
                    program()
                )
            })?;
            if opened.json {
                output::json(&found)?;
            } else {
                output::pretty_json(&found)?;
            }
            Ok(true)
        }
        Command::Retry(args) => retry(opened, args).await,
        Command::Archive(close) => {
            collected(opened).await?.archive(&close.failures, &close.reason, &user_name()).await?;
            closed(opened, close, "archived")
        }
        Command::Delete(close) => {
            collected(opened).await?.delete(&close.failures, &close.reason, &user_name()).await?;
            closed(opened, close, "deleted")
        }
    }
}

/// Returns the failures after those of the dead-letter queues were collected.
async fn collected<P>(opened: &OpenSystem<P>) -> anyhow::Result<Failures> {
    let failures = opened.engine.failures(saga::control::OPERATOR, opened.system)?;
    failures.collect_for_operator().await?;
    Ok(failures)
}

fn closed<P>(opened: &OpenSystem<P>, close: &Close, done: &str) -> anyhow::Result<bool> {
    if opened.json {
        output::json(&json!({ "done": done, "failures": close.failures }))?;
    } else {
        let count = counted(close.failures.len() as u64, "failure", "failures");
        output::line(&format!("{count} {done}"))?;
    }
    Ok(true)
}

async fn list<P>(opened: &OpenSystem<P>, listed: &ListArgs) -> anyhow::Result<bool> {
    let store = opened.engine.stores()?.failures.as_ref();
    let found = selected(store, &listed.selection(), usize::MAX).await?;
    found.iter().try_for_each(|failure| show(failure, opened.json))?;
    if !opened.json {
        let (one, many) = match listed.state {
            FailureStatus::Retrying => ("failure is being retried", "failures are being retried"),
            FailureStatus::Open => ("failure is open", "failures are open"),
            FailureStatus::Retried => ("failure is retried", "failures are retried"),
            FailureStatus::Closed => ("failure is closed", "failures are closed"),
            FailureStatus::Archived => ("failure is archived", "failures are archived"),
        };
        output::line(&counted(found.len() as u64, one, many))?;
    }
    Ok(true)
}

fn show(failure: &Failure, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return Ok(output::json(failure)?);
    }
    let Failure { id, origin, partition, message, reason, last_seen, .. } = failure;
    let instance = partition.map(|partition| format!(", instance {partition}")).unwrap_or_default();
    output::line(&format!("{id}  {message} from {}{instance}, {last_seen:.0}: {reason}", origin.place()))?;
    Ok(())
}

fn groups(groups: &[saga::failures::CauseGroup], as_json: bool) -> anyhow::Result<()> {
    for group in groups {
        if as_json {
            output::json(group)?;
        } else {
            let messages: Vec<&str> = group.messages.iter().map(String::as_str).collect();
            let count = counted(group.count, "failure", "failures");
            output::line(&format!(
                "{}  {count} of {}: {}",
                group.fingerprint,
                messages.join(", "),
                group.reason
            ))?;
        }
    }
    if !as_json {
        output::line(&counted(groups.len() as u64, "cause", "causes"))?;
    }
    Ok(())
}

async fn retry<P>(opened: &OpenSystem<P>, args: &RetryArgs) -> anyhow::Result<bool> {
    if !args.all && args.failures.is_empty() && args.filter.is_empty() {
        return Err(anyhow!(
            "nothing is selected; name failures, --cause, --from or --instance, or give --all"
        ));
    }
    let failures = collected(opened).await?;
    let selection = Selection {
        ids: args.failures.iter().copied().collect(),
        ..args.filter.selection(FailureStatus::Open)
    };
    if args.dry_run {
        groups(&failures.snapshot(selection).await?.groups, opened.json)?;
        output::remark("nothing was changed");
        return Ok(true);
    }
    let (limit, per_second, canary) = (args.limit, args.per_second, args.canary);
    let retry = Retry { selection, limit, per_second, canary };
    let begun = failures.retry(retry, &user_name()).await.map_err(|refused| match refused {
        RequestRefusal::Nothing => {
            anyhow!("{refused}; `{} failures list` lists the open failures", program())
        }
        refused => refused.into(),
    })?;
    let ended = follow(&failures, begun.id, |_| {}).await?;
    if opened.json {
        output::json(&ended)?;
    } else {
        let total = counted(ended.total, "failure was retried", "failures were retried");
        let how = match &ended.phase {
            Phase::Stopped { why, .. } => format!("; it stopped: {why}"),
            Phase::Running | Phase::Watching { .. } | Phase::Done { .. } => String::new(),
        };
        output::line(&format!("{} of {total}{how}", ended.retried))?;
    }
    Ok(!matches!(ended.phase, Phase::Stopped { .. }))
}

/// Lists the latest actions of operators.
pub(super) async fn audit<P>(opened: &OpenSystem<P>, limit: usize) -> anyhow::Result<bool> {
    let actions = opened.engine.stores()?.failures.audit_entries(limit).await?;
    for action in &actions {
        if opened.json {
            output::json(action)?;
        } else {
            let why = if action.why.is_empty() { String::new() } else { format!(": {}", action.why) };
            output::line(&format!("{:.0}  {} {} {}{why}", action.at, action.by, action.did, action.to))?;
        }
    }
    if actions.is_empty() && !opened.json {
        output::line("no operator has changed anything")?;
    }
    Ok(true)
}
