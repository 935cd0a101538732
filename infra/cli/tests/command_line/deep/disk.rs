//! Full disks and read-only folders.

use std::convert::Infallible;
use std::fs::Permissions;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use backend::{Backend, Config, SystemHost};
use embedded::{Settings, Store};
use imports::queues::QUEUES;
use imports::{JobState, ProjectId, SearchId};
use messages::Host;
use servers::TestResult;
use servers::mongo::eventually;
use service::{NewFile, NewSearch, SearchService};

use crate::program::{Program, bundled};

/// The number of imported searches.
const SEARCHES: usize = 200;
/// The file of each search, and its records.
const FILE: &str = "psycinfo.ris";
const RECORDS: u64 = 3;
/// The number of times that the disk becomes full, and the maximum growth of each file in between.
const TIMES_FULL: u64 = 4;
const FREE_SPACE: u64 = 256 << 10;
/// The number of times that the folder becomes read-only.
const TIMES_READ_ONLY: usize = 5;
const TIMEOUT: Duration = Duration::from_secs(200);

#[tokio::test(flavor = "multi_thread")]
async fn repeatedly_full_disk_imports_each_search_once() -> TestResult {
    let program = Program::new().setting("SEARCH_IMPORT_VISIBILITY_SECONDS", "2");
    let searches = announce(&program).await?;
    let worker = Worker::start(program.start_with_space(&["serve", "--listen", "127.0.0.1:0"], FREE_SPACE));
    for time in 1..=TIMES_FULL {
        let before = worker.refusals();
        let full = async || Ok::<_, Infallible>(worker.refusals() > before);
        eventually("the disk is full", TIMEOUT, full).await?;
        worker.free_space(&format!("{}", (time + 1) * FREE_SPACE));
    }
    worker.free_space("unlimited");
    let backend = read_only(&program)?;
    all_are_imported_once(&backend, searches).await?;
    println!("the disk was full {TIMES_FULL} times, and said so {} times", worker.refusals());
    Ok(())
}

/// A worker dies repeatedly, and its successor finds a read-only folder.
#[tokio::test(flavor = "multi_thread")]
async fn readonly_flapping_dir_imports_each_once() -> TestResult {
    let program = Program::new().setting("SEARCH_IMPORT_VISIBILITY_SECONDS", "2");
    let searches = announce(&program).await?;
    let backend = read_only(&program)?;
    let jobs = backend.ports.jobs()?;
    for time in 0..TIMES_READ_ONLY {
        let worker = Worker::start(program.start(&["serve", "--listen", "127.0.0.1:0"]));
        let max = SEARCHES - (time + 1) * SEARCHES / (TIMES_READ_ONLY + 1);
        eventually("some have ended", TIMEOUT, async || {
            Ok::<_, messages::StoreError>(jobs.unfinished().await?.len() <= max)
        })
        .await?;
        drop(worker);
        permit(&program, 0o500, 0o400)?;
        let refused = program.run_by_permission(&["serve", "--listen", "127.0.0.1:0"]);
        assert_eq!(refused.code, Some(1), "{}", refused.stderr);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        assert!(refused.stderr.contains("Permission denied"), "{}", refused.stderr);
        permit(&program, 0o700, 0o600)?;
    }
    let _worker = Worker::start(program.start(&["serve", "--listen", "127.0.0.1:0"]));
    all_are_imported_once(&backend, searches).await?;
    println!("{TIMES_READ_ONLY} workers were killed, and as many refused to start");
    Ok(())
}

/// Sets the permissions of the data folder and its contents.
fn permit(program: &Program, folder: u32, file: u32) -> std::io::Result<()> {
    let set = |path: &Path, mode| std::fs::set_permissions(path, Permissions::from_mode(mode));
    for entry in std::fs::read_dir(program.data())?.collect::<Result<Vec<_>, _>>()? {
        let mode = if entry.file_type()?.is_dir() { folder } else { file };
        set(&entry.path(), mode)?;
    }
    set(&program.data(), folder)
}

/// Waits until all searches have ended, and checks that each study is stored once.
async fn all_are_imported_once(backend: &Backend, searches: Vec<SearchId>) -> TestResult {
    let jobs = backend.ports.jobs()?;
    eventually("all searches have ended", TIMEOUT, async || {
        Ok::<_, messages::StoreError>(jobs.unfinished().await?.is_empty())
    })
    .await?;
    for search in searches {
        let job = jobs.job(search).await?.ok_or("a search is lost")?;
        assert_eq!((job.state, job.studies()), (JobState::Completed, RECORDS));
        let studies =
            backend.ports.study_stores()?.read_studies.studies(search, job.files[0].file_id, 0, 100).await?;
        let records: Vec<u64> = studies.iter().map(|study| study.record).collect();
        assert_eq!(records, (1..=RECORDS).collect::<Vec<_>>(), "search {search}");
    }
    Ok(())
}

/// Announces the searches and uploads their files while the disk has space.
async fn announce(program: &Program) -> Result<Vec<SearchId>, Box<dyn std::error::Error + Send + Sync>> {
    let host: Arc<dyn Host> = Arc::new(SystemHost);
    let store = Arc::new(Store::open(&program.data(), Arc::clone(&host), Settings::new(&QUEUES))?);
    let ports = backend::embedded(&store, Arc::clone(&host), Arc::new(()), Config::default()).ports;
    let start = SearchService::over(&ports, &functions::SYSTEM)?;
    let content = std::fs::read(bundled(FILE))?;
    let mut searches = Vec::new();
    for number in 0..SEARCHES {
        let file = NewFile { name: FILE.into(), size_bytes: content.len() as u64 };
        let request = NewSearch { name: format!("search {number}"), files: vec![file] };
        let announced = start.create(ProjectId::from_uuid(host.fresh_id()), &request).await?;
        store.upload(&announced.files[0].upload, content.as_slice()).await?;
        searches.push(announced.search_id);
    }
    Ok(searches)
}

/// Opens the data directory for reading while a program works in it.
fn read_only(program: &Program) -> Result<Backend, embedded::OpenError> {
    let host: Arc<dyn Host> = Arc::new(SystemHost);
    let store = Arc::new(Store::open_read_only(&program.data(), Arc::clone(&host), Settings::new(&QUEUES))?);
    Ok(backend::embedded(&store, host, Arc::new(()), Config::default()))
}

/// A worker whose files are limited in size. It is killed when this value is dropped.
struct Worker {
    child: Child,
    refusals: Arc<AtomicUsize>,
}

impl Worker {
    fn start(mut child: Child) -> Self {
        let lines = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let refusals = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&refusals);
        std::thread::spawn(move || {
            for _ in lines.filter(|line| line.contains("disk")) {
                count.fetch_add(1, Ordering::SeqCst);
            }
        });
        Self { child, refusals }
    }

    /// Returns the number of logged disk errors.
    fn refusals(&self) -> usize {
        self.refusals.load(Ordering::SeqCst)
    }

    fn free_space(&self, bytes: &str) {
        let (id, limit) = (self.child.id().to_string(), format!("--fsize={bytes}:"));
        assert!(Command::new("prlimit").args(["--pid", &id, &limit]).status().unwrap().success());
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Not even root can create a folder there.
#[test]
fn uncreatable_folder_is_named() {
    let program = Program::new().setting("SEARCH_IMPORT_DATA_DIR", "/sys/search-import");
    let run = program.run(&["import", bundled(FILE).to_str().unwrap()]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("locking /sys/search-import failed"), "{}", run.stderr);
    assert_eq!(run.stdout, "");
}
