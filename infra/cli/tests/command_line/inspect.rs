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
    assert_eq!(keys(&report), ["elapsed_ms", "files", "messages", "search_id", "state", "studies"]);
    assert_eq!(
        keys(&report["files"][0]),
        ["encoding", "error", "format", "name", "outcome", "quarantined", "records", "studies"]
    );
    assert_eq!(
        keys(&report["messages"]),
        ["dispatched", "duplicates_dropped", "ignored", "parse_commands", "received"]
    );
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

#[test]
fn the_diagram_is_drawn_in_three_forms() {
    let program = Program::new();
    for (format, begin) in [("mermaid", "stateDiagram-v2"), ("dot", "digraph"), ("table", "| state |")] {
        let run = program.run(&["diagram", "--format", format]);
        assert!(run.code == Some(0) && run.stdout.starts_with(begin), "{format}");
    }
}
