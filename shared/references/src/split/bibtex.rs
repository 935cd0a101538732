//! Where the entries of BibTeX files begin and end.
//!
//! An entry is `@`, a word and a pair of braces with everything inside, nested braces counted. Everything else is a
//! comment by the rules of BibTeX. An entry whose braces do not match must not swallow the rest of the file: it ends
//! where a line begins the next entry, and is unreadable.

use memchr::{memchr, memchr3};

use super::{Split, Step, lines::trimmed_end};

/// Longest word after `@`, with the white space behind it.
const MOST_KIND: usize = 40;
/// Blanks allowed before an entry that begins inside another one, which lacks a brace.
const MOST_INDENT: usize = 16;
/// Entries that hold no reference.
const NO_RECORDS: [&[u8]; 3] = [b"comment", b"string", b"preamble"];

const UNCLOSED: &str = "its braces do not match";

/// Splits BibTeX files.
#[derive(Debug)]
pub(crate) struct BibTex {
    limit: usize,
    at: usize,
    open: Option<Open>,
}

/// An entry whose end is not known yet.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: usize,
    depth: usize,
    /// Whether the entry is a reference.
    record: bool,
}

/// What an `@` turned out to be.
enum Sign {
    /// Too few bytes to decide.
    Incomplete,
    Text,
    /// An entry, with the number of bytes up to its opening brace.
    Entry {
        brace: usize,
        record: bool,
    },
}

fn sign(tail: &[u8]) -> Sign {
    let word = tail[1..].iter().take(MOST_KIND).take_while(|byte| byte.is_ascii_alphabetic()).count();
    let blanks =
        tail[1 + word..].iter().take(MOST_KIND).take_while(|byte| byte.is_ascii_whitespace()).count();
    let brace = 1 + word + blanks;
    match tail.get(brace) {
        None if brace <= MOST_KIND => Sign::Incomplete,
        Some(b'{') if word > 0 && brace <= MOST_KIND => {
            let record = !NO_RECORDS.iter().any(|kind| kind.eq_ignore_ascii_case(&tail[1..=word]));
            Sign::Entry { brace, record }
        }
        _ => Sign::Text,
    }
}

/// Whether a line begins an entry that holds a reference.
pub(crate) fn is_first_line(line: &[u8]) -> bool {
    let line = line.trim_ascii_start();
    line.first() == Some(&b'@') && matches!(sign(line), Sign::Entry { record: true, .. })
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

impl BibTex {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, at: 0, open: None }
    }

    /// The entry that ends before `stop` is complete.
    fn close(&mut self, tail: &[u8], open: Open, stop: usize, fault: Option<&'static str>) -> Step {
        self.open = None;
        self.at = 0;
        // What follows the entry is in memory too.
        if stop - open.start > self.limit {
            return Step::TooLarge { start: open.start };
        }
        if !open.record {
            return Step::Skip { consumed: stop };
        }
        let end = trimmed_end(tail, &(open.start..stop)).unwrap_or(stop);
        Step::Found { record: open.start..end, consumed: stop, fault }
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
            Sign::Entry { brace, record } => {
                self.open = Some(Open { start: at, depth: 1, record });
                self.at = at + brace + 1;
            }
            Sign::Incomplete | Sign::Text => self.at = at + 1,
        }
        None
    }

    /// Looks for the end of the open entry.
    fn inside(&mut self, tail: &[u8], mut open: Open, end: bool) -> Option<Step> {
        let Some(found) = memchr3(b'{', b'}', b'@', &tail[self.at..]) else {
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
                Sign::Entry { .. } => return Some(self.close(tail, open, at, Some(UNCLOSED))),
                Sign::Incomplete | Sign::Text => {}
            },
            b'@' => {}
            _ if is_escaped(tail, open.start, at) => {}
            b'{' => open.depth += 1,
            _ => open.depth -= 1,
        }
        if open.depth == 0 {
            return Some(self.close(tail, open, at + 1, None));
        }
        self.open = Some(open);
        None
    }

    /// Nothing more can be found in the tail as it is.
    fn rest(&mut self, tail: &[u8], open: Open, end: bool) -> Step {
        if self.at - open.start > self.limit {
            return Step::TooLarge { start: open.start };
        }
        if end { self.close(tail, open, tail.len(), Some(UNCLOSED)) } else { Step::More }
    }
}

impl Split for BibTex {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
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
    fn entries_without_references_are_skipped() {
        let text =
            "@string{j = {Journal}}\n@Comment{a {b}}\n@preamble{\"x\"}\n@book{b, title={B}}\n@ nothing";
        assert_eq!(entries(text), ["@book{b, title={B}}"]);
    }

    #[test]
    fn an_entry_that_is_not_closed_costs_only_itself() {
        let text = "@article{a, title = {A},\n  @article{b, note = {c@d{e}}}\n@misc{c, title={";
        let unclosed = format!("!{UNCLOSED}");
        assert_eq!(entries(text), [unclosed.as_str(), "@article{b, note = {c@d{e}}}", unclosed.as_str()]);
    }
}
