//! Finds where the entries of BibTeX files begin and end.
//!
//! An entry is `@`, a word and a pair of braces or parentheses with balanced braces inside. Everything else is a
//! comment by the rules of BibTeX. An entry with unbalanced braces must not swallow the rest of the file: it ends where
//! a line begins the next entry, and is read as far as possible. If a field follows the brace that closes it, as in
//! `title={A} b}, year={2000}}`, the brace is one too many, and the entry continues. A line that begins with a word, a
//! brace, a key and a field is an entry without its `@`, unless text is between it and the entry before.

use memchr::{memchr, memchr3};

use super::{Step, lines::trimmed_end};
use crate::work::spend;

/// The maximum length of a word after `@`, and of the white space after it.
const MAX_TYPE: usize = 64;
/// The maximum indentation of an entry that begins inside an unclosed one.
const MAX_INDENT: usize = 16;
/// The maximum length of a key, including white space, that distinguishes an entry from text in a value.
const MAX_KEY: usize = 256;
/// The maximum length of a comment with entries in it. A longer comment is unclosed, and must not swallow the entries.
const MAX_COMMENT: usize = 64 * 1024;
/// The maximum number of entries in a comment. Without this limit, each of many unclosed comments would be searched for
/// its end through [`MAX_COMMENT`] bytes of other comments.
const MAX_COMMENTED: usize = 90;

/// Finds the entries of a BibTeX file.
#[derive(Debug)]
pub(crate) struct Entries {
    limit: usize,
    at: usize,
    open: Option<OpenEntry>,
    /// The position of the first line inside the open comment that begins an entry.
    commented: Option<usize>,
    /// The number of lines inside the open comment that begin an entry.
    in_comment: usize,
    /// `true` if the last entry was not closed.
    lacks_end: bool,
    /// `true` if the open entry is closed, unless the bytes that follow continue it.
    is_closed: bool,
    /// `true` if the front of the tail is the beginning of the file.
    is_first: bool,
    /// `true` if text is behind the last entry, so that the following entry without its `@` is a comment like the text.
    in_text: bool,
}

/// An entry whose end has not been found.
#[derive(Debug, Clone, Copy)]
struct OpenEntry {
    start: usize,
    kind: EntryType,
    /// The number of open braces, including those of the entry.
    depth: usize,
    /// `true` if the entry is in parentheses, and if a quote is open in it.
    parentheses: bool,
    quoted: bool,
}

/// The content of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EntryType {
    Reference,
    /// Abbreviations.
    Definition,
    Nothing,
    /// An entry without its opening brace.
    Broken,
}

const NO_BRACE: &str =
    "its opening brace is missing or another character; correct it and import the record again";

/// The meaning of an `@`.
enum AtSign {
    /// More bytes are needed.
    Incomplete,
    Text,
    /// An entry, with the number of bytes up to its opening brace.
    Entry {
        brace: usize,
        kind: EntryType,
    },
}

/// The length of the word after `@`, up to `most`.
fn word(text: &[u8], max: usize) -> usize {
    let named = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+');
    text.iter().take(max).take_while(named).count()
}

fn sign(tail: &[u8]) -> AtSign {
    let word = word(&tail[1..], MAX_TYPE);
    let blanks = tail[1 + word..].iter().take(MAX_TYPE).take_while(|byte| byte.is_ascii_whitespace()).count();
    let brace = 1 + word + blanks;
    match tail.get(brace) {
        None if brace <= MAX_TYPE => AtSign::Incomplete,
        Some(b'{' | b'(') if word > 0 && tail[1].is_ascii_alphabetic() && brace <= MAX_TYPE => {
            let is = |name: &[u8]| tail[1..=word].eq_ignore_ascii_case(name);
            let kind = if is(b"string") {
                EntryType::Definition
            } else if is(b"comment") || is(b"preamble") || is(b"set") {
                // A set only lists the keys of other entries.
                EntryType::Nothing
            } else {
                EntryType::Reference
            };
            AtSign::Entry { brace, kind }
        }
        _ => AtSign::Text,
    }
}

/// The usual types of entries.
#[rustfmt::skip]
const TYPES: [&[u8]; 20] = [
    b"article", b"book", b"booklet", b"collection", b"conference", b"dataset", b"electronic", b"inbook",
    b"incollection", b"inproceedings", b"manual", b"mastersthesis", b"misc", b"online", b"phdthesis", b"proceedings",
    b"report", b"techreport", b"thesis", b"unpublished",
];

/// The opening brace at the beginning of a text, after a word that is the type of an entry without its `@`. Text and
/// programs have other words before a parenthesis.
fn unsigned_brace(text: &[u8]) -> Option<usize> {
    let word = word(text, MAX_TYPE);
    let blanks = text[word..].iter().take(MAX_INDENT).take_while(|byte| matches!(byte, b' ' | b'\t')).count();
    let is_usual = || TYPES.iter().any(|known| text[..word].eq_ignore_ascii_case(known));
    let is_brace = match text.get(word + blanks)? {
        b'{' => text[0].is_ascii_alphabetic() && word > 0,
        b'(' => is_usual(),
        _ => false,
    };
    is_brace.then_some(word + blanks)
}

/// The number of bytes up to the comma behind the key of an entry, from behind its opening brace.
fn key_length(after: &[u8]) -> Option<usize> {
    let front = &after[..after.len().min(MAX_KEY)];
    let blanks = front.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let is_end = |byte: &u8| {
        byte.is_ascii_whitespace() || matches!(byte, b',' | b'=' | b'{' | b'}' | b'"' | b'(' | b')')
    };
    let key = front[blanks..].iter().position(is_end)?;
    let more = front[blanks + key..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let comma = blanks + key + more;
    (key > 0 && front.get(comma) == Some(&b',')).then_some(comma)
}

/// Returns the offset of the opening brace if a text begins with an entry without its `@`, such as `article{key, title={`.
/// The outer `None` means that more bytes are needed.
fn unsigned(text: &[u8], end: bool) -> Option<Option<usize>> {
    /// The number of bytes that determine the result.
    const WINDOW: usize = MAX_TYPE + MAX_INDENT + 1 + MAX_KEY + 6 * MAX_TYPE;
    let (text, end) = (&text[..text.len().min(WINDOW)], end || text.len() >= WINDOW);
    let Some(brace) = unsigned_brace(text) else {
        let front = text.iter().take_while(|byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+' | b' ' | b'\t')
        });
        let is_open = !end && front.count() == text.len();
        return if is_open { None } else { Some(None) };
    };
    let after = &text[brace + 1..];
    spend(brace + MAX_INDENT);
    match key_length(after) {
        Some(comma) => continues(&after[comma..], end).map(|continues| continues.then_some(brace)),
        None => {
            let is_key = |byte: &u8| !matches!(byte, b'=' | b'{' | b'}' | b'"' | b'(' | b')');
            let is_open = !end && after.len() < MAX_KEY && after.iter().all(is_key);
            if is_open { None } else { Some(None) }
        }
    }
}

/// The number of blanks before an entry on its line.
fn indent(line: &[u8]) -> usize {
    line.iter().take(MAX_INDENT).take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// The beginning of the word before an opening brace, if only blanks precede it on its line.
fn word_before(tail: &[u8], start: usize, brace: usize) -> Option<usize> {
    let before = &tail[start..brace];
    let back = |text: &[u8], max: usize, is: fn(&u8) -> bool| {
        text.len() - text.iter().rev().take(max).take_while(|byte| is(byte)).count()
    };
    let end = back(before, MAX_INDENT, |byte| matches!(byte, b' ' | b'\t'));
    let word = back(&before[..end], MAX_TYPE, |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+')
    });
    (word < end && begins_line(tail, start + word)).then_some(start + word)
}

/// Returns `true` if a line begins an entry with a reference, possibly after a comment on the same line, or without its
/// `@`.
pub(crate) fn is_first_line(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let is_unsigned = |brace: usize| {
        TYPES.iter().any(|known| line[..brace].trim_ascii().eq_ignore_ascii_case(known))
            && key_length(&line[brace + 1..]).is_some()
    };
    if unsigned_brace(line).is_some_and(is_unsigned) {
        return true;
    }
    let reference = |at: usize| matches!(sign(&line[at..]), AtSign::Entry { kind: EntryType::Reference, .. });
    match line.first() {
        Some(b'@') => memchr::memchr_iter(b'@', line).take(3).any(reference),
        Some(b'%') => memchr::memchr_iter(b'@', line)
            .take(3)
            .any(|at| reference(at) && memchr(b',', &line[at..]).is_some()),
        _ => false,
    }
}

/// Returns the end of the entry with which a line begins, if it has a key and a field, and is closed on this line.
pub(crate) fn closed_end(line: &[u8]) -> Option<usize> {
    let AtSign::Entry { kind: EntryType::Reference, brace } = sign(line) else { return None };
    let inner = &line[brace + 1..];
    let comma = key_length(inner)?;
    continues(&inner[comma..], true).filter(|has_field| *has_field)?;
    let end = bracketed(&line[brace..]).map(|length| brace + length);
    spend(end.unwrap_or(line.len()) - brace);
    end
}

/// Returns the length of a text up to the bracket that closes its first one.
fn bracketed(text: &[u8]) -> Option<usize> {
    let is_round = text.first() == Some(&b'(');
    let (mut depth, mut is_escaped) = (0_usize, false);
    for (at, byte) in text.iter().enumerate() {
        match byte {
            _ if is_escaped => {}
            b'{' => depth += 1,
            b'(' if at == 0 => depth += 1,
            b'}' if depth <= 1 && !is_round => return Some(at + 1),
            b')' if depth == 1 && is_round => return Some(at + 1),
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        is_escaped = *byte == b'\\' && !is_escaped;
    }
    None
}

/// Returns `true` if only blanks are between the beginning of the line and `at`.
fn begins_line(tail: &[u8], at: usize) -> bool {
    let before = tail[..at].iter().rev().take(MAX_INDENT).find(|byte| !matches!(byte, b' ' | b'\t'));
    matches!(before, Some(b'\n' | b'\r'))
}

/// Returns `true` if a line break is directly before `at`.
fn follows_break(tail: &[u8], at: usize) -> bool {
    at.checked_sub(1).is_some_and(|before| matches!(tail[before], b'\n' | b'\r'))
}

/// Returns `true` if the byte at `at` is escaped by a backslash that is not escaped itself.
fn is_escaped(tail: &[u8], start: usize, at: usize) -> bool {
    tail[start..at].iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

/// Returns `true` if an apparent entry inside a value is an actual entry: a key with a comma, or a field, follows its
/// brace. Returns `None` if more bytes are needed.
fn has_fields(after: &[u8], end: bool) -> Option<bool> {
    let front = &after[..after.len().min(MAX_KEY)];
    let told = front.iter().find(|byte| matches!(byte, b',' | b'=' | b'{' | b'}' | b'"'));
    match told {
        Some(byte) => Some(matches!(byte, b',' | b'=')),
        None => (end || front.len() == MAX_KEY).then_some(true),
    }
}

/// Returns `true` if a comma and a field, such as `, year = {`, are at the beginning of a text. Returns `None` if more
/// bytes are needed.
fn continues(after: &[u8], end: bool) -> Option<bool> {
    let skip = |text: &mut &[u8], is: fn(&u8) -> bool| {
        let length = text.iter().take(MAX_TYPE).take_while(|byte| is(byte)).count();
        *text = &text[length..];
        length
    };
    let mut text = after;
    let comma = skip(&mut text, |byte| *byte == b',');
    skip(&mut text, u8::is_ascii_whitespace);
    let name = skip(&mut text, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    skip(&mut text, |byte| matches!(byte, b' ' | b'\t'));
    let equals = skip(&mut text, |byte| *byte == b'=');
    skip(&mut text, u8::is_ascii_whitespace);
    let is_begun = (comma == 1 || after.is_empty()) && (name > 0 || text.is_empty());
    if is_begun && text.is_empty() && !end {
        return None;
    }
    let is_value = text.first().is_some_and(|byte| matches!(byte, b'{' | b'"') || byte.is_ascii_digit());
    Some(comma == 1 && name > 0 && equals == 1 && is_value)
}

/// Returns `true` for the text after `@` of an entry without its opening brace, such as `article"key,` above a line with a
/// field. Returns `None` if more bytes are needed.
fn lacks_brace(text: &[u8], end: bool) -> Option<bool> {
    let front = &text[..text.len().min(MAX_KEY)];
    let Some(stop) = memchr(b'\n', front) else {
        return if front.len() < MAX_KEY && !end { None } else { Some(false) };
    };
    let line = text[..stop].trim_ascii_end();
    spend(stop);
    let is_begun = line.len() > 1 && line.ends_with(b",") && memchr::memchr2(b'=', b'{', line).is_none();
    if is_begun { continues(&text[line.len() - 1..], end) } else { Some(false) }
}

impl Entries {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            limit,
            at: 0,
            open: None,
            commented: None,
            in_comment: 0,
            lacks_end: false,
            is_closed: false,
            is_first: true,
            in_text: false,
        }
    }

    /// Continues behind the beginning of the file.
    pub(super) fn resume(&mut self) {
        self.is_first = false;
    }

    /// Returns `true` if an entry is open.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some() && !self.is_closed
    }

    /// Completes the entry that ends before `stop`.
    fn close(&mut self, tail: &[u8], open: OpenEntry, stop: usize) -> Step {
        if stop - open.start > self.limit {
            return Step::TooLarge { start: open.start };
        }
        (self.open, self.commented, self.in_comment, self.at) = (None, None, 0, 0);
        (self.is_first, self.in_text) = (false, false);
        self.lacks_end = open.depth > 0;
        let text = trimmed_end(tail, &(open.start..stop)).unwrap_or(stop);
        match open.kind {
            EntryType::Nothing => Step::Skip { consumed: stop },
            EntryType::Definition => Step::Header { row: open.start..text, consumed: stop },
            EntryType::Reference => Step::Found { record: open.start..text, consumed: stop, fault: None },
            EntryType::Broken => {
                Step::Found { record: open.start..text, consumed: stop, fault: Some(NO_BRACE) }
            }
        }
    }

    /// Skips text before an entry. A line break at its end shows that a line begins after it, so it stays.
    fn skip(&mut self, tail: &[u8], before: usize, end: bool) -> Step {
        self.at = 0;
        let consumed = before - usize::from(!end && follows_break(tail, before));
        if consumed == 0 {
            return Step::More;
        }
        self.is_first = false;
        Step::Skip { consumed }
    }

    /// Opens the entry without its `@` that this line begins. Returns `false` if no entry follows, or `None` if more
    /// bytes are needed.
    fn open_unsigned(&mut self, tail: &[u8], line: usize, end: bool) -> Option<bool> {
        let start = line + indent(&tail[line..]);
        let Some(brace) = unsigned(&tail[start..], end)? else { return Some(false) };
        let (kind, parentheses) = (EntryType::Reference, tail[start + brace] == b'(');
        self.open = Some(OpenEntry { start, kind, depth: 1, parentheses, quoted: false });
        self.at = start + brace + 1;
        Some(true)
    }

    /// Searches for the next entry.
    fn outside(&mut self, tail: &[u8], end: bool) -> Option<Step> {
        // The beginning of the file begins a line.
        let mut line = Some(0).filter(|_| self.is_first && self.at == 0);
        let at = loop {
            match line.filter(|_| !self.in_text).map(|line| self.open_unsigned(tail, line, end)) {
                Some(Some(true)) => return None,
                Some(None) => return Some(self.skip(tail, line.unwrap_or(self.at), end)),
                _ => {}
            }
            let found = memchr3(b'@', b'\n', b'\r', &tail[self.at..]);
            let passed = &tail[self.at..found.map_or(tail.len(), |found| self.at + found)];
            spend(passed.len());
            self.in_text |= passed.iter().any(u8::is_ascii_alphanumeric);
            let Some(found) = found else { return Some(self.skip(tail, tail.len(), end)) };
            let at = self.at + found;
            if tail[at] == b'@' {
                break at;
            }
            self.at = at + 1;
            line = Some(self.at);
        };
        match sign(&tail[at..]) {
            AtSign::Incomplete if !end => return Some(self.skip(tail, at, end)),
            AtSign::Entry { brace, kind } => {
                let parentheses = tail[at + brace] == b'(';
                self.open = Some(OpenEntry { start: at, kind, depth: 1, parentheses, quoted: false });
                self.at = at + brace + 1;
            }
            AtSign::Text if follows_break(tail, at) => match lacks_brace(&tail[at + 1..], end) {
                Some(true) => {
                    let kind = EntryType::Broken;
                    self.open =
                        Some(OpenEntry { start: at, kind, depth: 1, parentheses: false, quoted: false });
                    self.at = at + 1;
                }
                Some(false) => self.at = at + 1,
                None => return Some(self.skip(tail, at, end)),
            },
            AtSign::Incomplete | AtSign::Text => self.at = at + 1,
        }
        None
    }

    /// Searches for the end of the open entry.
    fn inside(&mut self, tail: &[u8], mut open: OpenEntry, end: bool) -> Option<Step> {
        self.is_closed = false;
        let rest = &tail[self.at..];
        let found = if open.parentheses {
            rest.iter().position(|byte| matches!(byte, b'{' | b'}' | b'@' | b')' | b'"'))
        } else {
            memchr3(b'{', b'}', b'@', rest)
        };
        let Some(found) = found else {
            self.at = tail.len();
            return Some(self.rest(tail, open, end));
        };
        spend(found + 1);
        let at = self.at + found;
        self.at = at + 1;
        match tail[at] {
            b'@' if begins_line(tail, at) => match sign(&tail[at..]) {
                AtSign::Incomplete if !end => {
                    self.at = at;
                    return Some(self.rest(tail, open, end));
                }
                // Comments may contain entries, each on separate lines.
                AtSign::Entry { .. } if open.kind == EntryType::Nothing => {
                    let first = *self.commented.get_or_insert(at);
                    self.in_comment += 1;
                    if self.in_comment > MAX_COMMENTED {
                        return Some(self.close(tail, open, first));
                    }
                }
                AtSign::Entry { kind: EntryType::Reference, brace } if open.depth > 1 => {
                    match has_fields(&tail[at + brace + 1..], end) {
                        Some(true) => return Some(self.close(tail, open, at)),
                        Some(false) => {}
                        None => {
                            self.at = at;
                            return Some(self.rest(tail, open, end));
                        }
                    }
                }
                AtSign::Entry { .. } => return Some(self.close(tail, open, at)),
                AtSign::Incomplete | AtSign::Text => {}
            },
            b'@' => {}
            _ if is_escaped(tail, open.start, at) => {}
            b'"' => open.quoted ^= open.depth == 1,
            b')' => open.depth -= usize::from(open.depth == 1 && !open.quoted),
            b'{' => {
                let word = Some(open.kind).filter(|kind| *kind == EntryType::Reference);
                let word = word.and_then(|_| word_before(tail, open.start + 1, at));
                match word.map_or(Some(None), |word| unsigned(&tail[word..], end)) {
                    Some(Some(_)) => {
                        // The line break shows that a line begins behind it.
                        let line = memchr::memrchr2(b'\n', b'\r', &tail[open.start..at]);
                        return Some(self.close(tail, open, line.map_or(at, |line| open.start + line)));
                    }
                    Some(None) => open.depth += 1,
                    None => {
                        self.at = at;
                        return Some(self.rest(tail, open, end));
                    }
                }
            }
            _ if open.parentheses => open.depth = open.depth.saturating_sub(1).max(1),
            _ if open.depth == 1 && open.kind == EntryType::Reference => {
                match continues(&tail[at + 1..], end) {
                    Some(true) => {}
                    Some(false) => open.depth = 0,
                    None => {
                        self.at = at;
                        self.is_closed = true;
                        return Some(self.rest(tail, open, end));
                    }
                }
            }
            _ => open.depth -= 1,
        }
        if let Some(first) = self.commented.filter(|_| self.is_too_long(open, at + 1)) {
            return Some(self.close(tail, open, first));
        }
        if open.depth == 0 {
            return Some(self.close(tail, open, at + 1));
        }
        self.open = Some(open);
        None
    }

    /// Returns `true` if a comment that ends at or after `stop` is too long to contain entries.
    fn is_too_long(&self, open: OpenEntry, stop: usize) -> bool {
        stop - open.start > MAX_COMMENT.min(self.limit)
    }

    /// Handles a tail in which nothing more can be found.
    fn rest(&mut self, tail: &[u8], open: OpenEntry, end: bool) -> Step {
        if let Some(first) = self.commented.filter(|_| end || self.is_too_long(open, self.at)) {
            return self.close(tail, open, first);
        }
        if self.at - open.start > self.limit {
            return Step::TooLarge { start: open.start };
        }
        if end { self.close(tail, open, tail.len()) } else { Step::More }
    }

    /// Returns `true` if the last entry was not closed.
    pub(super) fn lacks_end(&self) -> bool {
        self.lacks_end
    }

    /// Processes the tail like [`Splitter::step`](super::Split::step).
    pub(crate) fn step(&mut self, tail: &[u8], end: bool) -> Step {
        loop {
            let step = match self.open {
                Some(open) => self.inside(tail, open, end),
                None => self.outside(tail, end),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_continues_at_a_field() {
        for text in [",year={", ",\n  Early-Access_Date = \"", ", year =\n 2000"] {
            assert_eq!(continues(text.as_bytes(), true), Some(true), "{text}");
            for stop in 0..text.len() - 4 {
                let front = &text.as_bytes()[..stop];
                assert!(continues(front, false).is_none() || text.ends_with("2000"), "{text} {stop}");
                assert_eq!(continues(front, true), Some(false), "{text} {stop}");
            }
        }
        for text in
            ["\n", "\n@book{a, b = {", ",\n@book{a, b = {", ", and a = {", "}, a = {", ",, a = {", "a = {"]
        {
            assert_eq!(continues(text.as_bytes(), false), Some(false), "{text}");
        }
    }
}
