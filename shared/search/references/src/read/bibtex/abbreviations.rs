//! The abbreviations defined by `@string`.

use std::collections::HashMap;

/// The maximum number of bytes that abbreviations may expand to in one entry; further ones stay unexpanded.
pub(super) const MAX_PER_ENTRY: usize = 4096;
/// The maximum number of these bytes for each byte of the entry, so that the size of a file bounds the size of its
/// references. Real entries need two or three.
const PER_BYTE: usize = 32;

/// The abbreviations defined so far.
#[derive(Debug, Default)]
pub(crate) struct Abbreviations {
    texts: HashMap<String, String>,
}

/// The number of bytes that abbreviations may still expand to.
#[derive(Debug)]
pub(super) struct Budget(usize);

impl Budget {
    /// Returns the budget for an entry of this length in bytes.
    pub(super) fn of(entry: usize) -> Self {
        Self(MAX_PER_ENTRY.min(PER_BYTE.saturating_mul(entry)))
    }
}

impl Abbreviations {
    /// Adds abbreviations with their texts.
    pub(super) fn extend(&mut self, texts: impl IntoIterator<Item = (String, String)>) {
        self.texts.extend(texts);
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
