//! Removes characters that would break an output format.

use std::borrow::Cow;

use references::work::spend;

/// Puts text on one line: each run of white space becomes a single blank, and control characters are dropped. The
/// result contains only characters that XML 1.0 allows.
pub(crate) fn line(text: &str) -> Cow<'_, str> {
    spend(text.len());
    let is_tidy = !text.starts_with(' ')
        && !text.ends_with(' ')
        && !text.contains("  ")
        && !text.contains(|c: char| dropped(c) || c.is_whitespace() && c != ' ');
    if is_tidy {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let kept = text.replace(dropped, "");
    for word in kept.split_whitespace() {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    Cow::Owned(out)
}

/// Works like [`line`], but keeps paragraphs, one per line.
pub(crate) fn paragraphs(text: &str) -> String {
    let lines = text.split(['\n', '\r']).map(line).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Joins items with semicolons. A semicolon inside an item becomes a comma.
pub(crate) fn list(items: &[String]) -> String {
    let items = items.iter().map(|item| line(item).replace(';', ",")).filter(|item| !item.is_empty());
    items.collect::<Vec<_>>().join("; ")
}

/// Joins keywords like [`list`]. A single keyword with a comma is followed by a semicolon, so that readers do not split
/// it.
pub(crate) fn keywords(items: &[String]) -> String {
    let mut list = list(items);
    if list.contains([',', '|']) && !list.contains(';') {
        list.push(';');
    }
    list
}

/// Returns `true` for characters that are never part of text: control characters other than white space, the byte-order
/// mark, and two characters that XML forbids.
fn dropped(c: char) -> bool {
    c.is_control() && !c.is_whitespace() || matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_collapses_white_space_and_drops_controls() {
        for (text, expected) in [
            ("a b", "a b"),
            (" a\r\n b\u{2028}c\u{85}d\te\u{a0}f ", "a b c d e f"),
            ("a\u{0}b\u{1b}[31m\u{7f}\u{9b}\u{1c}c", "ab[31mc"),
            ("\u{feff}a\u{ffff}", "a"),
            ("שלום \u{202b}عربي\u{202c}", "שלום \u{202b}عربي\u{202c}"),
            (" \n", ""),
        ] {
            assert_eq!(line(text), expected, "{text:?}");
        }
        assert_eq!(paragraphs(" a \r\n\r\n\u{7} b\n"), "a\nb");
    }

    #[test]
    fn list_keeps_its_number_of_items() {
        let list = |items: &[&str]| list(&items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>());
        assert_eq!(list(&["a; b", "c"]), "a, b; c");
        assert_eq!(list(&["a", " ", "b"]), "a; b");
        assert_eq!(list(&[]), "");
        assert_eq!(keywords(&["Diabetes, Type 2".to_owned()]), "Diabetes, Type 2;");
        assert_eq!(keywords(&["a, b".to_owned(), "c".to_owned()]), "a, b; c");
    }
}
