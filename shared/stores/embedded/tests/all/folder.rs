//! Data directories from untrusted sources, with missing files, or with files of other programs.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use contracts::{ManualHost, sample};
use embedded::{LockError, OpenError, Settings, Store};
use imports::queues::QUEUES;
use messages::store::chain;
use rusqlite::Connection;
use tempfile::TempDir;

use crate::depot::{Depot, TestResult};

const DATABASE: &str = "search-import.sqlite";

/// Opens a directory as a program does at its start. Returns the one-line error if it is refused.
async fn refusal(dir: &Path) -> Option<String> {
    let open = async || -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let lock = Store::lock(dir)?;
        let store = Store::open(dir, Arc::new(ManualHost::seeded(2)), Settings::new(&QUEUES))?;
        store.recover(&lock).await?;
        Ok(())
    };
    let said = open().await.err().map(|error| chain(error.as_ref()))?;
    assert_eq!(said.lines().count(), 1, "{said}");
    for sql in ["SELECT", "CREATE", "UPDATE", "INSERT", "PRAGMA"] {
        assert!(!said.contains(sql), "{said}");
    }
    Some(said)
}

/// A directory that was worked in, with one uploaded object and nothing open.
async fn used() -> Result<TempDir, Box<dyn std::error::Error + Send + Sync>> {
    let depot = Depot::new();
    depot.upload("uploads/a", b"precious").await?;
    let Depot { folder, store, .. } = depot;
    drop(store);
    // Everything is in the database's own file then, and not in its log.
    changed(&folder.path().join(DATABASE), "PRAGMA journal_mode = WAL");
    assert!(!folder.path().join("search-import.sqlite-wal").exists());
    Ok(folder)
}

/// The content of each object's file, unpacked.
fn objects(dir: &Path) -> Vec<String> {
    let files = fs::read_dir(dir.join("objects")).unwrap();
    let unpacked = files.map(|file| {
        let packed = fs::read(file.unwrap().path()).unwrap();
        String::from_utf8(zstd::stream::decode_all(packed.as_slice()).unwrap()).unwrap()
    });
    unpacked.collect()
}

#[cfg(unix)]
#[tokio::test]
async fn symlinks_in_data_directory_are_refused() -> TestResult {
    use std::os::unix::fs::symlink;

    for name in ["objects", "lock", DATABASE, "search-import.sqlite-wal", "search-import.sqlite-shm"] {
        let (archive, elsewhere) = (used().await?, TempDir::new()?);
        let precious = ["partial-019b76da-a800-7000-8000-000005000001", "notes.txt"];
        for file in precious {
            fs::write(elsewhere.path().join(file), "precious")?;
        }
        let place = archive.path().join(name);
        let target = if name == "objects" {
            fs::remove_dir_all(&place)?;
            elsewhere.path().to_owned()
        } else {
            let _ = fs::remove_file(&place);
            elsewhere.path().join("notes.txt")
        };
        symlink(&target, &place)?;
        let said = refusal(archive.path()).await.ok_or("it is refused")?;
        assert!(said.contains(name) && said.contains("is a symbolic link"), "{said}");
        for file in precious {
            assert_eq!(fs::read_to_string(elsewhere.path().join(file))?, "precious", "{name}");
        }
        assert_eq!(fs::read_dir(elsewhere.path())?.count(), precious.len());
    }
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn dangling_symlink_creates_no_file() -> TestResult {
    for name in ["lock", DATABASE] {
        let (archive, elsewhere) = (TempDir::new()?, TempDir::new()?);
        let target = elsewhere.path().join("made");
        std::os::unix::fs::symlink(&target, archive.path().join(name))?;
        assert!(refusal(archive.path()).await.is_some());
        assert!(!target.exists(), "{name}");
    }
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn object_symlink_is_neither_read_nor_removed() -> TestResult {
    let (depot, elsewhere) = (Depot::new(), TempDir::new()?);
    let secret = elsewhere.path().join("secret");
    fs::write(&secret, "secret")?;
    depot.upload("uploads/a", b"mine").await?;
    let objects = depot.folder.path().join("objects");
    let stored = fs::read_dir(&objects)?.next().ok_or("it is stored")??.path();
    fs::remove_file(&stored)?;
    std::os::unix::fs::symlink(&secret, &stored)?;
    let unfinished = objects.join("partial-019b76da-a800-7000-8000-000005000001");
    std::os::unix::fs::symlink(&secret, &unfinished)?;
    let error = depot.read("uploads/a").await.unwrap_err();
    assert!(!error.is_retryable() && error.chain().contains("is a symbolic link"), "{}", error.chain());
    let lock = Store::lock(depot.folder.path())?;
    assert_eq!(depot.store.recover(&lock).await?.files, 0);
    assert!(unfinished.is_symlink() && fs::read_to_string(secret)? == "secret");
    Ok(())
}

#[cfg(unix)]
#[tokio::test]
async fn hard_linked_lock_is_not_written() -> TestResult {
    let (archive, elsewhere) = (TempDir::new()?, TempDir::new()?);
    let precious = elsewhere.path().join("precious");
    fs::write(&precious, "precious")?;
    fs::hard_link(&precious, archive.path().join("lock"))?;
    let _lock = Store::lock(archive.path())?;
    assert_eq!(fs::read_to_string(precious)?, "precious");
    Ok(())
}

#[tokio::test]
async fn stored_file_name_cannot_leave_directory() -> TestResult {
    let elsewhere = TempDir::new()?;
    let precious = elsewhere.path().join("precious");
    fs::write(&precious, "precious")?;
    for name in ["../search-import.sqlite", "../lock", precious.to_str().unwrap(), "..", ""] {
        let depot = Depot::new();
        depot.upload("uploads/a", b"mine").await?;
        depot.database().execute("UPDATE object SET file = ?1", [name])?;
        let error = depot.read("uploads/a").await.unwrap_err();
        assert!(!error.is_retryable() && error.chain().contains("name of an object"), "{}", error.chain());
        // Replacing it would remove the file that the row names.
        assert!(depot.upload("uploads/a", b"again").await.is_err());
        let lock = Store::lock(depot.folder.path())?;
        depot.store.recover(&lock).await?;
        assert!(depot.folder.path().join(DATABASE).exists() && precious.exists());
    }
    Ok(())
}

#[tokio::test]
async fn pending_upload_requires_absolute_path() -> TestResult {
    for path in ["secret.ris", "../secret.ris", "/home/../etc/passwd"] {
        let depot = Depot::new();
        let id = uuid::Uuid::from_u128(1).to_string();
        depot.database().execute(
            "INSERT INTO pending_upload (search_id, project_id, file_id, path, form) VALUES (?1, ?1, ?1, ?2, '{}')",
            [&id, path],
        )?;
        let error = depot.store.pending_uploads().await.unwrap_err();
        assert!(error.chain().contains("whole path"), "{}", error.chain());
    }
    Ok(())
}

#[tokio::test]
async fn lost_database_is_refused_without_data_loss() -> TestResult {
    type Lose = fn(&Path);
    let losses: [Lose; 3] = [
        |database| fs::remove_file(database).unwrap(),
        |database| fs::write(database, "").unwrap(),
        // A database, but no tables in it.
        |database| {
            fs::remove_file(database).unwrap();
            Connection::open(database).unwrap().execute_batch("VACUUM").unwrap();
        },
    ];
    for lose in losses {
        let folder = used().await?;
        lose(&folder.path().join(DATABASE));
        let said = refusal(folder.path()).await.ok_or("it is refused")?;
        assert!(said.contains("is missing or empty") && said.contains("holds 1 uploaded files"), "{said}");
        assert!(said.contains("from a backup"), "{said}");
        assert_eq!(objects(folder.path()), ["precious"]);
    }
    Ok(())
}

/// SQLite removes a log whose database is empty, although it may contain the only copy of the data.
#[tokio::test]
async fn log_without_database_is_kept() -> TestResult {
    let folder = TempDir::new()?;
    let log = folder.path().join("search-import.sqlite-wal");
    fs::write(&log, "precious")?;
    let said = refusal(folder.path()).await.ok_or("it is refused")?;
    assert!(said.contains("search-import.sqlite-wal holds 8 bytes"), "{said}");
    assert_eq!(fs::read_to_string(log)?, "precious");
    assert!(!folder.path().join(DATABASE).exists());
    Ok(())
}

#[tokio::test]
async fn restored_database_keeps_later_uploads() -> TestResult {
    let folder = TempDir::new()?;
    let open = || Store::open(folder.path(), Arc::new(ManualHost::seeded(1)), Settings::new(&QUEUES));
    drop(open()?);
    let backup = fs::read(folder.path().join(DATABASE))?;
    let uploaded = used().await?;
    for file in fs::read_dir(uploaded.path().join("objects"))? {
        let file = file?;
        fs::copy(file.path(), folder.path().join("objects").join(file.file_name()))?;
    }
    fs::write(folder.path().join(DATABASE), backup)?;
    assert_eq!(refusal(folder.path()).await, None);
    assert_eq!(objects(folder.path()), ["precious"]);
    Ok(())
}

/// Damages to a database, and the errors that report them.
type Damage = (&'static str, fn(&Path), &'static str);

const DAMAGES: [Damage; 9] = [
    (
        "a text",
        |path| fs::write(path, "TY  - JOUR\n".repeat(1_000)).unwrap(),
        "is not a database of this program",
    ),
    (
        "another program's",
        |path| remade(path, "CREATE TABLE bookmarks (url TEXT)"),
        "is not a database of this program",
    ),
    ("without a version", |path| changed(path, "PRAGMA user_version = 0"), "is damaged"),
    ("of a later release", |path| changed(path, "PRAGMA user_version = 99"), "has schema version 99"),
    ("of a version before it was", |path| changed(path, "PRAGMA user_version = -1"), "has schema version -1"),
    ("without a table", |path| changed(path, "DROP TABLE object"), "is damaged"),
    ("without a column", |path| changed(path, "ALTER TABLE reading DROP COLUMN place"), "is damaged"),
    ("cut off", |path| fs::write(path, &fs::read(path).unwrap()[..20_000]).unwrap(), "is damaged"),
    (
        "a folder",
        |path| (fs::remove_file(path).unwrap(), fs::create_dir(path).unwrap()).1,
        "is a folder where a file is expected",
    ),
];

fn changed(path: &Path, sql: &str) {
    Connection::open(path).unwrap().execute_batch(sql).unwrap();
}

fn remade(path: &Path, sql: &str) {
    fs::remove_file(path).unwrap();
    changed(path, sql);
}

#[tokio::test]
async fn damaged_or_foreign_database_is_refused_unchanged() -> TestResult {
    for (what, damage, says) in DAMAGES {
        let folder = used().await?;
        let database = folder.path().join(DATABASE);
        damage(&database);
        let before = fs::read(&database).ok();
        let said = refusal(folder.path()).await.ok_or(what)?;
        assert!(said.contains(says) && said.contains(DATABASE), "{what}: {said}");
        assert!(fs::read(&database).ok() == before, "{what}");
        assert_eq!(objects(folder.path()), ["precious"], "{what}");
    }
    Ok(())
}

/// Damage that the checks at the start do not find is reported when it is read.
#[tokio::test]
async fn overwritten_page_is_reported() -> TestResult {
    let folder = used().await?;
    let database = folder.path().join(DATABASE);
    let mut bytes = fs::read(&database)?;
    // All pages but the first two, which hold the schema.
    bytes[8_192..].fill(0xAA);
    fs::write(&database, bytes)?;
    let said = refusal(folder.path()).await.ok_or("it is refused")?;
    assert!(said.contains("is damaged") && said.contains("from a backup"), "{said}");
    assert_eq!(objects(folder.path()), ["precious"]);
    Ok(())
}

#[test]
fn file_instead_of_directory_is_named() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("data");
    fs::write(&file, "").unwrap();
    let error = Store::open(&file, Arc::new(ManualHost::seeded(1)), Settings::new(&QUEUES)).err();
    assert!(matches!(error, Some(OpenError::Folder { .. })));
    assert!(matches!(Store::lock(&file), Err(LockError::Io { .. })));
}

#[cfg(unix)]
#[test]
fn lock_outlives_its_file() {
    let folder = TempDir::new().unwrap();
    let lock = Store::lock(folder.path()).unwrap();
    fs::remove_file(folder.path().join("lock")).unwrap();
    assert!(matches!(Store::lock(folder.path()), Err(LockError::Held { pid: None, .. })));
    // Neither another lock file nor another path of the folder permits a second process.
    fs::write(folder.path().join("lock"), "").unwrap();
    assert!(matches!(Store::lock(&folder.path().join(".")), Err(LockError::Held { .. })));
    drop(lock);
    assert!(Store::lock(folder.path()).is_ok());
}

/// Earlier versions lock only the file.
#[test]
fn earlier_file_lock_is_respected() {
    let folder = TempDir::new().unwrap();
    let file = fs::File::create(folder.path().join("lock")).unwrap();
    file.try_lock().unwrap();
    assert!(matches!(Store::lock(folder.path()), Err(LockError::Held { .. })));
}

#[cfg(unix)]
#[tokio::test]
async fn stored_data_is_private_to_owner() -> TestResult {
    use std::os::unix::fs::PermissionsExt;

    let outer = TempDir::new()?;
    let dir = outer.path().join("a/b");
    let host = Arc::new(ManualHost::seeded(1));
    let _lock = Store::lock(&dir)?;
    let open = || Store::open(&dir, host.clone(), Settings::new(&QUEUES));
    let depot = Depot { folder: outer, host: host.clone(), store: open()? };
    depot.upload("uploads/a", b"mine").await?;
    outbox::WriteViews::write(&depot.store, &[sample::view(&*host, sample::partition(&*host), 1, false)])
        .await?;
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let files = || {
        let all = [dir.clone(), dir.join("objects")].map(|dir| fs::read_dir(dir).unwrap());
        all.into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .collect::<Vec<_>>()
    };
    assert_eq!(files().len(), 5, "{:?}", files());
    assert!(files().iter().all(|file| mode(file) == 0o600), "{:?}", files());
    assert_eq!([mode(dir.parent().unwrap()), mode(&dir), mode(&dir.join("objects"))], [0o700; 3]);

    // The files are in the state in which an earlier version left them.
    fs::set_permissions(dir.join("objects"), PermissionsExt::from_mode(0o755))?;
    fs::set_permissions(dir.join(DATABASE), PermissionsExt::from_mode(0o644))?;
    let _again = open()?;
    assert_eq!([mode(&dir.join("objects")), mode(&dir.join(DATABASE))], [0o700, 0o600]);
    Ok(())
}
