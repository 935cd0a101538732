//! Formats the numbers and dates of cells as text. Excel stores dates as numbers.

use std::collections::HashMap;

use jiff::{SignedDuration, civil};

use super::xml::{Node, Xml, attribute, name};
use crate::Error;

/// The maximum number of cell formats; Excel allows 65,490.
const MAX_FORMATS: usize = 65_536;
/// The number of seconds in a day.
const DAY: f64 = 86_400.0;
/// The last day that Excel supports: 9999-12-31.
const LAST_DAY: f64 = 2_958_466.0;

/// The meaning of a number in a cell, according to the cell's format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberKind {
    Number,
    Date,
    Time,
}

/// The number formats of a workbook.
#[derive(Debug, Default)]
pub(super) struct Formats {
    kinds: Vec<NumberKind>,
    /// `true` if days are counted from 1904, as in early versions for Macintosh.
    pub(super) from_1904: bool,
}

impl Formats {
    /// Reads `styles.xml`.
    pub(super) fn read(mut xml: Xml) -> Result<Self, Error> {
        let (mut own, mut kinds, mut in_cells) = (HashMap::new(), Vec::new(), false);
        loop {
            match xml.next()? {
                Node::Start(start) if name(&start) == "cellXfs" => in_cells = true,
                Node::End(name) if name == "cellXfs" => in_cells = false,
                Node::Start(start) | Node::Empty(start) if in_cells && name(&start) == "xf" => {
                    let id = attribute(&start, "numFmtId").and_then(|id| id.parse().ok());
                    kinds.push(kind(id.unwrap_or(0_u32), &own));
                }
                Node::Start(start) | Node::Empty(start) if name(&start) == "numFmt" => {
                    let id = attribute(&start, "numFmtId").and_then(|id| id.parse::<u32>().ok());
                    if let Some((id, code)) = id.zip(attribute(&start, "formatCode")) {
                        own.entry(id).or_insert_with(|| kind_of_code(&code));
                    }
                }
                Node::Eof => return Ok(Self { kinds, from_1904: false }),
                _ => {}
            }
            if kinds.len() > MAX_FORMATS || own.len() > MAX_FORMATS {
                return Err(Error::WorkbookTooLarge { what: "formats of cells" });
            }
        }
    }

    /// Formats the number of a cell.
    pub(super) fn text(&self, number: &str, format: Option<usize>) -> String {
        let kind = format.and_then(|format| self.kinds.get(format)).copied().unwrap_or(NumberKind::Number);
        let Ok(value) = number.trim().parse::<f64>() else { return number.to_owned() };
        let dated = match kind {
            NumberKind::Number => None,
            NumberKind::Date | NumberKind::Time => self.moment(value, kind),
        };
        dated.unwrap_or_else(|| plain(number.trim(), value))
    }

    /// The date and time that a number represents, in ISO 8601.
    fn moment(&self, value: f64, kind: NumberKind) -> Option<String> {
        if !(0.0..LAST_DAY).contains(&value) {
            return None;
        }
        let days = value.trunc();
        // Both are within the bounds that were just checked.
        let (days, seconds) = (days as i64, ((value - days) * DAY).round() as i64);
        let time = civil::Time::midnight().wrapping_add(SignedDuration::from_secs(seconds));
        if kind == NumberKind::Time && days == 0 {
            return Some(time.to_string());
        }
        // Excel has a 29 February 1900, so the count of earlier days begins one day later.
        let first = match (self.from_1904, days) {
            (true, _) => civil::date(1904, 1, 1),
            (false, 60) => return None,
            (false, ..60) => civil::date(1899, 12, 31),
            (false, _) => civil::date(1899, 12, 30),
        };
        let day = first.checked_add(SignedDuration::from_hours(24 * days)).ok()?;
        Some(if seconds == 0 { day.to_string() } else { day.to_datetime(time).to_string() })
    }
}

fn kind(id: u32, own: &HashMap<u32, NumberKind>) -> NumberKind {
    match id {
        14..=17 | 22 | 27..=31 | 36 | 50..=54 | 57 | 58 => NumberKind::Date,
        18..=21 | 32..=35 | 45..=47 | 55 | 56 => NumberKind::Time,
        _ => own.get(&id).copied().unwrap_or(NumberKind::Number),
    }
}

/// Classifies a format code such as `dd/mm/yyyy` or `[h]:mm`.
fn kind_of_code(code: &str) -> NumberKind {
    let (mut letters, mut chars) = (String::new(), code.chars());
    while let Some(c) = chars.next() {
        match c {
            '"' => while chars.next().is_some_and(|c| c != '"') {},
            '[' => {
                let inside: String = chars.by_ref().take_while(|c| *c != ']').collect();
                // An elapsed time; anything else in brackets is a color, a condition or a language.
                letters.extend(inside.chars().filter(|c| matches!(c, 'h' | 'm' | 's') && inside.len() < 3));
            }
            '\\' | '_' | '*' => drop(chars.next()),
            // The second section is for negative numbers.
            ';' => break,
            c => letters.extend(c.to_lowercase()),
        }
    }
    if letters.contains("general") {
        NumberKind::Number
    } else if letters.contains(['y', 'd']) || letters.contains('m') && !letters.contains(['h', 's']) {
        NumberKind::Date
    } else if letters.contains(['h', 's']) {
        NumberKind::Time
    } else {
        NumberKind::Number
    }
}

/// Formats a number as people write it: identifiers in full, with no more digits than Excel keeps.
fn plain(number: &str, value: f64) -> String {
    let is_short = number.len() <= 15 && !number.contains(['e', 'E']);
    if is_short || !value.is_finite() {
        return number.to_owned();
    }
    // Every whole number below this bound has an exact representation.
    if value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0 {
        return format!("{value:.0}");
    }
    format!("{value:.14e}").parse::<f64>().map_or_else(|_| number.to_owned(), |rounded| rounded.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_formatted_in_full() {
        let formats = Formats::default();
        for (number, text) in [
            ("2018", "2018"),
            ("29768149", "29768149"),
            ("3.2487951E7", "32487951"),
            ("0012", "0012"),
            ("1.2", "1.2"),
            ("0.30000000000000004", "0.3"),
            ("1234567890123456", "1234567890123456"),
            ("1e400", "1e400"),
            ("x", "x"),
        ] {
            assert_eq!(formats.text(number, None), text);
        }
    }

    #[test]
    fn dates_are_formatted_as_iso_8601() {
        let formats =
            Formats { kinds: vec![NumberKind::Number, NumberKind::Date, NumberKind::Time], from_1904: false };
        let text = |number: &str, format| formats.text(number, Some(format));
        assert_eq!(text("43237", 1), "2018-05-17");
        assert_eq!(text("43237.5", 1), "2018-05-17T12:00:00");
        assert_eq!((text("59", 1), text("61", 1)), ("1900-02-28".to_owned(), "1900-03-01".to_owned()));
        assert_eq!(text("60", 1), "60");
        assert_eq!(text("0.4375", 2), "10:30:00");
        assert_eq!(text("-1", 1), "-1");
        assert_eq!(text("1e9", 1), "1000000000");
        let mac = Formats { from_1904: true, ..formats };
        assert_eq!(mac.text("41775", Some(1)), "2018-05-17");
    }

    #[test]
    fn number_formats_are_classified_by_letters() {
        for (code, kind) in [
            ("dd/mm/yyyy", NumberKind::Date),
            ("mmm", NumberKind::Date),
            ("[$-409]d\\-mmm\\-yy;@", NumberKind::Date),
            ("h:mm:ss", NumberKind::Time),
            ("[h]:mm", NumberKind::Time),
            ("0.00", NumberKind::Number),
            ("General", NumberKind::Number),
            ("0 \"days\"", NumberKind::Number),
            ("[Red]0;[Blue]0", NumberKind::Number),
            ("@", NumberKind::Number),
        ] {
            assert_eq!(kind_of_code(code), kind, "{code}");
        }
    }
}
