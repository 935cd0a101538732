//! The disk and the worker of a data directory.

use imports::InspectMachine;

use crate::Store;

impl InspectMachine for Store {
    fn free_bytes(&self) -> Option<u64> {
        Self::free_bytes(self)
    }

    fn has_worker(&self) -> Option<bool> {
        Self::has_worker(self)
    }
}
