//! The choice of the next event.

use std::task::Waker;

use crate::coverage::Fault;
use crate::options::Invariant;
use crate::point::{Grant, Kind, Point};
use crate::restore::Shift;
use crate::world::{Occasion, RETRIER_DIES, World};

/// A wait after which dead letters may have expired.
const LONG_MS: u64 = 10 * 24 * 3_600_000;

/// The action of a step after the borrow of the world has ended.
pub(crate) enum Next {
    /// Wake and poll a worker.
    Poll(usize, Waker),
    /// Drop a worker.
    Crash(usize),
    /// Start a worker.
    Start(usize),
    /// Drop a worker and start it.
    Replace(usize),
    /// Drop all workers, restore the stores, and start the worker that handles a restore.
    Restore,
    /// Start all workers again after a restore.
    Resume,
    /// No further action.
    Nothing,
    /// No event remains.
    Rest,
}

/// The possible next events.
enum Candidate {
    Point(usize),
    Occasion(usize),
}

impl World {
    /// Chooses the next event.
    pub(crate) fn step(&mut self, sticky: u64, last: usize) -> Next {
        self.stats.steps += 1;
        if self.violation.is_some() {
            return Next::Rest;
        }
        if self.stats.steps > self.config.max_steps {
            let (steps, busiest) = (self.config.max_steps, self.queues.busiest());
            let why = busiest.map(|message| format!("; most often received: {message}")).unwrap_or_default();
            self.violate(Invariant::Quiescence, || format!("no rest after {steps} steps{why}"));
            return Next::Rest;
        }
        self.advance_restore();
        match self.restores.shift.take() {
            Some(Shift::Stop) => return Next::Restore,
            Some(Shift::Resume) => return Next::Resume,
            None => {}
        }
        match self.choose(sticky, last) {
            Some(Candidate::Point(index)) => self.go_on(index),
            Some(Candidate::Occasion(index)) => self.happen(index),
            None => match self.next_time() {
                Some(time) => {
                    if !self.is_tidied_before(time) {
                        self.now = time;
                    }
                    Next::Nothing
                }
                None => Next::Rest,
            },
        }
    }

    /// Returns `true` if an operator redrives dead letters first, because they are kept for two weeks and the next
    /// event is later.
    fn is_tidied_before(&mut self, time: u64) -> bool {
        if time.saturating_sub(self.now) < LONG_MS {
            return false;
        }
        self.check_dead_letters();
        self.violation.is_none() && self.redrive()
    }

    fn choose(&mut self, sticky: u64, last: usize) -> Option<Candidate> {
        let now = self.now;
        let open =
            self.points.waiting().filter(|(_, point)| point.not_before <= now && self.is_open(point.kind));
        let mut candidates: Vec<(Option<usize>, Candidate)> =
            open.map(|(index, point)| (Some(point.process), Candidate::Point(index))).collect();
        let due = self.occasions.iter().enumerate().filter(|(_, (at, _))| *at <= now);
        candidates.extend(due.map(|(index, _)| (None, Candidate::Occasion(index))));
        if candidates.iter().any(|(process, _)| *process == Some(last)) && self.rng.percent(sticky) {
            candidates.retain(|(process, _)| *process == Some(last));
        }
        if candidates.is_empty() {
            return None;
        }
        let chosen = self.rng.index(candidates.len());
        Some(candidates.swap_remove(chosen).1)
    }

    /// Returns the time of the next event that is not yet possible.
    fn next_time(&self) -> Option<u64> {
        let point = |(_, point): (usize, &Point)| Some(self.opens_at(point.kind)?.max(point.not_before));
        let points = self.points.waiting().filter_map(point);
        points.chain(self.occasions.iter().map(|(at, _)| *at)).min()
    }

    /// Resumes a worker, or applies a fault to it.
    fn go_on(&mut self, index: usize) -> Next {
        let (process, kind) = (self.points.at(index).process, self.points.at(index).kind);
        self.acting = Some(process);
        self.now += self.rng.below(8);
        let Kind::Call(call, phase) = kind else {
            return Next::Poll(process, self.points.grant(index, Grant::Go));
        };
        if let Some(for_ms) = self.plan.stall_ms(call, phase) {
            self.note(|| format!("{:<16} stands still", call.name()));
            self.coverage.count(call, phase, Fault::Delay);
            self.points.hold(index, self.now + for_ms);
            return Next::Nothing;
        }
        let fault = match self.retrier_dies(process) {
            true => Fault::Crash,
            false => self.plan.strike(&mut self.rng, call, phase, self.now),
        };
        let fault = match fault {
            Fault::None if self.stale_reads.answers(process, call, phase) && self.plan.is_active() => {
                Fault::Stale
            }
            fault => fault,
        };
        self.coverage.count(call, phase, fault);
        if fault != Fault::None {
            self.stats.faults += 1;
            self.stats.outages += u64::from(fault == Fault::Outage);
            self.note(|| format!("{:<16} {} {}", call.name(), fault.name(), phase.name()));
        }
        match fault {
            Fault::None => Next::Poll(process, self.points.grant(index, Grant::Go)),
            Fault::Fail | Fault::Outage => Next::Poll(process, self.points.grant(index, Grant::Fail)),
            Fault::Late => Next::Poll(process, self.points.grant(index, Grant::Late)),
            Fault::Twice => Next::Poll(process, self.points.grant(index, Grant::Twice)),
            Fault::Stale => Next::Poll(process, self.points.grant(index, Grant::Stale)),
            Fault::Delay => {
                let until = self.now + self.plan.delay_ms(&mut self.rng, self.hides_ms[process]);
                self.points.hold(index, until);
                Next::Nothing
            }
            Fault::Crash => {
                let at = self.now + self.rng.below(5_000);
                if self.restarts[process] {
                    self.at(at, Occasion::Restart(process));
                }
                Next::Crash(process)
            }
        }
    }

    /// Decides whether a worker that runs the steps of an operation on failures crashes now.
    fn retrier_dies(&mut self, process: usize) -> bool {
        let dies = self.retriers.contains(&process) && self.retriers_die > 0 && self.more.one_in(4);
        if dies {
            self.retriers_die -= 1;
            self.coverage.meet(RETRIER_DIES);
        }
        dies
    }

    fn happen(&mut self, index: usize) -> Next {
        let (_, occasion) = self.occasions.swap_remove(index);
        self.acting = None;
        match occasion {
            Occasion::Restart(process) => return Next::Start(process),
            Occasion::Replace(process) => {
                self.note(|| "a worker is replaced".to_owned());
                return Next::Replace(process);
            }
            Occasion::Replay => self.send_any_again(),
            Occasion::Act(act) | Occasion::Arrive(_, act) => act(self),
        }
        Next::Nothing
    }
}
