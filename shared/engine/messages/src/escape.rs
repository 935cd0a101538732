//! Escaping untrusted text for terminals and logs.
//!
//! Names, titles, and their quotes in errors come from outside. A control character in them could move the cursor or
//! forge a line, and a bidirectional control character could make a name look like another one. All output passes
//! through this module, which shows such characters as Rust writes them: `\u{202e}`.

use std::borrow::Cow;
use std::fmt::Write;
use std::io;

/// Returns `true` if a character changes how its context is displayed: control characters, line and paragraph
/// separators, and the marks, embeddings, overrides and isolates of bidirectional text (Unicode's `Bidi_Control`).
pub fn is_control_or_bidi(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Escapes text for display on one line.
pub fn escape_for_terminal(text: &str) -> Cow<'_, str> {
    replaced(text, |out, c| out.extend(c.escape_default()))
}

/// Escapes JSON for display: the same JSON on one line, with such characters in its strings as `\u202e`.
pub fn escape_in_json(json: &str) -> Cow<'_, str> {
    replaced(json, |out, c| {
        let mut units = [0; 2];
        for unit in c.encode_utf16(&mut units) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

fn replaced(text: &str, escape: impl Fn(&mut String, char)) -> Cow<'_, str> {
    if !text.contains(is_control_or_bidi) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_control_or_bidi(c) { escape(&mut out, c) } else { out.push(c) }
    }
    Cow::Owned(out)
}

/// A writer that escapes whole lines, one per call.
pub struct Lines<W> {
    out: W,
    escape: fn(&str) -> Cow<'_, str>,
}

impl<W: io::Write> Lines<W> {
    /// Returns a writer of lines of text.
    pub fn of_text(out: W) -> Self {
        Self { out, escape: escape_for_terminal }
    }

    /// Returns a writer of lines of JSON.
    pub fn of_json(out: W) -> Self {
        Self { out, escape: escape_in_json }
    }
}

impl<W: io::Write> io::Write for Lines<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let (line, end) = match text.strip_suffix('\n') {
            Some(line) => (line, "\n"),
            None => (&*text, ""),
        };
        self.out.write_all(((self.escape)(line).into_owned() + end).as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    /// A character from each range, and its neighbours that are shown.
    const HOSTILE: &str = "\0\t\n\r\u{1b}[31m\u{7f}\u{85}\u{9b}\u{61c}\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}";
    const HARMLESS: &str = "~\u{a0}Müller, 検索 \u{200d}\u{2010}\u{2027}\u{202f}\u{2065}\u{206a} \\n";

    #[test]
    fn invisible_characters_are_escaped() {
        assert_eq!(
            escape_for_terminal(HOSTILE),
            "\\u{0}\\t\\n\\r\\u{1b}[31m\\u{7f}\\u{85}\\u{9b}\\u{61c}\\u{200e}\\u{200f}\\u{2028}\\u{2029}\\u{202a}\
             \\u{202e}\\u{2066}\\u{2069}"
        );
        assert!(matches!(escape_for_terminal(HARMLESS), Cow::Borrowed(text) if text == HARMLESS));
    }

    #[test]
    fn escaped_json_keeps_its_value() {
        let json = serde_json::to_string(&[HOSTILE, HARMLESS]).unwrap();
        let shown = escape_in_json(&json);
        assert!(!shown.contains(is_control_or_bidi));
        assert_eq!(serde_json::from_str::<Vec<String>>(&shown).unwrap(), [HOSTILE, HARMLESS]);
    }

    #[test]
    fn inner_line_breaks_are_escaped() {
        let mut out = Vec::new();
        Lines::of_text(&mut out).write_all(b"one\nstill one\x1b\n").unwrap();
        Lines::of_json(&mut out).write_all("\"\u{202e}\"\n".as_bytes()).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "one\\nstill one\\u{1b}\n\"\\u202e\"\n");
    }
}
