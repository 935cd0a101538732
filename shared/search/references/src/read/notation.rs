//! Lists and maps in Python's notation, which pandas writes into the cells of a table, and vectors of R.

use super::frames::{self, quoted};
use crate::work::spend;

/// Parses a list of texts, such as `['Marx, Karl', "O'Neil, Ann"]` or `c("Marx, Karl", "O'Neil, Ann")`. NumPy has no commas
/// between the texts, a tuple of Python has parentheses, and an array of PostgreSQL has braces.
pub(super) fn list(cell: &str) -> Option<Vec<String>> {
    let vector =
        || cell.strip_prefix("c(\"").and(cell.strip_prefix("c(")).and_then(|rest| rest.strip_suffix(')'));
    if let Some(texts) = frames::texts_of_r(cell) {
        return Some(texts);
    }
    let tuple = || {
        let inner = cell.strip_prefix('(')?.strip_suffix(')')?;
        let has_items = inner.ends_with(',') || inner.contains("', ") || inner.contains("\", ");
        (inner.starts_with(['\'', '"']) && has_items).then_some(inner)
    };
    let array = || {
        let inner = cell.strip_prefix('{')?.strip_suffix('}')?;
        (inner.starts_with('"') && inner.ends_with('"') && !inner.contains("\":")).then_some(inner)
    };
    let inner = cell.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let inner = inner.or_else(vector).or_else(tuple).or_else(array)?;
    let (mut items, mut rest) = (Vec::new(), inner.trim());
    while let Some(quote) = rest.chars().next() {
        if !matches!(quote, '\'' | '"') {
            return None;
        }
        spend(1);
        // A quote ends the item only before a comma or the end: "O'Neil" contains one.
        let (close, _) = rest.match_indices(quote).skip(1).find(|(at, _)| {
            let after = rest[at + 1..].trim_start();
            let is_spaced = after.len() < rest.len() - at - 1;
            after.is_empty() || after.starts_with(',') || (is_spaced && after.starts_with(['\'', '"']))
        })?;
        items.push(rest[1..close].to_owned());
        rest = rest[close + 1..].trim_start().trim_start_matches(',').trim_start();
    }
    Some(items)
}

/// The texts and numbers of a map, with their keys.
pub(super) type Map = Vec<(String, String)>;

/// Parses a map, or a list of maps. Inner maps are omitted. Semantic Scholar lists authors as
/// `[{'authorId': '1', 'name': 'Ann Roe'}]`, and identifiers as `{'DOI': '10.1/x'}`.
pub(super) fn maps(cell: &str) -> Option<Vec<Map>> {
    let cell = cell.trim();
    let inner = cell.strip_prefix('[').map_or(cell, str::trim_start);
    let is_map = inner.strip_prefix('{')?.trim_start().starts_with(['\'', '"']) && cell.ends_with(['}', ']']);
    if !is_map {
        return None;
    }
    spend(cell.len());
    let (mut maps, mut key, mut depth, mut rest) = (Vec::<Map>::new(), None::<String>, 0_usize, inner);
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        let value = match c {
            '{' => {
                depth += 1;
                if depth == 1 {
                    maps.push(Map::new());
                }
                continue;
            }
            '}' => {
                depth = depth.saturating_sub(1);
                continue;
            }
            ',' => {
                key = None;
                continue;
            }
            '\'' | '"' => {
                let (text, after) = quoted(rest, c)?;
                rest = after;
                if key.is_none() && after.trim_start().starts_with(':') {
                    key = Some(text);
                    continue;
                }
                text
            }
            '[' | ']' | ':' => continue,
            _ if key.is_none() || c.is_whitespace() => continue,
            // A number, or a name of a constant.
            _ => {
                let end = rest.find([',', '}', ']']).unwrap_or(rest.len());
                let number = format!("{c}{}", rest[..end].trim_end());
                rest = &rest[end..];
                number
            }
        };
        if let (Some(key), 1, Some(map)) = (key.take(), depth, maps.last_mut())
            && !ABSENT.contains(&value.as_str())
        {
            map.push((key, value));
        }
    }
    maps.iter().any(|map| !map.is_empty()).then_some(maps)
}

/// The constants that stand for a missing value.
const ABSENT: [&str; 4] = ["None", "null", "nan", "NaN"];

#[cfg(test)]
mod tests {
    use super::*;

    fn of(cell: &str) -> Option<String> {
        let show =
            |map: Map| map.iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",");
        Some(maps(cell)?.into_iter().map(show).collect::<Vec<_>>().join("|"))
    }

    #[test]
    fn lists_are_parsed() {
        let of = |cell| list(cell).map(|items| items.join("|"));
        assert_eq!(of("['Roe, Ann', \"O'Neil, Pat\"]").as_deref(), Some("Roe, Ann|O'Neil, Pat"));
        assert_eq!(of("c(\"Roe, Ann\", \"O'Neil, Pat\")").as_deref(), Some("Roe, Ann|O'Neil, Pat"));
        for numpy in ["['Roe, A.' 'Doe, B.']", "['Roe, A.'\n 'Doe, B.']", "('Roe, A.', 'Doe, B.')"] {
            assert_eq!(of(numpy).as_deref(), Some("Roe, A.|Doe, B."), "{numpy}");
        }
        assert_eq!(of("('Roe, A.',)").as_deref(), Some("Roe, A."));
        assert_eq!(of("{\"Roe, A.\",\"Doe, B.\"}").as_deref(), Some("Roe, A.|Doe, B."));
        for other in [
            "('A' or B)",
            "('A')",
            "{\"a\": \"b\"}",
            "[Anonymous]",
            "c(Roe)",
            "c(\"Roe\"",
            "['Roe', 5]",
            "Roe, A",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn maps_are_parsed() {
        let authors = r#"[{'authorId': '1', 'name': 'Ann Roe'}, {'authorId': None, 'name': "Pat O'Neil"}]"#;
        assert_eq!(of(authors).as_deref(), Some("authorId=1,name=Ann Roe|name=Pat O'Neil"));
        assert_eq!(of(r#"{"CorpusId": 12, "DOI": "10.1\/x"}"#).as_deref(), Some("CorpusId=12,DOI=10.1/x"));
        let nested = "[{'name': 'Ann Roe', 'affiliations': [{'name': 'A University'}]}]";
        assert_eq!(of(nested).as_deref(), Some("name=Ann Roe"));
    }

    #[test]
    fn other_cells_are_no_maps() {
        for other in [
            "['Ann Roe']",
            "{Roe}, Ann",
            "[{'name': 'Ann",
            "Roe, Ann",
            "{'a'",
            "[]",
            "{}",
            "{'Ann Roe', 'Bo Li'}",
            r#"{"Roe, Ann","Smith, Bo"}"#,
            r#"{"World Health Organization"}"#,
            r"[{'name': 'Ann\",
        ] {
            assert_eq!(of(other), None, "{other}");
        }
    }

    #[test]
    fn escapes_are_resolved() {
        for (cell, value) in [
            (r#"{"n": "Jos\u00e9 \ud835\udc00"}"#, "n=José \u{1d400}"),
            (r"{'n': 'Ann\xa0Roe\n\U0001d400'}", "n=Ann\u{a0}Roe \u{1d400}"),
            (r"{'n': 'O\'Neil \u12'}", "n=O'Neil u12"),
            (r"{'n': '\ué000'}", "n=ué000"),
        ] {
            assert_eq!(of(cell).as_deref(), Some(value), "{cell}");
        }
    }
}
