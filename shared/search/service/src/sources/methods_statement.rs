//! How a review tells its sources: what one is called, a sentence for the methods section, and the upper part of the flow
//! diagram of PRISMA 2020 (<https://www.prisma-statement.org/prisma-2020-flow-diagram>).
//!
//! A drawing is made of boxes with lines of text and of arrows, so that whoever shows it writes the text as text: it has
//! names that others have given.

use serde::Serialize;
use utoipa::ToSchema;

use super::{Flow, Source, Sums};

/// In units of the drawing, of which a letter is about 8 wide: how wide a box is, how high a line of text is, what is between
/// two boxes, and what is around the text of a box.
const WIDE: usize = 380;
const LINE: usize = 22;
const GAP: usize = 44;
const AROUND: usize = 14;
/// How far the baseline of a line is below its top.
const BASELINE: usize = 16;
/// The most characters of a line that fit into a box.
const MOST_CHARS: usize = 44;

/// Boxes and the arrows between them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct Drawing {
    /// How wide it is.
    pub wide: usize,
    /// How high.
    pub high: usize,
    /// Its boxes.
    pub boxes: Vec<DrawnBox>,
    /// Its arrows, each as the data of a path in SVG.
    pub arrows: Vec<String>,
}

/// A box with lines of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DrawnBox {
    /// Where its left edge is.
    pub x: usize,
    /// Where its upper edge is.
    pub y: usize,
    /// How wide it is.
    pub wide: usize,
    /// How high.
    pub high: usize,
    /// What is in it.
    pub lines: Vec<DrawnText>,
}

/// A line of text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct DrawnText {
    /// Where it begins.
    pub x: usize,
    /// Where its baseline is.
    pub y: usize,
    /// What it says.
    pub text: String,
}

impl Source {
    /// What it is called.
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
    /// A sentence for the methods section.
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

    /// The flow diagram: what was identified where, what was removed before screening, and what is left.
    pub fn drawing(&self) -> Drawing {
        let Sums { unread, duplicates, left, marked, .. } = self.sums;
        let mut removed =
            vec!["Records removed before screening:".to_owned(), counted("Duplicate records", duplicates)];
        // That nobody has said anything need not be said.
        removed.extend((marked.said > 0).then(|| counted("of these, said by a person", marked.said)));
        removed.push(counted("Records that could not be read", unread));
        let identified = ["Records identified from:".to_owned()].into_iter().chain(self.named(MOST_CHARS));
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

    /// Each source with its number of records; names are shortened to fit into this many characters.
    fn named(&self, most: usize) -> impl Iterator<Item = String> {
        self.lines.iter().map(move |line| {
            let count = counted("", line.sums.records);
            shortened(&line.source.name(), most.saturating_sub(count.len())) + &count
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

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        text.to_owned()
    } else {
        text.chars().take(most.saturating_sub(1)).chain(['…']).collect()
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

/// A number with commas between its thousands.
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
    use imports::Marked;

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
    fn a_review_is_told_in_a_sentence() {
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
    fn numbers_have_commas_between_their_thousands() {
        let told = [0, 12, 999, 1_000, 65_536, 1_000_000].map(grouped);
        assert_eq!(told, ["0", "12", "999", "1,000", "65,536", "1,000,000"]);
    }

    #[test]
    fn a_drawing_has_every_source_and_what_was_said_if_anything_was() {
        let long = Source { database: Some("long ".repeat(40)), ..Source::default() };
        let lines = vec![line(medline(), 3), line(long, 4)];
        let drawn = |said| {
            let marked = Marked { said, ..Marked::default() };
            let sums = Sums { records: 7, duplicates: 2, unread: 1, left: 4, marked, ..Sums::default() };
            Flow { lines: lines.clone(), sums, ..Flow::default() }.drawing()
        };
        let texts = |each: &DrawnBox| each.lines.iter().map(|line| line.text.clone()).collect::<Vec<_>>();
        let drawing = drawn(0);
        let [from, removed, left] = drawing.boxes.as_slice() else { panic!("{drawing:?}") };
        let [_, first, second] = &texts(from)[..] else { panic!("{from:?}") };
        assert_eq!(first, "MEDLINE (Ovid), 2026-05-01 (n = 3)");
        assert!(second.ends_with("… (n = 4)") && second.chars().count() <= MOST_CHARS, "{second}");
        assert_eq!(texts(left), ["Records left for screening (n = 4)"]);
        assert_eq!((removed.lines.len(), drawn(1).boxes[1].lines.len()), (3, 4));
        assert!(left.y > from.y + from.high && left.y + left.high < drawing.high);
    }
}
