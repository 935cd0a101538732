//! The diagram of the state machine, generated from the code.

use imports::saga::table;
use local::output;

use crate::args::{Diagram, Format};

/// Prints the diagram.
pub(crate) fn run(args: &Diagram) -> anyhow::Result<bool> {
    let text = match args.format {
        Format::Mermaid => table::mermaid(),
        Format::Dot => table::dot(),
        Format::Table => table::markdown(),
    };
    output::block(text.trim_end())?;
    Ok(true)
}
