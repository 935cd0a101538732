//! Recognizes the markup at a `<` in an XML document.

use crate::work::spend;

/// The maximum length of a tag. Longer text is not markup, and would be scanned again with every chunk.
const MAX_TAG: usize = 64 * 1024;

/// The end of a CDATA section.
pub(crate) const CDATA_END: &[u8] = b"]]>";

/// The markup at a `<`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Markup<'a> {
    /// More bytes are needed.
    Incomplete,
    /// A literal `<`.
    Text,
    Doctype,
    /// A section with its own rules: the length of its opening, and the bytes that end it.
    Section(usize, &'static [u8]),
    Start {
        name: &'a [u8],
        length: usize,
        empty: bool,
    },
    End {
        name: &'a [u8],
        length: usize,
    },
}

/// Recognizes the markup at the front of the tail, which is a `<`.
pub(crate) fn markup(tail: &[u8]) -> Markup<'_> {
    const SECTIONS: [(&[u8], &[u8]); 3] = [(b"<!--", b"-->"), (b"<![CDATA[", CDATA_END), (b"<?", b"?>")];
    const DOCTYPE: &[u8] = b"<!DOCTYPE";
    // Nearly all markup is tags, whose second byte differs from that of other markup.
    if tail.get(1).is_some_and(|second| !matches!(second, b'!' | b'?')) {
        return tag(tail);
    }
    for (open, close) in SECTIONS {
        if tail.starts_with(open) {
            return Markup::Section(open.len(), close);
        }
        if open.starts_with(tail) {
            return Markup::Incomplete;
        }
    }
    let start = &tail[..tail.len().min(DOCTYPE.len())];
    if start.eq_ignore_ascii_case(&DOCTYPE[..start.len()]) {
        return if start.len() == DOCTYPE.len() { Markup::Doctype } else { Markup::Incomplete };
    }
    tag(tail)
}

/// Recognizes a start or end tag. A `<` before the closing `>` means that the first `<` was text, because XML does not
/// allow it in tags.
fn tag(tail: &[u8]) -> Markup<'_> {
    let closing = tail.get(1) == Some(&b'/');
    let name_at = if closing { 2 } else { 1 };
    match tail.get(name_at) {
        None => return Markup::Incomplete,
        Some(first) if !(first.is_ascii_alphabetic() || matches!(first, b'_' | b':' | 0x80..)) => {
            return Markup::Text;
        }
        // The first line of a record of Engineering Village: `<RECORD 1>`.
        Some(b'R') if tail[name_at..].strip_prefix(b"RECORD ").is_some_and(begins_with_digit) => {
            return Markup::Text;
        }
        Some(_) => {}
    }
    let stop = match plain_end(&tail[name_at..], closing) {
        Some(stop) => Some(stop),
        None => quoted_end(&tail[name_at..], closing),
    };
    let Some(stop) = stop else {
        return if tail.len() - name_at >= MAX_TAG { Markup::Text } else { Markup::Incomplete };
    };
    spend(stop);
    let inner = &tail[name_at..name_at + stop];
    if tail[name_at + stop] == b'<' {
        return Markup::Text;
    }
    let name = inner.split(|byte| byte.is_ascii_whitespace() || *byte == b'/').next().unwrap_or_default();
    let length = name_at + stop + 1;
    if closing {
        Markup::End { name, length }
    } else {
        Markup::Start { name, length, empty: inner.ends_with(b"/") }
    }
}

fn begins_with_digit(text: &[u8]) -> bool {
    text.first().is_some_and(u8::is_ascii_digit)
}

/// A fast path for the end of the tag: the first `<` or `>`, unless a quote is open there.
fn plain_end(inner: &[u8], closing: bool) -> Option<usize> {
    let searched = &inner[..inner.len().min(MAX_TAG)];
    let stop = memchr::memchr2(b'<', b'>', searched)?;
    // No single quotes, and an even number of double quotes.
    let plain_quotes = || {
        let seen = inner[..stop]
            .iter()
            .fold((false, false), |(single, odd), &byte| (single | (byte == b'\''), odd ^ (byte == b'"')));
        seen == (false, false)
    };
    (closing || inner[stop] == b'<' || plain_quotes()).then_some(stop)
}

/// The end of the tag, ignoring a `>` in quotes.
fn quoted_end(inner: &[u8], closing: bool) -> Option<usize> {
    let mut quote = None;
    inner.iter().take(MAX_TAG).position(|&byte| match (quote, byte) {
        (_, b'<') | (None, b'>') => true,
        (None, b'"' | b'\'') if !closing => {
            quote = Some(byte);
            false
        }
        (Some(open), _) if open == byte => {
            quote = None;
            false
        }
        _ => false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_ends_outside_of_quotes() {
        assert_eq!(markup(b"<a b='>'/>"), Markup::Start { name: b"a", length: 10, empty: true });
        assert_eq!(markup(b"</a >"), Markup::End { name: b"a", length: 5 });
    }

    #[test]
    fn partial_markup_is_incomplete() {
        for half in ["<", "</", "<a", "<a b='>", "<!", "<!-", "<![CDATA", "<!DOC"] {
            assert_eq!(markup(half.as_bytes()), Markup::Incomplete, "{half}");
        }
    }

    #[test]
    fn bare_angle_bracket_is_text() {
        for text in ["< 5", "<5", "<five</a>", "<!a", "<RECORD 1>"] {
            assert_eq!(markup(text.as_bytes()), Markup::Text, "{text}");
        }
    }
}
