//! Asking for confirmation before data is deleted permanently.
//!
//! Only users at a terminal are asked. Scripts have no terminal on standard input, so they need no option.

use std::io::{self, BufRead, IsTerminal, Write};

use messages::escape::escape_for_terminal;

use crate::args::Consent;

/// Asks for confirmation, unless `--yes` was given.
///
/// # Errors
/// Returns an error if the answer is no or cannot be read.
pub(crate) fn ask(consent: Consent, question: &str) -> anyhow::Result<()> {
    if consent.yes || !io::stdin().is_terminal() {
        return Ok(());
    }
    write!(io::stderr().lock(), "{} [y/N] ", escape_for_terminal(question))?;
    let mut answer = String::new();
    io::stdin().lock().read_line(&mut answer)?;
    if is_yes(&answer) {
        return Ok(());
    }
    anyhow::bail!("nothing was deleted; answer y to delete, or give --yes")
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_yes_is_consent() {
        assert!(["y\n", "Y", " yes \n"].into_iter().all(is_yes));
        assert!(!["", "\n", "n\n", "no", "yess"].into_iter().any(is_yes));
    }
}
