//! Where the `<record>` elements of EndNote XML begin and end.
//!
//! Such a file is often one line of many megabytes, so it is walked from `<` to `<` with `memchr`. Comments,
//! CDATA sections and processing instructions are stepped over whole. Inside a record only `</record>`
//! counts: a record whose inner elements do not match is one bad record and not the end of the file.
//! Outside of records the elements must match, and the document must be closed at its end: a document that
//! was cut short has lost records nobody can count.

use memchr::{memchr, memmem};

use super::{
    Split, Step,
    lines::trimmed_end,
    markup::{Markup, markup},
};

/// Elements around the records. EndNote has two: `xml` and `records`.
const MOST_DEPTH: usize = 16;

const CUT_SHORT: &str = "the file ends before the document does; it may have been cut short";

/// The splitter of EndNote XML files.
#[derive(Debug)]
pub(crate) struct Xml {
    limit: usize,
    at: usize,
    /// Names of the open elements around the records.
    around: Vec<Vec<u8>>,
    /// Where the open record begins.
    record: Option<usize>,
    /// What ends the comment, CDATA section or instruction that is being stepped over.
    until: Option<&'static [u8]>,
}

impl Xml {
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, at: 0, around: Vec::new(), record: None, until: None }
    }

    /// The record `start..end` is complete; what follows begins at `consumed`.
    fn found(
        &mut self,
        record: std::ops::Range<usize>,
        consumed: usize,
        fault: Option<&'static str>,
    ) -> Step {
        self.record = None;
        self.at = 0;
        if record.len() > self.limit {
            return Step::TooLarge { start: record.start };
        }
        Step::Found { record, consumed, fault }
    }

    /// Nothing more can be told from the tail as it is.
    fn rest(&mut self, tail: &[u8], end: bool) -> Step {
        let open = self.record.is_some() || self.until.is_some() || !self.around.is_empty();
        match self.record {
            Some(start) if tail.len() - start > self.limit => Step::TooLarge { start },
            _ if end && open => Step::Malformed { at: tail.len(), what: CUT_SHORT },
            None if self.at > 0 => {
                let consumed = std::mem::take(&mut self.at);
                Step::Skip { consumed }
            }
            _ => Step::More,
        }
    }

    fn start_tag(&mut self, tail: &[u8], name: &[u8], length: usize, empty: bool) -> Option<Step> {
        let at = self.at;
        self.at += length;
        if name == b"record" && self.around.last().is_some_and(|parent| parent == b"records") {
            if let Some(start) = self.record {
                let end = trimmed_end(tail, &(start..at)).unwrap_or(at);
                return Some(self.found(start..end, at, Some("it is not closed by </record>")));
            }
            if empty {
                return Some(self.found(at..at + length, at + length, None));
            }
            self.record = Some(at);
        } else if self.record.is_none() && !empty {
            if self.around.len() == MOST_DEPTH {
                return Some(Step::Malformed { at, what: "elements are nested too deeply" });
            }
            self.around.push(name.to_vec());
        }
        None
    }

    fn end_tag(&mut self, tail: &[u8], name: &[u8], length: usize) -> Option<Step> {
        let at = self.at;
        if let Some(start) = self.record {
            if name == b"record" {
                return Some(self.found(start..at + length, at + length, None));
            }
            if self.around.iter().any(|around| around == name) {
                let end = trimmed_end(tail, &(start..at)).unwrap_or(at);
                return Some(self.found(start..end, at, Some("it is not closed by </record>")));
            }
        } else if self.around.pop().is_none_or(|open| open != name) {
            return Some(Step::Malformed { at, what: "an end tag matches no open element" });
        }
        self.at += length;
        None
    }

    /// Steps over the section that `until` ends; false when its end is not there yet.
    fn skip_section(&mut self, tail: &[u8], until: &'static [u8]) -> bool {
        match memmem::find(&tail[self.at..], until) {
            Some(found) => {
                self.at += found + until.len();
                self.until = None;
                true
            }
            None => {
                // The end may be half there.
                self.at = self.at.max((tail.len() + 1).saturating_sub(until.len()));
                false
            }
        }
    }
}

impl Split for Xml {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        loop {
            if let Some(until) = self.until {
                if !self.skip_section(tail, until) {
                    return self.rest(tail, end);
                }
                continue;
            }
            let Some(found) = memchr(b'<', &tail[self.at..]) else {
                self.at = tail.len();
                return self.rest(tail, end);
            };
            self.at += found;
            let step = match markup(&tail[self.at..]) {
                Markup::Incomplete if end => {
                    self.at = tail.len();
                    Some(self.rest(tail, end))
                }
                Markup::Incomplete => Some(self.rest(tail, end)),
                Markup::Doctype => Some(Step::Doctype),
                Markup::Text => {
                    self.at += 1;
                    None
                }
                Markup::Section(opening, until) => {
                    self.at += opening;
                    self.until = Some(until);
                    None
                }
                Markup::Start { name, length, empty } => self.start_tag(tail, name, length, empty),
                Markup::End { name, length } => self.end_tag(tail, name, length),
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

    fn records(inner: &str) -> Vec<String> {
        cut(&mut Xml::new(1000), &format!("<?xml version=\"1.0\"?><xml><records>{inner}</records></xml>"))
    }

    #[test]
    fn elements_that_share_a_prefix_are_not_records() {
        let one = "<record><rec-number>1</rec-number><ref-type name=\"a > b\">17</ref-type></record>";
        assert_eq!(records(&format!("{one}\n{one}")), [one, one]);
    }

    #[test]
    fn comments_and_cdata_hide_what_they_contain() {
        let one = "<record id='1'><title><![CDATA[</record>]]></title><!-- </record> --></record>";
        assert_eq!(records(&format!("<!-- <record> -->{one}")), [one]);
    }

    #[test]
    fn a_record_that_is_not_closed_costs_only_itself() {
        let text = "<record><title>a<record><title>b</title></record>";
        let unclosed = "!it is not closed by </record>";
        assert_eq!(records(text), [unclosed, "<record><title>b</title></record>"]);
        assert_eq!(records("<record><title>a"), [unclosed]);
    }

    #[test]
    fn a_less_than_sign_in_text_is_text() {
        let one = "<record><abstract>p < 0.05, n<five</abstract></record>";
        assert_eq!(records(one), [one]);
    }

    #[test]
    fn a_document_cut_short_is_malformed() {
        let text = "<xml><records><record><title>a</title></record><record>";
        assert!(cut(&mut Xml::new(1000), text)[0].starts_with("Malformed"));
    }

    #[test]
    fn a_doctype_is_refused_wherever_it_stands() {
        assert_eq!(records("<!doctype x>"), ["Doctype"]);
        assert_eq!(records("<record><!DOCTYPE x></record>"), ["Doctype"]);
    }
}
