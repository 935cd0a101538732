//! The texts of a workbook, which its cells name by number.

use super::xml::{Node, Xml, attribute, name, push_text};
use crate::Error;

/// Most bytes of text: the worker has little memory, and the workbook itself is in it too.
const MOST_BYTES: usize = 12 << 20;
/// Most texts.
const MOST_STRINGS: usize = 1_000_000;
/// The minimum number of bytes of XML for a text: `<si/>`.
const LEAST_XML: usize = 5;
/// Most relationships of a workbook: it has one for each sheet, and a few more.
const MOST_RELATIONS: usize = 1_000;
/// Longest id and target of a relationship, in bytes: the target is the path of an entry.
const MOST_RELATION: usize = 1_000;

/// All texts, one behind the other.
#[derive(Debug, Default)]
pub(super) struct Strings {
    text: String,
    ends: Vec<u32>,
}

impl Strings {
    /// Reads `sharedStrings.xml`, which has so many bytes.
    pub(super) fn read(mut xml: Xml, bytes: u64) -> Result<Self, Error> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        // Taken at once: a buffer that doubles takes three times as much while it grows.
        let mut strings = Self {
            text: String::with_capacity(bytes.min(MOST_BYTES)),
            ends: Vec::with_capacity((bytes / LEAST_XML).min(MOST_STRINGS)),
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
        if self.text.len() + text.len() > MOST_BYTES || self.ends.len() == MOST_STRINGS {
            return Err(Error::WorkbookTooLarge { what: "text" });
        }
        self.text.push_str(&text);
        self.ends.push(u32::try_from(self.text.len()).unwrap_or(u32::MAX));
        Ok(())
    }

    /// The text with this number.
    pub(super) fn get(&self, at: usize) -> Option<&str> {
        let end = *self.ends.get(at)?;
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.text.get(start as usize..end as usize)
    }
}

/// A text, which may have several parts with a format each.
#[derive(Debug, Default)]
pub(super) struct Item {
    text: String,
    in_text: bool,
    /// How many notes on pronunciation are open; what is in them is no part of the text.
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

/// Characters that XML cannot have are written `_x000D_`.
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

/// The target of each relationship, by its id.
pub(super) fn relations(mut xml: Xml) -> Result<Vec<(String, String)>, Error> {
    let mut found = Vec::new();
    loop {
        match xml.next()? {
            Node::Start(start) | Node::Empty(start) if name(&start) == "Relationship" => {
                let Some((id, target)) = attribute(&start, "Id").zip(attribute(&start, "Target")) else {
                    continue;
                };
                if found.len() == MOST_RELATIONS || id.len() + target.len() > MOST_RELATION {
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
