//! Values under tags that have no field of their own.

use std::collections::BTreeMap;

use super::tidy;

/// Most bytes that the extra values of one record take, tags counted. Cited references and affiliations run into
/// hundreds of lines, and a study should stay a small document.
const MOST_BYTES: usize = 16 * 1024;
/// Longest tag; the rest of a longer column name is cut off.
const MOST_TAG: usize = 64;

/// Tags and their values within the limit. A value that does not fit is left out as a whole, and so is everything after
/// it.
#[derive(Debug)]
pub(super) struct Extra {
    values: BTreeMap<String, Vec<String>>,
    left: usize,
}

impl Default for Extra {
    fn default() -> Self {
        Self { values: BTreeMap::new(), left: MOST_BYTES }
    }
}

impl Extra {
    /// Keeps a value, with its white space tidied.
    pub(super) fn push(&mut self, tag: &str, value: &str) {
        let size = tag.len() + tidy::trim(value).len();
        if size > self.left {
            self.left = 0;
            return;
        }
        let Some(value) = tidy::line(value) else { return };
        self.left -= size;
        match self.values.get_mut(tag) {
            Some(values) => values.push(value),
            // Most have one value: a list that is made to grow takes room for four.
            None => self.values.entry(stored(tag)).or_insert_with(|| Vec::with_capacity(1)).push(value),
        }
    }

    pub(super) fn into_values(self) -> BTreeMap<String, Vec<String>> {
        self.values
    }
}

/// The tag as a name that every document store accepts: MongoDB gives dots and dollars in names a meaning.
fn stored(tag: &str) -> String {
    if tag.is_empty() {
        return "_".to_owned();
    }
    if tag.len() <= MOST_TAG && !tag.bytes().any(|byte| matches!(byte, b'.' | b'$')) {
        return tag.to_owned();
    }
    tag.replace(['.', '$'], "_").chars().take(MOST_TAG).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_by_tag_in_order() {
        let mut extra = Extra::default();
        for (tag, value) in [("SN", "2"), ("AD", " a  b "), ("SN", "1"), ("ID", " ")] {
            extra.push(tag, value);
        }
        let kept: Vec<_> = extra.into_values().into_iter().collect();
        assert_eq!(
            kept,
            [("AD".to_owned(), vec!["a b".to_owned()]), ("SN".to_owned(), vec!["2".into(), "1".into()])]
        );
    }

    #[test]
    fn what_exceeds_the_limit_is_left_out() {
        let mut extra = Extra::default();
        for _ in 0..1000 {
            extra.push("CR", &"x".repeat(98));
        }
        assert_eq!(extra.into_values()["CR"].len(), MOST_BYTES / 100);
    }

    #[test]
    fn tags_are_names_that_stores_accept() {
        let mut extra = Extra::default();
        extra.push("$E.mail", "a");
        extra.push("$E.mail", "b");
        assert_eq!(extra.into_values()["_E_mail"], ["a", "b"]);
    }
}
