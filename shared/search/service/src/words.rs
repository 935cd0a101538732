//! Building the index of words.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use imports::words::{PartBuilder, UnindexedFile};
use imports::{
    FileId, FileRef, IndexWords, Jobs, Outcome, Ports, ReadStudies, Readable, SearchId, Selection, Study,
    readable,
};
use messages::StoreError;
use messages::store::chain;
use saga::{MissingSetting, Upkeep};

/// The number of studies that are read at a time, and their maximum size in bytes, plus up to one study.
const READ_STUDIES: usize = 500;
const READ_BYTES: usize = 1 << 20;
/// The number of unindexed files that are read at a time.
const FILES: usize = 100;

/// Builds the index of words in the background, after the duplicates of a file are marked.
#[derive(Clone)]
pub struct WordIndexing {
    /// Reads the jobs of searches.
    pub jobs: Jobs,
    /// Reads studies.
    pub stored: Arc<dyn ReadStudies>,
    /// Stores the words of studies.
    pub index: Arc<dyn IndexWords>,
    /// The last file whose words could not be indexed. The following steps skip the files up to it, until all others are
    /// indexed.
    pub failed: Arc<Mutex<Option<FileRef>>>,
}

impl WordIndexing {
    /// Returns the indexing over these ports of an application.
    pub fn over(ports: &Ports) -> Result<Self, MissingSetting> {
        let stores = ports.study_stores()?;
        let (stored, index) = (Arc::clone(&stores.read_studies), Arc::clone(&stores.index_words));
        Ok(Self { jobs: ports.jobs()?, stored, index, failed: Arc::default() })
    }

    fn failed(&self) -> MutexGuard<'_, Option<FileRef>> {
        self.failed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the next unindexed file that was read and marked completely.
    async fn next(&self, mut after: Option<FileRef>) -> Result<Option<UnindexedFile>, StoreError> {
        loop {
            let files = self.index.unindexed(after, FILES).await?;
            let Some(last) = files.last() else { return Ok(None) };
            after = Some(FileRef::new(last.search_id, last.file_id));
            for file in files {
                match self.is_marked(file.search_id, file.file_id).await {
                    Ok(true) => return Ok(Some(file)),
                    Ok(false) => {}
                    Err(error) if error.is_retryable() => return Err(error),
                    // The jobs of other files can be read.
                    Err(error) => {
                        let search = file.search_id;
                        tracing::error!(%search, error = chain(&error), "a file is not indexed, because its job is damaged");
                    }
                }
            }
        }
    }

    /// Returns `true` if the parser has replied, which it does after marking.
    async fn is_marked(&self, search: SearchId, file: FileId) -> Result<bool, StoreError> {
        let job = self.jobs.job(search).await?;
        let file = job.and_then(|job| job.files.into_iter().find(|known| known.file_id == file));
        Ok(file.is_some_and(|file| matches!(file.outcome, Some(Outcome::Completed(_)))))
    }

    /// Stores the next part of a file.
    async fn index(
        &self,
        UnindexedFile { search_id, file_id, after }: UnindexedFile,
    ) -> Result<(), StoreError> {
        let mut part = PartBuilder::new(after);
        let mut is_last = false;
        while !part.is_full() && !is_last {
            let read = |after, limit| {
                let selection = Selection { marked: None, after, limit, bytes: READ_BYTES };
                self.stored.select(search_id, file_id, selection)
            };
            let studies = readable(part.last(), READ_STUDIES, |study: &Study| study.record, read).await?;
            let Readable { items, damaged, last } = studies;
            for study in &items {
                part.add(study.record, &study.reference);
            }
            if let Some((record, _)) = damaged {
                // Listing the candidates reports the damage.
                part.add_unreadable(record);
            }
            is_last = last.is_none();
        }
        self.index.store_words(search_id, file_id, part.finish(is_last)).await?;
        Ok(())
    }
}

#[async_trait]
impl Upkeep for WordIndexing {
    async fn step(&self) -> Result<bool, StoreError> {
        let failed = *self.failed();
        let Some(file) = self.next(failed).await? else {
            // The next step begins with the first file again.
            *self.failed() = None;
            return Ok(false);
        };
        match self.index(file).await {
            Err(error) if !error.is_retryable() => {
                let (search, file_id) = (file.search_id, file.file_id);
                tracing::error!(%search, %file_id, error = chain(&error), "the words of a file cannot be indexed");
                *self.failed() = Some(FileRef::new(search, file_id));
                Ok(true)
            }
            done => done.map(|()| true),
        }
    }
}
