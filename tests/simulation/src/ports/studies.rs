//! Studies, as far as their number, and what is needed to tell duplicates.

use std::collections::BTreeMap;

use async_trait::async_trait;
use contracts::{FileId, SearchId, StoreError};
use imports::{Identity, Mark, ParsedFile, Quarantined, ReadStudies, Study, WriteStudies};
use references::Known;

use crate::coverage::Call;
use crate::port::Port;
use crate::world::{World, short};

/// What duplicates are told by.
#[derive(Debug, Default)]
pub(crate) struct Recognised {
    pub(crate) files: BTreeMap<(SearchId, FileId), ParsedFile>,
    pub(crate) studies: BTreeMap<(SearchId, FileId), BTreeMap<u64, Identity>>,
    /// The position and the record of the study that one repeats.
    pub(crate) marks: BTreeMap<(SearchId, FileId, u64), (u32, u64)>,
}

impl Recognised {
    /// The files of a search that were read to their end, in their order.
    pub(crate) fn files_of(&self, search: SearchId) -> Vec<ParsedFile> {
        let mut files: Vec<_> =
            self.files.values().filter(|file| file.search_id == search).cloned().collect();
        files.sort_by_key(|file| file.position);
        files
    }
}

#[async_trait]
impl WriteStudies for Port {
    async fn store(&self, studies: &[Study], _: &[Quarantined]) -> Result<(), StoreError> {
        let studies = studies.to_vec();
        let store = move |world: &mut World| {
            let count = studies.len();
            for study in studies {
                let (file, record) = ((study.search_id, study.file_id), study.record);
                let known = world.recognised.studies.entry(file).or_default();
                known.entry(record).or_insert_with(|| Identity::of(record, study.reference));
                let stored = known.len();
                world.studies.insert(file, stored);
            }
            world.note(|| format!("studies.store    {count} studies"));
        };
        self.call(Call::StudiesStore, store).await
    }

    async fn discard(&self, search: SearchId, file: FileId) -> Result<(), StoreError> {
        let discard = move |world: &mut World| {
            let found = world.studies.remove(&(search, file)).unwrap_or(0);
            world.recognised.studies.remove(&(search, file));
            world.recognised.files.remove(&(search, file));
            world.note(|| format!("studies.discard  file {} of {}: {found}", short(&file), short(&search)));
        };
        self.call(Call::StudiesDiscard, discard).await
    }

    async fn finish(&self, file: &ParsedFile) -> Result<(), StoreError> {
        let file = file.clone();
        let finish = move |world: &mut World| {
            world.recognised.files.entry((file.search_id, file.file_id)).or_insert(file);
        };
        self.call(Call::StudiesFinish, finish).await
    }

    async fn mark(&self, marks: &[Mark]) -> Result<(), StoreError> {
        let marks = marks.to_vec();
        let mark = move |world: &mut World| {
            for Mark { search_id, file_id, record, duplicate } in marks {
                let new = (duplicate.position, duplicate.record);
                let mark = world.recognised.marks.entry((search_id, file_id, record)).or_insert(new);
                *mark = new.min(*mark);
            }
        };
        self.call(Call::StudiesMark, mark).await
    }
}

#[async_trait]
impl ReadStudies for Port {
    /// For readers, of which there are none here.
    async fn studies(&self, _: SearchId, _: FileId, _: u64, _: usize) -> Result<Vec<Study>, StoreError> {
        Ok(Vec::new())
    }

    /// No file here has any.
    async fn quarantined(
        &self,
        _: SearchId,
        _: FileId,
        _: u64,
        _: usize,
    ) -> Result<Vec<Quarantined>, StoreError> {
        Ok(Vec::new())
    }

    async fn identities(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Identity>, StoreError> {
        let read = move |world: &mut World| {
            let Some(known) = world.recognised.studies.get(&(search, file)) else { return Vec::new() };
            known.range(after + 1..).map(|(_, study)| study.clone()).take(limit).collect()
        };
        self.call(Call::StudiesRead, read).await
    }

    async fn stored(&self, search: SearchId, file: FileId) -> Result<Known, StoreError> {
        let look = move |world: &mut World| {
            let known = world.recognised.studies.get(&(search, file));
            let last = known.and_then(|known| known.keys().next_back().copied());
            Known { records: last.unwrap_or(0), quarantined: 0 }
        };
        self.call(Call::StudiesStored, look).await
    }

    async fn parsed(&self, search: SearchId) -> Result<Vec<ParsedFile>, StoreError> {
        self.call(Call::StudiesRead, move |world| world.recognised.files_of(search)).await
    }

    async fn duplicates(&self, _: SearchId, _: FileId) -> Result<u64, StoreError> {
        Ok(0)
    }
}
