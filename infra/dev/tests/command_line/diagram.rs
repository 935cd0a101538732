//! The diagrams, and the consistency of the page of states with the code.

use std::path::Path;

use crate::program::Program;

/// Returns the part of a page between two markers.
fn section(page: &str, name: &str) -> String {
    let begin = format!("<!-- {name}: begin -->\n");
    let end = format!("<!-- {name}: end -->");
    let from = page.find(&begin).expect("the begin marker") + begin.len();
    let to = from + page[from..].find(&end).expect("the end marker");
    page[from..to].to_owned()
}

#[test]
fn state_page_matches_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/states.md");
    let page = std::fs::read_to_string(path).unwrap();
    let program = Program::new();
    let mermaid = program.run(&["diagram", "--format", "mermaid"]).stdout;
    assert_eq!(section(&page, "diagram"), format!("```mermaid\n{mermaid}```\n"), "run `make diagram`");
    let table = program.run(&["diagram", "--format", "table"]).stdout;
    assert_eq!(section(&page, "table"), table, "run `make diagram`");
}

#[test]
fn diagram_has_three_formats() {
    let program = Program::new();
    for (format, begin) in [("mermaid", "stateDiagram-v2"), ("dot", "digraph"), ("table", "| state |")] {
        let run = program.run(&["diagram", "--format", format]);
        assert!(run.code == Some(0) && run.stdout.starts_with(begin), "{format}");
    }
}
