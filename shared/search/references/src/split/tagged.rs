//! Splits formats of tagged lines.
//!
//! A record begins at a line with an opening tag. It ends at a line with a closing tag, before the line that begins the
//! next record, or at the end of the file. Text between records is skipped. The formats differ in the lines that begin
//! a record while another is open.
//!
//! The first line of a record may be missing. A second title therefore ends the open record. The new record begins
//! after the last blank line before this title, if the line there has a tag, or at the line with its type.

use super::{
    Splitter, Step,
    lines::{LineElements, Lines, over_limit, trimmed_end},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineRole {
    /// Begins a record. Every record should have exactly one such line.
    Type,
    /// The last line of a record.
    End,
    /// Ends the record like [`LineRole::End`] if a blank line or the next record follows. Otherwise it is text.
    EndOrText,
    /// Ends the record before it, and begins another one whose first line is missing.
    EndAndStart,
    /// Begins a record if none is open: its first line is missing.
    UntypedStart,
    /// A line that acts as [`LineRole::UntypedStart`]. Every record should have exactly one such line with this last
    /// byte of its tag.
    Title(u8),
    /// A line that acts as [`LineRole::UntypedStart`], unless it follows a line of [`LineRole::End`] directly: then it
    /// may belong to the record before it.
    LateField,
    /// Begins a record if none is open, and has no other meaning.
    Tag,
    /// Begins a record if no record is open, and if another line that begins a record follows before a blank line.
    Field,
    /// Begins a record with a number or its owner, in a variant of the format.
    Number,
    /// Begins a record, or text that is skipped unless a line that begins a record is part of it.
    Rule,
    Other,
}

impl LineRole {
    /// Returns `true` if the line begins a record if none is open.
    fn begins_untyped(self) -> bool {
        !matches!(self, Self::End | Self::EndOrText | Self::Other)
    }

    /// Returns `true` if the line may belong to the record that ended on the line before it.
    fn is_late(self) -> bool {
        matches!(self, Self::LateField | Self::Field)
    }
}

/// The rules by which the lines of a format are recognized.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LineRules {
    pub(crate) kind: fn(&[u8]) -> LineRole,
    /// The number of bytes of a line that determine its role.
    pub(crate) prefix: usize,
    /// Returns `true` if a line of a role ends the open record and begins the next.
    pub(crate) begins_next: fn(&OpenRecord, LineRole) -> bool,
}

/// Distinguishes a line of [`LineRole::Type`] from text with the same beginning.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TypeInText {
    /// Returns `true` if the bytes, which begin with the line, are text.
    pub(crate) is_text: fn(&[u8]) -> bool,
    /// The number of bytes that determine the result.
    pub(crate) window: usize,
}

/// The splitter of formats whose records begin and end at tags.
#[derive(Debug)]
pub(crate) struct TaggedSplitter {
    rules: LineRules,
    limit: usize,
    lines: Lines,
    open: Option<OpenRecord>,
    /// `true` if a paragraph of a value may begin like a title.
    has_similar_text: bool,
    /// `true` if fields may follow the end of a record.
    has_late_fields: bool,
    /// Recognizes text in an abstract that begins like a type line.
    type_in_text: Option<TypeInText>,
    /// Recognizes text that belongs to the record without a type line that follows it.
    is_leading_text: Option<fn(&[u8]) -> bool>,
    /// The beginning of such text, while no record is open.
    leading: Option<usize>,
}

/// The maximum number of bytes of such text.
const MAX_LEADING: usize = 1024;

/// A record whose end has not been found.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenRecord {
    start: usize,
    /// The beginning of the line that opened the record, behind its leading text.
    opened: usize,
    /// The end of the record's last text so far.
    last: usize,
    /// The role of the record's first line.
    pub(crate) began: LineRole,
    /// `true` if the record has a line of [`LineRole::Type`].
    pub(crate) typed: bool,
    /// `true` if the record has any line of another role or without one.
    pub(crate) filled: bool,
    /// The number of the record's lines with a tag.
    pub(crate) fields: usize,
    /// `true` if none of its lines so far is one with which a record certainly begins.
    is_uncertain: bool,
    /// The first title of the record.
    pub(crate) title: Option<LineRole>,
    /// The last blank lines, if they follow the title and precede a line with a tag; or the place of a type that follows
    /// the title.
    gap: Option<Gap>,
    /// The number of blank lines directly before the current line.
    pub(crate) blanks: usize,
    /// `true` if a blank line follows its first line, and therefore probably each line.
    pub(crate) is_spaced: bool,
    /// `true` if its last line has the role [`LineRole::EndOrText`].
    may_end: bool,
    /// `true` if its last line with a tag has the role [`LineRole::LateField`].
    is_in_abstract: bool,
    /// `true` if only such a line and text follow the record's last line with a tag.
    is_behind_end: bool,
    /// The end of the record, if fields follow that may belong to it.
    ended: Option<Gap>,
}

/// The blank lines before a record, which may be none.
#[derive(Debug, Clone, Copy)]
struct Gap {
    /// The end of the text before these lines.
    before: usize,
    after: usize,
}

impl OpenRecord {
    fn new(start: usize, opened: usize, began: LineRole) -> Self {
        Self {
            start,
            opened,
            last: start,
            began,
            typed: false,
            filled: false,
            fields: 0,
            is_uncertain: matches!(began, LineRole::Field | LineRole::Rule),
            title: None,
            gap: None,
            blanks: 0,
            is_spaced: false,
            may_end: false,
            is_in_abstract: false,
            is_behind_end: false,
            ended: None,
        }
    }

    /// The gap before the group of lines that contains the line at `at`, if this group may belong to another record.
    fn gap_before(&self, at: usize, kind: LineRole) -> Option<Gap> {
        if self.blanks <= usize::from(self.is_spaced) && !self.is_behind_end {
            return self.gap;
        }
        let gap = Gap { before: self.last, after: at };
        (self.title.is_some() && kind.begins_untyped()).then_some(gap)
    }

    /// The gap before the type of a record with a title, which begins another record if a second title follows.
    fn gap_before_type(&self, at: usize, kind: LineRole) -> Option<Gap> {
        let is_late = kind == LineRole::Type && !self.typed && self.title.is_some();
        is_late.then_some(Gap { before: self.last, after: at })
    }

    /// Returns `true` if the lines with fields end, and none of them began a record.
    fn is_abandoned(&self) -> bool {
        self.is_uncertain && self.began == LineRole::Field && self.blanks > 0
    }

    /// Returns `true` if the line that was added last ends the record.
    fn is_ended(&self, kind: LineRole) -> bool {
        let is_behind_end = (self.may_end || self.ended.is_some()) && self.blanks > 0;
        kind == LineRole::End || is_behind_end || self.is_abandoned()
    }

    /// Adds a complete line, whose last text ends at `last`.
    fn add(&mut self, at: usize, kind: LineRole, last: Option<usize>) {
        let Some(last) = last else {
            self.is_spaced |= self.typed && !self.filled;
            self.blanks += 1;
            return;
        };
        self.gap = self.gap_before(at, kind).or_else(|| self.gap_before_type(at, kind));
        self.may_end = kind == LineRole::EndOrText;
        if !matches!(kind, LineRole::EndOrText | LineRole::Other) {
            self.is_in_abstract = kind == LineRole::LateField;
        }
        self.is_behind_end = self.may_end || (self.is_behind_end && kind == LineRole::Other);
        self.typed |= kind == LineRole::Type;
        self.filled |= !matches!(kind, LineRole::Type | LineRole::Rule);
        self.fields += usize::from(!matches!(kind, LineRole::Rule | LineRole::EndOrText | LineRole::Other));
        self.is_uncertain &=
            matches!(kind, LineRole::Field | LineRole::Rule | LineRole::EndOrText | LineRole::Other);
        self.title = self.title.or(Some(kind).filter(|kind| matches!(kind, LineRole::Title(_))));
        self.blanks = 0;
        self.last = last;
    }
}

impl TaggedSplitter {
    /// Creates a splitter of a format whose records begin at each line of [`LineRole::Type`], and only there while
    /// another record is open.
    pub(crate) fn by_type(kind: fn(&[u8]) -> LineRole, prefix: usize, limit: usize) -> Self {
        let begins_next = |_: &_, kind| kind == LineRole::Type;
        Self::new(LineRules { kind, prefix, begins_next }, limit)
    }

    /// Ignores titles directly behind a blank line, because a paragraph of a value may begin like a title.
    pub(crate) fn with_similar_text(self) -> Self {
        Self { has_similar_text: true, ..self }
    }

    pub(crate) fn new(rules: LineRules, limit: usize) -> Self {
        Self {
            rules,
            limit,
            lines: Lines::default(),
            open: None,
            has_similar_text: false,
            has_late_fields: false,
            type_in_text: None,
            is_leading_text: None,
            leading: None,
        }
    }

    /// Adds fields directly behind the end of a record to it, unless a title, author or type before the next blank line
    /// shows that they are another record.
    pub(crate) fn with_late_fields(self) -> Self {
        Self { has_late_fields: true, ..self }
    }

    /// Adds text that directly precedes a record without a type line to this record.
    pub(crate) fn with_leading_text(self, is_leading_text: fn(&[u8]) -> bool) -> Self {
        Self { is_leading_text: Some(is_leading_text), ..self }
    }

    /// Continues an abstract at text that begins like a type line.
    pub(crate) fn with_types_in_text(self, type_in_text: TypeInText) -> Self {
        Self { type_in_text: Some(type_in_text), ..self }
    }

    /// Configures the splitter to end lines at these markup elements too.
    pub(crate) fn with_elements(self, elements: LineElements) -> Self {
        Self { lines: Lines::new(Some(elements)), ..self }
    }

    fn found(&mut self, open: OpenRecord, consumed: usize) -> Step {
        self.open = None;
        self.lines.advance(0);
        if open.is_uncertain {
            return Step::Skip { consumed };
        }
        Step::Found { record: open.start..open.last, consumed, fault: None }
    }

    /// Skips text up to `consumed`.
    fn skip(&mut self, consumed: usize) -> Step {
        self.leading = None;
        self.lines.advance(0);
        Step::Skip { consumed }
    }

    /// Handles a tail in which nothing more can be found.
    fn rest(&mut self, tail: &[u8], end: bool) -> Step {
        match self.open {
            Some(open) if end => self.found(open, tail.len()),
            None if end && self.leading.is_some() => self.skip(tail.len()),
            _ => Step::More,
        }
    }

    /// Returns `true` if this line ends a record, and a field that may belong to it follows. Returns `None` if more bytes
    /// are needed.
    fn is_followed(&self, kind: LineRole, after: &[u8], end: bool) -> Option<bool> {
        if kind != LineRole::End || !self.has_late_fields || self.open.is_none() {
            return Some(false);
        }
        let is_known = end || after.len() >= self.rules.prefix;
        is_known.then(|| (self.rules.kind)(&after[..after.len().min(self.rules.prefix)]).is_late())
    }

    /// Returns `true` if this line between records may belong to the next one.
    fn leads(&self, text: &[u8], start: usize, next: usize) -> bool {
        self.is_leading_text.is_some_and(|is_leading| next - start <= MAX_LEADING && is_leading(text))
    }

    /// Returns `true` if a line of [`LineRole::Type`] is text of the abstract before it. Returns `None` if more bytes are
    /// needed.
    fn is_type_in_text(&self, text: &[u8], end: bool) -> Option<bool> {
        let is_inside =
            |open: &OpenRecord| open.is_in_abstract && open.typed && open.blanks == 0 && open.ended.is_none();
        let Some(rule) = self.type_in_text.filter(|_| self.open.as_ref().is_some_and(is_inside)) else {
            return Some(false);
        };
        let is_known = end || text.len() >= rule.window;
        is_known.then(|| (rule.is_text)(&text[..text.len().min(rule.window)]))
    }

    fn is_similar_text(&self) -> bool {
        self.has_similar_text && self.open.is_some_and(|open| open.blanks > 0)
    }

    /// The gap before a record that begins with the current line, or whose beginning in an earlier line the current
    /// line reveals.
    fn begins(&self, kind: LineRole) -> Option<Gap> {
        let at = self.lines.at;
        match &self.open {
            // The line that opened the record, which is checked again because it is complete now.
            Some(open) if open.opened == at => None,
            Some(open) if open.ended.is_some() && !kind.is_late() => {
                open.ended.filter(|_| !matches!(kind, LineRole::EndOrText | LineRole::Other))
            }
            Some(open) if (self.rules.begins_next)(open, kind) => Some(Gap { before: open.last, after: at }),
            Some(open) if open.title == Some(kind) => open.gap_before(at, kind),
            Some(_) => None,
            None => kind.begins_untyped().then_some(Gap { before: at, after: at }),
        }
    }
}

impl Splitter for TaggedSplitter {
    fn step(&mut self, tail: &[u8], end: bool) -> Step {
        loop {
            let at = self.lines.at;
            let line = self.lines.current(tail, end);
            let text = line.as_ref().map_or_else(|| self.lines.known(), |line| line.text.clone());
            // A line is classified early, by its first bytes, so that the position of a chunk's end does not matter.
            let judged = match &line {
                Some(line) => &tail[line.text.clone()],
                None if text.len() >= self.rules.prefix => &tail[at..at + self.rules.prefix],
                None => return self.rest(tail, end),
            };
            let kind = match (self.rules.kind)(judged) {
                LineRole::Title(_) if self.is_similar_text() => LineRole::Other,
                LineRole::Type => match self.is_type_in_text(&tail[at..], end) {
                    Some(is_text) if is_text => LineRole::Other,
                    Some(_) => LineRole::Type,
                    None => return self.rest(tail, end),
                },
                kind => kind,
            };
            if let Some(gap) = self.begins(kind) {
                if let Some(open) = self.open {
                    return self.found(OpenRecord { last: gap.before, ..open }, gap.after);
                }
                match self.leading.take() {
                    Some(_) if kind == LineRole::Type => return self.skip(at),
                    leading => self.open = Some(OpenRecord::new(leading.unwrap_or(at), at, kind)),
                }
            }
            let start = self.open.map_or(at, |open| open.start);
            if over_limit(tail, start..text.end, self.limit) {
                return Step::TooLarge { start };
            }
            // A line is processed only when it is complete; until then it is checked again.
            let Some(line) = line else { return self.rest(tail, end) };
            let Some(is_followed) = self.is_followed(kind, &tail[line.next..], end) else {
                return self.rest(tail, end);
            };
            if let Some(open) = &mut self.open {
                open.add(at, kind, trimmed_end(tail, &line.text));
                open.ended =
                    open.ended.or(is_followed.then_some(Gap { before: open.last, after: line.next }));
            }
            match self.open {
                Some(open) if !is_followed && open.is_ended(kind) => return self.found(open, line.next),
                Some(_) => self.lines.advance(line.next),
                None => {
                    let start = self.leading.unwrap_or(at);
                    if !self.leads(&tail[line.text.clone()], start, line.next) {
                        return self.skip(line.next);
                    }
                    self.leading = Some(start);
                    self.lines.advance(line.next);
                }
            }
        }
    }
}
