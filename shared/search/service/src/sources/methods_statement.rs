//! Presentation of the sources of a review: display names, a sentence for the methods section, and the upper part of
//! the PRISMA 2020 flow diagram (<https://www.prisma-statement.org/prisma-2020-flow-diagram>).
//!
//! A drawing is a list of boxes, which contain lines of text, and a list of arrows. Clients render names as text, so
//! they need not trust names as markup.

use std::collections::BTreeSet;

use serde::Serialize;
use utoipa::ToSchema;

use super::{Flow, Line, Method, Source, Sums};

/// The width of a box, the height of a line, the gap between boxes and the padding of a box, in units of the drawing.
/// A letter is about 8 units wide.
const WIDE: usize = 380;
const LINE: usize = 22;
const GAP: usize = 44;
const AROUND: usize = 14;
/// The indentation of a line, in units of the drawing.
const INDENT: usize = 16;
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

/// The groups of sources: their names in a sentence and in the diagram.
const GROUPS: [(Method, &str, &str); 3] = [
    (Method::Database, "database", "Databases"),
    (Method::Register, "register", "Registers"),
    (Method::Other, "other source", "Other methods"),
];

impl Flow {
    /// Returns a sentence for the methods section.
    pub fn sentence(&self) -> String {
        let Sums { records, unread, duplicates, left, .. } = self.sums;
        let groups: Vec<String> =
            GROUPS.into_iter().filter_map(|(method, name, _)| self.phrase(method, name)).collect();
        format!(
            "{} identified from {}. Before screening, {} and {} that could not be read were removed; {} left.",
            were(records, "record"),
            listed(&groups),
            several(duplicates, "duplicate"),
            several(unread, "record"),
            were(left, "record"),
        )
    }

    /// Returns the number of sources of a group and their names, or `None` if there are none. A database that was searched
    /// on several platforms or dates counts once.
    fn phrase(&self, method: Method, name: &str) -> Option<String> {
        let sources: Vec<String> = self.of(method).map(Line::counted).collect();
        let names =
            self.of(method).map(|line| line.source.database.as_ref().or(line.source.platform.as_ref()));
        let mut names: BTreeSet<Option<&String>> = names.collect();
        let has_unknown = names.remove(&None);
        let named = names.len() as u64;
        let counted = match (named, has_unknown) {
            (0, _) => format!("an unknown {name}"),
            (named, false) => several(named, name),
            (named, true) => format!("{} and an unknown one", several(named, name)),
        };
        (!sources.is_empty()).then(|| format!("{counted} ({})", sources.join("; ")))
    }

    /// Returns the upper part of the PRISMA 2020 flow diagram: records identified from databases, registers and other
    /// methods, records removed before screening by reason, and records to be screened.
    pub fn drawing(&self) -> Drawing {
        let Sums { left, .. } = self.sums;
        let mut boxes = Vec::new();
        for (method, _, title) in GROUPS {
            let sources: Vec<String> = self.of(method).map(Line::counted).collect();
            // The diagram always has a box for databases.
            if !sources.is_empty() || method == Method::Database {
                let records = self.of(method).map(|line| line.sums.records).sum();
                let top = boxes.last().map_or(1, |last: &DrawnBox| last.y + last.high + GAP / 4);
                let head = "Records identified from:".to_owned();
                let total = counted(title, records);
                boxes.push(DrawnBox::at(1, top, [head, total], sources));
            }
        }
        let above = boxes.last().map_or(1, |last| last.y + last.high);
        let removed =
            DrawnBox::at(1 + WIDE + GAP, 1, ["Records removed before screening:".to_owned()], self.removed());
        let below = above.max(1 + removed.high) + GAP;
        let screened = DrawnBox::at(1, below, [counted("Records to be screened", left)], []);
        let across = 1 + boxes.first().map_or(removed.high, |first| first.high).min(removed.high) / 2;
        let middle = 1 + WIDE / 2;
        let between = boxes
            .iter()
            .zip(boxes.iter().skip(1))
            .map(|(upper, lower)| line(middle, upper.y + upper.high, lower.y));
        let mut arrows: Vec<String> = between.collect();
        arrows.push(to_the_right(1 + WIDE, removed.x, across));
        arrows.push(down(middle, above, below));
        let (wide, high) = (removed.x + WIDE + 1, screened.y + screened.high + 1);
        boxes.extend([removed, screened]);
        Drawing { wide, high, boxes, arrows }
    }

    /// Returns the records that were removed before screening, by reason.
    fn removed(&self) -> Vec<String> {
        let Sums { unread, duplicates, marked, .. } = self.sums;
        let mut lines = vec![counted("Duplicate records removed", duplicates)];
        // Omit the decisions if there are none.
        lines.extend((marked.said > 0).then(|| counted("of these, identified by a reviewer", marked.said)));
        lines.push(counted("Records marked as ineligible by automation tools", 0));
        lines.push(counted("Records removed for other reasons: not readable", unread));
        lines
    }
}

impl Line {
    fn counted(&self) -> String {
        counted(&self.source.name(), self.sums.records)
    }
}

impl DrawnBox {
    /// Returns a box with headings and, indented, further texts. Long texts are wrapped.
    fn at(
        x: usize,
        y: usize,
        heads: impl IntoIterator<Item = String>,
        texts: impl IntoIterator<Item = String>,
    ) -> Self {
        let heads = heads.into_iter().flat_map(|text| wrapped(&text, MAX_CHARS, 0));
        let texts = texts.into_iter().flat_map(|text| wrapped(&text, MAX_CHARS, 1));
        let text = |(index, (indent, text)): (usize, (usize, String))| DrawnText {
            x: x + AROUND + indent * INDENT,
            y: y + AROUND + index * LINE + BASELINE,
            text,
        };
        let lines: Vec<DrawnText> = heads.chain(texts).enumerate().map(text).collect();
        Self { x, y, wide: WIDE, high: lines.len() * LINE + 2 * AROUND, lines }
    }
}

/// Splits a text into lines between words, or inside words that are longer than a line. Returns each line with its
/// indentation: the lines after the first have one level more.
fn wrapped(text: &str, max: usize, indent: usize) -> Vec<(usize, String)> {
    let mut lines = vec![(indent, String::new())];
    // The count stays next to its name.
    let text = text.replace(" (n = ", " (n\u{a0}=\u{a0}");
    for word in text.split(' ') {
        let word: Vec<char> = word.chars().collect();
        let mut rest = word.as_slice();
        loop {
            let is_first = lines.len() == 1;
            // An indentation is as wide as two letters.
            let room = max.saturating_sub(2 * (indent + usize::from(!is_first)));
            let Some((_, line)) = lines.last_mut() else { break };
            let used = line.chars().count() + usize::from(!line.is_empty());
            if used + rest.len() <= room {
                if !line.is_empty() {
                    line.push(' ');
                }
                line.extend(rest);
                break;
            }
            if line.is_empty() {
                let (piece, behind) = rest.split_at(room.max(1).min(rest.len()));
                line.extend(piece);
                rest = behind;
            }
            lines.push((indent + 1, String::new()));
        }
    }
    lines.into_iter().map(|(indent, line)| (indent, line.replace('\u{a0}', " "))).collect()
}

fn line(x: usize, y1: usize, y2: usize) -> String {
    format!("M{x} {y1} L{x} {y2}")
}

fn to_the_right(x1: usize, x2: usize, y: usize) -> String {
    format!("M{x1} {y} L{x2} {y} M{0} {1} L{x2} {y} L{0} {2}", x2 - 7, y - 4, y + 4)
}

fn down(x: usize, y1: usize, y2: usize) -> String {
    format!("M{x} {y1} L{x} {y2} M{0} {2} L{x} {y2} L{1} {2}", x - 4, x + 4, y2 - 7)
}

/// Joins phrases: `a`, `a and b`, `a, b and c`.
fn listed(phrases: &[String]) -> String {
    match phrases {
        [] => "no source".to_owned(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
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
        let method = source.method();
        Line { source, method, is_guessed: false, sums: Sums { records, ..Sums::default() } }
    }

    fn named(database: &str) -> Source {
        Source { database: Some(database.to_owned()), ..Source::default() }
    }

    fn medline() -> Source {
        Source {
            database: Some("MEDLINE".into()),
            platform: Some("Ovid".into()),
            searched_on: "2026-05-01".parse().ok(),
        }
    }

    #[test]
    fn words_longer_than_a_line_are_split() {
        let lines = wrapped(&"x".repeat(25), 10, 0);
        assert_eq!(lines, [(0, "x".repeat(10)), (1, "x".repeat(8)), (1, "x".repeat(7))]);
    }

    #[test]
    fn database_on_several_platforms_counts_once() {
        let sentence = |lines: Vec<Line>| Flow { lines, ..Flow::default() }.sentence();
        let later = Source { searched_on: "2026-11-01".parse().ok(), ..medline() };
        let unknown = || line(Source::default(), 1);
        for (lines, expected) in [
            (vec![line(medline(), 1), line(later, 1), line(named("MEDLINE"), 1)], "from 1 database (MEDLINE"),
            (vec![line(medline(), 1), unknown()], "from 1 database and an unknown one ("),
            (vec![unknown()], "from an unknown database (unknown source"),
        ] {
            let said = sentence(lines);
            assert!(said.contains(expected), "{said}");
        }
    }

    #[test]
    fn sentence_lists_sources_and_counts() {
        let sums = Sums { records: 1_234_567, unread: 2, duplicates: 1, left: 1_234, ..Sums::default() };
        let lines = vec![line(medline(), 1_234_560), line(named("ClinicalTrials.gov"), 7)];
        assert_eq!(
            Flow { lines, sums, ..Flow::default() }.sentence(),
            "1,234,567 records were identified from 1 database (MEDLINE (Ovid), 2026-05-01 (n = 1,234,560)) and \
             1 register (ClinicalTrials.gov (n = 7)). Before screening, 1 duplicate and 2 records that could not be read \
             were removed; 1,234 records were left."
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

    fn texts(drawn: &DrawnBox) -> Vec<String> {
        drawn.lines.iter().map(|line| line.text.clone()).collect()
    }

    #[test]
    fn registers_have_a_box_of_their_own() {
        let lines = vec![line(medline(), 3), line(named("WHO ICTRP"), 4)];
        let drawn = |said| {
            let marked = DuplicateCounts { said, ..DuplicateCounts::default() };
            let sums = Sums { records: 7, duplicates: 2, unread: 1, left: 4, marked, ..Sums::default() };
            Flow { lines: lines.clone(), sums, ..Flow::default() }.drawing()
        };
        let drawing = drawn(0);
        let [databases, registers, removed, screened] = drawing.boxes.as_slice() else {
            panic!("{drawing:?}")
        };
        assert_eq!(
            texts(databases),
            ["Records identified from:", "Databases (n = 3)", "MEDLINE (Ovid), 2026-05-01 (n = 3)"]
        );
        assert_eq!(texts(registers), ["Records identified from:", "Registers (n = 4)", "WHO ICTRP (n = 4)"]);
        assert_eq!(
            texts(removed),
            [
                "Records removed before screening:",
                "Duplicate records removed (n = 2)",
                "Records marked as ineligible by automation",
                "tools (n = 0)",
                "Records removed for other reasons: not",
                "readable (n = 1)"
            ]
        );
        assert_eq!(texts(screened), ["Records to be screened (n = 4)"]);
        assert_eq!(drawn(1).boxes[2].lines.len(), removed.lines.len() + 1);
        assert!(registers.y > databases.y + databases.high && screened.y > registers.y + registers.high);
        assert_eq!(drawing.arrows.len(), 3);
    }

    #[test]
    fn long_names_are_wrapped_completely() {
        let words = "a long name of a database ".repeat(4);
        let letters = "x".repeat(100);
        let lines = vec![line(named(words.trim()), 3), line(named(&letters), 4)];
        let drawing = Flow { lines, ..Flow::default() }.drawing();
        let drawn = texts(&drawing.boxes[0]);
        assert!(drawn.iter().all(|line| line.chars().count() <= MAX_CHARS), "{drawn:?}");
        assert!(drawn.join(" ").contains(words.trim()), "{drawn:?}");
        assert_eq!(drawn.concat().matches('x').count(), 100);
        assert!(drawn.iter().any(|line| line.ends_with("(n = 4)")), "{drawn:?}");
    }
}
