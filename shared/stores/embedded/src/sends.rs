//! The messages that this process has sent, for receivers that wait.

use tokio::sync::watch;

/// Wakes the receivers that wait in [`MessageSignal::wait`](crate::MessageSignal::wait) after each send.
pub(crate) struct Sends(watch::Sender<()>);

impl Sends {
    pub(crate) fn new() -> Self {
        Self(watch::Sender::new(()))
    }

    pub(crate) fn notify(&self) {
        self.0.send_replace(());
    }

    pub(crate) fn subscribe(&self) -> watch::Receiver<()> {
        self.0.subscribe()
    }
}
