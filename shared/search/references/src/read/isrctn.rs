//! Reads a `<fullTrial>` of the ISRCTN registry.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    elements::{Visitor, attribute, walk},
    field::{Field, FieldName, Index, Rule},
};

/// The elements and their fields. The number of a trial is without the name of the registry.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["scientificTitle", "trialDescription/title"] },
    Rule { field: Field::Date, names: &["isrctn", "recruitmentStart"] },
    Rule { field: Field::Doi, names: &["externalRefs/doi"] },
    Rule { field: Field::Abstract, names: &["plainEnglishSummary", "studyHypothesis"] },
    Rule { field: Field::Keyword, names: &["condition/description"] },
    Rule { field: Field::Type, names: &["primaryStudyDesign"] },
    Rule { field: Field::LeftOut, names: &["contact", "trialCentres", "parties", "attachedFiles"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Result<Draft<'_>, String> {
    let mut draft = walk(text, Trial(Draft::default()))?.0;
    draft.add_decoded(FieldName::new(Field::Database, "DB", 0), Cow::Borrowed("ISRCTN"));
    Ok(draft)
}

struct Trial<'a>(Draft<'a>);

impl<'a> Visitor<'a> for Trial<'a> {
    const DRESS: &'static [&'static str] = &["br", "i", "b", "sub", "sup"];
    const PARTS: &'static [&'static str] = &["p", "br"];

    fn index(&self) -> &'static Index {
        &INDEX
    }

    fn value(&mut self, named: FieldName, attributes: &'a str, text: Cow<'a, str>) {
        match named.field {
            Field::Keyword => text.split(';').for_each(|keyword| self.0.keyword(named.rank, keyword)),
            Field::Date if named.tag == "isrctn" => {
                let number = format!("ISRCTN{}", text.trim().trim_start_matches("ISRCTN"));
                self.0.extra.push("ISRCTN", &number);
                let link = format!("https://www.isrctn.com/{number}");
                self.0.add_decoded(FieldName::new(Field::Url, "isrctn", 0), Cow::Owned(link));
                let assigned = attribute(attributes, "dateAssigned").unwrap_or_default();
                self.0.add_decoded(named, day(assigned));
            }
            Field::Date => self.0.add_decoded(named, day(text)),
            _ => self.0.add_decoded(named, text),
        }
    }

    fn other(&mut self, name: &'a str, text: &str) {
        self.0.extra.push(name, text);
    }
}

/// The day of a time: `2020-05-17T09:00:00Z`.
fn day(time: Cow<'_, str>) -> Cow<'_, str> {
    match time.split_once('T') {
        Some((day, _)) => Cow::Owned(day.trim().to_owned()),
        None => time,
    }
}
