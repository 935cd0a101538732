//! Reads a `<result>` of Europe PMC.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    elements::{Visitor, walk},
    field::{Field, FieldName, Index, Rule},
    names,
    person::Person,
    tidy,
};

/// The elements and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule {
        field: Field::Journal,
        names: &["journal/title", "journalTitle", "journal/medlineAbbreviation", "journal/isoabbreviation"],
    },
    Rule { field: Field::Title, names: &["title"] },
    Rule { field: Field::FamilyName, names: &["author/lastName"] },
    Rule { field: Field::GivenName, names: &["author/firstName"] },
    Rule { field: Field::Initials, names: &["author/initials"] },
    Rule { field: Field::Group, names: &["author/collectiveName"] },
    Rule { field: Field::ShortAuthor, names: &["authorString"] },
    Rule { field: Field::Date, names: &["pubYear", "firstPublicationDate"] },
    Rule { field: Field::Volume, names: &["journalInfo/volume", "journalVolume"] },
    Rule { field: Field::Issue, names: &["issue"] },
    Rule { field: Field::Pages, names: &["pageInfo"] },
    Rule { field: Field::Doi, names: &["doi"] },
    Rule { field: Field::Pmid, names: &["pmid"] },
    Rule { field: Field::Abstract, names: &["abstractText"] },
    Rule { field: Field::Keyword, names: &["keyword", "descriptorName"] },
    Rule { field: Field::Url, names: &["fullTextUrl/url"] },
    Rule { field: Field::Type, names: &["pubType"] },
    Rule {
        field: Field::LeftOut,
        names: &["author/fullName", "commentCorrectionList", "dbCrossReferenceList", "tmAccessionTypeList"],
    },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Result<Draft<'_>, String> {
    walk(text, EuropePmc::default()).map(|read| read.draft)
}

#[derive(Default)]
struct EuropePmc<'a> {
    draft: Draft<'a>,
    person: Person,
}

impl<'a> Visitor<'a> for EuropePmc<'a> {
    const DRESS: &'static [&'static str] = &["i", "b", "sub", "sup", "u"];
    const PARTS: &'static [&'static str] = &["h4", "p"];

    fn index(&self) -> &'static Index {
        &INDEX
    }

    fn value(&mut self, named: FieldName, _: &'a str, text: Cow<'a, str>) {
        match named.field {
            Field::FamilyName | Field::GivenName | Field::Initials => self.person.add(named.field, &text),
            Field::Group => {
                if let Some(name) = tidy::line(&text) {
                    self.draft.author(Field::Group, name);
                }
            }
            Field::ShortAuthor => {
                for name in names::split_cell(&text) {
                    self.draft.author(Field::ShortAuthor, name);
                }
            }
            Field::Keyword => self.draft.keyword(named.rank, &text),
            _ => self.draft.add_decoded(named, text),
        }
    }

    fn other(&mut self, name: &'a str, text: &str) {
        self.draft.extra.push(name, text);
    }

    fn end(&mut self, name: &'a str) {
        if name == "author"
            && let Some(name) = self.person.finish()
        {
            self.draft.author(Field::Author, name);
        }
    }
}
