//! Parses the syntax of one BibTeX entry: its type, its key, and the names and values of its fields.
//!
//! An entry with unbalanced braces or quotes is read as far as possible: an unclosed value ends where a line begins the
//! next field.

use std::borrow::Cow;

use memchr::{memchr, memchr3_iter};

use super::{
    abbreviations::{Abbreviations, Budget},
    closed::ClosedValues,
};
use crate::{
    read::tidy::{is_blank, trim},
    work::spend,
};

/// A parsed entry.
#[derive(Debug, Default)]
pub(super) struct Entry<'a> {
    pub(super) kind: &'a str,
    pub(super) key: &'a str,
    /// The fields: names in lower case, and concatenated values without braces or quotes.
    pub(super) fields: Vec<(Cow<'a, str>, Cow<'a, str>)>,
    /// Text that belongs to no field.
    pub(super) rest: Vec<&'a str>,
    /// The defect of the entry, if any.
    pub(super) fault: Option<&'static str>,
}

/// The usual number of fields of an entry; the list grows if there are more.
const USUAL_FIELDS: usize = 16;

const UNCLOSED: &str = "its braces or quotes do not match";

/// Parses an entry. `is_field` distinguishes field names from keys that contain an equals sign.
pub(super) fn parse<'a>(
    text: &'a str,
    abbreviations: Option<&Abbreviations>,
    is_field: fn(&str) -> bool,
) -> Option<Entry<'a>> {
    let open = text.find(['{', '('])?;
    let kind = trim(text[..open].trim_start_matches('@'));
    let mut entry = Entry { kind, fields: Vec::with_capacity(USUAL_FIELDS), ..Entry::default() };
    let body = text[open + 1..].trim_end();
    let close = if text[open..].starts_with('{') { '}' } else { ')' };
    let body = body.strip_suffix(close).unwrap_or_else(|| {
        entry.fault = Some(UNCLOSED);
        body
    });
    let mut rest = body;
    (entry.key, rest) = key(rest, is_field);
    let mut values = ValueParser::new(body, abbreviations);
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        let Some(equals) = memchr(b'=', rest.as_bytes()) else { break };
        let (before, after) = (&rest[..equals], &rest[equals + 1..]);
        let name = name(before);
        let stray = trim(&before[..before.len() - name.len()]);
        if !stray.is_empty() || is_blank(name) {
            entry.fault = Some(UNCLOSED);
            match (rest_of_value(stray), entry.fields.last_mut()) {
                (Some(more), Some((_, value))) => {
                    let value = value.to_mut();
                    value.push(' ');
                    value.push_str(more);
                }
                _ => entry.rest.push(stray),
            }
            // This apparent name may be text of a value that ended too early.
            if is_blank(name) || name.contains(['{', '}', '"']) {
                let Some(next) = next_field(before.len(), rest) else { break };
                spend(next);
                entry.rest.push(rest[before.len()..next].trim());
                rest = &rest[next..];
                continue;
            }
        }
        if !spend(equals) {
            break;
        }
        let (value, after, closed) = values.value(after);
        if !closed {
            entry.fault = Some(UNCLOSED);
        }
        entry.fields.push((lower(trim(name)), value));
        rest = after;
    }
    entry.rest.push(rest.trim());
    entry.rest.retain(|rest| !rest.is_empty());
    Some(entry)
}

/// The rest of a value that ended at a brace too early: ` b},` behind `{a}`.
fn rest_of_value(stray: &str) -> Option<&str> {
    let more = stray.trim_end_matches(',').strip_suffix('}')?.trim();
    (!more.is_empty() && !more.contains(['{', '}', '"'])).then_some(more)
}

/// Splits off the key. Some programs omit the key and the comma after it.
fn key(body: &str, is_field: fn(&str) -> bool) -> (&str, &str) {
    let end = body.find([',', '=', '\n', '{', '"']).unwrap_or(body.len());
    let front = body[..end].trim();
    if body[end..].starts_with('=') {
        let quoted = body[end + 1..].trim_start().starts_with(['{', '"']);
        if quoted || is_field(&front.to_ascii_lowercase()) {
            return ("", body);
        }
    }
    if body[end..].starts_with('\n') {
        // A key without its comma, or on a separate line.
        let after = body[end..].trim_start();
        return (front, after.strip_prefix(',').unwrap_or(after));
    }
    match body.split_once(',') {
        Some((key, fields)) => (key.trim(), fields),
        None => (body.trim(), ""),
    }
}

/// Returns the name before an equals sign: the text after the last line break, quote or brace.
fn name(before: &str) -> &str {
    let trimmed = before.trim_end();
    let ends = |byte: u8| matches!(byte, b'\n' | b'\r' | b'{' | b'}' | b'"' | b',');
    let start = trimmed.bytes().rposition(ends).map_or(0, |at| at + 1);
    &before[start..]
}

fn lower(name: &str) -> Cow<'_, str> {
    let tidy = !name.bytes().any(|byte| byte.is_ascii_uppercase() || byte == b'\t') && !name.contains("  ");
    if tidy {
        return Cow::Borrowed(name);
    }
    Cow::Owned(name.split_whitespace().collect::<Vec<_>>().join(" ").to_ascii_lowercase())
}

/// Returns the position at or after `from` where a line begins the next field.
fn next_field(from: usize, text: &str) -> Option<usize> {
    let breaks = text[from..].match_indices('\n').map(|(at, _)| from + at + 1);
    breaks.into_iter().find(|&at| begins_field(&text[at..]))
}

/// Returns `true` if the text begins with `name = {`, `name = "` or `name = 5`.
fn begins_field(text: &str) -> bool {
    let text = text.trim_start_matches([' ', '\t', ',']);
    let name =
        text.bytes().take(40).take_while(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(byte)).count();
    let Some(value) = text[name..].trim_start_matches([' ', '\t']).strip_prefix('=') else { return false };
    let value = value.trim_start_matches([' ', '\t']);
    name > 0 && value.starts_with(|c: char| matches!(c, '{' | '"') || c.is_ascii_digit() || is_opening(c))
}

/// Returns `true` for a quotation mark that text processors write instead of `"`.
fn is_opening(c: char) -> bool {
    matches!(c, '“' | '”' | '„' | '‘' | '’' | '«' | '»')
}

/// The quotation marks that may close a value, by the marks that may open it. People mix the marks of a kind.
const MARKS: [[char; 4]; 3] = [['"', '“', '”', '„'], ['\'', '`', '‘', '’'], ['«', '»', '»', '«']];

/// Returns `true` if a value ends before this text: nothing, a part of the value, or a field follows.
fn follows_value(after: &str) -> bool {
    let rest = after.trim_start();
    let is_separate = rest.starts_with(',') || after[..after.len() - rest.len()].contains('\n');
    let rest = rest.trim_start_matches(|c: char| c == ',' || c.is_whitespace());
    rest.is_empty() || after.trim_start().starts_with('#') || (is_separate && is_field(rest))
}

/// Parses a value without braces that contains commas: `title = Tests, trials and more,`.
fn unquoted_until_field(text: &str, from: usize) -> ValuePart<'_> {
    let mut ends = text[from..].match_indices([',', '\n']).map(|(at, _)| from + at);
    let end = ends.find(|at| follows_value(&text[*at..])).unwrap_or(text.len());
    spend(3 * end);
    ValuePart { text: trim(&text[..end]), after: &text[end..], bare: false, closed: false }
}

/// Returns `true` if a text begins with the name of a field, of up to three words, and an equals sign.
fn is_field(text: &str) -> bool {
    /// The maximum length of a name, with the blanks behind it.
    const MAX_NAME: usize = 60;
    const MAX_WORDS: usize = 3;
    let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || b"_-.:/ \t".contains(byte);
    let name = text.bytes().take(MAX_NAME).take_while(is_part).count();
    text[name..].starts_with('=')
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text[..name].split_ascii_whitespace().count() <= MAX_WORDS
}

/// Parses the values of an entry.
struct ValueParser<'a, 'k> {
    /// The entry after its opening brace. Unread text is always a suffix of it.
    body: &'a str,
    abbreviations: Option<&'k Abbreviations>,
    budget: Budget,
    /// Indexes of the closed values, with and without escapes; built at the first unclosed value.
    closed: [Option<ClosedValues>; 2],
    /// The length of the text behind the last place to which a search for the end of a value found none, by the kind of
    /// quotation marks.
    unmarked: [usize; 3],
}

/// One part of a value: `{…}`, `"…"`, or a word.
struct ValuePart<'a> {
    text: &'a str,
    after: &'a str,
    bare: bool,
    closed: bool,
}

impl<'a, 'k> ValueParser<'a, 'k> {
    fn new(body: &'a str, abbreviations: Option<&'k Abbreviations>) -> Self {
        Self {
            body,
            abbreviations,
            budget: Budget::of(body.len()),
            closed: [None, None],
            unmarked: [usize::MAX; 3],
        }
    }

    /// Parses the value at the beginning, without outer braces or quotes and with its parts concatenated. Returns the
    /// value, the text after it, and whether it was closed.
    fn value(&mut self, text: &'a str) -> (Cow<'a, str>, &'a str, bool) {
        let mut joined = Cow::Borrowed("");
        let (mut rest, mut closed) = (text, true);
        loop {
            let part = self.part(rest.trim_start(), rest.len() == text.len());
            closed &= part.closed;
            let known = self.abbreviations.filter(|_| part.bare);
            let known = known.and_then(|known| known.get(part.text, &mut self.budget));
            let text = known.map_or(Cow::Borrowed(part.text), |known| Cow::Owned(known.to_owned()));
            if joined.is_empty() {
                joined = text;
            } else {
                joined.to_mut().push_str(&text);
            }
            match part.after.trim_start().strip_prefix('#') {
                Some(more) => rest = more,
                None => return (joined, part.after, closed),
            }
        }
    }

    /// Parses a part of a value, which is the first one (`is_first`) or follows another one.
    fn part(&mut self, text: &'a str, is_first: bool) -> ValuePart<'a> {
        if !text.starts_with(['"', '{']) {
            return self.unquoted_part(text, is_first);
        }
        // By BibTeX's own rule a backslash does not escape a brace, and Windows paths end in one.
        let end = self.closing(text, true).or_else(|| self.closing(text, false));
        if let Some(at) = end {
            // `"He said "no" to it",`
            if text.starts_with('"')
                && !follows_value(&text[at + 1..])
                && let Some(part) = self.quoted_until_field(text)
            {
                return part;
            }
            return ValuePart { text: &text[1..at], after: &text[at + 1..], bare: false, closed: true };
        }
        let end = next_field(1, text).unwrap_or(text.len());
        spend(end);
        let inner = text[1..end].trim_end();
        let inner = inner.strip_suffix(',').unwrap_or(inner).trim_end();
        ValuePart { text: inner, after: &text[end..], bare: false, closed: false }
    }

    /// Parses a word, a number, or a value between other quotation marks than BibTeX's.
    fn unquoted_part(&mut self, text: &'a str, is_first: bool) -> ValuePart<'a> {
        if text.starts_with(|c| is_opening(c) || matches!(c, '\'' | '`'))
            && let Some(part) = self.quoted_until_field(text)
        {
            return part;
        }
        let end = text.find([',', '#', '\n', '}']).unwrap_or(text.len());
        spend(end);
        if is_first && text[end..].starts_with(',') && !follows_value(&text[end..]) {
            return unquoted_until_field(text, end + 1);
        }
        ValuePart { text: trim(&text[..end]), after: &text[end..], bare: true, closed: true }
    }

    /// Parses a value up to the first quotation mark that a field or the end of the entry follows. No line before it begins
    /// a field.
    fn quoted_until_field(&mut self, text: &'a str) -> Option<ValuePart<'a>> {
        let opening = text.chars().next()?;
        let kind = MARKS.iter().position(|marks| marks.contains(&opening))?;
        if text.len() > self.unmarked[kind] {
            return None;
        }
        let is_double = text.starts_with("``");
        let from = if is_double { 2 } else { opening.len_utf8() };
        let places = text[from..].match_indices(|c| c == '\n' || MARKS[kind].contains(&c));
        let mut ends = places.map(|(at, mark)| (from + at, from + at + mark.len()));
        let is_end = |(at, end): &(usize, usize)| {
            let rest = &text[*end..];
            if text[*at..].starts_with('\n') { begins_field(rest) } else { follows_value(rest) }
        };
        let found = ends.find(is_end);
        spend(3 * found.map_or(text.len(), |(_, end)| end));
        let Some((at, end)) = found.filter(|(at, _)| !text[*at..].starts_with('\n')) else {
            self.unmarked[kind] = found.map_or(0, |(at, _)| text.len() - at);
            return None;
        };
        let value = text.get(from..at).unwrap_or_default();
        let value = if is_double { value.strip_suffix('\'').unwrap_or(value) } else { value };
        Some(ValuePart { text: value, after: &text[end..], bare: false, closed: false })
    }

    /// Finds the end of the brace or quote at the beginning.
    fn closing(&mut self, text: &str, escapes: bool) -> Option<usize> {
        let known = &mut self.closed[usize::from(escapes)];
        let at = self.body.len() - text.len();
        if known.as_ref().is_some_and(|closed| !closed.has(at)) {
            return None;
        }
        let found = closing(text, escapes);
        spend(found.unwrap_or(text.len()));
        if found.is_none() {
            spend(self.body.len());
            *known = Some(ClosedValues::new(self.body.as_bytes(), escapes));
        }
        found
    }
}

/// Finds the end of the brace or quote at the beginning.
fn closing(text: &str, escapes: bool) -> Option<usize> {
    let bytes = text.as_bytes();
    if bytes.first() == Some(&b'"') {
        let marks = bytes.iter().enumerate().skip(1);
        let marks = marks.filter(|(_, byte)| matches!(byte, b'\\' | b'{' | b'}' | b'"')).map(|(at, _)| at);
        return closed_by(b'"', bytes, marks, escapes);
    }
    closed_by(b'}', bytes, memchr3_iter(b'\\', b'{', b'}', bytes).skip(1), escapes)
}

/// Finds the first mark that equals `close`, is outside of inner braces, and is not escaped.
fn closed_by(close: u8, text: &[u8], marks: impl Iterator<Item = usize>, escapes: bool) -> Option<usize> {
    let (mut depth, mut escaped) = (0_usize, None);
    for at in marks {
        match text[at] {
            _ if escaped == Some(at) => {}
            b'\\' if escapes => escaped = Some(at + 1),
            byte if byte == close && depth == 0 => return Some(at),
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(text: &str) -> (String, Vec<(String, String)>, bool) {
        let entry = parse(text, None, |name| name == "year").unwrap();
        let fields = entry.fields.into_iter().map(|(name, value)| (name.into_owned(), value.into_owned()));
        (entry.key.to_owned(), fields.collect(), entry.fault.is_some())
    }

    fn names(text: &str) -> (String, Vec<String>, bool) {
        let (key, fields, fault) = fields(text);
        (key, fields.into_iter().map(|(name, _)| name).collect(), fault)
    }

    fn own(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn values_in_any_notation_are_concatenated() {
        let value = |text| {
            let (value, after, closed) = ValueParser::new(text, None).value(text);
            (value.into_owned(), after.to_owned(), closed)
        };
        assert_eq!(value(r#" "a {"} b" # jan , c"#).0, "a {\"} bjan");
        assert_eq!(value("{a {b}}, c"), ("a {b}".into(), ", c".into(), true));
        assert_eq!(value(" 2020\n}").0, "2020");
        assert_eq!(value("{a"), ("a".into(), String::new(), false));
        assert_eq!(value(r"{C:\papers\}, year = 2").0, r"C:\papers\");
    }

    #[test]
    fn entry_key_may_be_missing() {
        assert_eq!(
            names("@a{x:y=z+1, Early  Access Date = {1}}"),
            ("x:y=z+1".into(), own(&["early access date"]), false)
        );
        assert_eq!(names("@a{\n title = {A, B}, year=1}"), (String::new(), own(&["title", "year"]), false));
        assert_eq!(names("@a{year=2000, b={1}}"), (String::new(), own(&["year", "b"]), false));
        assert_eq!(names("@a(k\n title = \"A\" year = 1)"), ("k".into(), own(&["title", "year"]), false));
        assert_eq!(names("@a{k}"), ("k".into(), Vec::new(), false));
    }

    #[test]
    fn value_with_a_brace_too_many_is_whole() {
        let (_, fields, fault) = fields("@a{k, title = {A} b},\n year = {1}}");
        assert_eq!((fields[0].1.as_str(), fields.len(), fault), ("A b", 2, true));
    }

    #[test]
    fn unclosed_value_ends_before_next_field() {
        let (key, fields, fault) = fields("@a{k, title = {A {B},\n author = {C},\n year = 1\n}");
        assert_eq!((key.as_str(), fault), ("k", true));
        assert_eq!(
            fields,
            [("title", "A {B}"), ("author", "C"), ("year", "1")].map(|(a, b)| (a.to_owned(), b.to_owned()))
        );
        assert_eq!(names("@a{k, title = {A} B}, c\n x = {1}}"), ("k".into(), own(&["title", "x"]), true));
    }

    /// The index agrees with the search for every brace and quote of every short text.
    #[test]
    fn index_predicts_failing_searches() {
        let signs = [r"\", "{", "}", "\"", "a", "{", "}"];
        for number in 0..7_usize.pow(6) {
            let text: String = (0..6).map(|at| signs[number / 7_usize.pow(at) % 7]).collect();
            for escapes in [true, false] {
                let closed = ClosedValues::new(text.as_bytes(), escapes);
                for (at, sign) in text.bytes().enumerate() {
                    let follows = at == 0 || text.as_bytes()[at - 1] != b'\\';
                    if matches!(sign, b'{' | b'"') && follows {
                        assert_eq!(closed.has(at), closing(&text[at..], escapes).is_some(), "{text} {at}");
                    }
                }
            }
        }
    }
}
