//! ISO-2022-JP, in which escape sequences switch between ASCII and Japanese letters.
//!
//! The bytes of letters have the values of ASCII characters, also of quotation marks, commas, braces and line elements.
//! Their high bit is set while records are found, so that splitters find no syntax in them. The number of bytes stays
//! the same.

/// The byte that begins an escape sequence.
pub(crate) const ESCAPE: u8 = 0x1b;
/// The sequence after which ASCII follows.
const TO_ASCII: &[u8] = b"\x1b(B";

/// The position in a text of this encoding.
#[derive(Debug, Default)]
pub(crate) struct Jis {
    /// `true` between a sequence that begins letters and the sequence that ends them, or the end of the line.
    in_letters: bool,
    sequence: Sequence,
}

/// The bytes of an escape sequence so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Sequence {
    #[default]
    None,
    Escape,
    /// `ESC $`.
    Dollar,
    /// `ESC $ (`.
    DollarParenthesis,
    /// `ESC (`.
    Parenthesis,
}

impl Jis {
    /// Appends bytes with the high bit of letters set.
    pub(crate) fn push(&mut self, bytes: &[u8], out: &mut Vec<u8>) {
        out.extend(bytes.iter().map(|byte| if self.is_letter(*byte) { byte | 0x80 } else { *byte }));
    }

    /// Returns `true` at a position that is neither in Japanese letters nor in an escape sequence.
    pub(crate) fn is_ascii(&self) -> bool {
        !self.in_letters && self.sequence == Sequence::None
    }

    /// Advances by a byte, and returns `true` if it is one of a letter.
    fn is_letter(&mut self, byte: u8) -> bool {
        let before = std::mem::take(&mut self.sequence);
        match (before, byte) {
            (_, ESCAPE) => self.sequence = Sequence::Escape,
            (Sequence::Escape, b'$') => self.sequence = Sequence::Dollar,
            (Sequence::Escape, b'(') => self.sequence = Sequence::Parenthesis,
            (Sequence::Dollar, b'(') => self.sequence = Sequence::DollarParenthesis,
            (Sequence::Dollar, b'B' | b'@')
            | (Sequence::DollarParenthesis, b'D')
            | (Sequence::Parenthesis, b'I') => self.in_letters = true,
            // A line begins with ASCII.
            (Sequence::Parenthesis, b'B' | b'J') | (_, b'\n' | b'\r') => self.in_letters = false,
            _ => return self.in_letters && (0x21..=0x7e).contains(&(byte & 0x7f)),
        }
        false
    }
}

/// The original bytes of a text whose letters may have their high bit set. Letters at the end of a line without an
/// escape sequence get such a sequence.
pub(super) fn original(bytes: &[u8]) -> Vec<u8> {
    let (mut state, mut out) = (Jis::default(), Vec::with_capacity(bytes.len()));
    for byte in bytes {
        let was_in_letters = state.in_letters;
        if state.is_letter(*byte) {
            out.push(byte & 0x7f);
            continue;
        }
        if was_in_letters && matches!(byte, b'\n' | b'\r') {
            out.extend_from_slice(TO_ASCII);
        }
        out.push(*byte);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_are_marked_and_restored() {
        let (text, ..) = encoding_rs::ISO_2022_JP.encode("\"い\",い\nか ｱ é\n");
        for chunk in [1, 2, text.len()] {
            let (mut jis, mut marked) = (Jis::default(), Vec::new());
            text.chunks(chunk).for_each(|bytes| jis.push(bytes, &mut marked));
            assert!(marked.starts_with(b"\"\x1b$B\xa4\xa4\x1b(B\",\x1b$B"), "{marked:?}");
            assert_eq!((original(&marked), marked.len(), jis.is_ascii()), (text.to_vec(), text.len(), true));
        }
        assert_eq!(original(b"\x1b$B$\"\n\"a"), b"\x1b$B$\"\x1b(B\n\"a");
    }
}
