//! The diagrams.

use crate::program::Program;

#[test]
fn diagram_has_three_formats() {
    let program = Program::new();
    for (format, begin) in [("mermaid", "stateDiagram-v2"), ("dot", "digraph"), ("table", "| state |")] {
        let run = program.run(&["diagram", "--format", format]);
        assert!(run.code == Some(0) && run.stdout.starts_with(begin), "{format}");
    }
}
