//! Untrusted names, titles and reasons: no command lets them control the terminal, reverse its text or forge a line.

use std::path::PathBuf;
use std::sync::Arc;

use backend::{Backend, Config, SystemHost};
use contracts::sample;
use jiff::Timestamp;
use messages::Host;
use messages::escape::is_control_or_bidi;
use outbox::Entry;
use saga::Persist;
use serde_json::{Value, json};
use servers::TestResult;

use crate::program::{Program, Run};

/// Bidirectional characters that are valid in file names and announcements.
const BIDI: &str = "a\u{202e}b\u{2066}c\u{200f}\u{61c}d";
/// Control sequences that terminals execute: colors by ESC and by C1, a title, a carriage return, and a forged line.
const CONTROL: &str =
    "\u{1b}[31mred\u{9b}31m\u{1b}]0;title\u{7}\rover\nerror: forged\u{2028}line\u{85}\u{202e}";

/// Checks that the output has no invisible characters except line ends.
fn is_harmless(command: &[&str], run: &Run) {
    for (stream, text) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
        let found = text.chars().find(|&c| is_control_or_bidi(c) && c != '\n');
        assert_eq!(found, None, "{command:?} wrote it to {stream}: {text:?}");
        assert!(!text.lines().any(|line| line == "error: forged"), "{command:?}: {text}");
    }
}

fn run(program: &Program, command: &[&str]) -> Run {
    let run = program.run(command);
    is_harmless(command, &run);
    run
}

/// Creates a file with a hostile name, hostile titles, and a hostile record that cannot be read. Records with control
/// characters cannot be read.
fn hostile_file(program: &Program) -> PathBuf {
    let acting = CONTROL.replace(['\n', '\r'], "");
    let turned = format!("{BIDI}\u{2028}{BIDI}");
    let record = format!("TY  - JOUR\nTI  - {turned}\nAU  - {turned}\nJO  - {turned}\nER  - \n\n");
    let again = format!("TY  - JOUR\nTI  - x\nDO  - 10.5555/{BIDI}\nER  - \n\n");
    let broken = format!("TY  - JOUR\n######## {acting} {BIDI} ########\nER  - \n");
    program.file(&format!("{BIDI}.ris"), format!("{record}{again}{again}{broken}").as_bytes())
}

/// Imports the hostile file. Returns the search's id.
fn imported(program: &Program) -> String {
    let file = hostile_file(program);
    let file = file.to_str().unwrap();
    let as_table = run(program, &["import", file, "--search-name", BIDI]);
    assert_eq!(as_table.code, Some(0), "{}", as_table.stderr);
    assert!(as_table.stdout.contains("a\\u{202e}b\\u{2066}c"), "{}", as_table.stdout);
    let report = run(program, &["import", file, "--json"]).json();
    assert_eq!(report["files"][0]["name"], format!("{BIDI}.ris"), "JSON says the name as it is");
    assert_eq!((&report["studies"], &report["files"][0]["quarantined"]), (&json!(3), &json!(1)));
    report["search_id"].as_str().unwrap().to_owned()
}

/// Runs every command that reads a search, as text and as JSON.
fn look(program: &Program, search: &str) {
    let out = program.folder().join(format!("{BIDI}.out"));
    let out = out.to_str().unwrap();
    for command in [
        &["show", search] as &[&str],
        &["studies", search],
        &["quarantine", search, "--out", out],
        &["quarantine", search, "--out", out],
        &["quarantine", search, "--out", out, "--file", CONTROL],
        &["resume"],
        &["outbox", "list"],
        &["outbox", "requeue", "--all", "--dry-run"],
        &["outbox", "delete", CONTROL],
        &["outbox", "show", CONTROL],
    ] {
        run(program, command);
        run(program, &[command, &["--json"]].concat());
    }
}

#[test]
fn every_command_escapes_untrusted_text() {
    let program = Program::new().setting("RUST_LOG", "trace");
    let search = imported(&program);
    look(&program, &search);
    let shown = program.run(&["show", &search]).stdout;
    assert!(shown.contains(" [31mred\\u{9b}31m"), "the excerpt is shown escaped: {shown}");
    let titles = run(&program, &["studies", &search, "--json"]).lines();
    assert!(titles[0]["title"].as_str().unwrap().starts_with(BIDI), "{titles:?}");
}

/// Earlier versions announced such names, and a file may be put into a bucket manually.
#[test]
fn stored_names_and_reasons_are_escaped() {
    let program = Program::new();
    let search = imported(&program);
    let database = rusqlite::Connection::open(program.data().join("search-import.sqlite")).unwrap();
    let change = "UPDATE job SET job = json_set(job, '$.name', ?1, '$.reason', ?1, '$.state', ?2,
        '$.files[0].name', ?1, '$.files[0].outcome', json_object('outcome', 'failed', 'reason', ?1))";
    // Readers see the saga's document while it is kept, and this table afterwards.
    database.execute_batch("DELETE FROM saga; DELETE FROM outbox; UPDATE job SET ended = 1").unwrap();
    for state in ["Completed", "Error"] {
        database.execute(change, [CONTROL, state]).unwrap();
        look(&program, &search);
        let report = run(&program, &["show", &search, "--json"]).json();
        assert_eq!(report["job"]["name"], CONTROL);
    }
}

#[test]
fn rejected_input_is_escaped() {
    let program = Program::new();
    let good = hostile_file(&program);
    let good = good.to_str().unwrap();
    let file = |name: &str| program.folder().join(name).to_str().unwrap().to_owned();
    std::fs::write(file(CONTROL), "x").unwrap();
    for command in [
        &["import", &file(CONTROL)] as &[&str],
        &["import", &file(&format!("missing{CONTROL}"))],
        &["import", good, "--search-name", CONTROL],
        &["import", good, "--data-dir", &file(&format!("{CONTROL}/none"))],
        &["import", good, "--project", CONTROL],
        &["show", CONTROL],
        &["studies", CONTROL, "--data-dir", CONTROL],
        &["show", "00000000-0000-0000-0000-000000000001", "--data-dir", CONTROL],
        &["serve", "--listen", CONTROL],
        &[CONTROL],
    ] {
        let refused = run(&program, command);
        assert!(matches!(refused.code, Some(1 | 2)) && !refused.stderr.is_empty(), "{command:?}");
    }
    let setting = Program::new().setting("SEARCH_IMPORT_MODE", CONTROL);
    assert_eq!(run(&setting, &["import", good]).code, Some(1));
}

#[tokio::test]
async fn outbox_errors_are_escaped() -> TestResult {
    let program = Program::new();
    let config = Config { data_dir: program.data(), ..Config::default() };
    let backend: Backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
    let (search, now) = (sample::partition(&SystemHost), SystemHost.now());
    let exhausted = Entry {
        poisoned: true,
        error: Some(CONTROL.to_owned()),
        ..sample::entry(&SystemHost, search, Timestamp::UNIX_EPOCH)?
    };
    let entry = exhausted.id.to_string();
    let write =
        Persist { add: vec![exhausted], ..sample::persist(search, None, sample::content(&SystemHost, "x")) };
    backend.ports.engine.stores()?.write_documents.persist(&[write], now).await?;
    let list = run(&program, &["outbox", "list"]);
    assert!(list.stdout.contains("\\u{1b}[31mred"), "{}", list.stdout);
    let shown: Value = run(&program, &["outbox", "show", &entry, "--json"]).json();
    assert_eq!(shown["error"], CONTROL);
    let pretty: Value = run(&program, &["outbox", "show", &entry]).json();
    assert_eq!(pretty["error"], CONTROL);
    run(&program, &["outbox", "delete", &entry]);
    Ok(())
}
