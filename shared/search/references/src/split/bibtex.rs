//! Splits BibTeX files into entries, each with the entries that it refers to.
//!
//! [`Entries`] finds where entries begin and end. An entry that refers to another entry is returned only after the
//! entries that follow it were found. The following entries wait in a queue. Every byte is therefore scanned once,
//! however many entries have references.

use std::collections::VecDeque;

use super::{
    Splitter, Step,
    crossref::{EarlierEntries, KeyIndex, KeyType, MAX_ENTRY, crossref, is_data, may_refer},
    entries::Entries,
};

/// The number of bytes after an entry in which a parent is found. Databases write parents soon after the entry, people
/// at the end of the file.
const AHEAD: usize = 256 * 1024;
/// The number of bytes after the end of an entry that may be needed to recognize the end.
const SURE: usize = 1024;
/// The maximum number of ancestors of an entry: a book in a series of books may refer to the series.
const MAX_PARENTS: usize = 3;
/// The number of bytes that the entries of any file may inherit.
const INHERITED: u64 = 4 << 20;
/// The number of bytes that entries may inherit in addition for each byte of the file. Real files need two or three.
const INHERITED_PER_BYTE: u64 = 32;
/// The first byte of the allowance in a checkpoint. No entry begins with this byte.
const MARK: u8 = b'%';

const INHERITS_TOO_MUCH: &str = "it inherits fields from another entry by crossref, and the entries of the file inherit far more \
    bytes than it has; write the fields into the entry itself and import it again";

/// Splits BibTeX files.
#[derive(Debug)]
pub(crate) struct BibTex {
    entries: Entries,
    /// Steps that were found but not yet returned. The first one starts at the beginning of the buffered text.
    found: VecDeque<PendingStep>,
    /// The total size of the steps in `found`, in bytes.
    looked: usize,
    /// The number of bytes before the front of the tail.
    front: u64,
    /// The number of steps that were returned.
    returned: u64,
    index: KeyIndex,
    /// The number of the first step that is not in the index yet.
    indexed: u64,
    before: EarlierEntries,
    /// The number of bytes that entries may still inherit.
    left: u64,
    /// The parents of the entry that was returned last.
    parents: Vec<Vec<u8>>,
    /// `true` if that entry is not closed.
    lacks_end: bool,
}

/// A step that waits for its turn.
#[derive(Debug)]
struct PendingStep {
    step: Step,
    /// The offset in the file at which the step's text begins.
    at: u64,
    /// `true` for an entry that may refer to another one.
    refers: bool,
    /// `true` for an entry that is not closed.
    lacks_end: bool,
}

impl BibTex {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            entries: Entries::new(limit),
            found: VecDeque::new(),
            looked: 0,
            front: 0,
            returned: 0,
            index: KeyIndex::default(),
            indexed: 0,
            before: EarlierEntries::default(),
            left: INHERITED,
            parents: Vec::new(),
            lacks_end: false,
        }
    }

    /// Finds the next step after the pending steps. Returns `false` if the tail has no further step yet.
    fn find_next(&mut self, tail: &[u8], end: bool) -> bool {
        let step = self.entries.step(&tail[self.looked..], end);
        if step == Step::More {
            return false;
        }
        let (at, lacks_end) = (self.front + self.looked as u64, self.entries.lacks_end());
        let mut found = PendingStep { at, step, refers: false, lacks_end };
        found.refers = entry(&found, tail, self.front).is_some_and(may_refer);
        self.looked += consumed(&found.step);
        self.found.push_back(found);
        true
    }

    /// Finds all entries that the entry at the front may refer to. Returns `false` if more bytes are needed.
    ///
    /// The result depends on the bytes alone: bytes after a fixed offset are ignored, even if they have arrived.
    fn find_candidates(&mut self, tail: &[u8], stop: usize, end: bool) -> bool {
        let needed = stop + AHEAD + SURE;
        if tail.len() < needed && !end {
            return false;
        }
        let (tail, end) = (&tail[..needed.min(tail.len())], tail.len() < needed);
        // A step that refuses the file is the last one.
        while self.looked < tail.len() && self.found.back().is_none_or(|last| consumed(&last.step) > 0) {
            if !self.find_next(tail, end) {
                break;
            }
        }
        true
    }

    /// Adds all waiting entries to the index.
    fn add_to_index(&mut self, tail: &[u8]) {
        let (returned, front) = (self.returned, self.front);
        self.indexed = self.indexed.max(returned);
        while let Some(found) = self.found.get(distance(self.indexed, returned)) {
            if let Some(entry) = entry(found, tail, front).filter(|entry| entry.len() <= MAX_ENTRY) {
                self.index.add(self.indexed, entry);
            }
            self.indexed += 1;
        }
    }

    /// Finds the first entry after the one at the front that has this key and ends at or before `until`.
    fn find_ahead<'a>(&self, tail: &'a [u8], until: usize, by: KeyType, key: &[u8]) -> Option<&'a [u8]> {
        let number = self.index.find(by, key).find(|number| *number > self.returned)?;
        let found = self.found.get(distance(number, self.returned))?;
        let entry = entry(found, tail, self.front)?;
        let end = distance(found.at, self.front) + consumed(&found.step);
        (end <= until).then_some(entry)
    }

    /// Finds the ancestors of an entry, the nearest one first.
    fn parents_of(&mut self, own: &[u8], tail: &[u8], until: usize) -> Vec<Vec<u8>> {
        self.add_to_index(tail);
        let mut parents: Vec<Vec<u8>> = Vec::new();
        let mut wanted = crossref(own).map(<[u8]>::to_vec);
        while let Some(key) = wanted.take().filter(|_| parents.len() < MAX_PARENTS) {
            let found = [KeyType::Key, KeyType::Alias].into_iter().find_map(|by| {
                let ahead = self.find_ahead(tail, until, by, &key);
                ahead.or_else(|| self.before.find(by, &key)).map(<[u8]>::to_vec)
            });
            wanted = found.as_deref().and_then(crossref).map(<[u8]>::to_vec);
            parents.extend(found);
        }
        parents
    }

    /// Returns the step at the front.
    fn pop(&mut self, tail: &[u8]) -> Step {
        let Some(found) = self.found.pop_front() else { return Step::More };
        let mut is_parent_only = false;
        if let Some(entry) = entry(&found, tail, self.front) {
            is_parent_only = is_data(entry);
            if self.returned < self.indexed && entry.len() <= MAX_ENTRY {
                self.index.remove_first(self.returned, entry);
            }
            self.before.keep(entry);
        }
        let consumed = consumed(&found.step);
        self.lacks_end = found.lacks_end;
        self.returned += 1;
        self.looked -= consumed;
        self.front += consumed as u64;
        self.left = self.left.saturating_add(INHERITED_PER_BYTE.saturating_mul(consumed as u64));
        if is_parent_only && !found.lacks_end { Step::Pass { consumed } } else { found.step }
    }
}

/// The distance between two numbers.
fn distance(number: u64, first: u64) -> usize {
    usize::try_from(number.saturating_sub(first)).unwrap_or(usize::MAX)
}

/// The number of bytes that a step consumes.
fn consumed(step: &Step) -> usize {
    step.consumed().unwrap_or_default()
}

/// The text of an entry in a tail that begins at `front`.
fn entry<'a>(found: &PendingStep, tail: &'a [u8], front: u64) -> Option<&'a [u8]> {
    let Step::Found { record, .. } = &found.step else { return None };
    let at = distance(found.at, front);
    tail.get(at + record.start..at + record.end)
}

impl Splitter for BibTex {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        if self.found.is_empty() && !self.find_next(tail, end) {
            return Step::More;
        }
        let Some(first) = self.found.front() else { return Step::More };
        let Some(own) = entry(first, tail, self.front).filter(|_| first.refers) else {
            return self.pop(tail);
        };
        let stop = consumed(&first.step);
        if !self.find_candidates(tail, stop, end) {
            return Step::More;
        }
        self.parents = self.parents_of(own, tail, stop + AHEAD);
        let bytes = self.parents.iter().map(|parent| parent.len() as u64).sum();
        let mut step = self.pop(tail);
        match self.left.checked_sub(bytes) {
            Some(left) => self.left = left,
            None => {
                self.parents.clear();
                if let Step::Found { fault, .. } = &mut step {
                    *fault = Some(INHERITS_TOO_MUCH);
                }
            }
        }
        step
    }

    fn may_end(&mut self, tail: &[u8]) -> bool {
        while self.find_next(tail, false) {}
        !self.entries.is_open()
    }

    fn parents(&mut self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.parents)
    }

    fn lacks_end(&self) -> bool {
        self.lacks_end
    }

    fn saved_state(&self) -> Option<Vec<Vec<u8>>> {
        let left = [&[MARK], self.left.to_string().as_bytes()].concat();
        Some(std::iter::once(left).chain(self.before.all()).collect())
    }

    fn restore_state(&mut self, mut carried: Vec<Vec<u8>>) {
        self.entries.resume();
        let left = carried.first().and_then(|first| first.strip_prefix(&[MARK]));
        if let Some(left) = left.and_then(|left| str::from_utf8(left).ok()?.parse().ok()) {
            self.left = left;
            carried.remove(0);
        }
        self.before = EarlierEntries::restore(carried);
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
    fn nested_braces_are_counted() {
        let one = "@article{a, title = {The {DNA} of \\{ it}}";
        assert_eq!(entries(&format!("% by someone@example.org\n{one}\n\n{one}")), [one, one]);
    }

    #[test]
    fn entries_of_any_type_in_parentheses_are_found() {
        let one = "@web_page ( a, title = \"(A) :)\", note = {)} )";
        assert_eq!(entries(&format!("{one}{one}\n@a-b{{c}}")), [one, one, "@a-b{c}"]);
    }

    #[test]
    fn entries_without_references_are_not_records() {
        let text =
            "@string{j = {Journal}}\n@Comment{a {b}}\n@preamble{\"x\"}\n@book{b, title={B}}\n@ nothing";
        assert_eq!(entries(text), ["@book{b, title={B}}"]);
    }

    #[test]
    fn unclosed_entry_ends_before_next_entry() {
        let text = "@article{a, title = {A},\n  @article{b, note = {c@d{e}}}\n@misc{c, title={";
        assert_eq!(
            entries(text),
            ["@article{a, title = {A},", "@article{b, note = {c@d{e}}}", "@misc{c, title={"]
        );
    }

    #[test]
    fn entry_without_opening_brace_is_quarantined() {
        let one = "@book{b, title={B}}";
        for broken in
            ["@article\"a,\n author = \"A\",\n title={{C}},\n}", "@article a,\r\n year = 2000,\n  title={A}}"]
        {
            let found = entries(&format!("{one}\n{broken}\n{one}"));
            assert_eq!(found.len(), 3, "{broken}");
            assert!(found[1].starts_with("!its opening brace") && found[2] == one, "{found:?}");
        }
        for text in
            ["@home, by mail,\n or so", "Use @article,\n year = {2000}", "@article\n\n", "@a=b,\n c = {d}"]
        {
            assert_eq!(entries(&format!("{one}\n{text}\n{one}")), [one, one], "{text}");
        }
        // The end of a chunk does not begin a line.
        let mut part = BibTex::new(1000);
        assert_eq!(part.step(b"Use @arti", false), Step::Skip { consumed: 4 });
        assert_eq!(part.step(b"@article,\n year = {2000}\n", true), Step::Skip { consumed: 25 });
        assert_eq!(part.step(b"\n", false), Step::More);
        assert_eq!(part.step(b"Use\n@arti", false), Step::Skip { consumed: 3 });
        assert_eq!(part.step(b"\n", true), Step::Skip { consumed: 1 });
    }

    #[test]
    fn entries_without_sign_are_found() {
        let one = "@book{b, title={B}}";
        for other in [
            "article{key, title={C}, year={2020}}",
            "article{key,\n title={C},\n year = 2020\n}",
            "InProceedings (key-1:2,\r\n  title = \"C)\")",
            "web_page{key, title=\"C\"}",
            "misc{\n  key,\n  title = {C\n{D}}}",
        ] {
            for gap in ["\n", "\n\n", ",\n", "\n  "] {
                let found = entries(&format!("{one}{gap}{other}{gap}{one}\n{other}"));
                assert_eq!(found, [one, other, one, other], "{other}");
            }
            // The entry before it is not closed.
            for open in ["@book{b, title={B\n and b", "@book{b, title={B}\n"]
                .into_iter()
                .filter(|_| !other.contains('('))
            {
                assert_eq!(entries(&format!("{open}\n{other}\n{one}")), [open.trim(), other, one]);
            }
            let unclosed = other[..other.len() - 1].trim_end();
            assert_eq!(entries(&format!("{one}\n{unclosed}\n{one}")), [one, unclosed, one]);
        }
        for text in [
            "Use article{key, title={C}}",
            "article{key}",
            "function(a, b) { c = {d} }",
            "article{key, see title}",
            "{key, title={C}}",
            "It is a comment:\narticle{key, title={C}}",
            "% a@example.org\n\narticle{key, title={C}}",
        ] {
            assert_eq!(entries(&format!("{one}\n{text}\n{one}")), [one, one], "{text}");
        }
        let value = "@book{b, title={B\nmath{x, y}\n}, year={1}}";
        assert_eq!(entries(&format!("{one}\n{value}\n{one}")), [one, value, one]);
    }

    #[test]
    fn entry_with_a_brace_too_many_continues() {
        let one = "@book{b, title={B} and b}, year = {2000}, note={c} d},\n pages = 1-2}";
        assert_eq!(entries(&format!("{one}\n{one}")), [one, one]);
        let other = "@book{b, title={B}}";
        assert_eq!(entries(&format!("{other},\n{other}, and\n{other}")), [other, other, other]);
        let mut part = BibTex::new(1000);
        assert!(part.may_end(b"@book{b, title={B}}") && part.may_end(b"@book{b, title={B}},"));
        assert!(!part.may_end(b"@book{b, title={B}, year={"));
    }

    #[test]
    fn entries_in_closed_comment_are_ignored() {
        let one = "@book{b, title={B}}";
        assert_eq!(entries(&format!("@comment{{\n  {one}\n\n  @misc{{c,}}\n}}\n{one}")), [one]);
        assert_eq!(entries(&format!("@comment{{ {{a\n{one}\n{one}")), [one, one]);
        let long = "x".repeat(1000);
        assert_eq!(entries(&format!("@comment{{\n{one}\n{long}}}")), [one]);
    }

    #[test]
    fn entry_without_fields_in_value_is_text() {
        let one = "@book{b, title={Mail to\n@home{us}\nnow}}";
        assert_eq!(entries(one), [one]);
        let broken = "@book{b, title={B,\n@home{us}\n";
        assert_eq!(entries(&format!("{broken}@misc{{\n c = {{d}}}}")), [broken.trim(), "@misc{\n c = {d}}"]);
    }

    #[test]
    fn referring_entry_waits_for_following_text() {
        let entry = b"@a{b, CrossRef={c}}";
        let file = [entry.as_slice(), &vec![b' '; AHEAD + SURE]].concat();
        let mut bibtex = BibTex::new(1000);
        assert_eq!(bibtex.step(&file[..file.len() - 1], false), Step::More);
        let whole = Step::Found { record: 0..entry.len(), consumed: entry.len(), fault: None };
        assert_eq!(bibtex.step(&file, false), whole);
    }

    /// Returns the parents of each entry that has parents.
    fn parents(text: &str) -> Vec<Vec<String>> {
        let (mut bibtex, mut tail, mut found) = (BibTex::new(1 << 20), text.as_bytes(), Vec::new());
        loop {
            let step = bibtex.step(tail, true);
            let consumed = consumed(&step);
            if consumed == 0 {
                return found;
            }
            let text = |parent: Vec<u8>| String::from_utf8(parent).unwrap();
            found.extend(Some(bibtex.parents().into_iter().map(text).collect::<Vec<_>>()));
            found.pop_if(|parents| parents.is_empty());
            tail = &tail[consumed..];
        }
    }

    #[test]
    fn parents_are_found_before_and_after_entry() {
        let (book, series) = ("@book{p, crossref={S}}", "@book{s, ids={t, u}}");
        assert_eq!(
            parents(&format!("@a{{x, crossref=P}}\n{book}\n@a{{s,}}{series}")),
            [vec![book.to_owned(), "@a{s,}".to_owned()], vec!["@a{s,}".to_owned()]]
        );
        assert_eq!(
            parents(&format!("{series}{book}@a{{x, crossref = \"p\"}}")),
            [vec![series.to_owned()], vec![book.to_owned(), series.to_owned()]]
        );
        assert_eq!(parents(&format!("@a{{x, crossref=u}}{series}")), [[series]]);
        let data = "@XData{d, year=2000}";
        assert_eq!(parents(&format!("@a{{x, xdata=d}}{data}@a{{y, xdata={{d, e}}}}")), [[data], [data]]);
        assert_eq!(
            entries(&format!("{data}@book{{b, title={{B}}}}@set{{s, entryset={{a,b}}}}")),
            ["@book{b, title={B}}"]
        );
        let far = " ".repeat(AHEAD);
        assert_eq!(parents(&format!("@a{{x, crossref=u}}{far}{series}")), [[""; 0]; 0]);
    }

    #[test]
    fn excessive_crossref_inheritance_is_refused() {
        let parent = format!("@book{{z, note={{{}}}}}", "x".repeat(10_000));
        let text = format!("{parent}{}", "@a{x, crossref=z}".repeat(1_000));
        let (mut bibtex, mut tail, mut faults) = (BibTex::new(1 << 20), text.as_bytes(), 0);
        while let Step::Found { consumed, fault, .. } = bibtex.step(tail, true) {
            faults += usize::from(fault.is_some());
            tail = &tail[consumed..];
        }
        assert!((400..600).contains(&faults), "{faults}");
    }
}
