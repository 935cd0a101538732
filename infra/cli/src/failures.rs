//! Operator commands for dead-lettered messages and exhausted outbox entries: lists them by cause and retries them.

use anyhow::{Context, anyhow, bail};
use functions::report_faults;
use jiff::Timestamp;
use local::{output, user_name};
use messages::Depth;
use operate::failures::{follow, for_each, selected};
use saga::failures::store::KeepFailures;
use saga::failures::{
    AuditEntry, CauseGroup, Failure, FailureId, FailureStatus, Failures, Operation, Phase, RequestRefusal,
    Retry, Selection,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{
    self, Consent, FailureFilter, FailureState, FailuresCommand, FailuresEnd, FailuresGroups, FailuresList,
    FailuresOperations, FailuresRetry, FailuresShow, FailuresStop,
};
use crate::consent;
use crate::humanize::{ago, counted};
use crate::table::{Column, table};
use crate::workspace::{self, Workspace};

/// The minimum length of an id's prefix.
const MIN_DIGITS: usize = 4;
/// The length of a failure's id in a table, which distinguishes failures.
const SHORT: usize = 8;
/// The length of an operation's id in a table, which distinguishes operations started in the same second.
const SHORT_OPERATION: usize = 18;

pub(crate) async fn run(command: FailuresCommand) -> anyhow::Result<bool> {
    match command {
        FailuresCommand::List(args) => list(&args).await,
        FailuresCommand::Groups(args) => groups(&args).await,
        FailuresCommand::Show(args) => show(&args).await,
        FailuresCommand::Retry(args) => retry(&args).await,
        FailuresCommand::Archive(args) => close(&args, CloseAction::Archive).await,
        FailuresCommand::Delete(args) => close(&args.end, CloseAction::Delete(args.consent)).await,
        FailuresCommand::Operations(args) => operations(&args).await,
        FailuresCommand::Stop(args) => stop(&args).await,
        FailuresCommand::Audit(args) => audit(&args).await,
    }
}

impl From<FailureState> for FailureStatus {
    fn from(state: FailureState) -> Self {
        match state {
            FailureState::Open => Self::Open,
            FailureState::Retrying => Self::Retrying,
            FailureState::Retried => Self::Retried,
            FailureState::Closed => Self::Closed,
            FailureState::Archived => Self::Archived,
        }
    }
}

fn selection(filter: &FailureFilter, standing: FailureStatus) -> Selection {
    Selection {
        fingerprint: filter.cause.clone(),
        place: filter.from.clone(),
        partition: filter.search,
        until: filter.until,
        ..Selection::of(standing)
    }
}

/// Opens the stores for reading, while other programs may be working in them.
async fn open_for_reading(output: &args::Output) -> anyhow::Result<Workspace> {
    Workspace::open_read_only(workspace::settings(&output.location)?).await
}

fn store(workspace: &Workspace) -> anyhow::Result<&dyn KeepFailures> {
    Ok(workspace.ports().engine.stores()?.failures.as_ref())
}

/// Opens the stores for operator commands, and first collects failures from the dead-letter queues. Other programs may
/// be working in the stores.
async fn open_for_changes(output: &args::Output) -> anyhow::Result<(Workspace, Failures)> {
    let workspace = Workspace::operate(workspace::settings(&output.location)?).await?;
    let failures = workspace.ports().engine.failures(report_faults::NAME, &functions::SYSTEM)?;
    failures.collect_for_operator().await?;
    Ok((workspace, failures))
}

/// Returns a failure for JSON output, without the failed message. `show` prints the message.
fn object(failure: &Failure) -> serde_json::Result<Value> {
    let mut value = serde_json::to_value(failure)?;
    if let Value::Object(fields) = &mut value {
        fields.remove("body");
        fields.remove("marks");
    }
    Ok(value)
}

fn short(id: &impl ToString, digits: usize) -> String {
    id.to_string().chars().take(digits).collect()
}

async fn list(args: &FailuresList) -> anyhow::Result<bool> {
    let workspace = open_for_reading(&args.output).await?;
    let (store, now) = (store(&workspace)?, workspace.host().now());
    let selection = selection(&args.filter, args.state.into());
    let max = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let found = selected(store, &selection, max).await?;
    if args.output.json {
        found.iter().try_for_each(|failure| output::json(&object(failure)?).map_err(anyhow::Error::from))?;
        return Ok(true);
    }
    let columns = [
        Column::Whole("failure"),
        Column::Whole("from"),
        Column::Whole("message"),
        Column::Whole("seen"),
        Column::Text("why"),
    ];
    let row = |failure: &Failure| {
        vec![
            short(&failure.id, SHORT),
            failure.origin.place().to_owned(),
            failure.message.clone(),
            ago(failure.last_seen, now),
            failure.reason.clone(),
        ]
    };
    if !found.is_empty() {
        output::block(&table(&columns, found.iter().map(row)))?;
    }
    output::line(&counted(found.len() as u64, "failure", "failures"))?;
    report_dead_letters(&workspace).await;
    Ok(true)
}

/// Reports dead-lettered messages that are not listed, because commands that only read do not collect them.
async fn report_dead_letters(workspace: &Workspace) {
    let (depths, system) = (workspace.ports().engine.inspect.depths().await, &functions::SYSTEM);
    let dead = system.dead_letters().into_iter().filter_map(|(dead, _)| depths.get(&dead)?.as_ref().ok());
    let count: u64 = dead.map(Depth::total).sum();
    if count > 0 {
        let more = counted(count, "message is", "messages are");
        output::remark(&format!(
            "{more} dead-lettered and not listed yet; a worker collects them, and so does `search-import failures retry \
             --all --dry-run`"
        ));
    }
}

async fn groups(args: &FailuresGroups) -> anyhow::Result<bool> {
    let workspace = open_for_reading(&args.output).await?;
    let causes = store(&workspace)?.causes(&selection(&args.filter, args.state.into())).await?;
    print_causes(&causes.groups, causes.count, args.output.json)?;
    if !args.output.json {
        report_dead_letters(&workspace).await;
    }
    Ok(true)
}

/// Prints the most frequent causes, and the number of failures of all causes.
fn print_causes(groups: &[CauseGroup], count: u64, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return Ok(groups.iter().try_for_each(output::json)?);
    }
    let columns =
        [Column::Whole("cause"), Column::Number("failures"), Column::Text("messages"), Column::Text("why")];
    let row = |group: &CauseGroup| {
        let messages: Vec<&str> = group.messages.iter().map(String::as_str).collect();
        vec![group.fingerprint.clone(), group.count.to_string(), messages.join(", "), group.reason.clone()]
    };
    if !groups.is_empty() {
        output::block(&table(&columns, groups.iter().map(row)))?;
    }
    let (failures, causes) =
        (counted(count, "failure", "failures"), counted(groups.len() as u64, "cause", "causes"));
    let is_complete = groups.iter().map(|group| group.count).sum::<u64>() >= count;
    let all = if is_complete { "" } else { " and others" };
    Ok(output::line(&format!("{failures} of {causes}{all}"))?)
}

async fn show(args: &FailuresShow) -> anyhow::Result<bool> {
    let workspace = open_for_reading(&args.output).await?;
    let id = find(store(&workspace)?, &args.failure).await?;
    let failure = store(&workspace)?.failures(&[id]).await?.pop().flatten();
    let failure = failure.with_context(|| {
        format!(
            "there is no failure {id} in {}; `search-import failures list` lists the failures",
            workspace.name()
        )
    })?;
    if args.output.json {
        output::json(&failure)?;
    } else {
        output::pretty_json(&failure)?;
    }
    Ok(true)
}

/// Finds a failure in any state by its id or a prefix of the id.
async fn find(store: &dyn KeepFailures, text: &str) -> anyhow::Result<FailureId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let digits = text.to_ascii_lowercase();
    if digits.len() < MIN_DIGITS || !digits.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        bail!(
            "\"{text}\" is neither the id of a failure nor its first {MIN_DIGITS} digits or more; `search-import failures \
             list` lists the ids"
        );
    }
    let mut found = Vec::new();
    for standing in FailureStatus::ALL {
        let keep = |failure: Failure| {
            if failure.id.to_string().starts_with(&digits) {
                found.push(failure.id);
            }
        };
        for_each(store, &Selection::of(standing), usize::MAX, keep).await?;
    }
    match found[..] {
        [id] => Ok(id),
        [] => bail!("there is no failure {text}; `search-import failures list` lists the failures"),
        _ => bail!("\"{text}\" matches {} failures; give more digits of the id", found.len()),
    }
}

async fn all_of(store: &dyn KeepFailures, texts: &[String]) -> anyhow::Result<Vec<FailureId>> {
    let mut found = Vec::with_capacity(texts.len());
    for text in texts {
        found.push(find(store, text).await?);
    }
    Ok(found)
}

async fn retry(args: &FailuresRetry) -> anyhow::Result<bool> {
    let (_, failures) = open_for_changes(&args.output).await?;
    let ids = all_of(failures.store.as_ref(), &args.failures).await?;
    let selection =
        Selection { ids: ids.into_iter().collect(), ..selection(&args.filter, FailureStatus::Open) };
    if args.dry_run {
        let snapshot = failures.snapshot(selection).await?;
        print_causes(&snapshot.groups, snapshot.count, args.output.json)?;
        output::remark("nothing was changed");
        return Ok(true);
    }
    let (limit, per_second, canary) = (args.limit, args.per_second, args.canary);
    let retry = Retry { selection, limit, per_second, canary };
    let begun = failures.retry(retry, &user_name()).await.map_err(|refused| match refused {
        RequestRefusal::Nothing => {
            anyhow!("{refused}; `search-import failures list` lists the open failures")
        }
        RequestRefusal::Busy(_) => anyhow!("{refused} with `search-import failures stop`"),
        refused => refused.into(),
    })?;
    output::remark(&format!(
        "retry {} of {}; `search-import failures stop` stops it",
        begun.id,
        counted(begun.total, "failure", "failures")
    ));
    let mut reported = None;
    let report = |operation: &Operation| {
        if reported.replace(operation.retried) != Some(operation.retried) {
            output::remark(&format!("{} of {} retried", operation.retried, operation.total));
        }
    };
    let ended = if args.detach { begun } else { follow(&failures, begun.id, report).await? };
    print_operation(&ended, args.output.json)?;
    if matches!(ended.phase, Phase::Stopped { .. }) {
        output::remark(
            "`search-import failures groups` shows the open failures; the same command retries the others",
        );
    }
    Ok(!matches!(ended.phase, Phase::Stopped { .. }))
}

fn print_operation(operation: &Operation, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return Ok(output::json(operation)?);
    }
    let how = match &operation.phase {
        Phase::Running => "is running".to_owned(),
        Phase::Watching { until } => format!("is watching the first failures until {until:.0}"),
        Phase::Done { .. } => "is done".to_owned(),
        Phase::Stopped { why, .. } => format!("was stopped: {why}"),
    };
    let total = counted(operation.total, "failure", "failures");
    Ok(output::line(&format!("retry {} {how}; {} of {total} retried", operation.id, operation.retried))?)
}

/// A way to close failures that need no retry.
#[derive(Clone, Copy)]
enum CloseAction {
    Archive,
    Delete(Consent),
}

async fn close(args: &FailuresEnd, closing: CloseAction) -> anyhow::Result<bool> {
    let (_, failures) = open_for_changes(&args.output).await?;
    let ids = all_of(failures.store.as_ref(), &args.failures).await?;
    let done = match closing {
        CloseAction::Archive => {
            failures.archive(&ids, &args.reason, &user_name()).await?;
            "archived"
        }
        CloseAction::Delete(consent) => {
            let count = counted(ids.len() as u64, "failure", "failures");
            consent::ask(consent, &format!("Delete {count}? Their effects will never be performed."))?;
            failures.delete(&ids, &args.reason, &user_name()).await?;
            "deleted"
        }
    };
    if args.output.json {
        output::json(&json!({ "done": done, "failures": ids }))?;
    } else {
        output::line(&format!("{} {done}", counted(ids.len() as u64, "failure", "failures")))?;
    }
    Ok(true)
}

async fn operations(args: &FailuresOperations) -> anyhow::Result<bool> {
    let workspace = open_for_reading(&args.output).await?;
    let max = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let operations = store(&workspace)?.operations(max).await?;
    let now = workspace.host().now();
    let columns = [
        Column::Whole("retry"),
        Column::Whole("by"),
        Column::Whole("started"),
        Column::Number("retried"),
        Column::Number("of"),
        Column::Text("state"),
    ];
    let row = |operation: &Operation| {
        let state = match &operation.phase {
            Phase::Running => "running".to_owned(),
            Phase::Watching { .. } => "watching the first failures".to_owned(),
            Phase::Done { .. } => "done".to_owned(),
            Phase::Stopped { why, .. } => why.clone(),
        };
        vec![
            short(&operation.id, SHORT_OPERATION),
            operation.by.clone(),
            ago(operation.begun_at, now),
            operation.retried.to_string(),
            operation.total.to_string(),
            state,
        ]
    };
    let count = counted(operations.len() as u64, "retry", "retries");
    print(&operations, &columns, row, &count, args.output.json)
}

async fn stop(args: &FailuresStop) -> anyhow::Result<bool> {
    let (_, failures) = open_for_changes(&args.output).await?;
    let id = match args.operation {
        Some(id) => id,
        None => failures
            .store
            .running()
            .await?
            .context(
                "no retry is running; `search-import failures operations` lists the retries that have ended",
            )?
            .id,
    };
    print_operation(&failures.stop(id, &user_name()).await?, args.output.json)?;
    Ok(true)
}

async fn audit(args: &FailuresOperations) -> anyhow::Result<bool> {
    let workspace = open_for_reading(&args.output).await?;
    let max = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let entries = store(&workspace)?.audit_entries(max).await?;
    let columns = [
        Column::Whole("at"),
        Column::Whole("by"),
        Column::Whole("action"),
        Column::Whole("target"),
        Column::Text("why"),
    ];
    let at = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
    let row = |entry: &AuditEntry| {
        vec![
            at(entry.at),
            entry.by.clone(),
            entry.did.clone(),
            short(&entry.to, SHORT_OPERATION),
            entry.why.clone(),
        ]
    };
    let count = counted(entries.len() as u64, "action", "actions");
    print(&entries, &columns, row, &count, args.output.json)
}

/// Prints items as lines of JSON, or as a table with their count.
fn print<T: Serialize>(
    items: &[T],
    columns: &[Column],
    row: impl Fn(&T) -> Vec<String>,
    count: &str,
    as_json: bool,
) -> anyhow::Result<bool> {
    if as_json {
        items.iter().try_for_each(output::json)?;
        return Ok(true);
    }
    if !items.is_empty() {
        output::block(&table(columns, items.iter().map(row)))?;
    }
    output::line(count)?;
    Ok(true)
}
