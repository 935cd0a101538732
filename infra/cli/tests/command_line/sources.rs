//! The sources of a search's files, and the PRISMA counts.

use serde_json::{Value, json};

use crate::program::{Program, bundled};

/// Imports two samples. Returns the search's id.
fn import(program: &Program, more: &[&str]) -> String {
    let files = [bundled("pubmed.nbib"), bundled("broken.ris")];
    let (report, run) = program.import(&files, &[&["--search-name", "Harms"], more].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    report["search_id"].as_str().unwrap().to_owned()
}

fn databases(program: &Program, search: &str, more: &[&str]) -> Vec<(Value, Value)> {
    let run = program.run(&[&["sources", search, "--json"], more].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run.lines().iter().map(|file| (file["database"].clone(), file["guessed"].clone())).collect()
}

#[test]
fn source_is_guessed_set_and_cleared() {
    let program = Program::new();
    let search = import(&program, &[]);
    let guessed = [(json!("PubMed"), json!(true)), (Value::Null, json!(true))];
    assert_eq!(databases(&program, &search, &[]), guessed);
    let said = [
        "--file",
        "broken.ris",
        "--database",
        "MEDLINE",
        "--platform",
        "Ovid",
        "--searched-on",
        "2026-05-17",
    ];
    let medline = (json!("MEDLINE"), json!(false));
    assert_eq!(databases(&program, &search, &said), [guessed[0].clone(), medline]);
    let table = program.run(&["sources", &search]).stdout;
    for text in ["PubMed", "guessed", "MEDLINE", "Ovid", "2026-05-17"] {
        assert!(table.contains(text), "{text}: {table}");
    }
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    // A later search in the same database.
    let run = program.run(&["sources", &search, "--file", "2", "--searched-on", "2026-06-01"]);
    for text in ["MEDLINE", "Ovid", "2026-06-01"] {
        assert!(run.stdout.contains(text), "{text}: {}", run.stdout);
    }
    assert_eq!(databases(&program, &search, &["--forget"]), guessed);
}

#[test]
fn import_sets_source_of_all_files() {
    let program = Program::new();
    let search = import(&program, &["--source", "Embase"]);
    assert_eq!(
        databases(&program, &search, &[]),
        [(json!("Embase"), json!(false)), (json!("Embase"), json!(false))]
    );
}

#[test]
fn invalid_source_is_rejected_before_any_work() {
    let program = Program::new();
    let run = program.run(&["import", bundled("broken.ris").to_str().unwrap(), "--source", " "]);
    assert_eq!((run.code, program.run(&["searches", "--json"]).stdout), (Some(1), String::new()));
    assert!(run.stderr.contains("the database is 1 to 255 characters"), "{}", run.stderr);
    let search = import(&program, &[]);
    for (more, code, why) in [
        (&["--searched-on", "tomorrow"][..], 2, "searched-on"),
        (&["--platform", "\u{7}"], 1, "the platform is 1 to 255 characters"),
        (&["--file", "other.ris", "--database", "x"], 1, "its files are"),
        (&["--forget", "--database", "x"], 2, "cannot be used with"),
    ] {
        let run = program.run(&[&["sources", &search], more].concat());
        assert_eq!((run.code, run.stderr.contains(why)), (Some(code), true), "{more:?}: {}", run.stderr);
    }
}

#[test]
fn prisma_prints_table_json_and_svg() {
    let program = Program::new();
    let search = import(&program, &[]);
    databases(&program, &search, &["--file", "broken.ris", "--database", "<b>MEDLINE</b> & more"]);
    let flow = program.run(&["prisma", "--json"]).json();
    let number = |key: &str| flow["total"][key].as_u64().unwrap();
    assert_eq!(number("records"), number("unread") + number("studies"), "{flow}");
    assert_eq!(number("studies"), number("duplicates") + number("left"), "{flow}");
    assert_eq!(number("unread"), 1, "{flow}");
    let told = program.run(&["prisma"]).stdout;
    assert!(told.contains("PubMed (n = ") && told.contains("1 record that could not be read"), "{told}");
    let drawn = program.run(&["prisma", "--svg"]).stdout;
    assert!(drawn.starts_with("<svg") && drawn.contains("&lt;b&gt;MEDLINE&lt;/b&gt; &amp; more"), "{drawn}");
    assert_eq!(program.run(&["prisma", "--svg", "--json"]).code, Some(2));
    let empty = program.run(&["prisma", "--project", "another", "--json"]).json();
    assert_eq!((&empty["total"]["records"], &empty["searches"]), (&json!(0), &json!(0)));
}
