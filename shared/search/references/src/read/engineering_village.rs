//! Reads a record of the text of Engineering Village.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    entities,
    field::{Field, FieldName, Index, Rule},
    labels, names, tidy,
};
use crate::split::lines;

/// The names before the values.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["Title", "Title of translation", "Translated title"] },
    Rule { field: Field::Author, names: &["Authors", "Author", "Inventors", "Inventor"] },
    Rule { field: Field::Editor, names: &["Editors", "Editor"] },
    Rule { field: Field::Date, names: &["Publication year", "Issue date", "Publication date"] },
    Rule {
        field: Field::Journal,
        names: &["Source title", "Source", "Abbreviated source title", "Monograph title"],
    },
    Rule { field: Field::Volume, names: &["Volume"] },
    Rule { field: Field::Issue, names: &["Issue"] },
    Rule { field: Field::Pages, names: &["Pages"] },
    Rule { field: Field::FirstPage, names: &["Article number"] },
    Rule { field: Field::Doi, names: &["DOI"] },
    Rule { field: Field::Accession, names: &["Accession number"] },
    Rule { field: Field::Database, names: &["Database"] },
    Rule { field: Field::Abstract, names: &["Abstract"] },
    Rule {
        field: Field::Keyword,
        names: &[
            "Main heading",
            "Controlled terms",
            "Subject terms",
            "Index terms",
            "Controlled indexing",
            "Uncontrolled terms",
        ],
    },
    Rule { field: Field::Type, names: &["Document type"] },
    Rule { field: Field::LeftOut, names: &["Data Provider"] },
    Rule {
        field: Field::Extra,
        names: &[
            "Author affiliation",
            "Corresponding author",
            "Abstract type",
            "Number of references",
            "Classification code",
            "Funding Details",
            "Publisher",
            "Language",
        ],
    },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

/// The maximum length of an unknown name.
const MAX_NAME: usize = 48;
/// The name above which the remark on the rights in a record is kept.
const COPYRIGHT: &str = "Copyright";

/// The state in which names are found.
#[derive(Debug)]
struct Labels {
    /// `true` if no blank follows the names in this record.
    is_dense: bool,
    /// `true` in a title or abstract.
    is_in_text: bool,
}

impl Labels {
    /// Finds the name at the beginning of a line. In a text, an unknown name does not count, nor does a known one with a
    /// blank if the other names have none: `Issue: none was found.`
    fn find<'a>(&mut self, line: &'a str) -> Option<(&'a str, usize)> {
        let (name, value) = line.split_once(':')?;
        let named = INDEX.find(name);
        let is_part = if named.is_some() { self.is_dense && value.starts_with(' ') } else { true };
        if (self.is_in_text && is_part) || (named.is_none() && !is_name(name)) {
            return None;
        }
        self.is_in_text = named.is_some_and(|named| matches!(named.field, Field::Title | Field::Abstract));
        Some((name, name.len() + 1))
    }
}

/// Returns `true` for `Conference name`.
fn is_name(name: &str) -> bool {
    let is_part =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b' ' | b'-' | b'/' | b'(' | b')' | b'&');
    name.len() <= MAX_NAME && name.starts_with(|c: char| c.is_ascii_uppercase()) && name.bytes().all(is_part)
}

pub(super) fn read(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    let title = lines::all(text).find_map(|line| line.strip_prefix("Title:"));
    let is_dense = title.is_some_and(|title| !title.starts_with(' '));
    let mut names_of_fields = Labels { is_dense, is_in_text: false };
    for (name, value) in labels::values(text, |line| names_of_fields.find(line)) {
        let Some(named) = INDEX.find(name) else {
            draft.extra.push(name, &entities::decode(value));
            continue;
        };
        match named.field {
            Field::Author | Field::Editor => {
                draft.authors(named.field, names::split_cell(&tidy::on_one_line(value)));
            }
            Field::Keyword => add_terms(&mut draft, named, value),
            // The remark on the rights follows on the next lines.
            Field::Database => {
                let mut lines = lines::all(value);
                draft.add(named, lines.next().unwrap_or_default());
                for line in lines.map(str::trim).filter(|line| !line.is_empty()) {
                    draft.extra.push(COPYRIGHT, &entities::decode(line));
                }
            }
            Field::Abstract => draft.add_decoded(named, tidy::on_one_line(value)),
            _ => draft.add(named, value),
        }
    }
    draft
}

/// Adds keywords between hyphens with blanks around them: `Neural networks - X-ray analysis`.
fn add_terms<'a>(draft: &mut Draft<'a>, named: FieldName, value: &'a str) {
    let value: Cow<'_, str> = entities::decode(value);
    for keyword in value.split(" - ").flat_map(|terms| terms.split(';')) {
        draft.keyword(named.rank, keyword);
    }
}
