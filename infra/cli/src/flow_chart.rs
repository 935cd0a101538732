//! Drawing the flow diagram as SVG.

use std::fmt::Write;

use service::sources::Drawing;

const LINES: &str = r##"fill="none" stroke="#333""##;

/// Renders a flow diagram as an SVG document.
pub(crate) fn svg(drawing: &Drawing) -> String {
    let Drawing { wide, high, boxes, arrows } = drawing;
    let mut svg = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {wide} {high}" width="{wide}" height="{high}" font-family="sans-serif" font-size="15">"#
    );
    let _ = writeln!(svg, "<title>PRISMA 2020: identification</title>");
    for each in boxes {
        let (x, y, wide, high) = (each.x, each.y, each.wide, each.high);
        let _ = writeln!(svg, r#"<rect x="{x}" y="{y}" width="{wide}" height="{high}" {LINES}/>"#);
        for line in &each.lines {
            let _ = writeln!(svg, r#"<text x="{}" y="{}">{}</text>"#, line.x, line.y, escaped(&line.text));
        }
    }
    for arrow in arrows {
        let _ = writeln!(svg, r#"<path d="{arrow}" {LINES}/>"#);
    }
    svg.push_str("</svg>");
    svg
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use service::sources::{Flow, Line, Source, Sums};

    use super::*;

    #[test]
    fn source_names_are_escaped() {
        let database = Some("<script>alert(1)</script> & more".to_owned());
        let source = Source { database, ..Source::default() };
        let line = Line {
            method: source.method(),
            source,
            is_guessed: false,
            sums: Sums { records: 3, ..Sums::default() },
        };
        let svg = svg(&Flow { lines: vec![line], ..Flow::default() }.drawing());
        assert!(svg.contains("&lt;script&gt;alert(1)&lt;/script&gt; &amp; more (n = 3)"), "{svg}");
        assert!(!svg.contains("<script"), "{svg}");
        assert_eq!((svg.matches("<rect").count(), svg.matches("<path").count()), (3, 2));
    }
}
