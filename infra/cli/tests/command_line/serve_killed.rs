//! Clients that import while the server is repeatedly killed and restarted: every search is imported exactly once.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use reqwest::StatusCode;
use serde_json::json;
use servers::TestResult;
use servers::mongo::eventually;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::program::Program;
use crate::serve::{Api, PROJECT, Server, TIMEOUT, json_of};

const SEARCHES: usize = 60;
const KILLS: usize = 3;
const CLIENTS: usize = 6;
/// The records of each file.
const RECORDS: usize = 3;

/// The state that all clients share.
struct ClientState {
    api: watch::Receiver<Api>,
    next: AtomicUsize,
    uploaded: watch::Sender<usize>,
}

/// Imports searches until there are no more. Returns the ids that the server responded with.
async fn import(shared: Arc<ClientState>) -> BTreeSet<String> {
    let (mut ids, mut api) = (BTreeSet::new(), shared.api.clone());
    loop {
        let number = shared.next.fetch_add(1, Ordering::Relaxed);
        if number >= SEARCHES {
            return ids;
        }
        loop {
            let current = api.borrow_and_update().clone();
            if import_one(&current, number, &mut ids).await.is_ok() {
                break;
            }
            // A server that was killed before it responded may have acted, so everything is repeated at its successor.
            api.changed().await.unwrap();
        }
        shared.uploaded.send_modify(|uploaded| *uploaded += 1);
    }
}

/// Announces a search under its own key, and uploads its file. Fails only if the server was killed.
async fn import_one(api: &Api, number: usize, ids: &mut BTreeSet<String>) -> TestResult {
    let records = (0..RECORDS).map(|record| {
        format!("TY  - JOUR\nTI  - Study {record} of search {number}\nAU  - One, Ann\nER  - \n\n")
    });
    let content: String = records.collect();
    let file = json!({ "name": "x.ris", "size_bytes": content.len() });
    let search = json!({ "name": format!("Search {number}"), "files": [file] });
    let response = api.announce(Some(&format!("killed-{number}")), &search).await?;
    assert_eq!(response.status(), StatusCode::CREATED);
    let announced = json_of(response).await?;
    ids.insert(announced["search_id"].as_str().unwrap().to_owned());
    // A file that arrived before the server was killed needs no upload.
    if let Some(file) = announced["files"].get(0) {
        let status = api.upload(&file["upload"], content.as_bytes()).await?.status();
        assert!(status.is_success() || status == StatusCode::CONFLICT, "{status}");
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn repeatedly_killed_server_imports_each_search_once() -> TestResult {
    let program = Program::new();
    let mut server = Server::start(&program);
    let (moved, api) = watch::channel(server.api.clone());
    let (uploaded, mut progress) = watch::channel(0);
    let shared = Arc::new(ClientState { api, next: AtomicUsize::new(0), uploaded });
    let mut clients = JoinSet::new();
    for _ in 0..CLIENTS {
        clients.spawn(import(Arc::clone(&shared)));
    }
    for kill in 1..=KILLS {
        progress.wait_for(|uploaded| *uploaded >= SEARCHES * kill / (KILLS + 1)).await?;
        drop(server);
        server = Server::start(&program);
        moved.send(server.api.clone())?;
    }
    let announced: BTreeSet<String> = clients.join_all().await.into_iter().flatten().collect();
    assert_eq!(announced.len(), SEARCHES, "one search for each idempotency key");

    let list = format!("/projects/{PROJECT}/searches");
    let mut listed = Vec::new();
    eventually("all searches have ended", TIMEOUT, async || {
        let page = json_of(server.get(&format!("{list}?limit=200")).await?).await?;
        listed = page["items"].as_array().unwrap().clone();
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(
            listed.iter().all(|search| !search["completed_at"].is_null()),
        )
    })
    .await?;
    let ids = listed.iter().map(|search| search["search_id"].as_str().unwrap().to_owned());
    assert_eq!(ids.collect::<BTreeSet<_>>(), announced);
    assert_eq!(listed.len(), SEARCHES);
    for search in &listed {
        assert_eq!(search["state"], "Completed", "{search}");
        let studies = format!("{list}/{}/studies", search["search_id"].as_str().unwrap());
        let stored = json_of(server.get(&studies).await?).await?;
        assert_eq!(stored["items"].as_array().unwrap().len(), RECORDS, "{stored}");
    }
    Ok(())
}
