//! The last message of a failed command: what failed, why, and the next step.

use std::fs;

use serde_json::Value;

use crate::program::{Program, Run, bundled};

/// Returns a program whose data directory has the search "one" with three studies, and the search's id.
fn with_a_search() -> (Program, String) {
    let program = Program::new();
    let (report, run) = program.import(&[bundled("psycinfo.ris")], &["--search-name", "one"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let search = report["search_id"].as_str().unwrap().to_owned();
    (program, search)
}

/// Checks that a command fails, and that its only output is one line that contains these texts.
fn fails(run: &Run, what: &str, texts: &[&str]) {
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{what}: {}", run.stderr);
    let said = run.stderr.trim_end();
    assert_eq!(said.lines().count(), 1, "{what}: {said}");
    for text in texts {
        assert!(said.contains(text), "{what}: {text} is not in: {said}");
    }
}

const READING: [&[&str]; 8] = [
    &["searches"],
    &["health"],
    &["show", "one"],
    &["studies", "one"],
    &["outbox", "list"],
    &["failures", "groups"],
    &["prisma"],
    &["export", "--format", "csv", "--out", "new.csv"],
];
const CHANGING: [&[&str]; 8] = [
    &["failures", "retry", "--all"],
    &["delete", "one"],
    &["cancel", "one"],
    &["decide", "same", "one:0-1", "one:0-2"],
    &["after-restore"],
    &["repair", "one"],
    &["sources", "one", "--forget"],
    &["outbox", "requeue", "--all"],
];

#[test]
fn missing_data_directory_is_named_with_next_step() {
    let program = Program::new();
    let file = program.file("a-file", b"");
    let place = |name: &str| program.folder().join(name);
    fs::create_dir(place("empty")).unwrap();
    fs::create_dir(place("junk")).unwrap();
    fs::write(place("junk").join("search-import.sqlite"), "TY  - JOUR\n".repeat(1_000)).unwrap();
    let cases = [
        (file, "is a file, but a data directory is a folder"),
        (place("empty"), "is not a data directory, because it has no search-import.sqlite"),
        (place("missing"), "there is no data directory"),
        (place("junk"), "is not a database of this program"),
    ];
    for (dir, why) in cases {
        for command in READING.iter().chain(&CHANGING) {
            let run = program.run(&[command, &["--data-dir", dir.to_str().unwrap()] as &[&str]].concat());
            let what = format!("{command:?} in {}", dir.display());
            fails(&run, &what, &[why, "name another"]);
            assert!(!run.stderr.contains("os error"), "{what}: {}", run.stderr);
        }
    }
    assert!(!place("missing").exists(), "no command created it");
    assert_eq!(fs::read_dir(place("empty")).unwrap().count(), 0, "and nothing in that one");
    for command in [&["resume"] as &[&str], &["import", bundled("psycinfo.ris").to_str().unwrap()]] {
        let run = program.run(&[command, &["--data-dir", place("a-file").to_str().unwrap()]].concat());
        fails(&run, &format!("{command:?}"), &["is a file", "name another"]);
    }
}

/// A first import that was interrupted early leaves an empty database.
#[test]
fn empty_database_reports_nothing_imported() {
    let program = Program::new();
    fs::create_dir(program.data()).unwrap();
    fs::write(program.data().join("search-import.sqlite"), "").unwrap();
    for command in READING {
        fails(&program.run(command), &format!("{command:?}"), &["nothing has been imported", "import FILE"]);
    }
}

#[test]
fn older_database_names_the_upgrade_command() {
    let (program, _) = with_a_search();
    let database = rusqlite::Connection::open(program.data().join("search-import.sqlite")).unwrap();
    database.pragma_update(None, "user_version", 17).unwrap();
    drop(database);
    for command in READING {
        let run = program.run(command);
        fails(&run, &format!("{command:?}"), &["an earlier version of this program wrote", "upgrades it"]);
        assert!(run.stderr.contains(" resume --data-dir "), "{}", run.stderr);
    }
}

#[test]
fn unknown_names_are_answered_with_list_command() {
    let (program, search) = with_a_search();
    let unknown = "00000000-0000-4000-8000-000000000009";
    let cases: [(&[&str], &[&str]); 18] = [
        (&["show", "nope"], &["there is no import \"nope\"", "in the default review of ", "searches --all"]),
        (&["show", unknown], &["there is no import", "searches --all"]),
        (&["show", "one", "--project", "nope"], &["import \"one\" in review \"nope\" of ", "searches --all"]),
        (
            &["export", "--project", "nope", "--format", "ris", "--out", "new"],
            &["review \"nope\" has no imports"],
        ),
        (&["changes", "--since", "x"], &["call `search-import changes` without it"]),
        (&["changes", "--since", "x", "--project", "nope"], &["not a cursor of review \"nope\""]),
        (&["cancel", "one"], &["has already ended as Completed", "search-import delete"]),
        (&["decide", "same", "x", "y"], &["is not the name of a study", "search-import duplicates"]),
        (&["decide", "keep", "one:7-1"], &["has 1 files", "no file 7"]),
        (&["decide", "same", "one:0-1"], &["search-import duplicates"]),
        (&["outbox", "show", "x"], &["there is no entry x", "outbox list"]),
        (&["failures", "show", "x"], &["is neither the id", "failures list"]),
        (&["failures", "show", unknown], &["there is no failure", "failures list"]),
        (&["failures", "retry", "--all"], &["none of these failures", "failures list"]),
        (&["failures", "stop"], &["no retry is running", "failures operations"]),
        (&["repair", "one"], &["cannot be repaired", "search-import show"]),
        (&["repair", "one", "--again", "x"], &["has no file x", "psycinfo.ris"]),
        (&["quarantine", "one", "--file", "x", "--out", "new"], &["all records are imported"]),
    ];
    for (command, texts) in cases {
        fails(&program.run(command), &format!("{command:?}"), texts);
    }
    let run = program.run(&["outbox", "requeue", "x"]);
    assert!(run.stderr.contains("outbox list --state exhausted"), "{}", run.stderr);
    let (second, _) = program.import(&[bundled("pubmed.nbib")], &["--search-name", "one"]);
    let run = program.run(&["show", "one"]);
    fails(&run, "two of one name", &[&search, second["search_id"].as_str().unwrap(), "one of these ids"]);
}

#[test]
fn existing_output_is_never_overwritten() {
    let (program, _) = with_a_search();
    let taken = program.file("taken", b"mine");
    let taken = taken.to_str().unwrap();
    let folder = program.folder().to_str().unwrap().to_owned();
    let missing = format!("{folder}/missing/new.csv");
    for (out, why) in [
        (taken, "it exists and is never overwritten"),
        (&folder, "is a folder"),
        (&missing, "its folder does not exist"),
    ] {
        let run = program.run(&["export", "one", "--format", "csv", "--out", out]);
        fails(&run, out, &[why, "--out"]);
    }
    for command in [&["export", "one", "--for", "covidence"] as &[&str], &["man"]] {
        let run = program.run(&[command, &["--out", taken]].concat());
        fails(&run, &format!("{command:?}"), &["is a file", "name a folder with --out"]);
    }
    assert_eq!(fs::read(taken).unwrap(), b"mine");
}

#[test]
fn export_without_search_includes_whole_project() {
    let (program, _) = with_a_search();
    program.import(&[bundled("pubmed.nbib")], &[]);
    let out = program.folder().join("all.csv");
    let out = out.to_str().unwrap();
    let run = program.run(&["export", "--unique", "--format", "csv", "--out", out, "--json"]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert_eq!(run.json()[0]["studies"], 6, "{}", run.stdout);
}

#[test]
fn project_without_searches_is_reported() {
    let (program, _) = with_a_search();
    let out = program.folder().join("new.csv");
    let mistyped = ["--project", "mistyped"];
    let export = ["export", "--format", "csv", "--out", out.to_str().unwrap()];
    let run = program.run(&[&export[..], &mistyped].concat());
    fails(&run, "export", &["nothing was written", "has no imports", "searches --all"]);
    assert!(!out.exists());
    for command in ["searches", "duplicates", "prisma"] {
        let run = program.run(&[&[command][..], &mistyped].concat());
        assert_eq!(run.code, Some(0), "{command}: {}", run.stderr);
        assert!(run.stderr.contains("searches --all"), "{command}: {}", run.stderr);
    }
}

/// A terminal without input answers no.
#[cfg(target_os = "linux")]
#[test]
fn deletion_asks_at_a_terminal_without_yes() {
    let (program, search) = with_a_search();
    let asked = program.run_at_terminal(&["delete", "one"]);
    assert_eq!(asked.code, Some(1), "{}", asked.stdout);
    let question = format!("Delete import {search} \"one\", with 3 studies and its uploaded files?");
    assert!(asked.stdout.contains(&question), "{}", asked.stdout);
    assert!(
        asked.stdout.contains("nothing was deleted") && asked.stdout.contains("--yes"),
        "{}",
        asked.stdout
    );
    assert_eq!(program.run(&["show", "one"]).code, Some(0), "it is still there");
    let told = program.run_at_terminal(&["delete", "one", "--yes"]);
    assert_eq!(told.code, Some(0), "{}", told.stdout);
    assert_eq!(program.run(&["show", "one"]).code, Some(1));
}

#[test]
fn failed_import_names_the_next_commands() {
    let program = Program::new();
    let letter = program.file("letter.txt", b"Dear reviewer, this is a letter.");
    let run = program.run(&["import", letter.to_str().unwrap()]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(run.stderr.contains("`search-import repair "), "{}", run.stderr);
    let run = program.run(&["import", bundled("broken.ris").to_str().unwrap()]);
    assert!(run.stderr.contains("`search-import quarantine "), "{}", run.stderr);
}

/// The first and last of 2,500 records are damaged, and two adjacent ones after the first page.
#[test]
fn damaged_studies_are_skipped_and_named() {
    let program = Program::new();
    let one =
        |n: usize| format!("TY  - JOUR\nTI  - Study number {0} of many\nDO  - 10.5555/{0}\nER  - \n", n / 2);
    let file = program.file("many.ris", (0..2_500).map(one).collect::<String>().as_bytes());
    let (report, run) = program.import(&[file], &[]);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let search = report["search_id"].as_str().unwrap();
    let database = rusqlite::Connection::open(program.data().join("search-import.sqlite")).unwrap();
    let sql = "UPDATE study SET study = '{', packed = NULL WHERE record IN (1, 2001, 2002, 2500)";
    assert_eq!(database.execute(sql, []).unwrap(), 4);
    let named = |run: &Run| {
        assert_eq!(run.code, Some(1), "{}", run.stderr);
        for record in [1, 2_001, 2_002, 2_500] {
            assert!(run.stderr.contains(&format!("record {record} of many.ris")), "{}", run.stderr);
        }
        assert!(run.stderr.contains("4 damaged studies were skipped"), "{}", run.stderr);
        assert!(run.stderr.contains("from a backup"), "{}", run.stderr);
    };
    let listed = program.run(&["studies", search, "--json"]);
    named(&listed);
    let records: Vec<u64> =
        listed.lines().iter().map(|study| study["source"]["record"].as_u64().unwrap()).collect();
    let sound: Vec<u64> = (1..=2_500).filter(|record| ![1, 2_001, 2_002, 2_500].contains(record)).collect();
    assert_eq!(records, sound);

    let out = program.folder().join("out.jsonl");
    let exported =
        program.run(&["export", search, "--format", "jsonl", "--out", out.to_str().unwrap(), "--json"]);
    named(&exported);
    assert_eq!(exported.json()[0]["studies"], 2_496);
    assert_eq!(fs::read_to_string(out).unwrap().lines().count(), 2_496);
    let out = program.folder().join("unique.jsonl");
    let out = out.to_str().unwrap();
    named(&program.run(&["export", search, "--unique", "--format", "jsonl", "--out", out, "--json"]));
    assert_eq!(fs::read_to_string(out).unwrap().lines().count(), 1_248, "2,002 and 2,500 are duplicates");

    // Every second record repeats the previous one: record 2,002 repeats 2,001, and 2,500 repeats 2,499.
    let duplicates = program.run(&["duplicates", "--json"]);
    assert_eq!(duplicates.code, Some(1), "{}", duplicates.stderr);
    assert_eq!(duplicates.lines().len(), 1_248, "{}", duplicates.stderr);
    let of = |record: u64| {
        let lines = duplicates.lines();
        lines.iter().filter(|line| line["study"]["record"] == record).cloned().collect::<Vec<Value>>()
    };
    assert_eq!((of(2_002).len(), of(2).len()), (0, 1));
    assert!(of(2)[0]["of"]["title"].is_null(), "record 1 is damaged");
    assert!(duplicates.stderr.contains("record 2002 of many.ris"), "{}", duplicates.stderr);
}
