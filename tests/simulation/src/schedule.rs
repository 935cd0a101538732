//! The executor: it decides, step by step, which worker continues and which faults occur.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::task::{Context, Waker};

use futures::future::BoxFuture;

use crate::actors::Role;
use crate::application::Application;
use crate::checks::ages;
use crate::choice::Next;
use crate::options::{Config, Invariant, Outcome};
use crate::port::Port;
use crate::restore::Task;
use crate::universe::Universe;
use crate::world::{Occasion, World};

/// The number of times that an operator redrives dead letters.
const REDRIVES: usize = 3;

pub(crate) struct Schedule {
    application: Arc<dyn Application>,
    universe: Universe,
    workers: Vec<Worker>,
    /// The percentage of steps in which the same worker continues.
    sticky: u64,
    last: usize,
}

struct Worker {
    role: Role,
    future: Option<BoxFuture<'static, ()>>,
}

impl Schedule {
    /// Returns the schedule of a seed.
    pub(crate) fn new(application: &Arc<dyn Application>, config: &Config, seed: u64) -> Self {
        let mut world = World::new(Arc::<dyn Application>::clone(application), config.clone(), seed);
        world.plan_restore(seed);
        world.plan_control(seed);
        let roles = world.roles();
        let rng = &mut world.rng;
        let sticky = rng.pick(&[0, 0, 50, 85]);
        let replays: Vec<u64> = (0..rng.below(4)).map(|_| rng.below(200_000)).collect();
        for at in replays {
            world.at(at, Occasion::Replay);
        }
        // This happens only in some schedules, so that most schedules remain short.
        if world.rng.one_in(10) {
            let at = world.rng.below(100_000);
            world.at(at, Occasion::Act(Box::new(World::damage)));
        }
        if world.rng.one_in(6) {
            let at = world.rng.below(20_000);
            world.at(at, Occasion::Act(Box::new(World::exhaust_entry)));
        }
        let mut count = 0;
        for (index, role) in roles.iter().enumerate() {
            let first = index == 0 || roles[index - 1].name() != role.name();
            count = if first { 1 } else { count + 1 };
            match role {
                Role::Retrier => {
                    world.clocks.add(&mut world.more);
                    world.retriers.push(index);
                }
                Role::Restorer => world.add_restorer(),
                Role::Controller => world.add_controller(),
                _ => world.clocks.add(&mut world.rng),
            }
            world.names.push(format!("{} {count}", role.name()));
            world.hides_ms.push(world.queues.hides_ms(role.queue()));
            world.restarts.push(role.restarts());
            world.runs_saga.push(world.sagas.contains(&role.name()));
        }
        world.replace_during_outage();
        let workers = roles.into_iter().map(|role| Worker { role, future: None }).collect();
        let application = Arc::clone(application);
        Self { application, universe: Universe::new(world), workers, sticky, last: usize::MAX }
    }

    /// Runs to the end, and then delivers duplicates.
    pub(crate) fn run(mut self) -> Outcome {
        self.start_all(|_| true);
        if self.come_to_rest() {
            self.universe.with(|world| {
                world.plan.stop(world.now);
                world.cancel_restore();
                world.acting = None;
                world.note(|| "everything is at rest".to_owned());
                world.damage.stop();
                world.check_dead_letters();
            });
            if self.redrive() && self.check_stored() {
                self.universe.with(|world| {
                    world.check_rest();
                    world.count_partitions();
                });
                // A restored ledger may admit duplicates of messages that ended partitions.
                if self.universe.with(|world| world.restored().is_none()) {
                    self.repeat_after_the_end();
                }
            }
        }
        // Dropping a worker accesses the world, so it must not be borrowed here.
        self.workers.clear();
        self.universe.with(|world| Outcome {
            violation: world.violation.take(),
            stats: world.stats,
            coverage: std::mem::take(&mut world.coverage),
            trace: std::mem::take(&mut world.trace),
        })
    }

    /// An operator redrives dead letters, repeatedly if they fail again. Returns `false` after a violation.
    fn redrive(&mut self) -> bool {
        for round in 1..=REDRIVES {
            if self.universe.with(|world| world.violation.is_some()) {
                return false;
            }
            if !self.universe.with(World::redrive) {
                return true;
            }
            if round == REDRIVES {
                // A duplicate of a dead letter is dead-lettered again.
                self.universe.with(|world| world.spare_copies = 0);
            }
            if !self.come_to_rest() {
                return false;
            }
        }
        true
    }

    /// After the end, some schedules have duplicates of different ages, and some have an operator who repeats actions.
    fn repeat_after_the_end(&mut self) {
        let age = self.universe.with(|world| {
            let ages = ages(world.duplicate_detection());
            let age = ages.get(world.rng.index(ages.len() + 1)).copied();
            age.filter(|_| world.violation.is_none())
        });
        let Some(age) = age else { return };
        let (before, again) = self.universe.with(|world| {
            world.now += age;
            world.only_repeats = true;
            let before = world.snapshot();
            let again = !world.redriven.is_empty() && world.rng.one_in(2);
            if again {
                world.redrive_again();
            } else {
                world.send_stale();
            }
            (before, again)
        });
        if self.come_to_rest() {
            self.universe.with(|world| {
                world.acting = None;
                world.check_unchanged(&before, again);
            });
        }
    }

    /// Runs until no event remains. Returns `false` after a violation.
    fn come_to_rest(&mut self) -> bool {
        loop {
            let (sticky, last) = (self.sticky, self.last);
            let next = self.universe.with(|world| world.step(sticky, last));
            match next {
                Next::Poll(index, waker) => {
                    self.last = index;
                    waker.wake();
                    self.poll(index);
                }
                Next::Crash(index) => self.workers[index].future = None,
                Next::Start(index) => self.start(index),
                Next::Replace(index) => {
                    self.workers[index].future = None;
                    self.start(index);
                }
                Next::Restore => self.restore(),
                Next::Resume => self.start_all(Role::restarts),
                Next::Nothing => {}
                Next::Rest => return self.universe.with(|world| world.violation.is_none()),
            }
        }
    }

    /// Starts workers of these types, except the worker that handles restores.
    fn start_all(&mut self, starts: impl Fn(&Role) -> bool) {
        for index in 0..self.workers.len() {
            let role = &self.workers[index].role;
            if starts(role) && !matches!(role, Role::Restorer) {
                self.start(index);
            }
        }
    }

    /// Stops all workers and restores the stores.
    fn restore(&mut self) {
        // Dropping a worker accesses the world, so it must not be borrowed here.
        self.workers.iter_mut().for_each(|worker| worker.future = None);
        self.universe.with(World::restore);
        self.start_restorer();
    }

    fn start_restorer(&mut self) {
        let index = self.workers.iter().position(|worker| matches!(worker.role, Role::Restorer));
        index.into_iter().for_each(|index| self.start(index));
    }

    /// Runs the check for data that nothing refers to, if there was a restore. Returns `false` after a violation.
    fn check_stored(&mut self) -> bool {
        let is_restored = self.universe.with(|world| {
            world.restores.task = world.restored().map(|_| Task::Check);
            world.restores.task.is_some()
        });
        if is_restored {
            self.start_restorer();
        }
        !is_restored || self.come_to_rest()
    }

    fn start(&mut self, index: usize) {
        let port = Port { universe: self.universe.clone(), process: index };
        self.workers[index].future =
            Some(self.workers[index].role.start(port, Arc::clone(&self.application)));
        self.poll(index);
    }

    fn poll(&mut self, index: usize) {
        let Some(future) = self.workers[index].future.as_mut() else { return };
        self.universe.with(|world| world.acting = Some(index));
        let mut context = Context::from_waker(Waker::noop());
        match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context))) {
            Ok(poll) if poll.is_pending() => {}
            Ok(_) => self.workers[index].future = None,
            Err(panic) => {
                let text = panic.downcast_ref::<String>().cloned();
                let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
                let detail = || format!("a function panicked: {}", text.unwrap_or_default());
                self.universe.with(|world| world.violate(Invariant::Answers, detail));
            }
        }
    }
}
