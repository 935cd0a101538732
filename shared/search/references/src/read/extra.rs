//! Collects values of tags that have no field.

use std::collections::BTreeMap;

use super::{accession::Accessions, tidy};

/// The maximum size of a record's extra values in bytes, including tags. Cited references and affiliations may have
/// hundreds of lines, but a stored study should remain small.
const MAX_BYTES: usize = 16 * 1024;
/// The maximum size of a value that may use the reserved bytes.
const SHORT: usize = 1024;
/// The bytes that long values leave for short ones.
const RESERVE: usize = 2 * SHORT;
/// The maximum length of a tag; longer column names are truncated.
const MAX_TAG: usize = 64;

/// Tags and their values, up to the limit. The first value that exceeds the limit is omitted completely, and so are all
/// later ones.
#[derive(Debug)]
pub(super) struct Extra {
    values: BTreeMap<String, Vec<String>>,
    left: usize,
    /// The numbers of the record in databases, which are found in all values, including those beyond the limit.
    found: Accessions,
}

impl Default for Extra {
    fn default() -> Self {
        Self { values: BTreeMap::new(), left: MAX_BYTES, found: Accessions::default() }
    }
}

impl Extra {
    /// Adds a value with normalized white space.
    pub(super) fn push(&mut self, tag: &str, value: &str) {
        self.found.add(tag, value);
        let size = tag.len() + tidy::trim(value).len();
        // A list of cited works must not displace the database and the ISSN.
        let reserve = if size > SHORT { RESERVE } else { 0 };
        if size.saturating_add(reserve) > self.left {
            return;
        }
        let Some(value) = tidy::line(value) else { return };
        self.left -= size;
        match self.values.get_mut(tag) {
            Some(values) => values.push(value),
            // Most tags have a single value: a growing list would allocate space for four.
            None => self.values.entry(stored(tag)).or_insert_with(|| Vec::with_capacity(1)).push(value),
        }
    }

    /// Inspects a value for the numbers of the record, without keeping it.
    pub(super) fn inspect(&mut self, tag: &str, value: &str) {
        self.found.add(tag, value);
    }

    /// Inspects a keyword for the numbers of trials.
    pub(super) fn inspect_keyword(&mut self, keyword: &str) {
        self.found.keyword(keyword);
    }

    /// Returns the values by tag, and the numbers of the record that they contain.
    pub(super) fn into_parts(self) -> (BTreeMap<String, Vec<String>>, Accessions) {
        (self.values, self.found)
    }
}

/// Converts a tag to a name that every document store accepts: dots and dollar signs have a meaning in MongoDB.
fn stored(tag: &str) -> String {
    if tag.is_empty() {
        return "_".to_owned();
    }
    if tag.len() <= MAX_TAG && !tag.bytes().any(|byte| matches!(byte, b'.' | b'$')) {
        return tag.to_owned();
    }
    tag.replace(['.', '$'], "_").chars().take(MAX_TAG).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_values_leave_room_for_short_ones() {
        for long in [2_000, 15_000, 20_000] {
            let mut extra = Extra::default();
            for (tag, length) in [("CR", long), ("N1", long), ("DB", 6), ("SN", 9)] {
                extra.push(tag, &"x".repeat(length));
            }
            let kept = extra.into_parts().0;
            assert!(kept.contains_key("DB") && kept.contains_key("SN"), "{long}: {kept:?}");
        }
    }

    #[test]
    fn extra_values_are_kept_by_tag_in_order() {
        let mut extra = Extra::default();
        for (tag, value) in [("SN", "2"), ("AD", " a  b "), ("SN", "1"), ("ID", " ")] {
            extra.push(tag, value);
        }
        let kept: Vec<_> = extra.into_parts().0.into_iter().collect();
        assert_eq!(
            kept,
            [("AD".to_owned(), vec!["a b".to_owned()]), ("SN".to_owned(), vec!["2".into(), "1".into()])]
        );
    }

    #[test]
    fn extra_values_beyond_limit_are_omitted() {
        let mut extra = Extra::default();
        for _ in 0..1000 {
            extra.push("CR", &"x".repeat(98));
        }
        assert_eq!(extra.into_parts().0["CR"].len(), MAX_BYTES / 100);
    }

    #[test]
    fn tags_become_names_that_stores_accept() {
        let mut extra = Extra::default();
        extra.push("$E.mail", "a");
        extra.push("$E.mail", "b");
        assert_eq!(extra.into_parts().0["_E_mail"], ["a", "b"]);
    }
}
