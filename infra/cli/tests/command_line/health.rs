//! The health of a data directory, with and without a server that works in it.

use std::sync::Arc;

use backend::{Config, SystemHost};
use embedded::{Settings, Store};
use imports::ProjectId;
use imports::queues::QUEUES;
use servers::TestResult;
use servers::mongo::eventually;
use service::{NewFile, NewSearch, SearchService};

use crate::failures::dead_letter;
use crate::program::{Program, bundled};
use crate::serve::{Server, TIMEOUT, json_of};

#[tokio::test(flavor = "multi_thread")]
async fn health_is_equal_with_and_without_server() -> TestResult {
    let program = Program::new();
    let (server, said) = Server::start_with(&program, &["--listen", "127.0.0.1:0"]);
    let place = format!("health at {0}/health, metrics at {0}/metrics", server.url);
    assert!(said.iter().any(|line| line.contains(&place)), "{said:?}");
    eventually("a sweep has ended", TIMEOUT, async || {
        let report = json_of(server.get("/admin/health").await?).await?;
        Ok::<_, Box<dyn std::error::Error + Send + Sync>>(report["last_sweep"].is_string())
    })
    .await?;
    let asked = server.get("/health").await?;
    assert_eq!(asked.status(), 200);
    let reach = json_of(asked).await?;
    let beside = program.run(&["health", "--json"]);
    assert_eq!(beside.code, Some(0), "{}", beside.stderr);
    let report = beside.json();
    assert_eq!((&report["parts"], &report["concerns"]), (&reach["parts"], &serde_json::json!([])));
    assert!(report["last_sweep"].is_string(), "{report}");
    let metrics = server.get("/metrics").await?.text().await?;
    assert!(metrics.contains("\nsearch_import_up{part=\"database\"} 1\n"), "{metrics}");
    assert!(metrics.contains("\nsearch_import_last_sweep_timestamp_seconds "), "{metrics}");
    let shown = program.run(&["health"]);
    assert!(shown.stdout.ends_with("no problems found\n"), "{}", shown.stdout);
    assert!(
        shown.stdout.lines().any(|line| line.starts_with("queue saga") && line.ends_with("ok")),
        "{}",
        shown.stdout
    );
    assert_eq!(server.stop(), Some(0));
    Ok(())
}

#[test]
fn health_after_import_finds_no_problem() {
    let program = Program::new();
    program.import(&[bundled("psycinfo.ris")], &["--duplicate", "3", "--shuffle", "7"]);
    let health = program.run(&["health"]);
    assert_eq!(health.code, Some(0), "{}", health.stdout);
}

/// This state remains after a program is killed during an import.
#[tokio::test]
async fn health_reports_search_without_worker() -> TestResult {
    let program = Program::new();
    let store = Arc::new(Store::open(&program.data(), Arc::new(SystemHost), Settings::new(&QUEUES))?);
    let ports = backend::embedded(&store, Arc::new(SystemHost), Arc::new(()), Config::default()).ports;
    let content = std::fs::read(bundled("psycinfo.ris"))?;
    let file = NewFile { name: "psycinfo.ris".into(), size_bytes: content.len() as u64 };
    let request = NewSearch { name: "killed".to_owned(), files: vec![file] };
    let announced = SearchService::over(&ports, &functions::SYSTEM)?
        .create(ProjectId::from_uuid(uuid::Uuid::nil()), &request)
        .await?;
    store.upload(&announced.files[0].upload, content.as_slice()).await?;
    ports.engine.sweeps()?.note().await?;
    drop((store, ports));
    let health = program.run(&["health"]);
    assert_eq!(health.code, Some(1), "{}", health.stdout);
    assert!(!health.stdout.contains("no problems found"), "{}", health.stdout);
    assert!(health.stdout.contains("no worker runs") && health.stdout.contains("`search-import resume`"));
    let report = program.run(&["health", "--json"]).json();
    assert_eq!((&report["has_worker"], &report["ok"]), (&false.into(), &true.into()), "{report}");
    assert!(report["free_bytes"].as_u64().is_some_and(|bytes| bytes > 0), "{report}");
    assert_eq!(program.run(&["resume"]).code, Some(0));
    let health = program.run(&["health"]);
    assert_eq!(health.code, Some(0), "{}", health.stdout);
    Ok(())
}

#[tokio::test]
async fn health_counts_uncollected_dead_letters() -> TestResult {
    let program = Program::new();
    program.import(&[bundled("psycinfo.ris")], &[]);
    dead_letter(&program, &["one cause"; 60]).await?;
    let health = program.run(&["health"]);
    assert_eq!(health.code, Some(1), "{}", health.stdout);
    let said = "60 messages are dead-lettered (60 in saga-dead)";
    assert!(health.stdout.contains(said) && health.stdout.contains("`search-import failures retry"));
    assert_eq!(program.run(&["health", "--json"]).json()["dead_letters"], 60);
    let groups = program.run(&["failures", "groups"]);
    assert!(groups.stderr.contains("60 messages are dead-lettered"), "{}", groups.stderr);
    let gathered = program.run(&["failures", "retry", "--all", "--dry-run"]);
    assert!(gathered.stdout.contains("60 failures of 1 cause"), "{}", gathered.stdout);
    let health = program.run(&["health"]);
    assert!(health.stdout.contains("60 failures are open"), "{}", health.stdout);
    Ok(())
}

/// The database can be read but not written, and the report is still printed.
#[cfg(target_os = "linux")]
#[test]
fn health_reports_unwritable_folder() {
    use std::os::unix::fs::PermissionsExt;

    let program = Program::new();
    program.import(&[bundled("psycinfo.ris")], &[]);
    let database = program.data().join("search-import.sqlite");
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o400)).unwrap();
    let health = program.run_by_permission(&["health"]);
    std::fs::set_permissions(&database, std::fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(health.code, Some(1), "{}{}", health.stdout, health.stderr);
    assert!(health.stdout.contains("database: it cannot be written"), "{}{}", health.stdout, health.stderr);
}

#[test]
fn health_of_missing_directory_fails() {
    let run = Program::new().run(&["health"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("there is no data directory"), "{}", run.stderr);
}
