//! Operator commands for effects that are stored and not performed yet.

use std::time::Duration;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use local::{output, user_name};
use messages::Host;
use operate::effects::{all, exhausted};
use operate::{Effect, EffectChange, EffectFilter, EffectState};
use outbox::{Entry, Kind, Owner, Unreadable};
use saga::Stores;
use serde::Serialize;

use crate::args::{Consent, EntryState, OutboxChange, OutboxCommand, OutboxList, OutboxRequeue, OutboxShow};
use crate::consent;
use crate::humanize::counted;
use crate::table::{Column, table};
use crate::workspace::{self, Workspace};

/// An entry as it was read, and its new state once this command has changed it.
struct OutboxItem {
    effect: Effect,
    changed: Option<EntryState>,
}

/// An entry in JSON output.
#[derive(Serialize)]
struct EntryView<'a> {
    id: String,
    owner: Option<String>,
    state: EntryState,
    kind: String,
    due_at: Option<Timestamp>,
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
        OutboxCommand::Delete(args) => change(&args.change, Change::Delete(args.consent)).await,
    }
}

async fn list(args: &OutboxList) -> anyhow::Result<bool> {
    let workspace = Workspace::open_read_only(workspace::settings(&args.output.location)?).await?;
    let host = workspace.host();
    let now = host.now();
    let state = args.state.and_then(EntryState::wanted);
    let wanted = EffectFilter { state, due_by: before(host, args.older_than) };
    let items = items(all(stores(&workspace)?, &wanted, now).await?);
    if args.output.json {
        for item in &items {
            output::json(&item.view(now, false))?;
        }
        return Ok(true);
    }
    let rows = items.iter().flat_map(|item| item.view(now, false).rows());
    if !items.is_empty() {
        output::block(&table(&[Column::Whole("entry"), Column::Text("details")], rows))?;
    }
    output::line(&counted(items.len() as u64, "entry", "entries"))?;
    Ok(true)
}

async fn show(args: &OutboxShow) -> anyhow::Result<bool> {
    let workspace = Workspace::open_read_only(workspace::settings(&args.output.location)?).await?;
    let now = workspace.host().now();
    let wanted = EffectFilter { state: None, due_by: Timestamp::MAX };
    let items = items(all(stores(&workspace)?, &wanted, now).await?);
    let item = items.into_iter().find(|item| item.effect.id() == args.entry);
    let item = item.with_context(|| {
        format!(
            "there is no entry {} in {}; `search-import outbox list` lists the entries",
            args.entry,
            workspace.name()
        )
    })?;
    let view = item.view(now, true);
    if args.output.json {
        output::json(&view)?;
    } else {
        output::pretty_json(&view)?;
    }
    Ok(true)
}

async fn requeue(args: &OutboxRequeue) -> anyhow::Result<bool> {
    let pause = Duration::from_secs(1) / args.per_second;
    change(&args.change, Change::Requeue(pause)).await
}

/// A change of exhausted entries.
#[derive(Clone, Copy)]
enum Change {
    /// Requeues the effects, with a pause after each.
    Requeue(Duration),
    Delete(Consent),
}

impl Change {
    fn done(self, would: bool) -> &'static str {
        match (self, would) {
            (Self::Requeue(_), false) => "requeued",
            (Self::Requeue(_), true) => "would be requeued",
            (Self::Delete(_), false) => "deleted",
            (Self::Delete(_), true) => "would be deleted",
        }
    }
}

/// Changes exhausted entries that were not changed concurrently. Returns `false` if a requested entry is not exhausted.
async fn change(args: &OutboxChange, change: Change) -> anyhow::Result<bool> {
    let workspace = Workspace::operate(workspace::settings(&args.output.location)?).await?;
    let host = workspace.host();
    let now = host.now();
    let mut items = items(exhausted(stores(&workspace)?, before(host, args.older_than), now).await?);
    items.retain(|item| args.all || args.entries.contains(&item.effect.id()));
    let done = change.done(args.dry_run);
    if let (Change::Delete(consent), false, false) = (change, args.dry_run, items.is_empty()) {
        let count = counted(items.len() as u64, "entry", "entries");
        consent::ask(consent, &format!("Delete {count}? Their effects will never be performed."))?;
    }
    for item in &mut items {
        if !args.dry_run {
            item.change(&workspace, change, now).await?;
            if let Change::Requeue(pause) = change {
                host.sleep(pause).await;
            }
        }
        let view = item.view(now, false);
        if args.output.json {
            output::json(&view)?;
        } else {
            let of = view.owner.map(|owner| format!(" of {owner}")).unwrap_or_default();
            output::line(&format!("{}: {}{of}, {done}", view.id, view.kind))?;
        }
    }
    let missing: Vec<String> = args
        .entries
        .iter()
        .filter(|id| !items.iter().any(|item| item.effect.id() == **id))
        .cloned()
        .collect();
    if !missing.is_empty() {
        output::complain(&format!(
            "not an exhausted entry: {}; `search-import outbox list --state exhausted` lists the exhausted entries",
            missing.join(", ")
        ));
    }
    let count = counted(items.len() as u64, "entry", "entries");
    match args.output.json {
        true => output::remark(&format!("{count} {done}")),
        false => output::line(&format!("{count} {done}"))?,
    }
    Ok(missing.is_empty())
}

fn stores(workspace: &Workspace) -> anyhow::Result<&Stores> {
    Ok(workspace.ports().engine.stores()?)
}

fn items(effects: Vec<Effect>) -> Vec<OutboxItem> {
    effects.into_iter().map(|effect| OutboxItem { effect, changed: None }).collect()
}

fn before(host: &dyn Host, older_than: Option<SignedDuration>) -> Timestamp {
    older_than.map_or(Timestamp::MAX, |age| host.now().checked_sub(age).unwrap_or(Timestamp::MIN))
}

impl EntryState {
    fn wanted(self) -> Option<EffectState> {
        match self {
            Self::Waiting => Some(EffectState::Waiting),
            Self::Claimed => Some(EffectState::Claimed),
            Self::Poisoned => Some(EffectState::Poisoned),
            Self::Deleted => None,
        }
    }
}

impl From<EffectState> for EntryState {
    fn from(state: EffectState) -> Self {
        match state {
            EffectState::Waiting => Self::Waiting,
            EffectState::Claimed => Self::Claimed,
            EffectState::Poisoned => Self::Poisoned,
        }
    }
}

impl OutboxItem {
    /// Changes the entry unless it was changed concurrently, and updates this copy.
    async fn change(&mut self, workspace: &Workspace, change: Change, now: Timestamp) -> anyhow::Result<()> {
        let (change, changed) = match change {
            Change::Requeue(_) => (EffectChange::Requeue, EntryState::Waiting),
            Change::Delete(_) => (EffectChange::Delete, EntryState::Deleted),
        };
        self.effect.change(&workspace.ports().engine, change, &user_name()).await?;
        if let (Ok(entry), Some(_), EffectChange::Requeue) = (&self.effect.stored, self.effect.owner, change)
        {
            self.effect.stored = Ok(entry.requeued(now));
        }
        self.changed = Some(changed);
        Ok(())
    }

    fn view(&self, now: Timestamp, with_payload: bool) -> EntryView<'_> {
        let owner = self.effect.owner.map(|owner| match owner {
            Owner::Saga(search) => format!("search {search}"),
            Owner::Session(session) => format!("session {session}"),
        });
        let view = EntryView {
            id: self.effect.id(),
            owner,
            state: self.changed.unwrap_or(self.effect.state(now).into()),
            kind: "unreadable".to_owned(),
            due_at: None,
            attempts: 0,
            requeued: 0,
            error: None,
            payload: None,
        };
        match &self.effect.stored {
            Ok(entry) => view.of(entry, with_payload),
            Err(Unreadable { why, .. }) => EntryView { error: Some(why), ..view },
        }
    }
}

impl<'a> EntryView<'a> {
    /// Returns the rows of a table, one for each detail of the entry.
    fn rows(self) -> Vec<Vec<String>> {
        let state = format!("{:?}", self.state).to_lowercase();
        let mut details = vec![format!("{}, {state}", self.kind)];
        details.extend(self.owner.map(|owner| format!("of {owner}")));
        let mut times = self.due_at.map(|at| format!("due {at:.0}")).into_iter().collect::<Vec<_>>();
        let number = |count: u32, what: &str| {
            (count > 0).then(|| format!("{what} {}", counted(count.into(), "time", "times")))
        };
        times.extend(number(self.attempts, "tried"));
        times.extend(number(self.requeued, "requeued"));
        details.extend((!times.is_empty()).then(|| times.join(", ")));
        details.extend(self.error.map(str::to_owned));
        let ids = std::iter::once(self.id).chain(std::iter::repeat(String::new()));
        ids.zip(details).map(|(id, detail)| vec![id, detail]).collect()
    }

    fn of(self, entry: &'a Entry, with_payload: bool) -> Self {
        Self {
            kind: match &entry.kind {
                Kind::Message(queue) => format!("message to {queue}"),
                Kind::View => "job".to_owned(),
                Kind::Record => "record".to_owned(),
            },
            due_at: Some(entry.due_at),
            attempts: entry.attempts,
            requeued: entry.requeued,
            error: entry.error.as_deref(),
            payload: with_payload.then_some(entry.payload.as_str()),
            ..self
        }
    }
}
