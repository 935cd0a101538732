//! Collapses white space where line breaks have no meaning.

use memchr::memchr2;

/// The value on one line, or none if it is blank.
pub(super) fn line(value: &str) -> Option<String> {
    let value = value.trim();
    if value.is_empty() {
        return None;
    }
    if is_tidy(value) {
        return Some(value.to_owned());
    }
    let mut out = String::with_capacity(value.len());
    for part in value.split(['\n', '\r']).map(str::trim).filter(|part| !part.is_empty()) {
        append(&mut out, part);
    }
    Some(out)
}

/// Running text: paragraphs are kept, other white space is collapsed.
pub(super) fn text(value: &str) -> Option<String> {
    if memchr2(b'\n', b'\r', value.as_bytes()).is_none() {
        return line(value);
    }
    let paragraphs: Vec<String> = value.split(['\n', '\r']).filter_map(line).collect();
    (!paragraphs.is_empty()).then(|| paragraphs.join("\n"))
}

/// Each value once, in order.
pub(super) fn unique(values: Vec<String>) -> Vec<String> {
    /// Up to this number, comparing all with all is faster than a set.
    const FEW: usize = 24;
    if values.len() <= FEW {
        return values.into_iter().fold(Vec::new(), |mut kept, value| {
            if !kept.contains(&value) {
                kept.push(value);
            }
            kept
        });
    }
    let mut seen = std::collections::HashSet::new();
    values.into_iter().filter(|value| seen.insert(value.clone())).collect()
}

/// Appends a part without line breaks, with a blank before it.
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

/// Whether the only white space is single blanks, so that nothing has to be collapsed.
fn is_tidy(trimmed: &str) -> bool {
    let bytes = trimmed.as_bytes();
    let Some((_, next)) = bytes.split_first() else { return true };
    // For nearly all values, one pass without branches shows that there is nothing to do. The last byte is not white
    // space, because the value is trimmed, and does not begin a character of several bytes.
    let suspicious = bytes.iter().zip(next).fold(0_u8, |found, (&byte, &next)| {
        let blanks = u8::from(byte == b' ') & u8::from(next == b' ');
        let wide = u8::from(byte == 0xC2) | u8::from(byte.wrapping_sub(0xE1) < 3);
        found | u8::from(byte < b' ') | blanks | wide
    });
    suspicious == 0 || is_tidy_at_a_closer_look(bytes)
}

fn is_tidy_at_a_closer_look(bytes: &[u8]) -> bool {
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

/// Whether the text begins with a white space character beyond ASCII.
fn is_wide_space(bytes: &[u8]) -> bool {
    match bytes {
        [0xC2, 0x85 | 0xA0, ..] | [0xE1, 0x9A, 0x80, ..] | [0xE3, 0x80, 0x80, ..] => true,
        [0xE2, 0x80, third, ..] => matches!(third, 0x80..=0x8A | 0xA8 | 0xA9 | 0xAF),
        [0xE2, 0x81, 0x9F, ..] => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_white_space_character_is_seen() {
        for c in (0..=0x3001_u32).filter_map(char::from_u32) {
            let value = format!("a{c}b");
            assert_eq!(
                is_tidy(&value),
                c == ' ' || !(c.is_whitespace() || c.is_control() && c < ' '),
                "{c:?}"
            );
            let expected = value.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(line(&value).as_deref(), Some(expected.as_str()), "{c:?}");
        }
    }

    #[test]
    fn wrapped_lines_become_one() {
        assert_eq!(line(" a  b \r\n   c\td\n\n e ").as_deref(), Some("a b c d e"));
        assert_eq!(line(" \n\u{a0}"), None);
        assert_eq!(text("a  b\r\n\r\n c").as_deref(), Some("a b\nc"));
    }

    #[test]
    fn repetitions_are_dropped_in_short_and_long_lists() {
        let many = |count: usize| (0..count).chain(0..count).map(|n| n.to_string()).collect::<Vec<_>>();
        for count in [3, 100] {
            assert_eq!(unique(many(count)), (0..count).map(|n| n.to_string()).collect::<Vec<_>>());
        }
    }
}
