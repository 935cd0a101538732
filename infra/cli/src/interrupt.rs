//! Ctrl-C during an import, and the command that resumes it.

use local::stop;

use crate::args::{BackendArg, Location};

/// The exit code that shells use for a program ended by Ctrl-C.
pub(crate) const CODE: i32 = 130;

/// The error of a command that Ctrl-C interrupted, with the next step.
#[derive(Debug, thiserror::Error)]
#[error("interrupted; {0}")]
pub(crate) struct Interruption(String);

/// Runs `work` to its end, or until Ctrl-C is pressed, which drops `work`. A second Ctrl-C ends the program
/// immediately. `then` returns the next step for the user.
pub(crate) async fn unless_interrupted<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    then: impl FnOnce() -> String,
) -> anyhow::Result<T> {
    tokio::select! {
        // Polled first, so that no work starts after Ctrl-C.
        biased;
        _ = tokio::signal::ctrl_c() => {
            stop::exit_on_second_signal();
            Err(Interruption(then()).into())
        }
        done = work => done,
    }
}

/// Returns the command that resumes an import, as it can be typed in the same shell.
pub(crate) fn resume_command(location: &Location) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "search-import".to_owned());
    let mut words = vec![program, "resume".to_owned()];
    if let Some(backend) = location.backend {
        let name = match backend {
            BackendArg::Embedded => "embedded",
            BackendArg::Aws => "aws",
        };
        words.extend(["--backend", name].map(str::to_owned));
    }
    if let Some(dir) = &location.data_dir {
        words.extend(["--data-dir".to_owned(), dir.to_string_lossy().into_owned()]);
    }
    quoted(&words)
}

/// Quotes words for a shell. This fails only for NUL characters, which arguments cannot contain.
fn quoted(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resume_command_repeats_location_options_quoted() {
        let location =
            Location { backend: Some(BackendArg::Embedded), data_dir: Some("my reviews/$1".into()) };
        let command = resume_command(&location);
        let end = " resume --backend embedded --data-dir 'my reviews/$1'";
        assert!(command.ends_with(end), "{command}");
        assert!(resume_command(&Location { backend: None, data_dir: None }).ends_with(" resume"));
    }
}
