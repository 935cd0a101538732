//! The `@string` definitions of a BibTeX file.

use std::borrow::Cow;

use super::{abbreviations::Abbreviations, entry};
use crate::split::{Step, entries::Entries};

/// The maximum length of a text of an abbreviation, in bytes; longer ones are ignored. Journal names have fewer than
/// 300.
const MAX_TEXT: usize = 1024;
/// The maximum size of a file's definitions, in bytes. The IEEE's list of journals has 60,000.
const MAX_DEFINED: usize = 256 * 1024;

/// The extent to which a text was understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extent {
    Nothing,
    /// All parts that were understood.
    Part,
    All,
}

/// The definitions so far. Definitions beyond the limits are ignored.
#[derive(Debug, Default)]
pub(crate) struct Definitions {
    abbreviations: Abbreviations,
    /// The total size of the definitions in bytes.
    size: usize,
}

impl Definitions {
    /// The defined abbreviations.
    pub(crate) fn abbreviations(&self) -> &Abbreviations {
        &self.abbreviations
    }

    /// Adds definitions in the syntax of the file.
    pub(crate) fn add(&mut self, text: &str) -> Extent {
        self.size += text.len();
        if self.size > MAX_DEFINED {
            return Extent::Nothing;
        }
        let mut understood = true;
        let mut splitter = Entries::new(usize::MAX);
        let mut rest = text;
        loop {
            match splitter.step(rest.as_bytes(), true) {
                Step::Header { row, consumed } => {
                    understood &= rest.get(row).is_some_and(|text| self.define(text));
                    rest = rest.get(consumed..).unwrap_or_default();
                }
                Step::Skip { consumed } | Step::Found { consumed, .. } => {
                    rest = rest.get(consumed..).unwrap_or_default();
                }
                _ => return if understood { Extent::All } else { Extent::Part },
            }
        }
    }

    /// Adds one definition. Returns `true` if it was well-formed and within the limits.
    fn define(&mut self, text: &str) -> bool {
        let Some(entry) = entry::parse(text, Some(&self.abbreviations), |_| true) else { return false };
        let well_formed = entry.fault.is_none() && entry.rest.is_empty();
        let owned = |(name, text): (Cow<'_, str>, Cow<'_, str>)| (name.into_owned(), text.into_owned());
        let (short, long): (Vec<_>, Vec<_>) =
            entry.fields.into_iter().map(owned).partition(|(_, text)| text.len() <= MAX_TEXT);
        self.abbreviations.extend(short);
        well_formed && long.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::super::abbreviations::{Budget, MAX_PER_ENTRY};
    use super::*;

    #[test]
    fn unclosed_definition_is_partially_understood() {
        let mut known = Definitions::default();
        assert_eq!(known.add("@string{a = {b}\nA sentence about c"), Extent::Part);
        assert_eq!(known.abbreviations.get("a", &mut Budget::of(1024)), Some("b"));
        assert_eq!(known.add(&format!("@string{{a = {{{}}}}}", "x".repeat(MAX_TEXT + 1))), Extent::Part);
    }

    #[test]
    fn definitions_expand_earlier_ones_within_limits() {
        let mut known = Definitions::default();
        assert_eq!(
            known.add("@string{a = \"An \"}\n@STRING(b = a # {b}) junk @string{c = {\u{e9}}}"),
            Extent::All
        );
        let get = |known: &Definitions, name: &str| {
            known.abbreviations.get(name, &mut Budget::of(1024)).map(str::to_owned)
        };
        assert_eq!(get(&known, "B").as_deref(), Some("An b"));
        assert_eq!(get(&known, "c").as_deref(), Some("é"));
        assert_eq!(known.add("@string{d = {dddddddddddddddd}}"), Extent::All);
        for _ in 0..40 {
            known.add("@string{d = d # d}");
        }
        let text = get(&known, "d").unwrap();
        assert!(text.len() <= MAX_TEXT);
        let mut budget = Budget::of(1024);
        let taken = (0..10_000).filter(|_| known.abbreviations.get("d", &mut budget).is_some()).count();
        assert!(taken > 0 && taken * text.len() <= MAX_PER_ENTRY, "{taken}");
        assert_eq!(known.add(&"x".repeat(MAX_DEFINED)), Extent::Nothing);
    }
}
