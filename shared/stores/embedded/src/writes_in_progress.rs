//! The documents that are being written.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use messages::PartitionKey;

/// The documents that are being written: readers may see them before they are on the disk.
#[derive(Default)]
pub(crate) struct WritesInProgress(Mutex<BTreeMap<PartitionKey, usize>>);

impl WritesInProgress {
    pub(crate) fn begin(self: &Arc<Self>, partitions: Vec<PartitionKey>) -> Write {
        let mut writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for partition in &partitions {
            *writes.entry(*partition).or_default() += 1;
        }
        Write { all: Arc::clone(self), partitions }
    }

    /// Returns `true` if one of these documents is being written.
    pub(crate) fn any_of(&self, partitions: &[PartitionKey]) -> bool {
        let writes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        partitions.iter().any(|partition| writes.contains_key(partition))
    }
}

/// A write in progress, until it is dropped.
pub(crate) struct Write {
    all: Arc<WritesInProgress>,
    partitions: Vec<PartitionKey>,
}

impl Drop for Write {
    fn drop(&mut self) {
        let mut writes = self.all.0.lock().unwrap_or_else(PoisonError::into_inner);
        for partition in &self.partitions {
            if let Some(count) = writes.get_mut(partition) {
                *count -= 1;
                if *count == 0 {
                    writes.remove(partition);
                }
            }
        }
    }
}
