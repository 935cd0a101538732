//! Saga documents and jobs.

use async_trait::async_trait;
use contracts::{Job, ProjectId, SearchId, StoreError};
use imports::{Cursor, Page, Progress, ReadJobs, WriteJobs};
use jiff::{SignedDuration, Timestamp};
use outbox::{Owner, Settlement};
use worker::{Document, Persist, Persisted, ReadSaga, WriteSaga};

use crate::coverage::Call;
use crate::options::Mutant;
use crate::port::Port;
use crate::world::{StoredDocument, World, short};

/// How long the document of a search that has ended stays: 7 days, as shipped.
pub(crate) const RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);

#[async_trait]
impl ReadSaga for Port {
    async fn load(&self, searches: &[SearchId], now: Timestamp) -> Result<Vec<Option<Document>>, StoreError> {
        let searches = searches.to_vec();
        self.perform(|world| searches.iter().for_each(|search| world.check_scope(*search)));
        self.call(Call::SagaLoad, move |world| {
            searches.iter().map(|search| world.load(*search, now)).collect()
        })
        .await
    }
}

#[async_trait]
impl WriteSaga for Port {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<Persisted>, StoreError> {
        self.send_early(writes).await;
        let (all, some) = (writes.to_vec(), writes);
        let perform = move |world: &mut World| all.iter().map(|write| world.persist(write, now)).collect();
        // A bulk write that breaks off has made some of its writes.
        let in_part = |world: &mut World| {
            for write in some_of(world, some) {
                world.persist(write, now);
            }
        };
        self.call_or(Call::SagaPersist, perform, in_part).await
    }

    async fn settle(&self, settlements: &[(SearchId, Vec<Settlement>)]) -> Result<(), StoreError> {
        let (all, some) = (settlements.to_vec(), settlements);
        let settle = |world: &mut World, of: &(SearchId, Vec<Settlement>)| {
            world.settle(Owner::Saga(of.0), &of.1);
        };
        let perform = move |world: &mut World| all.iter().for_each(|of| settle(world, of));
        let in_part = |world: &mut World| {
            for of in some_of(world, some) {
                settle(world, of);
            }
        };
        let settled = self.call_or(Call::SagaSettle, perform, in_part).await;
        if settled.is_err() {
            self.perform(|world| settlements.iter().for_each(|(search, _)| world.gave_up(*search)));
        }
        settled
    }
}

/// Some of several, never all; of a single one none.
fn some_of<'a, T>(world: &mut World, all: &'a [T]) -> &'a [T] {
    let count = world.rng.index(all.len());
    &all[..count]
}

impl World {
    fn load(&mut self, search: SearchId, now: Timestamp) -> Option<Document> {
        let stored = self.documents.get(&search);
        let mut found = stored
            .filter(|stored| stored.expires_at.is_none_or(|at| at > now))
            .map(|stored| stored.document.clone());
        if let Some(document) = &mut found {
            self.mint_again(&mut document.outbox);
            let expected = document.content.expected.iter().map(|expected| expected.token.clone());
            self.after_load(search, expected.collect());
        }
        self.note(|| match &found {
            Some(Document { version, content, .. }) => {
                let state = content.state.name();
                format!("saga.load        {} -> version {version}, {state}", short(&search))
            }
            None => format!("saga.load        {} -> none", short(&search)),
        });
        found
    }

    fn persist(&mut self, write: &Persist, now: Timestamp) -> Persisted {
        let stored = self.documents.get(&write.search_id);
        let holds = match (write.loaded, stored) {
            (None, None) => true,
            (None, Some(stored)) => stored.expires_at.is_some_and(|at| at <= now),
            (Some(loaded), stored) => stored.is_some_and(|stored| stored.document.version == loaded),
        };
        let answer = match holds || self.has(Mutant::NoVersionCheck) {
            true => Persisted::Stored,
            false => Persisted::Conflict,
        };
        self.note(|| {
            let (search, state) = (short(&write.search_id), write.content.state.name());
            format!("saga.persist     {search} over {:?}, {state} -> {answer:?}", write.loaded)
        });
        if answer == Persisted::Stored {
            self.store(write);
        }
        answer
    }

    fn store(&mut self, write: &Persist) {
        self.check_write(write);
        self.after_persist(write.content.attempt);
        let ended = write.content.state.completed_at();
        let expires_at = ended.map(|at| at.checked_add(RETENTION).unwrap_or(Timestamp::MAX));
        // Whatever is left in the outbox of an expired document stays.
        let mut outbox =
            self.documents.remove(&write.search_id).map_or_else(Vec::new, |stored| stored.document.outbox);
        outbox.retain(|entry| !write.cancel.contains(&entry.id));
        outbox.retain(|entry| !write.add.iter().any(|added| added.id == entry.id));
        outbox.extend(self.stored_entries(write).cloned());
        let document = Document {
            search_id: write.search_id,
            version: write.loaded.unwrap_or(0) + 1,
            content: write.content.clone(),
            outbox,
        };
        self.documents.insert(write.search_id, StoredDocument { document, expires_at });
        self.check_stored(write.search_id);
    }
}

#[async_trait]
impl WriteJobs for Port {
    async fn write(&self, jobs: &[Job]) -> Result<(), StoreError> {
        let jobs = jobs.to_vec();
        self.call(Call::JobsWrite, move |world| jobs.iter().for_each(|job| world.write_job(job))).await
    }
}

impl World {
    fn write_job(&mut self, job: &Job) {
        self.note(|| {
            format!("jobs.write       {} revision {}, {}", short(&job.search_id), job.revision, job.state)
        });
        self.check_job(job);
        let stored = self.jobs.get(&job.search_id);
        if stored.is_none_or(|stored| stored.revision < job.revision) {
            self.jobs.insert(job.search_id, job.clone());
        }
    }
}

/// The simulated functions write jobs and read one only to withdraw its search.
#[async_trait]
impl ReadJobs for Port {
    async fn job(&self, search: SearchId) -> Result<Option<Job>, StoreError> {
        let shown = move |world: &mut World| {
            let stored = world.documents.get(&search).map(|stored| &stored.document);
            let of_document = stored.and_then(|document| document.content.state.job(search));
            of_document.or_else(|| world.jobs.get(&search).cloned())
        };
        self.call(Call::JobsRead, shown).await
    }

    async fn unfinished(&self) -> Result<Vec<Job>, StoreError> {
        let under_way =
            |world: &mut World| world.jobs.values().filter(|job| !job.state.has_ended()).cloned().collect();
        Ok(self.universe.with(under_way))
    }

    async fn of_project(
        &self,
        project: ProjectId,
        _: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let of_project = |world: &mut World| {
            world.jobs.values().filter(|job| job.project_id == project).take(limit).cloned().collect()
        };
        Ok(Page { jobs: self.universe.with(of_project), next: None })
    }

    async fn progress(&self, _: SearchId) -> Result<Vec<(contracts::FileId, Progress)>, StoreError> {
        Ok(Vec::new())
    }
}
