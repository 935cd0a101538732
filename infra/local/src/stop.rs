//! Stop signals and shutdown.

use std::process::exit;
use std::time::Duration;

use crate::output;

/// The time limit for work in progress. The next start repeats unfinished work, as after a crash.
pub const STOP_WITHIN: Duration = Duration::from_secs(8);
/// The exit code of a program that a second Ctrl-C ended.
const INTERRUPTED: i32 = 130;

/// Starts the shutdown: ends the process after [`STOP_WITHIN`], or when it is asked to stop again. A separate thread
/// does so, so that a hanging task cannot keep the process alive.
pub fn stop_in_time() {
    std::thread::spawn(|| {
        std::thread::sleep(STOP_WITHIN);
        output::remark("stopped before all work in progress was finished; the next start continues it");
        exit(0);
    });
    exit_on_second_signal();
}

/// Ends the process immediately when it is asked to stop again.
pub fn exit_on_second_signal() {
    tokio::spawn(async {
        asked_to_stop().await;
        exit(INTERRUPTED);
    });
}

/// Waits until the process is asked to stop, by Ctrl-C or by SIGTERM.
pub async fn asked_to_stop() {
    #[cfg(unix)]
    {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut terminate) => tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            },
            // Without a handler for SIGTERM, only Ctrl-C stops the process gracefully.
            Err(_) => drop(tokio::signal::ctrl_c().await),
        }
    }
    #[cfg(not(unix))]
    drop(tokio::signal::ctrl_c().await);
}
