//! The operator who pauses, resumes and terminates instances, and sends them events.
//!
//! Only some schedules have an operator. The operator's choices have their own random generator, so that other
//! schedules do not change. The tasks are part of the world: a crashed operator continues with its current task, as an
//! operator repeats a command.

pub(crate) mod actor;
mod world;

use std::collections::BTreeSet;

use messages::{PartitionKey, SessionId};
use saga::{Control, OperatorEvent};

use crate::rng::Rng;

/// Derives the generator of these choices from the seed of a schedule.
const CONTROL: u64 = 0x2545_F491_4F6E_1467;
/// The average number of schedules for each one with an operator.
const ONE_IN: u64 = 6;
/// The time within which an operator acts, from the start or from the last action.
const ACTS_WITHIN_MS: u64 = 40_000;
/// The durations of a pause: a moment, longer than a timer or a lease, and hours.
const PAUSES_MS: [u64; 4] = [500, 20_000, 310_000, 5_400_000];

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
