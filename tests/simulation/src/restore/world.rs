//! The effects of a restore on the world.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use dedup::ledger::Item;
use jiff::Timestamp;
use messages::{MessageId, PartitionKey, SessionId};
use outbox::{Key, StoredRecord, View};
use saga::SAGA;

use super::{BOTH, DATABASE, LEDGER, RestoredStores, Shift, Task};
use crate::checks::RestorableChecks;
use crate::options::{Invariant, Mode};
use crate::ports::failures::FailureTables;
use crate::rng::Rng;
use crate::world::{Occasion, StoredDocument, StoredSession, World};

/// Derives the generator of these choices from the seed of a schedule, so that these choices do not change the other
/// choices.
const RESTORE: u64 = 0x9FB2_1C65_1E98_DF25;

/// The number of schedules per restore, on average.
const ONE_IN: u64 = 12;

/// The latest time of a backup: while partitions begin, or while they wait.
const BACKUPS_MS: [u64; 4] = [3_000, 30_000, 120_000, 7_200_000];

/// The maximum time between a backup and the restore.
const LOST_MS: [u64; 4] = [2_000, 20_000, 300_000, 7_200_000];

/// The latest step of a backup, and the maximum number of steps between it and the restore. Most backups and restores
/// then happen during activity, and not while partitions wait.
const BACKUP_STEPS: u64 = 700;
const LOST_STEPS: u64 = 400;

/// The stored data at one time.
struct Backup {
    documents: BTreeMap<PartitionKey, StoredDocument>,
    items: BTreeMap<PartitionKey, Item>,
    sessions: BTreeMap<SessionId, StoredSession>,
    unreadable: BTreeSet<MessageId>,
    views: BTreeMap<PartitionKey, View>,
    failures: FailureTables,
    records: BTreeMap<Key, StoredRecord>,
    processed: BTreeMap<String, Timestamp>,
    outside: Box<dyn Any + Send>,
    checks: RestorableChecks,
}

impl World {
    /// Draws a restore for a few schedules, but for none with documents that this release cannot read: the operator's
    /// command could not settle their partitions.
    pub(crate) fn plan_restore(&mut self, seed: u64) {
        let mut rng = Rng::new(seed ^ RESTORE);
        if !rng.one_in(ONE_IN) || !self.application.restores() || self.damage.is_expected() {
            return;
        }
        let what = match self.config.mode {
            Mode::Ledger => {
                rng.pick(&[RestoredStores::Database, RestoredStores::Ledger, RestoredStores::Both])
            }
            Mode::Optimistic => RestoredStores::Database,
        };
        self.restores.planned = Some(what);
        if rng.one_in(2) {
            let backup_at = rng.below(BACKUP_STEPS);
            self.restores.steps = Some((backup_at, backup_at + rng.between(1, LOST_STEPS)));
        } else {
            let (latest, lost) = (rng.pick(&BACKUPS_MS), rng.pick(&LOST_MS));
            let backup_at = rng.below(latest);
            let restore_at = backup_at + rng.between(1, lost);
            self.at(backup_at, Occasion::Act(Box::new(Self::back_up)));
            // If both are due, either may happen first.
            let stop = |world: &mut Self| {
                if world.restores.backup.is_none() {
                    world.back_up();
                }
                world.restores.shift = Some(Shift::Stop);
            };
            self.at(restore_at, Occasion::Act(Box::new(stop)));
        }
        self.restores.rng = Some(rng);
    }

    /// Gives the worker that handles the restore its clock.
    pub(crate) fn add_restorer(&mut self) {
        if let Some(rng) = &mut self.restores.rng {
            self.clocks.add(rng);
        }
    }

    /// Returns `true` if this schedule has a restore, or had one.
    pub(crate) fn has_restore(&self) -> bool {
        self.restores.planned.is_some()
    }

    /// Returns the restored stores; `None` before the restore.
    pub(crate) fn restored(&self) -> Option<RestoredStores> {
        self.restores.done
    }

    /// Returns `true` once the database was restored.
    pub(crate) fn is_database_restored(&self) -> bool {
        self.restored().is_some_and(RestoredStores::has_database)
    }

    /// Returns `true` between a restore and the start of the functions.
    pub(crate) fn is_settling(&self) -> bool {
        self.restores.task == Some(Task::Settle)
    }

    /// Prevents a restore from now on.
    pub(crate) fn cancel_restore(&mut self) {
        self.restores.steps = None;
    }

    /// Makes the backup, or begins the restore, if this is its step.
    pub(crate) fn advance_restore(&mut self) {
        let Some((backup_at, restore_at)) = self.restores.steps else { return };
        let step = self.stats.steps;
        if self.restores.backup.is_none() && step >= backup_at {
            self.back_up();
        } else if step >= restore_at {
            self.restores.steps = None;
            self.restores.shift = Some(Shift::Stop);
        }
    }

    fn back_up(&mut self) {
        self.note(|| "a backup is made".to_owned());
        self.restores.backup = Some(Box::new(Backup {
            documents: self.documents.clone(),
            items: self.items.clone(),
            sessions: self.sessions.clone(),
            unreadable: self.unreadable.clone(),
            views: self.views.clone(),
            failures: self.failures.clone(),
            records: self.records.clone(),
            processed: self.processed.clone(),
            outside: self.application.world_of(self),
            checks: self.checks.restorable(),
        }));
    }

    /// Replaces the stores. No worker runs.
    pub(crate) fn restore(&mut self) {
        let backup = self.restores.backup.take().and_then(|backup| backup.downcast::<Backup>().ok());
        let (Some(what), Some(backup)) = (self.restores.planned, backup) else {
            return self.violate(Invariant::Application, || "a restore has no backup".to_owned());
        };
        self.note(|| format!("restored: {what:?}"));
        self.coverage.meet(match what {
            RestoredStores::Database => DATABASE,
            RestoredStores::Ledger => LEDGER,
            RestoredStores::Both => BOTH,
        });
        let backup = *backup;
        self.restores.done = Some(what);
        self.restores.task = Some(Task::Settle);
        self.forget_requests(what);
        if what.has_ledger() {
            self.items = backup.items;
        }
        // Without a ledger, the runbook restores the memory of processed messages to the time of the database.
        if what.has_ledger() || self.config.mode == Mode::Optimistic {
            self.processed = backup.processed;
        }
        if what.has_database() {
            self.documents = backup.documents;
            self.sessions = backup.sessions;
            self.unreadable = backup.unreadable;
            self.views = backup.views;
            self.failures = backup.failures;
            self.records = backup.records;
            self.earlier.clear();
            self.stale_reads.forget();
            self.checks.restore(backup.checks, |id| self.sessions.contains_key(id));
            let application = Arc::clone(&self.application);
            application.restore(self, backup.outside.as_ref());
            // Nothing else rejects a reply about data that no longer exists.
            if self.config.mode == Mode::Optimistic {
                self.purge(&SAGA);
            }
        }
        self.checks.forget_workers();
        let has_ended = |stored: &StoredDocument| stored.document.content.ended_at.is_some();
        let ended = self.documents.iter().filter(|(_, stored)| has_ended(stored));
        self.restores.ended = ended.map(|(id, stored)| (*id, stored.document.version)).collect();
    }

    /// The workers are gone, and the replaced stores do not receive the requests that are still on their way.
    fn forget_requests(&mut self, what: RestoredStores) {
        let (database, ledger) = (what.has_database(), what.has_ledger());
        self.occasions.retain(|(_, occasion)| match occasion {
            Occasion::Restart(_) | Occasion::Replace(_) => false,
            Occasion::Arrive(call, _) => match call.service() {
                "database" => !database,
                "ledger" => !ledger,
                _ => true,
            },
            Occasion::Replay | Occasion::Act(_) => true,
        });
    }

    /// Returns a partition that had ended before the backup and has changed since the restore.
    pub(crate) fn changed_after_restore(&self) -> Option<PartitionKey> {
        let version = |id: &PartitionKey| self.documents.get(id).map(|stored| stored.document.version);
        let mut changed = self.restores.ended.iter().filter(|(id, before)| version(id) != Some(**before));
        changed.next().map(|(id, _)| *id)
    }
}
