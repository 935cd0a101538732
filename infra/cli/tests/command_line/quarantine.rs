//! Exporting unreadable records to files that can be corrected.

use serde_json::json;

use crate::inspect::twins;
use crate::program::{Program, Run, bundled};

const TABLE: &[u8] = b"Title;Year\na;2001\nb;2002;too;many\n";

fn export(program: &Program, search: &str, out: &str, more: &[&str]) -> Run {
    program.run(&[&["quarantine", search, "--out", out], more].concat())
}

#[test]
fn quarantined_records_are_corrected_and_imported() {
    let program = Program::new();
    let (report, _) = program.import(&[bundled("broken.ris")], &[]);
    let search = report["search_id"].as_str().unwrap();
    let out = program.folder().join("mend.ris");
    let run = export(&program, search, out.to_str().unwrap(), &["--json"]);
    assert_eq!(run.json(), json!([{ "name": "broken.ris", "records": 1, "out": out }]));
    let text = std::fs::read_to_string(&out).unwrap();
    let record = "######## export interrupted, record 2 of 3 not transferred ########";
    assert_eq!(text, format!("TY  - JOUR\n{record}\nER  -\n\n"));
    std::fs::write(&out, text.replace(record, "TI  - Mended")).unwrap();
    let (corrected, _) = program.import(&[out], &[]);
    assert_eq!((&corrected["state"], &corrected["studies"]), (&json!("Completed"), &json!(1)));
}

#[test]
fn quarantine_overwrites_no_file() {
    let program = Program::new();
    let (report, _) = program.import(&[bundled("broken.ris")], &[]);
    let there = program.file("there.ris", b"mine");
    let run = export(&program, report["search_id"].as_str().unwrap(), there.to_str().unwrap(), &[]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("there.ris cannot be created"), "{}", run.stderr);
    assert_eq!(std::fs::read(there).unwrap(), b"mine");
}

#[test]
fn several_quarantines_require_choice_or_folder() {
    let program = Program::new();
    let table = program.file("table.csv", TABLE);
    let (report, _) = program.import(&[bundled("broken.ris"), bundled("psycinfo.ris"), table], &[]);
    let search = report["search_id"].as_str().unwrap();
    let out = |name: &str| program.folder().join(name).to_str().unwrap().to_owned();
    let run = export(&program, search, &out("one.csv"), &[]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("(broken.ris, table.csv); choose one with --file"), "{}", run.stderr);
    let run = export(&program, search, &out("one.csv"), &["--file", "psycinfo.ris"]);
    assert!(
        run.code == Some(1) && run.stderr.contains("all records of psycinfo.ris are imported"),
        "{}",
        run.stderr
    );
    assert_eq!(export(&program, search, &out("one.csv"), &["--file", "table.csv"]).code, Some(0));
    assert_eq!(std::fs::read(out("one.csv")).unwrap(), b"Title;Year\nb;2002;too;many\n");
    std::fs::create_dir(out("all")).unwrap();
    assert_eq!(export(&program, search, &out("all"), &[]).code, Some(0));
    let mut names: Vec<_> =
        std::fs::read_dir(out("all")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["broken.ris", "table.csv"]);
}

#[test]
fn quarantine_without_records_writes_nothing() {
    let program = Program::new();
    let (report, _) = program.import(&[bundled("psycinfo.ris")], &[]);
    let out = program.folder().join("none.ris");
    let run = export(&program, report["search_id"].as_str().unwrap(), out.to_str().unwrap(), &[]);
    assert_eq!((run.code, run.stdout.trim()), (Some(0), "all records are imported; nothing was written"));
    assert!(!out.exists());
}

#[test]
fn files_sharing_a_name_are_addressable() {
    let program = Program::new();
    let (first, second) = twins(&program, &std::fs::read(bundled("broken.ris")).unwrap());
    let (report, _) = program.import(&[bundled("psycinfo.ris"), first, second], &[]);
    let search = report["search_id"].as_str().unwrap();
    let job = program.run(&["show", search, "--json"]).json()["job"].clone();
    let id = job["files"][2]["file_id"].as_str().unwrap().to_owned();
    let out = |name: &str| program.folder().join(name).to_str().unwrap().to_owned();
    for (n, (file, name)) in [
        ("twin.ris (1)", "twin.ris (1)"),
        ("2", "twin.ris (1)"),
        ("3", "twin.ris (2)"),
        (&id, "twin.ris (2)"),
    ]
    .into_iter()
    .enumerate()
    {
        let run = export(&program, search, &out(&n.to_string()), &["--file", file, "--json"]);
        let written = run.json();
        assert_eq!((&written[0]["name"], &written[0]["records"]), (&json!(name), &json!(1)), "{file}");
    }
    let run = export(&program, search, &out("either"), &["--file", "twin.ris"]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("twin.ris (1), twin.ris (2); choose one"), "{}", run.stderr);
    std::fs::create_dir(out("all")).unwrap();
    let run = export(&program, search, &out("all"), &[]);
    assert!(run.stdout.contains("1 record of twin.ris (2) written to"), "{}", run.stdout);
    for name in ["twin (1).ris", "twin (2).ris"] {
        assert!(program.folder().join("all").join(name).exists(), "{name}");
    }
}
