//! Presentation of the sources of a review: display names, a sentence for the methods section, and the upper part of
//! the PRISMA 2020 flow diagram (<https://www.prisma-statement.org/prisma-2020-flow-diagram>).
//!
//! A drawing consists of boxes with lines of text and of arrows, so that clients render the names as text and need
//! not trust them as markup.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Flow, Source, Sums};

/// The width of a box, the height of a line, the gap between boxes and the padding of a box, in units of the drawing.
/// A letter is about 8 units wide.
const WIDE: usize = 380;
const LINE: usize = 22;
const GAP: usize = 44;
const AROUND: usize = 14;
/// The distance between the top of a line and its baseline.
const BASELINE: usize = 16;
/// The maximum number of characters in a line of a box.
const MAX_CHARS: usize = 44;

/// Boxes and the arrows between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Drawing {
    /// The width.
    pub wide: usize,
    /// The height.
    pub high: usize,
    /// The boxes.
    pub boxes: Vec<DrawnBox>,
    /// The arrows, each as the data of an SVG path.
    pub arrows: Vec<String>,
}

/// A box with lines of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DrawnBox {
    /// The left edge.
    pub x: usize,
    /// The upper edge.
    pub y: usize,
    /// The width.
    pub wide: usize,
    /// The height.
    pub high: usize,
    /// The lines of text.
    pub lines: Vec<DrawnText>,
}

/// A line of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DrawnText {
    /// The left edge.
    pub x: usize,
    /// The baseline.
    pub y: usize,
    /// The text.
    pub text: String,
}

impl Source {
    /// Returns the display name.
    pub fn name(&self) -> String {
        let name = match (&self.database, &self.platform) {
            (Some(database), Some(platform)) => format!("{database} ({platform})"),
            (Some(name), None) | (None, Some(name)) => name.clone(),
            (None, None) => "unknown source".to_owned(),
        };
        self.searched_on.map_or(name.clone(), |date| format!("{name}, {date}"))
    }
}

impl Flow {
    /// Returns a sentence for the methods section.
    pub fn sentence(&self) -> String {
        let Sums { records, unread, duplicates, left, .. } = self.sums;
        let found: Vec<String> = self.named(usize::MAX).collect();
        format!(
            "{} identified from {}. Before screening, {} and {} that could not be read were removed; {} left.",
            were(records, "record"),
            found.join("; "),
            several(duplicates, "duplicate"),
            several(unread, "record"),
            were(left, "record"),
        )
    }

    /// Returns the flow diagram: records identified by source, records removed before screening, and records that
    /// remain.
    pub fn drawing(&self) -> Drawing {
        let Sums { unread, duplicates, left, marked, .. } = self.sums;
        let mut removed =
            vec!["Records removed before screening:".to_owned(), counted("Duplicate records", duplicates)];
        // Omit the decisions if there are none.
        removed.extend((marked.said > 0).then(|| counted("of these, said by a person", marked.said)));
        removed.push(counted("Records that could not be read", unread));
        let identified = ["Records identified from:".to_owned()].into_iter().chain(self.named(MAX_CHARS));
        let from = DrawnBox::at(1, 1, identified);
        let removed = DrawnBox::at(1 + WIDE + GAP, 1, removed);
        let below = 1 + from.high.max(removed.high) + GAP;
        let left = DrawnBox::at(1, below, [counted("Records left for screening", left)]);
        let across = 1 + from.high.min(removed.high) / 2;
        let middle = 1 + WIDE / 2;
        Drawing {
            wide: removed.x + WIDE + 1,
            high: left.y + left.high + 1,
            arrows: vec![to_the_right(1 + WIDE, removed.x, across), down(middle, 1 + from.high, left.y)],
            boxes: vec![from, removed, left],
        }
    }

    /// Returns each source with its number of records; names are shortened so that the text has up to `max`
    /// characters.
    fn named(&self, max: usize) -> impl Iterator<Item = String> {
        self.lines.iter().map(move |line| {
            let count = counted("", line.sums.records);
            shortened(&line.source.name(), max.saturating_sub(count.len())) + &count
        })
    }
}

impl DrawnBox {
    fn at(x: usize, y: usize, texts: impl IntoIterator<Item = String>) -> Self {
        let text = |(index, text)| DrawnText { x: x + AROUND, y: y + AROUND + index * LINE + BASELINE, text };
        let lines: Vec<DrawnText> = texts.into_iter().enumerate().map(text).collect();
        Self { x, y, wide: WIDE, high: lines.len() * LINE + 2 * AROUND, lines }
    }
}

fn to_the_right(x1: usize, x2: usize, y: usize) -> String {
    format!("M{x1} {y} L{x2} {y} M{0} {1} L{x2} {y} L{0} {2}", x2 - 7, y - 4, y + 4)
}

fn down(x: usize, y1: usize, y2: usize) -> String {
    format!("M{x} {y1} L{x} {y2} M{0} {2} L{x} {y2} L{1} {2}", x - 4, x + 4, y2 - 7)
}

fn shortened(text: &str, max: usize) -> String {
    if text.chars().count() <= max {
        text.to_owned()
    } else {
        text.chars().take(max.saturating_sub(1)).chain(['…']).collect()
    }
}

fn counted(what: &str, number: u64) -> String {
    format!("{what} (n = {})", grouped(number))
}

fn several(number: u64, one: &str) -> String {
    format!("{} {one}{}", grouped(number), if number == 1 { "" } else { "s" })
}

fn were(number: u64, one: &str) -> String {
    format!("{} {}", several(number, one), if number == 1 { "was" } else { "were" })
}

/// Formats a number with commas between thousands.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let is_before_three = |place: usize| place > 0 && (digits.len() - place).is_multiple_of(3);
    digits
        .char_indices()
        .flat_map(|(place, digit)| is_before_three(place).then_some(',').into_iter().chain([digit]))
        .collect()
}

#[cfg(test)]
mod tests {
    use imports::DuplicateCounts;

    use super::super::Line;
    use super::*;

    fn line(source: Source, records: u64) -> Line {
        Line { source, is_guessed: false, sums: Sums { records, ..Sums::default() } }
    }

    fn medline() -> Source {
        Source {
            database: Some("MEDLINE".into()),
            platform: Some("Ovid".into()),
            searched_on: "2026-05-01".parse().ok(),
        }
    }

    #[test]
    fn sentence_lists_sources_and_counts() {
        let sums = Sums { records: 1_234_567, unread: 2, duplicates: 1, left: 1_234, ..Sums::default() };
        let lines = vec![line(medline(), 1_234_560), line(Source::default(), 7)];
        assert_eq!(
            Flow { lines, sums, ..Flow::default() }.sentence(),
            "1,234,567 records were identified from MEDLINE (Ovid), 2026-05-01 (n = 1,234,560); unknown source (n = 7). \
             Before screening, 1 duplicate and 2 records that could not be read were removed; 1,234 records were left."
        );
        let sums = Sums { records: 1, left: 1, ..Sums::default() };
        let one = Flow { lines: vec![line(medline(), 1)], sums, ..Flow::default() }.sentence();
        assert!(one.starts_with("1 record was identified") && one.ends_with("; 1 record was left."), "{one}");
    }

    #[test]
    fn thousands_are_separated_by_commas() {
        let formatted = [0, 12, 999, 1_000, 65_536, 1_000_000].map(grouped);
        assert_eq!(formatted, ["0", "12", "999", "1,000", "65,536", "1,000,000"]);
    }

    #[test]
    fn drawing_lists_sources_and_decisions() {
        let long = Source { database: Some("long ".repeat(40)), ..Source::default() };
        let lines = vec![line(medline(), 3), line(long, 4)];
        let drawn = |said| {
            let marked = DuplicateCounts { said, ..DuplicateCounts::default() };
            let sums = Sums { records: 7, duplicates: 2, unread: 1, left: 4, marked, ..Sums::default() };
            Flow { lines: lines.clone(), sums, ..Flow::default() }.drawing()
        };
        let texts = |each: &DrawnBox| each.lines.iter().map(|line| line.text.clone()).collect::<Vec<_>>();
        let drawing = drawn(0);
        let [from, removed, left] = drawing.boxes.as_slice() else { panic!("{drawing:?}") };
        let [_, first, second] = &texts(from)[..] else { panic!("{from:?}") };
        assert_eq!(first, "MEDLINE (Ovid), 2026-05-01 (n = 3)");
        assert!(second.ends_with("… (n = 4)") && second.chars().count() <= MAX_CHARS, "{second}");
        assert_eq!(texts(left), ["Records left for screening (n = 4)"]);
        assert_eq!((removed.lines.len(), drawn(1).boxes[1].lines.len()), (3, 4));
        assert!(left.y > from.y + from.high && left.y + left.high < drawing.high);
    }
}
