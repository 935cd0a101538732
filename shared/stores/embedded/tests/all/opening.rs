//! Data directories that are opened and that are refused.

use std::sync::Arc;

use contracts::{ManualHost, sample};
use embedded::{LockError, OpenError, Settings, Store};
use imports::queues::QUEUES;
use outbox::{ReadViews, WriteViews};

use crate::depot::{Depot, TestResult};

fn open(folder: &std::path::Path) -> Result<Store, OpenError> {
    Store::open(folder, Arc::new(ManualHost::seeded(1)), Settings::new(&QUEUES))
}

#[test]
fn newer_schema_is_refused_with_number() {
    let Depot { store, folder, .. } = Depot::new();
    drop(store);
    let database = rusqlite::Connection::open(folder.path().join("search-import.sqlite")).unwrap();
    database.pragma_update(None, "user_version", 99).unwrap();
    let error = open(folder.path()).err().unwrap();
    assert!(matches!(error, OpenError::Newer { found: 99, .. }));
    assert!(error.to_string().contains("schema version 99"), "{error}");
}

#[test]
fn other_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("search-import.sqlite"), "TY  - JOUR\n".repeat(1000)).unwrap();
    assert!(matches!(open(folder.path()).err(), Some(OpenError::NotOurs { .. })));
}

#[test]
fn foreign_database_is_refused_unchanged() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("search-import.sqlite");
    rusqlite::Connection::open(&path).unwrap().execute_batch("CREATE TABLE bookmarks (url TEXT)").unwrap();
    let before = std::fs::read(&path).unwrap();
    assert!(matches!(open(folder.path()).err(), Some(OpenError::NotOurs { .. })));
    assert!(std::fs::read(&path).unwrap() == before);
}

/// None of these is executed, since the test would not end.
#[test]
fn database_with_code_is_refused_unchanged() {
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) AS i FROM n";
    for (kind, name, made) in [
        (
            "trigger",
            "endless",
            format!("CREATE TRIGGER endless AFTER INSERT ON message BEGIN {endless}; END"),
        ),
        ("trigger", "later", format!("CREATE TRIGGER later AFTER UPDATE ON object BEGIN {endless}; END")),
        ("view", "slow", format!("CREATE VIEW slow AS {endless}")),
        ("virtual table", "texts", "CREATE VIRTUAL TABLE texts USING fts5(text)".to_owned()),
    ] {
        let Depot { store, folder, .. } = Depot::new();
        drop(store);
        let path = folder.path().join("search-import.sqlite");
        rusqlite::Connection::open(&path).unwrap().execute_batch(&made).unwrap();
        let before = std::fs::read(&path).unwrap();
        let reading =
            Store::open_read_only(folder.path(), Arc::new(ManualHost::seeded(1)), Settings::new(&QUEUES));
        for error in [open(folder.path()).err(), reading.err()] {
            let error = error.expect("it is refused");
            assert!(matches!(error, OpenError::Programmed { .. }), "{error}");
            assert!(error.to_string().contains(&format!("the {kind} \"{name}\"")), "{error}");
        }
        assert!(std::fs::read(&path).unwrap() == before);
    }
}

#[test]
fn empty_folder_cannot_be_inspected() {
    let folder = tempfile::tempdir().unwrap();
    let error =
        Store::open_read_only(folder.path(), Arc::new(ManualHost::seeded(1)), Settings::new(&QUEUES)).err();
    assert!(matches!(error, Some(OpenError::Folder { .. })));
}

#[test]
fn second_lock_names_the_holder() {
    let folder = tempfile::tempdir().unwrap();
    let lock = Store::lock(folder.path()).unwrap();
    let error = Store::lock(folder.path()).err().unwrap();
    assert!(
        matches!(&error, LockError::Held { pid: Some(pid), .. } if *pid == std::process::id()),
        "{error}"
    );
    drop(lock);
    assert!(Store::lock(folder.path()).is_ok(), "it ends with its holder");
}

#[tokio::test]
async fn read_only_store_reads_concurrent_writes() -> TestResult {
    let depot = Depot::new();
    let (store, host) = (&depot.store, &*depot.host);
    let beside = Store::open_read_only(depot.folder.path(), depot.host.clone(), Settings::new(&QUEUES))?;
    for revision in 1..=20 {
        let view = sample::view(host, sample::partition(host), revision, false);
        WriteViews::write(store, std::slice::from_ref(&view)).await?;
        assert_eq!(beside.view(view.partition).await?, Some(view));
    }
    let view = sample::view(host, sample::partition(host), 1, false);
    let error = WriteViews::write(&beside, &[view]).await.unwrap_err();
    assert!(!error.is_retryable() && error.chain().contains("reading only"), "{}", error.chain());
    Ok(())
}
