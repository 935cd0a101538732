//! The abbreviations defined by `@string`.

use std::{borrow::Cow, collections::HashMap};

use super::entry;
use crate::read::Taken;
use crate::split::{Step, entries::Entries};

/// Longest text of an abbreviation, in bytes; longer ones are ignored. Journal names have fewer than 300.
const MOST_TEXT: usize = 1024;
/// The maximum size of a file's definitions, in bytes. The IEEE's list of journals has 60,000.
const MOST_DEFINED: usize = 256 * 1024;
/// The maximum number of bytes that abbreviations may expand to in one entry; further ones stay unexpanded. A tiny
/// entry must not expand to megabytes.
const MOST_IN_ENTRY: usize = 4096;

/// The abbreviations defined so far. Abbreviations beyond the limits are not resolved.
#[derive(Debug, Default)]
pub(crate) struct Abbreviations {
    texts: HashMap<String, String>,
    /// The size of the definitions so far, in bytes.
    defined: usize,
}

/// The number of bytes that abbreviations may still expand to.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Default for Budget {
    fn default() -> Self {
        Self(MOST_IN_ENTRY)
    }
}

impl Abbreviations {
    /// Adds definitions in the syntax of the file.
    pub(crate) fn add(&mut self, text: &str) -> Taken {
        self.defined += text.len();
        if self.defined > MOST_DEFINED {
            return Taken::Nothing;
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
                _ => return if understood { Taken::All } else { Taken::Part },
            }
        }
    }

    /// Adds one definition. Returns `true` if it was well-formed and within the limits.
    fn define(&mut self, text: &str) -> bool {
        let Some(entry) = entry::parse(text, Some(self), |_| true) else { return false };
        let well_formed = entry.fault.is_none() && entry.rest.is_empty();
        let owned = |(name, text): (Cow<'_, str>, Cow<'_, str>)| (name.into_owned(), text.into_owned());
        let (short, long): (Vec<_>, Vec<_>) =
            entry.fields.into_iter().map(owned).partition(|(_, text)| text.len() <= MOST_TEXT);
        self.texts.extend(short);
        well_formed && long.is_empty()
    }

    /// Expands an abbreviation; names are case-insensitive.
    pub(super) fn get(&self, name: &str, budget: &mut Budget) -> Option<&str> {
        let text = match self.texts.get(name) {
            Some(text) => text,
            None => self.texts.get(&name.to_ascii_lowercase())?,
        };
        budget.0 = budget.0.checked_sub(text.len())?;
        Some(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_definition_that_is_not_closed_is_taken_as_far_as_it_is_understood() {
        let mut known = Abbreviations::default();
        assert_eq!(known.add("@string{a = {b}\nA sentence about c"), Taken::Part);
        assert_eq!(known.get("a", &mut Budget::default()), Some("b"));
        assert_eq!(known.add(&format!("@string{{a = {{{}}}}}", "x".repeat(MOST_TEXT + 1))), Taken::Part);
    }

    #[test]
    fn definitions_may_use_earlier_ones_and_are_bounded() {
        let mut known = Abbreviations::default();
        assert_eq!(
            known.add("@string{a = \"An \"}\n@STRING(b = a # {b}) junk @string{c = {\u{e9}}}"),
            Taken::All
        );
        let get =
            |known: &Abbreviations, name: &str| known.get(name, &mut Budget::default()).map(str::to_owned);
        assert_eq!(get(&known, "B").as_deref(), Some("An b"));
        assert_eq!(get(&known, "c").as_deref(), Some("é"));
        assert_eq!(known.add("@string{d = {dddddddddddddddd}}"), Taken::All);
        for _ in 0..40 {
            known.add("@string{d = d # d}");
        }
        assert!(get(&known, "d").is_some_and(|text| text.len() <= MOST_TEXT));
        let mut budget = Budget::default();
        let taken = (0..10_000).filter(|_| known.get("d", &mut budget).is_some()).count();
        assert!(taken < 10, "{taken}");
        assert_eq!(known.add(&"x".repeat(MOST_DEFINED)), Taken::Nothing);
    }
}
