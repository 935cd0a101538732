//! Where PubMed nbib records begin and end.
//!
//! A record begins at `PMID- ` or, in exports from PubMed Central, at `PMC - ` after a blank line. `PMC - `
//! also occurs inside records, so without a blank line before it, it begins nothing. A second `PMID- `
//! always begins a record: no record has two.

use super::{
    lines::{MARK_LENGTH, unmarked},
    tagged::{Kind, Open, Rules, Tagged},
};

/// How many bytes decide what a line is.
const TAG_PREFIX: usize = MARK_LENGTH + 6;

fn kind(line: &[u8]) -> Kind {
    match unmarked(line).get(..5) {
        Some(b"PMID-") => Kind::Type,
        Some(b"PMC -" | b"OWN -" | b"STAT-") => Kind::UntypedStart,
        _ => Kind::Other,
    }
}

fn begins_next(open: &Open, kind: Kind) -> bool {
    match kind {
        Kind::Type => open.typed || open.after_blank,
        Kind::UntypedStart => open.after_blank,
        Kind::End | Kind::Other => false,
    }
}

/// Whether a line begins a record. `OWN - ` alone does not make a file nbib.
pub(crate) fn is_first_line(line: &[u8]) -> bool {
    line.starts_with(b"PMID- ") || line.starts_with(b"PMC - ")
}

/// Splits nbib files.
pub(crate) fn splitter(limit: usize) -> Tagged {
    Tagged::new(Rules { kind, prefix: TAG_PREFIX, begins_next }, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::{Split, Step, cut};

    fn records(text: &str) -> Vec<String> {
        cut(&mut splitter(1000), text)
    }

    #[test]
    fn records_begin_at_either_identifier_after_a_blank_line() {
        let text = "\nPMC - PMC1\nPMID- 1\nTI  - a\n\nPMC - PMC2\nTI  - b\n";
        assert_eq!(records(text), ["PMC - PMC1\nPMID- 1\nTI  - a", "PMC - PMC2\nTI  - b"]);
    }

    #[test]
    fn a_pmc_identifier_inside_a_record_begins_nothing() {
        assert_eq!(records("PMID- 1\nPMC - PMC1\nTI  - a\n").len(), 1);
    }

    #[test]
    fn a_second_pmid_begins_a_record_without_a_blank_line() {
        assert_eq!(records("PMID- 1\nTI  - a\nPMID- 2\nTI  - b\n").len(), 2);
    }

    #[test]
    fn a_line_seen_in_parts_is_one_line() {
        let mut nbib = splitter(1000);
        assert_eq!(nbib.step(b"OWN - NLM\nPMID- 1", false), Step::More);
        let found = Step::Found { record: 0..17, consumed: 17, fault: None };
        assert_eq!(nbib.step(b"OWN - NLM\nPMID- 1", true), found);
    }

    #[test]
    fn a_blank_line_inside_a_record_does_not_split_it() {
        assert_eq!(records("PMID- 1\nAB  - a\n\n      b\nTI  - c\n").len(), 1);
    }
}
