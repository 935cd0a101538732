//! Authors' names as `"Family, Given"`.
//!
//! A name whose parts cannot be distinguished is kept as given: a wrong family name is worse than none, because
//! deduplication and screening use it.

use super::{entities, tidy::line};

/// Most letters that initials have; family names shorter than that are followed by initials themselves.
const MOST_INITIALS: usize = 4;

/// The names in a value that should hold one, and sometimes holds several separated by semicolons.
pub(super) fn of_value(value: &str) -> Vec<String> {
    // A character reference ends in a semicolon too: "M&uuml;ller".
    of_decoded(&entities::decode(value))
}

/// The names in a value that is already decoded.
pub(super) fn of_decoded(value: &str) -> Vec<String> {
    if !value.contains(';') {
        return one(value).into_iter().collect();
    }
    value.split(';').filter_map(one).collect()
}

/// One name as `"Family, Given"`, if there is any.
pub(super) fn one(name: &str) -> Option<String> {
    let name = line(name)?;
    if is_complete(&name) {
        return Some(name);
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
        (Some((family, initials)), None) if are_initials(initials) => joined(family, initials),
        (Some((family, initials)), Some(suffix)) if are_initials(initials) => {
            joined(family, &format!("{initials}, {suffix}"))
        }
        _ => line(name),
    }
}

/// Whether a name is `Family, Given` already.
fn is_complete(name: &str) -> bool {
    matches!(name.split_once(", "), Some((family, given))
        if !family.is_empty() && !family.contains(',') && !family.ends_with(' ') && !given.is_empty() && !given.ends_with(','))
}

/// `"Family, Given"`, or the part that there is.
pub(super) fn joined(family: &str, given: &str) -> Option<String> {
    match (family.trim(), given.trim()) {
        ("", "") => None,
        (only, "") | ("", only) => Some(only.to_owned()),
        (family, given) => Some([family, ", ", given].concat()),
    }
}

/// Suffixes, which are neither family nor given name.
fn is_suffix(word: &str) -> bool {
    matches!(word.trim_end_matches('.'), "Jr" | "Sr" | "2nd" | "3rd" | "4th" | "II" | "III" | "IV")
}

/// `J`, `JD`, `J.D.`, `A.-M.`: a few capitals and the marks between them.
fn are_initials(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic());
    (1..=MOST_INITIALS).contains(&letters.clone().count())
        && letters.clone().all(char::is_uppercase)
        && text.chars().all(|c| c.is_alphabetic() || matches!(c, '.' | '-'))
}

/// The names in a table's cell. Databases write lists in four ways: `['A, B', 'C, D']`, separated by
/// semicolons, by bars or line breaks, or by commas that also occur inside names.
pub(super) fn of_cell(cell: &str) -> Vec<String> {
    let decoded = entities::decode(cell.trim());
    let cell = decoded.as_ref();
    if let Some(items) = quoted_list(cell) {
        return items.iter().filter_map(|name| one(name)).collect();
    }
    if let Some(separator) = [';', '|', '\n'].into_iter().find(|separator| cell.contains(*separator)) {
        return cell.split(separator).filter_map(one).collect();
    }
    between_commas(cell)
}

/// Names in a list whose only separator is the comma.
fn between_commas(cell: &str) -> Vec<String> {
    // PubMed ends the list with a full stop: "Smith J, Doe A."
    let cell = cell.strip_suffix('.').filter(|rest| !rest.contains('.')).unwrap_or(cell);
    let parts: Vec<String> = cell.split(',').filter_map(line).collect();
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
    // "Jane Doe, John Smith, Mary Major": whole names; two parts alone are one "Family, Given".
    if parts.len() > 2 && parts.iter().all(|part| part.contains(' ')) {
        return parts.iter().filter_map(|part| one(part)).collect();
    }
    one(cell).into_iter().collect()
}

/// The items of a list as Python writes it.
pub(super) fn quoted_list(cell: &str) -> Option<Vec<String>> {
    let inner = cell.strip_prefix('[')?.strip_suffix(']')?;
    let (mut items, mut rest) = (Vec::new(), inner.trim());
    while let Some(quote) = rest.chars().next() {
        if !matches!(quote, '\'' | '"') {
            return None;
        }
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

    #[test]
    fn names_in_cells_are_told_apart() {
        assert_eq!(of_cell("Liu R., Adler D.G."), ["Liu, R.", "Adler, D.G."]);
        assert_eq!(of_cell("Smith J, van der Berg AB."), ["Smith, J", "van der Berg, AB"]);
        assert_eq!(of_cell("Liu, R., Adler, D.G."), ["Liu, R.", "Adler, D.G."]);
        assert_eq!(of_cell("Liu, Rui; Adler, Douglas G"), ["Liu, Rui", "Adler, Douglas G"]);
        assert_eq!(of_cell("['Marx, Karl', \"O'Neil, Ann\"]"), ["Marx, Karl", "O'Neil, Ann"]);
        assert_eq!(of_cell("Jane Doe, John Smith, Mary Major"), ["Jane Doe", "John Smith", "Mary Major"]);
        assert_eq!(of_cell("Doe, Jane Mary"), ["Doe, Jane Mary"]);
    }

    #[test]
    fn particles_suffixes_and_accents_stay_with_their_names() {
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
            ("Doe", "Doe"),
        ] {
            assert_eq!(of_value(given), [read], "{given}");
        }
    }

    #[test]
    fn groups_stay_whole() {
        let group = "Department of Health and Human Services";
        assert_eq!(of_value(group), [group]);
        assert_eq!(of_value("Smith, John , "), ["Smith, John"]);
    }
}
