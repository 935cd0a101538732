//! The name of a queue.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

/// A queue, by its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Queue(Cow<'static, str>);

impl Queue {
    /// Names a queue, in lower case.
    pub const fn named(name: &'static str) -> Self {
        Self(Cow::Borrowed(name))
    }

    /// Returns the name of the queue.
    pub fn name(&self) -> &str {
        &self.0
    }
}

impl From<String> for Queue {
    fn from(name: String) -> Self {
        Self(Cow::Owned(name))
    }
}

impl std::fmt::Display for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(&self.0)
    }
}
