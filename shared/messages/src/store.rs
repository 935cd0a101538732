//! How every store, queue and bucket reports a failure.

/// The cause as the adapter's library reported it.
pub type Source = Box<dyn std::error::Error + Send + Sync>;

/// A failed call to a store, queue or bucket. What a store *answers* (a version conflict, an absent record)
/// is a value, never one of these.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The call did not go through, or its outcome is unknown. It may succeed when tried again.
    #[error("{doing} failed")]
    Unavailable {
        /// What was being done to what.
        doing: String,
        /// Why it failed.
        #[source]
        source: Source,
    },
    /// What is stored cannot be understood, or the request can never succeed. Trying again is of no use.
    #[error("{doing} cannot succeed")]
    Unusable {
        /// What was being done to what.
        doing: String,
        /// What is wrong.
        #[source]
        source: Source,
    },
}

impl StoreError {
    /// A failure that may pass.
    pub fn unavailable(doing: impl Into<String>, source: impl Into<Source>) -> Self {
        Self::Unavailable { doing: doing.into(), source: source.into() }
    }

    /// A failure that will not pass by itself.
    pub fn unusable(doing: impl Into<String>, source: impl Into<Source>) -> Self {
        Self::Unusable { doing: doing.into(), source: source.into() }
    }

    /// Retry, or not?
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// The whole chain in one line, for logs and for people.
    pub fn chain(&self) -> String {
        chain(self)
    }
}

/// An error and its causes in one line.
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
