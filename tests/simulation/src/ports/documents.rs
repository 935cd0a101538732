//! Saga documents.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use messages::{PartitionKey, StoreError};
use outbox::{Owner, Settlement};
use saga::{Document, LoadResult, Persist, PersistOutcome, ReadDocuments, WriteDocuments};
use serde_json::Value;

use crate::coverage::{Call, Phase};
use crate::describe::short;
use crate::options::Mutant;
use crate::point::Grant;
use crate::port::Port;
use crate::world::{StoredDocument, World};

/// The retention of the document of an ended partition: 7 days, the default.
pub(crate) const RETENTION: SignedDuration = SignedDuration::from_hours(7 * 24);

/// The number of earlier versions that a stale load may return.
const EARLIER: usize = 3;

#[async_trait]
impl ReadDocuments for Port {
    async fn load(&self, partitions: &[PartitionKey], now: Timestamp) -> Result<Vec<LoadResult>, StoreError> {
        let partitions = partitions.to_vec();
        self.perform(|world| partitions.iter().for_each(|partition| world.check_scope(*partition)));
        let all = partitions.clone();
        let grant = self.gate(Call::SAGA_LOAD, Phase::Before).await;
        let load = move |world: &mut World| {
            let load = |partition: &PartitionKey| world.load(*partition, now, grant == Grant::Stale);
            all.iter().map(load).collect()
        };
        let loaded = self.go_on(Call::SAGA_LOAD, grant, load, |_| ()).await;
        let loaded = loaded.and_then(|loaded| self.all_or_nothing(loaded));
        if loaded.is_err() {
            self.perform(|world| world.load_failed(&partitions));
        }
        loaded
    }

    async fn load_latest(&self, partition: PartitionKey, now: Timestamp) -> LoadResult {
        self.perform(|world| world.check_scope(partition));
        let process = self.process;
        let load = move |world: &mut World| match world.mutants.loaded.get(&(process, partition)) {
            Some(loaded) => Ok(loaded.clone()),
            None => world.load(partition, now, false),
        };
        let loaded = self.call(Call::SAGA_LOAD_LATEST, load).await;
        if loaded.is_err() {
            self.perform(|world| world.record_permanent_failure(partition));
        }
        loaded.and_then(|loaded| loaded)
    }
}

#[async_trait]
impl WriteDocuments for Port {
    async fn persist(&self, writes: &[Persist], now: Timestamp) -> Result<Vec<PersistOutcome>, StoreError> {
        self.send_early(writes).await;
        let (all, some) = (writes.to_vec(), writes);
        let perform = move |world: &mut World| all.iter().map(|write| world.persist(write, now)).collect();
        // An interrupted bulk write has made some of its writes.
        let in_part = |world: &mut World| {
            for write in some_of(world, some) {
                world.persist(write, now);
            }
        };
        let answers = self.call_or(Call::SAGA_PERSIST, perform, in_part).await;
        if answers.is_err() {
            self.perform(|world| world.in_doubt(writes));
        }
        answers
    }

    async fn settle(&self, settlements: &[(PartitionKey, Vec<Settlement>)]) -> Result<(), StoreError> {
        let settlements = &self.stored_settlements(settlements)[..];
        let (all, some) = (settlements.to_vec(), settlements);
        let settle = |world: &mut World, of: &(PartitionKey, Vec<Settlement>)| {
            world.settle(Owner::Saga(of.0), &of.1);
        };
        let perform = move |world: &mut World| all.iter().for_each(|of| settle(world, of));
        let in_part = |world: &mut World| {
            for of in some_of(world, some) {
                settle(world, of);
            }
        };
        let settled = self.call_or(Call::SAGA_SETTLE, perform, in_part).await;
        if settled.is_err() {
            self.perform(|world| {
                settlements.iter().for_each(|(partition, _)| world.record_permanent_failure(*partition));
            });
        }
        settled
    }
}

/// Returns some of several writes, but never all of them, and none of a single write.
fn some_of<'a, T>(world: &mut World, all: &'a [T]) -> &'a [T] {
    let count = world.rng.index(all.len());
    &all[..count]
}

/// The maximum length of a state in a trace.
const STATE_CHARS: usize = 120;

/// Returns a stored state for traces: the name of its variant if it has one, otherwise the beginning of its JSON.
fn name(state: &Value) -> String {
    let variant = || state.as_object().filter(|fields| fields.len() == 1)?.keys().next();
    let name = state.as_str().or_else(|| variant().map(String::as_str));
    name.map_or_else(|| state.to_string().chars().take(STATE_CHARS).collect(), str::to_owned)
}

impl World {
    fn load(&mut self, partition: PartitionKey, now: Timestamp, is_stale: bool) -> LoadResult {
        let stored = self.documents.get(&partition);
        let latest = stored
            .filter(|stored| stored.expires_at.is_none_or(|at| at > now))
            .map(|stored| stored.document.clone());
        let mut found = match self.earlier.get(&partition) {
            Some(earlier) if is_stale => earlier[self.rng.index(earlier.len())].clone(),
            _ => latest,
        };
        self.mistake(partition, &mut found);
        if let Some(document) = &mut found {
            document.outbox.retain(|entry| !self.unreadable.contains(&entry.id));
            self.mint_again(&mut document.outbox);
            self.disobey(document);
            self.after_load(document);
        }
        self.note(|| match &found {
            Some(Document { version, content, .. }) => {
                format!(
                    "saga.load        {} -> version {version}, {}",
                    short(&partition),
                    name(&content.state.value())
                )
            }
            None => format!("saga.load        {} -> none", short(&partition)),
        });
        self.found(found)
    }

    fn persist(&mut self, write: &Persist, now: Timestamp) -> PersistOutcome {
        let stored = self.documents.get(&write.partition);
        let holds = match (write.loaded, stored) {
            (None, None) => true,
            (None, Some(stored)) => stored.expires_at.is_some_and(|at| at <= now),
            (Some(loaded), stored) => stored.is_some_and(|stored| stored.document.version == loaded),
        };
        let own = stored.is_some_and(|stored| stored.document.content.attempt == write.content.attempt);
        let is_repeated = own && self.has(Mutant::WriteRepeated);
        let answer = match holds || is_repeated || self.has(Mutant::NoVersionCheck) {
            true => PersistOutcome::Stored,
            false => PersistOutcome::Conflict,
        };
        self.note(|| {
            let (partition, state) = (short(&write.partition), write.content.state.value());
            let state = name(&state);
            format!("saga.persist     {partition} over {:?}, {state} -> {answer:?}", write.loaded)
        });
        if answer == PersistOutcome::Stored && !self.is_omitted(write) {
            self.store(write, now);
        }
        answer
    }

    fn store(&mut self, write: &Persist, now: Timestamp) {
        let Some(state) = self.check_write(write, now) else { return };
        self.after_persist(write.content.attempt);
        let ended = write.content.ended_at;
        let expires_at = ended.map(|at| at.checked_add(RETENTION).unwrap_or(Timestamp::MAX));
        let before = self.documents.remove(&write.partition).map(|stored| stored.document);
        let earlier = self.earlier.entry(write.partition).or_default();
        earlier.push_back(before.clone());
        if earlier.len() > EARLIER {
            earlier.pop_front();
        }
        // The remaining entries in the outbox of an expired document are kept.
        let mut outbox = before.map_or_else(Vec::new, |document| document.outbox);
        let cancelled = self.cancelled(write);
        outbox.retain(|entry| !cancelled.contains(&entry.id));
        outbox.retain(|entry| !write.add.iter().any(|added| added.id == entry.id));
        outbox.extend(self.stored_entries(write).cloned());
        let document = Document {
            partition: write.partition,
            version: write.version,
            content: write.content.clone(),
            outbox,
        };
        self.documents.insert(write.partition, StoredDocument { document, state, expires_at });
        self.wrote(write.partition);
        self.check_stored(write.partition);
    }
}
