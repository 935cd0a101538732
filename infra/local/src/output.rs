//! All output to the terminal. It may contain untrusted text, so control characters and bidirectional formatting
//! characters are escaped ([`messages::escape`]).

use std::io::{self, Write};

use messages::escape::{escape_for_terminal, escape_in_json};
use serde::Serialize;

/// Prints a line on standard output. A closed pipe (`| head`) is not an error.
pub fn line(text: &str) -> io::Result<()> {
    write(&escape_for_terminal(text))
}

/// Prints formatted lines, such as a table. Its cells must be escaped with [`cell`].
pub fn block(text: &str) -> io::Result<()> {
    text.lines().try_for_each(line)
}

/// Escapes the text of a table cell, which is on one line.
pub fn cell(text: &str) -> String {
    escape_for_terminal(text).into_owned()
}

/// Prints JSON on one line. Escapes do not change its strings.
pub fn json<T: Serialize>(value: &T) -> io::Result<()> {
    write(&escape_in_json(&serde_json::to_string(value)?))
}

/// Prints indented JSON.
pub fn pretty_json<T: Serialize>(value: &T) -> io::Result<()> {
    let json = serde_json::to_string_pretty(value)?;
    json.lines().try_for_each(|line| write(&escape_in_json(line)))
}

fn write(line: &str) -> io::Result<()> {
    match writeln!(io::stdout().lock(), "{line}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => result,
    }
}

/// Prints an error on standard error as one line.
pub fn complain(text: &str) {
    remark(&format!("error: {}", text.replace('\n', " ")));
}

/// Prints a remark on standard error.
pub fn remark(text: &str) {
    // A failure to print is ignored, because the exit code still reports success or failure.
    let _ = writeln!(io::stderr().lock(), "{}", escape_for_terminal(text));
}
