//! The operator who pauses, resumes and terminates instances, and sends them events.
//!
//! Only some schedules have one, and its choices have their own generator, so that other schedules do not change. The
//! tasks are part of the world: a crashed operator continues with its current task, as an operator repeats a command.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use messages::{Host, PartitionKey, SessionId};
use saga::{Control, ControlError, OperatorEvent, SendEventError};

use crate::application::{Application, engine};
use crate::coverage::{Call, Phase};
use crate::describe::short;
use crate::model::State;
use crate::options::{Invariant, Mutant};
use crate::point::Kind;
use crate::port::Port;
use crate::rng::Rng;
use crate::world::World;

/// Derives the generator of these choices from the seed of a schedule.
const CONTROL: u64 = 0x2545_F491_4F6E_1467;
/// The average number of schedules for each one with an operator.
const ONE_IN: u64 = 6;
/// The time within which an operator acts, from the start or from the last action.
const ACTS_WITHIN_MS: u64 = 40_000;
/// The durations of a pause: a moment, longer than a timer or a lease, and hours.
const PAUSES_MS: [u64; 4] = [500, 20_000, 310_000, 5_400_000];
/// The delays of a command that failed, as an operator waits longer for a service that is away.
const AGAIN: [Duration; 3] = [Duration::from_secs(20), Duration::from_secs(300), Duration::from_secs(3_600)];

/// A task of the operator.
#[derive(Clone)]
pub(crate) enum Task {
    /// Waits until this time, and chooses an instance.
    Choose(u64),
    /// Pauses or terminates an instance.
    Begin(PartitionKey, Control),
    /// Waits until this time, and resumes an instance.
    Wait(PartitionKey, u64),
    /// Resumes an instance.
    Resume(PartitionKey),
    /// Sends an event.
    Send(OperatorEvent),
}

/// The operator of a schedule.
#[derive(Default)]
pub(crate) struct Controls {
    rng: Option<Rng>,
    task: Option<Task>,
    left: u64,
    /// The number of events to send so far.
    events: usize,
    /// The sessions that stored events of the operator.
    sessions: BTreeSet<SessionId>,
}

impl World {
    /// Chooses whether a schedule has an operator.
    pub(crate) fn plan_control(&mut self, seed: u64) {
        let mut rng = Rng::new(seed ^ CONTROL);
        // Documents of a newer version are unreadable only when they are loaded, so a write of the operator would store
        // the simulated version. After a restore, a resumed instance could be paused again.
        let is_left_alone = self.has_restore() || self.damage.is_expected();
        if !rng.one_in(ONE_IN) || self.application.controls().is_empty() || is_left_alone {
            return;
        }
        self.controls.left = rng.between(1, 3);
        self.controls.task = Some(Task::Choose(rng.below(ACTS_WITHIN_MS)));
        self.controls.rng = Some(rng);
    }

    /// Returns `true` if the schedule has an operator.
    pub(crate) fn has_control(&self) -> bool {
        self.controls.task.is_some()
    }

    /// Chooses the clock of the operator.
    pub(crate) fn add_controller(&mut self) {
        if let Some(rng) = &mut self.controls.rng {
            self.clocks.add(rng);
        }
    }

    /// Moves on from a completed task. `is_refused` is `true` if the instance had ended.
    fn complete(&mut self, task: &Task, is_refused: bool) {
        let Some(mut rng) = self.controls.rng.take() else { return };
        let next = match task {
            Task::Choose(_) => self.choose_action(&mut rng),
            Task::Begin(partition, Control::Pause) if !is_refused => {
                Some(Task::Wait(*partition, self.now + rng.pick(&PAUSES_MS)))
            }
            Task::Wait(partition, _) => Some(Task::Resume(*partition)),
            Task::Begin(..) | Task::Resume(_) | Task::Send(_) => None,
        };
        self.controls.task = next.or_else(|| {
            self.controls.left = self.controls.left.saturating_sub(1);
            (self.controls.left > 0).then(|| Task::Choose(self.now + rng.below(ACTS_WITHIN_MS)))
        });
        self.controls.rng = Some(rng);
    }

    fn choose_action(&mut self, rng: &mut Rng) -> Option<Task> {
        let open = self.documents.iter().filter(|(_, stored)| stored.document.content.ended_at.is_none());
        let open: Vec<PartitionKey> = open.map(|(partition, _)| *partition).collect();
        let partition = *open.get(rng.index(open.len()))?;
        if rng.one_in(3) {
            let application = Arc::clone(&self.application);
            if let Some((name, data)) = application.operator_event(self, partition) {
                self.controls.events += 1;
                let (name, key) = (name.to_owned(), format!("{}", self.controls.events));
                return Some(Task::Send(OperatorEvent {
                    partition,
                    queue: None,
                    name,
                    data,
                    key,
                    may_begin: false,
                }));
            }
        }
        Some(Task::Begin(partition, rng.pick(self.application.controls())))
    }

    /// Records a session that stores an event of the operator. Each command stores one.
    pub(crate) fn check_operator_event(&mut self, session: SessionId) {
        self.controls.sessions.insert(session);
        let (sent, wanted) = (self.controls.sessions.len(), self.controls.events);
        if sent > wanted {
            let detail = || format!("the operator sent {wanted} events, and {sent} are stored");
            self.violate(Invariant::RepeatsDoNoHarm, detail);
        }
    }

    /// Returns `true` if an operator has paused an instance.
    pub(crate) fn is_paused(&self, partition: PartitionKey) -> bool {
        let stored = self.documents.get(&partition);
        stored.is_some_and(|stored| stored.document.content.paused.is_some())
    }

    /// Checks a write over a document that an operator has paused or terminated.
    pub(crate) fn check_obeyed(
        &mut self,
        partition: PartitionKey,
        base: Option<&(Arc<saga::Content>, State)>,
        is_change: bool,
    ) {
        let Some((content, _)) = base else { return };
        if content.terminated.is_some() {
            let detail = || format!("partition {} was changed after it was terminated", short(&partition));
            self.violate(Invariant::OperatorIsObeyed, detail);
        }
        if content.paused.is_some() && is_change {
            let detail = || format!("a message changed partition {} during its pause", short(&partition));
            self.violate(Invariant::OperatorIsObeyed, detail);
        }
    }
}

/// Carries out the tasks of the operator.
pub(crate) async fn control(port: Port, application: Arc<dyn Application>) {
    let engine = engine(application.system(), &port);
    let (sleep, mut tries) = (Kind::Call(Call::HOST_SLEEP, Phase::Before), 0);
    while let Some(task) = port.perform(|world| world.controls.task.clone()) {
        port.perform(World::begin_batch);
        // `None` if the command has to be repeated.
        let is_refused = match &task {
            Task::Choose(at) | Task::Wait(_, at) => {
                port.stop_at(sleep, *at).await;
                Some(false)
            }
            Task::Begin(partition, _) | Task::Resume(partition) => {
                let control = if let Task::Begin(_, control) = task { control } else { Control::Resume };
                match engine.control(*partition, control, "operator", "").await {
                    Ok(_) => Some(false),
                    Err(ControlError::Unknown(_) | ControlError::Ended(_)) => Some(true),
                    Err(ControlError::Busy(_) | ControlError::Missing(_) | ControlError::Store(_)) => None,
                }
            }
            Task::Send(event) => {
                let mut event = event.clone();
                if port.has(Mutant::OperatorEventRepeated) {
                    event.key = port.perform(World::fresh_id).to_string();
                }
                match application.send_event(&port, event).await {
                    Ok(_) => Some(false),
                    Err(SendEventError::UnknownInstance(_) | SendEventError::Ended(_)) => Some(true),
                    Err(SendEventError::Store(_) | SendEventError::Commit(_)) => None,
                    Err(error) => {
                        let detail = || format!("the event of an operator was refused: {error}");
                        return port.perform(|world| world.violate(Invariant::Application, detail));
                    }
                }
            }
        };
        match is_refused {
            Some(is_refused) => {
                tries = 0;
                port.perform(|world| world.complete(&task, is_refused));
            }
            None => {
                port.sleep(AGAIN[(tries / 3).min(AGAIN.len() - 1)]).await;
                tries += 1;
            }
        }
    }
}
