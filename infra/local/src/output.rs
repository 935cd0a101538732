//! Writing to the terminal, the one place where it is done. Whatever is written here may have text of others in it, so
//! control characters and those that turn the direction of writing are shown escaped ([`messages::shown`]).

use std::io::{self, Write};

use messages::shown::{shown, shown_in_json};
use serde::Serialize;

/// Prints a line on standard output. A reader that has gone away (`| head`) is no error.
pub fn line(text: &str) -> io::Result<()> {
    write(&shown(text))
}

/// Prints lines that are laid out, such as a table; its cells are to be [`cell`]s.
pub fn block(text: &str) -> io::Result<()> {
    text.lines().try_for_each(line)
}

/// The text of a cell of a table, on one line.
pub fn cell(text: &str) -> String {
    shown(text).into_owned()
}

/// Prints JSON on one line. It has the same strings as ever, some of their characters escaped.
pub fn json<T: Serialize>(value: &T) -> io::Result<()> {
    write(&shown_in_json(&serde_json::to_string(value)?))
}

/// Prints JSON laid out for people.
pub fn pretty_json<T: Serialize>(value: &T) -> io::Result<()> {
    let json = serde_json::to_string_pretty(value)?;
    json.lines().try_for_each(|line| write(&shown_in_json(line)))
}

fn write(line: &str) -> io::Result<()> {
    match writeln!(io::stdout().lock(), "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => result,
    }
}

/// Prints an error on standard error, as one line.
pub fn complain(text: &str) {
    remark(&format!("error: {}", text.replace('\n', " ")));
}

/// Prints a remark on standard error.
pub fn remark(text: &str) {
    // What cannot be printed is lost; the exit code still says whether all went well.
    let _ = writeln!(io::stderr().lock(), "{}", shown(text));
}
