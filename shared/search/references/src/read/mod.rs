//! Turns the text of one record into a [`Reference`].
//!
//! Each format has a module with a table of the meaning of its tags, columns or elements ([`field::Rule`]), and code
//! that splits a record into values. The rules by which values become fields are the same for all formats ([`draft`]).

mod accession;
mod bibtex;
mod citation;
mod cnki;
mod csl;
mod csv;
mod databases;
mod dates;
mod draft;
mod ebsco;
mod ebsco_tagged;
mod elements;
mod endnote;
mod endnote_text;
mod engineering_village;
mod entities;
mod eu_ctr;
mod europe_pmc;
mod extra;
pub(crate) mod field;
mod frames;
mod ictrp;
mod identifiers;
mod isrctn;
mod jats;
mod json;
mod labels;
mod latex;
mod mods;
mod names;
pub(crate) mod nbib;
mod notation;
mod noteexpress;
mod pages;
mod person;
mod placeholders;
mod pubmed_text;
mod pubmed_xml;
mod refer;
mod refworks;
mod resolve;
mod ris;
mod sources;
mod tidy;
mod values;
pub(crate) mod wos;
mod zotero;

#[cfg(test)]
mod tables;

use bibtex::Definitions;
pub(crate) use bibtex::{Extent, Parents};
pub(crate) use databases::{after_bare_number, is_ovid_name};
pub use entities::decode as unescape;
pub use ris::KINDS as RIS_KINDS;

use crate::{Format, Reference, table::header::Header};

/// The name in `extra` of notes about repairs of a damaged record.
pub(crate) const REPAIRED: &str = "repaired";

/// Information in the file about the records that follow.
#[derive(Debug)]
pub(crate) enum Context {
    /// The header row of a table.
    Table(Header),
    /// The abbreviations of a BibTeX file.
    Definitions(Definitions),
}

impl Context {
    /// Interprets a text that a splitter found. Returns `None` if no part of it was understood.
    pub(crate) fn parse(text: &str, format: Format) -> Option<(Self, Extent)> {
        match format {
            Format::Csv { delimiter } => {
                Header::parse(text, delimiter).map(|header| (Self::Table(header), Extent::All))
            }
            Format::BibTex => {
                let mut known = Definitions::default();
                let taken = known.add(text);
                (taken != Extent::Nothing).then_some((Self::Definitions(known), taken))
            }
            _ => None,
        }
    }

    /// Adds further definitions.
    pub(crate) fn add(&mut self, text: &str) -> Extent {
        match self {
            Self::Table(_) => Extent::Nothing,
            Self::Definitions(known) => known.add(text),
        }
    }
}

/// Reads one record. `context` holds information from the file, and `parents` the entries that it inherits fields from.
///
/// # Errors
/// Returns the reason to quarantine the record.
pub(crate) fn read(
    format: Format,
    context: Option<&Context>,
    text: &str,
    parents: Parents<'_>,
) -> Result<Reference, String> {
    values::check(format, text)?;
    let mut reference = match (format, context) {
        (Format::Ris, _) => ris::read(&ris::without_elements(&ris::unquoted(text))).finish(),
        (Format::LooseRis, _) => ris::read_loose(text).finish(),
        (Format::Nbib, _) => nbib::read(&nbib::unquoted(text)).finish(),
        (Format::EndNoteXml, _) => endnote::read(text)?.finish(),
        (Format::PubMedXml, _) => pubmed_xml::read(text)?.finish(),
        (Format::BibTex, Some(Context::Definitions(known))) => {
            bibtex::read(text, Some(known.abbreviations()), parents)?.finish()
        }
        (Format::BibTex, _) => bibtex::read(text, None, parents)?.finish(),
        (Format::WebOfScience, _) => wos::read(&wos::unquoted(text)).finish(),
        (Format::FieldRows, _) => csv::read_fields(text),
        (Format::Refer, _) => refer::read(text).finish(),
        (Format::EndNoteText, _) => endnote_text::read(text).finish(),
        (Format::RefWorks, _) => refworks::read(text).finish(),
        (Format::Ovid, _) => databases::ovid(text).finish(),
        (Format::Cochrane, _) => databases::cochrane(text).finish(),
        (Format::ProQuest, _) => databases::proquest(text).finish(),
        (Format::EngineeringVillage, _) => engineering_village::read(text).finish(),
        (Format::PubMedText, _) => pubmed_text::read(text).finish(),
        (Format::CslJson | Format::Json, _) => csl::read(text)?.finish(),
        (Format::CnkiText, _) => {
            let mut reference = cnki::read(text).finish();
            csv::complete_from_source(&mut reference);
            reference
        }
        (Format::NoteExpress, _) => noteexpress::read(text).finish(),
        (Format::IctrpXml, _) => ictrp::read(text)?.finish(),
        (Format::IsrctnXml, _) => isrctn::read(text)?.finish(),
        (Format::EuCtrText, _) => eu_ctr::read(text).finish(),
        (Format::EbscoXml, _) => ebsco::read(text)?.finish(),
        (Format::EbscoTagged, _) => ebsco_tagged::read(text).finish(),
        (Format::ModsXml, _) => mods::read(text)?.finish(),
        (Format::ZoteroRdf, _) => zotero::read(text)?.finish(),
        (Format::EuropePmcXml, _) => europe_pmc::read(text)?.finish(),
        (Format::JatsXml, _) => jats::read(text)?.finish(),
        (Format::Csv { .. }, Some(Context::Table(header))) => csv::read(header, text)?,
        (Format::Csv { .. }, _) => return Err("the table has no header row".to_owned()),
    };
    if matches!(
        format,
        Format::Ris
            | Format::LooseRis
            | Format::Refer
            | Format::EndNoteXml
            | Format::RefWorks
            | Format::BibTex
            | Format::Csv { .. }
    ) {
        csv::complete_from_journal(&mut reference);
    }
    if reference.is_blank() {
        return Err("it has no title, author, DOI or any other field that could be read".to_owned());
    }
    Ok(reference)
}
