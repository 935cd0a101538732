//! Values that say that a field is unknown.

use super::{field::Field, tidy};

/// Placeholders in any field, in lower case. Programs write them for missing values.
#[rustfmt::skip]
const ANYWHERE: [&str; 24] = [
    "na", "n/a", "n.a.", "null", "none", "nil", "nan", "#n/a", "<na>", "&na;", "&na", "not available", "not applicable",
    "not provided", "not specified", "undefined", "unknown", "object object", "无", "暂无", "不详", "なし", "없음",
    "нет",
];
/// The errors that spreadsheets show in place of a value, also in German, French, Spanish, Portuguese and Italian.
#[rustfmt::skip]
const ERRORS: [&str; 26] = [
    "#N/A", "#NAME?", "#VALUE!", "#REF!", "#DIV/0!", "#NUM!", "#NULL!", "#SPILL!", "#CALC!", "#ERROR!", "#NV", "#WERT!",
    "#BEZUG!", "#ZAHL!", "#N/D", "#NOM?", "#VALEUR!", "#NOMBRE!", "#NUL!", "#¡VALOR!", "#¿NOMBRE?", "#¡REF!", "#VALOR!",
    "#NOME?", "#VALORE!", "#RIF!",
];
/// Placeholders in fields with numbers.
const ZEROS: [&str; 4] = ["0", "00", "0-0", "0.0"];
/// Placeholders for page numbers, of EBSCOhost, Embase and APA PsycInfo.
#[rustfmt::skip]
const PAGES: [&str; 8] = [
    "+", "n.pag", "n.pag.", "no pagination", "no pagination specified", "no-pagination specified", "no-specified",
    "unpaginated",
];
/// Placeholders for volumes, issues and pages of works that are published before their issue.
#[rustfmt::skip]
const AHEAD: [&str; 11] = [
    "ahead-of-print", "ahead of print", "publish ahead of print", "online ahead of print", "epub ahead of print",
    "in press", "in-press", "online first", "online-first",
    "epub", "e-pub",
];
/// Placeholders for titles.
#[rustfmt::skip]
const TITLES: [&str; 6] = [
    "not available", "no title", "no title available", "title not available", "translated title not available",
    "transliterated title not available",
];
/// Texts that are placeholders in lists of people.
#[rustfmt::skip]
const PEOPLE: [&str; 41] = [
    "et al", "et al.", "al., et", "al, et", "et, al", "and others", "others", "no author", "no authors", "no authors listed", "no author listed",
    "author unknown", "unknown author", "unknown authors", "no author name available", "no author id available",
    "no author available", "no author name", "no authorship indicated", "no authorship, indicated",
    "author not available", "authors not available", "author not listed", "s.n.", "s. n.", "sine nomine",
    "auteur inconnu", "autor desconocido", "sin autor", "sem autor", "senza autore", "ohne autor",
    "ohne verfasser", "без автора", "автор не указан", "佚名", "匿名", "作者不详", "无作者", "著者不明", "저자 미상",
];
/// The beginnings of placeholders for abstracts.
#[rustfmt::skip]
const ABSTRACTS: [&str; 17] = [
    "no abstract", "abstract not available", "abstract unavailable", "an abstract is unavailable",
    "an abstract is not available", "this article has no abstract", "there is no abstract", "kein abstract",
    "pas de résumé", "résumé non disponible", "resumen no disponible", "sin resumen", "resumo não disponível",
    "sem resumo", "暂无摘要", "无摘要", "抄録なし",
];

/// Returns `true` for an error of a spreadsheet, and for the signs in a column that is too narrow.
pub(super) fn is_error(value: &str) -> bool {
    value.starts_with('#')
        && (ERRORS.contains(&value) || (value.starts_with("###") && value.bytes().all(|byte| byte == b'#')))
}

/// Removes the side of a range that is a placeholder: `12-NA`. Programs join the first and last page of works without
/// them. Returns `None` if no side is left.
pub(super) fn without_unknown_side(pages: &str) -> Option<&str> {
    // Most sides are numbers.
    let has_digit = |side: &str| side.bytes().any(|byte| byte.is_ascii_digit());
    let is_known =
        |side: &&str| !side.is_empty() && !is_error(side) && (has_digit(side) || !is_unknown(side));
    match pages.split_once(['-', '–']) {
        Some((first, last)) => {
            let (first, last) = (first.trim(), last.trim_start_matches('-').trim());
            match (Some(first).filter(is_known), Some(last).filter(is_known)) {
                (Some(_), Some(_)) => Some(pages),
                // Other marks may follow an open range.
                (Some(_), None) if last.is_empty() => Some(pages),
                (None, Some(_)) if first.is_empty() => Some(pages),
                (first, last) => first.or(last),
            }
        }
        None => Some(pages),
    }
}

/// Returns `true` if a value is a placeholder for an unknown value.
pub(super) fn is_placeholder(field: Field, value: &str) -> bool {
    let longest = match field {
        Field::Abstract => 200,
        _ => 40,
    };
    let value = tidy::trim(value);
    if value.len() > longest {
        return false;
    }
    if is_error(value) {
        return true;
    }
    // `<br />-<br />` as pages.
    if value.starts_with("<br")
        && value.split('-').all(|part| tidy::without_breaks(tidy::trim(part)).is_empty())
    {
        return true;
    }
    if matches!(field, Field::Author | Field::ShortAuthor | Field::Group | Field::Editor) {
        return is_no_name(value);
    }
    if !may_be_placeholder(value, b"nut0akprseio") {
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
        Field::Pages if without_unknown_side(plain).is_none() => true,
        // A work may be called "None"; a program writes the others.
        Field::Title | Field::Book => {
            let is_bracketed = value.starts_with('[');
            let plain = plain.trim_end_matches([']', '.']);
            matches!(plain, "NA" | "NULL" | "null" | "N/A" | "#N/A" | "<NA>")
                || (is_bracketed && begins(plain, "no title"))
                || TITLES.iter().any(|known| plain.eq_ignore_ascii_case(known))
        }
        // A plus sign behind the first page stands for further pages.
        Field::LastPage if plain == "+" => false,
        Field::Pages | Field::FirstPage | Field::LastPage if is_one_of(&PAGES) => true,
        Field::Volume
        | Field::Issue
        | Field::Pages
        | Field::FirstPage
        | Field::LastPage
        | Field::Doi
        | Field::Pmid => is_unknown(plain) || ZEROS.contains(&plain) || is_one_of(&AHEAD),
        Field::Abstract => {
            is_unknown(plain) || plain == "0" || ABSTRACTS.iter().any(|phrase| begins(plain, phrase))
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

/// Returns `false` for a value that does not begin with the first letter or digit of a placeholder. Most values do not.
fn may_be_placeholder(value: &str, begins: &[u8]) -> bool {
    value
        .as_bytes()
        .first()
        .is_none_or(|first| !first.is_ascii_alphanumeric() || begins.contains(&first.to_ascii_lowercase()))
}

/// Returns `true` if an entry in a list of people is not a name.
pub(super) fn is_no_name(name: &str) -> bool {
    /// The first letters of [`ANYWHERE`] and [`PEOPLE`].
    const FIRST: &[u8] = b"aenous";
    // A running number is not a name.
    if name.bytes().all(|byte| byte.is_ascii_digit()) || is_error(name) {
        return true;
    }
    if !may_be_placeholder(name, FIRST) {
        return false;
    }
    let plain = name.trim_matches(['[', ']', '(', ')', ',', ';']).trim();
    let is_punctuation = plain.chars().all(|c| matches!(c, '-' | '–' | '—' | '.' | '?' | '*' | '_' | ' '));
    // Programs join the missing parts of a name: `nan, nan`.
    let parts = plain.split_once([',', ' ']).filter(|(family, given)| *family == given.trim());
    let part = parts.map_or(plain, |(family, _)| family);
    // A family may be called Na, Nan or Nil.
    let is_family = matches!(part, "Na" | "Nan" | "Nil");
    is_punctuation || (is_unknown(part) && !is_family) || PEOPLE.iter().any(|text| is_same(plain, text))
}

fn is_unknown(plain: &str) -> bool {
    ANYWHERE.into_iter().any(|word| is_same(plain, word))
}

/// Returns `true` if a text is a placeholder in any case.
fn is_same(text: &str, placeholder: &str) -> bool {
    text.len() == placeholder.len()
        && (text.eq_ignore_ascii_case(placeholder)
            || (!text.is_ascii() && text.chars().flat_map(char::to_lowercase).eq(placeholder.chars())))
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
            (Field::Volume, "ahead-of-print"),
            (Field::Pages, "Publish Ahead of Print"),
            (Field::Author, "al., et"),
            (Field::Abstract, "No abstract is available for this article."),
            (Field::Issue, "0"),
            (Field::Pages, "N/A"),
            (Field::Abstract, "[No abstract available]"),
            (Field::Abstract, "None"),
            (Field::Author, "[No author name available]"),
            (Field::Author, "et al."),
            (Field::Title, "NA"),
            (Field::Doi, "-"),
            (Field::FirstPage, "N.PAG"),
            (Field::Pages, "No-Specified"),
            (Field::Doi, "<br />"),
            (Field::FirstPage, "<br />-<br />"),
            (Field::Pages, "No Pagination Specified"),
            (Field::Title, "[Not Available]."),
            (Field::Title, "No title"),
            (Field::Abstract, "[Abstract not available]"),
            (Field::Author, "No authorship, indicated"),
            (Field::Author, "佚名"),
            (Field::Author, "[Без автора]"),
            (Field::Author, "s.n."),
            (Field::Author, "nan"),
            (Field::Author, "nan, nan"),
            (Field::Author, "undefined undefined"),
            (Field::Author, "17"),
            (Field::Author, "&NA"),
            (Field::Author, "#NAME?"),
            (Field::Title, "#REF!"),
            (Field::Accession, "#¡VALOR!"),
            (Field::Pages, "None-None"),
            (Field::Volume, "na"),
            (Field::Issue, "NaN"),
            (Field::Journal, "[object Object]"),
            (Field::Journal, "Unknown"),
            (Field::Url, "暂无"),
            (Field::Abstract, "An abstract is unavailable."),
            (Field::Abstract, "Resumen no disponible"),
            (Field::Abstract, "Нет"),
        ] {
            assert!(is_placeholder(field, value), "{value}");
        }
        for (field, value) in [
            (Field::Title, "None"),
            (Field::Author, "Na"),
            (Field::Author, "Nan"),
            (Field::Author, "Nan, Nan"),
            (Field::Author, "nan, A"),
            (Field::Author, "Na, Ann"),
            (Field::Author, "Sine, Ann"),
            (Field::Abstract, "Kein Abstand"),
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
