//! Shell completions and manual pages, generated from the definitions of the arguments.

use std::io::{self, Write};

use anyhow::Context;
use clap::CommandFactory;
use clap_mangen::Man;
use local::output;

use crate::args::{self, Args};
use crate::files;

/// Prints the completions for a shell.
pub(crate) fn completions(args: &args::Completions) -> anyhow::Result<bool> {
    let mut script = Vec::new();
    let mut command = Args::command();
    let name = command.get_name().to_owned();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    print(&script)?;
    Ok(true)
}

/// Prints the manual page, or writes the pages of all commands to a folder.
pub(crate) fn man(args: &args::Man) -> anyhow::Result<bool> {
    let Some(dir) = &args.out else {
        let mut page = Vec::new();
        Man::new(Args::command()).render(&mut page)?;
        print(&page)?;
        return Ok(true);
    };
    files::create_folder(dir)?;
    clap_mangen::generate_to(Args::command(), dir)
        .with_context(|| format!("writing the pages to {} failed", dir.display()))?;
    output::line(&format!("manual pages written to {}", dir.display()))?;
    Ok(true)
}

/// Prints our own text without escaping it. A closed pipe (`| head`) is not an error.
fn print(text: &[u8]) -> io::Result<()> {
    match io::stdout().lock().write_all(text) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}
