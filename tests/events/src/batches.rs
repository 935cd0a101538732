//! The sample batches of one queue, and what becomes of them.

use std::path::Path;

use backend::Backend;
use lambda_host::Outcome;
use messages::Queue;
use serde_json::Value;

use crate::{Installation, all, check_log, event, failures};

/// The sample batches of one queue.
pub struct Batches {
    /// What their names begin with.
    pub prefix: &'static str,
    /// The queue that their messages lead to.
    pub to: Queue,
    /// Each batch by its name, with the places of the records that fail and the names of the messages that are sent.
    pub batches: &'static [(&'static str, &'static [usize], &'static [&'static str])],
}

impl Batches {
    /// Checks that no batch is left out.
    ///
    /// # Panics
    /// When one is.
    pub fn check_names(&self) {
        let names: Vec<&str> = self.batches.iter().map(|(name, ..)| *name).collect();
        assert_eq!(names, all(self.prefix));
    }

    /// Feeds each batch to a function's library, which answers it.
    ///
    /// # Panics
    /// When something else becomes of one.
    pub async fn feed_library(&self, answer: impl AsyncFn(&Backend, Value) -> Value) {
        for (name, failing, sends) in self.batches {
            let installation = Installation::admitting(&event(name)).await;
            let response = answer(&installation.backend(), event(name)).await;
            assert_eq!(failures(&event(name), &response), *failing, "{name}");
            assert_eq!(self.sent(&installation).await, *sends, "{name}");
        }
    }

    /// Feeds each batch to a function's built binary.
    ///
    /// # Panics
    /// When something else becomes of one, or the log is not as it must be.
    pub async fn feed_binary(&self, program: impl AsRef<Path>) {
        for (name, failing, sends) in self.batches {
            let installation = Installation::admitting(&event(name)).await;
            let mut function = installation.start(&program).await;
            let Outcome::Answer(answer) = function.invoke(&event(name)).await.unwrap() else {
                panic!("{name}")
            };
            let response: Value = serde_json::from_slice(&answer).unwrap();
            assert_eq!(failures(&event(name), &response), *failing, "{name}");
            assert_eq!(self.sent(&installation).await, *sends, "{name}");
            check_log(&function.stop().await);
        }
    }

    async fn sent(&self, installation: &Installation) -> Vec<String> {
        installation.sent(&self.to).await.into_iter().map(|message| message.body.name).collect()
    }
}
