//! Converts authors' names to `"Family, Given"`.
//!
//! A name whose parts cannot be distinguished is kept unchanged: a wrong family name is worse than none, because
//! deduplication and screening use it.

use memchr::{memchr, memchr_iter};

use super::{
    entities,
    tidy::{line, tidied},
};
use crate::work::spend;

/// The maximum number of letters in initials; shorter family names are followed by initials themselves.
const MAX_INITIALS: usize = 4;
/// The maximum number of letters in initials without dots if all letters of a name are capitals: "IEEE COMP SOC" has no
/// initials.
const MAX_INITIALS_IN_CAPITALS: usize = 2;

/// Splits a value that should hold one name, but sometimes holds several separated by semicolons. It must be decoded,
/// because a character reference also ends in a semicolon.
pub(super) fn split_decoded(value: &str) -> impl Iterator<Item = String> {
    value.split(';').filter_map(one)
}

/// Converts one name to `"Family, Given"`, if there is any.
pub(super) fn one(name: &str) -> Option<String> {
    let name = tidied(name)?;
    if is_complete(&name) {
        return Some(name.into_owned());
    }
    // EndNote marks a group by a comma at the end of its name.
    if let Some(group) = name.strip_suffix(',').filter(|group| !group.contains(',')) {
        return line(group);
    }
    let name = name.trim_end_matches([',', ' ']);
    if let Some((family, given)) = name.split_once(',') {
        return joined(family, given);
    }
    let (whole, suffix) = match name.rsplit_once(' ') {
        Some((rest, last)) if is_suffix(last) && rest.contains(' ') => (rest, Some(last)),
        _ => (name, None),
    };
    match (whole.rsplit_once(' '), suffix) {
        (Some((family, initials)), None) if are_initials_of(family, initials) => joined(family, initials),
        (Some((family, initials)), Some(suffix)) if are_initials_of(family, initials) => {
            joined(family, &format!("{initials}, {suffix}"))
        }
        _ => line(name),
    }
}

/// Returns `true` if a name is already in the form `Family, Given`.
fn is_complete(name: &str) -> bool {
    let name = name.as_bytes();
    let Some(comma) = memchr(b',', name) else { return false };
    let (family, given) = (&name[..comma], &name[comma + 1..]);
    !family.is_empty() && family.last() != Some(&b' ') && matches!(given, [b' ', .., last] if *last != b',')
}

/// Joins the parts to `"Family, Given"`, or returns the only part.
pub(super) fn joined(family: &str, given: &str) -> Option<String> {
    match (family.trim(), given.trim()) {
        ("", "") => None,
        (only, "") | ("", only) => Some(only.to_owned()),
        (family, given) => Some([family, ", ", given].concat()),
    }
}

/// Returns `true` for suffixes, which are neither family nor given name.
fn is_suffix(word: &str) -> bool {
    matches!(word.trim_end_matches('.'), "Jr" | "Sr" | "2nd" | "3rd" | "4th" | "II" | "III" | "IV")
}

/// Returns `true` for initials such as `J`, `JD`, `J.D.` or `A.-M.`.
fn are_initials(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic());
    (1..=MAX_INITIALS).contains(&letters.clone().count())
        && letters.clone().all(char::is_uppercase)
        && text.chars().all(|c| c.is_alphabetic() || matches!(c, '.' | '-'))
}

/// Returns `true` if a name ends in initials.
fn are_initials_of(family: &str, initials: &str) -> bool {
    let letters = initials.chars().filter(|c| c.is_alphabetic()).count();
    let telling = family.chars().any(char::is_lowercase)
        || initials.contains('.')
        || letters <= MAX_INITIALS_IN_CAPITALS;
    telling && are_initials(initials)
}

/// Splits the names in a table cell. Databases use four notations: `['A, B', 'C, D']`, semicolons, bars or line breaks,
/// and commas that also occur inside names.
pub(super) fn split_cell(cell: &str) -> Vec<String> {
    if !spend(cell.len()) {
        return Vec::new();
    }
    let decoded = entities::decode(cell.trim());
    let cell = decoded.as_ref();
    if let Some(items) = quoted_list(cell) {
        return items.iter().filter_map(|name| one(name)).collect();
    }
    let has_and = has_and(cell);
    if let Some(separator) = separator(cell) {
        let names = cell.split(separator);
        return if has_and {
            names.flat_map(joined_by_and).filter_map(one).collect()
        } else {
            names.filter_map(one).collect()
        };
    }
    // EndNote separates the authors in a cell with "//".
    if cell.contains("//") {
        return cell.split("//").filter_map(one).collect();
    }
    let names = if has_and { joined_by_and(cell) } else { Vec::new() };
    if names.len() > 1 { names.into_iter().filter_map(one).collect() } else { between_commas(cell) }
}

/// Returns `true` if "and" or an ampersand separates words; most lists have neither.
fn has_and(cell: &str) -> bool {
    let cell = cell.as_bytes();
    let word = |blank: usize| {
        let word = cell.get(blank + 1..blank + 5);
        word.is_some_and(|word| word[3] == b' ' && word[..3].eq_ignore_ascii_case(b"and"))
    };
    memchr(b'&', cell).is_some() || memchr_iter(b' ', cell).any(word)
}

/// The separator between the items of a cell, unless it is a comma.
pub(super) fn separator(cell: &str) -> Option<char> {
    [';', '|', '\n'].into_iter().find(|separator| cell.contains(*separator))
}

/// Splits names at "and", in any case, but only if each name is `Family, Given`, because names of groups contain "and".
fn joined_by_and(list: &str) -> Vec<&str> {
    let (mut names, mut start, mut at) = (Vec::new(), 0, 0);
    for word in list.split_inclusive(' ') {
        if matches!(word.trim(), "and" | "AND" | "And" | "&") {
            names.push(&list[start..at]);
            start = at + word.len();
        }
        at += word.len();
    }
    names.push(&list[start..]);
    if names[0].trim().is_empty() {
        // The last item of a list with semicolons: "and Doe, J".
        names.remove(0);
    }
    let is_name = |name: &&str| name.trim().trim_end_matches(',').matches(',').count() == 1;
    if names.len() > 1 && !names.iter().all(is_name) { vec![list] } else { names }
}

/// Splits a list whose only separator is the comma.
fn between_commas(cell: &str) -> Vec<String> {
    // PubMed ends the list with a full stop: "Smith J, Doe A."
    let cell = cell.strip_suffix('.').filter(|rest| !rest.contains('.')).unwrap_or(cell);
    let parts: Vec<String> = cell.split(',').filter_map(line).collect();
    let parts = without_and(parts);
    let ends_in_initials = |part: &String| part.rsplit_once(' ').is_some_and(|(_, last)| are_initials(last));
    // "Liu R., Adler D.G."
    if parts.iter().all(ends_in_initials) {
        return parts.iter().filter_map(|part| one(part)).collect();
    }
    // "Liu, R., Adler, D.G.", and "Smith, John, Doe, Jane"
    let paired = parts.len().is_multiple_of(2);
    let initials_follow = parts.iter().skip(1).step_by(2).all(|part| are_initials(&part.replace(' ', "")));
    let single_words = parts.iter().all(|part| !part.contains(' '));
    if paired && (initials_follow || single_words) {
        return parts.chunks(2).filter_map(|pair| joined(&pair[0], pair.get(1)?)).collect();
    }
    // "JA Smith, J Doe"
    if parts.len() > 1
        && let Some(names) = parts.iter().map(|part| initials_first(part)).collect::<Option<Vec<_>>>()
    {
        return names;
    }
    // Whole names such as "Jane Doe, John Smith, Mary Major"; two parts alone are one "Family, Given".
    if parts.len() > 2 && parts.iter().all(|part| part.contains(' ')) {
        return parts.iter().filter_map(|part| one(part)).collect();
    }
    one(cell).into_iter().collect()
}

/// Splits the last name off a preceding "and", as in "Liu R., Adler D.G. and Doe J.".
fn without_and(mut parts: Vec<String>) -> Vec<String> {
    let ends_in_initials = |part: &str| part.rsplit_once(' ').is_some_and(|(_, last)| are_initials(last));
    let Some(last) = parts.last() else { return parts };
    let split = last.strip_prefix("and ").map(|name| ("", name)).or_else(|| last.rsplit_once(" and "));
    let Some((before, name)) = split
        .filter(|(before, name)| ends_in_initials(name) && (before.is_empty() || ends_in_initials(before)))
    else {
        return parts;
    };
    let more = [before.to_owned(), name.to_owned()];
    parts.pop();
    parts.extend(more.into_iter().filter(|name| !name.is_empty()));
    parts
}

/// Converts "JA Smith" to "Smith, JA".
fn initials_first(name: &str) -> Option<String> {
    let (initials, family) = name.split_once(' ')?;
    let is_family = family.chars().any(char::is_lowercase) && !family.split(' ').any(are_initials);
    (is_family && are_initials(initials)).then(|| joined(family, initials)).flatten()
}

/// Parses a list in Python's notation.
pub(super) fn quoted_list(cell: &str) -> Option<Vec<String>> {
    let inner = cell.strip_prefix('[')?.strip_suffix(']')?;
    let (mut items, mut rest) = (Vec::new(), inner.trim());
    while let Some(quote) = rest.chars().next() {
        if !matches!(quote, '\'' | '"') {
            return None;
        }
        spend(1);
        // A quote ends the item only before a comma or the end: "O'Neil" contains one.
        let (close, _) = rest.match_indices(quote).skip(1).find(|(at, _)| {
            let after = rest[at + 1..].trim_start();
            after.is_empty() || after.starts_with(',')
        })?;
        items.push(rest[1..close].to_owned());
        rest = rest[close + 1..].trim_start().trim_start_matches(',').trim_start();
    }
    Some(items)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(value: &str) -> Vec<String> {
        split_decoded(&entities::decode(value)).collect()
    }

    #[test]
    fn names_in_cells_are_split() {
        assert_eq!(split_cell("Liu R., Adler D.G."), ["Liu, R.", "Adler, D.G."]);
        assert_eq!(split_cell("Smith J, van der Berg AB."), ["Smith, J", "van der Berg, AB"]);
        assert_eq!(split_cell("Liu, R., Adler, D.G."), ["Liu, R.", "Adler, D.G."]);
        assert_eq!(split_cell("Liu, Rui; Adler, Douglas G"), ["Liu, Rui", "Adler, Douglas G"]);
        assert_eq!(split_cell("['Marx, Karl', \"O'Neil, Ann\"]"), ["Marx, Karl", "O'Neil, Ann"]);
        assert_eq!(split_cell("Jane Doe, John Smith, Mary Major"), ["Jane Doe", "John Smith", "Mary Major"]);
        assert_eq!(split_cell("Doe, Jane Mary"), ["Doe, Jane Mary"]);
        assert_eq!(
            split_cell("Smith, John A. and Doe, Jane; and Roe, R"),
            ["Smith, John A.", "Doe, Jane", "Roe, R"]
        );
        assert_eq!(split_cell("Doe, Jane AND Roe, R"), ["Doe, Jane", "Roe, R"]);
        assert_eq!(split_cell("Liu R., Adler D.G. and Doe J."), ["Liu, R.", "Adler, D.G.", "Doe, J."]);
        assert_eq!(split_cell("JA Smith, A van der Berg"), ["Smith, JA", "van der Berg, A"]);
        assert_eq!(split_cell("Food and Drug Administration"), ["Food and Drug Administration"]);
    }

    #[test]
    fn particles_suffixes_and_accents_stay_with_names() {
        for (given, read) in [
            ("van der Berg AB", "van der Berg, AB"),
            ("van der Berg, Anna B.", "van der Berg, Anna B."),
            ("Smith, John, Jr.", "Smith, John, Jr."),
            ("Smith ,John", "Smith, John"),
            ("Smith , John", "Smith, John"),
            ("Smith,  John ,", "Smith, John"),
            (", John", "John"),
            ("Smith JA Jr", "Smith, JA, Jr"),
            ("Smith J 3rd", "Smith, J, 3rd"),
            ("de la Cruz Núñez J-M", "de la Cruz Núñez, J-M"),
            ("M&uuml;ller, J&ouml;rg", "Müller, Jörg"),
            ("World Health Organization,", "World Health Organization"),
            ("Study Group UK,", "Study Group UK"),
            ("毛泽东", "毛泽东"),
            ("SMITH JA", "SMITH, JA"),
            ("SMITH J.A.B.", "SMITH, J.A.B."),
            ("IEEE COMP SOC", "IEEE COMP SOC"),
            ("Doe", "Doe"),
        ] {
            assert_eq!(of(given), [read], "{given}");
        }
    }

    #[test]
    fn group_names_are_not_split() {
        let group = "Department of Health and Human Services";
        assert_eq!(of(group), [group]);
        assert_eq!(of("Smith, John , "), ["Smith, John"]);
    }
}
