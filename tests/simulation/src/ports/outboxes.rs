//! The outboxes of sagas and of sessions, for sweeps and operators.

use async_trait::async_trait;
use jiff::Timestamp;
use messages::{MessageId, StoreError};
use outbox::{
    ClaimedEntries, Entry, EntryResult, InspectOutbox, Kind, OutboxRecord, Owner, Settlement, SweepOutbox,
    Unreadable, UnreadableAction,
};
use saga::SAGA;

use crate::coverage::{Call, Phase};
use crate::options::{Invariant, Mutant};
use crate::point::Grant;
use crate::port::{Port, failed};
use crate::time::timestamp;
use crate::world::{Occasion, World};

/// The time within which an effect is exhausted.
const EXHAUSTS_MS: u64 = 100_000;

pub(crate) struct SagaOutboxes(pub(crate) Port);

pub(crate) struct SessionOutboxes(pub(crate) Port);

macro_rules! outboxes {
    ($of:ident, $all:ident, $owner:path, $due:ident, $claim:ident, $settle:ident) => {
        #[async_trait]
        impl SweepOutbox for $of {
            async fn due(
                &self,
                now: Timestamp,
                limit: usize,
            ) -> Result<Vec<Result<Owner, Unreadable>>, StoreError> {
                let due = move |world: &mut World, is_stale| {
                    let latest = due(world.$all(), now, limit);
                    world.stale_reads.due(Call::$due, latest, is_stale)
                };
                let owners = self.0.read(Call::$due, due).await?;
                Ok(owners.into_iter().map(Ok).collect())
            }

            async fn claim_due(
                &self,
                owners: &[Owner],
                now: Timestamp,
                until: Timestamp,
            ) -> Result<Vec<ClaimedEntries>, StoreError> {
                claim(&self.0, Call::$claim, owners, now, until).await
            }

            async fn settle(&self, settlements: &[(Owner, Vec<Settlement>)]) -> Result<(), StoreError> {
                let settlements = settlements.to_vec();
                let settle = move |world: &mut World| {
                    settlements.iter().for_each(|(owner, settlements)| world.settle(*owner, settlements));
                };
                self.0.call(Call::$settle, settle).await
            }

            async fn resolve_unreadable(
                &self,
                place: &str,
                treatment: &UnreadableAction,
            ) -> Result<(), StoreError> {
                let (place, treatment) = (place.to_owned(), treatment.clone());
                self.0
                    .call(Call::OUTBOX_TREAT, move |world| world.resolve_unreadable(&place, &treatment))
                    .await
            }
        }

        #[async_trait]
        impl InspectOutbox for $of {
            async fn pending(
                &self,
                after: Option<&str>,
                limit: usize,
            ) -> Result<Vec<OutboxRecord>, StoreError> {
                Ok(self.0.universe.with(|world| world.listed(world.$all(), |_| true, after, limit)))
            }

            async fn poisoned(
                &self,
                after: Option<&str>,
                limit: usize,
            ) -> Result<Vec<OutboxRecord>, StoreError> {
                Ok(self
                    .0
                    .universe
                    .with(|world| world.listed(world.$all(), |entry| entry.poisoned, after, limit)))
            }

            async fn entries_of(&self, owner: Owner) -> Result<Vec<EntryResult>, StoreError> {
                Ok(self.0.universe.with(|world| world.entries_of(owner)))
            }

            async fn plan(&self) -> Result<String, StoreError> {
                Ok("in memory".to_owned())
            }
        }
    };
}

outboxes!(SagaOutboxes, saga_outboxes, Owner::Saga, SAGA_DUE, SAGA_CLAIM, SAGA_SETTLE);
outboxes!(SessionOutboxes, session_outboxes, Owner::Session, SESSION_DUE, SESSION_CLAIM, SESSION_SETTLE);

fn due<'a>(all: impl Iterator<Item = (Owner, &'a Vec<Entry>)>, now: Timestamp, limit: usize) -> Vec<Owner> {
    let first = |outbox: &Vec<Entry>| outbox.iter().filter_map(Entry::ready_at).min();
    let mut found: Vec<(Timestamp, Owner)> = all
        .filter_map(|(owner, outbox)| Some((first(outbox)?, owner)))
        .filter(|(at, _)| *at <= now)
        .collect();
    found.sort_unstable();
    found.into_iter().take(limit).map(|(_, owner)| owner).collect()
}

async fn claim(
    port: &Port,
    call: Call,
    owners: &[Owner],
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<ClaimedEntries>, StoreError> {
    let owners = owners.to_vec();
    let claimed = if port.has(Mutant::ReadThenMarkClaim) {
        let ready: Vec<Vec<Entry>> =
            port.perform(|world| owners.iter().map(|owner| world.ready(*owner, now)).collect());
        match port.gate(call, Phase::Before).await {
            Grant::Go | Grant::Twice | Grant::Stale => port.perform(|world| {
                let marked =
                    owners.iter().zip(ready).map(|(owner, ready)| world.mark(*owner, ready, now, until));
                marked.collect::<Vec<_>>()
            }),
            Grant::Fail | Grant::Late => return Err(failed(call)),
        }
    } else {
        let act = move |world: &mut World| {
            let claim = |owner: &Owner| {
                let ready = world.ready(*owner, now);
                world.mark(*owner, ready, now, until)
            };
            owners.iter().map(claim).collect::<Vec<_>>()
        };
        port.call(call, act).await?
    };
    let is_unreadable = |stored: &EntryResult| stored.is_err();
    if port.has(Mutant::UnreadableStopsSweep) && claimed.iter().flatten().any(is_unreadable) {
        return Err(failed(call));
    }
    Ok(claimed.into_iter().map(Ok).collect())
}

impl World {
    fn saga_outboxes(&self) -> impl Iterator<Item = (Owner, &Vec<Entry>)> {
        self.documents.iter().map(|(id, stored)| (Owner::Saga(*id), &stored.document.outbox))
    }

    fn session_outboxes(&self) -> impl Iterator<Item = (Owner, &Vec<Entry>)> {
        self.sessions.iter().map(|(id, stored)| (Owner::Session(*id), &stored.outbox))
    }

    fn outboxes(&self) -> impl Iterator<Item = (Owner, &Vec<Entry>)> {
        self.saga_outboxes().chain(self.session_outboxes())
    }

    /// Returns records with such entries, and only these entries.
    fn listed<'a>(
        &'a self,
        all: impl Iterator<Item = (Owner, &'a Vec<Entry>)>,
        is_shown: fn(&Entry) -> bool,
        after: Option<&str>,
        limit: usize,
    ) -> Vec<OutboxRecord> {
        let listed = all.map(|(owner, outbox)| OutboxRecord {
            id: owner.to_string(),
            owner: Some(owner),
            entries: outbox.iter().filter(|entry| is_shown(entry)).map(|entry| self.read(entry)).collect(),
        });
        listed.filter(|shown| !shown.entries.is_empty() && Some(&*shown.id) > after).take(limit).collect()
    }

    /// Returns the entries of a record as read by this version.
    fn entries_of(&self, owner: Owner) -> Vec<EntryResult> {
        let of_record = self.outboxes().filter(|(of, _)| *of == owner);
        of_record.flat_map(|(_, outbox)| outbox).map(|entry| self.read(entry)).collect()
    }

    /// Returns an entry as read by this version.
    fn read(&self, entry: &Entry) -> EntryResult {
        match self.unreadable.contains(&entry.id) {
            false => Ok(entry.clone()),
            true => {
                Err(Unreadable { place: entry.id.to_string(), why: "it is of a later release".to_owned() })
            }
        }
    }

    fn ready(&mut self, owner: Owner, now: Timestamp) -> Vec<Entry> {
        let ready =
            |outbox: &mut Vec<Entry>| outbox.iter().filter(|entry| entry.is_ready(now)).cloned().collect();
        self.outbox(owner).map_or_else(Vec::new, ready)
    }

    fn mark(
        &mut self,
        owner: Owner,
        mut ready: Vec<Entry>,
        now: Timestamp,
        until: Timestamp,
    ) -> Vec<EntryResult> {
        for entry in &mut ready {
            entry.claimed_until = Some(until);
        }
        if let Some(outbox) = self.outbox(owner) {
            for entry in outbox.iter_mut().filter(|entry| ready.iter().any(|taken| taken.id == entry.id)) {
                entry.claimed_until = Some(until);
            }
        }
        self.note(|| format!("outbox.claim     {owner}: {} entries", ready.len()));
        self.check_claimed(owner, &ready, now, until);
        self.mint_again(&mut ready);
        ready.iter().map(|entry| self.read(entry)).collect()
    }

    /// Settles entries whose claim is still the claim in the settlement.
    pub(crate) fn settle(&mut self, owner: Owner, settlements: &[Settlement]) {
        let mut gone = Vec::new();
        let mut given_up = None;
        let Some(outbox) = self.outbox(owner) else { return };
        for settlement in settlements {
            let holds = |entry: &Entry| entry.id == settlement.id && entry.claimed_until == settlement.claim;
            let Some(index) = outbox.iter().position(holds) else { continue };
            gone.push(settlement.id);
            match &settlement.keep {
                None => drop(outbox.remove(index)),
                Some(entry) => {
                    if entry.poisoned {
                        given_up = Some(entry.clone());
                    }
                    outbox[index] = entry.clone();
                }
            }
        }
        let left = outbox.len();
        self.note(|| format!("outbox.settle    {owner}: {} settled, {left} left", gone.len()));
        if let Some(Entry { id, attempts, error, .. }) = given_up {
            // Simulated outages are shorter than the retry time of an entry, and all messages are valid.
            let why = error.unwrap_or_default();
            let detail = || format!("entry {id} of {owner} was exhausted after {attempts} attempts: {why}");
            self.violate(Invariant::Quiescence, detail);
        }
        for id in gone {
            self.check_unclaimed(owner, id);
        }
    }

    fn resolve_unreadable(&mut self, place: &str, treatment: &UnreadableAction) {
        self.note(|| format!("outbox.treat     {place}: {treatment:?}"));
        if let UnreadableAction::Poison(_) = treatment {
            self.check_set_aside(place);
        }
        let sagas = self.documents.values_mut().map(|stored| &mut stored.document.outbox);
        let sessions = self.sessions.values_mut().map(|stored| &mut stored.outbox);
        for outbox in sagas.chain(sessions) {
            match treatment {
                UnreadableAction::Delete => outbox.retain(|entry| entry.id.to_string() != place),
                UnreadableAction::Poison(why) => {
                    for entry in outbox.iter_mut().filter(|entry| entry.id.to_string() == place) {
                        (entry.poisoned, entry.error) = (true, Some(why.clone()));
                    }
                }
                UnreadableAction::Requeue(now) => {
                    for entry in
                        outbox.iter_mut().filter(|entry| entry.poisoned && entry.id.to_string() == place)
                    {
                        *entry = entry.requeued(*now);
                    }
                }
            }
        }
    }

    /// Puts an unreadable entry into an outbox.
    pub(crate) fn damage(&mut self) {
        let Some(owner) = self.any(|_| true).map(|(owner, _)| owner) else { return };
        let id = MessageId::from_uuid(self.fresh_id());
        let now = timestamp(self.now + self.rng.below(100_000));
        let entry = Entry {
            id,
            kind: Kind::Message(SAGA),
            payload: String::new(),
            due_at: now,
            attempts: 0,
            next_attempt_at: now,
            claimed_until: None,
            poisoned: false,
            error: None,
            requeued: 0,
        };
        let Some(outbox) = self.outbox(owner) else { return };
        outbox.insert(0, entry);
        self.unreadable.insert(id);
        self.stats.unreadable += 1;
        self.note(|| format!("{owner} has an entry that cannot be read: {id}"));
    }

    /// Exhausts the retries of a message, as if it could not be sent. Workers only send due entries, so this function
    /// waits until an entry is due.
    pub(crate) fn exhaust_entry(&mut self) {
        let now = timestamp(self.now);
        let fails = |entry: &Entry| entry.is_message() && !entry.poisoned && entry.is_due(now);
        let Some((owner, id)) = self.any(fails) else {
            let at = self.now + self.rng.below(1_000);
            if at < EXHAUSTS_MS {
                self.at(at, Occasion::Act(Box::new(Self::exhaust_entry)));
            }
            return;
        };
        let Some(outbox) = self.outbox(owner) else { return };
        for entry in outbox.iter_mut().filter(|entry| entry.id == id) {
            (entry.poisoned, entry.error) = (true, Some("its retries are exhausted".to_owned()));
        }
        self.exhausted_at.insert(id, self.now);
        self.check_unclaimed(owner, id);
        self.note(|| format!("{id} of {owner} is exhausted"));
    }

    fn any(&mut self, suits: impl Fn(&Entry) -> bool) -> Option<(Owner, MessageId)> {
        let all = self.outboxes().flat_map(|(owner, outbox)| outbox.iter().map(move |entry| (owner, entry)));
        let all = all.filter(|(_, entry)| !self.unreadable.contains(&entry.id) && suits(entry));
        let all: Vec<(Owner, MessageId)> = all.map(|(owner, entry)| (owner, entry.id)).collect();
        (!all.is_empty()).then(|| self.rng.pick(&all))
    }

    /// Returns the entries that wait for an operator.
    pub(crate) fn has_exhausted_entries(&self) -> bool {
        self.outboxes().flat_map(|(_, outbox)| outbox).any(|entry| self.waits_for_operator(entry))
    }

    fn waits_for_operator(&self, entry: &Entry) -> bool {
        entry.poisoned && !self.unreadable.contains(&entry.id)
    }

    /// Returns `true` if an outbox contains only unreadable entries, which are set aside.
    pub(crate) fn is_done_with(&self, outbox: &[Entry]) -> bool {
        outbox.iter().all(|entry| entry.poisoned && self.unreadable.contains(&entry.id))
    }
}
