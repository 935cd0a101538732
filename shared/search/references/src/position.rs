//! Positions in the original file.

use memchr::{memchr, memchr_iter, memchr2_iter};
use serde::{Deserialize, Serialize};

use crate::encoding::utf16_units;

/// A position in the original file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Position {
    pub(crate) byte: u64,
    pub(crate) line: u64,
    /// `true` if the last character was a CR, so that an LF would belong to the same line break.
    pub(crate) after_cr: bool,
}

impl Position {
    #[cfg(test)]
    pub(crate) const START: Self = Self { byte: 0, line: 1, after_cr: false };

    /// Advances the position by `text`, which takes two bytes per unit if the original is UTF-16.
    pub(crate) fn behind(mut self, text: &[u8], utf16: bool) -> Self {
        let Some(&last) = text.last() else { return self };
        self.byte += if utf16 { 2 * utf16_units(text) } else { text.len() as u64 };
        if !self.after_cr && memchr(b'\r', text).is_none() {
            self.line += memchr_iter(b'\n', text).count() as u64;
            return self;
        }
        for at in memchr2_iter(b'\n', b'\r', text) {
            let after_cr = if at == 0 { self.after_cr } else { text[at - 1] == b'\r' };
            self.line += u64::from(text[at] == b'\r' || !after_cr);
        }
        self.after_cr = last == b'\r';
        self
    }
}
