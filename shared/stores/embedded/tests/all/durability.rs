//! Acknowledged writes survive a crash.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use contracts::sample;
use dedup::GrantTokens;
use embedded::{Settings, Store};
use futures::FutureExt;
use imports::queues::{QUEUES, SAGA};
use messages::{Outgoing, PartitionKey, ReceiveMessages, SendMessages};
use outbox::{ReadViews, WriteViews};
use saga::{Persist, ReadDocuments, WriteDocuments};

use crate::depot::{Depot, TestResult};

fn outgoing(depot: &Depot) -> Outgoing {
    let message = sample::message(&*depot.host, sample::partition(&*depot.host));
    Outgoing::new(&message, SAGA, Duration::ZERO).unwrap()
}

#[tokio::test]
async fn acknowledged_data_survives_unclosed_store() -> TestResult {
    let depot = Depot::new();
    let (store, host) = (depot.store.clone(), &*depot.host);
    let partition = sample::partition(host);
    let entry = sample::entry(host, partition, sample::now(host))?;
    let write = Persist {
        add: vec![entry.clone()],
        ..sample::persist(partition, None, sample::content(host, "kept"))
    };
    store.persist(&[write], sample::now(host)).await?;
    let view = sample::view(host, partition, 2, false);
    WriteViews::write(&store, std::slice::from_ref(&view)).await?;
    store.grant(partition, &[], sample::now(host)).await?;
    let message = outgoing(&depot);
    assert!(store.send(std::slice::from_ref(&message)).await.iter().all(Result::is_ok));
    // As a crash does: nothing is closed, and no thread ends.
    std::mem::forget(store);

    let after = depot.reopened();
    let document = after.load(&[partition], sample::now(host)).await?.remove(0)?;
    assert_eq!(document.map(|document| document.outbox), Some(vec![entry]));
    assert_eq!(after.view(partition).await?, Some(view));
    let received = after.receive(&SAGA, 10, Duration::from_secs(30)).await?;
    assert_eq!(received.first().map(|received| &received.delivery.body), Some(&message.body));
    Ok(())
}

#[tokio::test]
async fn write_completes_after_future_is_dropped() -> TestResult {
    let depot = Depot::new();
    let message = outgoing(&depot);
    let sending = depot.store.send(std::slice::from_ref(&message));
    // Polled once, so that it is submitted, and then dropped.
    let _ = sending.now_or_never();
    let Depot { store, folder, host } = depot;
    drop(store);
    let after = Store::open(folder.path(), host, Settings::new(&QUEUES))?;
    assert_eq!(after.count_messages().await?[&SAGA].visible, 1);
    Ok(())
}

#[tokio::test]
async fn dropping_last_clone_waits_for_pending_writes() -> TestResult {
    let Depot { store, folder, host } = Depot::new();
    let partition = sample::partition(&*host);
    for n in 0..500 {
        messages::DecisionSink::observe(&store, observation(partition, n));
    }
    drop(store);
    let after = Store::open(folder.path(), host, Settings::new(&QUEUES))?;
    assert_eq!(after.decisions(partition).await?.len(), 500);
    Ok(())
}

/// The variable with the data directory of the process to kill.
const FOLDER: &str = "EMBEDDED_FOLDER_OF_THE_VICTIM";

/// This function is not a separate test: [`acknowledged_data_survives_kill_9`] starts and kills this process.
#[tokio::test]
#[ignore = "is run by another test, in a process of its own"]
async fn victim_writes_until_killed() -> TestResult {
    let Some(folder) = std::env::var_os(FOLDER) else { return Ok(()) };
    let host = std::sync::Arc::new(contracts::ManualHost::seeded(1));
    let store = Store::open(folder.as_ref(), host.clone(), Settings::new(&QUEUES))?;
    loop {
        let partitions: Vec<_> = (0..8).map(|_| sample::partition(&*host)).collect();
        let write = async |partition| {
            let entry = sample::entry(&*host, partition, sample::now(&*host))?;
            let content = sample::content(&*host, "acknowledged");
            let write = Persist { add: vec![entry], ..sample::persist(partition, None, content) };
            store.persist(&[write], sample::now(&*host)).await?;
            // Only writes that were confirmed are printed.
            println!("stored {partition}");
            TestResult::Ok(())
        };
        futures::future::try_join_all(partitions.into_iter().map(write)).await?;
    }
}

#[tokio::test]
async fn acknowledged_data_survives_kill_9() -> TestResult {
    let folder = tempfile::tempdir()?;
    let mut told = Vec::new();
    for lines in [1, 100, 333] {
        let mut victim = Command::new(std::env::current_exe()?)
            .args(["--ignored", "--exact", "--nocapture", "durability::victim_writes_until_killed"])
            .env(FOLDER, folder.path().join(lines.to_string()))
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(victim.stdout.take().ok_or("no output")?);
        let stored = output
            .lines()
            .map_while(Result::ok)
            .filter_map(|line| Some(line.split_once("stored ")?.1.parse()));
        let partitions = stored.take(lines).collect::<Result<Vec<PartitionKey>, _>>()?;
        victim.kill()?;
        victim.wait()?;
        assert_eq!(partitions.len(), lines, "it ended by itself");
        told.push((lines, partitions));
    }
    for (name, partitions) in told {
        let host = std::sync::Arc::new(contracts::ManualHost::seeded(2));
        let now = sample::now(&*host);
        let store = Store::open(&folder.path().join(name.to_string()), host, Settings::new(&QUEUES))?;
        for found in store.load(&partitions, now).await? {
            assert_eq!(found?.map(|document| document.outbox.len()), Some(1), "content and outbox");
        }
    }
    Ok(())
}

pub(crate) fn observation(partition: PartitionKey, n: u32) -> messages::DecisionRecord {
    messages::DecisionRecord {
        at: jiff::Timestamp::UNIX_EPOCH,
        function: "run-saga".into(),
        partition: Some(partition),
        message_id: None,
        message: "SearchUploadSaved".into(),
        verdict: messages::Verdict::Handled,
        why: format!("decision {n}"),
        source: "notify-upload".into(),
        traceparent: None,
        began_at: None,
        attempt: None,
        state: None,
    }
}
