//! Versions, conflicts and expiry.

use contracts::SearchId;
use futures::future::join_all;
use worker::document::{Persist, Persisted};

use super::Ports;
use crate::{Checked, sample};

/// Checks every promise.
///
/// # Errors
/// When a port fails.
pub async fn all(ports: &Ports<'_>) -> Checked {
    a_first_write_inserts_version_1(ports).await?;
    a_first_write_conflicts_with_what_is_there(ports).await?;
    a_write_on_the_loaded_version_makes_the_next_one(ports).await?;
    a_conflict_leaves_neither_content_nor_outbox(ports).await?;
    a_write_on_a_document_that_is_not_there_conflicts(ports).await?;
    a_conflict_in_a_batch_leaves_the_others_stored(ports).await?;
    of_racing_writes_exactly_one_is_stored(ports).await?;
    loading_answers_in_the_order_of_the_request(ports).await?;
    an_ended_search_is_absent_once_its_retention_has_passed(ports).await
}

/// And what was written is what is read.
///
/// # Errors
/// When a port fails.
pub async fn a_first_write_inserts_version_1(ports: &Ports<'_>) -> Checked {
    let search = sample::search(ports.host);
    assert_eq!(ports.load(search).await?, None);
    let write = sample::persist(search, None, sample::uploading(ports.host, "first"));
    assert_eq!(ports.persist(write.clone()).await?, Persisted::Stored);
    let stored = ports.stored(search).await?;
    assert_eq!((stored.search_id, stored.version, stored.content), (search, 1, write.content));
    assert_eq!(stored.outbox, []);
    Ok(())
}

/// Two workers that both found nothing do not both create the search.
///
/// # Errors
/// When a port fails.
pub async fn a_first_write_conflicts_with_what_is_there(ports: &Ports<'_>) -> Checked {
    let search = ports.create(Vec::new()).await?;
    let before = ports.stored(search).await?;
    let write = sample::persist(search, None, sample::uploading(ports.host, "second"));
    assert_eq!(ports.persist(write).await?, Persisted::Conflict);
    assert_eq!(ports.stored(search).await?, before);
    Ok(())
}

/// One larger, each time.
///
/// # Errors
/// When a port fails.
pub async fn a_write_on_the_loaded_version_makes_the_next_one(ports: &Ports<'_>) -> Checked {
    let search = ports.create(Vec::new()).await?;
    for version in 1..=3 {
        let write = sample::persist(search, Some(version), sample::uploading(ports.host, "next"));
        assert_eq!(ports.persist(write.clone()).await?, Persisted::Stored);
        let stored = ports.stored(search).await?;
        assert_eq!((stored.version, stored.content), (version + 1, write.content));
    }
    Ok(())
}

/// Neither added nor cancelled entries of a refused write have any effect.
///
/// # Errors
/// When a port fails.
pub async fn a_conflict_leaves_neither_content_nor_outbox(ports: &Ports<'_>) -> Checked {
    let now = sample::now(ports.host);
    let first = sample::entry(ports.host, sample::search(ports.host), now)?;
    let search = ports.create(vec![first.clone()]).await?;
    let before = ports.stored(search).await?;
    for loaded in [None, Some(0), Some(2)] {
        let write = Persist {
            add: vec![sample::entry(ports.host, search, now)?],
            cancel: vec![first.id],
            ..sample::persist(search, loaded, sample::uploading(ports.host, "refused"))
        };
        assert_eq!(ports.persist(write).await?, Persisted::Conflict, "on top of {loaded:?}");
        assert_eq!(ports.stored(search).await?, before);
    }
    Ok(())
}

/// A document that was deleted meanwhile does not come back.
///
/// # Errors
/// When a port fails.
pub async fn a_write_on_a_document_that_is_not_there_conflicts(ports: &Ports<'_>) -> Checked {
    let search = sample::search(ports.host);
    let write = sample::persist(search, Some(1), sample::uploading(ports.host, "orphan"));
    assert_eq!(ports.persist(write).await?, Persisted::Conflict);
    assert_eq!(ports.load(search).await?, None);
    Ok(())
}

/// The answers are in the order of the writes.
///
/// # Errors
/// When a port fails.
pub async fn a_conflict_in_a_batch_leaves_the_others_stored(ports: &Ports<'_>) -> Checked {
    let taken = ports.create(Vec::new()).await?;
    let (one, two) = (sample::search(ports.host), sample::search(ports.host));
    let entry = sample::entry(ports.host, two, sample::now(ports.host))?;
    let first = |search| sample::persist(search, None, sample::uploading(ports.host, "batch"));
    let writes = [first(one), first(taken), Persist { add: vec![entry.clone()], ..first(two) }];
    let answers = ports.write.persist(&writes, sample::now(ports.host)).await?;
    assert_eq!(answers, [Persisted::Stored, Persisted::Conflict, Persisted::Stored]);
    assert_eq!(ports.stored(one).await?.version, 1);
    assert_eq!(ports.stored(two).await?.outbox, [entry]);
    Ok(())
}

/// Whether they create the search or change it, and with nothing of the losers stored.
///
/// # Errors
/// When a port fails.
pub async fn of_racing_writes_exactly_one_is_stored(ports: &Ports<'_>) -> Checked {
    let search = sample::search(ports.host);
    for loaded in [None, Some(1), Some(2)] {
        let mut writes = Vec::new();
        for racer in 0..8 {
            let entry = sample::entry(ports.host, search, sample::now(ports.host))?;
            let content = sample::uploading(ports.host, &format!("racer {racer}"));
            writes.push(Persist { add: vec![entry], ..sample::persist(search, loaded, content) });
        }
        let answers = join_all(writes.iter().map(|write| ports.persist(write.clone()))).await;
        let answers = answers.into_iter().collect::<Result<Vec<_>, _>>()?;
        let winners: Vec<&Persist> = writes
            .iter()
            .zip(&answers)
            .filter_map(|(write, answer)| (*answer == Persisted::Stored).then_some(write))
            .collect();
        let [winner] = winners.as_slice() else { panic!("{} writes were stored", winners.len()) };
        let stored = ports.stored(search).await?;
        assert_eq!((stored.version, &stored.content), (loaded.unwrap_or(0) + 1, &winner.content));
        assert_eq!(stored.outbox.last(), winner.add.last());
        assert_eq!(stored.outbox.len() as u64, stored.version, "an entry of a loser is stored");
    }
    Ok(())
}

/// With none in the place of what is not there; nothing asked for is nothing answered.
///
/// # Errors
/// When a port fails.
pub async fn loading_answers_in_the_order_of_the_request(ports: &Ports<'_>) -> Checked {
    let (one, two) = (ports.create(Vec::new()).await?, ports.create(Vec::new()).await?);
    let absent = sample::search(ports.host);
    let now = sample::now(ports.host);
    let found = ports.read.load(&[two, absent, one, two], now).await?;
    let ids: Vec<Option<SearchId>> =
        found.iter().map(|document| document.as_ref().map(|it| it.search_id)).collect();
    assert_eq!(ids, [Some(two), None, Some(one), Some(two)]);
    assert_eq!(ports.read.load(&[], now).await?, []);
    Ok(())
}

/// Deletion by the store may be late.
///
/// # Errors
/// When a port fails.
pub async fn an_ended_search_is_absent_once_its_retention_has_passed(ports: &Ports<'_>) -> Checked {
    let (search, ended_at) = (sample::search(ports.host), sample::now(ports.host));
    ports.persist(sample::persist(search, None, sample::ended(ports.host, ended_at))).await?;
    let expiry = sample::later(ended_at, ports.retention.as_secs());
    let is_there =
        async |now| ports.read.load(&[search], now).await.map(|found| found.iter().any(Option::is_some));
    assert!(is_there(ended_at).await?);
    assert!(is_there(sample::later(expiry, -1)).await?);
    assert!(!is_there(expiry).await?);
    assert!(!is_there(sample::later(expiry, 1)).await?);
    Ok(())
}
