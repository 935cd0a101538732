//! The sample batches of one queue and their expected results.

use std::path::Path;

use backend::Backend;
use lambda_host::Outcome;
use serde_json::Value;

use crate::{ExpectedResult, Installation, Surroundings, check_log, event, failures};

/// The sample batches of one queue, selected by a prefix of their names.
pub struct Batches(pub &'static str);

impl Batches {
    /// Feeds each batch to a function's library and checks the response.
    ///
    /// # Panics
    /// Panics if something else becomes of one.
    pub async fn feed_library(&self, answer: impl AsyncFn(&Backend, Value) -> Value) {
        for name in ExpectedResult::names(self.0) {
            let installation = Installation::admitting(&event(name)).await;
            let response = answer(&installation.backend(), event(name)).await;
            check(name, &response, &installation).await;
        }
    }

    /// Feeds each batch to a function's binary and checks the response and the log.
    ///
    /// # Panics
    /// Panics if something else becomes of one, or the log is not as it must be.
    pub async fn feed_binary(&self, program: impl AsRef<Path>) {
        for name in ExpectedResult::names(self.0) {
            let installation = Installation::admitting(&event(name)).await;
            let mut function = installation.start(&program).await;
            let Outcome::Answer(answer) = function.invoke(&event(name)).await.unwrap() else {
                panic!("{name}")
            };
            let response: Value = serde_json::from_slice(&answer).unwrap();
            check(name, &response, &installation).await;
            check_log(&function.stop().await);
        }
    }
}

async fn check(name: &str, response: &Value, installation: &Installation) {
    let Some(ExpectedResult::Batch { failing, to, sends, .. }) = ExpectedResult::of(name) else {
        panic!("{name}")
    };
    assert_eq!(failures(&event(name), response), *failing, "{name}");
    assert!(
        ExpectedResult::of(name).unwrap().is_answered_by(&event(name), response, Surroundings::default()),
        "{name}"
    );
    let sent: Vec<_> = installation.sent(to).await.into_iter().map(|message| message.body.name).collect();
    assert_eq!(sent, *sends, "{name}");
}
