//! Commands for stored effects.

use anyhow::bail;
use jiff::Timestamp;
use local::{output, user_name};
use operate::effects::{all, exhausted};
use operate::health::counted;
use operate::{Effect, EffectChange, EffectFilter, EffectState};
use outbox::Owner;
use serde_json::{Value, json};

use super::{OpenSystem, instances, program};

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

pub(super) async fn run<P>(opened: &OpenSystem<P>, command: &Command) -> anyhow::Result<bool> {
    match command {
        Command::List { exhausted } => {
            let state = exhausted.then_some(EffectState::Poisoned);
            let (stores, now) = (opened.engine.stores()?, opened.engine.host.now());
            let found = all(stores, &EffectFilter { state, due_by: Timestamp::MAX }, now).await?;
            found.iter().try_for_each(|effect| show(opened, effect, "listed"))?;
            if !opened.json {
                output::line(&counted(found.len() as u64, "effect", "effects"))?;
            }
            Ok(true)
        }
        Command::Requeue(args) => change(opened, args, EffectChange::Requeue).await,
        Command::Delete(args) => change(opened, args, EffectChange::Delete).await,
    }
}

/// Changes exhausted effects that were not changed concurrently.
async fn change<P>(opened: &OpenSystem<P>, args: &Change, change: EffectChange) -> anyhow::Result<bool> {
    let (stores, now) = (opened.engine.stores()?, opened.engine.host.now());
    let mut found = exhausted(stores, Timestamp::MAX, now).await?;
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
    for effect in &found {
        effect.change(&opened.engine, change, &user_name()).await?;
        show(opened, effect, change.done())?;
    }
    if !opened.json {
        output::line(&counted(found.len() as u64, "effect", "effects"))?;
    }
    Ok(true)
}

fn show<P>(opened: &OpenSystem<P>, effect: &Effect, done: &str) -> anyhow::Result<()> {
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
