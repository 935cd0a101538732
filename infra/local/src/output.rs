//! Writing to the terminal, the one place where it is done.

use std::io::{self, Write};

/// Prints a line on standard output. A reader that has gone away (`| head`) is no error.
pub fn line(text: &str) -> io::Result<()> {
    match writeln!(io::stdout().lock(), "{text}") {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => std::process::exit(0),
        result => result,
    }
}

/// Prints an error on standard error, as one line.
pub fn complain(text: &str) {
    // An error that cannot be printed either is lost; the exit code still says it.
    let _ = writeln!(io::stderr().lock(), "error: {}", text.replace('\n', " "));
}

/// Prints a remark on standard error.
pub fn remark(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}
