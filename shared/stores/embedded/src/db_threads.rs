//! The threads of the database: a writer and a reader, each with its own connection, and one that flushes to the disk.
//!
//! # Group commit
//!
//! SQLite has one writer at a time. The writing thread therefore takes all pending work, runs each piece in its own
//! savepoint inside one transaction, and commits once. A failing piece is rolled back alone; if the commit fails, all
//! pieces fail. The thread does not wait for the disk. [`crate::flusher`] flushes all commits since its last flush, and
//! only then are the callers answered, while the next transaction is already running.
//!
//! A write that need not survive a power failure is answered after its commit ([`Durability::Committed`]).
//!
//! Dropping the future of a write does not cancel the write: its outcome is then unknown, as after a broken connection.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

use messages::StoreError;
use messages::panics::contain;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::fault::Fault;
use crate::flusher::{CommitMarks, Flusher, PendingAck};
use crate::work::{BoxedWork, Durability, Work, WorkError};

/// The maximum number of pieces of work in one commit. This limit bounds the wait of the first caller.
const MAX_GROUP: usize = 256;

struct Task<T, F> {
    doing: String,
    wait: Durability,
    work: Option<F>,
    result: Option<Result<T, Fault>>,
    waiter: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Work for Task<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, Fault> + Send,
{
    fn wait(&self) -> Durability {
        self.wait
    }

    fn run(&mut self, db: &Connection) -> Result<(), WorkError> {
        // A panic in the application's work would end the thread, and with it every later call.
        self.result =
            self.work.take().map(|work| contain(|| work(db)).unwrap_or_else(|panicked| Err(panicked.into())));
        match &self.result {
            Some(Err(fault)) => Err(fault.into()),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    fn answer(self: Box<Self>, failed: Option<&WorkError>) {
        let Self { doing, result, waiter, .. } = *self;
        let answer = match (result, failed) {
            (Some(Err(fault)), _) => Err(fault.while_doing(doing)),
            (Some(Ok(value)), None) => Ok(value),
            (Some(Ok(_)) | None, Some(failed)) => Err(failed.while_doing(doing)),
            (None, None) => Err(StoreError::unavailable(doing, "it was never run")),
        };
        // The caller may have stopped waiting; the work is done nevertheless.
        if let Err(Err(error)) = waiter.send(answer) {
            tracing::warn!(error = error.chain(), "a call without a waiting caller failed");
        }
    }
}

/// The threads. Dropping this completes the submitted work and waits for the threads to end.
pub(crate) struct DbThreads {
    // Ends first: the last connection that closes writes the log into the database, and this one cannot write.
    reader: Worker,
    writer: Option<Worker>,
    /// The reason for which the disk refused the last refused write.
    refused: Mutex<Option<String>>,
    // Ends last, when no thread can send it work.
    _disk: Option<Flusher>,
}

impl DbThreads {
    /// Starts the threads. Without a writing connection, every write is refused. `flush` makes all commits durable.
    pub(crate) fn start<S>(writer: Option<Connection>, reader: Connection, flush: S) -> std::io::Result<Self>
    where
        S: FnMut() -> std::io::Result<()> + Send + 'static,
    {
        let Some(writer) = writer else {
            // Writes of another process are flushed by that process.
            let reader = Worker::start("embedded-reader", move |jobs| read(&reader, &jobs, None))?;
            return Ok(Self { reader, writer: None, refused: Mutex::default(), _disk: None });
        };
        let marks = Arc::new(CommitMarks::default());
        let (disk, waiting) = Flusher::start(Arc::clone(&marks), flush)?;
        let (marks_of_reader, disk_of_reader) = (Arc::clone(&marks), waiting.clone());
        let reader = Worker::start("embedded-reader", move |jobs| {
            let flushing = Flushing { marks: &marks_of_reader, disk: &disk_of_reader };
            read(&reader, &jobs, Some(&flushing));
        })?;
        let writer = Worker::start("embedded-writer", move |jobs| write(writer, &jobs, &marks, &waiting))?;
        Ok(Self { reader, writer: Some(writer), refused: Mutex::default(), _disk: Some(disk) })
    }

    /// Runs `work` in a transaction and returns once it is durable.
    pub(crate) async fn write<T, F>(&self, doing: String, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.write_and(Durability::Flushed, doing, work).await
    }

    /// Works like [`DbThreads::write`] or [`DbThreads::read`], but returns after `wait`.
    pub(crate) async fn write_and<T, F>(
        &self,
        wait: Durability,
        doing: String,
        work: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        match &self.writer {
            Some(writer) => writer.run(doing, wait, work).await.map_err(|error| self.refused_by_disk(error)),
            None => Err(StoreError::unusable(doing, "the store was opened for reading only")),
        }
    }

    /// Records the error of a write, also to another file of the folder, if the disk refused it.
    pub(crate) fn refused_by_disk(&self, error: StoreError) -> StoreError {
        if error.is_refused_by_disk() {
            *self.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.chain());
        }
        error
    }

    /// Returns the reason for which the disk refused the last refused write; `None` if it has refused none.
    pub(crate) fn refused(&self) -> Option<String> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Submits a write without waiting for it or returning its result.
    pub(crate) fn write_detached<F>(&self, doing: &str, work: F)
    where
        F: FnOnce(&Connection) -> Result<(), Fault> + Send + 'static,
    {
        if let Some(writer) = &self.writer {
            writer.submit(doing.to_owned(), Durability::Committed, work);
        }
    }

    /// Runs `work` on one consistent snapshot, which contains every write that was answered before, and returns when
    /// the snapshot is durable.
    pub(crate) async fn read<T, F>(&self, doing: String, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.read_and(Durability::Flushed, doing, work).await
    }

    /// Works like [`DbThreads::write`] or [`DbThreads::read`], but returns after `wait`.
    pub(crate) async fn read_and<T, F>(
        &self,
        wait: Durability,
        doing: String,
        work: F,
    ) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.reader.run(doing, wait, work).await
    }
}

/// A thread and the channel to it. The channel is unbounded: callers wait for their answers, so it holds at most one
/// piece of work per caller.
struct Worker {
    jobs: Option<mpsc::Sender<BoxedWork>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start<F>(name: &str, body: F) -> std::io::Result<Self>
    where
        F: FnOnce(mpsc::Receiver<BoxedWork>) + Send + 'static,
    {
        let (jobs, queue) = mpsc::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || body(queue))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    fn submit<T, F>(
        &self,
        doing: String,
        wait: Durability,
        work: F,
    ) -> oneshot::Receiver<Result<T, StoreError>>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (waiter, answer) = oneshot::channel();
        let task = Task { doing, wait, work: Some(work), result: None, waiter };
        if let Some(jobs) = &self.jobs {
            // If the thread has ended, the task is dropped and its caller sees a closed channel.
            let _ = jobs.send(Box::new(task));
        }
        answer
    }

    async fn run<T, F>(&self, doing: String, wait: Durability, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let answer = self.submit(doing.clone(), wait, work);
        answer.await.unwrap_or_else(|_| Err(StoreError::unavailable(doing, "the store's thread has ended")))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("a thread of the embedded store had panicked");
        }
    }
}

fn write(
    mut db: Connection,
    jobs: &mpsc::Receiver<BoxedWork>,
    marks: &CommitMarks,
    disk: &mpsc::Sender<PendingAck>,
) {
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(MAX_GROUP - 1));
        let for_disk = group.iter().any(|job| job.wait() == Durability::Flushed);
        let mark = if for_disk { marks.begin() } else { 0 };
        let failed = marks.refusal().map_or_else(|| commit_together(&mut db, &mut group).err(), Some);
        let mut waiting = Vec::new();
        for job in group {
            if failed.is_none() && job.wait() == Durability::Flushed {
                waiting.push(job);
            } else {
                job.answer(failed.as_ref());
            }
        }
        if for_disk {
            marks.end(mark);
            // The mark is sent even if no caller waits, because readers may wait for it.
            let _ = disk.send(PendingAck { mark, jobs: waiting });
        }
    }
}

/// Returns an error if the whole transaction fails; in this case, nothing of the group is stored.
fn commit_together(db: &mut Connection, group: &mut [BoxedWork]) -> Result<(), WorkError> {
    let mut transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for job in group {
        run_alone(&mut transaction, job)?;
    }
    Ok(transaction.commit()?)
}

/// Some failures, such as a full disk, make SQLite roll back everything. Ending the savepoint then fails as well, and
/// the group fails with the error of the work itself.
fn run_alone(transaction: &mut Transaction<'_>, job: &mut BoxedWork) -> Result<(), WorkError> {
    let savepoint = transaction.savepoint()?;
    match job.run(&savepoint) {
        Ok(()) => Ok(savepoint.commit()?),
        Err(cause) => savepoint.finish().map_err(|_| cause),
    }
}

/// The commits that are not flushed yet, and the queue of the flusher.
struct Flushing<'a> {
    marks: &'a CommitMarks,
    disk: &'a mpsc::Sender<PendingAck>,
}

/// Answers at once if nothing is being written, or if everything that was read is on the disk.
fn read(db: &Connection, jobs: &mpsc::Receiver<BoxedWork>, flushing: Option<&Flushing<'_>>) {
    while let Ok(mut job) = jobs.recv() {
        let failed = read_consistently(db, &mut job).err();
        if let Some(Flushing { marks, disk }) = flushing
            && failed.is_none()
            && job.wait() == Durability::Flushed
            && let Some(mark) = marks.unflushed()
        {
            // If the thread has ended, the task is dropped and its caller sees a closed channel.
            let _ = disk.send(PendingAck { mark, jobs: vec![job] });
        } else {
            job.answer(failed.as_ref());
        }
    }
}

/// The error of the work itself is returned to its caller.
fn read_consistently(db: &Connection, job: &mut BoxedWork) -> Result<(), WorkError> {
    let transaction = db.unchecked_transaction()?;
    let _ = job.run(&transaction);
    Ok(transaction.finish()?)
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use rusqlite::OpenFlags;

    use super::*;

    /// Returns threads whose writing connection has this setting.
    fn engine(folder: &std::path::Path, setting: &str) -> DbThreads {
        let path = folder.join("any.sqlite");
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE kept (bytes BLOB)").unwrap();
        writer.execute_batch(setting).unwrap();
        DbThreads::start(Some(writer), Connection::open(path).unwrap(), || Ok(())).unwrap()
    }

    async fn keep(engine: &DbThreads) -> Result<(), StoreError> {
        let work =
            |db: &Connection| Ok(db.execute("INSERT INTO kept VALUES (zeroblob(10000))", []).map(drop)?);
        engine.write("keeping it".to_owned(), work).await
    }

    async fn kept(engine: &DbThreads) -> u32 {
        let work = |db: &Connection| Ok(db.query_row("SELECT count(*) FROM kept", [], |row| row.get(0))?);
        engine.read("counting".to_owned(), work).await.unwrap()
    }

    #[tokio::test]
    async fn writes_succeed_after_disk_space_is_freed() {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine(folder.path(), "PRAGMA max_page_count = 10");
        let answers = join_all((0..10).map(|_| keep(&engine))).await;
        let stored = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(kept(&engine).await as usize, stored, "what was confirmed, and nothing else");
        assert!(stored < answers.len());
        for error in answers.into_iter().filter_map(Result::err) {
            assert!(error.is_retryable() && error.chain().contains("disk is full"), "{}", error.chain());
            assert!(error.is_refused_by_disk(), "{}", error.chain());
        }
        assert!(engine.refused().is_some_and(|why| why.contains("disk is full")));
        let room = |db: &Connection| Ok(db.execute_batch("PRAGMA max_page_count = 1000")?);
        engine.write("making room".to_owned(), room).await.unwrap();
        keep(&engine).await.unwrap();
        assert_eq!(kept(&engine).await as usize, stored + 1);
    }

    #[tokio::test]
    async fn writes_succeed_after_file_becomes_writable() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("any.sqlite");
        drop(engine(folder.path(), ""));
        let open = || Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let refusing = DbThreads::start(Some(open()), open(), || Ok(())).unwrap();
        let error = keep(&refusing).await.unwrap_err();
        assert!(error.is_retryable() && error.chain().contains("readonly database"), "{}", error.chain());
        let writing = DbThreads::start(Some(Connection::open(&path).unwrap()), open(), || Ok(())).unwrap();
        keep(&writing).await.unwrap();
        assert_eq!(kept(&writing).await, 1);
    }

    /// Returns threads whose disk answers when the test sends a value: `true` if everything is stored.
    fn on_a_disk(folder: &std::path::Path) -> (DbThreads, mpsc::Sender<bool>) {
        let path = folder.join("any.sqlite");
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE kept (bytes BLOB)").unwrap();
        let (disk, answers) = mpsc::channel();
        let flush = move || match answers.recv() {
            Ok(true) => Ok(()),
            Ok(false) | Err(_) => Err(std::io::Error::other("it is unplugged")),
        };
        (DbThreads::start(Some(writer), Connection::open(path).unwrap(), flush).unwrap(), disk)
    }

    /// Returns `true` if a call is answered by now. A later call that is answered proves that the thread has taken all
    /// earlier work.
    async fn is_answered<T>(engine: &DbThreads, call: &mut (impl Future<Output = T> + Unpin)) -> bool {
        let nothing = |_: &Connection| Ok(());
        let early = futures::poll!(&mut *call).is_ready();
        engine.write_and(Durability::Committed, "nothing".to_owned(), nothing).await.unwrap();
        engine.read_and(Durability::Committed, "nothing".to_owned(), nothing).await.unwrap();
        early || futures::poll!(&mut *call).is_ready()
    }

    #[tokio::test]
    async fn durable_write_waits_for_flush() {
        let folder = tempfile::tempdir().unwrap();
        let (engine, disk) = on_a_disk(folder.path());
        let mut durable = Box::pin(keep(&engine));
        assert!(!is_answered(&engine, &mut durable).await, "the disk does not have it yet");
        let passing = |db: &Connection| Ok(db.execute("INSERT INTO kept VALUES (x'00')", []).map(drop)?);
        engine.write_and(Durability::Committed, "in passing".to_owned(), passing).await.unwrap();
        disk.send(true).unwrap();
        durable.await.unwrap();
    }

    #[tokio::test]
    async fn durable_read_waits_for_flush() {
        let folder = tempfile::tempdir().unwrap();
        let (engine, disk) = on_a_disk(folder.path());
        let mut durable = Box::pin(keep(&engine));
        assert!(!is_answered(&engine, &mut durable).await);
        let count = |db: &Connection| Ok(db.query_row("SELECT count(*) FROM kept", [], |row| row.get(0))?);
        let seen: u32 = engine.read_and(Durability::Committed, "counting".to_owned(), count).await.unwrap();
        assert_eq!(seen, 1, "it is committed");
        let mut told = Box::pin(kept(&engine));
        assert!(!is_answered(&engine, &mut told).await, "no caller is answered before the flush");
        disk.send(true).unwrap();
        assert_eq!(told.await, 1);
        durable.await.unwrap();
        assert_eq!(kept(&engine).await, 1, "and again without waiting");
    }

    #[tokio::test]
    async fn failed_flush_stops_all_writes() {
        let folder = tempfile::tempdir().unwrap();
        let (engine, disk) = on_a_disk(folder.path());
        disk.send(false).unwrap();
        let error = keep(&engine).await.unwrap_err();
        assert!(error.is_retryable() && error.chain().contains("unplugged"), "{}", error.chain());
        for _ in 0..2 {
            // Later answers of the disk make no difference, because it is unknown which writes the disk stored.
            let _ = disk.send(true);
            let error = keep(&engine).await.unwrap_err();
            assert!(error.chain().contains("start again"), "{}", error.chain());
        }
    }
}
