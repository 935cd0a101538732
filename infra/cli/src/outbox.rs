//! Effects that are stored and not performed yet, for an operator.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use comfy_table::Table;
use comfy_table::presets::UTF8_FULL_CONDENSED;
use jiff::{SignedDuration, Timestamp};
use local::output;
use messages::{Host, MessageId};
use outbox::{Entry, InspectOutbox, Kind, Owner, Settlement};
use serde::Serialize;

use crate::args::{EntryState, OutboxChange, OutboxCommand, OutboxList, OutboxRequeue, OutboxShow};
use crate::workspace::{self, Workspace};

/// How many records are read at a time.
const PAGE: usize = 200;
/// How much of an error a table shows.
const MAX_SHOWN: usize = 60;

/// An entry, and where it is.
struct Found {
    owner: Owner,
    entry: Entry,
    outbox: Arc<dyn InspectOutbox>,
}

/// An entry as scripts see it.
#[derive(Serialize)]
struct Shown<'a> {
    id: MessageId,
    owner: String,
    state: EntryState,
    kind: String,
    due_at: Timestamp,
    attempts: u32,
    requeued: u32,
    error: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    payload: Option<&'a str>,
}

pub(crate) async fn run(command: OutboxCommand) -> anyhow::Result<bool> {
    match command {
        OutboxCommand::List(args) => list(&args).await,
        OutboxCommand::Show(args) => show(&args).await,
        OutboxCommand::Requeue(args) => requeue(&args).await,
        OutboxCommand::Delete(args) => change(&args, None, |_, _| None).await,
    }
}

async fn list(args: &OutboxList) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let host = workspace.host();
    let (now, before) = (host.now(), before(host, args.older_than));
    let mut found = all(&workspace).await?;
    found.retain(|found| args.state.is_none_or(|state| state == found.state(now)));
    found.retain(|found| found.entry.due_at <= before);
    if args.output.json {
        for found in &found {
            output::line(&serde_json::to_string(&found.shown(now, false))?)?;
        }
        return Ok(true);
    }
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["entry", "of", "kind", "state", "due", "attempts", "requeued", "error"]);
    for found in &found {
        let shown = found.shown(now, false);
        table.add_row([
            shown.id.to_string(),
            shown.owner,
            shown.kind,
            format!("{:?}", shown.state).to_lowercase(),
            format!("{:.0}", shown.due_at),
            shown.attempts.to_string(),
            shown.requeued.to_string(),
            shown.error.unwrap_or_default().chars().take(MAX_SHOWN).collect(),
        ]);
    }
    output::line(&table.to_string())?;
    output::line(&format!("{} entries", found.len()))?;
    Ok(true)
}

async fn show(args: &OutboxShow) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let now = workspace.host().now();
    let found = all(&workspace).await?.into_iter().find(|found| found.entry.id == args.entry);
    let found = found.with_context(|| format!("there is no entry {} in {}", args.entry, workspace.name()))?;
    let shown = found.shown(now, true);
    output::line(&if args.output.json {
        serde_json::to_string(&shown)?
    } else {
        serde_json::to_string_pretty(&shown)?
    })?;
    Ok(true)
}

async fn requeue(args: &OutboxRequeue) -> anyhow::Result<bool> {
    let pause = Duration::from_secs(1) / args.per_second;
    change(&args.change, Some(pause), |entry, now| Some(entry.requeued(now))).await
}

/// Settles entries that were given up, each as it was seen. `false` when one that was named is not among them.
async fn change(
    args: &OutboxChange,
    pause: Option<Duration>,
    keep: impl Fn(&Entry, Timestamp) -> Option<Entry>,
) -> anyhow::Result<bool> {
    let workspace = Workspace::operate(workspace::settings(&args.output.place)?).await?;
    let host = workspace.host();
    let (now, before) = (host.now(), before(host, args.older_than));
    let mut found = all(&workspace).await?;
    found.retain(|found| found.state(now) == EntryState::Poisoned && found.entry.due_at <= before);
    found.retain(|found| args.all || args.entries.contains(&found.entry.id));
    for found in &found {
        if !args.dry_run {
            let settlement = Settlement {
                id: found.entry.id,
                claim: found.entry.claimed_until,
                keep: keep(&found.entry, now),
            };
            found.outbox.settle(found.owner, &[settlement]).await?;
            if let Some(pause) = pause {
                host.sleep(pause).await;
            }
        }
        output::line(&serde_json::to_string(&found.shown(now, false))?)?;
    }
    let missing: Vec<String> = args
        .entries
        .iter()
        .filter(|id| !found.iter().any(|found| found.entry.id == **id))
        .map(ToString::to_string)
        .collect();
    if !missing.is_empty() {
        output::complain(&format!("no such entry was given up: {}", missing.join(", ")));
    }
    let done = if args.dry_run { "would be changed" } else { "changed" };
    output::remark(&format!("{} entries {done}", found.len()));
    Ok(missing.is_empty())
}

async fn all(workspace: &Workspace) -> anyhow::Result<Vec<Found>> {
    let stores = workspace.ports().engine.stores()?;
    let mut found = Vec::new();
    for outbox in [&stores.saga_outbox, &stores.session_outbox] {
        let mut after = None;
        loop {
            let page = outbox.pending(after, PAGE).await?;
            let Some((last, _)) = page.last() else { break };
            after = Some(*last);
            for (owner, entries) in page {
                let found_in = |entry| Found { owner, entry, outbox: Arc::clone(outbox) };
                found.extend(entries.into_iter().map(found_in));
            }
        }
    }
    Ok(found)
}

fn before(host: &dyn Host, older_than: Option<u32>) -> Timestamp {
    match older_than {
        Some(seconds) => {
            let age = SignedDuration::from_secs(i64::from(seconds));
            host.now().checked_sub(age).unwrap_or(Timestamp::MIN)
        }
        None => Timestamp::MAX,
    }
}

impl Found {
    fn state(&self, now: Timestamp) -> EntryState {
        match &self.entry {
            entry if entry.poisoned => EntryState::Poisoned,
            entry if entry.claimed_until.is_some_and(|until| until > now) => EntryState::Claimed,
            _ => EntryState::Waiting,
        }
    }

    fn shown(&self, now: Timestamp, with_payload: bool) -> Shown<'_> {
        let entry = &self.entry;
        Shown {
            id: entry.id,
            owner: match self.owner {
                Owner::Saga(search) => format!("search {search}"),
                Owner::Session(session) => format!("session {session}"),
            },
            state: self.state(now),
            kind: match &entry.kind {
                Kind::Message(queue) => format!("message to {queue}"),
                Kind::View => "job".to_owned(),
            },
            due_at: entry.due_at,
            attempts: entry.attempts,
            requeued: entry.requeued,
            error: entry.error.as_deref(),
            payload: with_payload.then_some(entry.payload.as_str()),
        }
    }
}
