//! Where the entries of BibTeX files begin and end.
//!
//! An entry is `@`, a word and a pair of braces or parentheses with everything inside, nested braces counted. Everything
//! else is a comment by the rules of BibTeX. An entry whose braces do not match must not swallow the rest of the file: it
//! ends where a line begins the next entry, and is read as far as it can be.
//!
//! An entry may take fields over from another one. One that may do so is found only when enough of the file behind it is
//! at hand, and of the file before it what [`Wholes`] keeps.

use memchr::{memchr, memchr3};

use super::{
    Split, Step,
    lines::trimmed_end,
    wholes::{Wholes, may_refer},
};

/// Longest word after `@`, and most white space behind it.
const MOST_KIND: usize = 64;
/// Blanks allowed before an entry that begins inside another one, which lacks a brace.
const MOST_INDENT: usize = 16;
/// How much of the file behind an entry is at hand where it refers to another one. That one follows soon in what databases
/// write, and stands at the end of what people write.
const AHEAD: usize = 256 * 1024;
/// Longest key, with white space, of an entry that is told from text in a value.
const MOST_KEY: usize = 256;
/// Longest comment with entries in it. One that is not closed by then lacks a brace, and must not swallow them.
const MOST_COMMENT: usize = 64 * 1024;

/// Splits BibTeX files.
#[derive(Debug)]
pub(crate) struct BibTex {
    limit: usize,
    at: usize,
    open: Option<Open>,
    /// The end of the open entry, once it is known, while what is behind it is waited for.
    ended: Option<usize>,
    /// Where a line inside the open comment begins an entry for the first time.
    commented: Option<usize>,
    wholes: Wholes,
    /// What the entry that was found last refers to, of what is before it.
    before: Vec<u8>,
}

/// An entry whose end is not known yet.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: usize,
    kind: Kind,
    /// How many braces are open, those of the entry counted.
    depth: usize,
    /// The entry is in parentheses; and whether a quote is open in it.
    parentheses: bool,
    quoted: bool,
}

/// What an entry holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Reference,
    /// Abbreviations.
    Definition,
    Nothing,
}

/// What an `@` turned out to be.
enum Sign {
    /// Too few bytes to decide.
    Incomplete,
    Text,
    /// An entry, with the number of bytes up to its opening brace.
    Entry {
        brace: usize,
        kind: Kind,
    },
}

/// How many bytes of the text, at most so many, may be the word after `@`.
pub(crate) fn word(text: &[u8], most: usize) -> usize {
    let named = |byte: &&u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'+');
    text.iter().take(most).take_while(named).count()
}

fn sign(tail: &[u8]) -> Sign {
    let word = word(&tail[1..], MOST_KIND);
    let blanks =
        tail[1 + word..].iter().take(MOST_KIND).take_while(|byte| byte.is_ascii_whitespace()).count();
    let brace = 1 + word + blanks;
    match tail.get(brace) {
        None if brace <= MOST_KIND => Sign::Incomplete,
        Some(b'{' | b'(') if word > 0 && tail[1].is_ascii_alphabetic() && brace <= MOST_KIND => {
            let kind = match &tail[1..=word].to_ascii_lowercase()[..] {
                b"string" => Kind::Definition,
                b"comment" | b"preamble" => Kind::Nothing,
                _ => Kind::Reference,
            };
            Sign::Entry { brace, kind }
        }
        _ => Sign::Text,
    }
}

/// Whether a line begins an entry that holds a reference, perhaps behind a comment without a line of its own.
pub(crate) fn is_first_line(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    let reference = |at: usize| matches!(sign(&line[at..]), Sign::Entry { kind: Kind::Reference, .. });
    match line.first() {
        Some(b'@') => memchr::memchr_iter(b'@', line).take(3).any(reference),
        Some(b'%') => memchr::memchr_iter(b'@', line)
            .take(3)
            .any(|at| reference(at) && memchr(b',', &line[at..]).is_some()),
        _ => false,
    }
}

/// Whether there are only blanks between the line's beginning and `at`.
fn begins_line(tail: &[u8], at: usize) -> bool {
    let before = tail[..at].iter().rev().take(MOST_INDENT).find(|byte| !matches!(byte, b' ' | b'\t'));
    matches!(before, Some(b'\n' | b'\r'))
}

/// Whether the byte at `at` is escaped by a backslash that is not escaped itself.
fn is_escaped(tail: &[u8], start: usize, at: usize) -> bool {
    tail[start..at].iter().rev().take_while(|&&byte| byte == b'\\').count() % 2 == 1
}

/// Whether what looks like an entry inside a value is one: a key and a comma follow its brace, or a field. None when too few
/// bytes are there to decide.
fn has_fields(after: &[u8], end: bool) -> Option<bool> {
    let front = &after[..after.len().min(MOST_KEY)];
    let told = front.iter().find(|byte| matches!(byte, b',' | b'=' | b'{' | b'}' | b'"'));
    match told {
        Some(byte) => Some(matches!(byte, b',' | b'=')),
        None => (end || front.len() == MOST_KEY).then_some(true),
    }
}

impl BibTex {
    pub(crate) fn new(limit: usize) -> Self {
        let (wholes, before) = (Wholes::default(), Vec::new());
        Self { limit, at: 0, open: None, ended: None, commented: None, wholes, before }
    }

    /// One for a text of definitions alone.
    pub(crate) fn of_definitions() -> Self {
        Self::new(usize::MAX)
    }

    /// The entry that ends before `stop` is complete.
    fn close(&mut self, tail: &[u8], open: Open, stop: usize, end: bool) -> Step {
        // What follows the entry is in memory too.
        if stop - open.start > self.limit {
            return Step::TooLarge { start: open.start };
        }
        let mut ahead = 0;
        let refers =
            open.kind == Kind::Reference && (self.ended.is_some() || may_refer(&tail[open.start..stop]));
        if refers {
            ahead = AHEAD.min(tail.len() - stop);
            if ahead < AHEAD && !end {
                self.ended = Some(stop);
                return Step::More;
            }
        }
        (self.open, self.ended, self.commented, self.at) = (None, None, None, 0);
        let text = trimmed_end(tail, &(open.start..stop)).unwrap_or(stop);
        if open.kind == Kind::Reference {
            let entry = &tail[open.start..text];
            if refers {
                self.before = self.wholes.of(entry);
            }
            self.wholes.keep(entry);
        }
        match open.kind {
            Kind::Nothing => Step::Skip { consumed: stop },
            Kind::Definition => Step::Header { row: open.start..text, consumed: stop },
            Kind::Reference => Step::Found { record: open.start..text, consumed: stop, ahead, fault: None },
        }
    }

    /// Looks for the next entry.
    fn outside(&mut self, tail: &[u8], end: bool) -> Option<Step> {
        let Some(found) = memchr(b'@', &tail[self.at..]) else {
            self.at = 0;
            return Some(if tail.is_empty() { Step::More } else { Step::Skip { consumed: tail.len() } });
        };
        let at = self.at + found;
        match sign(&tail[at..]) {
            Sign::Incomplete if !end => {
                self.at = 0;
                return Some(if at == 0 { Step::More } else { Step::Skip { consumed: at } });
            }
            Sign::Entry { brace, kind } => {
                let parentheses = tail[at + brace] == b'(';
                self.open = Some(Open { start: at, kind, depth: 1, parentheses, quoted: false });
                self.at = at + brace + 1;
            }
            Sign::Incomplete | Sign::Text => self.at = at + 1,
        }
        None
    }

    /// Looks for the end of the open entry.
    fn inside(&mut self, tail: &[u8], mut open: Open, end: bool) -> Option<Step> {
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
        let at = self.at + found;
        self.at = at + 1;
        match tail[at] {
            b'@' if begins_line(tail, at) => match sign(&tail[at..]) {
                Sign::Incomplete if !end => {
                    self.at = at;
                    return Some(self.rest(tail, open, end));
                }
                // What is commented out may be entries, each on lines of its own.
                Sign::Entry { .. } if open.kind == Kind::Nothing => {
                    self.commented = self.commented.or(Some(at));
                }
                Sign::Entry { kind: Kind::Reference, brace } if open.depth > 1 => {
                    match has_fields(&tail[at + brace + 1..], end) {
                        Some(true) => return Some(self.close(tail, open, at, end)),
                        Some(false) => {}
                        None => {
                            self.at = at;
                            return Some(self.rest(tail, open, end));
                        }
                    }
                }
                Sign::Entry { .. } => return Some(self.close(tail, open, at, end)),
                Sign::Incomplete | Sign::Text => {}
            },
            b'@' => {}
            _ if is_escaped(tail, open.start, at) => {}
            b'"' => open.quoted ^= open.depth == 1,
            b')' => open.depth -= usize::from(open.depth == 1 && !open.quoted),
            b'{' => open.depth += 1,
            _ if open.parentheses => open.depth = open.depth.saturating_sub(1).max(1),
            _ => open.depth -= 1,
        }
        if open.depth == 0 {
            let stop = self.commented.filter(|_| self.is_too_long(open, at + 1)).unwrap_or(at + 1);
            return Some(self.close(tail, open, stop, end));
        }
        self.open = Some(open);
        None
    }

    /// Whether a comment that ends at `stop`, or later, is too long to be one with entries in it.
    fn is_too_long(&self, open: Open, stop: usize) -> bool {
        stop - open.start > MOST_COMMENT.min(self.limit)
    }

    /// Nothing more can be found in the tail as it is.
    fn rest(&mut self, tail: &[u8], open: Open, end: bool) -> Step {
        if let Some(first) = self.commented.filter(|_| end || self.is_too_long(open, self.at)) {
            return self.close(tail, open, first, end);
        }
        if self.at - open.start > self.limit {
            return Step::TooLarge { start: open.start };
        }
        if end { self.close(tail, open, tail.len(), true) } else { Step::More }
    }
}

impl Split for BibTex {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        loop {
            let step = match (self.open, self.ended) {
                (Some(open), Some(stop)) => Some(self.close(tail, open, stop, end)),
                (Some(open), None) => self.inside(tail, open, end),
                (None, _) => self.outside(tail, end),
            };
            if let Some(step) = step {
                return step;
            }
        }
    }

    fn before(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.before)
    }

    fn carried(&self) -> Option<Vec<Vec<u8>>> {
        Some(self.wholes.all())
    }

    fn carry(&mut self, wholes: Vec<Vec<u8>>) {
        self.wholes = Wholes::again(wholes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    fn entries(text: &str) -> Vec<String> {
        cut(&mut BibTex::new(1000), text)
    }

    #[test]
    fn braces_inside_are_counted() {
        let one = "@article{a, title = {The {DNA} of \\{ it}}";
        assert_eq!(entries(&format!("% by someone@example.org\n{one}\n\n{one}")), [one, one]);
    }

    #[test]
    fn entries_in_parentheses_and_of_any_kind_are_entries() {
        let one = "@web_page ( a, title = \"(A) :)\", note = {)} )";
        assert_eq!(entries(&format!("{one}{one}\n@a-b{{c}}")), [one, one, "@a-b{c}"]);
    }

    #[test]
    fn entries_without_references_are_skipped() {
        let text =
            "@string{j = {Journal}}\n@Comment{a {b}}\n@preamble{\"x\"}\n@book{b, title={B}}\n@ nothing";
        assert_eq!(entries(text), ["@book{b, title={B}}"]);
    }

    #[test]
    fn an_entry_that_is_not_closed_ends_where_a_line_begins_the_next() {
        let text = "@article{a, title = {A},\n  @article{b, note = {c@d{e}}}\n@misc{c, title={";
        assert_eq!(
            entries(text),
            ["@article{a, title = {A},", "@article{b, note = {c@d{e}}}", "@misc{c, title={"]
        );
    }

    #[test]
    fn entries_in_a_comment_are_a_comment_unless_it_is_not_closed() {
        let one = "@book{b, title={B}}";
        assert_eq!(entries(&format!("@comment{{\n  {one}\n\n  @misc{{c,}}\n}}\n{one}")), [one]);
        assert_eq!(entries(&format!("@comment{{ {{a\n{one}\n{one}")), [one, one]);
        let long = "x".repeat(1000);
        assert_eq!(entries(&format!("@comment{{\n{one}\n{long}}}")), [one]);
    }

    #[test]
    fn text_of_a_value_may_look_like_an_entry_without_fields() {
        let one = "@book{b, title={Mail to\n@home{us}\nnow}}";
        assert_eq!(entries(one), [one]);
        let broken = "@book{b, title={B,\n@home{us}\n";
        assert_eq!(entries(&format!("{broken}@misc{{\n c = {{d}}}}")), [broken.trim(), "@misc{\n c = {d}}"]);
    }

    #[test]
    fn an_entry_that_refers_to_another_waits_for_what_follows() {
        let entry = b"@a{b, CrossRef={c}}";
        let file = [entry.as_slice(), &vec![b' '; AHEAD]].concat();
        let mut bibtex = BibTex::new(1000);
        assert_eq!(bibtex.step(&file[..file.len() - 1], false), Step::More);
        let whole = Step::Found { record: 0..entry.len(), consumed: entry.len(), ahead: AHEAD, fault: None };
        assert_eq!(bibtex.step(&file, false), whole);
    }
}
