//! Threads for what takes a processor rather than the disk: packing and unpacking uploaded files.
//!
//! There is one for each core, and they stay. Each that has packed once keeps the memory that it took for that, so that many
//! of them, as a runtime has for whatever may block, would keep many times as much.

use std::io::{Error, Result};
use std::num::NonZeroUsize;
use std::sync::LazyLock;
use std::thread;

use rayon::{ThreadPool, ThreadPoolBuilder};
use tokio::sync::oneshot;

/// How many cores there are.
static CORES: LazyLock<NonZeroUsize> =
    LazyLock::new(|| thread::available_parallelism().unwrap_or(NonZeroUsize::MIN));

/// None where the system refuses them.
static THREADS: LazyLock<Option<ThreadPool>> = LazyLock::new(|| {
    let threads = ThreadPoolBuilder::new().num_threads(CORES.get());
    let threads = threads.thread_name(|number| format!("embedded-packer-{number}"));
    // Whoever waits hears of it, and the panic itself was printed.
    threads.panic_handler(|_| tracing::error!("a thread that packs had panicked")).build().ok()
});

/// Begins work at once, whether or not anybody waits for it yet.
///
/// # Errors
/// When the work panics.
pub(crate) fn begin<T, F>(work: F) -> impl Future<Output = Result<T>> + Send + 'static
where
    T: Send + 'static,
    F: FnOnce() -> T + Send + 'static,
{
    let (answer, waiter) = oneshot::channel();
    // Nobody may be waiting any more.
    let work = move || drop(answer.send(work()));
    match &*THREADS {
        Some(threads) => threads.spawn(work),
        None => work(),
    }
    async { waiter.await.map_err(|_| Error::other("what was done for it beside has panicked")) }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn work_begins_before_anybody_waits_for_it() {
        let (begun, begins) = mpsc::channel();
        let work = begin(move || begun.send(()));
        begins.recv().unwrap();
        drop(work);
    }

    #[tokio::test]
    async fn work_that_panics_is_an_error_and_the_next_goes_on() {
        for _ in 0..2 * CORES.get() {
            assert!(begin(|| panic!("on purpose")).await.is_err());
        }
        assert_eq!(begin(|| 1).await.unwrap(), 1);
    }
}
