//! What one function works on, as data: its settings, its role and its queues follow from it.

use outbox::Queue;

/// A service that a function works on, besides queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// MongoDB.
    Database,
    /// The ledger of partitions, which it claims or grants tokens to.
    Ledger,
    /// The memory of processed messages.
    Processed,
    /// The uploaded files, which it reads.
    Objects,
    /// The uploaded files, which it makes upload forms for.
    Uploads,
}

/// What one function works on. The adapters refuse to start a function without all of it, and the checks of the
/// template compare it with what the function is given and allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Uses {
    /// The function.
    pub function: &'static str,
    /// Its services.
    pub services: &'static [Service],
    /// The queue that it works on. What it gives up goes to that queue's dead letters.
    pub receives: Option<Queue>,
    /// The queues that its messages go to.
    pub sends: &'static [Queue],
}

impl Uses {
    /// Every queue whose address it needs: those it sends to, the one it works on, and that one's dead letters.
    pub fn queues(&self) -> impl Iterator<Item = Queue> {
        let own = self.receives.into_iter().chain(self.receives.and_then(Queue::dead_letters));
        own.chain(self.sends.iter().copied().filter(|queue| Some(*queue) != self.receives))
    }
}
