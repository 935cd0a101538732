//! Stale reads: what a deposed primary returns until its client has reached the new one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use messages::PartitionKey;
use outbox::{Owner, View};

use crate::coverage::{Call, Phase};
use crate::ports::failures::FailureTables;
use crate::rng::Rng;

/// Derives the generator of these choices from the seed of a schedule, so that they do not change the other choices.
const STALE_READS: u64 = 0x5851_F42D_4C95_7F2D;

/// The number of earlier states from which an answer may be chosen.
const EARLIER: usize = 3;

/// The number of calls that may be answered with earlier failures.
const EARLIER_FAILURES: u64 = 2;

/// The views of all partitions at one time.
type Views = BTreeMap<PartitionKey, View>;

/// The earlier data of one schedule.
pub(crate) struct StaleReads {
    rng: Rng,
    /// `true` if reads of this schedule are answered with earlier data.
    is_read: bool,
    /// The workers that have reached the latest primary with their current message.
    current: BTreeSet<usize>,
    views: VecDeque<Views>,
    failures: VecDeque<FailureTables>,
    /// The number of calls that are still answered with earlier failures. An operator repeats an operation only a few
    /// times.
    spare_failures: u64,
    /// The earlier lists of overdue effects, by the index of their call.
    due: BTreeMap<usize, VecDeque<Vec<Owner>>>,
}

impl StaleReads {
    pub(crate) fn new(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ STALE_READS);
        let is_read = rng.one_in(6);
        Self {
            rng,
            is_read,
            current: BTreeSet::new(),
            views: VecDeque::new(),
            failures: VecDeque::new(),
            spare_failures: EARLIER_FAILURES,
            due: BTreeMap::new(),
        }
    }

    /// Decides whether a call of this worker is answered with earlier data.
    pub(crate) fn answers(&mut self, process: usize, call: Call, phase: Phase) -> bool {
        if phase == Phase::After && call.is_latest() {
            self.current.insert(process);
        }
        let may_be = self.is_read && phase == Phase::Before && call.may_be_earlier;
        may_be && !self.current.contains(&process) && self.rng.one_in(3)
    }

    /// Starts work on another message, for which a worker may read from another deposed primary.
    pub(crate) fn begin(&mut self, process: usize) {
        self.current.remove(&process);
    }

    /// Forgets all earlier data, because the database was replaced.
    pub(crate) fn forget(&mut self) {
        self.current.clear();
        self.views.clear();
        self.failures.clear();
        self.due.clear();
    }

    /// Records the views before a change.
    pub(crate) fn keep_views(&mut self, views: &Views) {
        if self.is_read {
            keep(&mut self.views, views.clone());
        }
    }

    /// Returns earlier views, if any.
    pub(crate) fn views(&mut self) -> Option<&Views> {
        let index = (!self.views.is_empty()).then(|| self.rng.index(self.views.len()))?;
        self.views.get(index)
    }

    /// Remembers the failures before a change. The worker makes the change at the latest primary.
    pub(crate) fn keep_failures(&mut self, process: Option<usize>, failures: &FailureTables) {
        self.current.extend(process);
        if self.is_read {
            keep(&mut self.failures, failures.clone());
        }
    }

    /// Returns earlier failures if a read of this worker is answered with them.
    pub(crate) fn failures(&mut self, process: Option<usize>) -> Option<&FailureTables> {
        let is_current = process.is_none_or(|process| self.current.contains(&process));
        let may_be = !is_current && self.spare_failures > 0 && !self.failures.is_empty();
        if !may_be || !self.rng.one_in(3) {
            return None;
        }
        self.spare_failures -= 1;
        let index = self.rng.index(self.failures.len());
        self.failures.get(index)
    }

    /// Records a list of overdue effects. Returns an earlier list if `is_stale` is set and such a list exists.
    pub(crate) fn due(&mut self, call: Call, latest: Vec<Owner>, is_stale: bool) -> Vec<Owner> {
        if !self.is_read {
            return latest;
        }
        let known = self.due.entry(call.place()).or_default();
        if is_stale && !known.is_empty() {
            return known[self.rng.index(known.len())].clone();
        }
        keep(known, latest.clone());
        latest
    }
}

fn keep<T>(all: &mut VecDeque<T>, value: T) {
    all.push_back(value);
    if all.len() > EARLIER {
        all.pop_front();
    }
}
