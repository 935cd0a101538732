//! The outbox as a sweeper sees it.

use std::collections::BTreeSet;

use futures::future::join_all;
use jiff::Timestamp;
use messages::{PartitionKey, StoreError};
use outbox::{Entry, Owner, Settlement};

use super::Ports;
use crate::{Checked, sample};

/// Checks every promise.
///
/// # Errors
/// When a port fails.
pub async fn all(ports: &Ports<'_>) -> Checked {
    due_finds_what_is_ready_and_nothing_else(ports).await?;
    due_lists_the_longest_waiting_first_each_once(ports).await?;
    due_is_served_by_an_index(ports).await?;
    a_claim_takes_every_ready_entry_and_no_other(ports).await?;
    no_entry_is_claimed_by_two_at_once(ports).await?;
    a_stuck_claim_is_taken_over(ports).await?;
    a_failed_entry_is_claimed_again_when_its_time_has_come(ports).await?;
    every_record_with_entries_is_shown_once_with_all_of_them(ports).await?;
    a_poisoned_entry_is_put_back_to_work_by_a_settlement(ports).await
}

/// The store says so itself.
///
/// # Errors
/// When a port fails.
pub async fn due_is_served_by_an_index(ports: &Ports<'_>) -> Checked {
    let plan = ports.sweep.plan().await?;
    assert!(plan.contains("outbox_ready"), "{plan}");
    Ok(())
}

/// Whatever state the entries are in; page by page in the order of ids, and none whose outbox is empty.
///
/// # Errors
/// When a port fails.
pub async fn every_record_with_entries_is_shown_once_with_all_of_them(ports: &Ports<'_>) -> Checked {
    let now = sample::now(ports.host);
    let entry = |due_at| sample::entry(ports.host, sample::partition(ports.host), due_at);
    let poisoned = Entry { poisoned: true, error: Some("no".to_owned()), ..entry(now)? };
    let outboxes = [
        vec![entry(now)?, poisoned],
        vec![entry(sample::later(now, 60))?],
        Vec::new(),
        vec![Entry { claimed_until: Some(sample::later(now, 60)), ..entry(now)? }],
    ];
    let mut expected = Vec::new();
    for entries in outboxes {
        let partition = ports.create(entries.clone()).await?;
        expected.push((Owner::Saga(partition), entries));
    }
    let ours: BTreeSet<Owner> = expected.iter().map(|(owner, _)| *owner).collect();
    expected.retain(|(_, entries)| !entries.is_empty());
    expected.sort_by_key(|(owner, _)| *owner);
    let (mut shown, mut after) = (Vec::new(), None);
    loop {
        let page = ports.sweep.pending(after, 2).await?;
        let Some((last, _)) = page.last() else { break };
        assert!(page.len() <= 2);
        after = Some(*last);
        shown.extend(page.into_iter().filter(|(owner, _)| ours.contains(owner)));
    }
    assert_eq!(shown, expected);
    Ok(())
}

/// It is due at once, has its attempts before it, and counts how often that was done; who saw an older claim changes
/// nothing.
///
/// # Errors
/// When a port fails.
pub async fn a_poisoned_entry_is_put_back_to_work_by_a_settlement(ports: &Ports<'_>) -> Checked {
    let now = sample::now(ports.host);
    let entry = sample::entry(ports.host, sample::partition(ports.host), now)?;
    let poisoned = Entry { poisoned: true, attempts: 5, error: Some("no".to_owned()), ..entry };
    let partition = ports.create(vec![poisoned.clone()]).await?;
    let requeue = Settlement { id: poisoned.id, claim: None, keep: Some(poisoned.requeued(now)) };
    ports.sweep.settle(Owner::Saga(partition), std::slice::from_ref(&requeue)).await?;
    let claimed = ports.sweep.claim_due(Owner::Saga(partition), now, sample::later(now, 300)).await?;
    let states: Vec<_> =
        claimed.iter().map(|entry| (entry.attempts, entry.requeued, entry.poisoned)).collect();
    assert_eq!(states, [(0, 1, false)]);
    ports.sweep.settle(Owner::Saga(partition), &[requeue]).await?;
    assert_eq!(ports.stored(partition).await?.outbox, claimed, "it is claimed now");
    Ok(())
}

/// Enough for everything that a store in use may hold.
const MANY: usize = 100_000;

async fn is_due(ports: &Ports<'_>, partition: PartitionKey, now: Timestamp) -> Result<bool, StoreError> {
    Ok(ports.sweep.due(now, MANY).await?.contains(&Owner::Saga(partition)))
}

/// Not what is in the future, poisoned or claimed; a claim that has run out is stuck and is found.
///
/// # Errors
/// When a port fails.
pub async fn due_finds_what_is_ready_and_nothing_else(ports: &Ports<'_>) -> Checked {
    let now = sample::now(ports.host);
    let id = sample::partition(ports.host);
    let entry = |due_at| sample::entry(ports.host, id, due_at);
    let ready = ports.create(vec![entry(now)?]).await?;
    let future = ports.create(vec![entry(sample::later(now, 60))?]).await?;
    let poisoned = ports.create(vec![Entry { poisoned: true, ..entry(now)? }]).await?;
    let failed = ports.create(vec![Entry { next_attempt_at: sample::later(now, 60), ..entry(now)? }]).await?;
    let empty = ports.create(Vec::new()).await?;
    assert!(is_due(ports, ready, now).await?);
    for (partition, what) in
        [(future, "future"), (poisoned, "poisoned"), (failed, "failed"), (empty, "empty")]
    {
        assert!(!is_due(ports, partition, now).await?, "{what} is found");
    }
    for (partition, found) in [(future, true), (failed, true), (poisoned, false), (empty, false)] {
        assert_eq!(is_due(ports, partition, sample::later(now, 60)).await?, found);
    }
    ports.sweep.claim_due(Owner::Saga(ready), now, sample::later(now, 300)).await?;
    assert!(!is_due(ports, ready, sample::later(now, 299)).await?, "claimed is found");
    assert!(is_due(ports, ready, sample::later(now, 300)).await?, "stuck is not found");
    Ok(())
}

/// However many of its entries are ready; cut off at the limit.
///
/// # Errors
/// When a port fails.
pub async fn due_lists_the_longest_waiting_first_each_once(ports: &Ports<'_>) -> Checked {
    let now = sample::now(ports.host);
    let id = sample::partition(ports.host);
    // Older than anything else in the store, so that the limit cuts off ours.
    let entry = |seconds| sample::entry(ports.host, id, sample::later(Timestamp::UNIX_EPOCH, seconds));
    let second = ports.create(vec![entry(20)?, entry(21)?, entry(22)?]).await?;
    let first = ports.create(vec![entry(50)?, entry(10)?]).await?;
    let third = ports.create(vec![entry(30)?]).await?;
    let ours: Vec<Owner> = ports
        .sweep
        .due(now, MANY)
        .await?
        .into_iter()
        .filter(|owner| [first, second, third].map(Owner::Saga).contains(owner))
        .collect();
    assert_eq!(ours, [first, second, third].map(Owner::Saga));
    assert_eq!(ports.sweep.due(now, 2).await?.len(), 2);
    for partition in [first, second, third] {
        remove_all(ports, partition, now).await?;
    }
    Ok(())
}

async fn remove_all(ports: &Ports<'_>, partition: PartitionKey, now: Timestamp) -> Result<(), StoreError> {
    let claimed = ports.sweep.claim_due(Owner::Saga(partition), now, sample::later(now, 300)).await?;
    let done = |entry: &Entry| Settlement { id: entry.id, claim: entry.claimed_until, keep: None };
    ports.sweep.settle(Owner::Saga(partition), &claimed.iter().map(done).collect::<Vec<_>>()).await
}

/// With the claim in them.
///
/// # Errors
/// When a port fails.
pub async fn a_claim_takes_every_ready_entry_and_no_other(ports: &Ports<'_>) -> Checked {
    let now = sample::now(ports.host);
    let id = sample::partition(ports.host);
    let entries = vec![
        sample::entry(ports.host, id, now)?,
        sample::entry(ports.host, id, sample::later(now, 60))?,
        Entry { poisoned: true, ..sample::entry(ports.host, id, now)? },
        sample::entry(ports.host, id, now)?,
    ];
    let partition = ports.create(entries.clone()).await?;
    let until = sample::later(now, 300);
    let claimed = ports.sweep.claim_due(Owner::Saga(partition), now, until).await?;
    let expected: Vec<Entry> = entries
        .iter()
        .filter(|entry| entry.is_ready(now))
        .map(|entry| Entry { claimed_until: Some(until), ..entry.clone() })
        .collect();
    assert_eq!(claimed, expected);
    assert_eq!(ports.sweep.claim_due(Owner::Saga(partition), now, until).await?, []);
    let stored: Vec<Entry> = entries
        .iter()
        .map(|entry| expected.iter().find(|claimed| claimed.id == entry.id).unwrap_or(entry).clone())
        .collect();
    assert_eq!(
        ports.stored(partition).await?.outbox,
        stored,
        "claiming changes no other entry and removes none"
    );
    assert_eq!(ports.sweep.claim_due(Owner::Saga(sample::partition(ports.host)), now, until).await?, []);
    Ok(())
}

/// While the claim lasts.
///
/// # Errors
/// When a port fails.
pub async fn no_entry_is_claimed_by_two_at_once(ports: &Ports<'_>) -> Checked {
    let now = sample::now(ports.host);
    let id = sample::partition(ports.host);
    let entries = (0..5).map(|_| sample::entry(ports.host, id, now)).collect::<Result<Vec<_>, _>>()?;
    let partition = ports.create(entries).await?;
    let claims =
        (0..8).map(|n| ports.sweep.claim_due(Owner::Saga(partition), now, sample::later(now, 300 + n)));
    let mut seen = BTreeSet::new();
    for claimed in join_all(claims).await {
        for entry in claimed? {
            assert!(seen.insert(entry.id), "entry {} was claimed twice", entry.id);
        }
    }
    assert_eq!(seen.len(), 5);
    Ok(())
}

/// And whoever held it before settles nothing any more.
///
/// # Errors
/// When a port fails.
pub async fn a_stuck_claim_is_taken_over(ports: &Ports<'_>) -> Checked {
    let now = sample::now(ports.host);
    let entry = sample::entry(ports.host, sample::partition(ports.host), now)?;
    let partition = ports.create(vec![entry]).await?;
    let owner = Owner::Saga(partition);
    let stuck = ports.sweep.claim_due(owner, now, sample::later(now, 300)).await?;
    let over = ports.sweep.claim_due(owner, sample::later(now, 300), sample::later(now, 600)).await?;
    assert_eq!(over.len(), 1);
    let done = |entries: &[Entry]| -> Vec<Settlement> {
        entries
            .iter()
            .map(|entry| Settlement { id: entry.id, claim: entry.claimed_until, keep: None })
            .collect()
    };
    ports.sweep.settle(owner, &done(&stuck)).await?;
    assert_eq!(ports.stored(partition).await?.outbox, over, "the earlier claim settles nothing");
    ports.sweep.settle(owner, &done(&over)).await?;
    assert_eq!(ports.stored(partition).await?.outbox, []);
    Ok(())
}

/// Not before, and never once it is poisoned.
///
/// # Errors
/// When a port fails.
pub async fn a_failed_entry_is_claimed_again_when_its_time_has_come(ports: &Ports<'_>) -> Checked {
    let now = sample::now(ports.host);
    let entry = sample::entry(ports.host, sample::partition(ports.host), now)?;
    let partition = ports.create(vec![entry]).await?;
    let owner = Owner::Saga(partition);
    let fail = async |at: Timestamp, poisoned: bool| -> Result<usize, StoreError> {
        let claimed = ports.sweep.claim_due(owner, at, sample::later(at, 300)).await?;
        let keep = |entry: &Entry| Entry {
            attempts: entry.attempts + 1,
            next_attempt_at: sample::later(at, 10),
            claimed_until: None,
            poisoned,
            error: Some("refused".to_owned()),
            ..entry.clone()
        };
        let settlements: Vec<Settlement> = claimed
            .iter()
            .map(|entry| Settlement { id: entry.id, claim: entry.claimed_until, keep: Some(keep(entry)) })
            .collect();
        ports.sweep.settle(owner, &settlements).await?;
        Ok(claimed.len())
    };
    assert_eq!(fail(now, false).await?, 1);
    assert_eq!(fail(sample::later(now, 9), false).await?, 0, "too early");
    assert_eq!(fail(sample::later(now, 10), true).await?, 1);
    assert_eq!(fail(sample::later(now, 10_000), true).await?, 0, "poisoned");
    let kept = ports.stored(partition).await?.outbox;
    assert!(kept.iter().all(|entry| entry.poisoned && entry.attempts == 2) && kept.len() == 1);
    Ok(())
}
