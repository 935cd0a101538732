//! The effects of the operator's tasks on the world, and the checks of its actions.

use std::sync::Arc;

use messages::{PartitionKey, SessionId};
use saga::{Content, Control, OperatorEvent};

use super::{ACTS_WITHIN_MS, CONTROL, ONE_IN, PAUSES_MS, Task};
use crate::describe::short;
use crate::model::State;
use crate::options::Invariant;
use crate::rng::Rng;
use crate::world::World;

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
    pub(super) fn complete(&mut self, task: &Task, is_refused: bool) {
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

    /// Records a session that stores an event of the operator. Each command stores one event.
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
        base: Option<&(Arc<Content>, State)>,
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
