//! Reads a `<rec>` of EBSCOhost.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    elements::{Visitor, attribute, walk},
    field::{Field, FieldName, Index, Rule},
    identifiers::NLM,
    names,
};

/// The elements and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["atl", "tig/tl"] },
    Rule { field: Field::Author, names: &["au"] },
    Rule { field: Field::Date, names: &["dt"] },
    Rule { field: Field::Journal, names: &["jtl"] },
    Rule { field: Field::Book, names: &["btl"] },
    Rule { field: Field::Volume, names: &["vid"] },
    Rule { field: Field::Issue, names: &["iid"] },
    Rule { field: Field::FirstPage, names: &["ppf"] },
    Rule { field: Field::Extra, names: &["ui"] },
    Rule { field: Field::Abstract, names: &["ab"] },
    Rule { field: Field::Keyword, names: &["subj", "keyword"] },
    Rule { field: Field::Url, names: &["plink", "pLink/url"] },
    Rule { field: Field::Type, names: &["doctype", "pubtype"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Result<Draft<'_>, String> {
    walk(text, Ebsco(Draft::default())).map(|read| read.0)
}

fn is_year(text: &str) -> bool {
    let text = text.trim();
    text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit())
}

struct Ebsco<'a>(Draft<'a>);

impl<'a> Visitor<'a> for Ebsco<'a> {
    const DRESS: &'static [&'static str] = &["i", "b", "sub", "sup", "u", "emph"];
    const PARTS: &'static [&'static str] = &["p"];

    fn index(&self) -> &'static Index {
        &INDEX
    }

    fn value(&mut self, named: FieldName, attributes: &'a str, text: Cow<'a, str>) {
        match named.field {
            Field::Author => {
                for name in names::split_decoded(&text) {
                    self.0.author(Field::Author, name);
                }
            }
            Field::Keyword => self.0.keyword(named.rank, &text),
            Field::Date => {
                let parts = ["year", "month", "day"].map(|part| attribute(attributes, part));
                let mut date: Vec<Cow<'_, str>> = parts.into_iter().flatten().collect();
                // A date without a month has the first of January.
                if is_year(&text)
                    && matches!(date.get(1..), Some([month, day]) if month == "01" && day == "01")
                {
                    date.truncate(1);
                }
                let date = if date.is_empty() { text } else { Cow::Owned(date.join("-")) };
                self.0.add_decoded(named, date);
            }
            Field::Extra => match attribute(attributes, "type").as_deref() {
                Some("doi") => self.0.add_decoded(FieldName::new(Field::Doi, "ui", 0), text),
                Some("pmid") => {
                    let number = text.strip_prefix(NLM).unwrap_or(&text).to_owned();
                    self.0.add_decoded(FieldName::new(Field::Pmid, "ui", 0), Cow::Owned(number));
                }
                _ => self.0.extra.push("AN", &text),
            },
            _ => self.0.add_decoded(named, text),
        }
    }

    fn other(&mut self, name: &'a str, text: &str) {
        self.0.extra.push(name, text);
    }

    fn start(&mut self, name: &'a str, attributes: &'a str) {
        if name != "header" {
            return;
        }
        if let Some(database) = attribute(attributes, "longDbName") {
            self.0.add_decoded(FieldName::new(Field::Database, "DB", 0), database);
            self.0.extra.push("DP", "EBSCOhost");
        }
        if let Some(number) = attribute(attributes, "uiTerm") {
            self.0.add_decoded(FieldName::new(Field::Accession, "AN", 0), number);
        }
    }
}
