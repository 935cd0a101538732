//! Reads a `<PubmedArticle>` or `<PubmedBookArticle>`.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    elements::{Visitor, attribute, walk},
    field::{Field, FieldName, Index, Rule},
    person::Person,
    tidy,
};

/// The elements and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["ArticleTitle", "VernacularTitle"] },
    Rule { field: Field::Book, names: &["BookTitle"] },
    Rule { field: Field::FamilyName, names: &["Author/LastName"] },
    Rule { field: Field::GivenName, names: &["Author/ForeName"] },
    Rule { field: Field::Initials, names: &["Author/Initials"] },
    Rule { field: Field::NameSuffix, names: &["Author/Suffix"] },
    Rule { field: Field::Group, names: &["Author/CollectiveName"] },
    Rule { field: Field::Date, names: &["PubDate"] },
    Rule { field: Field::Journal, names: &["Journal/Title", "ISOAbbreviation", "MedlineTA"] },
    Rule { field: Field::Volume, names: &["JournalIssue/Volume", "Book/Volume"] },
    Rule { field: Field::Issue, names: &["JournalIssue/Issue"] },
    Rule { field: Field::Pages, names: &["MedlinePgn"] },
    Rule { field: Field::FirstPage, names: &["StartPage"] },
    Rule { field: Field::LastPage, names: &["EndPage"] },
    Rule { field: Field::Doi, names: &["ELocationID", "ArticleId"] },
    Rule { field: Field::Pmid, names: &["MedlineCitation/PMID", "BookDocument/PMID"] },
    Rule { field: Field::Abstract, names: &["Abstract/AbstractText"] },
    Rule { field: Field::Keyword, names: &["Keyword", "MeshHeading/DescriptorName"] },
    Rule { field: Field::Type, names: &["PublicationType"] },
    Rule { field: Field::Extra, names: &["ArticleDate"] },
    Rule {
        field: Field::LeftOut,
        names: &[
            "CommentsCorrectionsList",
            "ReferenceList",
            "History",
            "InvestigatorList",
            "DateCreated",
            "DateCompleted",
            "DateRevised",
        ],
    },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Result<Draft<'_>, String> {
    walk(text, PubMed::default()).map(|read| {
        let mut draft = read.draft;
        if let Some((_, named, pmid)) = read.pmid {
            draft.add_decoded(named, pmid);
        }
        draft
    })
}

/// Returns `true` for an element that PubMed keeps although its value is wrong.
fn is_invalid(attributes: &str) -> bool {
    attribute(attributes, "ValidYN").is_some_and(|valid| valid == "N")
}

#[derive(Default)]
struct PubMed<'a> {
    draft: Draft<'a>,
    person: Person,
    /// `true` if the people are editors of a book.
    editors: bool,
    /// `true` if the name of the current author was corrected by another one.
    is_invalid: bool,
    /// The PMID of the latest version.
    pmid: Option<(u32, FieldName, Cow<'a, str>)>,
}

impl<'a> PubMed<'a> {
    /// Articles also have other identifiers in the same elements.
    fn identifier(&mut self, named: FieldName, attributes: &str, text: Cow<'a, str>) {
        if is_invalid(attributes) {
            return self.draft.extra.push(named.name, &text);
        }
        let kind = attribute(attributes, "EIdType").or_else(|| attribute(attributes, "IdType"));
        match kind.as_deref() {
            Some("doi") => self.draft.add_decoded(named, text),
            // The PMID has its own element.
            Some("pubmed") => {}
            Some(kind) => self.draft.extra.push(kind, &text),
            None => self.draft.extra.push(named.name, &text),
        }
    }

    /// Formats a section of an abstract with its label, as PubMed displays it.
    fn section(&mut self, named: FieldName, attributes: &str, text: &str) {
        let Some(text) = tidy::line(text) else { return };
        // `UNLABELLED` stands for a section without a label.
        let label = attribute(attributes, "Label").filter(|label| !label.is_empty() && label != "UNLABELLED");
        let text = label.map_or_else(|| text.clone(), |label| format!("{label}: {text}"));
        self.draft.add_decoded(named, Cow::Owned(text));
    }
}

impl<'a> Visitor<'a> for PubMed<'a> {
    const DRESS: &'static [&'static str] = &["i", "b", "sub", "sup", "u"];
    const PARTS: &'static [&'static str] = &["Year", "Month", "Day", "Season", "MedlineDate"];

    fn index(&self) -> &'static Index {
        &INDEX
    }

    fn value(&mut self, named: FieldName, attributes: &'a str, text: Cow<'a, str>) {
        match named.field {
            Field::FamilyName | Field::GivenName | Field::Initials | Field::NameSuffix => {
                self.person.add(named.field, &text);
            }
            Field::Group => {
                if let Some(name) = tidy::line(&text) {
                    self.draft.author(Field::Group, name);
                }
            }
            Field::Keyword => self.draft.keyword(named.rank, &text),
            // The versions of an article have their own elements.
            Field::Pmid => {
                let version =
                    attribute(attributes, "Version").and_then(|version| version.parse().ok()).unwrap_or(0);
                let is_latest = self.pmid.as_ref().is_none_or(|(known, ..)| version > *known);
                let before = if is_latest {
                    self.pmid.replace((version, named, text))
                } else {
                    Some((version, named, text))
                };
                if let Some((_, named, text)) = before {
                    self.draft.extra.push(named.tag, &text);
                }
            }
            Field::Doi => self.identifier(named, attributes, text),
            Field::Abstract => self.section(named, attributes, &text),
            _ => self.draft.add_decoded(named, text),
        }
    }

    fn other(&mut self, name: &'a str, text: &str) {
        self.draft.extra.push(name, text);
    }

    fn start(&mut self, name: &'a str, attributes: &'a str) {
        if name == "Author" {
            self.is_invalid = is_invalid(attributes);
        }
        if name == "AuthorList" {
            self.editors = attribute(attributes, "Type").is_some_and(|kind| kind == "editors");
        }
    }

    fn end(&mut self, name: &'a str) {
        if name != "Author" {
            return;
        }
        if let Some(name) = self.person.finish().filter(|_| !self.is_invalid) {
            self.draft.author(if self.editors { Field::Editor } else { Field::Author }, name);
        }
    }
}
