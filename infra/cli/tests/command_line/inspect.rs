//! Looking at what is stored.

use serde_json::json;

use crate::program::{Program, bundled};

#[test]
fn the_report_has_the_agreed_shape() {
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
fn the_report_says_how_sure_the_encoding_is() {
    let files = [bundled("windows-1252.ris"), bundled("psycinfo.ris")];
    let program = Program::new();
    let (report, _) = program.import(&files, &[]);
    let told =
        |file: usize| (&report["files"][file]["encoding"], &report["files"][file]["encoding_certainty"]);
    assert_eq!(told(0), (&json!("Windows-1252"), &json!("likely")));
    assert_eq!(told(1), (&json!("UTF-8"), &json!("certain")));
    let shown = program.run(&["show", report["search_id"].as_str().unwrap()]).stdout;
    assert!(shown.contains("Windows-1252 (likely)") && !shown.contains("UTF-8 ("), "{shown}");
}

#[test]
fn duplicates_are_counted_and_shown_with_their_reason() {
    let program = Program::new();
    let again = program.file("again.ris", b"TY  - JOUR\nTI  - x\nDO  - 10.5555/MI.2018.020\nER  - \n");
    let (report, _) = program.import(&[bundled("broken.ris"), again], &[]);
    assert_eq!((&report["studies"], &report["duplicates"]), (&json!(3), &json!(1)));
    assert_eq!(
        (&report["files"][0]["duplicates"], &report["files"][1]["duplicates"]),
        (&json!(0), &json!(1))
    );
    let search = report["search_id"].as_str().unwrap();
    let studies = program.run(&["studies", search, "--json"]).lines();
    assert_eq!(studies[2]["duplicate"], json!({ "file": "broken.ris", "record": 1, "reason": "doi" }));
    assert!(studies[..2].iter().all(|study| study.get("duplicate").is_none()));
    let listed = program.run(&["studies", search]).stdout;
    assert!(listed.contains("[duplicate of record 1 of broken.ris: the same DOI]"), "{listed}");
    assert_eq!(program.run(&["show", search, "--json"]).json()["duplicates"], 1);
    let shown = program.run(&["show", search]).stdout;
    assert!(shown.contains("3 studies, 1 of them duplicates"), "{shown}");
    assert!(shown.contains("TY  - JOUR ######## export interrupted, record 2"), "{shown}");
}

#[test]
fn studies_are_listed_one_object_a_line() {
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
fn show_tells_what_was_decided_about_every_message() {
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
