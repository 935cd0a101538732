//! Splits off a document that is not read, such as a web page in a merged file.

use super::{Splitter, Step, lines::trimmed_end};

/// The maximum number of bytes of the document that are quarantined. The rest is reported as skipped text.
const MAX_QUARANTINED: usize = 64 * 1024;

/// Returns the beginning of a document as a record with a fault, and skips the rest.
#[derive(Debug)]
pub(crate) struct Unread {
    reason: &'static str,
    most: usize,
    is_found: bool,
}

impl Unread {
    pub(crate) fn new(reason: &'static str, limit: usize) -> Self {
        Self { reason, most: MAX_QUARANTINED.min(limit), is_found: false }
    }
}

impl Splitter for Unread {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        if tail.is_empty() || (tail.len() < self.most && !end && !self.is_found) {
            return Step::More;
        }
        if self.is_found {
            return Step::Skip { consumed: tail.len() };
        }
        self.is_found = true;
        let consumed = tail.len().min(self.most);
        match trimmed_end(tail, &(0..consumed)) {
            Some(stop) => Step::Found { record: 0..stop, consumed, fault: Some(self.reason) },
            None => Step::Skip { consumed },
        }
    }

    /// A checkpoint does not store the reason.
    fn saved_state(&self) -> Option<Vec<Vec<u8>>> {
        None
    }
}
