//! The page about building this saga contains its code: every listing is part of a file, and every line of the files
//! that are shown completely is in a listing.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

const PAGE: &str = "docs/your-own-saga.md";
const SHOWN_COMPLETELY: [&str; 3] =
    ["tests/orders/src/lib.rs", "tests/orders/src/shop.rs", "tests/orders/src/lambda.rs"];
const SHOWN_IN_PART: [&str; 1] = ["shared/engine/onceward/examples/two_sagas.rs"];

fn read(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    fs::read_to_string(root.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Returns the Rust listings of the page, each with the file named in the comment above it.
fn listings(page: &str) -> Vec<(String, String)> {
    let mut listings = Vec::new();
    let mut lines = page.lines();
    let mut named = None;
    while let Some(line) = lines.next() {
        if line.starts_with("```rust") {
            let code: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            let file = named.take().unwrap_or_else(|| panic!("no comment names the file of: {}", code[0]));
            listings.push((file, code.join("\n") + "\n"));
        } else if !line.is_empty() {
            let name = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
            named = name.map(str::to_owned);
        }
    }
    listings
}

#[test]
fn page_listings_equal_the_files() {
    let shown = SHOWN_COMPLETELY.iter().chain(&SHOWN_IN_PART);
    let mut left: BTreeMap<&str, String> = shown.map(|path| (*path, read(path))).collect();
    for (file, code) in listings(&read(PAGE)) {
        let text = left.get_mut(file.as_str()).unwrap_or_else(|| panic!("{file} is not shown on the page"));
        let at =
            text.find(&code).unwrap_or_else(|| panic!("{file} does not have, or not once more:\n{code}"));
        text.replace_range(at..at + code.len(), "");
    }
    for file in SHOWN_COMPLETELY {
        assert_eq!(left[file].trim(), "", "{file} has lines that {PAGE} does not show");
    }
}
