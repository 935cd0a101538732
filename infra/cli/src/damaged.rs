//! Naming the studies that a command has skipped because they are damaged.

use std::collections::BTreeMap;

use local::output;

use crate::words::counted;

/// The maximum number of studies that are named one by one.
const MAX_NAMED: usize = 10;

/// The studies that a command has skipped, by file and record, with their damage.
#[derive(Debug, Default)]
pub(crate) struct Skipped(BTreeMap<(String, u64), String>);

impl Skipped {
    /// Adds a record of a file that cannot be read.
    pub(crate) fn add(&mut self, file: &str, record: u64, why: &str) {
        self.0.entry((file.to_owned(), record)).or_insert_with(|| why.to_owned());
    }

    /// Names them, with the next step. Returns `true` if nothing was skipped.
    pub(crate) fn tell(&self) -> bool {
        if self.0.is_empty() {
            return true;
        }
        for ((file, record), why) in self.0.iter().take(MAX_NAMED) {
            output::complain(&format!("record {record} of {file} is damaged, and was skipped: {why}"));
        }
        let count = counted(self.0.len() as u64, "damaged study was", "damaged studies were");
        output::complain(&format!(
            "{count} skipped, and everything else is here; restore the data directory from a backup, or delete the \
             search and import its file again"
        ));
        false
    }
}
