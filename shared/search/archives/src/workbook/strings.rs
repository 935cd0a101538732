//! The shared strings of a workbook, which cells reference by index.

use super::xml::{Node, Xml, attribute, name, push_text};
use crate::Error;

/// The maximum size of all strings, in bytes: a worker has little memory, which also holds the workbook.
const MAX_BYTES: usize = 12 << 20;
/// The maximum number of strings.
const MAX_STRINGS: usize = 1_000_000;
/// The minimum size of the XML of a string, in bytes: `<si/>`.
const MIN_XML: usize = 5;
/// The maximum number of relationships of a workbook: one per sheet, and a few more.
const MAX_RELATIONS: usize = 1_000;
/// The maximum length of an id and target of a relationship, in bytes. The target is the path of an entry.
const MAX_RELATION: usize = 1_000;

/// All strings in one buffer.
#[derive(Debug, Default)]
pub(super) struct Strings {
    text: String,
    ends: Vec<u32>,
}

impl Strings {
    /// Reads `sharedStrings.xml`, which has `bytes` bytes.
    pub(super) fn read(mut xml: Xml, bytes: u64) -> Result<Self, Error> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // Allocated in advance: a buffer that doubles takes three times as much memory while it grows.
        let mut strings = Self {
            text: String::with_capacity(bytes.min(MAX_BYTES)),
            ends: Vec::with_capacity((bytes / MIN_XML).min(MAX_STRINGS)),
        };
        let mut item = Item::default();
        loop {
            match xml.next()? {
                Node::Start(start) => item.open(name(&start)),
                Node::Empty(start) if name(&start) == "si" => strings.add(&mut item)?,
                Node::End(name) if name == "si" => strings.add(&mut item)?,
                Node::End(name) => item.close(&name),
                Node::Text(text) => item.add(&text)?,
                Node::Empty(_) => {}
                Node::Eof => {
                    strings.text.shrink_to_fit();
                    strings.ends.shrink_to_fit();
                    return Ok(strings);
                }
            }
        }
    }

    fn add(&mut self, item: &mut Item) -> Result<(), Error> {
        let text = item.take();
        if self.text.len() + text.len() > MAX_BYTES || self.ends.len() == MAX_STRINGS {
            return Err(Error::WorkbookTooLarge { what: "text" });
        }
        self.text.push_str(&text);
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// Returns the string at an index.
    pub(super) fn get(&self, at: usize) -> Option<&str> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(start as usize..end as usize)
    }
}

/// A string, which may consist of several formatted runs.
#[derive(Debug, Default)]
pub(super) struct Item {
    text: String,
    in_text: bool,
    /// The number of open phonetic guides; their content is not part of the string.
    phonetic: usize,
}

impl Item {
    pub(super) fn open(&mut self, name: &str) {
        match name {
            "t" => self.in_text = true,
            "rPh" => self.phonetic += 1,
            _ => {}
        }
    }

    pub(super) fn close(&mut self, name: &str) {
        match name {
            "t" => self.in_text = false,
            "rPh" => self.phonetic = self.phonetic.saturating_sub(1),
            _ => {}
        }
    }

    pub(super) fn add(&mut self, text: &str) -> Result<(), Error> {
        if self.in_text && self.phonetic == 0 {
            push_text(&mut self.text, text)?;
        }
        Ok(())
    }

    pub(super) fn take(&mut self) -> String {
        let text = std::mem::take(self).text;
        if text.contains("_x") { unescaped(&text) } else { text }
    }
}

/// Decodes characters that XML cannot contain, which are written as `_x000D_`.
fn unescaped(text: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find("_x") {
        out.push_str(&rest[..at]);
        let code = rest.get(at + 2..at + 6).filter(|_| rest.as_bytes().get(at + 6) == Some(&b'_'));
        let code = code.and_then(|code| u32::from_str_radix(code, 16).ok()).and_then(char::from_u32);
        match code {
            Some(c) => {
                out.push(c);
                rest = &rest[at + 7..];
            }
            None => {
                out.push_str("_x");
                rest = &rest[at + 2..];
            }
        }
    }
    out + rest
}

/// Reads the target of each relationship, by its id.
pub(super) fn relations(mut xml: Xml) -> Result<Vec<(String, String)>, Error> {
    let mut found = Vec::new();
    loop {
        match xml.next()? {
            Node::Start(start) | Node::Empty(start) if name(&start) == "Relationship" => {
                let Some((id, target)) = attribute(&start, "Id").zip(attribute(&start, "Target")) else {
                    continue;
                };
                if found.len() == MAX_RELATIONS || id.len() + target.len() > MAX_RELATION {
                    return Err(Error::WorkbookTooLarge { what: "relationships" });
                }
                found.push((id, target));
            }
            Node::Eof => return Ok(found),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_characters_are_decoded() {
        assert_eq!(unescaped("a_x000D_b_x41_ _x005F_x000D_"), "a\rb_x41_ _x000D_");
        assert_eq!(unescaped("_x_xäöüß_"), "_x_xäöüß_");
    }
}
