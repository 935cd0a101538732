//! Names, titles and reasons of others: no command lets them act on a terminal, turn its writing round or forge a line.

use std::path::PathBuf;
use std::sync::Arc;

use backend::{Backend, Config, SystemHost};
use jiff::Timestamp;
use messages::Host;
use messages::shown::is_hidden;
use outbox::Entry;
use saga::Persist;
use serde_json::{Value, json};
use servers::Tested;
use testing::sample;

use crate::program::{Program, Run};

/// What a file system takes in a name, and an announcement too.
const TURNED: &str = "a\u{202e}b\u{2066}c\u{200f}\u{61c}d";
/// What a terminal acts on: colours by ESC and by C1, a title, a return, and what forges a line of our own.
const ACTING: &str =
    "\u{1b}[31mred\u{9b}31m\u{1b}]0;title\u{7}\rover\nerror: forged\u{2028}line\u{85}\u{202e}";

/// Nothing but line ends is there that is not shown.
fn is_harmless(command: &[&str], run: &Run) {
    for (stream, text) in [("stdout", &run.stdout), ("stderr", &run.stderr)] {
        let found = text.chars().find(|&c| is_hidden(c) && c != '\n');
        assert_eq!(found, None, "{command:?} wrote it to {stream}: {text:?}");
        assert!(!text.lines().any(|line| line == "error: forged"), "{command:?}: {text}");
    }
}

fn run(program: &Program, command: &[&str]) -> Run {
    let run = program.run(command);
    is_harmless(command, &run);
    run
}

/// A file whose name, titles and unreadable record are hostile. Records with control characters are not read.
fn hostile_file(program: &Program) -> PathBuf {
    let acting = ACTING.replace(['\n', '\r'], "");
    let turned = format!("{TURNED}\u{2028}{TURNED}");
    let record = format!("TY  - JOUR\nTI  - {turned}\nAU  - {turned}\nJO  - {turned}\nER  - \n\n");
    let again = format!("TY  - JOUR\nTI  - x\nDO  - 10.5555/{TURNED}\nER  - \n\n");
    let broken = format!("TY  - JOUR\n######## {acting} {TURNED} ########\nER  - \n");
    program.file(&format!("{TURNED}.ris"), format!("{record}{again}{again}{broken}").as_bytes())
}

/// The search that a run has imported; its commands are walked by whoever calls.
fn imported(program: &Program) -> String {
    let file = hostile_file(program);
    let file = file.to_str().unwrap();
    let as_table = run(program, &["import", file, "--search-name", TURNED]);
    assert_eq!(as_table.code, Some(0), "{}", as_table.stderr);
    assert!(as_table.stdout.contains("a\\u{202e}b\\u{2066}c"), "{}", as_table.stdout);
    let report = run(program, &["import", file, "--json"]).json();
    assert_eq!(report["files"][0]["name"], format!("{TURNED}.ris"), "JSON says the name as it is");
    assert_eq!((&report["studies"], &report["files"][0]["quarantined"]), (&json!(3), &json!(1)));
    report["search_id"].as_str().unwrap().to_owned()
}

/// Each command that looks at a search, as text and as JSON.
fn look(program: &Program, search: &str) {
    let out = program.folder().join(format!("{TURNED}.out"));
    let out = out.to_str().unwrap();
    for command in [
        &["show", search] as &[&str],
        &["studies", search],
        &["quarantine", search, "--out", out],
        &["quarantine", search, "--out", out],
        &["quarantine", search, "--out", out, "--file", ACTING],
        &["resume"],
        &["outbox", "list"],
        &["outbox", "requeue", "--all", "--dry-run"],
        &["outbox", "delete", ACTING],
        &["outbox", "show", ACTING],
    ] {
        run(program, command);
        run(program, &[command, &["--json"]].concat());
    }
}

#[test]
fn no_command_lets_text_of_others_through() {
    let program = Program::new().setting("RUST_LOG", "trace");
    let search = imported(&program);
    look(&program, &search);
    let shown = program.run(&["show", &search]).stdout;
    assert!(shown.contains(" [31mred\\u{9b}31m"), "the excerpt is shown escaped: {shown}");
    let titles = run(&program, &["studies", &search, "--json"]).lines();
    assert!(titles[0]["title"].as_str().unwrap().starts_with(TURNED), "{titles:?}");
}

/// The release before announced such names, and a file may be put into a bucket by hand.
#[test]
fn names_and_reasons_that_are_stored_already_are_shown_escaped() {
    let program = Program::new();
    let search = imported(&program);
    let database = rusqlite::Connection::open(program.data().join("search-import.sqlite")).unwrap();
    let change = "UPDATE job SET job = json_set(job, '$.name', ?1, '$.reason', ?1, '$.state', ?2,
        '$.files[0].name', ?1, '$.files[0].outcome', json_object('outcome', 'failed', 'reason', ?1))";
    // Readers are shown what the saga's document says while it is kept, and what this table says after that.
    database.execute_batch("DELETE FROM saga; DELETE FROM outbox; UPDATE job SET ended = 1").unwrap();
    for state in ["Completed", "Error"] {
        database.execute(change, [ACTING, state]).unwrap();
        look(&program, &search);
        let report = run(&program, &["show", &search, "--json"]).json();
        assert_eq!(report["job"]["name"], ACTING);
    }
}

#[test]
fn what_is_refused_is_named_without_harm() {
    let program = Program::new();
    let good = hostile_file(&program);
    let good = good.to_str().unwrap();
    let file = |name: &str| program.folder().join(name).to_str().unwrap().to_owned();
    std::fs::write(file(ACTING), "x").unwrap();
    for command in [
        &["import", &file(ACTING)] as &[&str],
        &["import", &file(&format!("missing{ACTING}"))],
        &["import", good, "--search-name", ACTING],
        &["import", good, "--data-dir", &file(&format!("{ACTING}/none"))],
        &["import", good, "--project", ACTING],
        &["show", ACTING],
        &["studies", ACTING, "--data-dir", ACTING],
        &["show", "00000000-0000-0000-0000-000000000001", "--data-dir", ACTING],
        &["serve", "--listen", ACTING],
        &[ACTING],
    ] {
        let refused = run(&program, command);
        assert!(matches!(refused.code, Some(1 | 2)) && !refused.stderr.is_empty(), "{command:?}");
    }
    let setting = Program::new().setting("SEARCH_IMPORT_MODE", ACTING);
    assert_eq!(run(&setting, &["import", good]).code, Some(1));
}

#[tokio::test]
async fn errors_of_the_outbox_are_shown_escaped() -> Tested {
    let program = Program::new();
    let config = Config { data_dir: program.data(), ..Config::default() };
    let backend: Backend = backend::open(config, Arc::new(SystemHost), Arc::new(())).await?;
    let (search, now) = (sample::partition(&SystemHost), SystemHost.now());
    let poisoned = Entry {
        poisoned: true,
        error: Some(ACTING.to_owned()),
        ..sample::entry(&SystemHost, search, Timestamp::UNIX_EPOCH)?
    };
    let entry = poisoned.id.to_string();
    let write =
        Persist { add: vec![poisoned], ..sample::persist(search, None, sample::content(&SystemHost, "x")) };
    backend.ports.engine.stores()?.write_documents.persist(&[write], now).await?;
    let list = run(&program, &["outbox", "list"]);
    assert!(list.stdout.contains("\\u{1b}[31mred"), "{}", list.stdout);
    let shown: Value = run(&program, &["outbox", "show", &entry, "--json"]).json();
    assert_eq!(shown["error"], ACTING);
    let pretty: Value = run(&program, &["outbox", "show", &entry]).json();
    assert_eq!(pretty["error"], ACTING);
    run(&program, &["outbox", "delete", &entry]);
    Ok(())
}
