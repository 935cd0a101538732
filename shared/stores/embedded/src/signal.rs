//! Wakes a receiver of this process when a message is sent, so that it need not poll continuously.

use std::sync::Arc;
use std::time::Duration;

use messages::Host;
use tokio::sync::watch;

use crate::Store;

/// Waits for messages. It remembers sends since its last wait, so that a message sent between an empty receive and the
/// wait is not missed.
pub struct MessageSignal {
    sends: watch::Receiver<()>,
    host: Arc<dyn Host>,
}

impl MessageSignal {
    /// Waits until this process makes a message visible in any queue, or until `timeout`: delayed and hidden messages
    /// become visible without a signal.
    pub async fn wait(&mut self, timeout: Duration) {
        let signal = async {
            // Once the store is closed, nothing more is sent.
            if self.sends.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            // Checks the signal first, so that it is consumed even if the host's sleep returns immediately.
            biased;
            () = signal => {}
            () = self.host.sleep(timeout) => {}
        }
    }
}

impl Store {
    /// Returns a signal to wait for messages. Create it before the first receive.
    pub fn message_signal(&self) -> MessageSignal {
        MessageSignal { sends: self.sends().subscribe(), host: Arc::clone(self.host()) }
    }
}
