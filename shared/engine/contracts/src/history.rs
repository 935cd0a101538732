//! The contract of [`KeepHistory`].

use messages::{
    DecisionRecord, Host, MessageId, PartitionKey, RecordedVerdict, StoreError, Traceparent, Verdict,
};
use saga::KeepHistory;

use crate::{CheckResult, sample};

/// The adapter under test.
pub struct Ports<'a> {
    /// The store.
    pub store: &'a dyn KeepHistory,
    /// Ids and time.
    pub host: &'a dyn Host,
}

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    observation_round_trips(ports).await?;
    history_pages_are_in_chronological_order(ports).await?;
    later_observations_follow_the_cursor(ports).await?;
    observations_without_partition_are_found(ports).await?;
    removal_deletes_only_its_partition(ports).await
}

/// Returns the `n`th observation of a partition, after a number of seconds.
pub fn observation(host: &dyn Host, partition: PartitionKey, n: u32, seconds: i64) -> DecisionRecord {
    DecisionRecord {
        at: sample::later(sample::now(host), seconds),
        function: "runs".to_owned(),
        partition: Some(partition),
        message_id: Some(MessageId::from_uuid(host.fresh_id())),
        message: "Paid".to_owned(),
        verdict: Verdict::Ignored,
        why: format!("decision {n}: \u{0} $ROOT"),
        source: "pays".to_owned(),
        traceparent: None,
        began_at: None,
        attempt: None,
        state: None,
    }
}

/// Returns these observations as they are read.
pub fn noted(observations: &[DecisionRecord]) -> Vec<DecisionRecord<RecordedVerdict>> {
    observations.iter().cloned().map(DecisionRecord::from).collect()
}

async fn pages(
    store: &dyn KeepHistory,
    partition: Option<PartitionKey>,
    limit: usize,
) -> Result<Vec<DecisionRecord<RecordedVerdict>>, StoreError> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let page = store.history(partition, after, limit).await?;
        assert!(page.len() <= limit);
        let Some((place, _)) = page.last() else { return Ok(found) };
        assert!(page.iter().is_sorted_by(|(one, _), (other, _)| one < other), "{page:?}");
        after = Some(*place);
        found.extend(page.into_iter().map(|(_, observation)| observation));
    }
}

/// This holds with all fields, and with only the required fields.
pub async fn observation_round_trips(ports: &Ports<'_>) -> CheckResult {
    let partition = sample::partition(ports.host);
    assert_eq!(ports.store.history(Some(partition), None, 10).await?, []);
    let scarce = observation(ports.host, partition, 0, 0);
    let full = DecisionRecord {
        traceparent: scarce.message_id.map(|message| Traceparent::of(partition, message).to_string()),
        began_at: Some(scarce.at),
        attempt: Some(3),
        state: Some("Open".to_owned()),
        ..observation(ports.host, partition, 1, 1)
    };
    ports.store.append(&[]).await?;
    ports.store.append(&[scarce.clone(), full.clone()]).await?;
    assert_eq!(pages(ports.store, Some(partition), 10).await?, noted(&[scarce, full]));
    assert_eq!(ports.store.history(Some(partition), None, 0).await?, []);
    Ok(())
}

/// Observations are ordered by time. Observations with the same time are in the order of insertion. Each decision is
/// returned once, without the decisions of other partitions.
pub async fn history_pages_are_in_chronological_order(ports: &Ports<'_>) -> CheckResult {
    let (partition, other) = (sample::partition(ports.host), sample::partition(ports.host));
    let observation = |n, seconds| observation(ports.host, partition, n, seconds);
    let first = [observation(0, 0), observation(1, 1), observation(2, 1)];
    let second = [observation(3, 1), observation(4, 1), observation(5, 2)];
    let foreign = DecisionRecord { partition: Some(other), ..observation(6, 1) };
    ports.store.append(&first).await?;
    ports.store.append(&[&second[..], std::slice::from_ref(&foreign)].concat()).await?;
    for limit in [1, 2, 4, 10] {
        assert_eq!(
            pages(ports.store, Some(partition), limit).await?,
            noted(&[first.clone(), second.clone()].concat())
        );
    }
    assert_eq!(pages(ports.store, Some(other), 10).await?, noted(&[foreign]));
    Ok(())
}

/// A reader that has read everything resumes at its position.
pub async fn later_observations_follow_the_cursor(ports: &Ports<'_>) -> CheckResult {
    let partition = sample::partition(ports.host);
    let (early, late) = (observation(ports.host, partition, 0, 0), observation(ports.host, partition, 1, 5));
    ports.store.append(&[early]).await?;
    let read = ports.store.history(Some(partition), None, 10).await?;
    let place = read.last().map(|(place, _)| *place);
    assert_eq!(ports.store.history(Some(partition), place, 10).await?, []);
    ports.store.append(std::slice::from_ref(&late)).await?;
    let found = ports.store.history(Some(partition), place, 10).await?;
    assert_eq!(found.into_iter().map(|(_, observation)| observation).collect::<Vec<_>>(), noted(&[late]));
    Ok(())
}

/// Decisions without a partition are stored too, for example those about unreadable messages.
pub async fn observations_without_partition_are_found(ports: &Ports<'_>) -> CheckResult {
    let partition = sample::partition(ports.host);
    let junk = |n| DecisionRecord {
        partition: None,
        message_id: None,
        message: String::new(),
        why: format!("junk {}", ports.host.fresh_id()),
        ..observation(ports.host, partition, n, n.into())
    };
    let appended = [junk(0), junk(1)];
    ports.store.append(&appended).await?;
    let junk = noted(&appended);
    assert_eq!(pages(ports.store, Some(partition), 10).await?, []);
    let mut found = pages(ports.store, None, 100).await?;
    found.retain(|observation| junk.contains(observation));
    assert_eq!(found, junk);
    Ok(())
}

/// Repeating the removal succeeds, and later observations are kept.
pub async fn removal_deletes_only_its_partition(ports: &Ports<'_>) -> CheckResult {
    let (partition, other) = (sample::partition(ports.host), sample::partition(ports.host));
    let of = |partition, n| observation(ports.host, partition, n, 0);
    let kept = of(other, 2);
    ports.store.append(&[of(partition, 0), of(partition, 1), kept.clone()]).await?;
    for _ in 0..2 {
        ports.store.remove(partition).await?;
        assert_eq!(pages(ports.store, Some(partition), 10).await?, []);
    }
    assert_eq!(pages(ports.store, Some(other), 10).await?, noted(&[kept]));
    let later = of(partition, 3);
    ports.store.append(std::slice::from_ref(&later)).await?;
    assert_eq!(pages(ports.store, Some(partition), 10).await?, noted(&[later]));
    Ok(())
}
