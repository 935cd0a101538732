//! Being asked to stop, and stopping.

use std::process::exit;
use std::time::Duration;

use crate::output;

/// How long what has begun may take to end. Whatever does not is repeated by the next start, as after a crash.
pub const STOP_WITHIN: Duration = Duration::from_secs(8);
/// The exit code of a program that a second Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// To be called when stopping begins: ends the process when that takes longer than [`STOP_WITHIN`], or when it is asked
/// once more. A thread of its own sees to it, so nothing that hangs can keep the process alive.
pub fn stop_in_time() {
    std::thread::spawn(|| {
        std::thread::sleep(STOP_WITHIN);
        output::remark("stopped before everything that had begun was finished; the next start does the rest");
        exit(0);
    });
    at_once_when_asked_again();
}

/// Ends the process as soon as it is asked to stop once more.
pub fn at_once_when_asked_again() {
    tokio::spawn(async {
        asked_to_stop().await;
        exit(INTERRUPTED);
    });
}

/// Resolves when the process is asked to stop: from the terminal, or by whoever runs it as a service.
pub async fn asked_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            },
            // Then only Ctrl-C stops it gracefully.
            Err(_) => drop(tokio::signal::ctrl_c().await),
        }
    }
    #[cfg(not(unix))]
    drop(tokio::signal::ctrl_c().await);
}
