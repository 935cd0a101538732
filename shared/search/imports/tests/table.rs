//! The state machine, pinned: the whole table, and what must hold for every pair.

use std::collections::BTreeSet;

use imports::saga::table::{self, Answer};

#[test]
fn table_matches_the_golden_file() {
    // Each line is a promise to clients and to earlier versions, so review a changed line before you accept it.
    assert_eq!(table::markdown(), include_str!("table.md"));
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
