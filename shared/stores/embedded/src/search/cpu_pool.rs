//! Threads for CPU-bound work: compressing and decompressing uploaded files, and sorting keys.
//!
//! There is one thread per core, and the threads stay. Each keeps the memory of its compressor, so the many threads of
//! a runtime's blocking pool would use many times as much.

use std::io::{Error, Result};
use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::oneshot;

/// The number of cores.
static CORES: LazyLock<NonZeroUsize> =
    LazyLock::new(|| thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));

/// The threads for packing and unpacking; `None` if the system cannot create them.
static THREADS: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let threads = ThreadPoolBuilder::new().num_threads(CORES.get());
    let threads = threads.thread_name(|number| format!("embedded-packer-{number}"));
    // The caller gets an error, and the panic itself was printed.
    threads.panic_handler(|_| tracing::error!("a thread that packs had panicked")).build().ok()
});

/// Starts work immediately, even if no caller waits for it yet.
///
/// # Errors
/// Returns an error if the work panics.
pub(crate) fn begin<T, F>(work: F) -> impl Future<Output = Result<T>> + Send + 'static
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let (answer, waiter) = oneshot::channel();
    // The caller may have stopped waiting.
    let work = move || drop(answer.send(work()));
    match &*THREADS {
        Some(threads) => threads.spawn(work),
        None => work(),
    }
    async { waiter.await.map_err(|_| Error::other("its work on another thread panicked")) }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_starts_before_it_is_awaited() {
        let (begun, begins) = mpsc::channel();
        let work = begin(move || begun.send(()));
        begins.recv().unwrap();
        drop(work);
    }

    #[tokio::test]
    async fn panicking_work_fails_alone() {
        for _ in 0..2 * CORES.get() {
            assert!(begin(|| panic!("on purpose")).await.is_err());
        }
        assert_eq!(begin(|| 1).await.unwrap(), 1);
    }
}
