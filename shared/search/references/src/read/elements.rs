//! Reads the elements of an XML record, and their values.
//!
//! Databases write `<` where XML requires `&lt;`, and a study must not be lost because of "p <b and c". An apparent tag
//! inside a value that is never closed there is dropped. Elements around values must match.

mod math;

use std::borrow::Cow;

use math::Math;
use memchr::memchr;

use super::{
    entities,
    field::{FieldName, Index},
    tidy,
};
use crate::{
    split::markup::{CDATA_END, Markup, markup},
    work::spend,
};

/// The maximum depth of elements inside a record. Real records have a dozen levels, or two dozen with formulas.
const MAX_DEPTH: usize = 64;

/// A visitor of a record's values.
pub(super) trait Visitor<'a> {
    /// Elements that only format text; their content belongs to the surrounding value.
    const DRESS: &'static [&'static str];
    /// Elements inside values that are separate lines even without white space between them, such as paragraphs and
    /// parts of a date.
    const PARTS: &'static [&'static str];
    /// Elements inside values that are not part of them, such as the members of a group in its name.
    const OMITTED: &'static [&'static str] = &[];

    /// The table of the format: names of elements, optionally with their parent: `urls/url`.
    fn index(&self) -> &'static Index;
    /// A decoded value of an element in the table, with the element's `attributes`.
    fn value(&mut self, named: FieldName, attributes: &'a str, text: Cow<'a, str>);
    /// The text of an element that is not in the table.
    fn other(&mut self, name: &'a str, text: &str);
    /// The start of an element that is not in the table.
    fn start(&mut self, _name: &'a str, _attributes: &'a str) {}
    /// The end of an element with child elements.
    fn end(&mut self, _name: &'a str) {}
}

/// A value whose end has not been reached.
struct OpenValue<'a> {
    /// The number of elements around the value's element.
    depth: usize,
    named: Option<FieldName>,
    attributes: &'a str,
    text: Cow<'a, str>,
}

struct ElementWalker<'a, V> {
    text: &'a str,
    visit: V,
    around: Vec<&'a str>,
    value: Option<OpenValue<'a>>,
    /// The open formula in a value, if any.
    math: Option<Math>,
    /// The length of the value before alternative forms of a formula.
    alternatives: usize,
    /// The number of elements around an open element of [`Visitor::OMITTED`].
    omitted: Option<usize>,
}

/// Passes all values of a record to `visit`, in document order.
///
/// # Errors
/// Returns the reason to quarantine the record.
pub(super) fn walk<'a, V: Visitor<'a>>(text: &'a str, visit: V) -> Result<V, String> {
    let mut walk = ElementWalker {
        text,
        visit,
        around: Vec::new(),
        value: None,
        math: None,
        alternatives: 0,
        omitted: None,
    };
    let mut at = 0;
    while at < text.len() {
        at += walk.step(at)?;
    }
    match walk.around.last() {
        Some(name) => Err(format!("its XML is broken: <{name}> is not closed")),
        None => Ok(walk.visit),
    }
}

impl<'a, V: Visitor<'a>> ElementWalker<'a, V> {
    /// Reads the text or markup at `at`, and returns its length.
    fn step(&mut self, at: usize) -> Result<usize, String> {
        let rest = &self.text[at..];
        if !rest.starts_with('<') {
            let length = memchr(b'<', rest.as_bytes()).unwrap_or(rest.len());
            spend(length);
            if self.value.is_some() && !self.is_between_parts(&rest[..length]) {
                self.append(entities::decode(&rest[..length]));
            }
            return Ok(length);
        }
        match markup(rest.as_bytes()) {
            Markup::Doctype => Err("its XML declares a DOCTYPE".to_owned()),
            Markup::Text | Markup::Incomplete => {
                self.append(Cow::Borrowed("<"));
                Ok(1)
            }
            Markup::Section(opening, close) => Ok(self.section(rest, opening, close)),
            Markup::Start { name, length, empty } => {
                // The name is followed by white space, a slash or the end of the tag, so it is a valid slice.
                let name = &rest[1..=name.len()];
                let attributes = rest[1 + name.len()..length - 1].trim_end_matches('/');
                self.start(name, attributes)?;
                if empty {
                    self.end(name)?;
                }
                Ok(length)
            }
            Markup::End { name, length } => {
                self.end(&rest[2..2 + name.len()])?;
                Ok(length)
            }
        }
    }

    /// Skips comments and instructions; CDATA is literal text.
    fn section(&mut self, rest: &'a str, opening: usize, close: &'static [u8]) -> usize {
        let inner = &rest[opening..];
        let stop = memchr::memmem::find(inner.as_bytes(), close).unwrap_or(inner.len());
        spend(stop);
        if close == CDATA_END {
            self.append(Cow::Borrowed(&inner[..stop]));
        }
        (opening + stop + close.len()).min(rest.len())
    }

    fn append(&mut self, text: Cow<'a, str>) {
        if self.omitted.is_some() {
            return;
        }
        let Some(value) = self.value.as_mut().filter(|_| !text.is_empty()) else { return };
        if value.text.is_empty() {
            value.text = text;
        } else {
            value.text.to_mut().push_str(&text);
        }
    }

    fn start(&mut self, name: &'a str, attributes: &'a str) -> Result<(), String> {
        let dress = V::DRESS.contains(&name);
        // An unknown element may contain others; then its own text is not a value.
        let free = self.value.as_ref().is_none_or(|value| value.named.is_none() && !dress);
        if free && !dress {
            let named = self.visit.index().find_within(self.around.last().copied(), name);
            if named.is_none() {
                self.visit.start(name, attributes);
            }
            self.value =
                Some(OpenValue { depth: self.around.len(), named, attributes, text: Cow::Borrowed("") });
        } else {
            self.part(name);
            self.formula(name, attributes);
            if V::OMITTED.contains(&name) {
                self.omitted = self.omitted.or(Some(self.around.len()));
            }
        }
        self.around.push(name);
        if self.around.len() > MAX_DEPTH {
            return Err(format!("its XML is nested more than {MAX_DEPTH} levels deep"));
        }
        Ok(())
    }

    fn part(&mut self, name: &str) {
        if V::PARTS.contains(&name) {
            self.append(Cow::Borrowed("\n"));
        }
    }

    /// Handles an element inside a value that may belong to a formula.
    fn formula(&mut self, name: &str, attributes: &str) {
        let depth = self.around.len();
        let length = self.value.as_ref().map_or(0, |value| value.text.len());
        match &mut self.math {
            None if math::local(name) == "math" => {
                self.math = Some(Math::new(depth));
                // A complete TeX document may precede the formula as its alternative form.
                if let (Some(&"alternatives"), Some(value)) = (self.around.last(), &mut self.value) {
                    value.text.to_mut().truncate(self.alternatives);
                }
            }
            None if name == "alternatives" => self.alternatives = length,
            None => {}
            Some(math) => {
                let text = math.start(name, attributes, depth, length);
                self.append(Cow::Owned(text));
            }
        }
    }

    /// Closes the elements of a formula that have ended.
    fn formula_ended(&mut self) {
        let depth = self.around.len();
        let Some(math) = &mut self.math else { return };
        if let Some(value) = &mut self.value {
            math.end(depth, &mut value.text);
        }
        if depth <= math.depth {
            self.math = None;
        }
    }

    /// Returns `true` if the text is only white space between the elements of a formula.
    fn is_between_parts(&self, text: &str) -> bool {
        self.math.is_some()
            && self.around.last().is_some_and(|name| math::is_around_elements(name))
            && tidy::is_blank(text)
    }

    fn end(&mut self, name: &'a str) -> Result<(), String> {
        let inside = self.value.as_ref().map_or(self.around.len(), |value| value.depth);
        match self.around.iter().rposition(|open| *open == name) {
            Some(at) if at + 1 == self.around.len() || at == inside => self.around.truncate(at),
            // An end tag without a start tag, or an end tag that closes an element before its children.
            Some(at) if at > inside => self.around.truncate(at),
            None if self.value.is_some() => return Ok(()),
            _ => {
                let open = self.around.last().copied().unwrap_or_default();
                return Err(format!("its XML is broken: </{name}> stands where </{open}> was expected"));
            }
        }
        self.omitted = self.omitted.filter(|depth| *depth < self.around.len());
        self.formula_ended();
        match self.value.take_if(|value| value.depth == self.around.len()) {
            Some(OpenValue { named: Some(named), attributes, text, .. }) => {
                self.visit.value(named, attributes, text);
            }
            Some(OpenValue { text, .. }) => self.visit.other(name, &text),
            None if self.value.is_none() => self.visit.end(name),
            None => {}
        }
        Ok(())
    }
}

/// The value of an attribute in the text of a start tag.
pub(super) fn attribute<'a>(attributes: &'a str, wanted: &str) -> Option<Cow<'a, str>> {
    let mut rest = attributes;
    spend(attributes.len());
    loop {
        let (name, after) = rest.split_once('=')?;
        let after = after.trim_start();
        let quote = after.chars().next().filter(|c| matches!(c, '"' | '\''))?;
        let (value, after) = after[1..].split_once(quote)?;
        if name.trim() == wanted {
            return Some(entities::decode(value));
        }
        rest = after;
    }
}
