//! Text without what would break a format.

use std::borrow::Cow;

use references::work::spend;

/// On one line: white space of any kind is one blank, and control characters are left out. What is left are characters that
/// XML 1.0 allows, too.
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

/// The same, with its paragraphs, one line each.
pub(crate) fn paragraphs(text: &str) -> String {
    let lines = text.split(['\n', '\r']).map(line).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join("\n")
}

/// Several in one text, between semicolons; a semicolon inside one becomes a comma.
pub(crate) fn list(items: &[String]) -> String {
    let items = items.iter().map(|item| line(item).replace(';', ",")).filter(|item| !item.is_empty());
    items.collect::<Vec<_>>().join("; ")
}

/// The same of keywords. Where one alone has a comma, a semicolon follows it, so that nobody takes it for two.
pub(crate) fn keywords(items: &[String]) -> String {
    let mut list = list(items);
    if list.contains([',', '|']) && !list.contains(';') {
        list.push(';');
    }
    list
}

/// Characters that no text needs: controls that are no white space, and two that XML forbids.
fn dropped(c: char) -> bool {
    c.is_control() && !c.is_whitespace() || matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_one_line_whatever_is_in_it() {
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
    fn a_list_has_as_many_items_as_it_had() {
        let list = |items: &[&str]| list(&items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>());
        assert_eq!(list(&["a; b", "c"]), "a, b; c");
        assert_eq!(list(&["a", " ", "b"]), "a; b");
        assert_eq!(list(&[]), "");
        assert_eq!(keywords(&["Diabetes, Type 2".to_owned()]), "Diabetes, Type 2;");
        assert_eq!(keywords(&["a, b".to_owned(), "c".to_owned()]), "a, b; c");
    }
}
