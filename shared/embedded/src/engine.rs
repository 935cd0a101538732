//! One thread that writes and one that reads, each with a connection of its own.
//!
//! # Group commit
//! A durable commit waits for the disk, and SQLite has one writer at a time. So the writing thread takes
//! everything that waits, runs each piece of work in a savepoint of its own inside one transaction, commits
//! once, and only then answers all of them. A piece that fails is rolled back alone; a commit that fails has
//! failed for all. The more callers there are, the more of them share one wait.
//!
//! Dropping the future of a write does not take the write back: nobody then knows its outcome, just as when a
//! network is cut.

use std::sync::mpsc;
use std::thread::{self, JoinHandle};

use messages::StoreError;
use rusqlite::{Connection, Transaction, TransactionBehavior};
use tokio::sync::oneshot;

use crate::fault::Fault;

/// The most pieces of work that share one commit. It bounds how long the first of them waits.
const MAX_GROUP: usize = 256;

/// A piece of work with its type erased.
trait Work: Send {
    /// Does it; an error says why what it did is to be undone.
    fn run(&mut self, db: &Connection) -> Result<(), Failed>;
    /// Answers whoever waits, now that the fate of the transaction is known.
    fn answer(self: Box<Self>, failed: Option<&Failed>);
}

type Queued = Box<dyn Work>;

/// Why a piece of work, or the transaction that it shared, came to nothing.
struct Failed(String);

impl From<rusqlite::Error> for Failed {
    fn from(error: rusqlite::Error) -> Self {
        Self(error.to_string())
    }
}

struct Task<T, F> {
    doing: String,
    work: Option<F>,
    result: Option<Result<T, Fault>>,
    waiter: oneshot::Sender<Result<T, StoreError>>,
}

impl<T, F> Work for Task<T, F>
where
    T: Send,
    F: FnOnce(&Connection) -> Result<T, Fault> + Send,
{
    fn run(&mut self, db: &Connection) -> Result<(), Failed> {
        self.result = self.work.take().map(|work| work(db));
        match &self.result {
            Some(Err(fault)) => Err(Failed(fault.to_string())),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    fn answer(self: Box<Self>, failed: Option<&Failed>) {
        let Self { doing, result, waiter, .. } = *self;
        let answer = match (result, failed) {
            (Some(Err(fault)), _) => Err(fault.while_doing(doing)),
            (Some(Ok(value)), None) => Ok(value),
            (Some(Ok(_)) | None, Some(Failed(cause))) => Err(StoreError::unavailable(doing, cause.clone())),
            (None, None) => Err(StoreError::unavailable(doing, "it was never run")),
        };
        // Whoever asked may have stopped waiting; the work is done all the same.
        if let Err(Err(error)) = waiter.send(answer) {
            tracing::warn!(error = error.chain(), "a call that nobody waits for has failed");
        }
    }
}

/// The two threads. They end, and are waited for, when the engine is dropped; what was handed over before is
/// done first.
pub(crate) struct Engine {
    // Ends first: the last connection that closes puts the log into the database, and this one may not write.
    reader: Worker,
    writer: Option<Worker>,
}

impl Engine {
    /// Starts the threads; without a connection to write with, every write is refused.
    pub(crate) fn start(writer: Option<Connection>, reader: Connection) -> std::io::Result<Self> {
        let writer =
            writer.map(|db| Worker::start("embedded-writer", move |jobs| write(db, &jobs))).transpose()?;
        let reader = Worker::start("embedded-reader", move |jobs| read(&reader, &jobs))?;
        Ok(Self { reader, writer })
    }

    /// Runs `work` in a transaction and returns once it is durable.
    pub(crate) async fn write<T, F>(&self, doing: String, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        match &self.writer {
            Some(writer) => writer.run(doing, work).await,
            None => Err(StoreError::unusable(doing, "the store was opened for reading only")),
        }
    }

    /// As [`Engine::write`], without waiting for it or hearing what became of it.
    pub(crate) fn write_unheard<F>(&self, doing: &str, work: F)
    where
        F: FnOnce(&Connection) -> Result<(), Fault> + Send + 'static,
    {
        if let Some(writer) = &self.writer {
            writer.submit(doing.to_owned(), work);
        }
    }

    /// Runs `work` on one consistent state, which has everything whose write was answered before.
    pub(crate) async fn read<T, F>(&self, doing: String, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        self.reader.run(doing, work).await
    }
}

/// A thread and the way to hand it work. The queue has no limit of its own: callers wait for their answers, so
/// it holds at most one piece for each of them.
struct Worker {
    jobs: Option<mpsc::Sender<Queued>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    fn start<F>(name: &str, body: F) -> std::io::Result<Self>
    where
        F: FnOnce(mpsc::Receiver<Queued>) + Send + 'static,
    {
        let (jobs, queue) = mpsc::channel();
        let thread = thread::Builder::new().name(name.to_owned()).spawn(move || body(queue))?;
        Ok(Self { jobs: Some(jobs), thread: Some(thread) })
    }

    fn submit<T, F>(&self, doing: String, work: F) -> oneshot::Receiver<Result<T, StoreError>>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let (waiter, answer) = oneshot::channel();
        let task = Task { doing, work: Some(work), result: None, waiter };
        if let Some(jobs) = &self.jobs {
            // When the thread is gone the task is dropped, and the waiter hears of it by its closed channel.
            let _ = jobs.send(Box::new(task));
        }
        answer
    }

    async fn run<T, F>(&self, doing: String, work: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T, Fault> + Send + 'static,
    {
        let answer = self.submit(doing.clone(), work);
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

fn write(mut db: Connection, jobs: &mpsc::Receiver<Queued>) {
    while let Ok(first) = jobs.recv() {
        let mut group = vec![first];
        group.extend(jobs.try_iter().take(MAX_GROUP - 1));
        let failed = commit_together(&mut db, &mut group).err();
        for job in group {
            job.answer(failed.as_ref());
        }
    }
}

/// An error is one of the transaction as a whole: then nothing of the group is stored.
fn commit_together(db: &mut Connection, group: &mut [Queued]) -> Result<(), Failed> {
    let mut transaction = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
    for job in group {
        run_alone(&mut transaction, job)?;
    }
    Ok(transaction.commit()?)
}

/// Some failures, such as a full disk, make SQLite roll back everything; ending the savepoint then fails too,
/// which is how the rest of the group learns of it. What went wrong is what the work itself met.
fn run_alone(transaction: &mut Transaction<'_>, job: &mut Queued) -> Result<(), Failed> {
    let savepoint = transaction.savepoint()?;
    match job.run(&savepoint) {
        Ok(()) => Ok(savepoint.commit()?),
        Err(cause) => savepoint.finish().map_err(|_| cause),
    }
}

fn read(db: &Connection, jobs: &mpsc::Receiver<Queued>) {
    while let Ok(mut job) = jobs.recv() {
        let failed = read_consistently(db, &mut job).err();
        job.answer(failed.as_ref());
    }
}

/// What the work itself met is answered to whoever asked for it.
fn read_consistently(db: &Connection, job: &mut Queued) -> Result<(), Failed> {
    let transaction = db.unchecked_transaction()?;
    let _ = job.run(&transaction);
    Ok(transaction.finish()?)
}

#[cfg(test)]
mod tests {
    use futures::future::join_all;
    use rusqlite::OpenFlags;

    use super::*;

    /// An engine whose writing connection has this setting.
    fn engine(folder: &std::path::Path, setting: &str) -> Engine {
        let path = folder.join("any.sqlite");
        let writer = Connection::open(&path).unwrap();
        writer.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE kept (bytes BLOB)").unwrap();
        writer.execute_batch(setting).unwrap();
        Engine::start(Some(writer), Connection::open(path).unwrap()).unwrap()
    }

    async fn keep(engine: &Engine) -> Result<(), StoreError> {
        let work =
            |db: &Connection| Ok(db.execute("INSERT INTO kept VALUES (zeroblob(10000))", []).map(drop)?);
        engine.write("keeping it".to_owned(), work).await
    }

    async fn kept(engine: &Engine) -> u32 {
        let work = |db: &Connection| Ok(db.query_row("SELECT count(*) FROM kept", [], |row| row.get(0))?);
        engine.read("counting".to_owned(), work).await.unwrap()
    }

    #[tokio::test]
    async fn what_a_full_disk_refused_is_stored_when_there_is_space_again() {
        let folder = tempfile::tempdir().unwrap();
        let engine = engine(folder.path(), "PRAGMA max_page_count = 10");
        let answers = join_all((0..10).map(|_| keep(&engine))).await;
        let stored = answers.iter().filter(|answer| answer.is_ok()).count();
        assert_eq!(kept(&engine).await as usize, stored, "what was confirmed, and nothing else");
        assert!(stored < answers.len());
        for error in answers.into_iter().filter_map(Result::err) {
            assert!(error.is_retryable() && error.chain().contains("disk is full"), "{}", error.chain());
        }
        let room = |db: &Connection| Ok(db.execute_batch("PRAGMA max_page_count = 1000")?);
        engine.write("making room".to_owned(), room).await.unwrap();
        keep(&engine).await.unwrap();
        assert_eq!(kept(&engine).await as usize, stored + 1);
    }

    #[tokio::test]
    async fn what_a_file_that_cannot_be_written_refused_is_stored_when_it_can_be() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("any.sqlite");
        drop(engine(folder.path(), ""));
        let open = || Connection::open_with_flags(&path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
        let refusing = Engine::start(Some(open()), open()).unwrap();
        let error = keep(&refusing).await.unwrap_err();
        assert!(error.is_retryable() && error.chain().contains("readonly database"), "{}", error.chain());
        let writing = Engine::start(Some(Connection::open(&path).unwrap()), open()).unwrap();
        keep(&writing).await.unwrap();
        assert_eq!(kept(&writing).await, 1);
    }
}
