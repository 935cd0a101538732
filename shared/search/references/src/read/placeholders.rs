//! Values that say that a field is unknown.

use super::{field::Field, tidy};

/// Placeholders in any field, in lower case. Programs write them for missing values.
const ANYWHERE: [&str; 11] = [
    "na",
    "n/a",
    "n.a.",
    "null",
    "none",
    "nil",
    "#n/a",
    "<na>",
    "not available",
    "not applicable",
    "undefined",
];
/// Placeholders in fields with numbers.
const ZEROS: [&str; 4] = ["0", "00", "0-0", "0.0"];
/// Placeholders for page numbers, of EBSCOhost, Embase and APA PsycInfo.
const PAGES: [&str; 5] = ["n.pag", "n.pag.", "no pagination", "no pagination specified", "unpaginated"];
/// Placeholders for titles.
const TITLES: [&str; 4] = ["not available", "no title", "no title available", "title not available"];
/// Titles that are placeholders in lists of people.
const PEOPLE: [&str; 17] = [
    "et al",
    "et al.",
    "and others",
    "others",
    "no author",
    "no authors",
    "no authors listed",
    "no author listed",
    "author unknown",
    "unknown author",
    "no author name available",
    "no author id available",
    "no author available",
    "no author name",
    "no authorship indicated",
    "no authorship, indicated",
    "unknown",
];

/// Returns `true` if a value stands for an unknown one. `NA` is a placeholder only in capitals, because it is also a
/// word.
pub(super) fn is_placeholder(field: Field, value: &str) -> bool {
    /// Longest placeholder.
    const MAX: usize = 40;
    let value = tidy::trim(value);
    if value.len() > MAX {
        return false;
    }
    if matches!(field, Field::Author | Field::ShortAuthor | Field::Group | Field::Editor) {
        return is_no_name(value);
    }
    if !may_be_placeholder(value, b"nut0a") {
        return false;
    }
    let plain = value.trim_matches(['[', ']', '(', ')']).trim();
    if !matches!(field, Field::Title | Field::Book)
        && plain.chars().all(|c| matches!(c, '-' | '–' | '—' | '.' | '?'))
    {
        return true;
    }
    let is_one_of = |known: &[&str]| known.iter().any(|known| plain.eq_ignore_ascii_case(known));
    match field {
        // A work may be called "None"; a program writes the others.
        Field::Title | Field::Book => {
            let is_bracketed = value.starts_with('[');
            let plain = plain.trim_end_matches([']', '.']);
            matches!(plain, "NA" | "NULL" | "null" | "N/A" | "#N/A" | "<NA>")
                || (is_bracketed && begins(plain, "no title"))
                || TITLES.iter().any(|known| plain.eq_ignore_ascii_case(known))
        }
        Field::Pages | Field::FirstPage | Field::LastPage if is_one_of(&PAGES) => true,
        Field::Volume
        | Field::Issue
        | Field::Pages
        | Field::FirstPage
        | Field::LastPage
        | Field::Doi
        | Field::Pmid => is_unknown(plain) || ZEROS.contains(&plain),
        Field::Abstract => {
            is_unknown(plain)
                || plain == "0"
                || begins(plain, "no abstract")
                || begins(plain, "abstract not available")
        }
        Field::Date
        | Field::MonthDay
        | Field::Journal
        | Field::Series
        | Field::Keyword
        | Field::Url
        | Field::Type => is_unknown(plain),
        _ => false,
    }
}

/// Returns `false` for a value whose first letter or digit is not that of a placeholder, like that of most values.
fn may_be_placeholder(value: &str, begins: &[u8]) -> bool {
    value
        .as_bytes()
        .first()
        .is_none_or(|first| !first.is_ascii_alphanumeric() || begins.contains(&first.to_ascii_lowercase()))
}

/// Returns `true` if an entry in a list of people is not a name.
pub(super) fn is_no_name(name: &str) -> bool {
    /// The first letters of [`ANYWHERE`] and [`PEOPLE`].
    const FIRST: &[u8] = b"aenou";
    if !may_be_placeholder(name, FIRST) {
        return false;
    }
    let plain = name.trim_matches(['[', ']', '(', ')', ',', ';']).trim();
    let is_punctuation = plain.chars().all(|c| matches!(c, '-' | '–' | '—' | '.' | '?' | '*' | '_' | ' '));
    is_punctuation || is_unknown(plain) || PEOPLE.iter().any(|title| plain.eq_ignore_ascii_case(title))
}

fn is_unknown(plain: &str) -> bool {
    let is = |word: &str| plain.eq_ignore_ascii_case(word);
    // A family may be called Na or Nil.
    ANYWHERE.into_iter().any(is) && !((is("na") || is("nil")) && plain != "NA" && plain != "NIL")
}

/// Returns `true` if a text begins with a phrase in any case.
fn begins(text: &str, phrase: &str) -> bool {
    text.get(..phrase.len()).is_some_and(|front| front.eq_ignore_ascii_case(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_depend_on_the_field() {
        for (field, value) in [
            (Field::Volume, "NA"),
            (Field::Issue, "0"),
            (Field::Pages, "N/A"),
            (Field::Abstract, "[No abstract available]"),
            (Field::Abstract, "None"),
            (Field::Author, "[No author name available]"),
            (Field::Author, "et al."),
            (Field::Title, "NA"),
            (Field::Doi, "-"),
            (Field::FirstPage, "N.PAG"),
            (Field::Pages, "No Pagination Specified"),
            (Field::Title, "[Not Available]."),
            (Field::Title, "No title"),
            (Field::Abstract, "[Abstract not available]"),
            (Field::Author, "No authorship, indicated"),
        ] {
            assert!(is_placeholder(field, value), "{value}");
        }
        for (field, value) in [
            (Field::Title, "None"),
            (Field::Author, "Na"),
            (Field::Author, "Na, Ann"),
            (Field::Author, "[Anonymous]"),
            (Field::Author, "Unknown, Ann"),
            (Field::Abstract, "Abstract not required"),
            (Field::Volume, "10"),
            (Field::Journal, "Nature"),
            (Field::Extra, "NA"),
        ] {
            assert!(!is_placeholder(field, value), "{value}");
        }
    }
}
