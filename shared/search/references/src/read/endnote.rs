//! Reads a `<record>` of EndNote XML.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    elements::{Visitor, attribute, walk},
    field::{Field, FieldName, Index, Rule},
    labels,
};

/// The elements and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["title", "short-title"] },
    Rule {
        field: Field::Editor,
        names: &[
            "secondary-authors/author",
            "tertiary-authors/author",
            "subsidiary-authors/author",
            "translated-authors/author",
        ],
    },
    Rule { field: Field::Author, names: &["author"] },
    Rule { field: Field::Date, names: &["year"] },
    Rule { field: Field::MonthDay, names: &["pub-dates/date"] },
    Rule {
        field: Field::Journal,
        names: &["secondary-title", "full-title", "alt-title", "abbr-1", "abbr-2", "abbr-3"],
    },
    Rule { field: Field::Volume, names: &["volume"] },
    Rule { field: Field::Issue, names: &["number", "issue"] },
    Rule { field: Field::Pages, names: &["pages"] },
    Rule { field: Field::Doi, names: &["electronic-resource-num"] },
    Rule { field: Field::Accession, names: &["accession-num"] },
    Rule { field: Field::Database, names: &["remote-database-provider", "remote-database-name"] },
    Rule { field: Field::Abstract, names: &["abstract"] },
    Rule { field: Field::Keyword, names: &["keyword"] },
    Rule { field: Field::Extra, names: &["pdf-urls/url", "text-urls/url", "image-urls/url"] },
    Rule { field: Field::Url, names: &["url"] },
    Rule { field: Field::Type, names: &["ref-type"] },
    Rule { field: Field::LeftOut, names: &["database", "source-app", "rec-number", "foreign-keys"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

/// The work types by their numbers in EndNote, which some programs write without the name.
const KINDS: [(&str, &str); 13] = [
    ("5", "Book Section"),
    ("6", "Book"),
    ("10", "Conference Proceedings"),
    ("12", "Web Page"),
    ("13", "Generic"),
    ("17", "Journal Article"),
    ("23", "Newspaper Article"),
    ("25", "Patent"),
    ("27", "Report"),
    ("28", "Edited Book"),
    ("32", "Thesis"),
    ("47", "Conference Paper"),
    ("59", "Dataset"),
];

fn kind(number: &str) -> Option<&'static str> {
    KINDS.iter().find(|(known, _)| *known == number.trim()).map(|(_, kind)| *kind)
}

pub(super) fn read(text: &str) -> Result<Draft<'_>, String> {
    walk(text, EndNote(Draft::default())).map(|read| read.0)
}

/// The names in one element. A carriage return separates them, except in a value that is wrapped.
fn people(text: &str) -> impl Iterator<Item = &str> {
    let is_wrapped = text.contains('\n');
    text.split(move |c| c == '\r' && !is_wrapped)
}

struct EndNote<'a>(Draft<'a>);

impl<'a> Visitor<'a> for EndNote<'a> {
    const DRESS: &'static [&'static str] = &["style"];
    const PARTS: &'static [&'static str] = &[];

    fn index(&self) -> &'static Index {
        &INDEX
    }

    fn value(&mut self, named: FieldName, attributes: &'a str, text: Cow<'a, str>) {
        match named.field {
            // Some libraries keep all authors or keywords in one element, one per line.
            Field::Author | Field::Editor => {
                for line in people(&text) {
                    self.0.people_in(named.field, line);
                }
            }
            Field::Keyword => labels::keywords(&mut self.0, named, &text),
            // The work type is the name in `<ref-type name="Journal Article">17</ref-type>`.
            Field::Type => {
                let kind = attribute(attributes, "name").or_else(|| kind(&text).map(Cow::Borrowed));
                if let Some(kind) = kind {
                    self.0.add_decoded(named, kind);
                }
            }
            _ => self.0.add_decoded(named, text),
        }
    }

    fn other(&mut self, name: &'a str, text: &str) {
        self.0.extra.push(name, text);
    }
}
