//! Commands that print stored data.

use std::path::PathBuf;

use serde_json::json;

use crate::program::{Program, bundled};

#[test]
fn report_json_has_the_documented_fields() {
    let (report, run) = Program::new().import(&[bundled("psycinfo.ris")], &["--search-name", "Harms"]);
    assert_eq!(run.stdout.lines().count(), 1, "exactly one object");
    let keys = |value: &serde_json::Value| {
        let mut keys: Vec<String> = value.as_object().unwrap().keys().cloned().collect();
        keys.sort();
        keys
    };
    assert_eq!(
        keys(&report),
        ["duplicates", "elapsed_ms", "files", "messages", "search_id", "state", "studies"]
    );
    assert_eq!(
        keys(&report["files"][0]),
        [
            "duplicates",
            "encoding",
            "encoding_certainty",
            "error",
            "format",
            "format_certainty",
            "name",
            "outcome",
            "quarantined",
            "records",
            "studies"
        ]
    );
    assert_eq!(
        keys(&report["messages"]),
        ["dispatched", "duplicates_dropped", "ignored", "parse_commands", "received"]
    );
}

#[test]
fn report_has_the_certainty_of_encodings() {
    let files = [bundled("windows-1252.ris"), bundled("psycinfo.ris")];
    let program = Program::new();
    let (report, _) = program.import(&files, &[]);
    let told =
        |file: usize| (&report["files"][file]["encoding"], &report["files"][file]["encoding_certainty"]);
    assert_eq!(told(0), (&json!("Windows-1252"), &json!("likely")));
    assert_eq!(told(1), (&json!("UTF-8"), &json!("certain")));
    let shown = program.run(&["show", report["search_id"].as_str().unwrap()]).stdout;
    let told = |name: &str| shown.split_whitespace().any(|word| word == name);
    assert!(told("Windows-1252") && told("UTF-8"), "{shown}");
    assert_eq!(shown.split_whitespace().filter(|word| *word == "(likely)").count(), 1, "{shown}");
}

#[test]
fn duplicates_are_counted_with_their_reason() {
    let program = Program::new();
    let again = b"TY  - JOUR\nTI  - Warm-Water Immersion in Labour. A Registry Study\nDO  - 10.5555/MI.2018.020\nER  - \n";
    let again = program.file("again.ris", again);
    let (report, _) = program.import(&[bundled("broken.ris"), again], &[]);
    assert_eq!((&report["studies"], &report["duplicates"]), (&json!(3), &json!(1)));
    assert_eq!(
        (&report["files"][0]["duplicates"], &report["files"][1]["duplicates"]),
        (&json!(0), &json!(1))
    );
    let search = report["search_id"].as_str().unwrap();
    let studies = program.run(&["studies", search, "--json"]).lines();
    let original = json!({
        "search": search, "file": "broken.ris", "record": 1, "tier": "certain", "reason": "doi_title",
    });
    assert_eq!(studies[2]["duplicate"], original);
    assert!(studies[..2].iter().all(|study| study.get("duplicate").is_none()));
    let listed = program.run(&["studies", search]).stdout;
    assert!(listed.contains("[duplicate of record 1 of broken.ris: the same DOI and title]"), "{listed}");
    assert_eq!(program.run(&["show", search, "--json"]).json()["duplicates"], 1);
    let shown = program.run(&["show", search]).stdout;
    assert!(shown.contains("3 studies, 1 of them a duplicate;"), "{shown}");
    assert!(shown.contains("TY  - JOUR ######## export interrupted, record 2"), "{shown}");
}

#[test]
fn report_table_fits_80_columns() {
    let program = Program::new();
    let files = ["broken.ris", "scopus-semicolon.csv", "utf-16.ris", "windows-1252.ris"].map(bundled);
    let bad = program.file("paper with a long name that is not a reference file.pdf", b"%PDF-1.7\n1 0 obj");
    let paths = files.iter().chain([&bad]).map(|path| path.to_str().unwrap());
    let run = program.run(&["import"].into_iter().chain(paths).collect::<Vec<_>>());
    let table = run.stdout.lines().take_while(|line| !line.starts_with("import "));
    assert!(table.clone().count() > 5, "{}", run.stdout);
    for line in table {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let headings = ["file", "format", "records", "studies", "duplicates", "not", "imported", "outcome"];
    assert_eq!(run.stdout.lines().next().unwrap().split_whitespace().collect::<Vec<_>>(), headings);
    for outcome in ["completed", "failed"] {
        assert!(run.stdout.contains(outcome), "{}", run.stdout);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn progress_bars_fit_80_columns() {
    let program = Program::new();
    let name = format!("{}.ris", "a very long name ".repeat(5));
    let content = std::fs::read(bundled("psycinfo.ris")).unwrap();
    let file = program.file(&name, &content);
    let run = program.run_at_terminal(&["import", file.to_str().unwrap()]);
    let shown = console::strip_ansi_codes(&run.stdout).into_owned();
    let mut bars =
        shown.split(['\r', '\n']).filter(|line| line.contains('█') || line.contains('░')).peekable();
    assert!(bars.peek().is_some(), "{shown}");
    assert!(bars.clone().any(|bar| bar.contains(" done, 3 records")), "{shown}");
    for bar in bars {
        // The last bar fills its line, so the table starts on the next one.
        let beyond: String = bar.chars().skip(80).collect();
        assert!(beyond.is_empty() || beyond.starts_with("file "), "{bar}");
    }
}

#[test]
fn singular_counts_and_single_full_stops() {
    let program = Program::new();
    let file =
        program.file("one.ris", b"TY  - JOUR\nTI  - A title.\nAU  - Smith, J.\nJO  - Journal\nER  - \n");
    let run = program.run(&["import", file.to_str().unwrap()]);
    assert!(run.stdout.contains("Completed, 1 study; "), "{}", run.stdout);
    assert!(run.stderr.contains("one.ris: done, 1 record\n"), "{}", run.stderr);
    let listed = program.run(&["studies", "one.ris"]).stdout;
    assert_eq!(listed, "     1  Smith, J. A title. Journal\n");
}

#[test]
fn files_of_one_name_are_numbered() {
    let program = Program::new();
    let (first, second) = twins(&program, b"TY  - JOUR\nTI  - Twins\nDO  - 10.5555/1\nER  - \n");
    let (report, _) = program.import(&[first, bundled("psycinfo.ris"), second], &[]);
    let names: Vec<_> = report["files"].as_array().unwrap().iter().map(|file| &file["name"]).collect();
    assert_eq!(names, ["twin.ris (1)", "psycinfo.ris", "twin.ris (2)"]);
    let search = report["search_id"].as_str().unwrap();
    let listed = program.run(&["studies", search]).stdout;
    assert!(listed.contains("[duplicate of record 1 of twin.ris (1): the same DOI and title]"), "{listed}");
    let studies = program.run(&["studies", search, "--json"]).lines();
    assert_eq!(studies.last().unwrap()["source"]["file"], "twin.ris (2)");
    assert_eq!(studies.last().unwrap()["duplicate"]["file"], "twin.ris (1)");
    assert!(program.run(&["show", search]).stdout.contains("twin.ris (2)"));
}

/// Creates two files with the same name and content in separate folders.
pub(crate) fn twins(program: &Program, content: &[u8]) -> (PathBuf, PathBuf) {
    let twin = |folder: &str| {
        std::fs::create_dir(program.folder().join(folder)).unwrap();
        program.file(&format!("{folder}/twin.ris"), content)
    };
    (twin("a"), twin("b"))
}

#[test]
fn studies_json_has_one_object_per_line() {
    let program = Program::new();
    let (report, _) = program.import(&[bundled("psycinfo.ris")], &[]);
    let studies = program.run(&["studies", report["search_id"].as_str().unwrap(), "--json"]).lines();
    assert_eq!(studies.len(), 3);
    for study in &studies {
        for key in [
            "title", "authors", "year", "journal", "volume", "issue", "pages", "doi", "pmid", "abstract",
            "keywords", "url", "type",
        ] {
            assert!(study.get(key).is_some(), "{key} is missing in {study}");
        }
        assert!(study["authors"].is_array() && study["keywords"].is_array());
    }
    assert_eq!(studies[1]["source"]["file"], "psycinfo.ris");
    assert_eq!(studies[1]["source"]["record"], 2);
}

#[test]
fn show_prints_decision_about_every_message() {
    let program = Program::new();
    let (report, _) = program.import(&[bundled("psycinfo.ris")], &["--duplicate", "2"]);
    let search = report["search_id"].as_str().unwrap();
    let shown = program.run(&["show", search, "--json"]).json();
    assert_eq!(shown["job"]["state"], "Completed");
    let decisions = shown["decisions"].as_array().unwrap();
    let of =
        |verdict: &str| decisions.iter().filter(|decision| decision["verdict"] == json!(verdict)).count();
    assert_eq!(of("duplicate") as u64, report["messages"]["duplicates_dropped"].as_u64().unwrap());
    assert!(decisions.iter().all(|decision| decision["why"].as_str().is_some_and(|why| !why.is_empty())));
    let for_people = program.run(&["show", search]).stdout;
    assert!(for_people.contains("handled: all files are here; parsing 1"), "{for_people}");
}

#[test]
fn disabled_history_stores_no_decisions() {
    let program = Program::new().setting("SEARCH_IMPORT_HISTORY_SECONDS", "0");
    let (report, _) = program.import(&[bundled("psycinfo.ris")], &[]);
    assert_eq!((&report["state"], &report["messages"]), (&"Completed".into(), &json!(null)));
    let program = program.setting("SEARCH_IMPORT_HISTORY_SECONDS", "60");
    let shown = program.run(&["show", report["search_id"].as_str().unwrap(), "--json"]).json();
    assert_eq!(shown["decisions"], json!([]));
}
