//! Reporting the studies that a command skipped because they are damaged.

use std::collections::BTreeMap;

use local::output;

use crate::humanize::counted;

/// The maximum number of studies that are listed individually.
const MAX_LISTED: usize = 10;

/// The damaged studies that a command skipped, by file and record, with the reasons.
#[derive(Debug, Default)]
pub(crate) struct DamagedStudies(BTreeMap<(String, u64), String>);

impl DamagedStudies {
    /// Adds a record of a file that cannot be read.
    pub(crate) fn add(&mut self, file: &str, record: u64, why: &str) {
        self.0.entry((file.to_owned(), record)).or_insert_with(|| why.to_owned());
    }

    /// Prints the damaged studies with the next step. Returns `true` if no study was skipped.
    pub(crate) fn report(&self) -> bool {
        if self.0.is_empty() {
            return true;
        }
        for ((file, record), why) in self.0.iter().take(MAX_LISTED) {
            output::complain(&format!("record {record} of {file} is damaged and was skipped: {why}"));
        }
        let count = counted(self.0.len() as u64, "damaged study was", "damaged studies were");
        output::complain(&format!(
            "{count} skipped; the output is otherwise complete; restore the data directory from a backup, or delete the \
             import and import its files again"
        ));
        false
    }
}
