//! Finds text in UTF-16 that was joined with other text.

/// The number of bytes in a row that show it. Chinese and rules of symbols in UTF-16 also consist of such bytes, but hardly
/// ever of so many in a row with a line end.
const SHOWN: usize = 80;

/// Finds text whose characters have a different width from the characters of the file. A single reader cannot read both
/// encodings.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WidthCheck {
    is_utf16: bool,
    /// The number of consecutive bytes so far that indicate the other width.
    run: usize,
    /// `true` if one of the bytes ends a line.
    has_line_end: bool,
    before: u8,
}

impl WidthCheck {
    pub(crate) fn new(is_utf16: bool) -> Self {
        Self { is_utf16, run: 0, has_line_end: false, before: 0 }
    }

    /// Returns `true` if these bytes, together with those before them, have text of the other width.
    pub(crate) fn is_joined(&mut self, bytes: &[u8]) -> bool {
        if !self.is_utf16 && self.run == 0 && memchr::memchr(0, bytes).is_none() {
            self.before = bytes.last().copied().unwrap_or(self.before);
            return false;
        }
        bytes.iter().any(|&byte| {
            let is_text = matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r');
            let is_other = match self.is_utf16 {
                true => is_text,
                false => (byte == 0 && self.before != 0) || (is_text && self.before == 0),
            };
            self.run = if is_other { self.run + 1 } else { 0 };
            self.has_line_end = is_other && (self.has_line_end || matches!(self.before, b'\n' | b'\r'));
            self.before = byte;
            self.run >= SHOWN && self.has_line_end
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn utf16(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    #[test]
    fn other_width_is_found_in_any_chunks() {
        let ascii = "TY  - JOUR\nTI  - A trial of tests in a hospital\nAU  - Roe, Ann\nPY  - 2020\nER  - \n"
            .repeat(2);
        let chinese = "锌治疗感冒的随机对照试验".repeat(200);
        for (text, is_utf16, is_joined) in [
            ([ascii.as_bytes(), &utf16(&ascii)].concat(), false, true),
            ([&utf16(&ascii), ascii.as_bytes()].concat(), true, true),
            ([&utf16(&chinese), ascii.as_bytes()].concat(), true, true),
            (utf16(&(chinese.clone() + &ascii)), true, false),
            ((chinese + &ascii).into_bytes(), false, false),
            (b"a\0b".repeat(30), false, false),
            (utf16(&format!("{}\n", "═".repeat(200))), true, false),
        ] {
            for chunk in [1, 7, text.len()] {
                let mut check = WidthCheck::new(is_utf16);
                let found = text.chunks(chunk).any(|bytes| check.is_joined(bytes));
                assert_eq!(found, is_joined, "{is_utf16}, {chunk}");
            }
        }
    }
}
