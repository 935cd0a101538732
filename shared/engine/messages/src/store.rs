//! The error of stores, queues and buckets.

use std::fmt::Display;

/// The cause as the adapter's library reported it.
pub type Source = Box<dyn std::error::Error + Send + Sync>;

/// A failed call to a store, queue or bucket. The *answer* of a store, such as a version conflict or an absent record,
/// is a value and never an error.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The call failed, or its outcome is unknown. A retry may succeed.
    #[error("{doing} failed")]
    Unavailable {
        /// The operation and the object that it accesses.
        doing: String,
        /// The cause.
        #[source]
        source: Source,
    },
    /// Stored data cannot be parsed, or the request can never succeed. Retrying does not help.
    #[error("{doing} cannot succeed")]
    Unusable {
        /// The operation and the object that it accesses.
        doing: String,
        /// The cause.
        #[source]
        source: Source,
    },
}

impl StoreError {
    /// Creates a temporary error.
    pub fn unavailable(doing: impl Into<String>, source: impl Into<Source>) -> Self {
        Self::Unavailable { doing: doing.into(), source: source.into() }
    }

    /// Creates a permanent error.
    pub fn unusable(doing: impl Into<String>, source: impl Into<Source>) -> Self {
        Self::Unusable { doing: doing.into(), source: source.into() }
    }

    /// Returns `true` if a retry may succeed.
    pub fn is_retryable(&self) -> bool {
        matches!(self, Self::Unavailable { .. })
    }

    /// Returns `true` if a disk refused a write. The call succeeds after an operator has freed space.
    pub fn is_refused_by_disk(&self) -> bool {
        is_refused_by_disk(self)
    }

    /// Returns the error and its causes in one line.
    pub fn chain(&self) -> String {
        chain(self)
    }
}

/// The reason why a disk refused a write, as reported by the library. A retry succeeds once there is space.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DiskRefused(pub String);

/// Returns `true` if an error, or one of its causes, is a disk that refused a write.
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
    // The error inside an I/O error is not part of its source chain.
    of_kind || error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<DiskRefused>)
}

/// Returns the error of a type among an error and its causes.
pub fn cause<'a, E: std::error::Error + 'static>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a E> {
    std::iter::successors(Some(error), |error| error.source()).find_map(|error| error.downcast_ref())
}

/// Returns an error and its causes in one line.
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

/// Joins the first names for the text of an error, and counts the others.
pub fn some_of<T: Display>(items: impl ExactSizeIterator<Item = T>) -> String {
    const SHOWN: usize = 3;
    let count = items.len();
    let mut text = items.take(SHOWN).map(|item| item.to_string()).collect::<Vec<_>>().join(", ");
    if count > SHOWN {
        text.push_str(&format!(" and {} more", count - SHOWN));
    }
    text
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn full_disk_is_found_in_error_chain() {
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
