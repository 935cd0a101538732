//! The statistics of a file, which are collected part by part.

use imports::{Counts, Part};
use references::{Certainty, Report};
use serde::{Deserialize, Serialize};

/// The maximum number of notes about a file, and the maximum length of each in characters.
const MAX_NOTES: usize = 20;
const NOTE_CHARS: usize = 300;

/// The percentage of records without a title above which a note is added.
const UNTITLED_PERCENT: u64 = 2;

/// The statistics of a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct FileStats {
    pub(super) records: u64,
    pub(super) quarantined: u64,
    untitled: u64,
    formats: Vec<String>,
    encodings: Vec<String>,
    format_certainty: Option<Certainty>,
    encoding_certainty: Option<Certainty>,
    pub(super) parts: Vec<Part>,
    pub(super) notes: Vec<String>,
    /// The number of notes beyond the maximum.
    more_notes: usize,
}

impl FileStats {
    /// Returns the statistics of a file that is not packed.
    pub(super) fn of_plain(report: &Report) -> Self {
        let mut stats = Self::default();
        stats.add("", report, &formats(report));
        stats
    }

    /// Adds the report of a file, or of the part with this name, in these formats.
    pub(super) fn add(&mut self, name: &str, report: &Report, formats: &[String]) {
        self.records += report.records;
        self.quarantined += report.quarantined;
        self.untitled += report.untitled;
        add_new(&mut self.formats, formats);
        add_new(&mut self.encodings, &[report.encoding.to_string()]);
        let least = |before: Option<Certainty>, new: Certainty| match before {
            Some(before) if rank(before) > rank(new) => Some(before),
            _ => Some(new),
        };
        self.format_certainty = least(self.format_certainty, report.format_certainty);
        self.encoding_certainty = least(self.encoding_certainty, report.encoding_certainty);
        if let Some(skipped) = &report.skipped {
            let of = if name.is_empty() { String::new() } else { format!(" of {name:?}") };
            let lines =
                if skipped.lines == 1 { "1 line".to_owned() } else { format!("{} lines", skipped.lines) };
            let (line, text) = (skipped.line, &skipped.excerpt);
            self.note(&format!("{lines}{of} outside of records skipped; the first is line {line}: {text:?}"));
        }
    }

    /// Adds a note for the reviewer.
    pub(super) fn note(&mut self, note: &str) {
        if self.notes.len() == MAX_NOTES {
            self.more_notes += 1;
        } else {
            self.notes.push(note.chars().take(NOTE_CHARS).collect());
        }
    }

    /// Returns the counts for the reply, with all notes.
    pub(super) fn counts(&self) -> Counts {
        let mut notes = self.notes.clone();
        if self.more_notes > 0 {
            notes.push(format!("{} more notes", self.more_notes));
        }
        if self.untitled > 0 && self.untitled * 100 >= self.records * UNTITLED_PERCENT {
            notes.insert(0, format!("{} of {} records have no title", self.untitled, self.records));
        }
        let text = |certainty: Option<Certainty>| certainty.map_or_else(String::new, |it| it.to_string());
        Counts {
            format: self.formats.join(", "),
            format_certainty: text(self.format_certainty),
            encoding: self.encodings.join(", "),
            encoding_certainty: text(self.encoding_certainty),
            records: self.records,
            studies: self.records - self.quarantined,
            quarantined: self.quarantined,
            parts: self.parts.clone(),
            notes,
        }
    }
}

/// Returns the formats of the parts of a file.
pub(super) fn formats(report: &Report) -> Vec<String> {
    report.other_formats.iter().chain([&report.format]).map(ToString::to_string).collect()
}

fn add_new(all: &mut Vec<String>, new: &[String]) {
    for name in new {
        if !all.contains(name) {
            all.push(name.clone());
        }
    }
}

/// Ranks certainties; the least certain one is the highest.
fn rank(certainty: Certainty) -> u8 {
    match certainty {
        Certainty::Certain => 0,
        Certainty::Likely => 1,
        Certainty::Guess => 2,
    }
}
