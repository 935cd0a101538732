//! The outbox, for the worker that stored it.

use messages::PartitionKey;
use outbox::policy::Failure;
use outbox::{Entry, Owner, Policy, Settlement};
use saga::{Persist, PersistOutcome};

use super::Ports;
use crate::outboxes::{claim, settle};
use crate::{CheckResult, sample};

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    write_adds_and_cancels_entries_in_order(ports).await?;
    a_performed_entry_is_removed(ports).await?;
    failed_entry_is_kept_as_settled(ports).await?;
    settlement_of_another_claim_changes_nothing(ports).await?;
    one_call_settles_entries_of_several_partitions(ports).await?;
    settlement_does_not_change_the_version(ports).await
}

async fn with_entries(
    ports: &Ports<'_>,
    count: usize,
) -> Result<(PartitionKey, Vec<Entry>), Box<dyn std::error::Error + Send + Sync>> {
    let (partition, now) = (sample::partition(ports.host), sample::now(ports.host));
    let mut add = Vec::new();
    for _ in 0..count {
        add.push(sample::entry(ports.host, partition, now)?);
    }
    let write = Persist {
        add: add.clone(),
        ..sample::persist(partition, None, sample::content(ports.host, "entries"))
    };
    assert_eq!(ports.persist(write).await?, PersistOutcome::Stored);
    Ok((partition, add))
}

fn done(entry: &Entry) -> Settlement {
    Settlement { id: entry.id, claim: entry.claimed_until, keep: None }
}

/// Every field of an entry is returned; cancelling an absent entry succeeds.
pub async fn write_adds_and_cancels_entries_in_order(ports: &Ports<'_>) -> CheckResult {
    let (partition, entries) = with_entries(ports, 3).await?;
    assert_eq!(ports.stored(partition).await?.outbox, entries);
    let [first, second, third] = entries.as_slice() else { panic!("three were added") };
    let timeout = sample::entry(ports.host, partition, sample::later(sample::now(ports.host), 3600))?;
    let write = Persist {
        add: vec![timeout.clone()],
        cancel: vec![second.id, sample::message(ports.host, partition).id],
        ..sample::persist(partition, Some(1), sample::content(ports.host, "changed"))
    };
    assert_eq!(ports.persist(write).await?, PersistOutcome::Stored);
    assert_eq!(ports.stored(partition).await?.outbox, [first.clone(), third.clone(), timeout]);
    Ok(())
}

/// Other entries are kept, and settling the entry again succeeds.
pub async fn a_performed_entry_is_removed(ports: &Ports<'_>) -> CheckResult {
    let (partition, entries) = with_entries(ports, 2).await?;
    let [first, second] = entries.as_slice() else { panic!("two were added") };
    for _ in 0..2 {
        ports.write.settle(&[(partition, vec![done(first)])]).await?;
        assert_eq!(ports.stored(partition).await?.outbox, std::slice::from_ref(second));
    }
    Ok(())
}

/// The kept entry has its attempts, its error and the time of its next attempt, and is exhausted eventually.
pub async fn failed_entry_is_kept_as_settled(ports: &Ports<'_>) -> CheckResult {
    let (partition, entries) = with_entries(ports, 1).await?;
    let (policy, now) = (Policy::default(), sample::now(ports.host));
    let mut entry = entries.first().cloned().ok_or("no entry")?;
    for permanent in [false, true] {
        let failure = Failure { error: "the queue said no: \u{1F6AB}".to_owned(), permanent };
        let settlement = policy.settle(&entry, Err(failure), now, 0.0);
        let kept = settlement.keep.clone().ok_or("it is kept")?;
        ports.write.settle(&[(partition, vec![settlement])]).await?;
        assert_eq!(ports.stored(partition).await?.outbox, std::slice::from_ref(&kept));
        entry = kept;
    }
    assert!(entry.poisoned && entry.attempts == 2);
    Ok(())
}

/// A worker that was overtaken by a sweeper, or by a later claim, settles nothing.
pub async fn settlement_of_another_claim_changes_nothing(ports: &Ports<'_>) -> CheckResult {
    let (partition, entries) = with_entries(ports, 1).await?;
    let now = sample::now(ports.host);
    let unclaimed = entries.first().ok_or("no entry")?;
    let claimed = claim(ports.sweep, Owner::Saga(partition), now, sample::later(now, 300)).await?;
    let mut stale = vec![done(unclaimed)];
    for claim in [None, Some(sample::later(now, 299))] {
        stale.push(Settlement {
            id: unclaimed.id,
            claim,
            keep: Some(Entry { attempts: 9, ..unclaimed.clone() }),
        });
    }
    ports.write.settle(&[(partition, stale.clone())]).await?;
    settle(ports.sweep, Owner::Saga(partition), &stale).await?;
    assert_eq!(ports.stored(partition).await?.outbox, claimed);
    ports.write.settle(&[(partition, claimed.iter().map(done).collect())]).await?;
    assert_eq!(ports.stored(partition).await?.outbox, []);
    Ok(())
}

/// Each settlement is conditional on the claim of its own entries.
pub async fn one_call_settles_entries_of_several_partitions(ports: &Ports<'_>) -> CheckResult {
    let ((one, first), (two, second)) = (with_entries(ports, 2).await?, with_entries(ports, 2).await?);
    let settlements =
        [(one, first.iter().map(done).collect()), (two, second.iter().take(1).map(done).collect::<Vec<_>>())];
    ports.write.settle(&settlements).await?;
    assert_eq!(ports.stored(one).await?.outbox, []);
    assert_eq!(ports.stored(two).await?.outbox, second.split_at(1).1);
    ports.write.settle(&[]).await?;
    Ok(())
}

/// Settling entries does not conflict with the worker that changes the state.
pub async fn settlement_does_not_change_the_version(ports: &Ports<'_>) -> CheckResult {
    let (partition, entries) = with_entries(ports, 1).await?;
    ports.write.settle(&[(partition, entries.iter().map(done).collect())]).await?;
    let write = sample::persist(partition, Some(1), sample::content(ports.host, "after"));
    assert_eq!(ports.persist(write).await?, PersistOutcome::Stored);
    Ok(())
}
