//! Query parameters of lists: limits and cursors.

use jiff::Timestamp;
use outbox::Cursor;
use saga::failures::FailureCursor;
use saga::{Outboxes, history};
use uuid::Uuid;

use super::problem::Problem;
use crate::EffectCursor;

/// Returns the requested number of items, from 1 to `max`.
///
/// # Errors
/// Returns the problem of a number outside these limits.
pub fn limit(asked: Option<usize>, default: usize, max: usize) -> Result<usize, Problem> {
    let limit = asked.unwrap_or(default);
    if (1..=max).contains(&limit) {
        Ok(limit)
    } else {
        Err(Problem::bad(&format!("limit is from 1 to {max}")))
    }
}

/// A list. The `next` of its pages begins with a tag, so that no other list accepts it.
#[derive(Debug, Clone, Copy)]
pub struct List {
    /// The name of the list.
    pub of: &'static str,
    /// The owner of the list, such as an instance; nil if the list is of the whole system.
    pub owner: Uuid,
}

impl List {
    fn mark(self) -> String {
        let mut mark = Uuid::new_v5(&self.owner, self.of.as_bytes()).simple().to_string();
        mark.truncate(8);
        mark
    }

    /// Returns a cursor in the list, as clients receive it.
    pub fn next(self, place: &str) -> String {
        format!("{}.{place}", self.mark())
    }

    /// Returns the cursor from which a client wants to continue. `read` reads the text given to [`List::next`].
    ///
    /// # Errors
    /// Returns the problem of a text that is not a cursor in this list.
    pub fn after<P>(
        self,
        next: Option<&str>,
        read: impl FnOnce(&str) -> Option<P>,
    ) -> Result<Option<P>, Problem> {
        let Some(next) = next else { return Ok(None) };
        let place = next.split_once('.').filter(|(mark, _)| *mark == self.mark());
        match place.and_then(|(_, place)| read(place)) {
            Some(place) => Ok(Some(place)),
            None => Err(foreign_cursor()),
        }
    }
}

/// Returns the problem of a cursor that does not belong to the list.
pub(super) fn foreign_cursor() -> Problem {
    Problem::bad("after is not the \"next\" of a page of this list")
}

/// A position in a list of this module.
pub(super) trait ListCursor: Sized {
    fn written(&self) -> String;
    fn read(text: &str) -> Option<Self>;
}

fn written_time(at: Timestamp, rest: impl std::fmt::Display) -> String {
    format!("{}.{rest}", at.as_nanosecond())
}

fn read_time(text: &str) -> Option<(Timestamp, &str)> {
    let (at, rest) = text.split_once('.')?;
    Some((Timestamp::from_nanosecond(at.parse().ok()?).ok()?, rest))
}

impl ListCursor for FailureCursor {
    fn written(&self) -> String {
        written_time(self.last_seen, self.id)
    }

    fn read(text: &str) -> Option<Self> {
        let (last_seen, id) = read_time(text)?;
        Some(Self { last_seen, id: id.parse().ok()? })
    }
}

impl ListCursor for history::Place {
    fn written(&self) -> String {
        written_time(self.at, self.sequence)
    }

    fn read(text: &str) -> Option<Self> {
        let (at, sequence) = read_time(text)?;
        Some(Self { at, sequence: sequence.parse().ok()? })
    }
}

impl ListCursor for Cursor {
    fn written(&self) -> String {
        written_time(self.created_at, self.partition)
    }

    fn read(text: &str) -> Option<Self> {
        let (created_at, partition) = read_time(text)?;
        Some(Self { created_at, partition: partition.parse().ok()? })
    }
}

/// The entry's id is the store's own and may contain characters that a URL cannot.
impl ListCursor for EffectCursor {
    fn written(&self) -> String {
        let of = match self.outboxes {
            Outboxes::Sagas => "searches",
            Outboxes::Sessions => "sessions",
        };
        let after = self.after.as_deref().unwrap_or_default();
        let after: String = after.bytes().map(|byte| format!("{byte:02x}")).collect();
        format!("{of}.{after}")
    }

    fn read(text: &str) -> Option<Self> {
        let (of, after) = text.split_once('.')?;
        let outboxes = match of {
            // The name that cursors have always had.
            "searches" => Outboxes::Sagas,
            "sessions" => Outboxes::Sessions,
            _ => return None,
        };
        let is_hex = after.len().is_multiple_of(2) && after.bytes().all(|digit| digit.is_ascii_hexdigit());
        let byte = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        let bytes = after.as_bytes().chunks(2).map(byte).collect::<Option<Vec<u8>>>().filter(|_| is_hex)?;
        let after = String::from_utf8(bytes).ok()?;
        Some(Self { outboxes, after: (!after.is_empty()).then_some(after) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_is_rejected_by_other_lists() {
        let list = |of, owner| List { of, owner: Uuid::from_u128(owner) };
        let number = |text: &str| text.parse::<u8>().ok();
        let next = list("history", 1).next("7");
        assert_eq!(list("history", 1).after(Some(&next), number), Ok(Some(7)));
        assert_eq!(list("history", 1).after(None, number), Ok(None));
        for other in [list("failures", 1), list("history", 2)] {
            assert!(other.after(Some(&next), number).is_err());
        }
        let mark = &next[..8];
        for wrong in ["", ".", mark, "7", &format!("{mark}.x")] {
            assert!(list("history", 1).after(Some(wrong), number).is_err(), "{wrong}");
        }
    }

    #[test]
    fn effect_cursor_round_trips_any_store_id() {
        for after in [None, Some("{\"_id\":{\"$oid\":\"ä/+\"}}".to_owned())] {
            for outboxes in Outboxes::ALL {
                let place = EffectCursor { outboxes, after: after.clone() };
                assert_eq!(EffectCursor::read(&place.written()), Some(place));
            }
        }
        for wrong in ["searches", "others.", "searches.0", "searches.xx", "searches.ff", "searches.+1"] {
            assert_eq!(EffectCursor::read(wrong), None, "{wrong}");
        }
    }
}
