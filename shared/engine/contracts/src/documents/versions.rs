//! Versions, conflicts and expiry.

use futures::future::join_all;
use messages::{MessageId, PartitionKey, StoreError, Token};
use saga::{
    Content, ExpectedMessage, ExpectedToken, Intervention, Persist, PersistOutcome, ProcessedMessage,
};
use serde_json::json;

use super::Ports;
use crate::{CheckResult, sample};

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    first_write_stores_its_version(ports).await?;
    content_of_any_form_round_trips(ports).await?;
    any_json_is_a_state(ports).await?;
    first_write_conflicts_with_existing_document(ports).await?;
    write_stores_the_next_version(ports).await?;
    conflict_stores_neither_content_nor_entries(ports).await?;
    update_of_absent_document_conflicts(ports).await?;
    conflict_does_not_affect_other_writes(ports).await?;
    concurrent_writes_store_exactly_one(ports).await?;
    documents_are_returned_in_request_order(ports).await?;
    unreadable_document_fails_only_its_partition(ports).await?;
    ended_partition_is_absent_after_retention(ports).await
}

/// The written document is read unchanged.
pub async fn first_write_stores_its_version(ports: &Ports<'_>) -> CheckResult {
    let partition = sample::partition(ports.host);
    assert_eq!(ports.load(partition).await?, None);
    let first = sample::persist(partition, None, sample::content(ports.host, "first"));
    let write = Persist { version: 1_700_000_000_000, ..first };
    assert_eq!(ports.persist(write.clone()).await?, PersistOutcome::Stored);
    let stored = ports.stored(partition).await?;
    assert_eq!((stored.partition, stored.version, stored.content), (partition, write.version, write.content));
    assert_eq!(stored.outbox, []);
    Ok(())
}

/// Every field is replaced, and nothing of the previous content remains.
pub async fn content_of_any_form_round_trips(ports: &Ports<'_>) -> CheckResult {
    let partition = ports.create(Vec::new()).await?;
    let attempt = sample::attempt(ports.host);
    let id = || MessageId::from_uuid(ports.host.fresh_id());
    let (granted, reply, timer) = (
        Token::minted_at_entry(partition, ports.host.fresh_id()),
        Token::minted_by_attempt(partition, &attempt, 0),
        Token::minted_by_attempt(partition, &attempt, 1),
    );
    let timeout = id();
    let intervention = |why: &str| Intervention {
        at: sample::now(ports.host),
        by: "operator".to_owned(),
        why: why.to_owned(),
    };
    let full = Content {
        state_version: 3,
        queue: Some("sample-saga".to_owned()),
        processed: vec![
            ProcessedMessage { id: id(), token: Some(granted) },
            ProcessedMessage { id: id(), token: None },
        ],
        expected: vec![
            ExpectedToken { token: reply, by: ExpectedMessage::Reply(ports.host.fresh_id()) },
            ExpectedToken { token: timer, by: ExpectedMessage::Timeout(timeout.as_uuid()) },
        ],
        timers: [("patience".to_owned(), timeout)].into(),
        attempt,
        fence: 7,
        keeps_claim: true,
        paused: Some(intervention("paused")),
        terminated: Some(intervention("terminated")),
        ..sample::content(ports.host, "$$ROOT: \u{1F4DA} \"Ärzte\"")
    };
    for (loaded, content) in [(1, full), (2, sample::content(ports.host, "bare"))] {
        ports.persist(sample::persist(partition, Some(loaded), content.clone())).await?;
        assert_eq!(ports.stored(partition).await?.content, content);
    }
    Ok(())
}

/// The store does not interpret the document.
pub async fn any_json_is_a_state(ports: &Ports<'_>) -> CheckResult {
    let states = [
        json!(null),
        json!(true),
        json!(-7),
        json!(i64::MAX),
        json!(0.5),
        json!("$set"),
        json!([]),
        json!({}),
        json!([1, [null, { "a": [] }], "two"]),
        json!({ "$numberLong": "5" }),
        json!({ "a": [{ "$date": "2026-01-01T00:00:00+01:00" }, { "$oid": "507f1f77bcf86cd799439011" }] }),
        json!({ "$set": { "$symbol": "a.b" }, "": { "a.b": 1 } }),
        json!({ "z": { "y": null }, "a": [{ "b": 1.25 }], "Ärzte": "" }),
    ];
    for state in states {
        let partition = sample::partition(ports.host);
        let content = sample::with_state(ports.host, state);
        ports.persist(sample::persist(partition, None, content.clone())).await?;
        assert_eq!(ports.stored(partition).await?.content, content);
    }
    Ok(())
}

/// If two workers find no document, only one of them creates the partition.
pub async fn first_write_conflicts_with_existing_document(ports: &Ports<'_>) -> CheckResult {
    let partition = ports.create(Vec::new()).await?;
    let before = ports.stored(partition).await?;
    let write = sample::persist(partition, None, sample::content(ports.host, "second"));
    assert_eq!(ports.persist(write).await?, PersistOutcome::Conflict);
    assert_eq!(ports.stored(partition).await?, before);
    Ok(())
}

/// The version is the one that the write names.
pub async fn write_stores_the_next_version(ports: &Ports<'_>) -> CheckResult {
    let partition = ports.create(Vec::new()).await?;
    for version in 1..=3 {
        let write = sample::persist(partition, Some(version), sample::content(ports.host, "next"));
        assert_eq!(ports.persist(write.clone()).await?, PersistOutcome::Stored);
        let stored = ports.stored(partition).await?;
        assert_eq!((stored.version, stored.content), (version + 1, write.content));
    }
    Ok(())
}

/// Neither added nor cancelled entries of a refused write have any effect.
pub async fn conflict_stores_neither_content_nor_entries(ports: &Ports<'_>) -> CheckResult {
    let now = sample::now(ports.host);
    let first = sample::entry(ports.host, sample::partition(ports.host), now)?;
    let partition = ports.create(vec![first.clone()]).await?;
    let before = ports.stored(partition).await?;
    for loaded in [None, Some(0), Some(2)] {
        let write = Persist {
            add: vec![sample::entry(ports.host, partition, now)?],
            cancel: vec![first.id],
            ..sample::persist(partition, loaded, sample::content(ports.host, "refused"))
        };
        assert_eq!(ports.persist(write).await?, PersistOutcome::Conflict, "on top of {loaded:?}");
        assert_eq!(ports.stored(partition).await?, before);
    }
    Ok(())
}

/// A document that was deleted in between is not recreated.
pub async fn update_of_absent_document_conflicts(ports: &Ports<'_>) -> CheckResult {
    let partition = sample::partition(ports.host);
    let write = sample::persist(partition, Some(1), sample::content(ports.host, "orphan"));
    assert_eq!(ports.persist(write).await?, PersistOutcome::Conflict);
    assert_eq!(ports.load(partition).await?, None);
    Ok(())
}

/// The results are in the order of the writes.
pub async fn conflict_does_not_affect_other_writes(ports: &Ports<'_>) -> CheckResult {
    let taken = ports.create(Vec::new()).await?;
    let (one, two) = (sample::partition(ports.host), sample::partition(ports.host));
    let entry = sample::entry(ports.host, two, sample::now(ports.host))?;
    let first = |partition| sample::persist(partition, None, sample::content(ports.host, "batch"));
    let writes = [first(taken), first(one), Persist { add: vec![entry.clone()], ..first(two) }];
    let answers = ports.write.persist(&writes, sample::now(ports.host)).await?;
    assert_eq!(answers, [PersistOutcome::Conflict, PersistOutcome::Stored, PersistOutcome::Stored]);
    assert_eq!(ports.stored(one).await?.version, 1);
    assert_eq!(ports.stored(two).await?.outbox, [entry]);
    Ok(())
}

/// This holds for the creation and for a change of the partition. Nothing of the other writes is stored.
pub async fn concurrent_writes_store_exactly_one(ports: &Ports<'_>) -> CheckResult {
    let partition = sample::partition(ports.host);
    for loaded in [None, Some(1), Some(2)] {
        let mut writes = Vec::new();
        for racer in 0..8 {
            let entry = sample::entry(ports.host, partition, sample::now(ports.host))?;
            let content = sample::content(ports.host, &format!("racer {racer}"));
            writes.push(Persist { add: vec![entry], ..sample::persist(partition, loaded, content) });
        }
        let answers = join_all(writes.iter().map(|write| ports.persist(write.clone()))).await;
        let answers = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
        let winners: Vec<&Persist> = writes
            .iter()
            .zip(&answers)
            .filter_map(|(write, answer)| (*answer == PersistOutcome::Stored).then_some(write))
            .collect();
        let [winner] = winners.as_slice() else { panic!("{} writes were stored", winners.len()) };
        let stored = ports.stored(partition).await?;
        assert_eq!((stored.version, &stored.content), (loaded.unwrap_or(0) + 1, &winner.content));
        assert_eq!(stored.outbox.last(), winner.add.last());
        assert_eq!(stored.outbox.len() as u64, stored.version, "an entry of a loser is stored");
    }
    Ok(())
}

/// The result for an absent document is none, and an empty request has an empty response.
pub async fn documents_are_returned_in_request_order(ports: &Ports<'_>) -> CheckResult {
    let (one, two) = (ports.create(Vec::new()).await?, ports.create(Vec::new()).await?);
    let absent = sample::partition(ports.host);
    let now = sample::now(ports.host);
    let found = ports.read.load(&[two, absent, one, two], now).await?;
    let found = found.into_iter().collect::<Result<Vec<_>, StoreError>>()?;
    let ids: Vec<Option<PartitionKey>> =
        found.iter().map(|document| document.as_ref().map(|it| it.partition)).collect();
    assert_eq!(ids, [Some(two), None, Some(one), Some(two)]);
    assert!(ports.read.load(&[], now).await?.is_empty());
    Ok(())
}

/// Each load of the damaged document returns an error for its partition.
pub async fn unreadable_document_fails_only_its_partition(ports: &Ports<'_>) -> CheckResult {
    let Some(damage) = ports.damage else { return Ok(()) };
    let (one, two) = (ports.create(Vec::new()).await?, ports.create(Vec::new()).await?);
    let (damaged, absent) = (ports.create(Vec::new()).await?, sample::partition(ports.host));
    damage(damaged).await?;
    let now = sample::now(ports.host);
    for _ in 0..2 {
        let found = ports.read.load(&[one, damaged, absent, two, damaged], now).await?;
        let found: Vec<_> = found
            .iter()
            .map(|loaded| loaded.as_ref().map(|document| document.as_ref().map(|it| it.partition)).ok())
            .collect();
        assert_eq!(found, [Some(Some(one)), None, Some(None), Some(Some(two)), None]);
    }
    let write = |partition| sample::persist(partition, Some(1), sample::content(ports.host, "beside it"));
    let answers = ports.write.persist(&[write(one), write(two)], now).await?;
    assert_eq!(answers, [PersistOutcome::Stored, PersistOutcome::Stored]);
    Ok(())
}

/// Deletion by the store may be late.
pub async fn ended_partition_is_absent_after_retention(ports: &Ports<'_>) -> CheckResult {
    let (partition, ended_at) = (sample::partition(ports.host), sample::now(ports.host));
    ports.persist(sample::persist(partition, None, sample::ended(ports.host, ended_at))).await?;
    let expiry = sample::later(ended_at, ports.retention.as_secs());
    let is_there = async |now| {
        let found = ports.read.load(&[partition], now).await?.iter().flatten().any(Option::is_some);
        assert_eq!(ports.read.load_latest(partition, now).await?.is_some(), found);
        Ok::<_, StoreError>(found)
    };
    assert!(is_there(ended_at).await?);
    assert!(is_there(sample::later(expiry, -1)).await?);
    assert!(!is_there(expiry).await?);
    assert!(!is_there(sample::later(expiry, 1)).await?);
    let again = sample::persist(partition, None, sample::content(ports.host, "again"));
    let again = Persist { version: 1_700_000_000_000, ..again };
    let stored = ports.write.persist(&[again], sample::later(expiry, 1)).await?;
    assert_eq!(stored, [PersistOutcome::Stored]);
    assert_eq!(ports.stored(partition).await?.version, 1_700_000_000_000);
    Ok(())
}
