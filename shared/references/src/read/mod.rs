//! One record's text to a [`Reference`].
//!
//! Each format has a module with a table of what its tags, columns or elements mean ([`field::Rule`]), and code that
//! cuts a record into values. How values become fields is the same for all formats ([`draft`]).

mod bibtex;
mod cells;
mod csv;
mod dates;
mod draft;
mod elements;
mod endnote;
mod entities;
mod extra;
mod field;
mod found;
pub(crate) mod header;
mod identifiers;
mod latex;
mod names;
mod nbib;
mod pages;
mod pubmed_xml;
mod ris;
mod tidy;
mod wos;

#[cfg(test)]
mod tables;

pub(crate) use header::Header;

use crate::{Format, Reference};

/// Reads one record; `header` is the table's, when it has one.
///
/// # Errors
/// The reason to quarantine the record.
pub(crate) fn read(format: Format, header: Option<&Header>, text: &str) -> Result<Reference, String> {
    let reference = match (format, header) {
        (Format::Ris, _) => ris::read(text).finish(),
        (Format::Nbib, _) => nbib::read(text).finish(),
        (Format::EndNoteXml, _) => endnote::read(text)?.finish(),
        (Format::PubMedXml, _) => pubmed_xml::read(text)?.finish(),
        (Format::BibTex, _) => bibtex::read(text)?.finish(),
        (Format::WebOfScience, _) => wos::read(text).finish(),
        (Format::Csv { .. }, Some(header)) => csv::read(header, text)?,
        (Format::Csv { .. }, None) => return Err("the table has no header row".to_owned()),
    };
    if reference.is_blank() {
        return Err("it has no title, author, DOI or any other field that could be read".to_owned());
    }
    Ok(reference)
}
