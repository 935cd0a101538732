//! Reads a `<Trial>` of the WHO's trial register portal, or a `<trial>` in the format in which registers send trials
//! to the portal.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    elements::{Visitor, walk},
    field::{Field, FieldName, Index, Rule},
};

/// The elements and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule {
        field: Field::Title,
        names: &["Scientific_title", "Public_title", "scientific_title", "public_title"],
    },
    Rule {
        field: Field::Date,
        names: &[
            "Date_registration3",
            "Date_registration",
            "Date_enrollement",
            "date_registration",
            "date_enrolment",
            "date_enrollment",
        ],
    },
    Rule { field: Field::Accession, names: &["TrialID", "trial_id"] },
    Rule { field: Field::Keyword, names: &["Condition", "hc_freetext"] },
    Rule { field: Field::Url, names: &["web_address", "main/url"] },
    Rule { field: Field::Type, names: &["Study_type", "study_type"] },
    Rule { field: Field::LeftOut, names: &["Export_date", "Internal_Number", "contacts"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Result<Draft<'_>, String> {
    walk(text, Trial(Draft::default())).map(|read| read.0)
}

struct Trial<'a>(Draft<'a>);

impl<'a> Visitor<'a> for Trial<'a> {
    const DRESS: &'static [&'static str] = &["br"];
    const PARTS: &'static [&'static str] = &[];

    fn index(&self) -> &'static Index {
        &INDEX
    }

    fn value(&mut self, named: FieldName, _: &'a str, text: Cow<'a, str>) {
        match named.field {
            Field::Keyword => text
                .split(';')
                .flat_map(|keyword| keyword.split("<br>"))
                .for_each(|keyword| self.0.keyword(named.rank, keyword)),
            _ => self.0.add_decoded(named, text),
        }
    }

    fn other(&mut self, name: &'a str, text: &str) {
        self.0.extra.push(name, text);
    }
}
