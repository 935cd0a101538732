//! Threads for requests that compute for long: exports, and texts of records. Other requests do not wait for them.

use messages::StoreError;
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

/// Computes on a thread of its own. The runtime still serves its reads and timers.
///
/// # Errors
/// Returns an error if the work panics.
pub(super) async fn on_own_thread<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, StoreError> {
    let runtime = Handle::current();
    let done = spawn_blocking(move || runtime.block_on(work)).await;
    done.map_err(|error| StoreError::unavailable("computing the response", error))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn runtime_continues_during_long_work() {
        let (release, released) = mpsc::channel();
        // The only thread of the runtime would never get to the release.
        let work = tokio::spawn(on_own_thread(async move { released.recv() }));
        tokio::task::yield_now().await;
        release.send(7).unwrap();
        assert_eq!(work.await.unwrap().unwrap(), Ok(7));
    }

    #[tokio::test]
    async fn panicking_work_fails_alone() {
        assert!(on_own_thread(async { panic!("on purpose") }).await.is_err());
        assert_eq!(on_own_thread(async { 1 }).await.unwrap(), 1);
    }
}
