//! Reads a record of EndNote's tagged format.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    entities,
    field::{Field, Index, Rule},
    labels,
};
use crate::split::refer::tag;

/// The tags and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["%T", "%!"] },
    Rule { field: Field::Book, names: &["%B"] },
    Rule { field: Field::Author, names: &["%A"] },
    Rule { field: Field::Editor, names: &["%E", "%Y", "%H", "%?"] },
    Rule { field: Field::Date, names: &["%D"] },
    Rule { field: Field::MonthDay, names: &["%8"] },
    Rule { field: Field::Journal, names: &["%J"] },
    Rule { field: Field::Series, names: &["%S"] },
    Rule { field: Field::Volume, names: &["%V"] },
    Rule { field: Field::Issue, names: &["%N"] },
    Rule { field: Field::Pages, names: &["%P"] },
    Rule { field: Field::Doi, names: &["%R"] },
    Rule { field: Field::Accession, names: &["%M"] },
    Rule { field: Field::Database, names: &["%W", "%~"] },
    Rule { field: Field::Abstract, names: &["%X"] },
    Rule { field: Field::Keyword, names: &["%K"] },
    Rule { field: Field::Url, names: &["%U"] },
    Rule { field: Field::Type, names: &["%0", "%9"] },
];

/// A line break in abstracts of CNKI.
const CNKI_BREAK: &str = "(#br)";

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    let mut first = None;
    for (name, value) in labels::values(text, tag) {
        if name == "%&" {
            first = Some(value);
        }
        let range = first.filter(|_| name == "%P").and_then(|first| counted(first, value));
        if let (Some(range), Some(named)) = (range, INDEX.find(name)) {
            draft.add_decoded(named, Cow::Owned(range));
            continue;
        }
        // CNKI's records of foreign journals.
        if name == "%X"
            && value.contains(CNKI_BREAK)
            && let Some(named) = INDEX.find(name)
        {
            draft.add_decoded(named, Cow::Owned(entities::decode(value).replace(CNKI_BREAK, "\n")));
            continue;
        }
        let is_list = matches!(name, "%A" | "%E" | "%K") && memchr::memchr(b'%', value.as_bytes()).is_some();
        if is_list {
            // CNKI repeats the tag on the same line.
            for value in value.split(name) {
                labels::add(&mut draft, &INDEX, name, value);
            }
        } else if name == "%K" && is_keyword_list(value) {
            for keyword in value.split(',') {
                labels::add(&mut draft, &INDEX, name, keyword);
            }
        } else if name == "%K" && !value.is_ascii() {
            for keyword in labels::east_asian_keywords(value) {
                labels::add(&mut draft, &INDEX, name, keyword);
            }
        } else {
            labels::add(&mut draft, &INDEX, name, value);
        }
    }
    draft
}

/// Returns `true` for several short keywords between commas, as the ACM writes them: `politics, social media, voting, trust`.
/// Headings of databases contain a comma, too, and begin with capitals.
fn is_keyword_list(value: &str) -> bool {
    const MIN_KEYWORDS: usize = 4;
    const MAX_WORDS: usize = 5;
    let is_keyword = |keyword: &str| {
        let words = keyword.split_whitespace().count();
        (1..=MAX_WORDS).contains(&words) && keyword.trim_start().starts_with(char::is_lowercase)
    };
    let keywords = || value.trim().split(',');
    !value.contains([';', '\n', '\r'])
        && keywords().count() >= MIN_KEYWORDS
        && keywords().skip(1).all(is_keyword)
}

/// The pages from a first page and their number, which OJS writes in place of a range.
fn counted(first: &str, count: &str) -> Option<String> {
    let (first, count): (u32, u32) = (first.trim().parse().ok()?, count.trim().parse().ok()?);
    let last = first.checked_add(count.checked_sub(1)?)?;
    (first != count).then(|| if last == first { first.to_string() } else { format!("{first}-{last}") })
}
