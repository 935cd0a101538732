//! `search-import serve` as a separate process, which is measured from outside.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

/// The text before the address in the line that reports readiness.
const ANSWERING: &str = "answering at http://";

/// A running server.
pub(super) struct ServeProcess {
    child: Child,
    /// Its address with the port.
    pub(super) address: String,
}

/// Returns the program: the given one, or the one in the folder of this program.
pub(super) fn program(given: Option<&Path>) -> anyhow::Result<PathBuf> {
    let program = match given {
        Some(program) => program.to_owned(),
        None => std::env::current_exe()?.with_file_name("search-import"),
    };
    anyhow::ensure!(program.is_file(), "{} is not built", program.display());
    Ok(program)
}

impl ServeProcess {
    /// Starts it with a data directory on a free port, optionally with a limit of file descriptors.
    pub(super) async fn start(program: &Path, data: &Path, descriptors: Option<u32>) -> anyhow::Result<Self> {
        let limit = descriptors.map_or_else(|| "unlimited".to_owned(), |descriptors| descriptors.to_string());
        let limited = "test \"$1\" = unlimited || ulimit -n \"$1\"; shift; exec \"$@\"";
        let mut child = Command::new("sh")
            .args(["-c", limited, "sh", &limit])
            .arg(program)
            .args(["serve", "--listen", "127.0.0.1:0", "--data-dir"])
            .arg(data)
            // All searches of a benchmark belong to one project.
            .env("SEARCH_IMPORT_MAX_OPEN_SEARCHES", "1000000")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let said = child.stderr.take().context("its standard error is not piped")?;
        let mut lines = BufReader::new(said).lines();
        let address = loop {
            let line = lines.next_line().await?.context("the server ended before it answered")?;
            if let Some((_, address)) = line.split_once(ANSWERING) {
                break address.to_owned();
            }
        };
        // Read further output so that it does not fill the pipe.
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Ok(Self { child, address })
    }

    /// Returns its peak memory, in MiB; `None` if the system does not report it.
    pub(super) fn peak_mib(&self) -> Option<f64> {
        super::memory::peak_mib_of(self.child.id()?)
    }

    /// Kills the server, like a crash.
    pub(super) async fn kill(mut self) -> anyhow::Result<()> {
        Ok(self.child.kill().await?)
    }

    /// Stops the server. Returns the duration.
    pub(super) async fn stop(mut self) -> anyhow::Result<Duration> {
        let id =
            self.child.id().and_then(|id| Pid::from_raw(id.cast_signed())).context("the server has ended")?;
        let begun = Instant::now();
        kill_process(id, Signal::TERM)?;
        let status = self.child.wait().await?;
        anyhow::ensure!(status.success(), "the server ended with {status}");
        Ok(begun.elapsed())
    }
}
