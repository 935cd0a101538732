//! The faults that occurred at each call and phase, and the situations that occurred.

use std::collections::BTreeMap;
use std::fmt;

/// A call of a port of the engine or of the workload, at which the scheduler takes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Call {
    place: usize,
    name: &'static str,
    /// `true` if the port can report a failure.
    pub(crate) may_fail: bool,
    /// `true` if the call changes something, so that it may arrive after its caller stopped waiting.
    pub(crate) may_be_late: bool,
    /// `true` if its client may send it again after a timeout, so that both requests take effect.
    pub(crate) may_come_twice: bool,
    /// `true` if the call may be answered with earlier data.
    pub(crate) may_be_stale: bool,
    /// `true` if the call may be answered with earlier data until its worker has made a linearizable read or a write.
    pub(crate) may_be_earlier: bool,
    /// `true` if its answer is the latest data, and so are all later answers to its worker.
    pub(crate) is_linearizable: bool,
    /// `true` if few schedules make the call, so that its faults are more frequent.
    pub(crate) is_rare: bool,
    /// `true` if the call belongs to an attempt at a partition, in which workers overtake each other.
    pub(crate) is_of_attempt: bool,
    has_before: bool,
    has_after: bool,
}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $text:literal $(($($flag:ident),*))?,)*) => {
        #[allow(non_camel_case_types, clippy::upper_case_acronyms)]
        enum Place { $($name,)* Own }

        impl Call {
            $($(#[$doc])* pub const $name: Self =
                Self::new(Place::$name as usize, $text)$($(.$flag())*)?;)*

            /// The calls of the engine.
            pub const ENGINE: &[Self] = &[$(Self::$name,)*];
        }
    };
}

calls! {
    /// Claiming a partition.
    LEDGER_CLAIM = "ledger.claim" (late, once, of_attempt),
    /// Releasing a partition.
    LEDGER_RELEASE = "ledger.release" (late, once, of_attempt),
    /// Granting tokens to a partition.
    LEDGER_GRANT = "ledger.grant" (late, once, rare),
    /// Revoking tokens of a partition.
    LEDGER_REVOKE = "ledger.revoke" (late, rare),
    /// Looking up whether a token is granted.
    LEDGER_CHECK = "ledger.check" (rare),
    /// Reading saga documents.
    SAGA_LOAD = "saga.load" (stale, of_attempt),
    /// Reading the latest version of a saga document.
    SAGA_LOAD_LATEST = "saga.load_latest" (rare, of_attempt, linearizable),
    /// Writing saga documents.
    SAGA_PERSIST = "saga.persist" (late, of_attempt),
    /// Settling entries in the outboxes of sagas.
    SAGA_SETTLE = "saga.settle" (late),
    /// Listing sagas with overdue effects.
    SAGA_DUE = "saga.due" (earlier),
    /// Claiming the overdue effects of a saga.
    SAGA_CLAIM = "saga.claim" (late),
    /// Setting unreadable entries aside.
    OUTBOX_TREAT = "outbox.treat" (rare),
    /// Committing a transactional session.
    SESSION_COMMIT = "session.commit" (late),
    /// Looking up a session.
    SESSION_FIND = "session.find" (linearizable),
    /// Abandoning a session.
    SESSION_BURY = "session.bury" (late, rare),
    /// Listing sessions with overdue effects.
    SESSION_DUE = "session.due" (earlier),
    /// Claiming the overdue effects of a session.
    SESSION_CLAIM = "session.claim" (late),
    /// Settling entries in the outbox of a session.
    SESSION_SETTLE = "session.settle" (late, rare),
    /// Reading an application's record.
    RECORDS_READ = "records.read" (linearizable),
    /// Writing views.
    VIEWS_WRITE = "views.write" (late),
    /// Reading a view.
    VIEWS_READ = "views.read" (earlier),
    /// Sending messages.
    QUEUE_SEND = "queue.send" (late, of_attempt),
    /// Receiving messages. A fault before this call loses nothing.
    QUEUE_RECEIVE = "queue.receive" (never_fails, only_after),
    /// Reporting the outcome of a message to its queue.
    QUEUE_ANSWER = "queue.answer" (late),
    /// Checking whether a message was processed.
    PROCESSED_LOOK = "processed.look",
    /// Recording that a message was processed.
    PROCESSED_REMEMBER = "processed.remember" (late, rare),
    /// Waiting. A wait is never repeated.
    HOST_SLEEP = "host.sleep" (never_fails, only_before),
    /// Writing a record of an instance.
    RECORDS_ADVANCE = "records.advance" (late),
}

impl Call {
    const fn new(place: usize, name: &'static str) -> Self {
        Self {
            place,
            name,
            may_fail: true,
            may_be_late: false,
            may_come_twice: false,
            may_be_stale: false,
            may_be_earlier: false,
            is_linearizable: false,
            is_rare: false,
            is_of_attempt: false,
            has_before: true,
            has_after: true,
        }
    }

    /// Returns the workload's call with this index in [`Workload::calls`](crate::Workload::calls).
    pub const fn own(place: usize, name: &'static str) -> Self {
        Self::new(Place::Own as usize + place, name)
    }

    /// Returns a call that changes something. It may arrive after its caller received an error, and it may arrive
    /// twice.
    #[must_use]
    pub const fn late(self) -> Self {
        Self { may_be_late: true, may_come_twice: true, ..self }
    }

    /// Returns a call that its client never repeats by itself.
    const fn once(self) -> Self {
        Self { may_come_twice: false, ..self }
    }

    const fn stale(self) -> Self {
        Self { may_be_stale: true, ..self }
    }

    /// A call that may be answered with earlier data, as by a deposed primary, until its worker has made a linearizable
    /// read or a write. It is made with [`Access::read`](crate::Access::read).
    #[must_use]
    pub const fn earlier(self) -> Self {
        Self { may_be_earlier: true, ..self }
    }

    /// A call that a deposed primary cannot answer. All later reads of its worker are answered with the latest data.
    #[must_use]
    pub const fn linearizable(self) -> Self {
        Self { is_linearizable: true, ..self }
    }

    /// `true` if an answer proves that its worker has reached the latest primary.
    pub(crate) fn is_latest(self) -> bool {
        self.is_linearizable || self.may_be_late && self.service() == "database"
    }

    /// Marks a call that few schedules make.
    #[must_use]
    pub const fn rare(self) -> Self {
        Self { is_rare: true, ..self }
    }

    const fn of_attempt(self) -> Self {
        Self { is_of_attempt: true, ..self }
    }

    const fn never_fails(self) -> Self {
        Self { may_fail: false, ..self }
    }

    const fn only_before(self) -> Self {
        Self { has_after: false, ..self }
    }

    const fn only_after(self) -> Self {
        Self { has_before: false, ..self }
    }

    /// Returns its name.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns the name of the service that performs the call. All calls of a service fail together.
    pub(crate) fn service(self) -> &'static str {
        match self.name.split_once('.').map_or(self.name, |(port, _)| port) {
            "saga" | "session" | "outbox" | "records" | "views" | "studies" | "reading" => "database",
            "ledger" | "processed" => "ledger",
            port => port,
        }
    }

    /// Returns its index among the calls of the engine, followed by those of the workload.
    pub(crate) fn place(self) -> usize {
        self.place
    }

    fn has(self, phase: Phase) -> bool {
        match phase {
            Phase::Before => self.has_before,
            Phase::After => self.has_after,
        }
    }
}

/// A side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// The call has not been performed.
    Before,
    /// The call was performed, and the caller does not know it yet.
    After,
}

impl Phase {
    /// The list of both phases.
    pub const ALL: [Self; 2] = [Self::Before, Self::After];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// A fault at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// No fault.
    None,
    /// The worker crashes and loses its memory.
    Crash,
    /// The call reports an error, which is wrong after it was performed.
    Fail,
    /// The call reports an error, and is performed later.
    Late,
    /// The call is slow; others continue.
    Delay,
    /// The client sends the request again after a timeout, and both requests take effect. The caller knows of only one
    /// request.
    Twice,
    /// The call is answered with earlier data, as by a deposed primary that does not know its successor.
    Stale,
    /// The service is unavailable, and all its calls fail.
    Outage,
}

impl Fault {
    /// All faults.
    pub const ALL: [Self; 8] = [
        Self::None,
        Self::Crash,
        Self::Fail,
        Self::Late,
        Self::Delay,
        Self::Twice,
        Self::Stale,
        Self::Outage,
    ];

    /// The faults of single calls, chosen at random.
    pub(crate) const AT_CALLS: [Self; 5] = [Self::Crash, Self::Fail, Self::Late, Self::Delay, Self::Stale];

    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Crash => "crash",
            Self::Fail => "fail",
            Self::Late => "late",
            Self::Delay => "delay",
            Self::Twice => "twice",
            Self::Stale => "stale",
            Self::Outage => "outage",
        }
    }
}

const PHASES: usize = Phase::ALL.len();
const FAULTS: usize = Fault::ALL.len();

/// The number of occurrences of each fault at each call and phase, and of each situation of the workload.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The calls that a run can reach.
    calls: Vec<Call>,
    /// By the index of the call.
    counts: Vec<u64>,
    situations: BTreeMap<&'static str, u64>,
}

impl Coverage {
    pub(crate) fn new(
        calls: Vec<Call>,
        general: impl Iterator<Item = &'static str>,
        situations: &[&'static str],
    ) -> Self {
        let situations = general.chain(situations.iter().copied()).map(|situation| (situation, 0)).collect();
        Self { calls, counts: Vec::new(), situations }
    }

    pub(crate) fn meet(&mut self, situation: &'static str) {
        *self.situations.entry(situation).or_default() += 1;
    }

    /// Returns the situations of the workload that did not occur.
    pub fn unmet(&self) -> Vec<&'static str> {
        let unmet = self.situations.iter().filter(|(_, count)| **count == 0);
        unmet.map(|(situation, _)| *situation).collect()
    }

    fn place(call: Call, phase: Phase, fault: Fault) -> usize {
        (call.place() * PHASES + phase as usize) * FAULTS + fault as usize
    }

    pub(crate) fn count(&mut self, call: Call, phase: Phase, fault: Fault) {
        let place = Self::place(call, phase, fault);
        if self.counts.len() <= place {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] += 1;
    }

    /// Returns the number of occurrences.
    pub fn of(&self, call: Call, phase: Phase, fault: Fault) -> u64 {
        self.counts.get(Self::place(call, phase, fault)).copied().unwrap_or(0)
    }

    /// Adds the coverage of another run of the same workload.
    pub fn add(&mut self, other: &Self) {
        if self.calls.is_empty() {
            self.calls.clone_from(&other.calls);
        }
        if self.counts.len() < other.counts.len() {
            self.counts.resize(other.counts.len(), 0);
        }
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        for (situation, count) in &other.situations {
            *self.situations.entry(situation).or_default() += count;
        }
    }

    /// Returns the points that a run can reach and at which this fault is possible, but did not occur.
    pub fn missed(&self, fault: Fault) -> Vec<(Call, Phase)> {
        let points = self.calls.iter().flat_map(|call| Phase::ALL.map(|phase| (*call, phase)));
        points
            .filter(|(call, phase)| possible(*call, *phase, fault) && self.of(*call, *phase, fault) == 0)
            .collect()
    }
}

/// Returns `true` if a fault is possible at a point.
pub(crate) fn possible(call: Call, phase: Phase, fault: Fault) -> bool {
    call.has(phase)
        && match fault {
            Fault::None | Fault::Crash | Fault::Delay => true,
            Fault::Fail => call.may_fail,
            Fault::Late => phase == Phase::Before && call.may_be_late,
            Fault::Twice => phase == Phase::Before && call.may_come_twice,
            Fault::Stale => phase == Phase::Before && (call.may_be_stale || call.may_be_earlier),
            Fault::Outage => phase == Phase::Before && call.may_fail && !call.is_rare,
        }
}

impl fmt::Debug for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Prints a line for each call and phase, and one for each situation.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<20} {:<7}", "call", "phase")?;
        for fault in Fault::ALL {
            write!(f, " {:>11}", fault.name())?;
        }
        for call in &self.calls {
            for phase in Phase::ALL {
                if !possible(*call, phase, Fault::None) {
                    continue;
                }
                write!(f, "\n{:<20} {:<7}", call.name(), phase.name())?;
                for fault in Fault::ALL {
                    match possible(*call, phase, fault) {
                        true => write!(f, " {:>11}", self.of(*call, phase, fault))?,
                        false => write!(f, " {:>11}", "-")?,
                    }
                }
            }
        }
        for (situation, count) in &self.situations {
            write!(f, "\n{count:>11} times {situation}")?;
        }
        Ok(())
    }
}
