//! The outbox, for a sweep.

use std::collections::BTreeSet;

use futures::future::join_all;
use jiff::Timestamp;
use messages::{MessageId, PartitionKey, StoreError};
use outbox::{Entry, EntryResult, OutboxRecord, Owner, Settlement, UnreadableAction};

use super::Ports;
use crate::outboxes::{self, claim, settle};
use crate::{CheckResult, sample};

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    due_lists_only_ready_entries(ports).await?;
    due_lists_each_owner_once_oldest_first(ports).await?;
    due_is_served_by_an_index(ports).await?;
    claim_takes_all_and_only_ready_entries(ports).await?;
    concurrent_claims_share_no_entry(ports).await?;
    repeated_claim_returns_same_entries(ports).await?;
    expired_claim_is_taken_over(ports).await?;
    failed_entry_is_claimed_after_its_delay(ports).await?;
    each_record_is_listed_once_with_entries(ports).await?;
    entries_of_one_record_are_read(ports).await?;
    several_records_are_claimed_and_settled(ports).await?;
    unreadable_entry_does_not_affect_others(ports).await?;
    settlement_requeues_an_exhausted_entry(ports).await
}

/// The store reports its use of the index.
pub async fn due_is_served_by_an_index(ports: &Ports<'_>) -> CheckResult {
    let plan = ports.sweep.plan().await?;
    assert!(plan.contains("outbox_ready"), "{plan}");
    Ok(())
}

/// Records are listed page by page in the order of ids, regardless of the state of their entries, but not those with an
/// empty outbox.
pub async fn each_record_is_listed_once_with_entries(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let entry = |due_at| sample::entry(ports.host, sample::partition(ports.host), due_at);
    let exhausted = Entry { poisoned: true, error: Some("no".to_owned()), ..entry(now)? };
    let outboxes = [
        vec![entry(now)?, exhausted],
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
        let page = ports.sweep.pending(after.as_deref(), 2).await?;
        let Some(last) = page.last() else { break };
        assert!(page.len() <= 2);
        after = Some(last.id.clone());
        shown.extend(
            page.into_iter().filter_map(|OutboxRecord { owner, entries, .. }| Some((owner?, entries))),
        );
    }
    shown.retain(|(owner, _)| ours.contains(owner));
    let expected: Vec<(Owner, Vec<EntryResult>)> =
        expected.into_iter().map(|(owner, entries)| (owner, entries.into_iter().map(Ok).collect())).collect();
    assert_eq!(shown, expected);
    Ok(())
}

/// The entries are read in any state, and without the entries of other records.
pub async fn entries_of_one_record_are_read(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let entry = || sample::entry(ports.host, sample::partition(ports.host), now);
    let exhausted = Entry { poisoned: true, error: Some("no".to_owned()), ..entry()? };
    let claimed = Entry { claimed_until: Some(sample::later(now, 60)), ..entry()? };
    let entries = vec![entry()?, exhausted, claimed];
    ports.create(vec![entry()?]).await?;
    let partition = ports.create(entries.clone()).await?;
    let expected: Vec<EntryResult> = entries.into_iter().map(Ok).collect();
    assert_eq!(ports.sweep.entries_of(Owner::Saga(partition)).await?, expected);
    for without in [ports.create(Vec::new()).await?, sample::partition(ports.host)] {
        assert_eq!(ports.sweep.entries_of(Owner::Saga(without)).await?, []);
    }
    Ok(())
}

/// A requeued entry is due immediately, has no attempts, and counts its requeues. A settlement with an older claim
/// changes nothing.
pub async fn settlement_requeues_an_exhausted_entry(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let entry = sample::entry(ports.host, sample::partition(ports.host), now)?;
    let exhausted = Entry { poisoned: true, attempts: 5, error: Some("no".to_owned()), ..entry };
    let partition = ports.create(vec![exhausted.clone()]).await?;
    let requeue = Settlement { id: exhausted.id, claim: None, keep: Some(exhausted.requeued(now)) };
    settle(ports.sweep, Owner::Saga(partition), std::slice::from_ref(&requeue)).await?;
    let claimed = claim(ports.sweep, Owner::Saga(partition), now, sample::later(now, 300)).await?;
    let states: Vec<_> =
        claimed.iter().map(|entry| (entry.attempts, entry.requeued, entry.poisoned)).collect();
    assert_eq!(states, [(0, 1, false)]);
    settle(ports.sweep, Owner::Saga(partition), &[requeue]).await?;
    assert_eq!(ports.stored(partition).await?.outbox, claimed, "it is claimed now");
    Ok(())
}

/// A limit beyond the number of entries of any store in use.
const MANY: usize = 100_000;

async fn is_due(ports: &Ports<'_>, partition: PartitionKey, now: Timestamp) -> Result<bool, StoreError> {
    outboxes::is_due(ports.sweep, Owner::Saga(partition), now, MANY).await
}

/// Future, exhausted and claimed entries are not listed. An entry with an expired claim is stuck and is listed.
pub async fn due_lists_only_ready_entries(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let id = sample::partition(ports.host);
    let entry = |due_at| sample::entry(ports.host, id, due_at);
    let ready = ports.create(vec![entry(now)?]).await?;
    let future = ports.create(vec![entry(sample::later(now, 60))?]).await?;
    let exhausted = ports.create(vec![Entry { poisoned: true, ..entry(now)? }]).await?;
    let failed = ports.create(vec![Entry { next_attempt_at: sample::later(now, 60), ..entry(now)? }]).await?;
    let empty = ports.create(Vec::new()).await?;
    assert!(is_due(ports, ready, now).await?);
    for (partition, what) in
        [(future, "future"), (exhausted, "exhausted"), (failed, "failed"), (empty, "empty")]
    {
        assert!(!is_due(ports, partition, now).await?, "{what} is found");
    }
    for (partition, found) in [(future, true), (failed, true), (exhausted, false), (empty, false)] {
        assert_eq!(is_due(ports, partition, sample::later(now, 60)).await?, found);
    }
    claim(ports.sweep, Owner::Saga(ready), now, sample::later(now, 300)).await?;
    assert!(!is_due(ports, ready, sample::later(now, 299)).await?, "claimed is found");
    assert!(is_due(ports, ready, sample::later(now, 300)).await?, "stuck is not found");
    Ok(())
}

/// An owner is listed once regardless of its number of ready entries, and the list is limited.
pub async fn due_lists_each_owner_once_oldest_first(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let id = sample::partition(ports.host);
    // Older than all other data in the store, so that the limit applies to these entries.
    let entry = |seconds| sample::entry(ports.host, id, sample::later(Timestamp::UNIX_EPOCH, seconds));
    let second = ports.create(vec![entry(20)?, entry(21)?, entry(22)?]).await?;
    let first = ports.create(vec![entry(50)?, entry(10)?]).await?;
    let third = ports.create(vec![entry(30)?]).await?;
    let ours: Vec<Owner> = ports
        .sweep
        .due(now, MANY)
        .await?
        .into_iter()
        .filter_map(Result::ok)
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
    let claimed = claim(ports.sweep, Owner::Saga(partition), now, sample::later(now, 300)).await?;
    let done = |entry: &Entry| Settlement { id: entry.id, claim: entry.claimed_until, keep: None };
    settle(ports.sweep, Owner::Saga(partition), &claimed.iter().map(done).collect::<Vec<_>>()).await
}

/// The returned entries contain the claim.
pub async fn claim_takes_all_and_only_ready_entries(ports: &Ports<'_>) -> CheckResult {
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
    let claimed = claim(ports.sweep, Owner::Saga(partition), now, until).await?;
    let expected: Vec<Entry> = entries
        .iter()
        .filter(|entry| entry.is_ready(now))
        .map(|entry| Entry { claimed_until: Some(until), ..entry.clone() })
        .collect();
    assert_eq!(claimed, expected);
    let next = sample::later(now, 301);
    assert_eq!(claim(ports.sweep, Owner::Saga(partition), now, next).await?, []);
    let stored: Vec<Entry> = entries
        .iter()
        .map(|entry| expected.iter().find(|claimed| claimed.id == entry.id).unwrap_or(entry).clone())
        .collect();
    assert_eq!(
        ports.stored(partition).await?.outbox,
        stored,
        "claiming changes no other entry and removes none"
    );
    assert_eq!(claim(ports.sweep, Owner::Saga(sample::partition(ports.host)), now, until).await?, []);
    Ok(())
}

/// The response to the first call may have been lost. An entry that was settled or became ready in between is left out or
/// claimed too.
pub async fn repeated_claim_returns_same_entries(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let id = sample::partition(ports.host);
    let soon = sample::later(now, 2);
    let entries: Vec<Entry> = [now, now, soon, sample::later(now, 60)]
        .map(|due| sample::entry(ports.host, id, due))
        .into_iter()
        .collect::<Result<_, _>>()?;
    let owner = Owner::Saga(ports.create(entries.clone()).await?);
    let until = sample::later(now, 300);
    let claimed = claim(ports.sweep, owner, now, until).await?;
    assert_eq!(claim(ports.sweep, owner, now, until).await?, claimed);
    let done = Settlement { id: entries[0].id, claim: Some(until), keep: None };
    settle(ports.sweep, owner, &[done]).await?;
    let expected: Vec<Entry> =
        entries[1..3].iter().map(|entry| Entry { claimed_until: Some(until), ..entry.clone() }).collect();
    assert_eq!(claim(ports.sweep, owner, soon, until).await?, expected);
    assert_eq!(claim(ports.sweep, owner, soon, sample::later(until, 1)).await?, []);
    Ok(())
}

/// This holds while the claim is valid.
pub async fn concurrent_claims_share_no_entry(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let id = sample::partition(ports.host);
    let entries = (0..5).map(|_| sample::entry(ports.host, id, now)).collect::<Result<Vec<_>, _>>()?;
    let partition = ports.create(entries).await?;
    let claims = (0..8).map(|n| claim(ports.sweep, Owner::Saga(partition), now, sample::later(now, 300 + n)));
    let mut seen = BTreeSet::new();
    for claimed in join_all(claims).await {
        for entry in claimed? {
            assert!(seen.insert(entry.id), "entry {} was claimed twice", entry.id);
        }
    }
    assert_eq!(seen.len(), 5);
    Ok(())
}

/// Each record has its own result, in order. An absent record has no entries.
pub async fn several_records_are_claimed_and_settled(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let entry = || sample::entry(ports.host, sample::partition(ports.host), now);
    let first = Owner::Saga(ports.create(vec![entry()?, entry()?]).await?);
    let absent = Owner::Saga(sample::partition(ports.host));
    let second = Owner::Saga(ports.create(vec![entry()?]).await?);
    let until = sample::later(now, 300);
    let claimed = ports.sweep.claim_due(&[first, absent, second], now, until).await?;
    let claimed: Vec<Vec<EntryResult>> = claimed.into_iter().collect::<Result<_, _>>()?;
    assert_eq!(claimed.iter().map(Vec::len).collect::<Vec<_>>(), [2, 0, 1]);
    let done = |stored: &EntryResult| {
        let entry = stored.as_ref().ok()?;
        Some(Settlement { id: entry.id, claim: entry.claimed_until, keep: None })
    };
    let settlements = [first, second].into_iter().zip([&claimed[0], &claimed[2]]);
    let settlements: Vec<_> =
        settlements.map(|(owner, stored)| (owner, stored.iter().filter_map(done).collect())).collect();
    ports.sweep.settle(&settlements).await?;
    for owner in [first, second] {
        assert_eq!(claim(ports.sweep, owner, until, sample::later(until, 300)).await?, [], "nothing is left");
    }
    Ok(())
}

/// An unreadable entry is claimed with its reason, hides no other entry, is kept when its document is written, and is
/// marked as exhausted, requeued and deleted by its position.
pub async fn unreadable_entry_does_not_affect_others(ports: &Ports<'_>) -> CheckResult {
    let Some(damage) = ports.damage_entry else { return Ok(()) };
    let now = sample::now(ports.host);
    let entry = || sample::entry(ports.host, sample::partition(ports.host), now);
    let (good, bad) = (entry()?, entry()?);
    let partition = ports.create(vec![good.clone(), bad.clone()]).await?;
    let owner = Owner::Saga(partition);
    damage(partition, bad.id).await?;
    assert_eq!(ports.stored(partition).await?.outbox, std::slice::from_ref(&good), "the document is read");
    let write = sample::persist(partition, Some(1), sample::content(ports.host, "written"));
    assert_eq!(ports.persist(write).await?, saga::PersistOutcome::Stored);
    let take = async |at: Timestamp| -> Result<(usize, Vec<outbox::Unreadable>), StoreError> {
        let claimed = ports.sweep.claim_due(&[owner], at, sample::later(at, 300)).await?;
        let stored: Vec<EntryResult> = claimed.into_iter().collect::<Result<Vec<_>, _>>()?.concat();
        let readable = stored.iter().filter(|stored| stored.is_ok()).count();
        Ok((readable, stored.into_iter().filter_map(Result::err).collect()))
    };
    let (readable, unreadable) = take(now).await?;
    let [found] = unreadable.as_slice() else { panic!("{unreadable:?}") };
    assert!(readable == 1 && !found.why.is_empty());
    ports.sweep.resolve_unreadable(&found.place, &UnreadableAction::Poison(found.why.clone())).await?;
    let later = sample::later(now, 600);
    assert_eq!(take(later).await?, (1, Vec::new()), "it is not looked for any more");
    operator_finds(ports, owner, found).await?;
    ports.sweep.resolve_unreadable(&found.place, &UnreadableAction::Requeue(later)).await?;
    let again = take(sample::later(later, 1)).await?;
    assert_eq!(again, (0, vec![found.clone()]), "another release might read it");
    ports.sweep.resolve_unreadable(&found.place, &UnreadableAction::Requeue(later)).await?;
    let soon = take(sample::later(later, 2)).await?;
    assert_eq!(soon, (0, Vec::new()), "requeueing twice must not end the claim that was made in between");
    deleting_reaches_nothing_else(ports, &found.place, owner, good.id, entry()?).await
}

/// An operator finds it in the list of all outboxes and in the outbox of its record.
async fn operator_finds(ports: &Ports<'_>, owner: Owner, entry: &outbox::Unreadable) -> CheckResult {
    for stored in [shown(ports, owner).await?, ports.sweep.entries_of(owner).await?] {
        assert!(stored.len() == 2 && stored.contains(&Err(entry.clone())), "{stored:?}");
    }
    Ok(())
}

/// Neither a neighbouring entry nor a later one is deleted, although a store may reuse a position.
async fn deleting_reaches_nothing_else(
    ports: &Ports<'_>,
    place: &str,
    owner: Owner,
    good: MessageId,
    later: Entry,
) -> CheckResult {
    for _ in 0..2 {
        ports.sweep.resolve_unreadable(place, &UnreadableAction::Delete).await?;
        let left = shown(ports, owner).await?;
        assert!(left.len() == 1 && left[0].as_ref().is_ok_and(|entry| entry.id == good), "{left:?}");
    }
    let owner = Owner::Saga(ports.create(vec![later]).await?);
    ports.sweep.resolve_unreadable(place, &UnreadableAction::Delete).await?;
    assert_eq!(shown(ports, owner).await?.len(), 1);
    Ok(())
}

async fn shown(ports: &Ports<'_>, owner: Owner) -> Result<Vec<EntryResult>, StoreError> {
    let pending = ports.sweep.pending(None, MANY).await?;
    Ok(pending.into_iter().filter(|pending| pending.owner == Some(owner)).flat_map(|of| of.entries).collect())
}

/// The previous holder can no longer settle the entry.
pub async fn expired_claim_is_taken_over(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let entry = sample::entry(ports.host, sample::partition(ports.host), now)?;
    let partition = ports.create(vec![entry]).await?;
    let owner = Owner::Saga(partition);
    let stuck = claim(ports.sweep, owner, now, sample::later(now, 300)).await?;
    let over = claim(ports.sweep, owner, sample::later(now, 300), sample::later(now, 600)).await?;
    assert_eq!(over.len(), 1);
    let done = |entries: &[Entry]| -> Vec<Settlement> {
        entries
            .iter()
            .map(|entry| Settlement { id: entry.id, claim: entry.claimed_until, keep: None })
            .collect()
    };
    settle(ports.sweep, owner, &done(&stuck)).await?;
    assert_eq!(ports.stored(partition).await?.outbox, over, "the earlier claim settles nothing");
    settle(ports.sweep, owner, &done(&over)).await?;
    assert_eq!(ports.stored(partition).await?.outbox, []);
    Ok(())
}

/// The entry is not claimed before its delay has passed, and never after it was exhausted.
pub async fn failed_entry_is_claimed_after_its_delay(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let entry = sample::entry(ports.host, sample::partition(ports.host), now)?;
    let partition = ports.create(vec![entry]).await?;
    let owner = Owner::Saga(partition);
    let fail = async |at: Timestamp, exhausted: bool| -> Result<usize, StoreError> {
        let claimed = claim(ports.sweep, owner, at, sample::later(at, 300)).await?;
        let keep = |entry: &Entry| Entry {
            attempts: entry.attempts + 1,
            next_attempt_at: sample::later(at, 10),
            claimed_until: None,
            poisoned: exhausted,
            error: Some("refused".to_owned()),
            ..entry.clone()
        };
        let settlements: Vec<Settlement> = claimed
            .iter()
            .map(|entry| Settlement { id: entry.id, claim: entry.claimed_until, keep: Some(keep(entry)) })
            .collect();
        settle(ports.sweep, owner, &settlements).await?;
        Ok(claimed.len())
    };
    assert_eq!(fail(now, false).await?, 1);
    assert_eq!(fail(sample::later(now, 9), false).await?, 0, "too early");
    assert_eq!(fail(sample::later(now, 10), true).await?, 1);
    assert_eq!(fail(sample::later(now, 10_000), true).await?, 0, "exhausted");
    let kept = ports.stored(partition).await?.outbox;
    assert!(kept.iter().all(|entry| entry.poisoned && entry.attempts == 2) && kept.len() == 1);
    Ok(())
}
