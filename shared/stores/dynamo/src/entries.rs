//! The outbox within an item: a list of entries, each with the fields that sweeps need and the entry as JSON.
//!
//! An entry that this version cannot read keeps its JSON. Sweeps still know when it is ready and who has claimed it.

use std::collections::HashMap;

use aws_sdk_dynamodb::types::AttributeValue;
use jiff::Timestamp;
use messages::{MessageId, StoreError};
use outbox::{Entry, EntryResult, Settlement, Unreadable, UnreadableAction};
use uuid::Uuid;

use crate::error::MalformedItem;
use crate::item::{self, Item, nanos, text};
use crate::names::attributes::{ENTRY, KEEP_UNTIL, KEY, OUTBOX};
use crate::names::{POISONED, READY, shard, sortable};

const ID: &str = "id";
const READY_AT: &str = "ready_at";
const CLAIMED_UNTIL: &str = "claimed_until";
const IS_POISONED: &str = "poisoned";

/// The entries that a list for operators contains.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum EntryFilter {
    All,
    Exhausted,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct StoredEntry {
    id: String,
    ready_at: Option<Timestamp>,
    claimed_until: Option<Timestamp>,
    pub(crate) is_exhausted: bool,
    text: String,
}

impl StoredEntry {
    fn of(entry: &Entry) -> Result<Self, serde_json::Error> {
        Ok(Self {
            id: entry.id.to_string(),
            ready_at: entry.ready_at(),
            claimed_until: entry.claimed_until,
            is_exhausted: entry.poisoned,
            text: serde_json::to_string(entry)?,
        })
    }

    /// Returns the entry, or why it cannot be read. Its location is the key of its item and its id.
    pub(crate) fn read(&self, key: &str) -> EntryResult {
        self.entry().map_err(|why| Unreadable { place: format!("{key}#{}", self.id), why: why.to_string() })
    }

    fn entry(&self) -> Result<Entry, serde_json::Error> {
        serde_json::from_str(&self.text)
    }

    fn is_ready(&self, now: Timestamp) -> bool {
        !self.is_exhausted && self.ready_at.is_some_and(|ready| ready <= now)
    }

    fn claim(&mut self, until: Timestamp) -> Result<(), serde_json::Error> {
        if let Ok(entry) = self.entry() {
            *self = Self::of(&Entry { claimed_until: Some(until), ..entry })?;
        } else {
            (self.claimed_until, self.ready_at) = (Some(until), Some(until));
        }
        Ok(())
    }

    fn decode(value: &AttributeValue) -> Result<Self, MalformedItem> {
        let fields = value.as_m().map_err(|_| MalformedItem(OUTBOX))?;
        Ok(Self {
            id: item::str_of(fields, ID)?.to_owned(),
            ready_at: item::time_of(fields, READY_AT)?,
            claimed_until: item::time_of(fields, CLAIMED_UNTIL)?,
            is_exhausted: item::is(fields, IS_POISONED),
            text: item::str_of(fields, ENTRY)?.to_owned(),
        })
    }

    fn encode(&self) -> AttributeValue {
        let mut fields = HashMap::from([
            (ID.to_owned(), text(&self.id)),
            (ENTRY.to_owned(), text(&self.text)),
            (IS_POISONED.to_owned(), AttributeValue::Bool(self.is_exhausted)),
        ]);
        fields.extend(self.ready_at.map(|at| (READY_AT.to_owned(), nanos(at))));
        fields.extend(self.claimed_until.map(|at| (CLAIMED_UNTIL.to_owned(), nanos(at))));
        AttributeValue::M(fields)
    }
}

/// All entries of an item, in the order of their addition.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Entries(pub(crate) Vec<StoredEntry>);

impl Entries {
    /// Reads the outbox of an item.
    pub(crate) fn of(stored: Option<&Item>) -> Result<Self, MalformedItem> {
        let Some(outbox) = stored.and_then(|item| item.get(OUTBOX)) else { return Ok(Self::default()) };
        let entries = outbox.as_l().map_err(|_| MalformedItem(OUTBOX))?;
        entries.iter().map(StoredEntry::decode).collect::<Result<_, _>>().map(Self)
    }

    /// Removes entries regardless of their claims, and adds others at the end.
    pub(crate) fn replace(
        &mut self,
        cancel: &[MessageId],
        add: &[Entry],
        doing: &str,
    ) -> Result<(), StoreError> {
        let added = add.iter().map(|entry| entry.id);
        let removed: Vec<String> = cancel.iter().copied().chain(added).map(|id| id.to_string()).collect();
        self.0.retain(|entry| !removed.contains(&entry.id));
        for entry in add {
            self.0.push(StoredEntry::of(entry).map_err(|error| StoreError::unusable(doing, error))?);
        }
        Ok(())
    }

    /// Claims all ready entries. Returns `true` if there are any.
    pub(crate) fn claim(
        &mut self,
        now: Timestamp,
        until: Timestamp,
        doing: &str,
    ) -> Result<bool, StoreError> {
        let mut is_changed = false;
        for entry in self.0.iter_mut().filter(|entry| entry.is_ready(now)) {
            entry.claim(until).map_err(|error| StoreError::unusable(doing, error))?;
            is_changed = true;
        }
        Ok(is_changed)
    }

    /// Returns the entries that are claimed until this time.
    pub(crate) fn claimed_until(&self, until: Timestamp) -> Vec<StoredEntry> {
        self.0.iter().filter(|entry| entry.claimed_until == Some(until)).cloned().collect()
    }

    /// Settles the entries that have the claims of their settlements. Returns `true` if anything changed.
    pub(crate) fn settle(&mut self, settlements: &[Settlement], doing: &str) -> Result<bool, StoreError> {
        let mut is_changed = false;
        for Settlement { id, claim, keep } in settlements {
            let id = id.to_string();
            let is_meant = |entry: &StoredEntry| entry.id == id && entry.claimed_until == *claim;
            let Some(index) = self.0.iter().position(is_meant) else { continue };
            is_changed = true;
            match keep {
                None => drop(self.0.remove(index)),
                Some(entry) => {
                    let kept = StoredEntry::of(entry).map_err(|error| StoreError::unusable(doing, error))?;
                    self.0.splice(index..=index, [kept]);
                }
            }
        }
        Ok(is_changed)
    }

    /// Applies an action to an entry that cannot be read. Returns `false` if no such entry exists.
    pub(crate) fn resolve(&mut self, id: &str, action: &UnreadableAction) -> bool {
        let is_meant = |entry: &StoredEntry| {
            let may_apply = entry.ready_at.is_none() || !matches!(action, UnreadableAction::Requeue(_));
            entry.id == id && may_apply && entry.entry().is_err()
        };
        let Some(index) = self.0.iter().position(is_meant) else { return false };
        let entry = &mut self.0[index];
        match action {
            UnreadableAction::Poison(_) => (entry.is_exhausted, entry.ready_at) = (true, None),
            UnreadableAction::Requeue(at) => {
                (entry.is_exhausted, entry.claimed_until, entry.ready_at) = (false, None, Some(*at));
            }
            UnreadableAction::Delete => drop(self.0.remove(index)),
        }
        true
    }

    /// Stores the entries in an item of a kind, with its positions in the indexes and its expiry.
    pub(crate) fn store(&self, stored: &mut Item, kind: &str, id: Uuid) -> Result<(), MalformedItem> {
        let ready = self.0.iter().filter_map(|entry| entry.ready_at).min();
        let shard = text(shard(kind, id));
        for name in [OUTBOX, READY.partition, READY.sort, POISONED.partition] {
            stored.remove(name);
        }
        if !self.0.is_empty() {
            item::set(stored, OUTBOX, AttributeValue::L(self.0.iter().map(StoredEntry::encode).collect()));
        }
        if let Some(ready) = ready {
            item::set(stored, READY.partition, shard.clone());
            item::set(stored, READY.sort, text(sortable(ready)));
        }
        if self.0.iter().any(|entry| entry.is_exhausted) {
            item::set(stored, POISONED.partition, shard);
        }
        let keep_until = item::time_of(stored, KEEP_UNTIL)?;
        item::expire(stored, keep_until.filter(|_| self.0.is_empty()));
        Ok(())
    }

    /// Returns the entries for operators.
    pub(crate) fn shown(&self, stored: &Item, filter: EntryFilter) -> Vec<EntryResult> {
        let key = item::str_of(stored, KEY).unwrap_or_default();
        let shown = self.0.iter().filter(|entry| entry.is_exhausted || filter == EntryFilter::All);
        shown.map(|entry| entry.read(key)).collect()
    }

    /// Returns the entries that can be read.
    pub(crate) fn readable(&self) -> Vec<Entry> {
        self.0.iter().filter_map(|entry| entry.entry().ok()).collect()
    }
}
