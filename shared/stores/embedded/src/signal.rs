//! Waking a receiver of this process when a message was sent, so that it need not ask all the time.

use std::sync::Arc;
use std::time::Duration;

use messages::Host;
use tokio::sync::watch;

use crate::Store;

/// Waits for messages. It remembers what was sent since it last waited, so that a message sent between an empty
/// receive and the wait is not missed.
pub struct MessageSignal {
    sends: watch::Receiver<()>,
    host: Arc<dyn Host>,
}

impl MessageSignal {
    /// Returns once a message has become visible in any queue through this process since the last wait, or
    /// after `timeout`: one that was held back or hidden becomes visible without a signal.
    pub async fn wait(&mut self, timeout: Duration) {
        let signal = async {
            // Once the store is closed nothing will be sent any more.
            if self.sends.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            // The signal first, so that it is used up even when the host's sleep returns at once.
            biased;
            () = signal => {}
            () = self.host.sleep(timeout) => {}
        }
    }
}

impl Store {
    /// A way to wait for messages. To be made before the first receive.
    pub fn message_signal(&self) -> MessageSignal {
        MessageSignal { sends: self.sends().subscribe(), host: Arc::clone(self.host()) }
    }
}
