//! Running the functions until somebody stops them.

use crate::args;
use crate::output;
use crate::workspace::{self, Workspace};

/// Receives messages until the process is told to stop, and finishes what has begun. What it does not get to is
/// delivered again, here or elsewhere.
pub(crate) async fn run(args: &args::Serve) -> anyhow::Result<bool> {
    let workspace = Workspace::open(workspace::settings(&args.place)?).await?;
    let runner = workspace.runner(&args.trial)?;
    output::remark(&format!("working in {}; Ctrl-C stops", workspace.name()));
    runner.run_until(stop()).await?;
    output::remark("stopped");
    Ok(true)
}

/// Resolves when the process is asked to stop: from the terminal, or by whoever runs it as a service.
async fn stop() {
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
