//! Query parameters of lists: limits, cursors and search texts.

use imports::SearchId;
use jiff::Timestamp;
use operate::http::paging;
pub(super) use operate::http::paging::limit;
use outbox::Cursor;
use service::study_view::RecordPlace;
use uuid::Uuid;

use super::problem::Problem;
use service::Text;

/// Returns the text to search for.
pub(super) fn text(asked: Option<&str>) -> Result<Option<Text>, Problem> {
    let refused = || Problem::bad(&format!("text has 1 to {} characters", Text::MAX_CHARS));
    asked.map(|text| Text::new(text).ok_or_else(refused)).transpose()
}

/// A list. The `next` of its pages begins with a tag, so that no other list accepts it.
#[derive(Debug, Clone, Copy)]
pub(super) struct List {
    /// The name of the list.
    pub(super) of: &'static str,
    /// The project or search that the list belongs to.
    pub(super) owner: Uuid,
}

impl List {
    fn shared(self) -> paging::List {
        paging::List { of: self.of, owner: self.owner }
    }

    /// Returns a cursor in the list, as clients receive it.
    pub(super) fn next(self, place: &impl ListCursor) -> String {
        self.shared().next(&place.written())
    }

    /// Returns the cursor from which a client wants to continue.
    pub(super) fn after<P: ListCursor>(self, next: Option<&str>) -> Result<Option<P>, Problem> {
        Ok(self.shared().after(next, P::read)?)
    }
}

/// A position in a list.
pub(super) trait ListCursor: Sized {
    fn written(&self) -> String;
    fn read(text: &str) -> Option<Self>;
}

/// A cursor in a list that is shown newest first: the number of items that are older.
pub(super) struct Older(pub(super) u64);

impl ListCursor for Older {
    fn written(&self) -> String {
        self.0.to_string()
    }

    fn read(text: &str) -> Option<Self> {
        is_number(text).then(|| text.parse().ok().map(Self))?
    }
}

/// Returns `true` if a text has only digits. Parsing would also accept a sign.
fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

impl ListCursor for Cursor {
    fn written(&self) -> String {
        format!("{}.{}", self.created_at.as_nanosecond(), self.partition)
    }

    fn read(text: &str) -> Option<Self> {
        let (created_at, search_id) = text.split_once('.')?;
        Some(Self {
            created_at: Timestamp::from_nanosecond(created_at.parse().ok()?).ok()?,
            partition: search_id.parse::<SearchId>().ok()?,
        })
    }
}

impl ListCursor for RecordPlace {
    fn written(&self) -> String {
        self.to_string()
    }

    fn read(text: &str) -> Option<Self> {
        let (position, record) = text.split_once('-')?;
        if !is_number(position) || !is_number(record) {
            return None;
        }
        Some(Self { position: position.parse().ok()?, record: record.parse().ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(of: &'static str, owner: u128) -> List {
        List { of, owner: Uuid::from_u128(owner) }
    }

    #[test]
    fn cursor_is_rejected_by_other_lists() {
        let place = RecordPlace { position: 3, record: 17 };
        let next = list("studies", 1).next(&place);
        assert_eq!(list("studies", 1).after(Some(&next)).unwrap(), Some(place));
        assert_eq!(list("studies", 1).after::<RecordPlace>(None).unwrap(), None);
        for other in [list("quarantine", 1), list("studies", 2)] {
            assert!(other.after::<RecordPlace>(Some(&next)).is_err());
        }
        let mark = &next[..8];
        for wrong in ["", ".", mark, "3-17", &format!("{mark}.3"), &format!("{mark}.+3-17")] {
            assert!(list("studies", 1).after::<RecordPlace>(Some(wrong)).is_err(), "{wrong}");
        }
    }
}
