//! Restores of the database, the ledger, or both to an earlier time, while the queues and the uploaded files stay as
//! they are.
//!
//! All workers stop, the stores are replaced, one worker follows the runbook ([`Workload::after_restore`]), and then
//! the other workers start again. The restore undoes all changes after the backup, and the checks forget these changes
//! as well.
//!
//! [`Workload::after_restore`]: crate::Workload::after_restore

mod world;

use std::any::Any;
use std::collections::BTreeMap;
use std::time::Duration;

use messages::PartitionKey;

use crate::rng::Rng;

/// The first wait of an operator before a command that has not succeeded for all partitions is repeated.
pub(crate) const AGAIN: Duration = Duration::from_secs(60);
/// The longest wait between two attempts of the operator.
pub(crate) const MAX_AGAIN: Duration = Duration::from_secs(3_600);

const DATABASE: &str = "the database is restored alone";
const LEDGER: &str = "the ledger is restored alone";
const BOTH: &str = "database and ledger are restored";

/// The situations that a workload with restores has to meet in some mode.
pub(crate) const SITUATIONS: [&str; 3] = [DATABASE, LEDGER, BOTH];

/// The stores that are restored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RestoredStores {
    /// The database, with the memory of processed messages in optimistic mode.
    Database,
    /// The ledger, with the memory of processed messages.
    Ledger,
    /// Both.
    Both,
}

impl RestoredStores {
    /// Returns `true` if the database is restored.
    pub fn has_database(self) -> bool {
        self != Self::Ledger
    }

    fn has_ledger(self) -> bool {
        self != Self::Database
    }
}

/// The task of the worker that handles a restore.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Task {
    /// The steps of the runbook before the functions start again.
    Settle,
    /// The check for data that nothing refers to, once everything is at rest.
    Check,
}

/// A change of the workers, which the world cannot make by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shift {
    /// All workers stop, and the stores are restored.
    Stop,
    /// The workers start again.
    Resume,
}

/// The restore of a schedule.
#[derive(Default)]
pub(crate) struct Restores {
    /// The planned restore.
    planned: Option<RestoredStores>,
    /// The steps of the backup and of the restore, unless they happen at certain times.
    steps: Option<(u64, u64)>,
    rng: Option<Rng>,
    /// A backup, until it is restored.
    backup: Option<Box<dyn Any + Send>>,
    done: Option<RestoredStores>,
    /// Partitions that had ended at the time of the backup, with their versions.
    ended: BTreeMap<PartitionKey, u64>,
    pub(crate) task: Option<Task>,
    pub(crate) shift: Option<Shift>,
}
