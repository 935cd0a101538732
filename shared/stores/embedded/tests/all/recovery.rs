//! After a crash.

use std::time::Duration;

use contracts::outboxes::claim;
use contracts::sample;
use dedup::{
    Admission, CheckTokens, Claim, ClaimCondition, ClaimPartition, GrantTokens, ProcessedMessages, Release,
};
use embedded::Store;
use imports::queues;
use jiff::{SignedDuration, Timestamp};
use messages::{AttemptId, Disposition, Outgoing, PartitionKey, ReceiveMessages, SendMessages, Token};
use outbox::{InspectOutbox, OutboxRecord, Owner, Settlement};
use saga::{Persist, WriteDocuments};

use crate::depot::{Depot, TestResult};

#[tokio::test]
async fn recovery_shows_in_flight_messages_only() -> TestResult {
    let depot = Depot::new();
    let lock = Store::lock(depot.folder.path())?;
    let partition = sample::partition(&*depot.host);
    for delay in [0, 60] {
        let message = sample::message(&*depot.host, partition);
        let outgoing = Outgoing::new(&message, queues::SAGA, Duration::from_secs(delay))?;
        depot.store.send(&[outgoing]).await.remove(0)?;
    }
    let held = depot.store.receive(&queues::SAGA, 10, Duration::from_secs(900)).await?;
    assert_eq!(held.len(), 1);
    assert_eq!(depot.reopened().recover(&lock).await?.messages, 1);
    let again = depot.store.receive(&queues::SAGA, 10, Duration::from_secs(900)).await?;
    assert_eq!(again.iter().map(|it| it.delivery.receive_count).collect::<Vec<_>>(), [2]);
    Ok(())
}

#[tokio::test]
async fn recovery_ends_lease_keeping_fence_and_tokens() -> TestResult {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    let lock = Store::lock(depot.folder.path())?;
    let (partition, now) = (sample::partition(host), sample::now(host));
    let token = Token::minted_at_entry(partition, host_id(&depot));
    store.grant(partition, std::slice::from_ref(&token), now).await?;
    let ask = async |attempt| {
        let claim = claim_with(partition, &token, attempt, now);
        dedup::ledger::ask(store, claim).await.map(|(_, answer)| answer)
    };
    let (dead, alive) = (sample::attempt(host), sample::attempt(host));
    let Admission::Admitted(first) = ask(dead).await? else { panic!("not admitted") };
    assert!(matches!(ask(alive).await?, Admission::Busy { .. }));
    assert_eq!(store.recover(&lock).await?.leases, 1);
    let Admission::Admitted(second) = ask(alive).await? else { panic!("not admitted") };
    assert!(second.fence > first.fence);
    let (fence, remove) = (first.fence, [token].into());
    let release = Release { partition, attempt: dead, fence, remove, ended: false, until: None, now };
    assert!(!store.release(&release).await?, "the dead one releases nothing");
    Ok(())
}

fn claim_with(partition: PartitionKey, token: &Token, attempt: AttemptId, now: Timestamp) -> Claim {
    Claim {
        partition,
        attempt,
        now,
        lease: SignedDuration::from_secs(60),
        supersedes: None,
        requires: ClaimCondition::TokenPresent(token.clone()),
        new_tokens: Vec::new(),
        max_tokens: 0,
        fence: 0,
        above: 0,
        until: now,
    }
}

const MONTHS: Duration = Duration::from_secs(100 * 24 * 60 * 60);

/// No program runs for months, and the queue keeps its message.
#[tokio::test]
async fn waiting_message_keeps_its_tokens() -> TestResult {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    let (partition, started) = (sample::partition(host), sample::now(host));
    let token = Token::minted_at_entry(partition, host_id(&depot));
    store.grant(partition, std::slice::from_ref(&token), started).await?;
    let message = sample::message(host, partition);
    store.send(&[Outgoing::new(&message, queues::SAGA, Duration::ZERO)?]).await.remove(0)?;
    depot.host.advance(MONTHS);
    let now = sample::now(host);
    let lock = Store::lock(depot.folder.path())?;
    depot.reopened().recover(&lock).await?;
    assert!(store.is_granted(partition, &token, now).await?);
    let claim = claim_with(partition, &token, sample::attempt(host), now);
    let (_, answer) = dedup::ledger::ask(store, claim).await?;
    assert!(matches!(answer, Admission::Admitted(_)), "{answer:?}");
    let received = store.receive(&queues::SAGA, 10, Duration::from_secs(900)).await?.remove(0);
    store.answer(&queues::SAGA, &received.receipt, &Disposition::Acknowledge).await?;
    depot.host.advance(MONTHS);
    assert!(!store.is_granted(partition, &token, sample::now(host)).await?);
    Ok(())
}

/// The program was killed before it acknowledged the message.
#[tokio::test]
async fn waiting_message_keeps_processed_keys() -> TestResult {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    let message = sample::message(host, sample::partition(host));
    store.send(&[Outgoing::new(&message, queues::PARSE, Duration::ZERO)?]).await.remove(0)?;
    store.remember("done", sample::later(sample::now(host), 60)).await?;
    depot.host.advance(MONTHS);
    let lock = Store::lock(depot.folder.path())?;
    depot.reopened().recover(&lock).await?;
    assert!(store.is_remembered("done", sample::now(host)).await?);
    let received = store.receive(&queues::PARSE, 10, Duration::from_secs(900)).await?.remove(0);
    store.answer(&queues::PARSE, &received.receipt, &Disposition::Acknowledge).await?;
    assert!(!store.is_remembered("done", sample::now(host)).await?);
    Ok(())
}

fn host_id(depot: &Depot) -> uuid::Uuid {
    messages::Host::fresh_id(&*depot.host)
}

#[tokio::test]
async fn recovery_ends_outbox_claims_keeping_poison() -> TestResult {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    let lock = Store::lock(depot.folder.path())?;
    let (partition, now) = (sample::partition(host), sample::now(host));
    let exhausted = outbox::Entry { poisoned: true, ..sample::entry(host, partition, now)? };
    let add = vec![sample::entry(host, partition, now)?, exhausted.clone()];
    store
        .persist(&[Persist { add, ..sample::persist(partition, None, sample::content(host, "x")) }], now)
        .await?;
    let outbox = store.saga_outbox();
    let claimed = claim(&outbox, Owner::Saga(partition), now, sample::later(now, 300)).await?;
    assert_eq!(store.recover(&lock).await?.claims, 1);
    let again = claim(&outbox, Owner::Saga(partition), now, sample::later(now, 300)).await?;
    assert_eq!(again, claimed);

    let left = outbox.pending(None, 10).await?;
    let [OutboxRecord { owner, entries, .. }] = left.as_slice() else { panic!("{left:?}") };
    assert_eq!(
        (*owner, entries),
        (Some(Owner::Saga(partition)), &vec![Ok(claimed[0].clone()), Ok(exhausted)])
    );
    Ok(())
}

/// A takeover also sets the time of the next attempt, for which a new process need not wait.
#[tokio::test]
async fn recovery_ends_takeover_of_entry() -> TestResult {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    let lock = Store::lock(depot.folder.path())?;
    let (partition, now) = (sample::partition(host), sample::now(host));
    let entry = sample::entry(host, partition, now)?;
    let content = sample::content(host, "x");
    let write = Persist { add: vec![entry.clone()], ..sample::persist(partition, None, content) };
    store.persist(&[write], now).await?;
    let taken = Settlement::takeover(&entry, sample::later(now, 300));
    store.settle(&[(partition, vec![taken])]).await?;
    let outbox = store.saga_outbox();
    let (owner, until) = (Owner::Saga(partition), sample::later(now, 600));
    assert_eq!(claim(&outbox, owner, now, until).await?, []);
    assert_eq!(store.recover(&lock).await?.claims, 1);
    let claimed = claim(&outbox, owner, now, until).await?;
    assert_eq!(claimed, [outbox::Entry { claimed_until: Some(until), ..entry }]);
    Ok(())
}

#[tokio::test]
async fn recovery_removes_only_unfinished_uploads() -> TestResult {
    let depot = Depot::new();
    let lock = Store::lock(depot.folder.path())?;
    depot.upload("uploads/a", b"kept").await?;
    let objects = depot.folder.path().join("objects");
    let id = host_id(&depot);
    std::fs::write(objects.join(format!("partial-{id}")), "half")?;
    // One object that only a later state of the database lists, and files of other programs.
    let others = [id.to_string(), "partial-x".into(), "notes.txt".into(), format!("{id}.bak")];
    for name in &others {
        std::fs::write(objects.join(name), "whole")?;
    }
    std::fs::create_dir(objects.join(format!("partial-{}", host_id(&depot))))?;
    let recovered = depot.store.recover(&lock).await?;
    assert_eq!((recovered.files, recovered.unlisted), (1, 1));
    assert!(others.iter().all(|name| objects.join(name).exists()));
    assert_eq!(std::fs::read_dir(objects)?.count(), 1 + others.len() + 1);
    Ok(())
}

/// A crash after the row was written, and before the file got its name.
#[tokio::test]
async fn recovery_renames_file_of_stored_upload() -> TestResult {
    let depot = Depot::new();
    let lock = Store::lock(depot.folder.path())?;
    depot.upload("uploads/a", b"kept").await?;
    let objects = depot.folder.path().join("objects");
    let stored = std::fs::read_dir(&objects)?.next().ok_or("it is stored")??.path();
    let name = stored.file_name().ok_or("it has a name")?.to_string_lossy().into_owned();
    std::fs::rename(&stored, objects.join(format!("partial-{name}")))?;
    assert_eq!(depot.read("uploads/a").await?, b"kept");
    assert_eq!(depot.store.recover(&lock).await?.files, 0);
    assert!(stored.exists());
    assert_eq!(depot.read("uploads/a").await?, b"kept");
    Ok(())
}

#[tokio::test]
async fn lock_of_another_directory_recovers_nothing() -> TestResult {
    let (depot, other) = (Depot::new(), Depot::new());
    let lock = Store::lock(other.folder.path())?;
    assert!(depot.store.recover(&lock).await.is_err());
    Ok(())
}
