//! One record's text to a [`Reference`].
//!
//! Each format has a module with a table of what its tags, columns or elements mean ([`field::Rule`]), and code that
//! cuts a record into values. How values become fields is the same for all formats ([`draft`]).

mod bibtex;
mod cells;
mod citation;
mod csl;
mod csv;
mod databases;
mod dates;
mod draft;
mod elements;
mod endnote;
mod entities;
mod europe_pmc;
mod extra;
mod field;
mod found;
pub(crate) mod header;
mod identifiers;
mod jats;
mod labels;
mod latex;
mod names;
mod nbib;
mod pages;
mod person;
mod pubmed_text;
mod pubmed_xml;
mod refer;
mod refworks;
mod ris;
mod tidy;
mod values;
mod wos;

#[cfg(test)]
mod tables;

use bibtex::Abbreviations;
pub(crate) use bibtex::Parents;
pub use entities::decode as unescape;
pub(crate) use header::Header;
pub use ris::KINDS as RIS_KINDS;

use crate::{Format, Reference};

/// Under this name in `extra` stands what was done about a record that is not as it should be.
pub(crate) const REPAIRED: &str = "repaired";

/// What the file says of the records behind it.
#[derive(Debug)]
pub(crate) enum Context {
    /// The header row of a table.
    Table(Header),
    /// The abbreviations of a BibTeX file.
    Abbreviations(Abbreviations),
}

/// How much of a text was taken in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Taken {
    Nothing,
    /// All that was understood.
    Part,
    All,
}

impl Context {
    /// What the text says that a splitter found; none when it says nothing.
    pub(crate) fn of(text: &str, format: Format) -> Option<(Self, Taken)> {
        match format {
            Format::Csv { delimiter } => {
                Header::of_row(text, delimiter).map(|header| (Self::Table(header), Taken::All))
            }
            Format::BibTex => {
                let mut known = Abbreviations::default();
                let taken = known.add(text);
                (taken != Taken::Nothing).then_some((Self::Abbreviations(known), taken))
            }
            _ => None,
        }
    }

    /// Takes more definitions in.
    pub(crate) fn add(&mut self, text: &str) -> Taken {
        match self {
            Self::Table(_) => Taken::Nothing,
            Self::Abbreviations(known) => known.add(text),
        }
    }
}

/// Reads one record of a file. `context` is known from the file, and fields are inherited from `parents`.
///
/// # Errors
/// The reason to quarantine the record.
pub(crate) fn read(
    format: Format,
    context: Option<&Context>,
    text: &str,
    parents: Parents<'_>,
) -> Result<Reference, String> {
    values::check(format, text)?;
    let reference = match (format, context) {
        (Format::Ris, _) => ris::read(text).finish(),
        (Format::Nbib, _) => nbib::read(text).finish(),
        (Format::EndNoteXml, _) => endnote::read(text)?.finish(),
        (Format::PubMedXml, _) => pubmed_xml::read(text)?.finish(),
        (Format::BibTex, Some(Context::Abbreviations(known))) => {
            bibtex::read(text, Some(known), parents)?.finish()
        }
        (Format::BibTex, _) => bibtex::read(text, None, parents)?.finish(),
        (Format::WebOfScience, _) => wos::read(text).finish(),
        (Format::FieldRows, _) => csv::read_fields(text),
        (Format::Refer, _) => refer::read(text).finish(),
        (Format::RefWorks, _) => refworks::read(text).finish(),
        (Format::Ovid, _) => databases::ovid(text).finish(),
        (Format::Cochrane, _) => databases::cochrane(text).finish(),
        (Format::ProQuest, _) => databases::proquest(text).finish(),
        (Format::PubMedText, _) => pubmed_text::read(text).finish(),
        (Format::CslJson, _) => csl::read(text)?.finish(),
        (Format::EuropePmcXml, _) => europe_pmc::read(text)?.finish(),
        (Format::JatsXml, _) => jats::read(text)?.finish(),
        (Format::Csv { .. }, Some(Context::Table(header))) => csv::read(header, text)?,
        (Format::Csv { .. }, _) => return Err("the table has no header row".to_owned()),
    };
    if reference.is_blank() {
        return Err("it has no title, author, DOI or any other field that could be read".to_owned());
    }
    Ok(reference)
}
