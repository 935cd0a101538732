//! Commands for stored effects.

use anyhow::bail;
use jiff::Timestamp;
use local::output;
use operate::health::counted;
use operate::{Effect, EffectFilter, EffectState, effects};
use outbox::{Owner, UnreadableAction};
use serde_json::{Value, json};

use super::{OpenSystem, instances, program};

/// The number of effects read at a time.
const PAGE: usize = 200;

/// Commands for stored effects.
#[derive(Debug, clap::Subcommand)]
pub enum Command {
    /// List stored effects
    List {
        /// Only exhausted effects, which need an operator
        #[arg(long)]
        exhausted: bool,
    },
    /// Perform exhausted effects again
    Requeue(Change),
    /// Delete exhausted effects, which are then never performed
    Delete(Change),
}

impl Command {
    pub(super) fn is_read_only(&self) -> bool {
        matches!(self, Self::List { .. })
    }
}

/// Exhausted effects to change.
#[derive(Debug, clap::Args)]
pub struct Change {
    /// Ids of effects, as `outbox list` shows them
    #[arg(value_name = "EFFECT", required_unless_present = "all")]
    pub effects: Vec<String>,
    /// All exhausted effects
    #[arg(long, conflicts_with = "effects")]
    pub all: bool,
}

pub(super) async fn run<P>(opened: &OpenSystem<'_, P>, command: &Command) -> anyhow::Result<bool> {
    match command {
        Command::List { exhausted } => {
            let state = exhausted.then_some(EffectState::Poisoned);
            let found = all(opened, state).await?;
            found.iter().try_for_each(|effect| show(opened, effect, "listed"))?;
            if !opened.json {
                output::line(&counted(found.len() as u64, "effect", "effects"))?;
            }
            Ok(true)
        }
        Command::Requeue(args) => change(opened, args, true).await,
        Command::Delete(args) => change(opened, args, false).await,
    }
}

async fn all<P>(opened: &OpenSystem<'_, P>, state: Option<EffectState>) -> anyhow::Result<Vec<Effect>> {
    let (stores, now) = (opened.engine.stores()?, opened.engine.host.now());
    let (wanted, mut all, mut after) = (EffectFilter { state, due_by: Timestamp::MAX }, Vec::new(), None);
    loop {
        let (found, next) = effects(stores, &wanted, now, after, PAGE).await?;
        all.extend(found);
        if next.is_none() {
            return Ok(all);
        }
        after = next;
    }
}

/// Changes exhausted effects that were not changed concurrently.
async fn change<P>(opened: &OpenSystem<'_, P>, args: &Change, requeues: bool) -> anyhow::Result<bool> {
    let now = opened.engine.host.now();
    // Unreadable entries that no sweep has processed yet are not in the index of exhausted ones.
    let mut found = all(opened, None).await?;
    found.retain(|effect| effect.state(now) == EffectState::Poisoned);
    found.retain(|effect| args.all || args.effects.contains(&effect.id()));
    let missing: Vec<&str> = args.effects.iter().map(String::as_str).collect();
    let missing: Vec<&str> =
        missing.into_iter().filter(|id| !found.iter().any(|effect| effect.id() == *id)).collect();
    if !missing.is_empty() {
        bail!(
            "not an exhausted effect: {}; `{} outbox list --exhausted` lists them",
            missing.join(", "),
            program()
        );
    }
    let (operator, stores) = (opened.engine.operator()?, opened.engine.stores()?);
    for effect in &found {
        match (&effect.stored, effect.owner) {
            (Ok(entry), Some(owner)) if requeues => operator.requeue(owner, entry).await?,
            (Ok(entry), Some(owner)) => operator.discard(owner, entry).await?,
            (Ok(_), None) | (Err(_), _) => {
                let action = if requeues { UnreadableAction::Requeue(now) } else { UnreadableAction::Delete };
                effect.outboxes.of(stores).resolve_unreadable(&effect.id(), &action).await?;
            }
        }
        show(opened, effect, if requeues { "requeued" } else { "deleted" })?;
    }
    if !opened.json {
        output::line(&counted(found.len() as u64, "effect", "effects"))?;
    }
    Ok(true)
}

fn show<P>(opened: &OpenSystem<'_, P>, effect: &Effect, done: &str) -> anyhow::Result<()> {
    let owner = effect.owner.map(|owner| match owner {
        Owner::Saga(partition) => format!("instance {partition}"),
        Owner::Session(session) => format!("session {session}"),
    });
    if opened.json {
        let state = effect.state(opened.engine.host.now()).name();
        let stored: Value = match &effect.stored {
            Ok(entry) => serde_json::to_value(entry)?,
            Err(unreadable) => json!({ "error": unreadable.why }),
        };
        output::json(&json!({
            "id": effect.id(), "owner": owner, "state": state, "done": done, "effect": stored,
        }))?;
        return Ok(());
    }
    let of = owner.map(|owner| format!(" of {owner}")).unwrap_or_default();
    let what = match &effect.stored {
        Ok(entry) => instances::effect(entry),
        Err(unreadable) => format!("{}  cannot be read: {}", effect.id(), unreadable.why),
    };
    Ok(output::line(&format!("{what}{of}"))?)
}
