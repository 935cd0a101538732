//! Operator commands for exhausted outbox entries.

use std::sync::Arc;

use backend::{Backend, Config, SystemHost};
use contracts::sample;
use imports::messages::UploadTimeout;
use imports::queues::SAGA;
use imports::{SearchEvent, SearchId, TimeoutId};
use jiff::Timestamp;
use messages::{Host, Message, MessageId, Payload};
use outbox::{Entry, Owner, StageError};
use saga::Persist;
use serde_json::Value;
use servers::TestResult;

use crate::program::{Program, bundled};

/// Creates an entry with the timeout of a search.
fn entry(search: SearchId, due_at: Timestamp) -> Result<Entry, StageError> {
    let (message, timeout_id) = (SystemHost.fresh_id(), TimeoutId::from_uuid(SystemHost.fresh_id()));
    let timeout = SearchEvent::UploadTimeout(UploadTimeout::of_timer(timeout_id));
    let body = timeout.body().map_err(|error| StageError::new(timeout.kind().name, error))?;
    let now = sample::now(&SystemHost);
    let message = Message::new(MessageId::from_uuid(message), "testing", search, now, body);
    Entry::message(&message, SAGA, due_at)
}

/// Creates a search with one entry that waits for an hour and two exhausted entries. Returns its id and theirs.
pub(crate) async fn with_entries(
    backend: &Backend,
) -> Result<(SearchId, [String; 3]), Box<dyn std::error::Error + Send + Sync>> {
    let (host, search) = (&SystemHost, sample::partition(&SystemHost));
    let now = sample::now(host);
    let exhausted = |age: i64| -> Result<Entry, StageError> {
        let error = Some(format!("refused {age} s ago"));
        let due_at = sample::later(now, -age);
        Ok(Entry { poisoned: true, attempts: 5, error, ..entry(search, due_at)? })
    };
    let add = vec![entry(search, sample::later(now, 3_600))?, exhausted(10)?, exhausted(1_000)?];
    let ids = [0, 1, 2].map(|index: usize| add[index].id.to_string());
    let write = Persist { add, ..sample::persist(search, None, sample::content(host, "stuck")) };
    backend.ports.engine.stores()?.write_documents.persist(&[write], now).await?;
    Ok((search, ids))
}

/// Checks the audit log, the latest change first.
fn assert_recorded(program: &Program, changes: [(&str, &str); 2]) {
    let entries = program.run(&["failures", "audit", "--json"]).lines();
    let recorded =
        entries.iter().map(|entry| (entry["did"].as_str().unwrap(), entry["to"].as_str().unwrap()));
    assert_eq!(recorded.collect::<Vec<_>>(), changes);
}

/// Checks that `program` lists, shows, requeues and deletes the entries in `backend`.
pub(crate) async fn operates(program: &Program, backend: &Backend) -> TestResult {
    let (search, [waiting, young, old]) = with_entries(backend).await?;
    let list = |more: &[&str]| -> Vec<Value> {
        program.run(&[&["outbox", "list", "--json"], more].concat()).lines()
    };
    let ids = |entries: Vec<Value>| -> Vec<String> {
        entries.iter().map(|entry| entry["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(ids(list(&[])), [&*waiting, &*young, &*old]);
    assert_eq!(ids(list(&["--state", "exhausted"])), [&*young, &*old]);
    assert_eq!(ids(list(&["--state", "exhausted", "--older-than", "100"])), [&*old]);
    let shown = program.run(&["outbox", "show", &old, "--json"]).json();
    assert_eq!(shown["owner"], format!("search {search}"));
    assert_eq!((&shown["attempts"], &shown["error"]), (&5.into(), &"refused 1000 s ago".into()));
    assert!(shown["payload"].as_str().unwrap().contains("UploadTimeout"), "{shown}");

    let dry = program.run(&["outbox", "requeue", "--all", "--dry-run", "--json"]);
    assert_eq!((dry.code, dry.lines().len()), (Some(0), 2), "{}", dry.stderr);
    assert_eq!(
        ids(list(&["--state", "poisoned"])),
        [&*young, &*old],
        "the name of the API, and nothing changed"
    );
    let run = program.run(&["outbox", "requeue", &old, "--json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let requeued = run.json();
    assert_eq!((&requeued["state"], &requeued["attempts"]), (&"waiting".into(), &0.into()), "as it is now");
    assert_eq!(requeued["requeued"], 1);
    assert!(run.stderr.contains("1 entry requeued"), "{}", run.stderr);
    let again = program.run(&["outbox", "requeue", &old]);
    assert_eq!(again.code, Some(1), "it is no longer exhausted");
    assert!(again.stderr.contains(&old), "{}", again.stderr);
    let deleted = program.run(&["outbox", "delete", "--all", "--json"]);
    assert_eq!((deleted.code, deleted.lines().len()), (Some(0), 1), "{}", deleted.stderr);
    assert_eq!(deleted.json()["state"], "deleted");
    assert_recorded(program, [("deleted", &young), ("requeued", &old)]);
    let left = backend.ports.engine.stores()?.saga_outbox.pending(None, 1_000).await?;
    let of_search = left.into_iter().find(|pending| pending.owner == Some(Owner::Saga(search))).unwrap();
    let states: Vec<(String, u32, u32, bool)> = of_search
        .entries
        .iter()
        .map(|stored| stored.as_ref().unwrap())
        .map(|entry| (entry.id.to_string(), entry.attempts, entry.requeued, entry.poisoned))
        .collect();
    assert_eq!(states, [(waiting, 0, 0, false), (old, 0, 1, false)]);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn exhausted_entries_are_requeued_or_deleted() -> TestResult {
    let program = Program::new();
    let config = Config { data_dir: program.folder().join("data"), ..Config::default() };
    let backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
    operates(&program, &backend).await
}

#[tokio::test(flavor = "multi_thread")]
async fn outbox_changes_are_printed_as_sentences() -> TestResult {
    let program = Program::new();
    let config = Config { data_dir: program.data(), ..Config::default() };
    let backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
    let (search, [_, young, old]) = with_entries(&backend).await?;
    let said = |args: &[&str]| program.run(&[&["outbox"], args].concat()).stdout;
    let dry = said(&["requeue", "--all", "--dry-run"]);
    assert!(
        dry.contains(&format!("{old}: message to saga of search {search}, would be requeued\n")),
        "{dry}"
    );
    assert!(dry.ends_with("\n2 entries would be requeued\n"), "{dry}");
    let run = said(&["requeue", &old]);
    assert_eq!(run, format!("{old}: message to saga of search {search}, requeued\n1 entry requeued\n"));
    let run = said(&["delete", &young]);
    assert_eq!(run, format!("{young}: message to saga of search {search}, deleted\n1 entry deleted\n"));
    Ok(())
}

#[test]
fn outbox_of_missing_directory_is_an_error() {
    let program = Program::new();
    let run = program.run(&["outbox", "requeue", "--all"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("there is no data directory"), "{}", run.stderr);
    assert_eq!(program.run(&["outbox", "delete"]).code, Some(2), "which ones?");
}

#[test]
fn import_leaves_empty_outbox() {
    let program = Program::new();
    for trial in [&[] as &[&str], &["--duplicate", "2", "--shuffle", "3"]] {
        program.import(&["psycinfo.ris", "broken.ris"].map(bundled), trial);
        assert_eq!(program.run(&["outbox", "list"]).stdout, "0 entries\n");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn outbox_list_fits_80_columns_with_whole_errors() -> TestResult {
    let program = Program::new();
    let config = Config { data_dir: program.data(), ..Config::default() };
    let backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
    let (search, ids) = with_entries(&backend).await?;
    let error = "the queue has rejected the message again and again without giving any reason".to_owned();
    let entry = Entry { poisoned: true, error: Some(error.clone()), ..entry(search, Timestamp::UNIX_EPOCH)? };
    let add = vec![entry];
    let host = &SystemHost;
    let write = Persist { add, ..sample::persist(sample::partition(host), None, sample::content(host, "x")) };
    backend.ports.engine.stores()?.write_documents.persist(&[write], sample::now(host)).await?;
    let listed = program.run(&["outbox", "list"]).stdout;
    assert!(listed.lines().all(|line| line.chars().count() <= 80), "{listed}");
    let words: Vec<&str> = listed.split_whitespace().collect();
    assert!(error.split(' ').all(|word| words.contains(&word)), "{listed}");
    assert!(ids.iter().all(|id| listed.contains(id.as_str())), "{listed}");
    assert!(listed.ends_with("\n4 entries\n"), "{listed}");
    Ok(())
}
