//! The part of the checks' memory that a restore of the database undoes.

use std::collections::{BTreeMap, BTreeSet};

use messages::{MessageId, PartitionKey, SessionId};
use outbox::{Key, OwnedRecord, View};

use super::{Checks, StoredContent};
/// The memory of the checks about stored data at the time of a backup.
pub(crate) struct RestorableChecks {
    history: BTreeMap<PartitionKey, Vec<StoredContent>>,
    changed: BTreeSet<MessageId>,
    effects: BTreeSet<(PartitionKey, MessageId)>,
    shown: BTreeMap<PartitionKey, View>,
    shown_by_data: BTreeSet<PartitionKey>,
    kept: BTreeMap<Key, OwnedRecord>,
}

impl Checks {
    /// Returns the memory that a restore of the database will undo.
    pub(crate) fn restorable(&self) -> RestorableChecks {
        RestorableChecks {
            history: self.history.clone(),
            changed: self.changed.clone(),
            effects: self.effects.keys().copied().collect(),
            shown: self.shown.clone(),
            shown_by_data: self.shown_by_data.clone(),
            kept: self.kept.clone(),
        }
    }

    /// Forgets what a restore of the database has undone. A session that is not stored is lost, unless its control
    /// message is still in a queue; then it is abandoned.
    pub(crate) fn restore(&mut self, backup: RestorableChecks, is_stored: impl Fn(&SessionId) -> bool) {
        let RestorableChecks { history, changed, effects, shown, shown_by_data, kept } = backup;
        (self.history, self.changed, self.shown, self.shown_by_data, self.kept) =
            (history, changed, shown, shown_by_data, kept);
        for (key, effect) in &mut self.effects {
            effect.undone |= !effects.contains(key);
        }
        self.sessions.retain(|id, _| is_stored(id));
    }

    /// Forgets which workers hold partitions and entries, because all of them were stopped.
    pub(crate) fn forget_workers(&mut self) {
        self.inside.clear();
        self.held.clear();
        self.abandoned_by.clear();
        self.resent.forget();
    }
}
