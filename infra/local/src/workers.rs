//! The workers of a runner: tasks for short messages, and threads for messages that may take long.
//!
//! A future that computes for seconds without yielding blocks the thread that polls it. On a thread of the runtime, it
//! would delay requests, event streams, timers and signals. Such a worker therefore has its own thread.

use std::thread;

use futures::future::{AbortHandle, abortable};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::task::JoinSet;

/// Workers, which are aborted when this value is dropped.
#[derive(Default)]
pub(crate) struct Workers {
    tasks: JoinSet<()>,
    threads: Vec<Thread>,
}

/// A thread that polls one future.
struct Thread {
    abort: AbortHandle,
    /// Closed once the thread has dropped its future.
    ended: oneshot::Receiver<()>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.abort.abort();
    }
}

impl Workers {
    /// Starts a worker on the runtime.
    pub(crate) fn spawn(&mut self, work: impl Future<Output = ()> + Send + 'static) {
        self.tasks.spawn(work);
    }

    /// Starts a worker on its own thread. The current runtime still drives its timers and sockets.
    pub(crate) fn spawn_thread(&mut self, name: &str, work: impl Future<Output = ()> + Send + 'static) {
        let (work, abort) = abortable(work);
        let (alive, ended) = oneshot::channel::<()>();
        let runtime = Handle::current();
        let body = move || {
            // The only error is that the worker was aborted.
            let _ = runtime.block_on(work);
            drop(alive);
        };
        match thread::Builder::new().name(name.to_owned()).spawn(body) {
            Ok(_) => self.threads.push(Thread { abort, ended }),
            // The other workers of the queue process its messages.
            Err(error) => tracing::error!(name, %error, "starting a worker thread failed"),
        }
    }

    /// Waits until all workers have ended.
    pub(crate) async fn ended(mut self) {
        while self.tasks.join_next().await.is_some() {}
        self.join_threads().await;
    }

    /// Aborts all workers at their next await point, and waits until they have ended.
    pub(crate) async fn abort(mut self) {
        self.threads.iter().for_each(|thread| thread.abort.abort());
        self.tasks.shutdown().await;
        self.join_threads().await;
    }

    async fn join_threads(&mut self) {
        for thread in &mut self.threads {
            // The sender is dropped without a value.
            let _ = (&mut thread.ended).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[tokio::test]
    async fn computing_worker_leaves_the_runtime_free() {
        let (release, blocked) = mpsc::channel::<()>();
        let (begun, begins) = oneshot::channel();
        let mut workers = Workers::default();
        workers.spawn_thread("computing", async move {
            begun.send(()).unwrap();
            blocked.recv().unwrap();
        });
        // The only thread of this runtime gets here while the worker blocks its own.
        begins.await.unwrap();
        tokio::task::yield_now().await;
        release.send(()).unwrap();
        workers.ended().await;
    }

    #[tokio::test]
    async fn aborted_workers_hold_nothing_afterwards() {
        let (alive, dead) = mpsc::channel::<()>();
        let mut workers = Workers::default();
        for on_thread in [false, true] {
            let alive = alive.clone();
            let work = async move {
                std::future::pending::<()>().await;
                drop(alive);
            };
            if on_thread {
                workers.spawn_thread("waiting", work);
            } else {
                workers.spawn(work);
            }
        }
        drop(alive);
        workers.abort().await;
        assert_eq!(dead.try_recv(), Err(mpsc::TryRecvError::Disconnected));
    }
}
