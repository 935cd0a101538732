//! Reads an item of Zotero's RDF, and the element of its journal after it.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    elements::{Visitor, walk},
    field::{Field, FieldName, Index, Rule},
    person::Person,
    tidy,
};

/// The elements and their fields. Titles in the element of a journal, book or website are titles of the journal.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["dc:title"] },
    Rule { field: Field::FamilyName, names: &["foaf:surname"] },
    Rule { field: Field::GivenName, names: &["foaf:givenName", "foaf:givenname"] },
    Rule { field: Field::Date, names: &["dc:date"] },
    Rule { field: Field::Journal, names: &["dcterms:alternative"] },
    Rule { field: Field::Volume, names: &["prism:volume"] },
    Rule { field: Field::Issue, names: &["prism:number"] },
    Rule { field: Field::Pages, names: &["bib:pages"] },
    Rule { field: Field::Doi, names: &["dc:identifier"] },
    Rule { field: Field::Database, names: &["z:libraryCatalog"] },
    Rule { field: Field::Abstract, names: &["dcterms:abstract"] },
    Rule { field: Field::Keyword, names: &["dc:subject"] },
    Rule { field: Field::Type, names: &["z:itemType"] },
    Rule { field: Field::Extra, names: &["dc:description", "foaf:name", "dcterms:dateSubmitted"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Result<Draft<'_>, String> {
    walk(text, Zotero::default()).map(|read| read.draft)
}

/// The work that the current element describes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Work {
    #[default]
    Item,
    /// The journal, book or website that contains the item.
    Container,
    Series,
    /// A section of the container, or a conference.
    Other,
}

/// The role of the people in a list.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Role {
    #[default]
    Author,
    Editor,
    Other,
}

#[derive(Default)]
struct Zotero<'a> {
    draft: Draft<'a>,
    /// The works around the current element, with their names.
    around: Vec<(&'a str, Work)>,
    /// `true` after the beginning of the item. The journal of the item may follow.
    has_item: bool,
    role: Role,
    person: Person,
    /// The family name of the open person, which is the whole name of an organisation.
    name: String,
    has_given: bool,
}

impl Zotero<'_> {
    fn work(&self) -> Work {
        self.around.last().map_or(Work::Item, |(_, work)| *work)
    }

    /// Completes a person.
    fn end_person(&mut self) {
        let whole = std::mem::take(&mut self.name);
        let person = self.person.finish();
        let has_given = std::mem::take(&mut self.has_given);
        let field = match (self.role, has_given) {
            (Role::Author, true) => Field::Author,
            (Role::Author, false) => Field::Group,
            (Role::Editor, _) => Field::Editor,
            (Role::Other, _) => return,
        };
        if let Some(name) = if has_given { person } else { tidy::line(&whole) } {
            self.draft.author(field, name);
        }
    }
}

impl<'a> Zotero<'a> {
    fn identifier(&mut self, text: &str) {
        let text = tidy::line(text).unwrap_or_default();
        let add = |draft: &mut Draft<'a>, field, rank, value: &str| {
            draft.add_decoded(FieldName::new(field, "dc:identifier", rank), Cow::Owned(value.to_owned()));
        };
        match text.split_once(' ') {
            Some(("DOI", doi)) if self.work() != Work::Other => add(&mut self.draft, Field::Doi, 0, doi),
            Some((label @ ("ISSN" | "ISBN"), number)) => self.draft.extra.push(label, number),
            None if text.starts_with("http") && self.work() == Work::Item => {
                add(&mut self.draft, Field::Url, 0, &text);
            }
            _ => self.draft.extra.push("identifier", &text),
        }
    }
}

impl<'a> Visitor<'a> for Zotero<'a> {
    const DRESS: &'static [&'static str] = &[];
    const PARTS: &'static [&'static str] = &[];

    fn index(&self) -> &'static Index {
        &INDEX
    }

    fn value(&mut self, named: FieldName, _: &'a str, text: Cow<'a, str>) {
        match (named.name, self.work()) {
            ("foaf:surname", _) => {
                self.person.add(Field::FamilyName, &text);
                self.name = text.into_owned();
            }
            (_, _) if named.field == Field::GivenName => {
                self.has_given |= !tidy::is_blank(&text);
                self.person.add_given(&text);
            }
            ("dc:title", Work::Item) => self.draft.add_decoded(named, text),
            ("dc:title", Work::Container) => {
                self.draft.add_decoded(FieldName::new(Field::Journal, "journal", 0), text);
            }
            ("dc:title", Work::Series) => {
                self.draft.add_decoded(FieldName::new(Field::Series, "series", 0), text);
            }
            ("dcterms:alternative", Work::Item | Work::Container) => {
                self.draft.add_decoded(FieldName::new(Field::Journal, "dcterms:alternative", 1), text);
            }
            ("z:libraryCatalog", _) => self.draft.add_as(named, "source", text),
            ("dc:identifier", _) => self.identifier(&text),
            ("dc:subject", _) => self.draft.keyword(named.rank, &text),
            ("dc:description", _) => self.draft.extra.push("Extra", &text),
            ("foaf:name", _) => self.draft.extra.push("publisher", &text),
            ("prism:number", Work::Series) | (_, Work::Other) => self.draft.extra.push(named.name, &text),
            _ => self.draft.add_decoded(named, text),
        }
    }

    fn other(&mut self, name: &'a str, text: &str) {
        let local = name.split_once(':').map_or(name, |(_, local)| local);
        self.draft.extra.push(local, text);
    }

    fn start(&mut self, name: &'a str, _: &'a str) {
        let work = match name {
            _ if !std::mem::replace(&mut self.has_item, true) => Work::Item,
            "bib:Journal" | "bib:Periodical" | "bib:Newspaper" | "bib:Book" | "bib:CourtReporter"
            | "z:Website" | "z:Blog" | "z:Forum" => Work::Container,
            "bib:Series" => Work::Series,
            "bib:Part" | "bib:Conference" => Work::Other,
            "bib:authors" | "z:presenters" | "z:inventors" | "z:programmers" => {
                self.role = Role::Author;
                return;
            }
            "bib:editors" | "z:seriesEditors" => {
                self.role = Role::Editor;
                return;
            }
            _ if name.ends_with('s') && (name.starts_with("bib:") || name.starts_with("z:")) => {
                self.role = Role::Other;
                return;
            }
            _ => return,
        };
        self.around.push((name, work));
    }

    fn end(&mut self, name: &'a str) {
        if name == "foaf:Person" {
            self.end_person();
        }
        self.around.pop_if(|(open, _)| *open == name);
    }
}
