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

    /// Returns `true` if a disk refused to take more data. An operator has to make space; then the call succeeds.
    pub fn is_refused_by_disk(&self) -> bool {
        is_refused_by_disk(self)
    }

    /// The whole chain in one line, for logs and for people.
    pub fn chain(&self) -> String {
        chain(self)
    }
}

/// The reason why a disk took no more data, in the words of the library that met it. Retrying helps once there is space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DiskRefused(pub String);

/// Returns `true` if an error, or one of its causes, is a disk that takes no more data.
pub fn is_refused_by_disk(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        if cause.is::<DiskRefused>() || cause.downcast_ref::<std::io::Error>().is_some_and(refuses) {
            return true;
        }
        next = cause.source();
    }
    false
}

fn refuses(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    let of_kind =
        matches!(error.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge);
    // An error inside an I/O error is not one of its sources.
    of_kind || error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<DiskRefused>)
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

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn a_full_disk_is_recognized_below_other_errors() {
        let full = StoreError::unavailable("writing", Error::from(ErrorKind::StorageFull));
        assert!(full.is_refused_by_disk());
        let outer = StoreError::unavailable("storing", full);
        assert!(outer.is_refused_by_disk());
        assert!(StoreError::unavailable("storing", DiskRefused("full".to_owned())).is_refused_by_disk());
        for other in [Error::from(ErrorKind::PermissionDenied), Error::other("the disk is full")] {
            assert!(!StoreError::unavailable("writing", other).is_refused_by_disk());
        }
    }
}
