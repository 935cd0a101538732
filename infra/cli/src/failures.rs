//! What was given up, for an operator: found by its cause, and put back to work.

use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use functions::report_faults;
use jiff::Timestamp;
use local::output;
use messages::{Depth, Host};
use saga::failures::store::KeepFailures;
use saga::failures::{
    AuditEntry, CauseGroup, Failure, FailureId, FailureStatus, Failures, Operation, Phase, Refused, Retry,
    Selection,
};
use serde::Serialize;
use serde_json::{Value, json};

use crate::args::{
    self, Consent, FailureState, FailuresCommand, FailuresEnd, FailuresGroups, FailuresList,
    FailuresOperations, FailuresRetry, FailuresShow, FailuresStop, Selected,
};
use crate::consent;
use crate::table::{Column, table};
use crate::words::{ago, counted};
use crate::workspace::{self, Workspace};

/// How many failures are read at a time.
const PAGE: usize = 200;
/// The fewest digits that may stand for an id.
const FEWEST_DIGITS: usize = 4;
/// How many digits of an id a table shows: enough to tell two failures apart, and two operations of one second.
const SHORT: usize = 8;
const SHORT_OPERATION: usize = 18;
/// How often to look whether it is time for the next step of a retry.
const PACE: Duration = Duration::from_millis(250);

pub(crate) async fn run(command: FailuresCommand) -> anyhow::Result<bool> {
    match command {
        FailuresCommand::List(args) => list(&args).await,
        FailuresCommand::Groups(args) => groups(&args).await,
        FailuresCommand::Show(args) => show(&args).await,
        FailuresCommand::Retry(args) => retry(&args).await,
        FailuresCommand::Archive(args) => end(&args, End::Archive).await,
        FailuresCommand::Delete(args) => end(&args.end, End::Delete(args.consent)).await,
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

fn selection(selected: &Selected, standing: FailureStatus) -> Selection {
    Selection {
        fingerprint: selected.cause.clone(),
        place: selected.from.clone(),
        partition: selected.of_search,
        until: selected.until,
        ..Selection::of(standing)
    }
}

/// Looks into the stores beside whoever works in them.
async fn look(output: &args::Output) -> anyhow::Result<Workspace> {
    Workspace::look_into(workspace::settings(&output.place)?).await
}

fn store(workspace: &Workspace) -> anyhow::Result<&dyn KeepFailures> {
    Ok(workspace.ports().engine.stores()?.failures.as_ref())
}

/// Works on failures beside whoever works in the stores; what is in the dead-letter queues is written down first.
async fn keeper(output: &args::Output) -> anyhow::Result<(Workspace, Failures)> {
    let workspace = Workspace::operate(workspace::settings(&output.place)?).await?;
    let failures = report_faults::over(workspace.ports())?;
    failures.collect(None).await?;
    Ok((workspace, failures))
}

/// Who asks, for the record of what was done.
pub(crate) fn caller() -> String {
    let named = ["USER", "LOGNAME", "USERNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    named.filter(|name| !name.is_empty()).unwrap_or_else(|| "somebody".to_owned())
}

/// A failure as scripts see it: without its body, which `show` has.
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
    let workspace = look(&args.output).await?;
    let (store, now) = (store(&workspace)?, workspace.host().now());
    let selection = selection(&args.selected, args.state.into());
    let most = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let mut found: Vec<Failure> = Vec::new();
    while found.len() < most {
        let limit = PAGE.min(most - found.len());
        let page = store.select(&selection, found.last().map(Failure::place), limit).await?;
        let is_last = page.len() < limit;
        found.extend(page);
        if is_last {
            break;
        }
    }
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
    tell_dead_letters(&workspace).await;
    Ok(true)
}

/// Says that more was dead-lettered than what is listed: this command changes nothing, and so gathers nothing.
async fn tell_dead_letters(workspace: &Workspace) {
    let (depths, system) = (workspace.ports().engine.inspect.depths().await, &functions::SYSTEM);
    let dead = system.dead_letters().into_iter().filter_map(|(dead, _)| depths.get(&dead)?.as_ref().ok());
    let count: u64 = dead.map(Depth::total).sum();
    if count > 0 {
        let more = counted(count, "message is", "messages are");
        output::remark(&format!(
            "{more} dead-lettered and not listed yet; a worker gathers them, and so does `search-import failures retry \
             --all --dry-run`"
        ));
    }
}

async fn groups(args: &FailuresGroups) -> anyhow::Result<bool> {
    let workspace = look(&args.output).await?;
    let groups = store(&workspace)?.groups(&selection(&args.selected, args.state.into())).await?;
    print_groups(&groups, args.output.json)?;
    if !args.output.json {
        tell_dead_letters(&workspace).await;
    }
    Ok(true)
}

fn print_groups(groups: &[CauseGroup], as_json: bool) -> anyhow::Result<()> {
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
    let count = groups.iter().map(|group| group.count).sum();
    let causes = counted(groups.len() as u64, "cause", "causes");
    Ok(output::line(&format!("{} of {causes}", counted(count, "failure", "failures")))?)
}

async fn show(args: &FailuresShow) -> anyhow::Result<bool> {
    let workspace = look(&args.output).await?;
    let id = find(store(&workspace)?, &args.failure).await?;
    let failure = store(&workspace)?.failures(&[id]).await?.pop().flatten();
    let failure = failure.with_context(|| {
        format!(
            "there is no failure {id} in {}; `search-import failures list` lists those there are",
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

/// The failure that `text` means: by its id or the beginning of it, in whatever state.
async fn find(store: &dyn KeepFailures, text: &str) -> anyhow::Result<FailureId> {
    if let Ok(id) = text.parse() {
        return Ok(id);
    }
    let digits = text.to_ascii_lowercase();
    if digits.len() < FEWEST_DIGITS || !digits.chars().all(|c| c.is_ascii_hexdigit() || c == '-') {
        bail!(
            "\"{text}\" is neither the id of a failure nor {FEWEST_DIGITS} digits of its beginning; `search-import failures \
             list` lists the ids"
        );
    }
    let mut found = Vec::new();
    for standing in FailureStatus::ALL {
        let (selection, mut after) = (Selection::of(standing), None);
        loop {
            let page = store.select(&selection, after, PAGE).await?;
            found.extend(
                page.iter().map(|failure| failure.id).filter(|id| id.to_string().starts_with(&digits)),
            );
            after = page.last().map(Failure::place);
            if page.len() < PAGE {
                break;
            }
        }
    }
    match found[..] {
        [id] => Ok(id),
        [] => bail!("there is no failure {text}; `search-import failures list` lists those there are"),
        _ => bail!("\"{text}\" could be {} failures; give more digits of the id", found.len()),
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
    let (workspace, failures) = keeper(&args.output).await?;
    let ids = all_of(failures.store.as_ref(), &args.failures).await?;
    let selection =
        Selection { ids: ids.into_iter().collect(), ..selection(&args.selected, FailureStatus::Open) };
    if args.dry_run {
        let snapshot = failures.snapshot(selection).await?;
        print_groups(&snapshot.groups, args.output.json)?;
        output::remark("nothing was changed");
        return Ok(true);
    }
    let (limit, per_second, canary) = (args.limit, args.per_second, args.canary);
    let retry = Retry { selection, limit, per_second, canary };
    let begun = failures.retry(retry, &caller()).await.map_err(|refused| match refused {
        Refused::Nothing => anyhow!("{refused}; `search-import failures list` lists those that are"),
        Refused::Busy(_) => anyhow!("{refused} with `search-import failures stop`"),
        refused => refused.into(),
    })?;
    output::remark(&format!(
        "retry {} of {}; `search-import failures stop` stops it",
        begun.id,
        counted(begun.total, "failure", "failures")
    ));
    let ended = if args.detach { begun } else { follow(&failures, workspace.host(), &begun).await? };
    print_operation(&ended, args.output.json)?;
    if matches!(ended.phase, Phase::Stopped { .. }) {
        output::remark(
            "`search-import failures groups` shows what is open; the same command retries the others",
        );
    }
    Ok(!matches!(ended.phase, Phase::Stopped { .. }))
}

/// Takes the steps of an operation until it has ended, beside whoever takes them too.
async fn follow(failures: &Failures, host: &dyn Host, begun: &Operation) -> anyhow::Result<Operation> {
    let mut told = None;
    loop {
        failures.run_step().await?;
        let operation = failures.store.operation(begun.id).await?.context("the operation is gone")?;
        if told != Some(operation.retried) {
            told = Some(operation.retried);
            output::remark(&format!("{} of {} put back", operation.retried, operation.total));
        }
        if operation.phase.has_ended() {
            return Ok(operation);
        }
        host.sleep(PACE).await;
    }
}

fn print_operation(operation: &Operation, as_json: bool) -> anyhow::Result<()> {
    if as_json {
        return Ok(output::json(operation)?);
    }
    let how = match &operation.phase {
        Phase::Running => "is running".to_owned(),
        Phase::Watching { until } => format!("watches those that went ahead until {until:.0}"),
        Phase::Done { .. } => "is done".to_owned(),
        Phase::Stopped { why, .. } => format!("was stopped: {why}"),
    };
    let total = counted(operation.total, "failure", "failures");
    Ok(output::line(&format!("retry {} {how}; {} of {total} put back", operation.id, operation.retried))?)
}

/// What is done with failures that need no work any more.
#[derive(Clone, Copy)]
enum End {
    Archive,
    Delete(Consent),
}

async fn end(args: &FailuresEnd, end: End) -> anyhow::Result<bool> {
    let (_, failures) = keeper(&args.output).await?;
    let ids = all_of(failures.store.as_ref(), &args.failures).await?;
    let done = match end {
        End::Archive => {
            failures.archive(&ids, &args.reason, &caller()).await?;
            "archived"
        }
        End::Delete(consent) => {
            let count = counted(ids.len() as u64, "failure", "failures");
            consent::ask(consent, &format!("Delete {count}? Their effects will never be performed."))?;
            failures.delete(&ids, &args.reason, &caller()).await?;
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
    let workspace = look(&args.output).await?;
    let most = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let operations = store(&workspace)?.operations(most).await?;
    let now = workspace.host().now();
    let columns = [
        Column::Whole("retry"),
        Column::Whole("by"),
        Column::Whole("begun"),
        Column::Number("put back"),
        Column::Number("of"),
        Column::Text("state"),
    ];
    let row = |operation: &Operation| {
        let state = match &operation.phase {
            Phase::Running => "running".to_owned(),
            Phase::Watching { .. } => "watching those that went ahead".to_owned(),
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
    print(&operations, &columns, row, ("retry", "retries"), args.output.json)
}

async fn stop(args: &FailuresStop) -> anyhow::Result<bool> {
    let (_, failures) = keeper(&args.output).await?;
    let id =
        match args.operation {
            Some(id) => id,
            None => failures
                .store
                .running()
                .await?
                .context(
                    "no retry is running; `search-import failures operations` lists those that have ended",
                )?
                .id,
        };
    print_operation(&failures.stop(id, &caller()).await?, args.output.json)?;
    Ok(true)
}

async fn audit(args: &FailuresOperations) -> anyhow::Result<bool> {
    let workspace = look(&args.output).await?;
    let most = usize::try_from(args.limit).unwrap_or(usize::MAX);
    let acts = store(&workspace)?.acts(most).await?;
    let columns = [
        Column::Whole("at"),
        Column::Whole("by"),
        Column::Whole("did"),
        Column::Whole("to"),
        Column::Text("why"),
    ];
    let at = |at: Timestamp| at.strftime("%Y-%m-%d %H:%M:%SZ").to_string();
    let row = |act: &AuditEntry| {
        vec![at(act.at), act.by.clone(), act.did.clone(), short(&act.to, SHORT_OPERATION), act.why.clone()]
    };
    print(&acts, &columns, row, ("act", "acts"), args.output.json)
}

/// Things as lines of JSON, or as a table and how many they are.
fn print<T: Serialize>(
    things: &[T],
    columns: &[Column],
    row: impl Fn(&T) -> Vec<String>,
    (one, several): (&str, &str),
    as_json: bool,
) -> anyhow::Result<bool> {
    if as_json {
        things.iter().try_for_each(output::json)?;
        return Ok(true);
    }
    if !things.is_empty() {
        output::block(&table(columns, things.iter().map(row)))?;
    }
    output::line(&counted(things.len() as u64, one, several))?;
    Ok(true)
}
