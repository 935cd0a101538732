//! One transition: the change by the event itself, and everything that follows from it.

use jiff::{SignedDuration, Timestamp};
use messages::Payload;
use messages::store::chain;
use saga::{Advance, Decision, Effect};
use serde_json::Value;

use crate::StepSaga;
use crate::defect::Defect;
use crate::event::{Ask, StepEvent};
use crate::list::{Deadline, InDoubt, Node, Steps};
use crate::run::{Phase, Run, Signal, StepState};

/// The reason why an event changes nothing.
pub(crate) enum NoEffect {
    /// The event is a duplicate or too late.
    Ignored(String),
    /// The event is invalid, and is dead-lettered.
    Rejected(String),
}

type ApplyResult = Result<String, NoEffect>;

fn ignored(reason: impl Into<String>) -> ApplyResult {
    Err(NoEffect::Ignored(reason.into()))
}

/// One transition.
pub(crate) struct Turn<'a, I> {
    steps: &'a Steps<I>,
    defect: Defect,
    before: &'a Run<I>,
    run: Run<I>,
    effects: Vec<Effect>,
    now: Timestamp,
}

impl<'a, I: StepSaga> Turn<'a, I> {
    pub(crate) fn new(steps: &'a Steps<I>, defect: Defect, before: &'a Run<I>, now: Timestamp) -> Self {
        Self { steps, defect, before, run: before.clone(), effects: Vec::new(), now }
    }

    /// Applies the event itself. Returns the reason for the decision log.
    pub(crate) fn apply(&mut self, event: &StepEvent<I>) -> ApplyResult {
        use StepEvent::*;
        if self.before.ended_at().is_some() {
            return ignored("the run has ended");
        }
        // A step that was deleted from the program too early could neither complete nor be undone.
        self.before.steps.keys().try_for_each(|step| self.place(step).map(drop))?;
        match (&self.before.phase, event) {
            (Phase::New | Phase::Signalled { .. }, Started { key, input, at, list_version }) => {
                Ok(self.start(key, input, *at, list_version.unwrap_or(I::VERSION)))
            }
            (Phase::New | Phase::Signalled { .. }, Resolved { .. } | Rejected { .. } | Cancelled { .. }) => {
                self.signal_early(event)
            }
            (Phase::New | Phase::Signalled { .. }, _) => ignored("the run has not started"),
            (_, Started { .. }) => ignored("the run has started before"),
            (_, StepUndone { step }) => self.undone(step, StepState::Undone),
            (_, UndoRefused { step, reason }) => {
                self.undone(step, StepState::UndoRefused { reason: reason.clone() })
            }
            (_, StepCompleted { .. } | StepRefused { .. } | StepFailed { .. }) => self.answered(event),
            (Phase::Running, Resolved { step, value }) => self.resolve(step, value),
            (Phase::Running, Rejected { step, reason }) => self.reject(step, reason),
            (Phase::Running, Cancelled { .. }) if self.has_requested_pivot() => {
                ignored("the pivot was requested before")
            }
            (Phase::Running, Cancelled { reason }) => Ok(self.stop(format!("cancelled: {reason}"))),
            (Phase::Running, DeadlinePassed { deadline }) => self.deadline_passed(deadline),
            (Phase::Running, RetryDue { step }) => self.retry(step),
            (
                _,
                Resolved { .. }
                | Rejected { .. }
                | Cancelled { .. }
                | DeadlinePassed { .. }
                | RetryDue { .. },
            ) => ignored("the run has stopped"),
        }
    }

    fn start(&mut self, key: &str, input: &I, at: Timestamp, list_version: u16) -> String {
        self.run.key = key.to_owned();
        self.run.input = Some(input.clone());
        (self.run.list_version, self.run.started_at) = (list_version, at);
        self.run.phase = Phase::Running;
        for node in self.steps.nodes.iter().filter(|node| node.performed_at_start && node.is_in(list_version))
        {
            let performed = StepState::Completed { output: Value::Null };
            self.set(node.name, if self.applies(node) { performed } else { StepState::Skipped });
        }
        match &self.before.phase {
            Phase::Signalled { stop: Some(reason) } => self.stop(reason.clone()),
            _ => "the run has started".to_owned(),
        }
    }

    /// Keeps a signal that has overtaken the start. It is not sent again.
    fn signal_early(&mut self, event: &StepEvent<I>) -> ApplyResult {
        if self.defect == Defect::IgnoresEarlySignals {
            return ignored("the run has not started");
        }
        let stop = match event {
            StepEvent::Resolved { step, value } => {
                let signal = Signal::Resolved { value: value.clone() };
                self.run.signals.entry(step.clone()).or_insert(signal);
                None
            }
            StepEvent::Rejected { step, reason } => Some(format!("{step} was rejected: {reason}")),
            StepEvent::Cancelled { reason } => Some(format!("cancelled: {reason}")),
            _ => None,
        };
        let earlier = match &self.before.phase {
            Phase::Signalled { stop } => stop.clone(),
            _ => None,
        };
        self.run.phase = Phase::Signalled { stop: earlier.or(stop) };
        Ok("the signal has overtaken the start".to_owned())
    }

    fn resolve(&mut self, step: &str, value: &Value) -> ApplyResult {
        let name = self.signalled(step)?;
        match self.before.steps.get(name) {
            Some(StepState::Waiting) => {
                self.set(name, StepState::Completed { output: value.clone() });
                Ok(format!("{step} is resolved"))
            }
            Some(_) => ignored(format!("{step} is settled")),
            None if self.before.signals.contains_key(name) => ignored(format!("{step} was signalled before")),
            None => {
                let signal = Signal::Resolved { value: value.clone() };
                self.run.signals.insert(name.to_owned(), signal);
                Ok(format!("{step} is resolved before its turn"))
            }
        }
    }

    fn reject(&mut self, step: &str, reason: &str) -> ApplyResult {
        let name = self.signalled(step)?;
        if self.before.steps.get(name).is_some_and(StepState::is_settled) {
            return ignored(format!("{step} is settled"));
        }
        if self.before.signals.contains_key(name) {
            return ignored(format!("{step} was signalled before"));
        }
        if self.is_pivot_open() {
            let signal = Signal::Rejected { reason: reason.to_owned() };
            self.run.signals.insert(name.to_owned(), signal);
            return Ok(format!("{step} is rejected before its turn"));
        }
        Ok(self.stop(format!("{step} was rejected: {reason}")))
    }

    /// Returns the name of a step that waits for a signal.
    fn signalled(&self, step: &str) -> Result<&'static str, NoEffect> {
        let node = &self.steps.nodes[self.place(step)?];
        match node.request {
            None => Ok(node.name),
            Some(_) => Err(NoEffect::Rejected(format!("{step} does not wait for a signal"))),
        }
    }

    fn deadline_passed(&mut self, name: &str) -> ApplyResult {
        let deadline = self.steps.deadlines.iter().find(|deadline| deadline.name == name);
        if !deadline.is_some_and(|deadline| self.is_open(self.before, deadline)) {
            return ignored("its steps were completed in time");
        }
        if self.is_pivot_open() {
            return ignored("the pivot was requested before");
        }
        Ok(self.stop(format!("the deadline {name} has passed")))
    }

    /// Applies the reply to a request to perform a step.
    fn answered(&mut self, event: &StepEvent<I>) -> ApplyResult {
        let (StepEvent::StepCompleted { step, .. }
        | StepEvent::StepRefused { step, .. }
        | StepEvent::StepFailed { step, .. }) = event
        else {
            return ignored("it is not a reply");
        };
        let node = &self.steps.nodes[self.place(step)?];
        let Some(StepState::Requested { attempt }) = self.before.steps.get(node.name) else {
            return ignored(format!("{step} awaits no reply"));
        };
        let is_running = self.before.phase == Phase::Running;
        match event {
            StepEvent::StepCompleted { output, .. } => {
                self.set(node.name, StepState::Completed { output: output.clone() });
                Ok(format!("{step} is completed"))
            }
            StepEvent::StepRefused { reason, .. } => {
                self.set(node.name, StepState::Refused { reason: reason.clone() });
                let reason = format!("{step} was refused: {reason}");
                Ok(if is_running { self.stop(reason) } else { reason })
            }
            StepEvent::StepFailed { attempt: failed, reason, after_seconds, .. } if failed == attempt => {
                Ok(self.failed(node, *attempt, reason, *after_seconds))
            }
            _ => ignored(format!("{step} failed in an earlier attempt")),
        }
    }

    fn failed(&mut self, node: &Node<I>, attempts: u32, reason: &str, after_seconds: Option<u32>) -> String {
        self.set(node.name, StepState::Retrying { attempts });
        let step = node.name;
        if self.before.phase != Phase::Running {
            return format!("{step} failed and is to be undone: {reason}");
        }
        match node.retry.filter(|retry| attempts < retry.max_attempts) {
            Some(retry) => {
                let wanted = SignedDuration::from_secs(i64::from(after_seconds.unwrap_or(0)));
                let event = StepEvent::RetryDue { step: step.to_owned() };
                self.schedule(retry_timer(step), retry.delay(attempts).max(wanted), &event);
                format!("{step} failed in attempt {attempts}: {reason}")
            }
            None => self.stop(format!("{step} failed in its last attempt: {reason}")),
        }
    }

    fn undone(&mut self, step: &str, state: StepState) -> ApplyResult {
        let name = self.steps.nodes[self.place(step)?].name;
        match self.before.steps.get(name) {
            Some(StepState::Undoing { .. }) => {
                self.set(name, state);
                Ok(format!("the reply to undoing {step}"))
            }
            _ => ignored(format!("{step} is not being undone")),
        }
    }

    fn retry(&mut self, step: &str) -> ApplyResult {
        let node = &self.steps.nodes[self.place(step)?];
        let Some(StepState::Retrying { attempts }) = self.before.steps.get(node.name) else {
            return ignored(format!("{step} has not failed"));
        };
        let attempt = attempts.saturating_add(1);
        self.request(node, Ask::Perform { attempt });
        self.set(node.name, StepState::Requested { attempt });
        Ok(format!("attempt {attempt} at {step}"))
    }

    /// Stops the run. From now on, completed steps are undone; steps after the pivot are not undone.
    fn stop(&mut self, reason: String) -> String {
        for (step, state) in &self.before.steps {
            if matches!(state, StepState::Retrying { .. }) {
                self.effects.push(Effect::Cancel { timer: retry_timer(step) });
            }
        }
        self.run.steps.retain(|_, state| *state != StepState::Waiting);
        self.run.phase = match self.is_past_pivot() {
            true => Phase::Failed { reason: reason.clone(), at: self.now },
            false => Phase::Undoing { reason: reason.clone() },
        };
        reason
    }

    /// Adds the consequences of the event: the next steps, or the next steps to undo, the end, and the timers.
    pub(crate) fn finish(mut self, reason: String) -> Decision<Run<I>> {
        if self.run.phase == Phase::Running {
            self.go_on();
        }
        if let Phase::Undoing { reason } = self.run.phase.clone() {
            self.undo(reason);
        }
        self.set_deadlines();
        let next = self.run;
        let advance = Advance { effects: self.effects, ..Decision::to(next.clone(), reason) }.show();
        match next.ended_at() {
            Some(_) => I::ended(&next, advance).into(),
            None => advance.into(),
        }
    }

    /// Requests each step whose predecessors are completed. The requests come last: a signal that was rejected before its
    /// turn stops the run, and a run that ends at once could not receive their replies.
    fn go_on(&mut self) {
        let (mut settled, mut requested) = (Vec::with_capacity(self.steps.nodes.len()), Vec::new());
        for node in &self.steps.nodes {
            let is_next = node.predecessors.iter().all(|place| settled[*place]);
            if !node.is_in(self.run.list_version) {
                settled.push(is_next);
                continue;
            }
            if is_next && !self.run.steps.contains_key(node.name) {
                match node.request.is_some() && self.applies(node) {
                    true => requested.push(node),
                    false => self.begin_without_request(node),
                }
                if self.run.phase != Phase::Running {
                    return;
                }
            }
            settled.push(self.run.steps.get(node.name).is_some_and(StepState::is_settled));
        }
        for node in requested {
            self.request(node, Ask::Perform { attempt: 1 });
            self.set(node.name, StepState::Requested { attempt: 1 });
        }
        if settled.iter().all(|is_settled| *is_settled) {
            self.run.phase = Phase::Completed { at: self.now };
        }
    }

    fn applies(&self, node: &Node<I>) -> bool {
        self.run.context().is_some_and(|context| node.applies(&context))
    }

    /// Begins a step that waits for a signal or is skipped.
    fn begin_without_request(&mut self, node: &Node<I>) {
        let state = match (self.applies(node), self.run.signals.get(node.name)) {
            (false, _) => StepState::Skipped,
            (true, Some(Signal::Resolved { value })) => StepState::Completed { output: value.clone() },
            (true, Some(Signal::Rejected { reason })) => {
                let reason = format!("{} was rejected: {reason}", node.name);
                self.stop(reason);
                return;
            }
            (true, None) => StepState::Waiting,
        };
        self.set(node.name, state);
    }

    /// Asks to undo each step whose successors leave nothing to undo.
    fn undo(&mut self, reason: String) {
        let count = self.steps.nodes.len();
        // Each value is `true` if nothing is left to undo at a step or after it.
        let mut clear = vec![true; count];
        for place in (0..count).rev() {
            let node = &self.steps.nodes[place];
            let is_free = self.steps.successors(place).all(|later| clear[later]);
            if !is_free && self.defect != Defect::UndoesOutOfOrder {
                clear[place] = false;
                continue;
            }
            clear[place] = match self.run.steps.get(node.name) {
                Some(StepState::Undoing { .. }) => false,
                Some(StepState::Requested { .. }) if node.has_undo && node.in_doubt == InDoubt::Await => {
                    false
                }
                // An attempt that timed out may take effect in the other system after an undo that found nothing. A
                // repetition under the same key has an outcome. Its command has no attempt, so its queue redelivers it.
                Some(&StepState::Retrying { attempts })
                    if node.has_undo
                        && node.in_doubt == InDoubt::Await
                        && node.is_in(self.run.list_version)
                        && self.defect != Defect::UndoesUnknownOutcome =>
                {
                    self.request(node, Ask::Repeat);
                    self.set(node.name, StepState::Requested { attempt: attempts.saturating_add(1) });
                    false
                }
                Some(state) if node.has_undo && node.is_in(self.run.list_version) => {
                    match self.doubt_of(state) {
                        Some(in_doubt) => {
                            self.request(node, Ask::Undo);
                            self.set(node.name, StepState::Undoing { in_doubt });
                            false
                        }
                        None => true,
                    }
                }
                _ => true,
            };
        }
        if clear.iter().all(|is_clear| *is_clear) {
            self.run.phase = Phase::Undone { reason, at: self.now };
        }
    }

    /// Returns whether a step that has to be undone is in doubt; `None` if nothing has to be undone.
    fn doubt_of(&self, state: &StepState) -> Option<bool> {
        match state {
            StepState::Completed { .. } if self.defect != Defect::KeepsCompleted => Some(false),
            StepState::Requested { .. } | StepState::Retrying { .. }
                if self.defect != Defect::KeepsInDoubt =>
            {
                Some(true)
            }
            _ => None,
        }
    }

    /// Sets and cancels the timers of deadlines by comparing the run before and after.
    fn set_deadlines(&mut self) {
        if self.defect == Defect::IgnoresDeadlines {
            return;
        }
        let steps = self.steps;
        for deadline in &steps.deadlines {
            let timer = format!("deadline:{}", deadline.name);
            match (self.is_open(self.before, deadline), self.is_open(&self.run, deadline)) {
                (false, true) => {
                    let event = StepEvent::DeadlinePassed { deadline: deadline.name.to_owned() };
                    self.schedule(timer, deadline.within, &event);
                }
                (true, false) => self.effects.push(Effect::Cancel { timer }),
                _ => {}
            }
        }
    }

    /// Returns `true` if steps of a deadline have begun, and some are not settled.
    fn is_open(&self, run: &Run<I>, deadline: &Deadline) -> bool {
        let nodes = &self.steps.nodes[deadline.nodes.clone()];
        let mut states = nodes
            .iter()
            .filter(|node| node.is_in(run.list_version))
            .map(|node| run.steps.get(node.name))
            .collect::<Vec<_>>()
            .into_iter();
        run.phase == Phase::Running
            && states.clone().any(|state| state.is_some())
            && !states.all(|state| state.is_some_and(StepState::is_settled))
    }

    /// Returns the pivot of the run's list and its state.
    fn pivot(&self) -> Option<(&Node<I>, &StepState)> {
        let version = self.run.list_version;
        let node = self.steps.nodes.iter().find(|node| node.is_pivot && node.is_in(version))?;
        Some((node, self.run.steps.get(node.name)?))
    }

    fn has_requested_pivot(&self) -> bool {
        self.is_pivot_open()
            || self.pivot().is_some_and(|(_, state)| matches!(state, StepState::Completed { .. }))
    }

    /// Returns `true` if the pivot was requested and has no outcome yet.
    fn is_pivot_open(&self) -> bool {
        self.pivot().is_some_and(|(_, state)| {
            matches!(state, StepState::Requested { .. } | StepState::Retrying { .. })
        })
    }

    /// Returns `true` if the pivot is completed, or may be and cannot be undone.
    fn is_past_pivot(&self) -> bool {
        self.pivot().is_some_and(|(node, state)| match state {
            StepState::Completed { .. } => true,
            StepState::Requested { .. } | StepState::Retrying { .. } => !node.has_undo,
            _ => false,
        })
    }

    fn place(&self, step: &str) -> Result<usize, NoEffect> {
        let version = self.before.list_version;
        let place = self.steps.find(step, version);
        place.ok_or_else(|| NoEffect::Rejected(format!("version {version} of the list has no step {step}")))
    }

    fn set(&mut self, step: &str, state: StepState) {
        self.run.steps.insert(step.to_owned(), state);
    }

    fn request(&mut self, node: &Node<I>, ask: Ask) {
        if let (Some(request), Some(context)) = (&node.request, self.run.context()) {
            let effect = request(&context, ask, node.retry.is_some());
            self.effects.push(effect);
        }
    }

    fn schedule(&mut self, timer: String, after: SignedDuration, event: &StepEvent<I>) {
        let due_at = self.now.saturating_add(after).unwrap_or(Timestamp::MAX);
        self.effects.push(match event.body() {
            Ok(body) => Effect::Schedule { timer, due_at, to: StepEvent::<I>::QUEUE, body },
            Err(error) => Effect::Broken(chain(&error)),
        });
    }
}

fn retry_timer(step: &str) -> String {
    format!("retry:{step}")
}
