//! The outboxes of sagas and of sessions, as a sweep sees them.

use async_trait::async_trait;
use jiff::Timestamp;
use messages::StoreError;
use outbox::{Entry, InspectOutbox, Owner, Settlement, SweepOutbox};

use crate::coverage::{Call, Phase};
use crate::options::Mutant;
use crate::point::Grant;
use crate::port::{Port, failed};
use crate::world::World;

/// The outboxes of all sagas.
pub(crate) struct SagaOutboxes(pub(crate) Port);

/// The outboxes of all sessions.
pub(crate) struct SessionOutboxes(pub(crate) Port);

#[async_trait]
impl SweepOutbox for SagaOutboxes {
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Owner>, StoreError> {
        let due = move |world: &mut World| {
            let all = world.documents.iter().map(|(id, stored)| (Owner::Saga(*id), &stored.document.outbox));
            due(all, now, limit)
        };
        self.0.call(Call::SAGA_DUE, due).await
    }

    async fn claim_due(
        &self,
        owner: Owner,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Entry>, StoreError> {
        claim(&self.0, Call::SAGA_CLAIM, owner, now, until).await
    }

    async fn settle(&self, owner: Owner, settlements: &[Settlement]) -> Result<(), StoreError> {
        let settlements = settlements.to_vec();
        self.0.call(Call::SAGA_SETTLE, move |world| world.settle(owner, &settlements)).await
    }
}

#[async_trait]
impl SweepOutbox for SessionOutboxes {
    async fn due(&self, now: Timestamp, limit: usize) -> Result<Vec<Owner>, StoreError> {
        let due = move |world: &mut World| {
            let all = world.sessions.iter().map(|(id, stored)| (Owner::Session(*id), &stored.outbox));
            due(all, now, limit)
        };
        self.0.call(Call::SESSION_DUE, due).await
    }

    async fn claim_due(
        &self,
        owner: Owner,
        now: Timestamp,
        until: Timestamp,
    ) -> Result<Vec<Entry>, StoreError> {
        claim(&self.0, Call::SESSION_CLAIM, owner, now, until).await
    }

    async fn settle(&self, owner: Owner, settlements: &[Settlement]) -> Result<(), StoreError> {
        let settlements = settlements.to_vec();
        self.0.call(Call::SESSION_SETTLE, move |world| world.settle(owner, &settlements)).await
    }
}

/// For operators, of whom there are none here.
#[async_trait]
impl InspectOutbox for SagaOutboxes {
    async fn pending(
        &self,
        after: Option<Owner>,
        limit: usize,
    ) -> Result<Vec<(Owner, Vec<Entry>)>, StoreError> {
        Ok(self.0.universe.with(|world| {
            let all = world.documents.iter().map(|(id, stored)| (Owner::Saga(*id), &stored.document.outbox));
            pending(all, after, limit)
        }))
    }

    async fn plan(&self) -> Result<String, StoreError> {
        Ok("in memory".to_owned())
    }
}

#[async_trait]
impl InspectOutbox for SessionOutboxes {
    async fn pending(
        &self,
        after: Option<Owner>,
        limit: usize,
    ) -> Result<Vec<(Owner, Vec<Entry>)>, StoreError> {
        Ok(self.0.universe.with(|world| {
            let all = world.sessions.iter().map(|(id, stored)| (Owner::Session(*id), &stored.outbox));
            pending(all, after, limit)
        }))
    }

    async fn plan(&self) -> Result<String, StoreError> {
        Ok("in memory".to_owned())
    }
}

fn pending<'a>(
    all: impl Iterator<Item = (Owner, &'a Vec<Entry>)>,
    after: Option<Owner>,
    limit: usize,
) -> Vec<(Owner, Vec<Entry>)> {
    let left = all.filter(|(owner, outbox)| Some(*owner) > after && !outbox.is_empty());
    left.take(limit).map(|(owner, outbox)| (owner, outbox.clone())).collect()
}

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
    owner: Owner,
    now: Timestamp,
    until: Timestamp,
) -> Result<Vec<Entry>, StoreError> {
    if !port.has(Mutant::ReadThenMarkClaim) {
        let act = move |world: &mut World| {
            let ready = world.ready(owner, now);
            world.mark(owner, ready, now, until)
        };
        return port.call(call, act).await;
    }
    let ready = port.perform(|world| world.ready(owner, now));
    match port.gate(call, Phase::Before).await {
        Grant::Go | Grant::Stale => Ok(port.perform(|world| world.mark(owner, ready, now, until))),
        Grant::Fail | Grant::Late => Err(failed(call)),
    }
}

impl World {
    fn ready(&mut self, owner: Owner, now: Timestamp) -> Vec<Entry> {
        let ready =
            |outbox: &mut Vec<Entry>| outbox.iter().filter(|entry| entry.is_ready(now)).cloned().collect();
        self.outbox(owner).map_or_else(Vec::new, ready)
    }

    fn mark(&mut self, owner: Owner, mut ready: Vec<Entry>, now: Timestamp, until: Timestamp) -> Vec<Entry> {
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
        ready
    }

    /// Settles entries whose claim is still the one that each settlement names.
    pub(crate) fn settle(&mut self, owner: Owner, settlements: &[Settlement]) {
        let mut gone = Vec::new();
        let Some(outbox) = self.outbox(owner) else { return };
        for settlement in settlements {
            let holds = |entry: &Entry| entry.id == settlement.id && entry.claimed_until == settlement.claim;
            let Some(index) = outbox.iter().position(holds) else { continue };
            gone.push(settlement.id);
            match &settlement.keep {
                None => drop(outbox.remove(index)),
                Some(entry) => outbox[index] = entry.clone(),
            }
        }
        let left = outbox.len();
        self.note(|| format!("outbox.settle    {owner}: {} settled, {left} left", gone.len()));
        for id in gone {
            self.check_unclaimed(owner, id);
        }
    }
}
