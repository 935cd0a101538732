//! Nested values in the cells of a table: vectors, lists and data frames of R, and lists and maps of Python or JSON.
//!
//! R's `as.character` writes a data frame of OpenAlex as `list(id = c("A1", "A2"), display_name = c("Ann Roe", "Bob Doe"))`.
//! It becomes a list of maps, like those that pandas writes.

use serde_json::{Map, Value};

use super::{names, placeholders::is_error};
use crate::work::spend;

/// The maximum depth of nested values.
const MAX_DEPTH: u8 = 16;
/// The maximum length of a parsed cell in bytes. Small values take up to a hundred times their length in memory.
const MAX_CELL: usize = 256 * 1024;
/// The maximum number of rows of a data frame. The largest collaborations have some 5,000 authors.
const MAX_ROWS: usize = 20_000;
/// The maximum length of the name of a column, which each row contains.
const MAX_NAME: usize = 64;
/// The names of values of R that contain other values.
const CALLS: [&str; 8] =
    ["c", "list", "structure", "data.frame", "character", "integer", "numeric", "logical"];
/// The names of complete names of people, the preferred name first. OpenAlex has the author inside of the authorship.
const NAMES: [&str; 8] = [
    "author",
    "au_display_name",
    "display_name",
    "raw_author_name",
    "full_name",
    "fullName",
    "author_name",
    "name",
];
/// The names of family names and of given names.
const PARTS: [(&str, &str); 4] =
    [("family", "given"), ("last_name", "first_name"), ("lastname", "firstname"), ("LastName", "ForeName")];
/// The names of keywords.
const KEYWORDS: [&str; 5] = ["display_name", "keyword", "term", "name", "text"];

/// Returns `true` for a value of R that contains nothing, and for an error of a spreadsheet.
pub(super) fn is_absent(cell: &str) -> bool {
    is_error(cell)
        || matches!(
            cell,
            "NA" | "NULL"
                | "NaN"
                | "nan"
                | "\\N"
                | "NA_character_"
                | "character(0)"
                | "list()"
                | "list(NULL)"
                | "list(NA)"
        )
}

/// Parses a vector, list or data frame of R.
pub(super) fn of_r(cell: &str) -> Option<Value> {
    let cell = cell.trim();
    let is_call = cell.ends_with(')') && CALLS.iter().take(4).any(|name| is_call(cell, name));
    is_call.then(|| whole(cell)).flatten()
}

/// Parses a list or map of Python or JSON, or a value of R.
pub(super) fn parse(cell: &str) -> Option<Value> {
    let cell = cell.trim();
    let is_nested =
        (cell.starts_with('{') && cell.ends_with('}')) || (cell.starts_with('[') && cell.ends_with(']'));
    if is_nested { whole(cell) } else { of_r(cell) }
}

fn is_call(text: &str, name: &str) -> bool {
    text.strip_prefix(name).is_some_and(|rest| rest.starts_with('('))
}

fn whole(cell: &str) -> Option<Value> {
    if cell.len() > MAX_CELL || !spend(cell.len()) {
        return None;
    }
    let (value, rest) = value(cell, 0)?;
    rest.trim().is_empty().then_some(value)
}

/// Parses a value, and returns it with the text behind it.
fn value(text: &str, depth: u8) -> Option<(Value, &str)> {
    let text = text.trim_start();
    if depth > MAX_DEPTH {
        return None;
    }
    match text.chars().next()? {
        quote @ ('"' | '\'') => {
            let (text, rest) = quoted(&text[1..], quote)?;
            Some((Value::String(text), rest))
        }
        '[' => {
            let (items, rest) = items(&text[1..], ']', depth)?;
            Some((Value::Array(items.into_iter().map(|(_, value)| value).collect()), rest))
        }
        '{' => {
            let (items, rest) = items(&text[1..], '}', depth)?;
            let is_map = items.iter().all(|(name, _)| name.is_some());
            is_map.then(|| (object(items), rest))
        }
        _ => match CALLS.iter().find(|name| is_call(text, name)) {
            Some(name) => {
                let (items, rest) = items(&text[name.len() + 1..], ')', depth)?;
                Some((called(name, items), rest))
            }
            None => {
                let end = text.find([',', ')', ']', '}'])?;
                Some((atom(text[..end].trim())?, &text[end..]))
            }
        },
    }
}

/// A constant or a number.
fn atom(text: &str) -> Option<Value> {
    let value = match text {
        "NA" | "NULL" | "NA_character_" | "None" | "null" | "nan" | "NaN" => Value::Null,
        "TRUE" | "True" | "true" => Value::Bool(true),
        "FALSE" | "False" | "false" => Value::Bool(false),
        _ => match text.trim_end_matches('L').parse::<i64>() {
            Ok(number) => Value::from(number),
            Err(_) => Value::from(text.parse::<f64>().ok()?),
        },
    };
    Some(value)
}

type Items = Vec<(Option<String>, Value)>;

/// Parses values up to a closing bracket. A value may have a name before `=` or `:`.
fn items(text: &str, close: char, depth: u8) -> Option<(Items, &str)> {
    let (mut items, mut rest) = (Vec::new(), text.trim_start());
    loop {
        if let Some(behind) = rest.strip_prefix(close) {
            return Some((items, behind));
        }
        let (name, from) = name(rest, close).unzip();
        let (value, behind) = value(from.unwrap_or(rest), depth + 1)?;
        items.push((name, value));
        let behind = behind.trim_start();
        rest = match behind.strip_prefix(',') {
            Some(next) => next.trim_start(),
            None if behind.starts_with(close) => behind,
            None => return None,
        };
    }
}

/// The name of a value, and the text behind its sign.
fn name(text: &str, close: char) -> Option<(String, &str)> {
    let sign = match close {
        ')' => '=',
        '}' => ':',
        _ => return None,
    };
    let (name, rest) = match text.chars().next()? {
        quote @ ('"' | '\'' | '`') => quoted(&text[1..], quote)?,
        _ => {
            let is_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
            let end = text.find(|c| !is_name(c))?;
            (text[..end].to_owned(), &text[end..])
        }
    };
    let rest = rest.trim_start().strip_prefix(sign)?;
    (!name.is_empty()).then_some((name, rest))
}

/// The value of a call: `c` joins vectors, and `structure` has attributes behind its value.
fn called(name: &str, items: Items) -> Value {
    match name {
        "structure" => items.into_iter().next().map_or(Value::Null, |(_, value)| value),
        "character" | "integer" | "numeric" | "logical" => Value::Array(Vec::new()),
        _ if !items.is_empty() && items.iter().all(|(name, _)| name.is_some()) => object(items),
        "c" => Value::Array(items.into_iter().flat_map(|(_, value)| flat(value)).collect()),
        _ => Value::Array(items.into_iter().map(|(_, value)| value).collect()),
    }
}

fn flat(value: Value) -> Vec<Value> {
    match value {
        Value::Array(items) => items,
        value => vec![value],
    }
}

fn object(items: Items) -> Value {
    Value::Object(items.into_iter().filter_map(|(name, value)| Some((name?, value))).collect())
}

/// The maps of a list, or the rows of a data frame. Its columns are equally long. Other columns are omitted, because a
/// long one and many short ones would have far more cells than values.
fn rows(value: Value) -> Vec<Map<String, Value>> {
    match value {
        Value::Array(items) => items.into_iter().flat_map(rows).collect(),
        Value::Object(columns) => {
            let longest = columns.values().filter_map(Value::as_array).map(Vec::len).max();
            // A map of Python has no columns.
            let Some(length) = longest.filter(|length| *length > 0) else { return vec![columns] };
            if length > MAX_ROWS {
                return Vec::new();
            }
            let mut rows = vec![Map::new(); length];
            for (name, value) in columns {
                let values = match value {
                    Value::Array(items) => items,
                    value => vec![value],
                };
                if values.len() == length && name.len() <= MAX_NAME {
                    rows.iter_mut().zip(values).for_each(|(row, value)| _ = row.insert(name.clone(), value));
                }
            }
            rows
        }
        _ => Vec::new(),
    }
}

/// The texts of a list that contains nothing else.
fn texts(value: &Value) -> Option<Vec<String>> {
    match value {
        Value::String(text) => Some(vec![text.clone()]),
        Value::Null => Some(Vec::new()),
        Value::Number(number) => Some(vec![number.to_string()]),
        Value::Array(items) => Some(items.iter().map(texts).collect::<Option<Vec<_>>>()?.concat()),
        _ => None,
    }
}

/// The texts of a vector or list of R.
pub(super) fn texts_of_r(cell: &str) -> Option<Vec<String>> {
    texts(&of_r(cell)?)
}

fn text_of<'a>(row: &'a Map<String, Value>, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| match row.get(*name)? {
        Value::String(text) => Some(text.as_str()),
        Value::Object(inner) => inner.get("display_name")?.as_str(),
        _ => None,
    })
}

/// The names of people in a cell.
pub(super) fn people(cell: &str) -> Option<Vec<String>> {
    let value = parse(cell)?;
    if let Some(texts) = texts(&value) {
        // Lists in Python's notation are split elsewhere.
        return cell.ends_with(')').then(|| texts.iter().filter_map(|name| names::one(name)).collect());
    }
    let person = |row: &Map<String, Value>| {
        let parts = PARTS
            .iter()
            .find_map(|(family, given)| names::joined(text_of(row, &[family])?, text_of(row, &[given])?));
        parts.or_else(|| names::one(text_of(row, &NAMES)?))
    };
    let people: Vec<String> = rows(value).iter().filter_map(person).collect();
    (!people.is_empty()).then_some(people)
}

/// The keywords in a cell.
pub(super) fn keywords(cell: &str) -> Option<Vec<String>> {
    let value = parse(cell)?;
    if let Some(texts) = texts(&value) {
        return cell.ends_with(')').then_some(texts);
    }
    let keywords: Vec<String> =
        rows(value).iter().filter_map(|row| text_of(row, &KEYWORDS).map(str::to_owned)).collect();
    (!keywords.is_empty()).then_some(keywords)
}

/// Splits a text at the quotation mark that ends it, and resolves escapes.
pub(super) fn quoted(text: &str, quote: char) -> Option<(String, &str)> {
    // In UTF-16, because JSON escapes some characters as two units.
    let (mut units, mut rest) = (Vec::new(), text);
    loop {
        let c = rest.chars().next()?;
        rest = &rest[c.len_utf8()..];
        if c == quote {
            return Some((String::from_utf16_lossy(&units), rest));
        }
        let number;
        (number, rest) = if c == '\\' { escape(rest)? } else { (u32::from(c), rest) };
        match u16::try_from(number) {
            Ok(unit) => units.push(unit),
            Err(_) => {
                let decoded = char::from_u32(number).unwrap_or(char::REPLACEMENT_CHARACTER);
                units.extend_from_slice(decoded.encode_utf16(&mut [0; 2]));
            }
        }
    }
}

/// Reads an escape behind its backslash. Returns its character or unit of UTF-16, and the text after it.
fn escape(text: &str) -> Option<(u32, &str)> {
    let c = text.chars().next()?;
    let rest = &text[c.len_utf8()..];
    let digits = match c {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => 0,
    };
    if let Some(number) = rest.get(..digits).and_then(|digits| u32::from_str_radix(digits, 16).ok()) {
        return Some((number, &rest[digits..]));
    }
    let plain = if matches!(c, 'n' | 'r' | 't') { ' ' } else { c };
    Some((u32::from(plain), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_and_frames_are_parsed() {
        let of = |cell: &str| parse(cell).map(|value| value.to_string());
        assert_eq!(of("c(\"a\", NA, \"b\\\"c\")").as_deref(), Some("[\"a\",null,\"b\\\"c\"]"));
        assert_eq!(
            of("list(a = c(\"b\", \"c\"), `d e` = 1L)").as_deref(),
            Some("{\"a\":[\"b\",\"c\"],\"d e\":1}")
        );
        assert_eq!(of("structure(list(\"a\"), class = \"x\")").as_deref(), Some("[\"a\"]"));
        assert_eq!(
            of("[{'a': {'b': None}, \"c\": [1, True]}]").as_deref(),
            Some("[{\"a\":{\"b\":null},\"c\":[1,true]}]")
        );
        for other in ["c(a", "c(\"a\") of", "list", "control(a)", "[1] a", "{a}", "c(\"a\" \"b\")"] {
            assert_eq!(of(other), None, "{other}");
        }
        let deep = format!("{}1{}", "[".repeat(40), "]".repeat(40));
        assert_eq!(of(&deep), None);
    }

    #[test]
    fn few_bytes_have_few_cells() {
        let columns = |name: &str| (0..5_000).map(|n| format!("{name}{n} = 1, ")).collect::<String>();
        let column = |rows: usize| format!("author = c({}\"Roe\")", "\"Doe\", ".repeat(rows - 1));
        let cells = |cell: &str| rows(parse(cell).unwrap()).iter().map(Map::len).sum::<usize>();
        assert_eq!(cells(&format!("list({}{})", columns("a"), column(5_000))), 5_000);
        assert_eq!(cells(&format!("list({} = c(1, 2), {})", "n".repeat(MAX_NAME + 1), column(2))), 2);
        assert_eq!(cells(&format!("list({})", column(MAX_ROWS))), MAX_ROWS);
        assert_eq!(cells(&format!("list({})", column(MAX_ROWS + 1))), 0);
        assert_eq!(parse(&format!("c(\"{}\")", "x".repeat(MAX_CELL))), None);
    }

    #[test]
    fn people_and_keywords_are_found() {
        let people = |cell: &str| people(cell).unwrap_or_default().join("|");
        assert_eq!(people("list(\"Smith J\", \"Doe A\")"), "Smith, J|Doe, A");
        assert_eq!(
            people("list(id = c(\"x\", \"y\"), display_name = c(\"Roe, Ann\", \"Doe, B\"))"),
            "Roe, Ann|Doe, B"
        );
        assert_eq!(people("list(family = \"Roe\", given = \"Ann\")"), "Roe, Ann");
        assert_eq!(people("[{'author': {'id': 1, 'display_name': 'Roe, Ann'}, 'raw': []}]"), "Roe, Ann");
        let keywords = |cell: &str| keywords(cell).unwrap_or_default().join("|");
        assert_eq!(keywords("list(id = c(\"x\", \"y\"), display_name = c(\"a, b\", \"c\"))"), "a, b|c");
        assert_eq!(keywords("list(\"a\", c(\"b\", \"c\"))"), "a|b|c");
    }
}
