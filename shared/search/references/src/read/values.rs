//! The limit on the number of values in a record.
//!
//! A value occupies about fifty bytes in addition to its text, so a record that consists of separators would occupy
//! twenty times its size. Separators are therefore counted before any value is read.

use memchr::{memchr_iter, memchr2_iter, memchr3_iter, memmem};

use crate::Format;

/// The maximum number of separators in a record. A paper with 15,000 authors has 60,000, and prose in a record of the
/// maximum size has 70,000.
const MAX_SEPARATORS: usize = 100_000;

/// Refuses a record with too many values.
///
/// # Errors
/// Returns the reason to quarantine the record.
pub(super) fn check(format: Format, text: &str) -> Result<(), String> {
    if text.len() <= MAX_SEPARATORS || separators(format, text.as_bytes()) <= MAX_SEPARATORS {
        return Ok(());
    }
    Err(format!(
        "it has more than {MAX_SEPARATORS} values; split it, or shorten its lists, and import it again"
    ))
}

fn separators(format: Format, text: &[u8]) -> usize {
    let punctuation = || memchr3_iter(b',', b';', b'|', text).count();
    let lines = || memchr2_iter(b'\n', b'\r', text).count();
    match format {
        // Elements are read one by one, and every value has markup around it.
        _ if format.is_xml() => 0,
        Format::BibTex => {
            let names = memmem::find_iter(text, b" and ").count();
            punctuation() + lines() + names + memchr_iter(b'=', text).count()
        }
        Format::Csv { .. } | Format::FieldRows => punctuation() + lines() + memchr_iter(b'\t', text).count(),
        _ => punctuation() + lines(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prose_and_long_lists_stay_within_limit() {
        let prose =
            "Methods: we searched, screened and read what was found; all of it by two of us. ".repeat(40_000);
        let authors = "AU  - Wang, L.\n".repeat(15_000);
        for text in [prose, authors] {
            assert_eq!(check(Format::Ris, &text), Ok(()));
        }
        assert!(check(Format::Ris, &"AU  - x\n".repeat(100_001)).is_err());
    }
}
