//! A piece of work for the threads of the database, and its failure.

use messages::StoreError;
use messages::store::DiskRefused;
use rusqlite::Connection;

use crate::fault::{self, Fault};

/// The durability that a call waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// The write is on the disk, and so is everything that the read returned.
    Flushed,
    /// The write is committed: it survives the end of this process, but a power failure may undo it together with all
    /// later writes. This suffices for writes that no client learns of, or that are repeated anyway.
    Committed,
}

/// A piece of work with its type erased.
pub(crate) trait Work: Send {
    /// Returns the durability that its caller waits for.
    fn wait(&self) -> Durability;
    /// Runs the work. An error means that its changes must be rolled back.
    fn run(&mut self, db: &Connection) -> Result<(), WorkError>;
    /// Returns the result to the caller, once the outcome of the transaction is known.
    fn answer(self: Box<Self>, failed: Option<&WorkError>);
}

pub(crate) type BoxedWork = Box<dyn Work>;

/// The reason why a piece of work, or its transaction, failed.
pub(crate) struct WorkError {
    why: String,
    is_of_disk: bool,
}

impl WorkError {
    /// Returns a failure that is not caused by a full disk.
    pub(crate) fn because(why: String) -> Self {
        Self { why, is_of_disk: false }
    }

    pub(crate) fn while_doing(&self, doing: String) -> StoreError {
        if self.is_of_disk {
            StoreError::unavailable(doing, DiskRefused(self.why.clone()))
        } else {
            StoreError::unavailable(doing, self.why.clone())
        }
    }
}

impl From<rusqlite::Error> for WorkError {
    fn from(error: rusqlite::Error) -> Self {
        Self { why: error.to_string(), is_of_disk: fault::is_of_disk(&error) }
    }
}

impl From<&Fault> for WorkError {
    fn from(fault: &Fault) -> Self {
        Self { why: fault.to_string(), is_of_disk: fault.is_of_disk() }
    }
}
