//! Effects that are stored and not performed yet, for an operator.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use jiff::{SignedDuration, Timestamp};
use local::output;
use messages::Host;
use outbox::{Entry, InspectOutbox, Kind, Owner, Settlement, Stored, Treatment, Unreadable};
use serde::Serialize;

use crate::args::{EntryState, OutboxChange, OutboxCommand, OutboxList, OutboxRequeue, OutboxShow};
use crate::table::{Column, table};
use crate::words::counted;
use crate::workspace::{self, Workspace};

/// How many records are read at a time.
const PAGE: usize = 200;

/// An entry, and where it is.
struct Found {
    /// None when the record's id cannot be read.
    owner: Option<Owner>,
    stored: Stored,
    outbox: Arc<dyn InspectOutbox>,
    /// Its state once it has been changed here.
    changed: Option<EntryState>,
}

/// An entry as scripts see it.
#[derive(Serialize)]
struct Shown<'a> {
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
        OutboxCommand::Delete(args) => change(&args, Change::Delete).await,
    }
}

async fn list(args: &OutboxList) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let host = workspace.host();
    let (now, before) = (host.now(), before(host, args.older_than));
    let mut found = all(&workspace).await?;
    found.retain(|found| args.state.is_none_or(|state| state == found.state(now)));
    found.retain(|found| found.is_from_before(before));
    if args.output.json {
        for found in &found {
            output::json(&found.shown(now, false))?;
        }
        return Ok(true);
    }
    let rows = found.iter().flat_map(|found| found.shown(now, false).rows());
    if !found.is_empty() {
        output::block(&table(&[Column::Whole("entry"), Column::Text("what")], rows))?;
    }
    output::line(&counted(found.len() as u64, "entry", "entries"))?;
    Ok(true)
}

async fn show(args: &OutboxShow) -> anyhow::Result<bool> {
    let workspace = Workspace::look_into(workspace::settings(&args.output.place)?).await?;
    let now = workspace.host().now();
    let found = all(&workspace).await?.into_iter().find(|found| found.id() == args.entry);
    let found = found.with_context(|| format!("there is no entry {} in {}", args.entry, workspace.name()))?;
    let shown = found.shown(now, true);
    if args.output.json {
        output::json(&shown)?;
    } else {
        output::pretty_json(&shown)?;
    }
    Ok(true)
}

async fn requeue(args: &OutboxRequeue) -> anyhow::Result<bool> {
    let pause = Duration::from_secs(1) / args.per_second;
    change(&args.change, Change::Requeue(pause)).await
}

/// What is done with entries that were given up.
#[derive(Clone, Copy)]
enum Change {
    /// They are put back to work, with a pause after each.
    Requeue(Duration),
    Delete,
}

/// Settles entries that were given up, each as it was seen. `false` when one that was named is not among them.
async fn change(args: &OutboxChange, change: Change) -> anyhow::Result<bool> {
    let workspace = Workspace::operate(workspace::settings(&args.output.place)?).await?;
    let host = workspace.host();
    let (now, before) = (host.now(), before(host, args.older_than));
    let mut found = all(&workspace).await?;
    found.retain(|found| found.state(now) == EntryState::Poisoned && found.is_from_before(before));
    found.retain(|found| args.all || args.entries.contains(&found.id()));
    for found in &mut found {
        if !args.dry_run {
            found.change(&workspace, change, now).await?;
            if let Change::Requeue(pause) = change {
                host.sleep(pause).await;
            }
        }
        output::json(&found.shown(now, false))?;
    }
    let missing: Vec<String> =
        args.entries.iter().filter(|id| !found.iter().any(|found| found.id() == **id)).cloned().collect();
    if !missing.is_empty() {
        output::complain(&format!("no such entry was given up: {}", missing.join(", ")));
    }
    let done = if args.dry_run { "would be changed" } else { "changed" };
    output::remark(&format!("{} {done}", counted(found.len() as u64, "entry", "entries")));
    Ok(missing.is_empty())
}

async fn all(workspace: &Workspace) -> anyhow::Result<Vec<Found>> {
    let stores = workspace.ports().engine.stores()?;
    let mut found = Vec::new();
    for outbox in [&stores.saga_outbox, &stores.session_outbox] {
        let mut after: Option<String> = None;
        loop {
            let page = outbox.pending(after.as_deref(), PAGE).await?;
            let Some(last) = page.last() else { break };
            after = Some(last.id.clone());
            for record in page {
                let found_in =
                    |stored| Found { owner: record.owner, stored, outbox: Arc::clone(outbox), changed: None };
                found.extend(record.entries.into_iter().map(found_in));
            }
        }
    }
    Ok(found)
}

fn before(host: &dyn Host, older_than: Option<SignedDuration>) -> Timestamp {
    older_than.map_or(Timestamp::MAX, |age| host.now().checked_sub(age).unwrap_or(Timestamp::MIN))
}

impl Found {
    /// What an operator names it by: one that cannot be read by its place.
    fn id(&self) -> String {
        match &self.stored {
            Ok(entry) => entry.id.to_string(),
            Err(unreadable) => unreadable.place.clone(),
        }
    }

    /// One that cannot be read waits for an operator, as the poisoned ones do.
    fn state(&self, now: Timestamp) -> EntryState {
        if let Some(state) = self.changed {
            return state;
        }
        match &self.stored {
            Ok(entry) if entry.claimed_until.is_some_and(|until| until > now) && !entry.poisoned => {
                EntryState::Claimed
            }
            Ok(entry) if !entry.poisoned => EntryState::Waiting,
            Ok(_) | Err(_) => EntryState::Poisoned,
        }
    }

    fn is_from_before(&self, before: Timestamp) -> bool {
        self.stored.as_ref().map_or(true, |entry| entry.due_at <= before)
    }

    /// Changes it if it is still as it was seen. From then on it is as that has left it.
    async fn change(&mut self, workspace: &Workspace, change: Change, now: Timestamp) -> anyhow::Result<()> {
        match (&self.stored, self.owner, change) {
            (Ok(entry), Some(owner), Change::Requeue(_)) => {
                workspace.ports().engine.operator()?.requeue(owner, entry).await?;
                self.stored = Ok(entry.requeued(now));
            }
            (Ok(entry), Some(owner), Change::Delete) => {
                let settlement = Settlement { id: entry.id, claim: entry.claimed_until, keep: None };
                self.outbox.settle(&[(owner, vec![settlement])]).await?;
            }
            (_, _, Change::Requeue(_)) => self.outbox.treat(&self.id(), &Treatment::Requeue(now)).await?,
            (_, _, Change::Delete) => self.outbox.treat(&self.id(), &Treatment::Delete).await?,
        }
        self.changed = Some(match change {
            Change::Requeue(_) => EntryState::Waiting,
            Change::Delete => EntryState::Deleted,
        });
        Ok(())
    }

    fn shown(&self, now: Timestamp, with_payload: bool) -> Shown<'_> {
        let owner = self.owner.map(|owner| match owner {
            Owner::Saga(search) => format!("search {search}"),
            Owner::Session(session) => format!("session {session}"),
        });
        let shown = Shown {
            id: self.id(),
            owner,
            state: self.state(now),
            kind: "unreadable".to_owned(),
            due_at: None,
            attempts: 0,
            requeued: 0,
            error: None,
            payload: None,
        };
        match &self.stored {
            Ok(entry) => shown.of(entry, with_payload),
            Err(Unreadable { why, .. }) => Shown { error: Some(why), ..shown },
        }
    }
}

impl<'a> Shown<'a> {
    /// The rows of a table, with one more for each thing that there is to say about the entry.
    fn rows(self) -> Vec<Vec<String>> {
        let state = format!("{:?}", self.state).to_lowercase();
        let mut said = vec![format!("{}, {state}", self.kind)];
        said.extend(self.owner.map(|owner| format!("of {owner}")));
        let mut times = self.due_at.map(|at| format!("due {at:.0}")).into_iter().collect::<Vec<_>>();
        let number = |count: u32, what: &str| {
            (count > 0).then(|| format!("{what} {}", counted(count.into(), "time", "times")))
        };
        times.extend(number(self.attempts, "tried"));
        times.extend(number(self.requeued, "put back"));
        said.extend((!times.is_empty()).then(|| times.join(", ")));
        said.extend(self.error.map(str::to_owned));
        let ids = std::iter::once(self.id).chain(std::iter::repeat(String::new()));
        ids.zip(said).map(|(id, said)| vec![id, said]).collect()
    }

    fn of(self, entry: &'a Entry, with_payload: bool) -> Self {
        Self {
            kind: match &entry.kind {
                Kind::Message(queue) => format!("message to {queue}"),
                Kind::View => "job".to_owned(),
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
