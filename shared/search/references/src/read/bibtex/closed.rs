//! Which braces and quotes of a text are closed.

/// The braces and quotes of a text that open a closed value. They are found in one scan from the end of the text to its
/// beginning.
///
/// The search for the end of a value that is not closed scans the rest of its entry. From the first such value on, this index
/// answers whether a search would fail, so that an entry with many of them is not scanned for each.
#[derive(Debug)]
pub(super) struct Closed {
    /// A bit for each byte.
    bits: Vec<u64>,
}

impl Closed {
    /// Scans a text, in which a backslash may protect the sign behind it.
    pub(super) fn of(text: &[u8], escapes: bool) -> Self {
        let mut closed = Self { bits: vec![0; text.len() / 64 + 1] };
        // For each closing brace to the right that has no partner yet: whether a quote follows it that is outside of braces.
        let mut open: Vec<bool> = Vec::new();
        // Whether a quote follows that is outside of braces, as seen from here.
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

    /// Whether the value is closed that the brace or quote at a place opens.
    pub(super) fn has(&self, at: usize) -> bool {
        self.bits.get(at / 64).is_some_and(|bits| bits >> (at % 64) & 1 == 1)
    }
}

/// Whether a backslash before a sign protects it, and is not protected itself. Each run of backslashes is scanned once.
fn is_escaped(text: &[u8], at: usize) -> bool {
    text[..at].iter().rev().take_while(|byte| **byte == b'\\').count() % 2 == 1
}
