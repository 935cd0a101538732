//! Exporting studies for other programs.

use std::path::Path;

use serde_json::{Value, json};

use crate::program::{Program, Run, bundled};

const FORMATS: [&str; 10] =
    ["jsonl", "ris", "endnote-xml", "csv", "rayyan", "asreview", "xlsx", "bibtex", "nbib", "csl-json"];

/// Imports files as a search. Returns its id.
fn import(program: &Program, files: &[std::path::PathBuf], more: &[&str]) -> String {
    let (report, run) = program.import(files, more);
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    report["search_id"].as_str().unwrap().to_owned()
}

fn export(program: &Program, args: &[&str], out: &Path) -> Run {
    let run = program.run(&[&["export"], args, &["--out", out.to_str().unwrap()]].concat());
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    run
}

/// Creates a RIS file with the given number of studies.
fn ris(program: &Program, name: &str, studies: usize, text: &str) -> std::path::PathBuf {
    let one = |at: usize| format!("TY  - JOUR\nTI  - {name} number {at}\nAB  - {text}\nER  - \n");
    program.file(name, (0..studies).map(one).collect::<String>().as_bytes())
}

#[test]
fn export_in_every_format_is_reproducible() {
    let program = Program::new();
    let search = import(&program, &[bundled("pubmed.nbib")], &[]);
    for format in FORMATS {
        let outs = ["one", "two"].map(|name| program.folder().join(format!("{name}.{format}")));
        for out in &outs {
            export(&program, &[&search, "--format", format], out);
        }
        let [one, two] = outs.map(|out| std::fs::read(out).unwrap());
        assert!(!one.is_empty() && one == two, "{format}");
    }
}

/// The source that was set is detected from the exported file.
#[test]
fn source_survives_export_and_import() {
    let program = Program::new();
    let said = ["--source", "Embase", "--platform", "Ovid", "--searched-on", "2026-05-17"];
    let search = import(&program, &[bundled("psycinfo.ris")], &said);
    let all = json!([["Embase", "Ovid", "2026-05-17"]]);
    for (format, expected) in [
        ("csv", all.clone()),
        ("bibtex", all),
        ("ris", json!([["Embase", "Ovid", null]])),
        ("endnote-xml", json!([["Embase", "Ovid", null]])),
        ("csl-json", json!([["Embase", null, null]])),
    ] {
        let out = program.folder().join(format!("out.{format}"));
        export(&program, &[&search, "--format", format], &out);
        let again = import(&program, &[out], &[]);
        let run = program.run(&["sources", &again, "--json"]);
        let found: Vec<Value> = run
            .lines()
            .iter()
            .map(|line| json!([line["database"], line["platform"], line["searched_on"]]))
            .collect();
        assert_eq!(json!(found), expected, "{format}");
    }
}

#[test]
fn covidence_export_has_files_per_source() {
    let program = Program::new();
    let medline = ris(&program, "medline.ris", 15_001, "x");
    import(&program, &[medline], &["--source", "MEDLINE", "--platform", "Ovid"]);
    let [one, two] = ["one.ris", "two.ris"].map(|name| ris(&program, name, 2, "y"));
    import(&program, &[one], &["--source", "Embase"]);
    import(&program, &[two], &["--source", "Embase"]);
    let out = program.folder().join("for-covidence");
    // Any text can name a project; this is the id of the default one.
    let project = "00000000-0000-0000-0000-000000000000";
    let run = export(&program, &["--project", project, "--for", "covidence", "--json"], &out);
    let written = run.json();
    let files: Vec<(String, u64)> = written
        .as_array()
        .unwrap()
        .iter()
        .map(|file| {
            let name = Path::new(file["out"].as_str().unwrap()).file_name().unwrap();
            (name.to_str().unwrap().to_owned(), file["studies"].as_u64().unwrap())
        })
        .collect();
    let expected = [("embase-1.ris", 4), ("medline-ovid-1.ris", 15_000), ("medline-ovid-2.ris", 1)];
    assert_eq!(files, expected.map(|(name, studies)| (name.to_owned(), studies)));
    for (name, studies) in expected {
        let text = std::fs::read_to_string(out.join(name)).unwrap();
        assert_eq!(text.matches("\r\nER  - \r\n").count() as u64, studies, "{name}");
    }
}

#[test]
fn covidence_export_without_unique_studies_has_no_file() {
    let program = Program::new();
    let twin =
        "TY  - JOUR\nTI  - A trial of one thing\nAU  - Doe, Jane\nPY  - 2020\nDO  - 10.5555/a\nER  - \n";
    let [one, two] = ["one.ris", "two.ris"].map(|name| program.file(name, twin.as_bytes()));
    import(&program, &[one], &["--source", "MEDLINE"]);
    import(&program, &[two], &["--source", "Embase"]);
    let out = program.folder().join("unique");
    let project = "00000000-0000-0000-0000-000000000000";
    let run = export(&program, &["--project", project, "--for", "covidence", "--unique"], &out);
    let files: Vec<_> = std::fs::read_dir(&out).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["medline-1.ris"]);
    assert!(run.stderr.contains("no study of embase is selected, so it has no file"), "{}", run.stderr);
}

#[test]
fn refused_covidence_export_leaves_no_part() {
    let program = Program::new();
    let [one, two] = ["one.ris", "two.ris"].map(|name| ris(&program, name, 2, "y"));
    import(&program, &[one], &["--source", "MEDLINE"]);
    import(&program, &[two], &["--source", "Embase"]);
    let out = program.folder().join("again");
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("medline-1.ris"), "kept").unwrap();
    let run = program.run(&["export", "--for", "covidence", "--out", out.to_str().unwrap()]);
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let files: Vec<_> = std::fs::read_dir(&out).unwrap().map(|file| file.unwrap().file_name()).collect();
    assert_eq!(files, ["medline-1.ris"]);
}

#[test]
fn export_filters_duplicates() {
    let program = Program::new();
    let twin =
        "TY  - JOUR\nTI  - A trial of one thing\nAU  - Doe, Jane\nPY  - 2020\nDO  - 10.5555/a\nER  - \n";
    let file = program.file("twins.ris", twin.repeat(3).as_bytes());
    let search = import(&program, &[file], &[]);
    for (more, expected) in [(None, 3), (Some("--unique"), 1), (Some("--duplicates"), 2)] {
        let out = program.folder().join(format!("{expected}.csv"));
        let args: Vec<&str> = [search.as_str(), "--format", "csv"].into_iter().chain(more).collect();
        export(&program, &args, &out);
        assert_eq!(std::fs::read_to_string(out).unwrap().lines().count(), expected + 1);
    }
}

#[test]
fn unguarded_table_prints_a_warning() {
    let program = Program::new();
    let search = import(&program, &[bundled("pubmed.nbib")], &[]);
    for format in FORMATS {
        let out = program.folder().join(format!("warned.{format}"));
        let run = export(&program, &[&search, "--format", format], &out);
        let is_warned = run.stderr.contains("do not open this file in a spreadsheet");
        assert_eq!(is_warned, matches!(format, "rayyan" | "asreview"), "{format}: {}", run.stderr);
    }
}

#[test]
fn failed_export_leaves_no_file() {
    let program = Program::new();
    let search = import(&program, &[bundled("psycinfo.ris")], &[]);
    let there = program.file("there.csv", b"mine");
    let there = there.to_str().unwrap();
    let run = program.run(&["export", &search, "--format", "csv", "--out", there]);
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("there.csv cannot be created"), "{}", run.stderr);
    assert_eq!(std::fs::read(there).unwrap(), b"mine");
    for wrong in [
        vec!["export", &search],
        vec!["export", &search, "--format", "doc"],
        vec!["export", &search, "--for", "word"],
        vec!["export", &search, "--format", "csv", "--for", "excel"],
        vec!["export", &search, "--format", "csv", "--unique", "--duplicates"],
        vec!["export", &search, "--format", "csv", "--merged", "--duplicates"],
    ] {
        let run = program.run(&[&wrong[..], &["--out", "new.csv"]].concat());
        assert_eq!(run.code, Some(2), "{wrong:?}: {}", run.stderr);
    }
}
