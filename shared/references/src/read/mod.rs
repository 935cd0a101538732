//! One record's text to a [`Reference`].
//!
//! Real exports bend their formats in ways that `biblib` refuses or misreads, so each format's module first
//! brings a record into a canonical shape (one line per value, one element per field), lets `biblib` read
//! that, and then sets the values which `biblib` changes on the way: it takes names like "Department of Health
//! and Human Services" apart, and completes abbreviated page numbers.

mod csv;
pub(crate) mod fields;
pub(crate) mod header;
mod names;
mod nbib;
mod ris;
mod values;
mod xml;

use std::panic::{AssertUnwindSafe, catch_unwind};

use biblib::{Citation, CitationParser};

pub(crate) use header::Header;

use crate::{Format, Reference, encoding::decode};

/// Reads one record; `header` is the table's, when it has one.
///
/// # Errors
/// The reason to quarantine the record.
pub(crate) fn read(format: Format, header: Option<&Header>, record: &[u8]) -> Result<Reference, String> {
    let text = decode(record)?;
    let reference = match (format, header) {
        (Format::Ris, _) => ris::read(&text),
        (Format::Nbib, _) => nbib::read(&text),
        (Format::EndNoteXml, _) => xml::read(&text),
        (Format::Csv { .. }, Some(header)) => csv::read(header, &text),
        (Format::Csv { .. }, None) => Err("the table has no header row".to_owned()),
    }?;
    if reference.is_blank() {
        return Err("it has no title, author, DOI or any other field that could be read".to_owned());
    }
    Ok(reference)
}

/// Runs `biblib` on one record; none when it saw nothing in it. A panic there costs the record and not the
/// file: it would otherwise come back with every retry.
fn citation(parser: &impl CitationParser, record: &str) -> Result<Citation, String> {
    // A parser is configuration only, so none is left half-changed.
    match catch_unwind(AssertUnwindSafe(|| parser.parse(record).map_err(|error| error.error.to_string()))) {
        Ok(Ok(citations)) => Ok(citations.into_iter().next().unwrap_or_default()),
        Ok(Err(reason)) => Err(reason),
        Err(_) => Err("it could not be read: the parser failed on it".to_owned()),
    }
}

/// The common part of all formats.
fn from_citation(citation: &Citation) -> Reference {
    let some = |value: &Option<String>| value.as_deref().and_then(values::line);
    Reference {
        title: values::line(&citation.title).unwrap_or_default(),
        authors: citation.authors.iter().filter_map(names::of_citation).collect(),
        year: citation.date.as_ref().map(|date| date.year).filter(|year| values::YEARS.contains(year)),
        journal: some(&citation.journal).or_else(|| some(&citation.journal_abbr)),
        volume: some(&citation.volume),
        issue: some(&citation.issue),
        pages: some(&citation.pages),
        doi: citation.doi.as_deref().and_then(values::doi),
        pmid: citation.pmid.as_deref().and_then(values::pmid),
        r#abstract: citation.abstract_text.as_deref().and_then(values::text),
        keywords: values::unique(citation.keywords.iter().chain(&citation.mesh_terms)),
        url: citation.urls.iter().find_map(|url| values::line(url)),
        r#type: citation.citation_type.iter().find_map(|kind| values::line(kind)),
    }
}
