//! The thread that flushes commits to the disk, while the others write and read.
//!
//! Commits are appended to SQLite's write-ahead log. After a power failure SQLite recovers the complete commits up to
//! the first incomplete one. A flush of the log therefore makes all earlier commits durable, and a power failure only
//! loses the newest ones: no commit survives without those before it. SQLite itself flushes the log before a checkpoint
//! and the database after it (`synchronous = NORMAL`), so commits that have left the log are durable, too.
//!
//! Each commit that a caller requires on the disk has a mark, an increasing number. A flush covers all marks whose
//! commit had ended when the flush began.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use crate::work::{BoxedWork, WorkError};

/// The progress of the writing thread and of the disk.
#[derive(Default)]
pub(crate) struct CommitMarks {
    begun: AtomicU64,
    ended: AtomicU64,
    flushed: AtomicU64,
    failed: AtomicBool,
}

impl CommitMarks {
    /// Returns the mark of a commit that is about to begin, before any reader can see it.
    pub(crate) fn begin(&self) -> u64 {
        self.begun.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Records that the commit has ended, successfully or not.
    pub(crate) fn end(&self, mark: u64) {
        self.ended.store(mark, Ordering::SeqCst);
    }

    /// Returns the mark of the last commit that a reader may have seen, unless it is flushed.
    pub(crate) fn unflushed(&self) -> Option<u64> {
        let seen = self.begun.load(Ordering::SeqCst);
        (seen > self.flushed.load(Ordering::SeqCst)).then_some(seen)
    }

    /// Returns why writes are refused. After a failed flush it is unknown which commits are on the disk, and a later
    /// flush may succeed without them.
    pub(crate) fn refusal(&self) -> Option<WorkError> {
        let why = "the disk has failed before; start again when it is well";
        self.failed.load(Ordering::SeqCst).then(|| WorkError::because(why.to_owned()))
    }
}

/// The callers to answer once a mark is flushed.
pub(crate) struct PendingAck {
    pub(crate) mark: u64,
    pub(crate) jobs: Vec<BoxedWork>,
}

/// The thread. It ends when no other thread can send it work.
pub(crate) struct Flusher {
    thread: Option<JoinHandle<()>>,
}

impl Flusher {
    pub(crate) fn start<S>(marks: Arc<CommitMarks>, flush: S) -> io::Result<(Self, mpsc::Sender<PendingAck>)>
    where
        S: FnMut() -> io::Result<()> + Send + 'static,
    {
        let (sender, waiting) = mpsc::channel();
        let work = move || flush_loop(&marks, &waiting, flush);
        let thread = thread::Builder::new().name("embedded-disk".to_owned()).spawn(work)?;
        Ok((Self { thread: Some(thread) }, sender))
    }
}

impl Drop for Flusher {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of the embedded store that waits for the disk had panicked");
        }
    }
}

fn flush_loop(
    marks: &CommitMarks,
    waiting: &mpsc::Receiver<PendingAck>,
    mut flush: impl FnMut() -> io::Result<()>,
) {
    let mut pending: Vec<PendingAck> = Vec::new();
    while let Ok(first) = waiting.recv() {
        pending.push(first);
        pending.extend(waiting.try_iter());
        let flushed = marks.flushed.load(Ordering::SeqCst);
        let ended = marks.ended.load(Ordering::SeqCst);
        // Readers may wait for a commit that has not ended: a flush would not cover it.
        let is_new = ended > flushed && pending.iter().any(|each| each.mark > flushed);
        if is_new && !marks.failed.load(Ordering::SeqCst) {
            match flush() {
                Ok(()) => marks.flushed.store(ended, Ordering::SeqCst),
                Err(error) => {
                    tracing::error!(%error, "the disk failed; nothing is written until a new start");
                    marks.failed.store(true, Ordering::SeqCst);
                    answer(
                        &mut pending,
                        u64::MAX,
                        Some(&WorkError::because(format!("the disk failed: {error}"))),
                    );
                }
            }
        }
        match marks.refusal() {
            // A reader whose commit has not ended is answered later: the end of the commit sends another message.
            None => answer(&mut pending, marks.flushed.load(Ordering::SeqCst), None),
            Some(refused) => answer(&mut pending, u64::MAX, Some(&refused)),
        }
    }
}

/// Answers all callers that wait for this mark or an earlier one.
fn answer(pending: &mut Vec<PendingAck>, upto: u64, failed: Option<&WorkError>) {
    for waiting in pending.extract_if(.., |waiting| waiting.mark <= upto) {
        for job in waiting.jobs {
            job.answer(failed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the number of flushes while a caller waits for this mark.
    fn flushes(marks: &CommitMarks, mark: u64) -> u32 {
        let (sender, waiting) = mpsc::channel();
        sender.send(PendingAck { mark, jobs: Vec::new() }).unwrap();
        drop(sender);
        let mut flushes = 0;
        let flush = || {
            flushes += 1;
            Ok(())
        };
        flush_loop(marks, &waiting, flush);
        flushes
    }

    #[test]
    fn each_commit_is_flushed_once() {
        let marks = CommitMarks::default();
        let mark = marks.begin();
        assert_eq!((flushes(&marks, mark), marks.unflushed()), (0, Some(mark)));
        marks.end(mark);
        assert_eq!((flushes(&marks, mark), marks.unflushed()), (1, None));
        assert_eq!(flushes(&marks, mark), 0);
    }
}
