//! Commands for single instances of sagas.

use anyhow::{Context, anyhow, bail};
use local::{output, user_name};
use messages::{DecisionRecord, PartitionKey, Queue, RecordedVerdict};
use operate::InstanceDetails;
use operate::health::counted;
use operate::instance::{self, InstanceFilter, instance};
use outbox::{Entry, FieldFilter, Kind};
use saga::failures::{FailureStatus, Selection};
use saga::{Control, ControlError, ControlOutcome, EventDelivery, OperatorEvent, SendEventError, System};
use serde::Serialize;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{OpenSystem, program};

/// Selects the instances to list.
#[derive(Debug, clap::Args)]
pub struct List {
    /// Maximum number of instances
    #[arg(long, value_name = "N", default_value_t = 100)]
    pub limit: usize,
    /// Only instances whose view has this value in a field, such as `customer.country=CH`; repeatable
    #[arg(long = "where", value_name = "FIELD=VALUE")]
    pub conditions: Vec<FieldFilter>,
    /// Instances that have ended, the latest first
    #[arg(long)]
    pub ended: bool,
}

/// An instance.
#[derive(Debug, clap::Args)]
pub struct Which {
    /// Id of the instance, as `list` shows it
    #[arg(value_name = "INSTANCE")]
    pub instance: PartitionKey,
}

/// An action on an instance.
#[derive(Debug, Clone, clap::Args)]
pub struct Action {
    /// Id of the instance, as `list` shows it
    #[arg(value_name = "INSTANCE")]
    pub instance: PartitionKey,
    /// Reason for the history
    #[arg(long, value_name = "TEXT", default_value = "")]
    pub reason: String,
}

/// The end of an instance.
#[derive(Debug, clap::Args)]
pub struct Termination {
    /// Id of the instance, as `list` shows it
    #[arg(value_name = "INSTANCE")]
    pub instance: PartitionKey,
    /// Reason for the history
    #[arg(long, value_name = "TEXT")]
    pub reason: String,
}

impl Termination {
    pub(super) fn action(&self) -> Action {
        Action { instance: self.instance, reason: self.reason.clone() }
    }
}

/// An event for an instance.
#[derive(Debug, clap::Args)]
pub struct Send {
    /// Id of the instance, as `list` shows it
    #[arg(value_name = "INSTANCE")]
    pub instance: PartitionKey,
    /// Name of the event; `events` lists the names
    #[arg(value_name = "EVENT")]
    pub event: String,
    /// Data of the event as JSON
    #[arg(value_name = "JSON", default_value = "{}")]
    pub data: String,
    /// Id of this command, which sends the event once even if it is repeated [default: a random one]
    #[arg(long, value_name = "ID")]
    pub id: Option<String>,
    /// Queue of the saga, if several sagas have an event with this name
    #[arg(long, value_name = "QUEUE")]
    pub queue: Option<String>,
    /// Begin a new instance if there is none with this id
    #[arg(long)]
    pub new: bool,
}

pub(super) async fn list<P>(opened: &OpenSystem<P>, args: &List) -> anyhow::Result<bool> {
    let fields = args.conditions.iter().cloned().fold(FieldFilter::default(), FieldFilter::and_all);
    let filter = InstanceFilter { ended: args.ended, fields };
    let (mut views, mut after) = (Vec::new(), None);
    loop {
        let page = instance::list(&opened.engine, &filter, after, args.limit - views.len()).await?;
        views.extend(page.items);
        after = page.next;
        if after.is_none() || views.len() >= args.limit {
            break;
        }
    }
    for view in &views {
        if opened.json {
            output::json(view)?;
        } else {
            output::line(&format!("{}  since {:.0}  {}", view.partition, view.created_at, view.body))?;
        }
    }
    if !opened.json {
        let counted = match args.ended {
            true => counted(views.len() as u64, "instance has ended", "instances have ended"),
            false => counted(views.len() as u64, "instance has not ended", "instances have not ended"),
        };
        output::line(&counted)?;
        if after.is_some() {
            output::line(&format!("--limit {} was reached, and there are more", args.limit))?;
        }
    }
    Ok(true)
}

pub(super) async fn show<P>(opened: &OpenSystem<P>, which: &Which) -> anyhow::Result<bool> {
    let found = instance(&opened.engine, which.instance).await?;
    let found = found.with_context(|| unknown(which.instance))?;
    if opened.json {
        output::json(&found)?;
    } else {
        print(&found)?;
    }
    Ok(true)
}

fn print(found: &InstanceDetails) -> anyhow::Result<()> {
    output::line(&format!("instance {}, version {}", found.partition, found.version))?;
    output::line(&format!("state: {}", found.state))?;
    if let Some(ended_at) = found.ended_at {
        output::line(&format!("ended at {ended_at:.0}"))?;
    }
    for (what, intervention) in [("paused", &found.paused), ("terminated", &found.terminated)] {
        if let Some(intervention) = intervention {
            output::line(&format!("{what} at {:.0} by {intervention}", intervention.at))?;
        }
    }
    if found.is_stalled {
        output::line("nothing is pending for it; it waits for a message that may be in a queue")?;
    }
    output::line(&counted(found.expected.len() as u64, "message is expected", "messages are expected"))?;
    found.outbox.iter().try_for_each(|entry| output::line(&format!("effect {}", effect(entry))))?;
    let Some(decisions) = &found.decisions else {
        return Ok(output::line("no history of messages is kept")?);
    };
    decisions.iter().try_for_each(|decision| output::line(&history_line(decision)))?;
    Ok(())
}

/// Returns an outbox entry in one line.
pub(super) fn effect(entry: &Entry) -> String {
    let what = match &entry.kind {
        Kind::Message(queue) => format!("message to {queue}"),
        Kind::View => "view".to_owned(),
        Kind::Record => "record".to_owned(),
    };
    let error = entry.error.as_ref().map(|error| format!(": {error}")).unwrap_or_default();
    let exhausted = if entry.poisoned { ", exhausted" } else { "" };
    format!("{}  {what}, due {:.0}{exhausted}{error}", entry.id, entry.due_at)
}

fn history_line(decision: &DecisionRecord<RecordedVerdict>) -> String {
    let DecisionRecord { at, function, message, verdict, why, .. } = decision;
    format!("{at:.3}  {function:<16} {message:<20} {}: {why}", verdict.name())
}

fn unknown(partition: PartitionKey) -> String {
    format!(
        "there is no instance {partition}; `{} list` lists those that have not ended, and an ended one is kept for days",
        program()
    )
}

/// The result of an action, in JSON output.
#[derive(Serialize)]
struct ActionResult {
    instance: PartitionKey,
    done: &'static str,
    changed: bool,
    /// Open failures of the instance.
    open_failures: u64,
}

pub(super) async fn control<P>(
    opened: &OpenSystem<P>,
    control: Control,
    action: &Action,
) -> anyhow::Result<bool> {
    let partition = action.instance;
    let done = opened.engine.control(partition, control, &user_name(), &action.reason).await;
    let controlled = done.map_err(|error| match error {
        ControlError::Unknown(_) => anyhow!(unknown(partition)),
        ControlError::Ended(_) => {
            anyhow!("{error}, so it needs no action; `{} show {partition}` shows it", program())
        }
        error => error.into(),
    })?;
    let selection = Selection { partition: Some(partition), ..Selection::of(FailureStatus::Open) };
    let open_failures = opened.engine.stores()?.failures.causes(&selection).await?.count;
    let changed = controlled == ControlOutcome::Changed;
    if opened.json {
        output::json(&ActionResult { instance: partition, done: control.done(), changed, open_failures })?;
        return Ok(true);
    }
    let before = if changed { "" } else { " before" };
    let note = match control {
        Control::Pause => {
            format!(
                "; its messages wait, and those that wait for 40 hours become failures; `{} resume {partition}` \
                 ends the pause",
                program()
            )
        }
        Control::Resume => {
            "; its messages are delivered again, each after at most as long as it has waited".to_owned()
        }
        Control::Terminate => String::new(),
    };
    output::line(&format!("instance {partition} was {}{before}{note}", control.done()))?;
    if control == Control::Resume && open_failures > 0 {
        let count = counted(open_failures, "failure of it is open", "failures of it are open");
        output::line(&format!(
            "{count}; `{} failures retry --instance {partition}` retries them",
            program()
        ))?;
    }
    Ok(true)
}

pub(super) async fn send<P>(opened: &OpenSystem<P>, args: &Send) -> anyhow::Result<bool> {
    let data: Value = serde_json::from_str(&args.data)
        .map_err(|error| anyhow!("the data is not JSON: {error}; an example is '{{\"cents\": 100}}'"))?;
    if !data.is_object() {
        bail!("the data is not a JSON object; an example is '{{\"cents\": 100}}'");
    }
    let key = args.id.clone().unwrap_or_else(|| opened.engine.host.random_id().to_string());
    let event = OperatorEvent {
        partition: args.instance,
        queue: args.queue.clone().map(Queue::from),
        name: args.event.clone(),
        data,
        key: key.clone(),
        may_begin: args.new,
    };
    let sent = opened.engine.send_event(opened.system, &event, &user_name()).await;
    let sent = sent.map_err(|error| match error {
        SendEventError::UnknownInstance(partition) => {
            anyhow!("{}; --new begins one with this id", unknown(partition))
        }
        SendEventError::KeyInUse(_) => anyhow!("{error}; give another --id"),
        SendEventError::Commit(error) => {
            anyhow::Error::new(error).context(format!("repeat the command with --id {key}"))
        }
        error => error.into(),
    })?;
    let message: Option<Uuid> = match sent {
        EventDelivery::Sent(message) => Some(message.as_uuid()),
        EventDelivery::SentBefore => None,
    };
    if opened.json {
        output::json(&json!({ "id": key, "sent": message.is_some(), "message_id": message }))?;
        return Ok(true);
    }
    output::line(&match message {
        Some(message) => format!("{} was sent as message {message}, with --id {key}", args.event),
        None => format!("{} was sent before with --id {key}", args.event),
    })?;
    Ok(true)
}

/// Lists the events that the table declares.
pub(super) fn events<P>(system: &System<P>, as_json: bool) -> anyhow::Result<bool> {
    let declared = system.queues.iter().filter_map(|spec| Some((&spec.queue, spec.events.as_ref()?)));
    let mut count = 0;
    for (queue, kind) in
        declared.flat_map(|(queue, events)| events.kinds.iter().map(move |kind| (queue, kind)))
    {
        count += 1;
        if as_json {
            output::json(&json!({ "queue": queue.name(), "event": kind.name, "version": kind.version }))?;
        } else {
            output::line(&format!("{} (queue {queue}, version {})", kind.name, kind.version))?;
        }
    }
    if count == 0 && !as_json {
        output::line("the table declares no events; `QueueSpec::with_events` declares those of a saga")?;
    }
    Ok(true)
}
