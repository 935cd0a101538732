//! An index of the braces and quotes that are closed.

/// The braces and quotes of a text that open a closed value, found in a single backward scan.
///
/// The search for the end of an unclosed value scans the rest of its entry. From the first such value on, this index
/// predicts whether a search would fail, so that an entry with many unclosed values is not scanned for each of them.
#[derive(Debug)]
pub(super) struct ClosedValues {
    /// One bit per byte.
    bits: Vec<u64>,
}

impl ClosedValues {
    /// Scans a text. With `escapes`, a backslash escapes the character after it.
    pub(super) fn new(text: &[u8], escapes: bool) -> Self {
        let mut closed = Self { bits: vec![0; text.len() / 64 + 1] };
        // For each closing brace to the right that has no partner yet: `true` if an unbraced quote follows it.
        let mut open: Vec<bool> = Vec::new();
        // `true` if an unbraced quote follows the current position.
        let mut quote = false;
        for (at, &byte) in text.iter().enumerate().rev() {
            if !matches!(byte, b'{' | b'}' | b'"') || escapes && is_escaped(text, at) {
                continue;
            }
            match byte {
                b'"' => {
                    closed.set(at, quote);
                    quote = true;
                }
                b'}' => open.push(quote),
                _ => {
                    let behind = open.pop();
                    closed.set(at, behind.is_some());
                    quote = behind.unwrap_or(false);
                }
            }
        }
        closed
    }

    fn set(&mut self, at: usize, is_closed: bool) {
        self.bits[at / 64] |= u64::from(is_closed) << (at % 64);
    }

    /// Returns `true` if the brace or quote at a position opens a closed value.
    pub(super) fn has(&self, at: usize) -> bool {
        self.bits.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 == 1)
    }
}

/// Returns `true` if a backslash escapes the character, and is not escaped itself. Each run of backslashes is scanned
/// once.
fn is_escaped(text: &[u8], at: usize) -> bool {
    text[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}
