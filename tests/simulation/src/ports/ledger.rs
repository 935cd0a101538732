//! The partition ledger, implemented by the shipped functions on one item.

use async_trait::async_trait;
use dedup::ledger::Item;
use dedup::{Admission, CheckTokens, Claim, ClaimPartition, GrantTokens, Release};
use jiff::Timestamp;
use messages::{PartitionKey, StoreError, Token};

use crate::coverage::Call;
use crate::describe::short;
use crate::options::Mutant;
use crate::port::Port;
use crate::time::timestamp;
use crate::world::World;

#[async_trait]
impl ClaimPartition for Port {
    async fn claim(&self, claim: &Claim) -> Result<Admission, StoreError> {
        let (claim, partition) = (claim.clone(), claim.partition);
        self.perform(|world| world.check_scope(partition));
        self.perform(|world| world.record_new_attempt(partition));
        let copy = claim.clone();
        self.perform(|world| world.may_repeat(Call::LEDGER_CLAIM, move |world| drop(world.claim(&copy))));
        let answer = self.call(Call::LEDGER_CLAIM, move |world| world.claim(&claim)).await;
        if answer.is_err() {
            self.perform(|world| world.record_permanent_failure(partition));
        }
        answer
    }

    async fn release(&self, release: &Release) -> Result<bool, StoreError> {
        let release = release.clone();
        let copy = release.clone();
        self.perform(|world| world.may_repeat(Call::LEDGER_RELEASE, move |world| _ = world.release(&copy)));
        self.call(Call::LEDGER_RELEASE, move |world| world.release(&release)).await
    }
}

#[async_trait]
impl GrantTokens for Port {
    async fn grant(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        if self.grants_later(partition, tokens) {
            return Ok(());
        }
        let tokens = tokens.to_vec();
        self.call(Call::LEDGER_GRANT, move |world| world.grant(partition, &tokens, now)).await
    }

    async fn begin(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let tokens = tokens.to_vec();
        let begin = move |world: &mut World| {
            let (are_there, begun) = Item::create_if_absent(world.item(partition), &tokens, now);
            world.note(|| format!("ledger.begin     {}: {} tokens", short(&partition), tokens.len()));
            if let Some(item) = begun {
                world.keep(partition, item);
                world.granted(partition, &tokens);
            }
            are_there
        };
        self.call(Call::LEDGER_GRANT, begin).await
    }

    async fn revoke(
        &self,
        partition: PartitionKey,
        tokens: &[Token],
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let tokens = tokens.to_vec();
        let revoke = move |world: &mut World| {
            let before = world.item(partition);
            let count = before.as_ref().map_or(0, |item| item.tokens.len());
            if let Some(item) = Item::without_tokens(before, &tokens, now) {
                world.revoked(partition, count - item.tokens.len());
                world.keep(partition, item);
            }
            world.note(|| format!("ledger.revoke    {}: {} tokens", short(&partition), tokens.len()));
        };
        self.call(Call::LEDGER_REVOKE, revoke).await
    }
}

#[async_trait]
impl CheckTokens for Port {
    async fn is_granted(
        &self,
        partition: PartitionKey,
        token: &Token,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let token = token.clone();
        let look = move |world: &mut World| {
            let granted = world.item(partition).is_some_and(|item| item.is_granted(&token, now));
            granted || world.has(Mutant::ReplyTokenUnchecked)
        };
        self.call(Call::LEDGER_CHECK, look).await
    }
}

impl World {
    pub(crate) fn grant(&mut self, partition: PartitionKey, tokens: &[Token], now: Timestamp) {
        let item = Item::with_tokens(self.item(partition), tokens, now);
        self.keep(partition, item);
        self.granted(partition, tokens);
        self.note(|| format!("ledger.grant     {}: {} tokens", short(&partition), tokens.len()));
    }

    /// Returns the item of a partition. The store deletes it some time after it has expired.
    fn item(&mut self, partition: PartitionKey) -> Option<Item> {
        let now = timestamp(self.now);
        if self.deletes_at_once && self.items.get(&partition).is_some_and(|item| item.expires_at <= now) {
            self.note(|| format!("the item of {} is deleted", short(&partition)));
            self.items.remove(&partition);
        }
        self.items.get(&partition).cloned()
    }

    fn holds(&self, release: &Release) -> bool {
        let item = self.items.get(&release.partition);
        item.and_then(|item| item.holder).is_some_and(|(attempt, _)| attempt == release.attempt)
    }

    fn keep(&mut self, partition: PartitionKey, mut item: Item) {
        self.forget_early(&mut item);
        self.items.insert(partition, item);
    }

    fn claim(&mut self, claim: &Claim) -> Admission {
        let claim = &self.mutated_claim(claim);
        let (answer, next) = Item::claim(self.item(claim.partition), claim);
        if let Some(item) = next {
            self.keep(claim.partition, item);
            self.claimed(claim);
        }
        if matches!(answer, Admission::Admitted(_)) {
            self.enter(claim);
        }
        self.after_claim(claim, &answer);
        self.note(|| {
            let (partition, attempt) = (short(&claim.partition), short(&claim.attempt));
            let answer = match &answer {
                Admission::Admitted(admitted) => format!("admitted, fence {}", admitted.fence),
                Admission::Duplicate => "duplicate".to_owned(),
                Admission::Busy { .. } => "busy".to_owned(),
                Admission::Moved { fence, .. } => format!("its fence is {fence}"),
            };
            format!("ledger.claim     {partition} attempt {attempt} -> {answer}")
        });
        // A claim that is refused because of its fence has changed nothing, and is repeated.
        match answer {
            Admission::Moved { .. } => _ = self.checks.refused.insert(claim.attempt),
            _ => self.check_tokens(claim.partition),
        }
        answer
    }

    fn release(&mut self, release: &Release) -> bool {
        let asked = release;
        let release = &self.mutated_release(asked);
        let stored = self.item(release.partition);
        let next = stored.and_then(|item| item.release(release));
        let released = next.is_some();
        // A late claim may have changed the fence, and the attempt may still hold the partition with the new fence.
        if released || !self.holds(asked) {
            self.leave(asked);
        }
        if let Some(item) = next {
            self.keep(release.partition, item);
        }
        self.note(|| {
            let (partition, attempt) = (short(&release.partition), short(&release.attempt));
            let (count, ended) = (release.remove.len(), release.ended);
            format!(
                "ledger.release   {partition} attempt {attempt} fence {}: {count} tokens, ended {ended} -> {released}",
                release.fence
            )
        });
        self.check_tokens(release.partition);
        released || self.is_refusal_missed()
    }
}
