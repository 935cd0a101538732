//! The number with which a record of a text begins.

use super::lines::{MARK_LENGTH, unmarked};

/// The number of bytes that determine whether a line begins a record.
pub(super) const PREFIX: usize = MARK_LENGTH + 40;
/// The maximum number of digits in a record's number.
const MAX_DIGITS: usize = 9;

/// The text after the number at the beginning.
pub(crate) fn after_number(line: &[u8]) -> Option<&[u8]> {
    let digits = line.iter().take_while(|byte| byte.is_ascii_digit()).count();
    (1..=MAX_DIGITS).contains(&digits).then(|| &line[digits..])
}

/// The part of a line that determines its type.
pub(crate) fn front(line: &[u8]) -> &[u8] {
    let line = &line[..line.len().min(PREFIX)];
    unmarked(line)
}

/// Returns `true` for `Document 1 of 20`, the beginning of a ProQuest record.
pub(crate) fn is_proquest(line: &[u8]) -> bool {
    let rest = front(line).strip_prefix(b"Document ").and_then(after_number);
    let total = rest.and_then(|rest| rest.strip_prefix(b" of ")).and_then(after_number);
    total.is_some_and(|rest| rest.trim_ascii().is_empty())
}
