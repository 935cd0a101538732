//! Normalizes white space where line breaks have no meaning.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

use super::entities;
use crate::{split::lines, work::spend};

/// Trims white space. For nearly all values, the bytes at both ends show that nothing but ASCII white space has to be
/// removed.
pub(super) fn trim(value: &str) -> &str {
    let value = value.trim_ascii();
    match value.as_bytes() {
        [] | [b'!'..=b'~'] | [b'!'..=b'~', .., b'!'..=b'~'] => value,
        _ => value.trim(),
    }
}

/// Removes elements for line breaks from the end of a value, which scripts on web pages leave there.
pub(super) fn without_breaks(value: &str) -> &str {
    const BREAKS: [&str; 3] = ["<br />", "<br>", "<br/>"];
    let mut value = value;
    while value.ends_with('>')
        && let Some(rest) = BREAKS.iter().find_map(|end| value.strip_suffix(end))
    {
        value = trim(rest);
    }
    value
}

/// Returns `true` if a value has only white space.
pub(super) fn is_blank(value: &str) -> bool {
    trim(value).is_empty()
}

/// The value on one line, or `None` if it is blank.
pub(super) fn line(value: &str) -> Option<String> {
    tidied(value).map(Cow::into_owned)
}

/// Works like [`line`], for owned values: a normalized value is not copied.
pub(super) fn line_of(value: Cow<'_, str>) -> Option<String> {
    match value {
        Cow::Owned(value) if without_breaks(trim(&value)).len() == value.len() && is_tidy(&value) => {
            (!value.is_empty()).then_some(value)
        }
        value => line(&value),
    }
}

/// Works like [`line`], but borrows a value that is already normalized.
pub(super) fn tidied(value: &str) -> Option<Cow<'_, str>> {
    let trimmed = without_breaks(trim(value));
    if !spend(value.len()) || trimmed.is_empty() {
        return None;
    }
    if is_tidy(trimmed) {
        return Some(Cow::Borrowed(trimmed));
    }
    if trimmed.contains(is_invisible) {
        let visible: String = trimmed.chars().filter(|c| !is_invisible(*c)).collect();
        return tidied(&visible).map(|value| Cow::Owned(value.into_owned()));
    }
    let mut out = String::with_capacity(trimmed.len());
    for part in lines::all(trimmed).map(trim).filter(|part| !part.is_empty()) {
        append(&mut out, part);
    }
    Some(Cow::Owned(out))
}

/// Normalizes running text: paragraphs are kept, other white space is collapsed.
pub(super) fn text_of(value: Cow<'_, str>) -> Option<String> {
    if memchr2(b'\n', b'\r', value.as_bytes()).is_none() {
        return line_of(value);
    }
    let paragraphs: Vec<String> = lines::all(&value).filter_map(line).collect();
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n"))
}

/// Joins a wrapped abstract to one paragraph: line breaks in RIS files have no meaning.
pub(super) fn on_one_line(value: &str) -> Cow<'_, str> {
    let decoded = entities::decode(value);
    if memchr2(b'\n', b'\r', decoded.as_bytes()).is_some() {
        return Cow::Owned(line_of(decoded).unwrap_or_default());
    }
    decoded
}

/// Removes elements from an abstract: those of JATS, which Crossref writes and others copy, and the headings of Europe PMC:
/// `<jats:p>We test.</jats:p>`, `<h4>Aim</h4>`.
pub(super) fn without_elements(value: Cow<'_, str>) -> Cow<'_, str> {
    if memchr(b'<', value.as_bytes()).is_none() {
        return value;
    }
    let value = without_page_elements(without_jats(value));
    if !value.contains("<h4>") || !spend(value.len()) {
        return value;
    }
    Cow::Owned(value.replace("<h4>", "\n").replace("</h4>", "\n"))
}

/// Removes the elements of a web page around and between paragraphs, at whose end a line ends: `<p>We test.</p>`,
/// `<div data-language="eng">We test.<br/></div>`. Marks of emphasis in
/// them are removed. Other elements are part of the text.
pub(super) fn without_page_elements(value: Cow<'_, str>) -> Cow<'_, str> {
    const PARAGRAPHS: [&str; 7] = ["p", "/p", "div", "/div", "br", "br/", "br /"];
    const EMPHASIS: [&str; 8] = ["strong", "/strong", "em", "/em", "b", "/b", "span", "/span"];
    /// The maximum length of an element with its attributes.
    const MAX_ELEMENT: usize = 200;
    let bytes = value.as_bytes();
    let is_page = memchr::memchr_iter(b'<', bytes).enumerate().any(|(number, at)| {
        let element = &bytes[at..];
        let is_first = || {
            [b"<p>".as_slice(), b"<p ", b"<div", b"<P>", b"<DIV"].iter().any(|name| element.starts_with(name))
        };
        element.starts_with(b"<br") || (number == 0 && is_first())
    });
    if !is_page || !spend(2 * value.len()) {
        return value;
    }
    let (mut out, mut rest) = (String::with_capacity(value.len()), value.as_ref());
    while let Some(at) = rest.find('<') {
        let (before, element) = rest.split_at(at);
        out.push_str(before);
        let front = &element.as_bytes()[1..element.len().min(MAX_ELEMENT)];
        let end =
            memchr2(b'>', b'<', front).map(|end| end + 1).filter(|end| element[*end..].starts_with('>'));
        let inner = end.map_or("", |end| &element[1..end]);
        let name = if inner.starts_with("br") { inner } else { inner.split(' ').next().unwrap_or_default() };
        let is_in = |names: &[&str]| names.iter().any(|known| known.eq_ignore_ascii_case(name));
        let is_paragraph = is_in(&PARAGRAPHS);
        let Some(end) = end.filter(|_| is_paragraph || is_in(&EMPHASIS)) else {
            out.push('<');
            rest = &element[1..];
            continue;
        };
        if is_paragraph {
            out.push('\n');
        }
        rest = &element[end + 1..];
    }
    out.push_str(rest);
    Cow::Owned(out)
}

fn without_jats(value: Cow<'_, str>) -> Cow<'_, str> {
    let text = value.as_ref();
    if !text.contains("<jats:") || !spend(text.len()) {
        return value;
    }
    /// Elements at whose end a line ends.
    const LINES: [&str; 7] = [
        "</jats:p>",
        "</jats:title>",
        "</jats:sec>",
        "</jats:list-item>",
        "</jats:label>",
        "</jats:disp-formula>",
        "<jats:break/>",
    ];
    /// The maximum length of an element with its attributes.
    const MAX_ELEMENT: usize = 200;
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find('<') {
        let (before, element) = rest.split_at(at);
        out.push_str(before);
        if !element.starts_with("<jats:") && !element.starts_with("</jats:") {
            out.push('<');
            rest = &element[1..];
            continue;
        }
        let front = &element.as_bytes()[1..element.len().min(MAX_ELEMENT)];
        let Some(end) =
            memchr2(b'>', b'<', front).map(|end| end + 1).filter(|end| element[*end..].starts_with('>'))
        else {
            out.push('<');
            rest = &element[1..];
            continue;
        };
        if LINES.contains(&&element[..=end]) {
            out.push('\n');
        }
        rest = &element[end + 1..];
    }
    Cow::Owned(out + rest)
}

/// Removes repeated values, and keeps the order.
pub(super) fn unique(mut values: Vec<String>) -> Vec<String> {
    /// Up to this number, comparing all pairs is faster than a set.
    const FEW: usize = 24;
    if values.len() <= FEW {
        let mut kept = 0;
        for at in 0..values.len() {
            if !values[..kept].contains(&values[at]) {
                values.swap(kept, at);
                kept += 1;
            }
        }
        values.truncate(kept);
        return values;
    }
    let mut seen = std::collections::HashSet::new();
    values.into_iter().filter(|value| seen.insert(value.clone())).collect()
}

/// Appends a part without line breaks, preceded by a blank.
fn append(out: &mut String, part: &str) {
    if is_tidy(part) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(part);
        return;
    }
    for word in part.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
}

/// Returns `true` if a value contains only single blanks as white space.
fn is_tidy(trimmed: &str) -> bool {
    let bytes = trimmed.as_bytes();
    // For nearly all values, a single branchless pass shows that nothing has to be changed. The last byte needs no
    // check: the value is trimmed, so it is not white space, and it does not begin a multi-byte character.
    let suspicious = match bytes.len() {
        0..9 => bytes.windows(2).any(|pair| is_suspicious(pair[0], pair[1])),
        9..17 => is_suspicious_in_windows::<9>(bytes),
        17..33 => is_suspicious_in_windows::<17>(bytes),
        _ => is_suspicious_in_windows::<33>(bytes),
    };
    !suspicious || is_tidy_exactly(bytes)
}

/// Works like [`is_suspicious`], for at least `WINDOW` bytes, which are checked in overlapping windows.
fn is_suspicious_in_windows<const WINDOW: usize>(bytes: &[u8]) -> bool {
    let look = |window: &[u8; WINDOW]| {
        let pairs = window.iter().zip(&window[1..]);
        pairs.fold(false, |found, (&byte, &next)| found | is_suspicious(byte, next))
    };
    let mut rest = bytes;
    while let Some(window) = rest.first_chunk() {
        if look(window) {
            return true;
        }
        rest = &rest[WINDOW - 1..];
    }
    bytes.last_chunk().is_none_or(look)
}

/// Returns `true` if a byte may be or begin white space other than a single blank.
fn is_suspicious(byte: u8, next: u8) -> bool {
    let wide = (byte == 0xC2) | (byte.wrapping_sub(0xE1) < 3) | (byte == 0xEF);
    (byte < b' ') | ((byte == b' ') & (next == b' ')) | wide
}

fn is_tidy_exactly(bytes: &[u8]) -> bool {
    let mut after_blank = false;
    for (at, &byte) in bytes.iter().enumerate() {
        let blank = byte == b' ';
        if byte < b' ' || (blank && after_blank) || (byte >= 0xC2 && is_wide_space(&bytes[at..])) {
            return false;
        }
        after_blank = blank;
    }
    true
}

/// Returns `true` for a character that programs insert without a meaning: a byte-order mark of a file that was appended, a
/// place or a mark where a word may be divided.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}' | '\u{2060}' | '\u{feff}')
}

/// Returns `true` if the text begins with a non-ASCII white space character, or with an invisible one.
fn is_wide_space(bytes: &[u8]) -> bool {
    match bytes {
        [0xC2, 0x85 | 0xA0 | 0xAD, ..]
        | [0xEF, 0xBB, 0xBF, ..]
        | [0xE1, 0x9A, 0x80, ..]
        | [0xE3, 0x80, 0x80, ..] => true,
        [0xE2, 0x80, third, ..] => matches!(third, 0x80..=0x8B | 0xA8 | 0xA9 | 0xAF),
        [0xE2, 0x81, 0x9F | 0xA0, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_white_space_character_is_detected() {
        for c in (0..=0x3001_u32).filter_map(char::from_u32) {
            let value = format!("a{c}b");
            assert_eq!(
                is_tidy(&value),
                c == ' ' || !(c.is_whitespace() || c.is_control() && c < ' ' || is_invisible(c)),
                "{c:?}"
            );
            let expected = value.split_whitespace().collect::<Vec<_>>().join(" ").replace(is_invisible, "");
            assert_eq!(line(&value).as_deref(), Some(expected.as_str()), "{c:?}");
        }
    }

    /// Values of different lengths are checked in windows of different sizes.
    #[test]
    fn white_space_is_detected_at_any_position() {
        for length in 2..80 {
            let plain = "a".repeat(length);
            assert_eq!(line(&plain).as_deref(), Some(plain.as_str()));
            for at in 1..length {
                for space in ["\t", "  ", "\u{a0}", "\u{3000}", " \n"] {
                    let value = [&plain[..at], space, &plain[at..]].concat();
                    let expected = [&plain[..at], " ", &plain[at..]].concat();
                    assert!(!is_tidy(&value), "{value:?}");
                    assert_eq!(line(&value), Some(expected), "{value:?}");
                }
            }
        }
    }

    #[test]
    fn wrapped_lines_become_one() {
        assert_eq!(line(" a  b \r\n   c\td\n\n e ").as_deref(), Some("a b c d e"));
        assert_eq!(line(" \n\u{a0}"), None);
        assert_eq!(text_of("a  b\r\n\r\n c".into()).as_deref(), Some("a b\nc"));
    }

    #[test]
    fn repetitions_are_dropped_in_lists_of_any_length() {
        let many = |count: usize| (0..count).chain(0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        for count in [3, 100] {
            assert_eq!(unique(many(count)), (0..count).map(|n| n.to_string()).collect::<Vec<_>>());
        }
    }
}
