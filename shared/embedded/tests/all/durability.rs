//! What was acknowledged is there after a crash.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use contracts::{Destination, JobState};
use dedup::GrantTokens;
use embedded::Store;
use futures::FutureExt;
use imports::{ReadJobs, WriteJobs};
use outbox::{Outgoing, Queue, ReceiveMessages, SendMessages};
use testing::sample;
use worker::document::{Persist, ReadSaga, WriteSaga};

use crate::depot::{Depot, Tested};

fn outgoing(depot: &Depot) -> Outgoing {
    let search_id = sample::search(&*depot.host);
    let message = sample::message(&*depot.host, search_id);
    let body = message.encode().unwrap();
    Outgoing { id: message.id, search_id, destination: Destination::Saga, body, delay: Duration::ZERO }
}

#[tokio::test]
async fn what_was_acknowledged_survives_a_store_that_was_never_closed() -> Tested {
    let depot = Depot::new();
    let (store, host) = (depot.store.clone(), &*depot.host);
    let search = sample::search(host);
    let entry = sample::entry(host, search, sample::now(host))?;
    let write = Persist {
        add: vec![entry.clone()],
        ..sample::persist(search, None, sample::uploading(host, "kept"))
    };
    store.persist(&[write], sample::now(host)).await?;
    let job = sample::job(host, search, 2, JobState::Uploading);
    WriteJobs::write(&store, std::slice::from_ref(&job)).await?;
    store.grant(search, &[], sample::now(host)).await?;
    let message = outgoing(&depot);
    assert!(store.send(std::slice::from_ref(&message)).await.iter().all(Result::is_ok));
    // As a crash does: nothing is closed, and no thread ends.
    std::mem::forget(store);

    let after = depot.reopened();
    let loaded = after.load(&[search], sample::now(host)).await?;
    assert_eq!(
        loaded.first().and_then(Option::as_ref).map(|document| document.outbox.clone()),
        Some(vec![entry])
    );
    assert_eq!(after.job(search).await?, Some(job));
    let received = after.receive(Queue::Saga, 10, Duration::from_secs(30)).await?;
    assert_eq!(received.first().map(|received| &received.delivery.body), Some(&message.body));
    Ok(())
}

#[tokio::test]
async fn a_write_whose_future_was_dropped_is_made_all_the_same() -> Tested {
    let depot = Depot::new();
    let message = outgoing(&depot);
    let sending = depot.store.send(std::slice::from_ref(&message));
    // Polled once, so that it is handed over, and then given up.
    let _ = sending.now_or_never();
    let Depot { store, folder, host } = depot;
    drop(store);
    let after = Store::open(folder.path(), host, embedded::Settings::default())?;
    assert_eq!(after.depths().await?[&Queue::Saga].visible, 1);
    Ok(())
}

#[tokio::test]
async fn dropping_the_last_clone_waits_for_what_was_handed_over() -> Tested {
    let Depot { store, folder, host } = Depot::new();
    let search = sample::search(&*host);
    for n in 0..500 {
        contracts::Observe::observe(&store, observation(search, n));
    }
    drop(store);
    let after = Store::open(folder.path(), host, embedded::Settings::default())?;
    assert_eq!(after.decisions(search).await?.len(), 500);
    Ok(())
}

/// Where the process that is to be killed finds its data directory.
const FOLDER: &str = "EMBEDDED_FOLDER_OF_THE_VICTIM";

/// Not a test by itself: what [`nothing_that_was_acknowledged_is_lost_by_kill_9`] starts and kills.
#[tokio::test]
#[ignore = "is run by another test, in a process of its own"]
async fn the_victim_writes_until_it_is_killed() -> Tested {
    let Some(folder) = std::env::var_os(FOLDER) else { return Ok(()) };
    let host = std::sync::Arc::new(testing::ManualHost::seeded(1));
    let store = Store::open(folder.as_ref(), host.clone(), embedded::Settings::default())?;
    loop {
        let searches: Vec<_> = (0..8).map(|_| sample::search(&*host)).collect();
        let write = async |search| {
            let entry = sample::entry(&*host, search, sample::now(&*host))?;
            let content = sample::uploading(&*host, "acknowledged");
            let write = Persist { add: vec![entry], ..sample::persist(search, None, content) };
            store.persist(&[write], sample::now(&*host)).await?;
            // Only what was answered is told.
            println!("stored {search}");
            Tested::Ok(())
        };
        futures::future::try_join_all(searches.into_iter().map(write)).await?;
    }
}

#[tokio::test]
async fn nothing_that_was_acknowledged_is_lost_by_kill_9() -> Tested {
    let folder = tempfile::tempdir()?;
    let mut told = Vec::new();
    for lines in [1, 100, 333] {
        let mut victim = Command::new(std::env::current_exe()?)
            .args(["--ignored", "--exact", "--nocapture", "durability::the_victim_writes_until_it_is_killed"])
            .env(FOLDER, folder.path().join(lines.to_string()))
            .stdout(Stdio::piped())
            .spawn()?;
        let output = BufReader::new(victim.stdout.take().ok_or("no output")?);
        let stored = output
            .lines()
            .map_while(Result::ok)
            .filter_map(|line| Some(line.split_once("stored ")?.1.parse()));
        let searches = stored.take(lines).collect::<Result<Vec<contracts::SearchId>, _>>()?;
        victim.kill()?;
        victim.wait()?;
        assert_eq!(searches.len(), lines, "it ended by itself");
        told.push((lines, searches));
    }
    for (name, searches) in told {
        let host = std::sync::Arc::new(testing::ManualHost::seeded(2));
        let now = sample::now(&*host);
        let store = Store::open(&folder.path().join(name.to_string()), host, embedded::Settings::default())?;
        for found in store.load(&searches, now).await? {
            assert_eq!(found.map(|document| document.outbox.len()), Some(1), "content and outbox");
        }
    }
    Ok(())
}

pub(crate) fn observation(search: contracts::SearchId, n: u32) -> contracts::Observation {
    contracts::Observation {
        at: jiff::Timestamp::UNIX_EPOCH,
        function: "run-saga".into(),
        search_id: Some(search),
        message_id: None,
        message: "SearchUploadSaved".into(),
        verdict: contracts::Verdict::Handled,
        why: format!("decision {n}"),
        source: "notify-upload".into(),
        traceparent: None,
        began_at: None,
    }
}
