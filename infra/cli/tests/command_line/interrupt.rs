//! Ctrl-C during an import or an export.

use std::process::{Child, Command};
use std::sync::Arc;

use backend::{Config, SystemHost};
use embedded::{Settings, Store};
use imports::queues::QUEUES;
use servers::TestResult;
use service::{Deletion, ProjectAccess, SearchService};

use crate::program::{Program, bundled};

/// The number of records is large enough that the import is still running when the signal arrives.
const RECORDS: usize = 200_000;

fn large_file(program: &Program) -> String {
    let record = |n: usize| format!("TY  - JOUR\nTI  - Title {n}\nPY  - 2020\nER  - \n\n");
    let file = program.file("large.ris", (0..RECORDS).map(record).collect::<String>().as_bytes());
    file.to_str().unwrap().to_owned()
}

/// Presses Ctrl-C once the search is stored. Returns the exit code and standard error.
fn interrupted(program: &Program, data: &std::path::Path, child: Child) -> (Option<i32>, String) {
    let listed = || program.run(&["searches", "--json", "--data-dir", data.to_str().unwrap()]);
    while listed().stdout.is_empty() {
        std::thread::yield_now();
    }
    let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(asked.success());
    let ended = child.wait_with_output().unwrap();
    (ended.status.code(), String::from_utf8(ended.stderr).unwrap())
}

#[test]
fn interrupted_import_prints_the_resuming_command() {
    let program = Program::new();
    let (file, data) = (large_file(&program), program.folder().join("it's my data"));
    let place = ["--backend", "embedded", "--data-dir", data.to_str().unwrap()];
    let child = program.start(&[&["import", file.as_str()] as &[&str], &place].concat());
    let (code, said) = interrupted(&program, &data, child);
    assert_eq!(code, Some(130), "{said}");
    let command = said.split('`').nth(1).unwrap();
    let resumed = Command::new("sh").args(["-c", command]).output().unwrap();
    let (shown, remarks) =
        (String::from_utf8(resumed.stdout).unwrap(), String::from_utf8(resumed.stderr).unwrap());
    assert_eq!(resumed.status.code(), Some(0), "{remarks}");
    assert!(shown.contains(&format!("Completed, {RECORDS} studies")), "{shown}");
    assert!(remarks.contains("large.ris: done, "), "{remarks}");
    let again = Command::new("sh").args(["-c", command]).output().unwrap();
    let shown = String::from_utf8(again.stdout).unwrap();
    assert!(shown.starts_with("nothing was interrupted in "), "{shown}");
    interrupted_export_leaves_no_file(&program, &place);
}

fn interrupted_export_leaves_no_file(program: &Program, place: &[&str]) {
    let folder = program.folder().join("exports");
    std::fs::create_dir(&folder).unwrap();
    let out = folder.join("all.ris");
    let command = ["export", "--format", "ris", "--out", out.to_str().unwrap()];
    let mut export = program.start(&[&command, place].concat());
    let files = || std::fs::read_dir(&folder).unwrap().count();
    while files() == 0 && export.try_wait().unwrap().is_none() {
        std::thread::yield_now();
    }
    assert!(!out.exists(), "the file is complete before the signal");
    assert!(Command::new("kill").args(["-INT", &export.id().to_string()]).status().unwrap().success());
    let ended = export.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), files()), (Some(130), 0), "{said}");
    assert!(said.contains("interrupted; the incomplete file is deleted"), "{said}");
}

#[test]
fn resume_reads_spooled_standard_input() {
    let program = Program::new();
    let content = std::fs::read(large_file(&program)).unwrap();
    let data = program.data();
    let child = program.start_with_input(&["import", "-", "--json"], content);
    let (code, said) = interrupted(&program, &data, child);
    assert_eq!(code, Some(130), "{said}");
    let report = program.run(&["resume", "--json"]).json();
    assert_eq!((&report["state"], &report["studies"]), (&"Completed".into(), &RECORDS.into()), "{report}");
    assert_eq!(report["files"][0]["name"], "stdin");
}

#[test]
fn resume_without_interruption_is_reported() {
    let program = Program::new();
    let run = program.run(&["resume"]);
    let said = format!("nothing was interrupted in {}\n", program.data().display());
    assert_eq!((run.code, run.stdout), (Some(0), said));
}

/// The program is killed when it has stored the deletion. The other import has the same studies.
#[tokio::test]
async fn resume_finishes_interrupted_deletion() -> TestResult {
    let program = Program::new();
    let (first, _) = program.import(&[bundled("psycinfo.ris")], &[]);
    program.import(&[bundled("psycinfo.ris")], &[]);
    let store = Arc::new(Store::open(&program.data(), Arc::new(SystemHost), Settings::new(&QUEUES))?);
    let ports = backend::embedded(&store, Arc::new(SystemHost), Arc::new(()), Config::default()).ports;
    let search = first["search_id"].as_str().unwrap().parse()?;
    let service = SearchService::over(&ports, &functions::SYSTEM)?;
    assert_eq!(service.delete(&ProjectAccess::All, search).await?, Deletion::Accepted);
    drop((service, store, ports));
    let health = program.run(&["health"]);
    assert_eq!(health.code, Some(1), "{}", health.stdout);
    let run = program.run(&["resume"]);
    let said = format!("finished the work of an interrupted command in {}\n", program.data().display());
    assert_eq!((run.code, run.stdout), (Some(0), said), "{}", run.stderr);
    assert_eq!(program.run(&["health"]).code, Some(0));
    let out = program.folder().join("left.jsonl");
    program.run(&["export", "--unique", "--format", "jsonl", "--out", out.to_str().unwrap()]);
    let left = std::fs::read_to_string(out)?.lines().count();
    assert_eq!(left as u64, first["studies"].as_u64().unwrap());
    Ok(())
}

#[test]
fn interrupted_standard_input_is_deleted() {
    let program = Program::new();
    let mut child = program.start_with_open_input(&["import", "-"], b"TY  - JOUR\n");
    let kept = || {
        let entries = std::fs::read_dir(program.data()).into_iter().flatten();
        entries
            .filter(|entry| entry.as_ref().unwrap().file_name().to_string_lossy().starts_with("stdin"))
            .count()
    };
    // The spool file exists once reading has started, or as soon as the signal is handled.
    while kept() == 0 {
        assert!(child.try_wait().unwrap().is_none(), "it waits for more");
        std::thread::yield_now();
    }
    let asked = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(asked.success());
    let input = child.stdin.take();
    let ended = child.wait_with_output().unwrap();
    drop(input);
    let said = String::from_utf8(ended.stderr).unwrap();
    assert_eq!((ended.status.code(), kept()), (Some(130), 0), "{said}");
    assert!(said.contains("interrupted; nothing was imported"), "{said}");
}
