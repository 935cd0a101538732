//! Explores every interleaving of two workers, with duplicates, crashes and lost leases.

use std::collections::{BTreeMap, HashSet};

use uuid::Uuid;

use super::*;
use crate::ledger::Item;

/// A mistake of an application, which the exploration has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mistake {
    None,
    /// The receipts are not stored with the change.
    ReceiptsNotStored,
    /// The write does not depend on the loaded version.
    UnconditionalWrite,
    /// The token is released before the change is stored.
    ReleasedTooEarly,
}

/// The stored entity: the number of effects of each token, and the receipts.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct StoredEntity {
    version: u32,
    effects: BTreeMap<usize, u32>,
    receipts: String,
}

impl StoredEntity {
    fn receipts(&self) -> Receipts {
        serde_json::from_str(&self.receipts).unwrap_or_default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Worker {
    Idle,
    Loaded {
        message: usize,
        entity: StoredEntity,
    },
    Admitted {
        message: usize,
        entity: StoredEntity,
        visit: Visit,
    },
    StoredEntity {
        visit: Visit,
    },
    /// The partition is released too early, as a mistake that the test must find.
    Released {
        message: usize,
        entity: StoredEntity,
        visit: Visit,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct World {
    item: Item,
    entity: StoredEntity,
    /// The remaining deliveries of each message.
    queue: [u32; 2],
    workers: [Worker; 2],
    second: i64,
    attempts: u128,
    crashes: u32,
    expiries: u32,
}

const LEASE: SignedDuration = SignedDuration::from_secs(30);

fn partition() -> PartitionKey {
    PartitionKey::from_uuid(Uuid::from_u128(1))
}

fn token(message: usize) -> Token {
    Token::minted_at_entry(partition(), Uuid::from_u128(message as u128))
}

impl World {
    fn new() -> Self {
        let item = Item::with_tokens(None, &[token(0), token(1)], Timestamp::UNIX_EPOCH);
        let (queue, workers) = ([2, 2], [Worker::Idle, Worker::Idle]);
        Self {
            item,
            entity: StoredEntity::default(),
            queue,
            workers,
            second: 0,
            attempts: 0,
            crashes: 1,
            expiries: 1,
        }
    }

    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.second).unwrap()
    }

    fn is_at_rest(&self) -> bool {
        self.queue == [0, 0] && self.workers.iter().all(|worker| *worker == Worker::Idle)
    }

    /// Returns every successor of this state.
    fn successors(&self, mistake: Mistake) -> Vec<Self> {
        let mut next = Vec::new();
        for worker in 0..2 {
            match &self.workers[worker] {
                Worker::Idle => {
                    for message in 0..2 {
                        if self.queue[message] > 0 {
                            let mut world = self.clone();
                            world.queue[message] -= 1;
                            world.workers[worker] = Worker::Loaded { message, entity: self.entity.clone() };
                            next.push(world);
                        }
                    }
                }
                _ => {
                    next.push(self.step(worker, mistake));
                    if self.crashes > 0 {
                        let mut world = self.clone();
                        world.crashes -= 1;
                        world.redeliver(worker);
                        next.push(world);
                    }
                }
            }
        }
        if self.expiries > 0 {
            let second = self.second + LEASE.as_secs() + 1;
            next.push(Self { second, expiries: self.expiries - 1, ..self.clone() });
        }
        next
    }

    /// The worker drops its message, which is delivered again.
    fn redeliver(&mut self, worker: usize) {
        match std::mem::replace(&mut self.workers[worker], Worker::Idle) {
            Worker::Loaded { message, .. }
            | Worker::Admitted { message, .. }
            | Worker::Released { message, .. } => self.queue[message] += 1,
            Worker::StoredEntity { visit } => {
                let message = (0..2).find(|message| token(*message) == visit.token).unwrap();
                self.queue[message] += 1;
            }
            Worker::Idle => {}
        }
    }

    fn step(&self, worker: usize, mistake: Mistake) -> Self {
        let mut world = self.clone();
        match self.workers[worker].clone() {
            Worker::Idle => {}
            Worker::Loaded { message, entity } => world.admit(worker, message, entity),
            Worker::Admitted { message, entity, visit } if mistake == Mistake::ReleasedTooEarly => {
                world.release(&visit);
                world.workers[worker] = Worker::Released { message, entity, visit };
            }
            Worker::Admitted { message, entity, visit } | Worker::Released { message, entity, visit } => {
                world.store(worker, message, &entity, visit, mistake);
            }
            Worker::StoredEntity { visit } => {
                world.release(&visit);
                world.workers[worker] = Worker::Idle;
            }
        }
        world
    }

    fn admit(&mut self, worker: usize, message: usize, entity: StoredEntity) {
        self.attempts += 1;
        let attempt = AttemptId::from_uuid(Uuid::from_u128(self.attempts));
        let (stored, now) = (entity.receipts(), self.now());
        let mut claim = stored.claim(partition(), attempt, &token(message), now, LEASE);
        let answer = loop {
            let (answer, item) = Item::claim(Some(self.item.clone()), &claim);
            self.item = item.unwrap_or_else(|| self.item.clone());
            match answer {
                Admission::Moved { fence, expires_at } => claim = claim.at(fence, expires_at),
                answer => break answer,
            }
        };
        match stored.entry(partition(), attempt, &token(message), answer) {
            Entry::Admitted(visit) if visit.took_effect_before() => {
                self.release(&visit);
                self.workers[worker] = Worker::Idle;
            }
            Entry::Admitted(visit) => self.workers[worker] = Worker::Admitted { message, entity, visit },
            Entry::Duplicate => self.workers[worker] = Worker::Idle,
            // The message is delivered again once the lease has ended, which is a later schedule of this exploration.
            Entry::Busy { .. } => self.redeliver(worker),
        }
    }

    fn store(
        &mut self,
        worker: usize,
        message: usize,
        loaded: &StoredEntity,
        visit: Visit,
        mistake: Mistake,
    ) {
        if loaded.version != self.entity.version && mistake != Mistake::UnconditionalWrite {
            return self.redeliver(worker);
        }
        *self.entity.effects.entry(message).or_default() += 1;
        self.entity.version += 1;
        if mistake != Mistake::ReceiptsNotStored {
            self.entity.receipts = serde_json::to_string(&visit.receipts()).unwrap();
        }
        self.workers[worker] = Worker::StoredEntity { visit };
    }

    fn release(&mut self, visit: &Visit) {
        let release = visit.clone().release(self.now());
        self.item = self.item.clone().release(&release).unwrap_or_else(|| self.item.clone());
    }
}

/// Returns a description of the first wrong state, or the number of states and whether one of them is at rest.
fn explore(mistake: Mistake) -> Result<(usize, bool), String> {
    let (mut seen, mut open, mut rested) = (HashSet::new(), vec![World::new()], false);
    while let Some(world) = open.pop() {
        // Attempts are distinguished by identity only, so the text of a state is its key.
        if !seen.insert(format!("{world:?}")) {
            continue;
        }
        let effects = |message| world.entity.effects.get(&message).copied().unwrap_or(0);
        for message in 0..2 {
            if effects(message) > 1 {
                return Err(format!("message {message} took effect twice"));
            }
            if world.is_at_rest() && effects(message) == 0 {
                return Err(format!("message {message} is lost"));
            }
        }
        rested |= world.is_at_rest();
        open.extend(world.successors(mistake).into_iter().filter(|next| next.attempts <= 7));
    }
    Ok((seen.len(), rested))
}

#[test]
fn every_interleaving_applies_each_message_once() {
    let (states, rested) = explore(Mistake::None).unwrap();
    assert!(states > 1_000 && rested, "{states} states");
}

#[test]
fn mistakes_of_the_application_are_found() {
    for (mistake, consequence) in [
        (Mistake::ReceiptsNotStored, "twice"),
        (Mistake::UnconditionalWrite, "twice"),
        (Mistake::ReleasedTooEarly, "lost"),
    ] {
        let found = explore(mistake).unwrap_err();
        assert!(found.contains(consequence), "{mistake:?}: {found}");
    }
}
