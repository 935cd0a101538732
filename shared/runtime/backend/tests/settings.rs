//! Tests that the page of settings matches the code: every name, default and bound.

#![cfg(feature = "search")]
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use backend::{Config, queue_setting};
use imports::queues::QUEUES;

const PREFIX: &str = "SEARCH_IMPORT_";

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/settings.md");
    std::fs::read_to_string(path).unwrap()
}

/// The rows of the page's tables, by the variable in the first cell. The rows contain the other cells.
fn rows(page: &str) -> BTreeMap<String, Vec<String>> {
    page.lines().filter_map(row).collect()
}

fn row(line: &str) -> Option<(String, Vec<String>)> {
    let (name, rest) = line.strip_prefix("| `")?.split_once("` | ")?;
    let cells = rest.trim_end_matches('|').split('|').map(|cell| cell.trim().to_owned());
    Some((name.to_owned(), cells.collect()))
}

/// The text between the backticks that enclose a cell.
fn quoted(cell: &str) -> Option<&str> {
    cell.strip_prefix('`')?.strip_suffix('`')
}

fn read(name: &str, value: &str) -> Result<Config, String> {
    Config::from_pairs(imports::SYSTEM, [(name.to_owned(), value.to_owned())])
        .map_err(|faults| faults.to_string())
}

/// Returns `true` if a number is outside the bounds of its setting, regardless of other settings.
fn is_out_of_bounds(name: &str, value: i128) -> bool {
    let refused = format!("{name} must be a number");
    read(name, &value.to_string()).is_err_and(|faults| faults.contains(&refused))
}

#[test]
fn settings_page_lists_exactly_all_settings() {
    let page = page();
    let queues = QUEUES.iter().map(|spec| queue_setting(&spec.queue));
    let known: BTreeSet<String> = Config::names_of(imports::SYSTEM).into_iter().chain(queues).collect();
    let shown: BTreeSet<String> = rows(&page).into_keys().collect();
    let missing: Vec<_> = known.difference(&shown).collect();
    assert!(missing.is_empty(), "settings that the page does not explain: {missing:?}");
    let words = page.split(|c: char| !(c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_'));
    let unknown: Vec<_> = words.filter(|word| word.starts_with(PREFIX) && !known.contains(*word)).collect();
    assert!(unknown.is_empty(), "settings that no program reads: {unknown:?}");
}

#[test]
fn documented_defaults_apply() {
    let rows = rows(&page());
    for name in Config::names_of(imports::SYSTEM) {
        if let Some(default) = quoted(&rows[&name][1]) {
            assert_eq!(read(&name, default), Ok(Config::default()), "{name}");
        }
    }
}

#[test]
fn only_numbers_within_documented_bounds_are_accepted() {
    let mut bounded = 0;
    for (name, cells) in rows(&page()) {
        let Some(allowed) = cells.get(3) else { continue };
        let (least, most) = match allowed.split_once(" to ") {
            Some((least, most)) => (least, Some(most)),
            None => match allowed.strip_prefix("at least ") {
                Some(least) => (least, None),
                None => continue,
            },
        };
        let least: i128 = least.parse().unwrap();
        assert!(!is_out_of_bounds(&name, least) && is_out_of_bounds(&name, least - 1), "{name} from {least}");
        if let Some(most) = most {
            let most: i128 = most.parse().unwrap();
            assert!(!is_out_of_bounds(&name, most) && is_out_of_bounds(&name, most + 1), "{name} to {most}");
        }
        bounded += 1;
    }
    assert!(bounded > 10, "the page says bounds of {bounded} settings");
}

#[test]
fn documented_choices_are_accepted() {
    for (name, cells) in rows(&page()) {
        let choices = cells.get(3).into_iter().flat_map(|allowed| allowed.split(", ")).filter_map(quoted);
        for choice in choices {
            // Optimistic mode has its own default of the retention.
            assert!(read(&name, choice).is_ok(), "{name}={choice}");
        }
    }
}
