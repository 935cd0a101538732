//! The state machine, pinned: the whole table, and what must hold for every pair.

use std::collections::BTreeSet;

use imports::saga::table::{self, Answer};

#[test]
fn the_full_table_is_as_agreed() {
    // A changed line here is a changed promise: read it before accepting it.
    assert_eq!(table::markdown(), include_str!("table.md"));
}

#[test]
fn every_pair_of_state_and_event_is_in_the_table() {
    let pairs: BTreeSet<_> = table::rows().iter().map(|row| (row.from, row.event)).collect();
    assert_eq!(pairs.len(), 6 * 9);
}

#[test]
fn all_nine_events_are_ignored_in_completed_and_in_error() {
    let ended: Vec<_> =
        table::rows().into_iter().filter(|row| row.from == "Completed" || row.from == "Error").collect();
    assert_eq!(ended.len(), 2 * 9);
    assert!(ended.iter().all(|row| matches!(row.answer, Answer::Ignore(_))), "{ended:#?}");
}

#[test]
fn the_diagrams_show_every_state() {
    for state in ["Initial", "Uploading", "Uploaded", "Parsing", "Completed", "Error"] {
        assert!(table::mermaid().contains(state) && table::dot().contains(state));
    }
}
