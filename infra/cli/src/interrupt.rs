//! Ctrl-C in the middle of an import, and what to type afterwards.

use local::stop;

use crate::args::{BackendArg, Place};

/// The exit code, as shells have it for a program that Ctrl-C ended.
pub(crate) const CODE: i32 = 130;

/// Somebody pressed Ctrl-C.
#[derive(Debug, thiserror::Error)]
#[error("interrupted; {0}")]
pub(crate) struct Interrupted(String);

/// Does something until it is done or Ctrl-C is pressed, which breaks it off; a second time ends the program wherever it
/// is. `then` is said to whoever pressed it.
pub(crate) async fn unless_interrupted<T>(
    work: impl Future<Output = anyhow::Result<T>>,
    then: impl FnOnce() -> String,
) -> anyhow::Result<T> {
    tokio::select! {
        // First, so that it is heard before anything is begun.
        biased;
        _ = tokio::signal::ctrl_c() => {
            stop::at_once_when_asked_again();
            Err(Interrupted(then()).into())
        }
        done = work => done,
    }
}

/// The command that goes on, as it can be typed where this one was.
pub(crate) fn resume_command(place: &Place) -> String {
    let program = std::env::args().next().unwrap_or_else(|| "search-import".to_owned());
    let mut words = vec![program, "resume".to_owned()];
    if let Some(backend) = place.backend {
        let name = match backend {
            BackendArg::Embedded => "embedded",
            BackendArg::Aws => "aws",
        };
        words.extend(["--backend", name].map(str::to_owned));
    }
    if let Some(dir) = &place.data_dir {
        words.extend(["--data-dir".to_owned(), dir.to_string_lossy().into_owned()]);
    }
    quoted(&words)
}

/// Words as a shell takes them. None of them can have the one character that it takes in no form.
fn quoted(words: &[String]) -> String {
    shlex::try_join(words.iter().map(String::as_str)).unwrap_or_else(|_| words.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_names_what_was_given_in_words_of_a_shell() {
        let place = Place { backend: Some(BackendArg::Embedded), data_dir: Some("my reviews/$1".into()) };
        let command = resume_command(&place);
        let end = " resume --backend embedded --data-dir 'my reviews/$1'";
        assert!(command.ends_with(end), "{command}");
        assert!(resume_command(&Place { backend: None, data_dir: None }).ends_with(" resume"));
    }
}
