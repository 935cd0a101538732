//! History: items that overlap in time, and writes that the service did not make.

use aws_sdk_dynamodb::Client;
use backend::SystemHost;
use contracts::history::{noted, observation};
use contracts::sample;
use dynamo::{Dynamo, Settings};
use jiff::SignedDuration;
use messages::{DecisionRecord, PartitionKey};
use saga::KeepHistory;
use saga::history::Place;
use serde_json::{Value, json};
use servers::TestResult;
use servers::amazon::{Service, config, config_at};
use servers::net::ScriptedServer;

use super::{store, with_store};

fn decisions(partition: PartitionKey, seconds: impl IntoIterator<Item = (u32, i64)>) -> Vec<DecisionRecord> {
    seconds.into_iter().map(|(n, seconds)| observation(&SystemHost, partition, n, seconds)).collect()
}

/// Reads the history in pages, and checks that each decision is returned once and in order.
async fn check_pages(store: &Dynamo, expected: &[DecisionRecord], limit: usize) -> TestResult {
    let partition = expected[0].partition;
    let (mut found, mut after): (Vec<_>, Option<Place>) = (Vec::new(), None);
    loop {
        let page = store.history(partition, after, limit).await?;
        let Some((place, _)) = page.last() else { break };
        after = Some(*place);
        found.extend(page.into_iter().map(|(_, decision)| decision));
    }
    assert_eq!(found, noted(expected), "in pages of {limit}");
    Ok(())
}

#[tokio::test]
async fn history_of_processes_is_ordered_by_time() -> TestResult {
    with_store(|store| async move {
        let decided = decisions(sample::partition(&SystemHost), (0..6).map(|n| (n, n.into())));
        let of = |numbers: [usize; 3]| numbers.map(|n| decided[n].clone());
        store.append(&of([1, 3, 5])).await?;
        store.append(&of([0, 2, 4])).await?;
        for limit in [1, 2, 5, 10] {
            check_pages(&store, &decided, limit).await?;
        }
        Ok(())
    })
    .await
}

/// Two processes take turns for longer than an item may span, in more items than are read at once.
#[tokio::test]
async fn long_history_is_read_in_pages() -> TestResult {
    with_store(|store| async move {
        let decided = decisions(sample::partition(&SystemHost), (0..240).map(|n| (n, i64::from(n) * 20)));
        let (even, odd): (Vec<_>, Vec<_>) =
            decided.chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).unzip();
        store.append(&even).await?;
        store.append(&odd).await?;
        for limit in [7, 120, 1_000] {
            check_pages(&store, &decided, limit).await?;
        }
        Ok(())
    })
    .await
}

/// TTL deletes late.
#[tokio::test]
async fn decisions_are_not_shown_after_their_retention() -> TestResult {
    with_store(|kept| async move {
        let partition = sample::partition(&SystemHost);
        let settings =
            Settings { history_retention: SignedDuration::from_mins(30), ..kept.settings().clone() };
        let client = Client::new(&config(Service::DynamoDb).await);
        let store = Dynamo::new(client, settings, std::sync::Arc::new(SystemHost));
        let decided = decisions(partition, [(0, -3_600), (1, -60)]);
        store.append(&decided).await?;
        check_pages(&store, &decided[1..], 10).await
    })
    .await
}

/// A throttled service makes some writes of a call. The client repeats only the remaining writes.
#[tokio::test]
async fn unprocessed_decisions_are_written_again() -> TestResult {
    let server = ScriptedServer::start(|index, body| {
        let requested: Value = serde_json::from_str(body).unwrap();
        let puts = requested["RequestItems"]["store"].as_array().unwrap();
        let unprocessed = match index {
            0 => json!({ "store": puts[1..] }),
            _ => json!({}),
        };
        assert_eq!(puts.len(), [3, 2][index]);
        (200, json!({ "UnprocessedItems": unprocessed }).to_string())
    })
    .await;
    let store = store(Client::new(&config_at(&server.address).await), "store");
    let decided = [0, 1, 2].map(|n| observation(&SystemHost, sample::partition(&SystemHost), n, 0));
    store.append(&decided).await?;
    assert_eq!(server.requests(), 2);
    Ok(())
}
