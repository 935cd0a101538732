//! Threads for requests that compute for long: exports, and texts of records. Other requests do not wait for them.

use messages::StoreError;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// The maximum number of computations at the same time. They occupy threads on which the runtime also reads files, so
/// with as many as there are threads, each would wait for a file that no thread is left to read.
static COMPUTATIONS: Semaphore = Semaphore::const_new(16);

/// Computes on a thread of its own. The runtime still serves its reads and timers.
///
/// # Errors
/// Returns an error if the work panics.
pub(super) async fn on_own_thread<T: Send + 'static>(
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T, StoreError> {
    let doing = "computing the response";
    let permit = COMPUTATIONS.acquire().await.map_err(|error| StoreError::unavailable(doing, error))?;
    let runtime = Handle::current();
    // The permit belongs to the computation, which continues if its client disconnects.
    let computation = move || (runtime.block_on(work), permit).0;
    spawn_blocking(computation).await.map_err(|error| StoreError::unavailable(doing, error))
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use tokio::sync::watch;

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
    async fn computations_leave_threads_to_reads() {
        let (release, released) = watch::channel(false);
        let hold = |mut released: watch::Receiver<bool>| {
            tokio::spawn(on_own_thread(async move { drop(released.wait_for(|released| *released).await) }))
        };
        let many: Vec<_> = (0..600).map(|_| hold(released.clone())).collect();
        while COMPUTATIONS.available_permits() > 0 {
            tokio::task::yield_now().await;
        }
        // The runtime has 512 threads for blocking work. None would be left for this.
        assert_eq!(spawn_blocking(|| 1).await.unwrap(), 1);
        release.send(true).unwrap();
        for one in many {
            one.await.unwrap().unwrap();
        }
    }

    #[tokio::test]
    async fn panicking_work_fails_alone() {
        assert!(on_own_thread(async { panic!("on purpose") }).await.is_err());
        assert_eq!(on_own_thread(async { 1 }).await.unwrap(), 1);
    }
}
