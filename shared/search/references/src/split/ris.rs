//! Splits RIS files.
//!
//! A record begins at `TY  -` and ends at `ER  -`, at the next `TY  -`, or at the end of the file. A line `ER  -` with
//! text ends it only if a blank line or `TY  -` follows: abstracts explain `ER - estrogen receptor`. Fields between
//! `ER  -` and a blank line belong to the record, unless a title or author is among them. Other text between records,
//! such as the `1.` of Ovid or the preamble of Cochrane, is skipped. Lines with a title, author, DOI or abstract there
//! are a record whose `TY` is missing, because skipping them would lose a study. It includes the lines directly before
//! them, and it may follow `ER` on the same line, or after text: `ER  - 2`.
//!
//! A line with `TY` directly behind an abstract may be a part of it: `TY  - of the disease is important`.
//!
//! On a web page, elements such as `<br>` take the place of line breaks.

use super::{
    lines::{self, LineElements, MARK_LENGTH, unmarked},
    numbered::is_cochrane,
    tagged::{LineRole, LineRules, OpenRecord, TaggedSplitter, TypeInText},
};
use crate::read::RIS_KINDS;

/// The maximum number of blanks before a tag. A line with more blanks is indented text.
const MAX_INDENT: usize = 16;
/// The number of bytes that determine whether a line has a tag.
const TAG_PREFIX: usize = MARK_LENGTH + MAX_INDENT + 24;
/// The tags of titles. A record has each of them at most once.
const TITLES: [&[u8; 2]; 2] = [b"TI", b"T1"];
/// Tags that begin a record without `TY`.
const UNTYPED_STARTS: [&[u8; 2]; 7] = [b"TI", b"T1", b"AU", b"A1", b"DO", b"AB", b"N2"];
/// The tags of abstracts, which some programs write after `ER`.
const ABSTRACTS: [&[u8; 2]; 2] = [b"AB", b"N2"];
/// Tags that may be written with one blank before the dash. Two letters and a dash are common in prose, so only known
/// tags count.
#[rustfmt::skip]
const SINGLE_BLANK: [&[u8; 2]; 83] = [
    b"A1", b"A2", b"A3", b"A4", b"AB", b"AD", b"AN", b"AU", b"AV", b"BT", b"C1", b"C2", b"C3", b"C4", b"C5", b"C6",
    b"C7", b"C8", b"CA", b"CN", b"CP", b"CT", b"CY", b"DA", b"DB", b"DI", b"DO", b"DP", b"ED", b"EP", b"ER", b"ET",
    b"ID", b"IS", b"J1", b"J2", b"JA", b"JF", b"JO", b"KW", b"L1", b"L2", b"L3", b"L4", b"LA", b"LB", b"LK", b"M1",
    b"M2", b"M3", b"N1", b"N2", b"NV", b"OP", b"PB", b"PP", b"PY", b"RI", b"RN", b"RP", b"SE", b"SN", b"SO", b"SP",
    b"ST", b"SV", b"T1", b"T2", b"T3", b"TA", b"TI", b"TT", b"TY", b"U1", b"U2", b"U3", b"U4", b"U5", b"UR", b"VL",
    b"VO", b"Y1", b"Y2",
];

/// Tags of more than two letters, and the usual tags of the same fields.
const LONG_TAGS: [(&[u8], &[u8; 2]); 8] = [
    (b"DESCRIPTORS", b"KW"),
    (b"KEYWORDS", b"KW"),
    (b"DOI", b"DO"),
    (b"PMID", b"C2"),
    (b"PMC", b"C2"),
    (b"ISSN", b"SN"),
    (b"ISBN", b"SN"),
    (b"JOI", b"ID"),
];

/// The maximum number of blanks before the dash of a tag.
const MAX_BLANKS: usize = 4;
/// The maximum length of a code of a type.
const MAX_TYPE: usize = 8;
/// The number of bytes that determine whether a line begins or ends a record with other blanks and dashes.
const LOOSE_PREFIX: usize = MARK_LENGTH + MAX_INDENT + 48;
/// The minimum number of tags in the first record of such a file, in addition to `TY` and `ER`.
const MIN_TAGS: usize = 2;
/// Tags with which a word of a wrapped line may begin, such as `T1-weighted` or `ST-elevation`.
#[rustfmt::skip]
const IN_WORDS: [&[u8; 2]; 16] = [
    b"T1", b"T2", b"T3", b"CT", b"ST", b"SE", b"IS", b"SP", b"AV", b"CP", b"CN", b"PB", b"CA", b"ED", b"PP", b"C3",
];
/// A no-break space in HTML.
pub(crate) const NO_BREAK_SPACE: &str = "&nbsp;";
/// The names of elements that end a line.
const LINE_ELEMENTS: [&[u8]; 3] = [b"br", b"p", b"div"];
/// The maximum length of an element that ends a line.
const MAX_ELEMENT: usize = 12;
/// The maximum number of bytes of elements and white space between two lines.
const MAX_ELEMENTS: usize = 64;
/// The number of bytes within which the code of a type ends.
const MAX_CODE: usize = 32;

/// The tag of a line in upper case, and the offset of its value.
///
/// A tag is followed by two blanks and a dash, or by a tab and a dash. One blank, no-break spaces and longer dashes are
/// accepted after the usual tags in upper case.
pub(crate) fn tag(line: &[u8]) -> Option<([u8; 2], usize)> {
    let unmarked = unmarked(line);
    let marked = line.len() - unmarked.len();
    let line = unmarked;
    let indent = line.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let rest = line.get(indent..)?;
    let &[first, second, blank, third, ..] = rest else { return None };
    if indent > MAX_INDENT || !first.is_ascii_alphabetic() || !second.is_ascii_alphanumeric() {
        return None;
    }
    let is_usual = || SINGLE_BLANK.contains(&&[first, second]);
    let width = match (blank, third, rest.get(4)) {
        (b' ' | b'\t', b' ' | b'\t', Some(b'-')) => 5,
        // Some programs replace the blanks with a tab.
        (b'\t', b'-', _) => 4,
        (b' ', b'-', None | Some(b' ' | b'\t' | b'\r' | b'\n')) if is_usual() => 4,
        (b' ' | b'\t', b' ' | b'\t', Some(128..))
        | (b' ' | b'\t', 128.. | b'&', _)
        | (0xA0 | 0xC2 | b'&', ..)
            if is_usual() =>
        {
            typographic_width(rest)?
        }
        _ => return long_tag(rest).map(|(name, width)| (name, marked + indent + width)),
    };
    Some(([first.to_ascii_uppercase(), second.to_ascii_uppercase()], marked + indent + width))
}

/// The usual tag in place of a longer one, and the width of the latter: `DESCRIPTORS  - ` of APA PsycNet. Programs also
/// write the columns of nbib, `DOI - ` and `PMID- `.
fn long_tag(line: &[u8]) -> Option<([u8; 2], usize)> {
    const DASH: &[u8] = b"  -";
    const COLUMNS: usize = 4;
    let (name, usual) = LONG_TAGS.iter().find(|(name, _)| line.starts_with(name))?;
    let rest = &line[name.len()..];
    let width = match rest {
        _ if rest.starts_with(DASH) => name.len() + DASH.len(),
        [b'-', b' ', ..] if name.len() == COLUMNS => COLUMNS + 1,
        [b' ', b'-', b' ', ..] if name.len() <= COLUMNS => name.len() + 2,
        _ => return None,
    };
    Some((**usual, width))
}

/// The width of a tag with no-break spaces or a longer dash, in UTF-8, Windows-1252 or HTML. Web pages contain the
/// spaces, and word processors lengthen the dash.
fn typographic_width(tag: &[u8]) -> Option<usize> {
    let (mut at, mut blanks) = (2, 0);
    while blanks < 2 {
        let rest = &tag[at..];
        let html = || rest.starts_with(NO_BREAK_SPACE.as_bytes()).then_some(NO_BREAK_SPACE.len());
        let Some(width) = blank_width(rest).or_else(html) else { break };
        at += width;
        blanks += 1;
    }
    at += match &tag[at..] {
        [b'-', ..] => 1,
        // One blank before a longer dash is common in prose.
        rest => long_dash_width(rest).filter(|_| blanks > 1)?,
    };
    matches!(tag.get(at), None | Some(b' ' | b'\t' | b'\r' | b'\n' | 0xA0 | 0xC2 | b'&')).then_some(at)
}

/// The width of a blank, a tab or a no-break space at the beginning of a text, in UTF-8 or Windows-1252.
fn blank_width(text: &[u8]) -> Option<usize> {
    match text {
        [b' ' | b'\t' | 0xA0, ..] => Some(1),
        [0xC2, 0xA0, ..] => Some(2),
        _ => None,
    }
}

/// The width of a dash longer than a hyphen at the beginning of a text, in UTF-8 or Windows-1252.
fn long_dash_width(text: &[u8]) -> Option<usize> {
    match text {
        [0x96 | 0x97, ..] => Some(1),
        [0xE2, 0x80, 0x90..=0x95, ..] | [0xE2, 0x88, 0x92, ..] => Some(3),
        _ => None,
    }
}

/// Returns `true` for a text that may be the code of a type.
pub(crate) fn is_type_code(text: &[u8]) -> bool {
    (2..=MAX_TYPE).contains(&text.len()) && text.iter().all(u8::is_ascii_alphanumeric)
}

/// Returns `true` if a line begins a record.
pub(crate) fn is_type_line(line: &[u8]) -> bool {
    matches!(tag(line), Some((name, _)) if &name == b"TY")
}

/// Returns the code of a line `TY  - JOUR`, and `true` if a markup element that ends the line follows the code.
pub(crate) fn type_code(line: &[u8]) -> Option<(&[u8], bool)> {
    let (_, value) = tag(line).filter(|(name, _)| name == b"TY")?;
    let mut code = &line[value..];
    while let Some(rest) = code.trim_ascii_start().strip_prefix(NO_BREAK_SPACE.as_bytes()) {
        code = rest;
    }
    let end = code.iter().take(MAX_CODE).position(|byte| *byte == b'<');
    let is_ended = end.is_some_and(|end| element(&code[end..]).is_some());
    let code = if is_ended { &code[..end.unwrap_or_default()] } else { code };
    Some((code.trim_ascii(), is_ended))
}

/// The length of the elements at the beginning of a text that separate two lines of a web page, if a line with a tag
/// follows. Paragraphs within a value may end at a line break, so there only `<br>` counts.
pub(crate) fn line_elements(text: &[u8]) -> Option<usize> {
    let (mut at, mut has_break, mut has_line_end) = (0, false, false);
    while at < MAX_ELEMENTS {
        let rest = text.get(at..)?;
        match rest.first()? {
            b'<' => {
                let length = element(rest)?;
                has_break |= rest.get(1..3).is_some_and(|name| name.eq_ignore_ascii_case(b"br"));
                at += length;
            }
            byte if byte.is_ascii_whitespace() => {
                has_line_end |= matches!(byte, b'\n' | b'\r');
                at += 1;
            }
            _ => break,
        }
    }
    (has_break || !has_line_end).then(|| tag(&text[at..])).flatten().map(|_| at)
}

/// Returns the length of the markup element with which a text begins, if this element may stand at the end of a line.
pub(crate) fn element(text: &[u8]) -> Option<usize> {
    let text = &text[..text.len().min(MAX_ELEMENT)];
    let end = memchr::memchr(b'>', text)?;
    let name = text[1..end].trim_ascii();
    let name = name.strip_prefix(b"/").or_else(|| name.strip_suffix(b"/")).unwrap_or(name).trim_ascii();
    LINE_ELEMENTS.iter().any(|known| name.eq_ignore_ascii_case(known)).then_some(end + 1)
}

/// Returns `true` if a value has only blanks, tabs and no-break spaces, possibly before an element that ends a web page.
pub(crate) fn is_blank(mut value: &[u8]) -> bool {
    loop {
        value = value.trim_ascii_start();
        let html = || value.starts_with(NO_BREAK_SPACE.as_bytes()).then_some(NO_BREAK_SPACE.len());
        match blank_width(value).or_else(html) {
            Some(width) => value = &value[width..],
            None => return value.is_empty() || value.starts_with(b"</"),
        }
    }
}

/// The tag that follows `ER` on its line, and the offset of its value: `ER  - TI  - a title`.
pub(crate) fn tag_behind_end(line: &[u8]) -> Option<([u8; 2], usize)> {
    let (_, end) = tag(line).filter(|(name, _)| name == b"ER")?;
    let start = end + usize::from(line.get(end) == Some(&b' '));
    let is_indented = line.get(start).is_none_or(|byte| !byte.is_ascii_alphabetic());
    let (name, value) =
        tag(&line[start..]).filter(|(name, _)| !is_indented && SINGLE_BLANK.contains(&name))?;
    (!matches!(&name, b"TY" | b"ER")).then_some((name, start + value))
}

/// The words in which databases name themselves above their records.
pub(crate) const PREAMBLES: [&str; 3] = ["Provider:", "Content:", "Database:"];

/// Returns `true` for text that belongs to the following record, whose first line has no type.
fn is_leading_text(line: &[u8]) -> bool {
    let text = unmarked(line).trim_ascii_start();
    let is_word = |byte: &u8| byte.is_ascii_alphabetic() || !byte.is_ascii();
    text.iter().any(is_word)
        && !text.starts_with(b"<")
        && !is_cochrane(text)
        && !PREAMBLES.iter().any(|start| text.starts_with(start.as_bytes()))
}

/// Words with which a sentence continues, but no name of a type begins.
const CONTINUING: [&str; 20] = [
    "of", "is", "are", "was", "were", "and", "or", "in", "on", "the", "for", "to", "with", "that", "which",
    "by", "as", "at", "from", "has",
];
/// The number of bytes that determine whether a line with `TY` is text.
const TYPE_WINDOW: usize = 256;

/// Returns `true` if a line with `TY` inside of an abstract is text: its value is part of a sentence, or the next line
/// continues one. The text begins with the line, and has at most [`TYPE_WINDOW`] bytes.
fn is_text_with_type(text: &[u8]) -> bool {
    let Some((_, start)) = tag(text) else { return false };
    let rest = &text[start..];
    let Some(stop) = memchr::memchr3(b'\n', b'\r', b'<', rest) else {
        return text.len() == TYPE_WINDOW || is_sentence(rest);
    };
    let next = rest[stop..].strip_prefix(b"\r").unwrap_or(&rest[stop..]);
    let next = next.strip_prefix(b"\n").unwrap_or(next);
    let continues = |next: &[u8]| {
        let first = String::from_utf8_lossy(&next[..next.len().min(4)]).chars().next();
        first.is_some_and(char::is_lowercase)
    };
    is_sentence(&rest[..stop])
        || (rest[stop] != b'<' && tag(next).is_none() && continues(next.trim_ascii_start()))
}

/// Returns `true` for a value that is a part of a sentence, and no name or code of a type.
fn is_sentence(value: &[u8]) -> bool {
    /// The maximum number of words in the name of a type.
    const MAX_WORDS: usize = 8;
    let value = String::from_utf8_lossy(value);
    let value = value.trim();
    let is_known = |known: &str| known.eq_ignore_ascii_case(value);
    if RIS_KINDS.iter().any(|(code, kind)| is_known(code) || is_known(kind)) {
        return false;
    }
    let words: Vec<&str> = value.split_whitespace().take(MAX_WORDS + 1).collect();
    let [first, second, _, ..] = words[..] else { return false };
    let is_code = RIS_KINDS.iter().any(|(code, _)| *code == first);
    CONTINUING.contains(&first)
        || (words.len() > 3 && first.starts_with(char::is_lowercase))
        || (is_code && second.starts_with(char::is_lowercase))
        || value.ends_with('.')
        || words.len() > MAX_WORDS
}

fn kind(line: &[u8]) -> LineRole {
    match tag(line) {
        Some((name, _)) if &name == b"TY" => LineRole::Type,
        // A file without a line break at its end may be followed by another one on the same line.
        Some((name, value)) if &name == b"ER" && is_blank(&line[value..]) => LineRole::End,
        Some((name, _)) if &name == b"ER" && tag_behind_end(line).is_some() => LineRole::EndAndStart,
        Some((name, _)) if &name == b"ER" => LineRole::EndOrText,
        Some((name, _)) if ABSTRACTS.contains(&&name) => LineRole::LateField,
        Some((name, _)) if TITLES.contains(&&name) => LineRole::Title(name[1]),
        Some((name, _)) if UNTYPED_STARTS.contains(&&name) => LineRole::UntypedStart,
        Some(_) => LineRole::Field,
        None => LineRole::Other,
    }
}

/// The character after a tag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Separator {
    Dash,
    Colon,
}

/// The usual tag of a line with any blanks around its dash or colon, and the offset of its value: `TY-JOUR`,
/// `TI : a title`.
pub(crate) fn loose_tag(line: &[u8]) -> Option<([u8; 2], Separator, usize)> {
    let plain = unmarked(line);
    let indent = plain.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let front = line.len() - plain.len() + indent;
    let rest = line.get(front..).filter(|_| indent <= MAX_INDENT)?;
    let name: [u8; 2] = *rest.first_chunk()?;
    if !SINGLE_BLANK.contains(&&name) {
        return None;
    }
    let mut at = name.len();
    for _ in 0..MAX_BLANKS {
        at += blank_width(&rest[at..]).unwrap_or_default();
    }
    let (separator, width) = match &rest[at..] {
        [b'-', ..] => (Separator::Dash, 1),
        [b':', ..] => (Separator::Colon, 1),
        rest => (Separator::Dash, long_dash_width(rest)?),
    };
    Some((name, separator, front + at + width))
}

/// The tag of a line before this separator, and the offset of its value. A wrapped line may begin with a word such as
/// `T1-weighted`.
pub(crate) fn tag_before(line: &[u8], separator: Separator) -> Option<([u8; 2], usize)> {
    let (name, found, value) = loose_tag(line)?;
    let is_word = found == Separator::Dash
        && line.get(value).is_some_and(u8::is_ascii_lowercase)
        && IN_WORDS.contains(&&name);
    let is_end = &name != b"ER" || line[value..].trim_ascii().is_empty();
    (found == separator && !is_word && is_end).then_some((name, value))
}

/// Returns `true` if a line with any blanks and dash begins a record.
pub(crate) fn is_loose_type_line(line: &[u8]) -> bool {
    loose_kind(line) == LineRole::Type
}

fn loose_kind(line: &[u8]) -> LineRole {
    let line = &line[..line.len().min(LOOSE_PREFIX)];
    let Some((name, _, value)) = loose_tag(line) else { return LineRole::Other };
    let value = line[value..].trim_ascii();
    match &name {
        b"TY" if is_type_code(value) => LineRole::Type,
        b"ER" if value.is_empty() => LineRole::End,
        _ => LineRole::Other,
    }
}

/// Returns `true` if a text has only records from `TY` to `ER` with usual tags before the same separator, and a title or
/// an author in the first one. Other texts have similar lines, but not this structure.
pub(crate) fn is_loose(text: &str) -> bool {
    let (mut open, mut records, mut tags, mut is_known) = (None, 0, 0, false);
    for line in lines::all(text).map(str::as_bytes).filter(|line| !line.trim_ascii().is_empty()) {
        let tag = loose_tag(line);
        match (loose_kind(line), open, tag) {
            (LineRole::Type, None, Some((_, separator, _))) => {
                (open, tags, is_known) = (Some(separator), 0, false);
            }
            (LineRole::End, Some(_), _) if records > 0 || (tags >= MIN_TAGS && is_known) => {
                (open, records) = (None, records + 1);
            }
            (LineRole::Other, Some(separator), _) => {
                if let Some((name, _)) = tag_before(line, separator) {
                    tags += 1;
                    is_known |= UNTYPED_STARTS.contains(&&name);
                } else if tags == 0 {
                    return false;
                }
            }
            // The number of a record.
            (LineRole::Other, None, None)
                if line.iter().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b' ')) => {}
            _ => return false,
        }
    }
    records > 0
}

/// Splits RIS files with other blanks and dashes.
pub(crate) fn loose_splitter(limit: usize) -> TaggedSplitter {
    TaggedSplitter::new(LineRules { kind: loose_kind, prefix: LOOSE_PREFIX, begins_next }, limit)
}

// Some programs sort the tags, so that `TY` is in the middle of a record, and others repeat it.
fn begins_next(open: &OpenRecord, kind: LineRole) -> bool {
    match kind {
        LineRole::Type => open.blanks > 0 || (open.typed && open.filled),
        LineRole::EndAndStart => true,
        _ => false,
    }
}

/// Splits RIS files.
pub(crate) fn splitter(limit: usize) -> TaggedSplitter {
    let elements = LineElements { length: line_elements, lookahead: MAX_ELEMENTS + MAX_ELEMENT + TAG_PREFIX };
    TaggedSplitter::new(LineRules { kind, prefix: TAG_PREFIX, begins_next }, limit)
        .with_elements(elements)
        .with_late_fields()
        .with_leading_text(is_leading_text)
        .with_types_in_text(TypeInText { is_text: is_text_with_type, window: TYPE_WINDOW })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    fn records(text: &str) -> Vec<String> {
        cut(&mut splitter(1000), text)
    }

    #[test]
    fn text_between_ris_records_is_skipped() {
        let text = "Record #1 of 2\n1.\nTY  - JOUR\nER  - \n\n2.\nTY  - BOOK\nER  -";
        assert_eq!(records(text), ["TY  - JOUR\nER  -", "TY  - BOOK\nER  -"]);
    }

    #[test]
    fn type_line_ends_record_without_end_line() {
        assert_eq!(records("TY  - A\nTI  - a\n\nTY  - B\n"), ["TY  - A\nTI  - a", "TY  - B"]);
    }

    #[test]
    fn repeated_type_lines_begin_one_record() {
        assert_eq!(records("TY  - A\nTY  - B\nTI  - a\nTY  - C\nTI  - b\n").len(), 2);
        assert_eq!(records("TY  - A\n\nTY  - B\nTI  - a\n").len(), 2);
    }

    #[test]
    fn tags_inside_values_do_not_split_records() {
        let text = "TY  - A\nAB  - see TY  - B\nER-positive\nER  - positive\nER  -\n";
        assert_eq!(records(text).len(), 1);
    }

    #[test]
    fn record_without_type_line_is_kept() {
        assert_eq!(records("TY  - A\nER  -\nTI  - b\nER  -\n"), ["TY  - A\nER  -", "TI  - b\nER  -"]);
        let text = "TY  - A\nER  -\n\nJO  - J\nTI  - b\nER  -\nDB  - a\n\nDB  - b\nTY  - C\n";
        let expected = ["TY  - A\nER  -", "JO  - J\nTI  - b\nER  -\nDB  - a", "DB  - b\nTY  - C"];
        assert_eq!(records(text), expected);
    }

    #[test]
    fn fields_behind_end_belong_to_record() {
        let (first, last) = ("TY  - A\nTI  - a\nER  - ", "TY  - C\nTI  - c\nER  -");
        for fields in ["AB  - b", "N1  - b\nAB  - c\nd", "DB  - b"] {
            assert_eq!(
                records(&format!("{first}\n{fields}\n\n{last}")),
                [&format!("{first}\n{fields}"), last]
            );
            assert_eq!(records(&format!("{last}\n{fields}")), [format!("{last}\n{fields}")]);
        }
        for fields in
            ["AU  - b", "AB  - b\nTI  - c", "N1  - b\nDO  - c\nER  -", "\nAB  - c", "AB  - c\nER  -"]
        {
            let found = records(&format!("{first}\n{fields}\n\n{last}"));
            assert_eq!((found.len(), &*found[0], &*found[2]), (3, first.trim_end(), last), "{fields}");
        }
        // Fields before `TY`.
        assert_eq!(
            records(&format!("{first}\nID  - 1\n{last}")),
            [first.trim_end(), &format!("ID  - 1\n{last}")]
        );
    }

    #[test]
    fn end_tag_with_text_ends_record() {
        let record = |end: &str| format!("TY  - A\nTI  - a\nAB  - b\n{end}");
        for end in ["ER  - x", "ER - x\nPR - y\nKW  - c\nER  -", "ER  - x\nc\nER  - d"] {
            for gap in ["\n", "\n\n", "\n\n1.\n"] {
                let found = records(&format!("{}{gap}{}", record(end), record("ER  - ")));
                assert_eq!(found, [record(end), record("ER  -")], "{end}");
            }
        }
        assert_eq!(records(&record("ER  - &nbsp;\u{a0}\nDB  - c\nAU  - d\n")).len(), 2);
    }

    #[test]
    fn type_line_in_an_abstract_is_text() {
        for text in [
            "TY  - of the disease is important\nand continues\nKW  - x",
            "TY  - is a code\nKW  - x",
            "TY  - JOUR is a tag of RIS\nKW  - x",
            "TY  - JOUR\nand continues",
            "TY  - Diseases of the liver are important.\nAD  - x",
            "TY  - jour\r\n  élan of another line",
        ] {
            for front in ["AB  - b", "N2  - b\nc d", "AB  - b\nER - estrogen"] {
                let text = format!("TY  - A\nTI  - a\n{front}\n{text}\nER  -");
                assert_eq!(
                    records(&format!("{text}\n\nTY  - B\nTI  - c\n")),
                    [text.trim_end(), "TY  - B\nTI  - c"]
                );
            }
        }
        for (front, next) in [
            ("AB  - b", "TY  - JOUR\nTI  - c"),
            ("AB  - b", "TY  - Journal Article\nTI  - c"),
            ("AB  - b", "TY  - Article in Press\nTI  - c"),
            ("AB  - b", "TY  - unpublished work\nTI  - c"),
            ("AB  - b", "TY  - JOUR\nA title without its tag"),
            ("AB  - b\n", "TY  - of the disease is important\nTI  - c"),
            ("KW  - b", "TY  - of the disease is important\nTI  - c"),
            ("AB  - b", "TY  - JOUR"),
        ] {
            assert_eq!(records(&format!("TY  - A\nTI  - a\n{front}\n{next}\n")).len(), 2, "{front}\n{next}");
        }
    }

    #[test]
    fn record_without_type_line_follows_end_with_text() {
        let first = "TY  - A\nTI  - a\nAB  - b";
        for (end, next) in [
            ("ER  - 2\n", "TI  - b\nAU  - Roe\nER  -"),
            ("ER  - c\n", "AU  - Roe\nTI  - b\nER  -"),
            ("ER  - c\nd\n", "ID  - 1\nJO  - J\nTI  - b\nER  -"),
            ("", "ER  - TI  - b\nAU  - Roe\nER  -"),
            ("", "ER  - AU  - Roe\nTI  - b\nER  -"),
            ("", "ER - JO - J\nTI  - b\nER  -"),
        ] {
            let text = format!("{first}\n{end}{next}\n\nTY  - C\nTI  - c\n");
            let before = format!("{first}\n{end}");
            assert_eq!(records(&text), [before.trim_end(), next, "TY  - C\nTI  - c"], "{text}");
        }
        // An explanation in the abstract.
        let text = format!("{first}\nER - estrogen\nKW  - d\nAU  - Roe\nT2  - J\nER  -");
        assert_eq!(records(&text), [text]);
    }

    #[test]
    fn text_and_unknown_tags_before_record_without_type_line_belong_to_it() {
        let first = "TY  - A\nTI  - a\nER  -";
        for next in [
            "YR  - 2020\nXX  - 1\nTI  - b\nER  -",
            "JOUR\nA title\nAU  - Roe\nER  -",
            "  - JOUR\nTI  - b\nER  -",
            "2. A title\nJO  - J\nAU  - Roe\nER  -",
        ] {
            for gap in ["\n", "\n\n", "\n\n2.\n", "\nnote\n\n"] {
                let text = format!("{first}{gap}{next}\n\nTY  - C\nTI  - c\n");
                assert_eq!(records(&text), [first, next, "TY  - C\nTI  - c"], "{text}");
            }
        }
        for text in ["note\n", "note\nTY  - C\nTI  - c\n", "note\n\nTI  - c\n", "note\nDB  - b\n\nTI  - c\n"]
        {
            assert!(
                records(&format!("{first}\n{text}")).iter().all(|record| !record.contains("note")),
                "{text}"
            );
        }
    }

    #[test]
    fn second_title_behind_blank_line_begins_record() {
        let text = "TY  - A\nTI  - a\nPY  - 1\n\nAU  - Roe\nTI  - b\n\nTY  - C\nTI  - c\n";
        let expected = ["TY  - A\nTI  - a\nPY  - 1", "AU  - Roe\nTI  - b", "TY  - C\nTI  - c"];
        assert_eq!(records(text), expected);
        for text in [
            // Titles in two languages.
            "TY  - A\n\nAU  - Roe\nTI  - a\nTI  - b\n",
            "TY  - A\nTI  - a\n\nAB  - b\n\nparagraph\nTI  - c\n",
            "TY  - A\n\nTI  - a\n\nT1  - a\n\nER  - \n",
            "TY  - A\nTI  - a\nAB  - b\n\nc\n\nKW  - d\nT1  - a\nER  - \n",
        ] {
            assert_eq!(records(text).len(), 1, "{text}");
        }
    }

    #[test]
    fn indented_lower_case_and_narrow_tags_are_recognized() {
        assert_eq!(tag(b"  ty  - jour"), Some((*b"TY", 7)));
        assert_eq!(tag(b"TI - a"), Some((*b"TI", 4)));
        assert_eq!(tag(b"DB  -"), Some((*b"DB", 5)));
        assert_eq!(tag(b"M1 - 5"), Some((*b"M1", 4)));
        assert_eq!(tag(b"TI\t- a"), Some((*b"TI", 4)));
        assert_eq!(tag(b"TI \t-\ta"), Some((*b"TI", 5)));
        assert_eq!(tag(b"\xEF\xBB\xBFTY  - JOUR"), Some((*b"TY", 8)));
        for (line, value) in [
            ("TY\u{a0}\u{a0}- JOUR", 7),
            ("TI \u{a0}-\u{a0}a", 6),
            ("AB\u{a0}- a", 5),
            ("AU  \u{2013} Roe", 7),
            ("ER  \u{2212}", 7),
        ] {
            assert_eq!(tag(line.as_bytes()).map(|(_, at)| at), Some(value), "{line}");
        }
        assert_eq!(tag(b"AU\xA0\xA0\x96 Roe"), Some((*b"AU", 5)));
        for line in ["UR \u{2013} upper", "XX  \u{2013} a", "TI  \u{2013}a", "TI\u{a0}a"] {
            assert_eq!(tag(line.as_bytes()), None, "{line}");
        }
        assert_eq!(tag(b"of - a"), None);
        assert_eq!(tag(b"II - a trial"), None);
        assert_eq!(tag(b"ER-positive"), None);
    }
}
