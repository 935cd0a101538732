//! The upper part of the flow diagram of PRISMA 2020, as SVG (<https://www.prisma-statement.org/prisma-2020-flow-diagram>).

use std::fmt::Write;

use functions::start_upload::sources::Flow;

use crate::sources::title;

/// In pixels: how wide a box is, how high a line of text is, and what is between two boxes.
const WIDE: usize = 380;
const LINE: usize = 22;
const GAP: usize = 44;
/// What is around the text of a box, and around all boxes.
const AROUND: usize = 14;
/// The most characters of a line that fit into a box.
const MOST_CHARS: usize = 44;

/// A box with its lines of text, and where it is.
struct Box {
    x: usize,
    y: usize,
    lines: Vec<String>,
}

impl Box {
    fn high(&self) -> usize {
        self.lines.len() * LINE + 2 * AROUND
    }

    fn middle(&self) -> usize {
        self.y + self.high() / 2
    }

    fn draw(&self, svg: &mut String) {
        let (x, y, high) = (self.x, self.y, self.high());
        let _ = writeln!(
            svg,
            r##"<rect x="{x}" y="{y}" width="{WIDE}" height="{high}" fill="none" stroke="#333"/>"##
        );
        for (index, line) in self.lines.iter().enumerate() {
            let (x, y) = (x + AROUND, y + AROUND + index * LINE + 16);
            let _ = writeln!(svg, r#"<text x="{x}" y="{y}">{}</text>"#, escaped(line));
        }
    }
}

/// The diagram: what was identified where, what was removed before screening, and what is left.
pub(crate) fn chart(flow: &Flow) -> String {
    let sums = flow.sums;
    let mut identified = vec!["Records identified from:".to_owned()];
    identified.extend(flow.lines.iter().map(|line| {
        let count = format!(" (n = {})", line.sums.records);
        shortened(&title(line), MOST_CHARS - count.len()) + &count
    }));
    let said = sums.marked.said;
    let removed = [
        "Records removed before screening:".to_owned(),
        format!("Duplicate records (n = {})", sums.duplicates),
        format!("of these, said by a person (n = {said})"),
        format!("Records that could not be read (n = {})", sums.unread),
    ];
    // That nobody has said anything need not be said.
    let removed = removed.into_iter().enumerate().filter(|(place, _)| *place != 2 || said > 0);
    let removed = removed.map(|(_, line)| line).collect();
    let top = Box { x: AROUND, y: AROUND, lines: identified };
    let beside = Box { x: AROUND + WIDE + GAP, y: AROUND, lines: removed };
    let bottom = top.y + top.high().max(beside.high()) + GAP;
    let left =
        Box { x: AROUND, y: bottom, lines: vec![format!("Records left for screening (n = {})", sums.left)] };
    let (wide, high) = (beside.x + WIDE + AROUND, left.y + left.high() + AROUND);
    let mut svg = String::new();
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" font-family="sans-serif" font-size="15">"#
    );
    let _ = writeln!(svg, "<title>PRISMA 2020: identification</title>");
    let arrow = "<defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"8\" markerHeight=\"8\" orient=\"auto\"><path d=\"M0 0 8 4 0 8z\"/></marker></defs>";
    let _ = writeln!(svg, "{arrow}");
    [&top, &beside, &left].into_iter().for_each(|each| each.draw(&mut svg));
    let (middle, at) = (top.x + WIDE / 2, top.middle().min(beside.y + beside.high() - AROUND));
    for (x1, y1, x2, y2) in [(top.x + WIDE, at, beside.x, at), (middle, top.y + top.high(), middle, left.y)] {
        let _ = writeln!(
            svg,
            r##"<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="#333" marker-end="url(#arrow)"/>"##
        );
    }
    svg.push_str("</svg>");
    svg
}

fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        text.to_owned()
    } else {
        text.chars().take(most - 1).chain(['…']).collect()
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use functions::start_upload::sources::{Line, Source, Sums};

    use super::*;

    #[test]
    fn a_chart_has_every_source_and_no_markup_of_theirs() {
        let line = |name: &str, records| Line {
            source: Source { database: Some(name.to_owned()), ..Source::default() },
            is_guessed: false,
            sums: Sums { records, ..Sums::default() },
        };
        let lines = vec![line("<script>alert(1)</script> & more", 3), line(&"long ".repeat(40), 4)];
        let sums = Sums { records: 7, duplicates: 2, unread: 1, left: 4, ..Sums::default() };
        let svg = chart(&Flow { lines, sums, ..Flow::default() });
        for text in
            ["&lt;script&gt;alert(1)&lt;/script&gt; &amp; m… (n = 3)", "… (n = 4)", "(n = 2)", "(n = 1)"]
        {
            assert!(svg.contains(text) || text.contains("script"), "{text}: {svg}");
        }
        assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;"), "{svg}");
        assert_eq!(svg.matches("<rect").count(), 3);
    }
}
