//! Reads values after labels at the beginning of lines, for formats that differ only in their labels.

use std::borrow::Cow;

use super::{
    draft::Draft,
    entities,
    field::{Field, FieldName, Index},
    names, notation, tidy,
};
use crate::{split::lines, work::spend};

/// The maximum number of lines with a quotation mark before one that a spreadsheet quoted.
const MAX_QUOTED: usize = 16;

/// Finds the label at the beginning of a line, and the offset of its value.
pub(super) type Label<'a, Name> = fn(&'a str) -> Option<(Name, usize)>;

/// Iterates over the labels of a record and their values. Each value extends to the next line with a label.
pub(super) fn values<'a, Name: Copy>(
    text: &'a str,
    mut label: impl FnMut(&'a str) -> Option<(Name, usize)>,
) -> impl Iterator<Item = (Name, &'a str)> {
    let text = without_page_end(text.trim_start_matches('\u{feff}'));
    spend(text.len());
    let mut lines = lines::spans(text);
    let mut open: Option<(Name, usize)> = None;
    // The end of the last line. The line break after a value is not part of the value.
    let mut end = 0;
    std::iter::from_fn(move || {
        for line in lines.by_ref() {
            let before = std::mem::replace(&mut end, line.end);
            if let Some((name, value)) = label(&text[line.clone()])
                && let Some((name, start)) = open.replace((name, line.start + value))
            {
                return Some((name, tidy::trim(&text[start..before])));
            }
        }
        open.take().map(|(name, start)| (name, tidy::trim(&text[start..])))
    })
}

/// Removes the end tags of the web page, or the end of the block of code, that the last record of a file was saved with.
fn without_page_end(text: &str) -> &str {
    let mut rest = text.trim_end().strip_suffix("\n```").unwrap_or(text);
    while let Some((front, name)) = rest.trim_end().strip_suffix('>').and_then(|rest| rest.rsplit_once("</"))
    {
        if !["html", "body", "pre"].iter().any(|known| name.eq_ignore_ascii_case(known)) {
            break;
        }
        rest = front;
    }
    rest
}

/// The text of a record that a spreadsheet saved: it quotes each line with a comma or a quotation mark. `is_value`
/// recognizes the content of such a line.
pub(super) fn unquoted(text: &str, is_value: impl Fn(&str) -> bool) -> Cow<'_, str> {
    let inner = |line: &str| -> Option<String> {
        let inner = line.strip_prefix('"')?.strip_suffix('"')?;
        is_value(inner).then(|| inner.replace("\"\"", "\""))
    };
    let is_quoted = |at: usize| text[at + 1..].lines().next().is_some_and(|line| inner(line).is_some());
    if !memchr::memmem::find_iter(text.as_bytes(), "\n\"").take(MAX_QUOTED).any(is_quoted)
        || !spend(text.len())
    {
        return Cow::Borrowed(text);
    }
    let lines = lines::all(text).map(|line| inner(line).map_or(Cow::Borrowed(line), Cow::Owned));
    let mut out = String::with_capacity(text.len());
    for line in lines {
        out.push_str(&line);
        out.push('\n');
    }
    Cow::Owned(out)
}

/// Reads a record that consists of such values only.
pub(super) fn read<'a>(text: &'a str, label: Label<'a, &'a str>, index: &Index) -> Draft<'a> {
    let mut draft = Draft::default();
    for (name, value) in values(text, label) {
        add(&mut draft, index, name, value);
    }
    draft
}

pub(super) fn add<'a>(draft: &mut Draft<'a>, index: &Index, name: &'a str, value: &'a str) {
    let Some(named) = index.find(name) else { return draft.extra.push(name, &entities::decode(value)) };
    match named.field {
        // Journal, year, volume, issue and pages on one line.
        Field::Citation => {
            let citation = tidy::line(&entities::decode(value)).unwrap_or_default();
            if !super::citation::add(draft, named.name, &citation) {
                draft.extra.push(name, &citation);
            }
        }
        _ => add_lines(draft, named, value),
    }
}

/// Adds the value of a tag. People and keywords are separated by line breaks or semicolons, and a wrapped abstract is
/// one paragraph.
pub(super) fn add_lines<'a>(draft: &mut Draft<'a>, named: FieldName, value: &'a str) {
    match named.field {
        Field::Author | Field::ShortAuthor | Field::Editor => {
            if value.is_empty() {
                draft.blank(named.field);
            }
            for line in lines::all(value) {
                if let Some(letter) = single(line) {
                    draft.letter(named.field, letter);
                    continue;
                }
                if let Some(list) = list(line) {
                    draft.authors(named.field, list.iter().filter_map(|name| names::one(name)).collect());
                    continue;
                }
                // A character reference also ends in a semicolon: "M&uuml;ller".
                draft.people_in(named.field, &entities::decode(line));
            }
        }
        Field::Keyword => match list(value) {
            Some(list) => list.iter().for_each(|keyword| draft.keyword(named.rank, keyword)),
            None => keywords(draft, named, &entities::decode(value)),
        },
        Field::Abstract => draft.add_decoded(named, tidy::on_one_line(value)),
        _ => draft.add(named, value),
    }
}

/// The only character of a line, unless it is a digit.
fn single(line: &str) -> Option<&str> {
    let mut characters = line.trim().chars();
    let is_letter = characters.next().is_some_and(|c| !c.is_numeric() && !names::is_ideographic(c));
    (is_letter && characters.next().is_none()).then(|| line.trim())
}

/// The items of a list in the notation of Python or R, which scripts write.
fn list(value: &str) -> Option<Vec<String>> {
    let value = value.trim();
    if !value.starts_with(['[', 'c']) || !spend(value.len()) {
        return None;
    }
    notation::list(&entities::decode(value)).filter(|items| !items.is_empty())
}

/// Adds keywords between line breaks and semicolons, in Chinese, Japanese and Korean also between wide punctuation.
pub(super) fn keywords(draft: &mut Draft<'_>, named: FieldName, value: &str) {
    let ends = memchr::memchr3_iter(b'\n', b'\r', b';', value.as_bytes());
    for keyword in lines::between(ends, value.len()) {
        for keyword in between_wide_signs(&value[keyword]) {
            draft.keyword(named.rank, keyword);
        }
    }
}

/// Splits a text with ideographs at wide semicolons and commas outside of brackets.
fn between_wide_signs(value: &str) -> Vec<&str> {
    if value.is_ascii() || !value.contains(['；', '，', '、']) || !value.contains(names::is_ideographic) {
        return vec![value];
    }
    let mut depth = 0_usize;
    let ends = |c: char| {
        match c {
            '(' | '（' => depth += 1,
            ')' | '）' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && matches!(c, '；' | '，' | '、')
    };
    value.split(ends).collect()
}

/// Splits keywords in Chinese, Japanese and Korean at wide semicolons, or at commas. In other languages a keyword may
/// contain a comma: `Neoplasms, Second Primary`. The name of a substance may also contain one: `N,N-二甲基甲酰胺`.
pub(super) fn east_asian_keywords(value: &str) -> Vec<&str> {
    if value.contains('；') {
        return value.split('；').collect();
    }
    if value.contains([';', '\n', '\r']) || !value.contains(names::is_ideographic) {
        return vec![value];
    }
    let bytes = value.as_bytes();
    let is_in_name = |at: usize| {
        let is_part = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_alphanumeric);
        is_part(at.checked_sub(1).and_then(|before| bytes.get(before))) && is_part(bytes.get(at + 1))
    };
    let (mut keywords, mut start) = (Vec::new(), 0);
    for (at, comma) in value.match_indices([',', '，', '、']) {
        if comma != "," || !is_in_name(at) {
            keywords.push(&value[start..at]);
            start = at + comma.len();
        }
    }
    keywords.push(&value[start..]);
    keywords
}
