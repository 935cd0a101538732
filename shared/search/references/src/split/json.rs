//! Splits JSON files into the objects of their lists, or into consecutive objects.
//!
//! The answers of databases have their list inside objects, for example `{"message": {"items": […]}}`. An object is
//! such a container if the value of one of its [`LISTS`] is a list or an object. Any other object is a record. A file may
//! be a list of such answers: an object in it is a container if a name of [`PAGES`] precedes all names of records. The
//! summaries of PubMed are not in a list: `{"result": {"uids": ["1"], "1": {…}}}`. Citation processors have dictionaries,
//! with the records under their keys: `{"roe2020": {"title": …, "author": …}, …}`. An object is a dictionary if its
//! first value is an object with such names.

use memchr::memchr2;

use super::{PartKind, Splitter, Step};
use crate::Format;

/// The names of lists, and of objects around them.
const LISTS: [&[u8]; 27] = [
    b"message",
    b"items",
    b"results",
    b"data",
    b"studies",
    b"References",
    b"references",
    b"resultList",
    b"result",
    b"hits",
    b"hit",
    b"works",
    b"docs",
    b"response",
    b"records",
    b"entries",
    b"publications",
    b"search-results",
    b"entry",
    b"collection",
    b"articles",
    b"papers",
    b"recommendedPapers",
    b"FullStudiesResponse",
    b"FullStudies",
    b"StudyFieldsResponse",
    b"StudyFields",
];
/// The names of lists, and of objects around them, in a list of answers. Records have other lists, such as `references`.
const PAGES: [&[u8]; 16] = [
    b"message",
    b"items",
    b"results",
    b"data",
    b"studies",
    b"resultList",
    b"result",
    b"hits",
    b"works",
    b"docs",
    b"response",
    b"records",
    b"publications",
    b"search-results",
    b"articles",
    b"papers",
];
/// The name of the list of numbers that precedes the summaries of PubMed, which are values under these numbers.
const NUMBERS: &[u8] = b"uids";
/// The names that only records have.
const OF_RECORDS: [&[u8]; 12] = [
    b"dc:title",
    b"title",
    b"Title",
    b"DOI",
    b"doi",
    b"display_name",
    b"protocolSection",
    b"paperId",
    b"itemType",
    b"ctNumber",
    b"title_s",
    b"ProtocolSection",
];
/// The names of titles, and names that only works also have.
const TITLES: [&[u8]; 2] = [b"title", b"Title"];
const OF_WORKS: [&[u8]; 7] = [b"author", b"authors", b"issued", b"year", b"abstract", b"DOI", b"doi"];
/// The part of a record of DOAJ that holds its title and authors.
const PART: &[u8] = b"bibjson";
/// The mark of a dictionary among the brackets around the records.
const DICTIONARY: u8 = b':';
/// The maximum number of lists and objects around the records.
const MAX_DEPTH: usize = 16;
/// The maximum length of a name that is compared.
const MAX_NAME: usize = 64;
/// The maximum number of digits in the number of a record.
const MAX_DIGITS: usize = 9;

/// Splits JSON files.
#[derive(Debug)]
pub(crate) struct Json {
    limit: usize,
    at: usize,
    /// The opening brackets around the records.
    around: Vec<u8>,
    /// The role of the next value in an object around the records.
    next: Next,
    open: Option<Open>,
    /// `true` if a list or object ended.
    seen: bool,
    /// `true` if a value may follow inside of a list or object: a name or comma precedes it.
    expects: bool,
}

/// The role of a value, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    Other,
    /// A list, or an object that contains one.
    List,
    /// The numbers of the records in this object.
    Numbers,
    /// A record under its number.
    Record,
}

impl Next {
    fn of(name: &[u8]) -> Self {
        if name == NUMBERS {
            Self::Numbers
        } else if is_one_of(&LISTS, name) {
            Self::List
        } else if (1..=MAX_DIGITS).contains(&name.len()) && name.iter().all(u8::is_ascii_digit) {
            Self::Record
        } else {
            Self::Other
        }
    }
}

/// A value whose end has not been found.
#[derive(Debug, Clone, Copy)]
struct Open {
    start: usize,
    kind: Kind,
    /// The number of open brackets, including the first.
    depth: usize,
    /// The beginning of the open string.
    quoted: Option<usize>,
    /// The role of the last name in an undecided object.
    next: Next,
    first: First,
}

impl Open {
    /// Handles a name of the object.
    fn name(&mut self, name: &[u8]) {
        match self.kind {
            Kind::Undecided => {
                self.next = Next::of(name);
                if is_one_of(&OF_RECORDS, name) {
                    self.kind = Kind::Record;
                }
            }
            Kind::Listed => {
                self.next = if is_one_of(&PAGES, name) { Next::List } else { Next::Other };
                if is_one_of(&OF_RECORDS, name) || is_one_of(&OF_WORKS, name) {
                    self.kind = Kind::Record;
                }
            }
            Kind::Record | Kind::Other => {}
        }
    }
}

/// The first value in an undecided object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum First {
    /// Neither the name nor the value has begun.
    Awaited,
    Named,
    /// An object, and the names found in it.
    Inside {
        title: bool,
        work: bool,
    },
    /// The value does not show that the object is a dictionary.
    Other,
}

impl First {
    /// Handles a string at this depth.
    fn string(self, text: &[u8], depth: usize) -> Self {
        match self {
            Self::Awaited if text != PART => Self::Named,
            Self::Inside { title, work } if depth == 2 => Self::Inside {
                title: title || is_one_of(&TITLES, text),
                work: work || is_one_of(&OF_WORKS, text),
            },
            Self::Inside { .. } => self,
            Self::Awaited | Self::Named | Self::Other => Self::Other,
        }
    }

    /// Handles an opening bracket at this depth.
    fn open(self, bracket: u8, depth: usize) -> Self {
        match self {
            Self::Named if bracket == b'{' => Self::Inside { title: false, work: false },
            Self::Inside { .. } if depth > 1 => self,
            _ => Self::Other,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Record,
    /// A record, or an object around records.
    Undecided,
    /// A record in the list that is the file, or one of several answers.
    Listed,
    /// Any other value outside records.
    Other,
}

impl Json {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, at: 0, around: Vec::new(), next: Next::Other, open: None, seen: false, expects: true }
    }

    fn found(&mut self, open: Open, stop: usize, fault: Option<&'static str>) -> Step {
        (self.open, self.at, self.seen, self.next, self.expects) = (None, 0, true, Next::Other, false);
        if open.kind == Kind::Other {
            return Step::Pass { consumed: stop };
        }
        if stop - open.start > self.limit {
            return Step::TooLarge { start: open.start };
        }
        Step::Found { record: open.start..stop, consumed: stop, fault }
    }

    /// Handles a tail in which nothing more can be found.
    fn rest(&mut self, tail: &[u8], open: Open, end: bool) -> Step {
        if self.at - open.start > self.limit {
            return Step::TooLarge { start: open.start };
        }
        self.open = Some(open);
        if end { self.found(open, tail.len(), Some("its JSON is not closed")) } else { Step::More }
    }

    /// Searches for the next value outside of records.
    fn outside(&mut self, tail: &[u8], end: bool) -> Option<Step> {
        let in_object = self.is_in_object();
        let special = |byte: &u8| match byte {
            b'{' | b'[' | b']' | b'}' => true,
            b'"' => in_object,
            _ => false,
        };
        let found = tail[self.at..].iter().position(special).map(|found| self.at + found);
        self.at = found.unwrap_or(tail.len());
        if self.at > 0 {
            // The text that waits begins at its first word, whatever has been consumed before it.
            let is_word = |byte: &u8| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'"' | b'<' | b'%' | b'@' | 0x80..)
            };
            let blank = tail[..self.at].iter().position(is_word).unwrap_or(self.at);
            let is_stray = blank == 0 && self.is_stray(&tail[..self.at]);
            // Another file may begin in such text, so its whole lines are needed. In an object, a number, `true`, `false` or
            // `null` is distinguished from other text only as a whole.
            let is_unclear = is_stray || (in_object && blank == 0);
            if is_unclear && found.is_none() && !end && self.at <= self.limit {
                return Some(Step::More);
            }
            let consumed = if blank > 0 { blank } else { self.at.min(self.limit) };
            self.at = 0;
            let last = tail[..consumed].iter().rfind(|byte| !byte.is_ascii_whitespace());
            self.expects = last.map_or(self.expects, |last| *last == if in_object { b':' } else { b',' });
            return Some(Self::text(in_object && !is_stray, consumed));
        }
        if tail.is_empty() {
            return Some(Step::More);
        }
        if let Some(step) = self.other_file(tail, end) {
            return Some(step);
        }
        let open =
            |kind| Open { start: 0, kind, depth: 1, quoted: None, next: Next::Other, first: First::Awaited };
        let kind = match (tail[0], self.around.last()) {
            (b'"', _) => {
                self.open = Some(Open { quoted: Some(0), depth: 0, ..open(Kind::Other) });
                self.at = 1;
                return None;
            }
            (b'{', Some(b'[')) if self.around.len() == 1 => Kind::Listed,
            (b'{', Some(b'[')) => Kind::Record,
            (b'{', Some(&DICTIONARY)) => Kind::Record,
            (b'{', Some(b'{')) if self.next == Next::Record => Kind::Record,
            (b'[', Some(&DICTIONARY)) => Kind::Other,
            (b'{' | b'[', Some(b'{')) if self.next != Next::List => Kind::Other,
            (b'{', _) => Kind::Undecided,
            (b'[', _) if self.around.len() < MAX_DEPTH => {
                self.around.push(b'[');
                (self.next, self.expects) = (Next::Other, true);
                return Some(Self::text(in_object, 1));
            }
            (b'[', _) => return Some(Self::text(in_object, 1)),
            _ => {
                self.around.pop();
                (self.seen, self.next, self.expects) = (true, Next::Other, false);
                return Some(Self::text(in_object, 1));
            }
        };
        self.open = Some(open(kind));
        self.at = 1;
        None
    }

    /// Returns `true` for text between values that is not JSON. In an object, `true` and numbers are values.
    fn is_stray(&self, text: &[u8]) -> bool {
        let in_object = self.is_in_object();
        !self.around.is_empty()
            && text.iter().any(|byte| match byte {
                b'<' | b'%' | b'@' | b'A'..=b'Z' | 0x80.. => true,
                byte => !in_object && (byte.is_ascii_alphanumeric() || *byte == b'"'),
            })
    }

    /// Ends the list that was cut off, if the bracket at the front begins another file.
    fn other_file(&self, tail: &[u8], end: bool) -> Option<Step> {
        const FIRST: [(&[u8], Format); 2] =
            [(b"{Reference Type}", Format::NoteExpress), (b"\"TITLE\",", Format::FieldRows)];
        if self.around.is_empty() || !matches!(tail[0], b'{' | b'[' | b'"') {
            return None;
        }
        if !end && FIRST.iter().any(|(first, _)| first.len() > tail.len() && first.starts_with(tail)) {
            return Some(Step::More);
        }
        let format = match FIRST.iter().find(|(first, _)| tail.starts_with(first)) {
            Some((_, format)) => *format,
            None if !self.expects && tail[0] != b'"' => Format::Json,
            None => return None,
        };
        Some(Step::Part { kind: PartKind::Read(format), consumed: 0, is_cut: format != Format::Json })
    }

    /// Returns `true` if the next value has a name.
    fn is_in_object(&self) -> bool {
        matches!(self.around.last(), Some(&(b'{' | DICTIONARY)))
    }

    fn text(in_object: bool, consumed: usize) -> Step {
        if in_object { Step::Pass { consumed } } else { Step::Skip { consumed } }
    }

    /// Searches for the end of the open value.
    fn inside(&mut self, tail: &[u8], mut open: Open, end: bool) -> Option<Step> {
        let rest = &tail[self.at..];
        let is_bracket = |byte: &u8| matches!(byte, b'"' | b'{' | b'}' | b'[' | b']');
        let found = match open.quoted {
            Some(_) => memchr2(b'"', b'\\', rest),
            None => rest.iter().position(is_bracket),
        };
        let Some(found) = found else {
            self.at = tail.len();
            return Some(self.rest(tail, open, end));
        };
        let at = self.at + found;
        self.at = at + 1;
        match (tail[at], open.quoted) {
            (b'"', None) => open.quoted = Some(at),
            (b'"', Some(start)) => {
                open.quoted = None;
                if open.depth == 0 {
                    // A name in an object around the records.
                    self.next = Next::of(&tail[start + 1..at]);
                    (self.open, self.at, self.expects) = (None, 0, false);
                    return Some(Step::Pass { consumed: at + 1 });
                }
                if open.kind == Kind::Undecided {
                    open.first = open.first.string(&tail[start + 1..at], open.depth);
                }
                if open.depth == 1 {
                    open.name(&tail[start + 1..at]);
                }
            }
            (b'\\', _) if at + 1 == tail.len() => {
                // The escaped character has not arrived yet.
                self.at = at;
                return Some(self.rest(tail, open, end));
            }
            (b'\\', _) => self.at = at + 2,
            (b'{' | b'[', _) => {
                if matches!(open.kind, Kind::Undecided | Kind::Listed)
                    && open.depth == 1
                    && matches!(open.next, Next::List | Next::Numbers)
                    && self.around.len() < MAX_DEPTH
                {
                    self.around.push(b'{');
                    (self.open, self.at, self.next, self.expects) = (None, 0, open.next, true);
                    return Some(Step::Pass { consumed: at });
                }
                open.first = open.first.open(tail[at], open.depth);
                open.depth += 1;
            }
            _ => open.depth -= 1,
        }
        if open.depth == 1
            && open.quoted.is_none()
            && let First::Inside { title, work } = open.first
        {
            if open.kind == Kind::Undecided && title && work && self.around.len() < MAX_DEPTH {
                // The first value is read again, as a record.
                self.around.push(DICTIONARY);
                (self.open, self.at, self.next, self.expects) = (None, 0, Next::Other, true);
                return Some(Step::Pass { consumed: open.start + 1 });
            }
            open.first = First::Other;
        }
        if open.depth == 0 && open.quoted.is_none() {
            return Some(self.found(open, at + 1, None));
        }
        self.open = Some(open);
        None
    }
}

fn is_one_of(names: &[&[u8]], name: &[u8]) -> bool {
    name.len() <= MAX_NAME && names.contains(&name)
}

impl Splitter for Json {
    fn saved_state(&self) -> Option<Vec<Vec<u8>>> {
        let flags = [self.next as u8, self.seen.into(), self.expects.into()];
        Some(vec![self.around.clone(), flags.to_vec()])
    }

    fn restore_state(&mut self, carried: Vec<Vec<u8>>) {
        let mut carried = carried.into_iter();
        self.around = carried.next().unwrap_or_default();
        let flags = carried.next().unwrap_or_default();
        let roles = [Next::List, Next::Numbers, Next::Record];
        let saved = roles.into_iter().find(|role| flags.first() == Some(&(*role as u8)));
        (self.next, self.seen) = (saved.unwrap_or(Next::Other), flags.get(1) == Some(&1));
        self.expects = flags.get(2) == Some(&1);
    }

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

    fn may_end(&mut self, _: &[u8]) -> bool {
        self.may_be_followed()
    }

    fn may_be_followed(&self) -> bool {
        self.seen && self.around.is_empty() && self.open.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn json_objects_are_found_in_arrays_and_lines() {
        let (one, two) = (r#"{"a": "}\\\" {", "b": [{"c": {}}]}"#, r#"{"d": 1}"#);
        for text in [format!("[{one},\n {two}]\n"), format!("{one}\n{two}\n"), format!("[[{one}], 5, {two}")]
        {
            assert_eq!(cut(&mut Json::new(1000), &text), [one, two]);
        }
        assert_eq!(cut(&mut Json::new(1000), "[{\"a\": \"b}]"), ["!its JSON is not closed"]);
    }

    #[test]
    fn summaries_of_pubmed_are_found_under_their_numbers() {
        let (one, two) =
            (r#"{"uid": "1", "references": [{"x": 1}], "title": "A"}"#, r#"{"uid": "22", "error": "b"}"#);
        let text = format!(
            r#"{{"header": {{"type": "esummary"}}, "result": {{"uids": ["1", "22"], "1": {one}, "22": {two}}}}}"#
        );
        assert_eq!(cut(&mut Json::new(1000), &text), [one, two]);
        assert_eq!(cut(&mut Json::new(1000), r#"{"title": "a", "uids": ["1"]}"#).len(), 1);
    }

    #[test]
    fn records_are_found_in_dictionaries() {
        let (one, two) = (r#"{"title": "a", "author": [{"x": 1}]}"#, r#"{"id": "}", "title": "b"}"#);
        for text in [
            format!(r#"{{"k1": {one}, "k2": {two}}}"#),
            format!(
                r#"{{"version": 1, "items": {{"k1": {one}, "n": [{two}], "s": "title", "2": {two}}}, "x": {one}}}"#
            ),
        ] {
            assert_eq!(cut(&mut Json::new(1000), &text), [one, two], "{text}");
        }
        for whole in [
            format!(r#"{{"bibjson": {one}, "id": 1}}"#),
            format!(r#"{{"n": 1, "other": {one}, "title": "b"}}"#),
            r#"{"journal": {"title": "a", "id": 1}, "x": {"year": 1}, "title": "b"}"#.to_owned(),
            r#"{"a": [{"title": "b", "author": 1}], "title": "c"}"#.to_owned(),
        ] {
            assert_eq!(cut(&mut Json::new(1000), &whole), [whole.as_str()]);
        }
    }

    #[test]
    fn records_are_found_inside_database_responses() {
        let (one, two) = (r#"{"title": ["a"], "data": [{"x": 1}]}"#, r#"{"items": [{"b": "]"}]}"#);
        for text in [
            format!(
                r#"{{"status": "results", "message": {{"facets": {{}}, "n": [1], "items": [{one}, {two}]}}}}"#
            ),
            format!(r#"{{"meta": {{"data": [{{}}]}}, "results": [{one}, {two}], "group_by": [{{}}]}}"#),
        ] {
            assert_eq!(cut(&mut Json::new(1000), &text), [one, two], "{text}");
        }
        let pages = format!(
            r#"[{{"status": "ok", "message": {{"items": [{one}]}}}}, {{"n": 1, "results": [{two}]}}, {{"result": {one}}}]"#
        );
        assert_eq!(cut(&mut Json::new(1000), &pages), [one, two, one]);
        for record in [
            r#"{"abstract": "a", "data": [{"x": 1}], "title": "b"}"#,
            r#"{"references": [{"title": "a"}], "title": "b"}"#,
            r#"{"status": "results", "n": [{"items": [1]}], "title": "b"}"#,
        ] {
            assert_eq!(cut(&mut Json::new(1000), &format!("[{record}, {one}]")), [record, one]);
        }
        assert_eq!(cut(&mut Json::new(1000), &format!(r#"{{"status": 1, "message": {one}}}"#)), [one]);
        assert_eq!(cut(&mut Json::new(1000), one), [one]);
    }
}
