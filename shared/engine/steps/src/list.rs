//! The list of steps: a directed graph without cycles, composed of parts.

use std::collections::BTreeSet;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use jiff::SignedDuration;
use messages::store::chain;
use messages::{Payload, Queue};
use saga::Effect;

use crate::StepSaga;
use crate::activity::Activity;
use crate::event::{Ask, Command, Order, Verb};
use crate::run::Context;

/// A list of steps, or a part of one. Each modifier applies to all steps of the part.
pub struct Steps<I> {
    /// The steps in topological order: each one after its predecessors.
    pub(crate) nodes: Vec<Node<I>>,
    pub(crate) deadlines: Vec<Deadline>,
    first: Vec<usize>,
    last: Vec<usize>,
}

/// The treatment of a step that was requested and has not replied when the run stops.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InDoubt {
    /// Wait for the outcome, and undo the step if it was completed. A step that failed without an outcome is performed
    /// again under the same key until it has one. The other system only needs idempotency keys.
    #[default]
    Await,
    /// Undo the step at once. The other system must remember the key of an undo that arrives first, and then refuse to
    /// perform it.
    Undo,
}

/// The attempts at a step whose activity fails without an outcome. Without a policy, the queue redelivers the command
/// with its own backoff.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// The maximum number of attempts. After the last one the run stops, and the step is in doubt ([`InDoubt`]).
    pub max_attempts: u32,
    /// The delay before the second attempt. The delay doubles with each further retry.
    pub initial_interval: SignedDuration,
    /// The maximum delay, unless the other system asks for more.
    pub max_interval: SignedDuration,
}

impl RetryPolicy {
    pub(crate) fn delay(&self, attempts: u32) -> SignedDuration {
        let factor = 2_i32.saturating_pow(attempts.saturating_sub(1));
        let delay = self.initial_interval.checked_mul(factor);
        delay.map_or(self.max_interval, |delay| delay.min(self.max_interval))
    }
}

type Condition<I> = Arc<dyn Fn(&Context<'_, I>) -> bool + Send + Sync>;
/// Builds a request of a step. `true` means that the list has a retry policy for the step.
type Request<I> = Arc<dyn Fn(&Context<'_, I>, Ask, bool) -> Effect + Send + Sync>;

/// One step.
pub(crate) struct Node<I> {
    pub(crate) name: &'static str,
    /// Builds its commands; `None` for a step that waits for a signal.
    pub(crate) request: Option<Request<I>>,
    pub(crate) predecessors: Vec<usize>,
    pub(crate) conditions: Vec<Condition<I>>,
    pub(crate) since: u16,
    pub(crate) until: u16,
    pub(crate) in_doubt: InDoubt,
    pub(crate) retry: Option<RetryPolicy>,
    pub(crate) has_undo: bool,
    pub(crate) is_pivot: bool,
    /// `true` if the transaction that starts the run has performed it.
    pub(crate) performed_at_start: bool,
    /// The queue and the name of its command, for the outline.
    target: Option<(Queue, &'static str)>,
}

/// A time limit for some steps.
pub(crate) struct Deadline {
    pub(crate) name: &'static str,
    pub(crate) within: SignedDuration,
    pub(crate) nodes: Range<usize>,
}

impl<I> Node<I> {
    fn named(name: &'static str) -> Self {
        Self {
            name,
            request: None,
            predecessors: Vec::new(),
            conditions: Vec::new(),
            since: 1,
            until: u16::MAX,
            in_doubt: InDoubt::default(),
            retry: None,
            has_undo: false,
            is_pivot: false,
            performed_at_start: false,
            target: None,
        }
    }

    pub(crate) fn is_in(&self, version: u16) -> bool {
        (self.since..self.until).contains(&version)
    }

    pub(crate) fn applies(&self, context: &Context<'_, I>) -> bool {
        self.conditions.iter().all(|condition| condition(context))
    }
}

/// A step that an activity performs. `input` computes the activity's input from the run's input and the outputs of
/// earlier steps; it must be pure. Commands are sent to `queue`.
pub fn step<A: Activity, I: StepSaga>(
    name: &'static str,
    queue: Queue,
    input: impl Fn(&Context<'_, I>) -> A::Input + Send + Sync + 'static,
) -> Steps<I> {
    let target = Some((queue.clone(), A::PERFORM));
    let request = move |context: &Context<'_, I>, ask: Ask, has_policy: bool| {
        let (verb, attempt) = match ask {
            Ask::Perform { attempt } => (Verb::Perform, Some(attempt).filter(|_| has_policy)),
            Ask::Repeat => (Verb::Perform, None),
            Ask::Undo => (Verb::Undo, None),
        };
        let until_outcome = ask == Ask::Repeat;
        let (step, reply_to, input) = (name.to_owned(), Some(I::QUEUE), input(context));
        let order = Order { step, attempt, until_outcome, reply_to, input };
        match Command::<A>::new(verb, order).body() {
            Ok(body) => Effect::Request { to: queue.clone(), body },
            Err(error) => Effect::Broken(chain(&error)),
        }
    };
    Steps::of(Node { has_undo: true, request: Some(Arc::new(request)), target, ..Node::named(name) })
}

/// A step that waits for a signal: [`crate::Client::resolve`] completes it, and [`crate::Client::reject`] stops the
/// run. A signal that arrives before the step's turn is kept.
pub fn wait<I>(name: &'static str) -> Steps<I> {
    Steps::of(Node::named(name))
}

/// Parts in sequence. They are undone in reverse order.
pub fn seq<I>(parts: impl IntoIterator<Item = Steps<I>>) -> Steps<I> {
    parts.into_iter().filter(|part| !part.nodes.is_empty()).fold(Steps::empty(), |mut all, part| {
        let Steps { first, last, .. } = all.append(part);
        for place in &first {
            all.nodes[*place].predecessors.extend(&all.last);
        }
        if all.first.is_empty() {
            all.first = first;
        }
        all.last = last;
        all
    })
}

/// Parts in parallel. They are undone in parallel too.
pub fn par<I>(parts: impl IntoIterator<Item = Steps<I>>) -> Steps<I> {
    parts.into_iter().fold(Steps::empty(), |mut all, part| {
        let Steps { first, last, .. } = all.append(part);
        all.first.extend(first);
        all.last.extend(last);
        all
    })
}

impl<I> Steps<I> {
    fn of(node: Node<I>) -> Self {
        Self { nodes: vec![node], deadlines: Vec::new(), first: vec![0], last: vec![0] }
    }

    fn empty() -> Self {
        Self { nodes: Vec::new(), deadlines: Vec::new(), first: Vec::new(), last: Vec::new() }
    }

    /// Moves the steps of a part into this list. Returns the part without its steps, its positions adjusted.
    fn append(&mut self, part: Self) -> Self {
        let by = self.nodes.len();
        let shift = |places: Vec<usize>| places.into_iter().map(|place| place + by).collect::<Vec<_>>();
        let moved = part.nodes.into_iter();
        self.nodes.extend(moved.map(|node| Node { predecessors: shift(node.predecessors), ..node }));
        let moved = part.deadlines.into_iter();
        self.deadlines.extend(moved.map(|deadline| {
            let nodes = deadline.nodes.start + by..deadline.nodes.end + by;
            Deadline { nodes, ..deadline }
        }));
        Self { first: shift(part.first), last: shift(part.last), ..Self::empty() }
    }

    fn each(mut self, change: impl Fn(&mut Node<I>)) -> Self {
        self.nodes.iter_mut().for_each(change);
        self
    }

    /// Performs the steps only on a condition, which is evaluated when their turn comes. A choice consists of two parts
    /// with opposite conditions. The condition must be pure.
    #[must_use]
    pub fn when(self, condition: impl Fn(&Context<'_, I>) -> bool + Send + Sync + 'static) -> Self {
        let condition: Condition<I> = Arc::new(condition);
        self.each(|node| node.conditions.push(Arc::clone(&condition)))
    }

    /// Stops the run unless all steps are completed within this time from the first of them. It does not limit the time
    /// of undoing.
    #[must_use]
    pub fn within(mut self, name: &'static str, within: SignedDuration) -> Self {
        self.deadlines.push(Deadline { name, within, nodes: 0..self.nodes.len() });
        self
    }

    /// Retries failed attempts by this policy.
    #[must_use]
    pub fn retry(self, policy: RetryPolicy) -> Self {
        self.each(|node| node.retry = Some(policy))
    }

    /// Sets the treatment of steps in doubt.
    #[must_use]
    pub fn in_doubt(self, in_doubt: InDoubt) -> Self {
        self.each(|node| node.in_doubt = in_doubt)
    }

    /// Declares that nothing needs to be undone, such as after a query.
    #[must_use]
    pub fn without_undo(self) -> Self {
        self.each(|node| node.has_undo = false)
    }

    /// Declares that [`crate::StepSaga::start`] performs the steps in its transaction. The saga never requests these
    /// steps, but can undo them.
    #[must_use]
    pub fn performed_at_start(self) -> Self {
        self.each(|node| node.performed_at_start = true)
    }

    /// Makes this step the point of no return. Once the step is requested, cancellations have no effect. Once the step
    /// is completed, no step is undone. A run that stops later ends as [`crate::Phase::Failed`].
    #[must_use]
    pub fn pivot(self) -> Self {
        self.each(|node| node.is_pivot = true)
    }

    /// Adds the steps to runs that started with this version of the list or a later one.
    #[must_use]
    pub fn since(self, version: u16) -> Self {
        self.each(|node| node.since = node.since.max(version))
    }

    /// Removes the steps from runs that started with this version of the list or a later one. They may be deleted from
    /// the program when no earlier run is left.
    #[must_use]
    pub fn until(self, version: u16) -> Self {
        self.each(|node| node.until = node.until.min(version))
    }

    pub(crate) fn find(&self, name: &str, version: u16) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name && node.is_in(version))
    }

    /// Returns the successors of a step.
    pub(crate) fn successors(&self, place: usize) -> impl Iterator<Item = usize> {
        let later = self.nodes.iter().enumerate().skip(place + 1);
        later.filter(move |(_, node)| node.predecessors.contains(&place)).map(|(later, _)| later)
    }

    /// Returns `true` if one step comes before another.
    fn precedes(&self, earlier: usize, later: usize) -> bool {
        self.nodes[later].predecessors.iter().any(|place| *place == earlier || self.precedes(earlier, *place))
    }

    /// Returns every mistake in the list, in the versions up to this one.
    pub(crate) fn faults(&self, latest: u16) -> Vec<String> {
        let mut faults = Vec::new();
        if latest == 0 {
            faults.push("versions begin with 1".to_owned());
        }
        for version in 1..=latest {
            let mut names = BTreeSet::new();
            let active: Vec<usize> =
                (0..self.nodes.len()).filter(|place| self.nodes[*place].is_in(version)).collect();
            if active.is_empty() {
                faults.push(format!("version {version} has no steps"));
            }
            for node in active.iter().map(|place| &self.nodes[*place]) {
                if !names.insert(node.name) {
                    faults.push(format!("version {version} has two steps {}", node.name));
                }
            }
            let pivots: Vec<usize> =
                active.iter().copied().filter(|place| self.nodes[*place].is_pivot).collect();
            if let [first, second, ..] = pivots[..] {
                let (first, second) = (self.nodes[first].name, self.nodes[second].name);
                faults.push(format!("version {version} has two pivots, {first} and {second}"));
            } else if let [pivot] = pivots[..] {
                faults.extend(self.faults_of_pivot(pivot, &active));
            }
        }
        for node in self.nodes.iter().filter(|node| node.performed_at_start) {
            if !node.predecessors.iter().all(|place| self.nodes[*place].performed_at_start) {
                faults.push(format!("{} is performed at the start, but a step precedes it", node.name));
            }
        }
        for node in self.nodes.iter().filter(|node| node.retry.is_some_and(|retry| retry.max_attempts == 0)) {
            faults.push(format!("{} has no attempts", node.name));
        }
        let mut names = BTreeSet::new();
        let twice = self.deadlines.iter().filter(|deadline| !names.insert(deadline.name));
        faults.extend(twice.map(|deadline| format!("two deadlines are named {}", deadline.name)));
        faults.dedup();
        faults
    }

    fn faults_of_pivot(&self, pivot: usize, active: &[usize]) -> Vec<String> {
        let name = self.nodes[pivot].name;
        let mut faults = Vec::new();
        if self.nodes[pivot].request.is_none() {
            faults.push(format!("the pivot {name} waits for a signal"));
        }
        let beside = active.iter().copied().filter(|place| {
            *place != pivot && !self.precedes(*place, pivot) && !self.precedes(pivot, *place)
        });
        faults.extend(
            beside.map(|place| format!("{} runs in parallel to the pivot {name}", self.nodes[place].name)),
        );
        let open = self.deadlines.iter().filter(|deadline| {
            let holds = deadline.nodes.contains(&pivot);
            holds && deadline.nodes.clone().any(|place| self.precedes(pivot, place))
        });
        faults.extend(open.map(|deadline| {
            format!("the deadline {} includes the pivot {name} and steps after it", deadline.name)
        }));
        faults
    }
}

/// One line for each step and each deadline, without conditions, which are code.
impl<I> fmt::Display for Steps<I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for node in &self.nodes {
            write!(f, "{}", node.name)?;
            if !node.predecessors.is_empty() {
                let names: Vec<_> = node.predecessors.iter().map(|place| self.nodes[*place].name).collect();
                write!(f, " after {}", names.join(", "))?;
            }
            match &node.target {
                Some((queue, command)) => write!(f, ": {command} to {}", queue.name())?,
                None => write!(f, ": signal")?,
            }
            for (flag, is_set) in [
                ("conditional", !node.conditions.is_empty()),
                ("without undo", node.target.is_some() && !node.has_undo),
                ("undone in doubt", node.in_doubt == InDoubt::Undo),
                ("pivot", node.is_pivot),
                ("performed at start", node.performed_at_start),
            ] {
                if is_set {
                    write!(f, ", {flag}")?;
                }
            }
            if let Some(RetryPolicy { max_attempts, initial_interval, max_interval }) = node.retry {
                write!(f, ", {max_attempts} attempts every {initial_interval:#} to {max_interval:#}")?;
            }
            if node.since > 1 {
                write!(f, ", since version {}", node.since)?;
            }
            if node.until < u16::MAX {
                write!(f, ", until version {}", node.until)?;
            }
            writeln!(f)?;
        }
        for Deadline { name, within, nodes } in &self.deadlines {
            let names: Vec<_> = self.nodes[nodes.clone()].iter().map(|node| node.name).collect();
            writeln!(f, "deadline {name} of {within:#}: {}", names.join(", "))?;
        }
        Ok(())
    }
}
