//! Lists and maps in Python's notation, which pandas writes into the cells of a table.

use crate::work::spend;

/// Parses a list of texts, such as `['Marx, Karl', "O'Neil, Ann"]`.
pub(super) fn list(cell: &str) -> Option<Vec<String>> {
    let inner = cell.strip_prefix('[')?.strip_suffix(']')?;
    let (mut items, mut rest) = (Vec::new(), inner.trim());
    while let Some(quote) = rest.chars().next() {
        if !matches!(quote, '\'' | '"') {
            return None;
        }
        spend(1);
        // A quote ends the item only before a comma or the end: "O'Neil" contains one.
        let (close, _) = rest.match_indices(quote).skip(1).find(|(at, _)| {
            let after = rest[at + 1..].trim_start();
            after.is_empty() || after.starts_with(',')
        })?;
        items.push(rest[1..close].to_owned());
        rest = rest[close + 1..].trim_start().trim_start_matches(',').trim_start();
    }
    Some(items)
}

/// Returns the texts of a map, or of the maps in a list, with their keys. Other values and inner maps are left out.
/// Semantic Scholar lists authors as `[{'authorId': '1', 'name': 'Ann Roe'}]`, and identifiers as `{'DOI': '10.1/x'}`.
pub(super) fn pairs(cell: &str) -> Option<Vec<(String, String)>> {
    let cell = cell.trim();
    let inner = cell.strip_prefix('[').map_or(cell, str::trim_start);
    let is_map = inner.strip_prefix('{')?.trim_start().starts_with(['\'', '"']) && cell.ends_with(['}', ']']);
    if !is_map {
        return None;
    }
    spend(cell.len());
    let (mut pairs, mut key, mut depth, mut rest) = (Vec::new(), None, 0_usize, inner);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' => key = None,
            '\'' | '"' => {
                let (text, after) = quoted(rest, c)?;
                rest = after;
                match key.take() {
                    None if after.trim_start().starts_with(':') => key = Some(text),
                    Some(key) if depth == 1 => pairs.push((key, text)),
                    _ => {}
                }
            }
            _ => {}
        }
    }
    Some(pairs)
}

/// Splits a text at the quotation mark that ends it, and resolves escapes.
fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    let (mut found, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => found.extend(chars.next().map(|(_, escaped)| escaped)),
            _ if c == quote => return Some((found, &text[at + 1..])),
            _ => found.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_maps_are_found() {
        let of = |cell: &str| {
            let pairs = pairs(cell)?.into_iter().map(|(key, value)| format!("{key}={value}"));
            Some(pairs.collect::<Vec<_>>().join("|"))
        };
        let authors = r#"[{'authorId': '1', 'name': 'Ann Roe'}, {'authorId': None, 'name': "Pat O'Neil"}]"#;
        assert_eq!(of(authors).as_deref(), Some("authorId=1|name=Ann Roe|name=Pat O'Neil"));
        assert_eq!(of(r#"{"CorpusId": 12, "DOI": "10.1\/x"}"#).as_deref(), Some("DOI=10.1/x"));
        let nested = "[{'name': 'Ann Roe', 'affiliations': [{'name': 'A University'}]}]";
        assert_eq!(of(nested).as_deref(), Some("name=Ann Roe"));
        for other in ["['Ann Roe']", "{Roe}, Ann", "[{'name': 'Ann", "Roe, Ann", "{'a'", "[]", "{}"] {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
