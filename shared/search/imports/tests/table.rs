//! The state machine, pinned: the page with the whole table, and what must hold for every pair.

use std::collections::BTreeSet;

use imports::saga::table::{self, Answer};

/// Returns the part of a page between two markers.
fn section<'a>(page: &'a str, name: &str) -> Option<&'a str> {
    let (_, from) = page.split_once(&format!("<!-- {name}: begin -->\n"))?;
    Some(from.split_once(&format!("<!-- {name}: end -->"))?.0)
}

#[test]
fn page_of_states_matches_the_code() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/states.md");
    let page = std::fs::read_to_string(path).unwrap();
    // Each line of the table is a promise to clients and to earlier versions, so review a changed line before you
    // accept it.
    assert_eq!(section(&page, "table"), Some(&*table::markdown()), "run `make diagram`");
    let diagram = format!("```mermaid\n{}```\n", table::mermaid());
    assert_eq!(section(&page, "diagram"), Some(&*diagram), "run `make diagram`");
}

#[test]
fn table_covers_every_state_and_event() {
    let pairs: BTreeSet<_> = table::rows().iter().map(|row| (row.from, row.event)).collect();
    assert_eq!(pairs.len(), 6 * 9);
}

#[test]
fn ended_searches_ignore_all_events() {
    let ended: Vec<_> =
        table::rows().into_iter().filter(|row| row.from == "Completed" || row.from == "Error").collect();
    assert_eq!(ended.len(), 2 * 9);
    assert!(ended.iter().all(|row| matches!(row.answer, Answer::Ignore(_))), "{ended:#?}");
}

#[test]
fn diagrams_show_every_state() {
    for state in ["Initial", "Uploading", "Uploaded", "Parsing", "Completed", "Error"] {
        assert!(table::mermaid().contains(state) && table::dot().contains(state));
    }
}
