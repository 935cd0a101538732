//! Which calls were met in which phase by which fault.

use std::fmt;

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident = $text:literal,)*) => {
        /// Every call of a port at which the scheduler takes over.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Call {
            $($(#[$doc])* $name,)*
        }

        impl Call {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// Its name, as in the embedded adapter.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

calls! {
    /// Taking a partition.
    LedgerClaim = "ledger.claim",
    /// Giving a partition back.
    LedgerRelease = "ledger.release",
    /// Putting tokens into a partition.
    LedgerGrant = "ledger.grant",
    /// Reading saga documents.
    SagaLoad = "saga.load",
    /// Writing saga documents.
    SagaPersist = "saga.persist",
    /// Clearing the outboxes of sagas.
    SagaSettle = "saga.settle",
    /// Looking for sagas with overdue effects.
    SagaDue = "saga.due",
    /// Claiming the overdue effects of a saga.
    SagaClaim = "saga.claim",
    /// Committing a transactional session.
    SessionCommit = "session.commit",
    /// Looking a session up.
    SessionFind = "session.find",
    /// Giving a session up.
    SessionBury = "session.bury",
    /// Looking for sessions with overdue effects.
    SessionDue = "session.due",
    /// Claiming the overdue effects of a session.
    SessionClaim = "session.claim",
    /// Clearing the outbox of a session.
    SessionSettle = "session.settle",
    /// Writing jobs.
    JobsWrite = "jobs.write",
    /// Reading a job.
    JobsRead = "jobs.read",
    /// Sending messages.
    QueueSend = "queue.send",
    /// Receiving messages.
    QueueReceive = "queue.receive",
    /// Telling a queue what became of a message.
    QueueSettle = "queue.settle",
    /// Looking an object up.
    ObjectsHead = "objects.head",
    /// Reading an object.
    ObjectsOpen = "objects.open",
    /// Storing studies.
    StudiesStore = "studies.store",
    /// Asking how far a file is stored.
    StudiesStored = "studies.stored",
    /// Remembering that a file was read to its end.
    StudiesFinish = "studies.finish",
    /// Reading which files were, and what their studies are recognised by.
    StudiesRead = "studies.read",
    /// Marking duplicates.
    StudiesMark = "studies.mark",
    /// Removing the studies of a file.
    StudiesDiscard = "studies.discard",
    /// Asking whether a message was processed.
    ProcessedLook = "processed.look",
    /// Remembering that a message was processed.
    ProcessedRemember = "processed.remember",
    /// Waiting.
    HostSleep = "host.sleep",
}

impl Call {
    /// Whether it changes something, so that it may arrive after its caller has given up.
    pub(crate) fn may_be_late(self) -> bool {
        matches!(
            self,
            Self::LedgerClaim
                | Self::LedgerRelease
                | Self::SagaPersist
                | Self::SagaSettle
                | Self::SessionCommit
                | Self::SessionSettle
                | Self::JobsWrite
                | Self::QueueSend
        )
    }

    /// Whether the port has a way to report a failure.
    pub(crate) fn may_fail(self) -> bool {
        !matches!(self, Self::HostSleep | Self::QueueReceive)
    }
}

/// Which side of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Phase {
    /// Nothing was performed yet.
    Before,
    /// It was performed, and the caller does not know yet.
    After,
}

impl Phase {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Before, Self::After];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::After => "after",
        }
    }
}

/// What happens at a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Fault {
    /// Nothing special.
    None,
    /// The worker is gone, with everything it had in memory.
    Crash,
    /// The call reports an error. After it was performed, that is a lie.
    Fail,
    /// The call reports an error, and is performed later.
    Late,
    /// The call takes long; others go on.
    Delay,
}

impl Fault {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::None, Self::Crash, Self::Fail, Self::Late, Self::Delay];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "nothing",
            Self::Crash => "crash",
            Self::Fail => "fail",
            Self::Late => "late",
            Self::Delay => "delay",
        }
    }
}

const CALLS: usize = Call::ALL.len();
const PHASES: usize = Phase::ALL.len();
const FAULTS: usize = Fault::ALL.len();

/// How often each call was met in each phase by each fault.
#[derive(Clone, PartialEq, Eq)]
pub struct Coverage([u64; CALLS * PHASES * FAULTS]);

impl Default for Coverage {
    fn default() -> Self {
        Self([0; CALLS * PHASES * FAULTS])
    }
}

impl Coverage {
    fn place(call: Call, phase: Phase, fault: Fault) -> usize {
        (call as usize * PHASES + phase as usize) * FAULTS + fault as usize
    }

    pub(crate) fn count(&mut self, call: Call, phase: Phase, fault: Fault) {
        self.0[Self::place(call, phase, fault)] += 1;
    }

    /// How often that was met.
    pub fn of(&self, call: Call, phase: Phase, fault: Fault) -> u64 {
        self.0[Self::place(call, phase, fault)]
    }

    /// Adds what another run met.
    pub fn add(&mut self, other: &Self) {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine += theirs;
        }
    }

    /// Every point that a run can reach and this fault can befall, but did not.
    pub fn missed(&self, fault: Fault) -> Vec<(Call, Phase)> {
        let points = Call::ALL.iter().flat_map(|call| Phase::ALL.map(|phase| (*call, phase)));
        points
            .filter(|(call, phase)| possible(*call, *phase, fault) && self.of(*call, *phase, fault) == 0)
            .collect()
    }
}

/// Whether a fault can befall a point. Nobody waits twice for a sleep, and before a message is received there is
/// nothing to lose.
pub(crate) fn possible(call: Call, phase: Phase, fault: Fault) -> bool {
    let exists = match call {
        Call::HostSleep => phase == Phase::Before,
        Call::QueueReceive => phase == Phase::After,
        _ => true,
    };
    exists
        && match fault {
            Fault::None | Fault::Crash | Fault::Delay => true,
            Fault::Fail => call.may_fail(),
            Fault::Late => phase == Phase::Before && call.may_be_late(),
        }
}

impl fmt::Debug for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// One line for each call and phase.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:<20} {:<7}", "call", "phase")?;
        for fault in Fault::ALL {
            write!(f, " {:>11}", fault.name())?;
        }
        for call in Call::ALL {
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
        Ok(())
    }
}
