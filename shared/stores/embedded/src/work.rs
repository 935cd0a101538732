//! A piece of work for the threads of the database, and its failure.

use messages::StoreError;
use messages::store::DiskRefused;
use rusqlite::Connection;

use crate::fault::{self, Fault};

/// What an answer waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Durability {
    /// A write is on the disk, and so is all that a read has seen.
    Flushed,
    /// A write is committed: it outlives this process, and a power cut may undo it with all that came after it. For
    /// what nobody outside is told, or what is simply done again.
    Committed,
}

/// A piece of work with its type erased.
pub(crate) trait Work: Send {
    /// What its answer waits for.
    fn wait(&self) -> Durability;
    /// Does it; an error says why what it did is to be undone.
    fn run(&mut self, db: &Connection) -> Result<(), Failed>;
    /// Answers whoever waits, now that the fate of the transaction is known.
    fn answer(self: Box<Self>, failed: Option<&Failed>);
}

pub(crate) type Queued = Box<dyn Work>;

/// Why a piece of work, or the transaction that it shared, came to nothing.
pub(crate) struct Failed {
    why: String,
    is_of_disk: bool,
}

impl Failed {
    /// A failure that more space does not end.
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

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self { why: error.to_string(), is_of_disk: fault::is_of_disk(&error) }
    }
}

impl From<&Fault> for Failed {
    fn from(fault: &Fault) -> Self {
        Self { why: fault.to_string(), is_of_disk: fault.is_of_disk() }
    }
}
