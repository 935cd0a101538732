//! Splits the names in table cells.

use std::borrow::Cow;

use super::{
    super::{entities, frames, notation, tidy::line},
    additions::{is_degree, without_additions},
    groups::is_organisation,
    lists::{between_signs, each, in_capitals_between, is_inverted, several, without_others},
    one::{initials_first, one},
    shapes::{are_initials, is_suffix, joined},
};
use crate::work::spend;

/// Reads the names of pubmed_parser: `Roe|Ann|A;Doe|Bob|B|0000-0002-1825-0097`, with family name, given name and initials.
fn in_parts(cell: &str) -> Option<Vec<String>> {
    let name = |person: &str| {
        let mut parts = person.split('|').map(str::trim);
        let (family, given, initials) = (parts.next()?, parts.next()?, parts.next()?);
        let agree = given.chars().next() == initials.chars().next() && are_initials(initials);
        let is_last = parts.next().is_none_or(|number| number.is_empty() || number.contains('-'))
            && parts.next().is_none();
        (agree && is_last).then(|| joined(family, given))
    };
    if !cell.contains('|') {
        return None;
    }
    let people: Option<Vec<_>> =
        cell.split(';').filter(|person| !person.trim().is_empty()).map(name).collect();
    Some(people?.into_iter().flatten().collect())
}

/// Splits the names in a table cell. Databases use four notations: `['A, B', 'C, D']`, semicolons, bars or line breaks,
/// and commas that also occur inside names.
pub(in crate::read) fn split_cell(cell: &str) -> Vec<String> {
    if !spend(cell.len()) {
        return Vec::new();
    }
    let mapped: Vec<_> =
        notation::maps(cell).into_iter().flatten().filter_map(|map| mapped_name(&map)).collect();
    if !mapped.is_empty() {
        return mapped;
    }
    let decoded = between_breaks(entities::decode(cell.trim()));
    let cell = decoded.as_ref();
    if let Some(people) = frames::people(cell) {
        return people;
    }
    if let Some(items) = notation::list(cell) {
        return items.iter().filter_map(|name| one(name)).collect();
    }
    if let Some(names) = between_signs(cell) {
        return names;
    }
    if let Some(names) = in_parts(cell) {
        return names;
    }
    if let Some(separator) = separator(cell) {
        let names = in_capitals_between(cell, &[separator]);
        return names.unwrap_or_else(|| {
            let parts: Vec<&str> = cell.split(separator).filter(|name| !is_degree(name.trim())).collect();
            without_numbers(&parts).unwrap_or(parts).into_iter().flat_map(each).collect()
        });
    }
    // `Roe, A./Doe, B.`
    if cell.contains('/')
        && !cell.contains("//")
        && cell.split('/').all(|name| name.contains(',') && is_inverted(name))
    {
        return cell.split('/').filter_map(one).collect();
    }
    let bare = without_additions(cell);
    let others = without_others(&bare);
    let is_marked = others.len() < cell.len();
    let cell = others;
    // EndNote separates the authors in a cell with "//".
    if cell.contains("//") {
        return cell.split("//").filter_map(one).collect();
    }
    let names = several(cell, is_marked);
    if names.len() > 1 || is_organisation(cell) { names } else { between_commas(cell) }
}

/// Splits a cell of a table whose names are in natural order: `Ann Roe, Bob Doe, Jr.`. Returns `None` for names without a
/// blank.
pub(in crate::read) fn in_natural_order(cell: &str) -> Option<Vec<String>> {
    if separator(cell).is_some() || !spend(cell.len()) {
        return None;
    }
    let decoded = entities::decode(without_others(cell));
    let mut names: Vec<String> = Vec::new();
    for part in decoded.split(',').filter_map(line).filter(|part| part != "...") {
        let part = part.strip_prefix("and ").unwrap_or(&part);
        match names.last_mut() {
            Some(name) if is_suffix(part) => name.extend([", ", part]),
            _ if part.contains(' ') => names.push(part.to_owned()),
            _ => return None,
        }
    }
    (names.len() > 1).then(|| names.iter().filter_map(|name| one(name)).collect())
}

/// The names behind the numbers of a list: `1. Roe A; 2. Doe B`. Returns `None` unless all have their number.
fn without_numbers<'a>(names: &[&'a str]) -> Option<Vec<&'a str>> {
    let bare = |(at, name): (usize, &&'a str)| {
        let name = name.trim();
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        let is_next = name[..digits].parse() == Ok(at + 1);
        name[digits..].strip_prefix(['.', ')']).filter(|_| is_next)
    };
    let is_begun = names.first().is_some_and(|name| name.trim_start().starts_with('1'));
    if is_begun { names.iter().enumerate().map(bare).collect() } else { None }
}

/// Replaces the elements of a web page that separate names with line breaks.
fn between_breaks(cell: Cow<'_, str>) -> Cow<'_, str> {
    if !cell.contains("<br") {
        return cell;
    }
    let lines = ["<br>", "<br/>", "<br />"]
        .iter()
        .fold(cell.into_owned(), |cell, element| cell.replace(element, "\n"));
    Cow::Owned(lines.trim().to_owned())
}

/// The separator between the items of a cell, unless it is a comma.
pub(in crate::read) fn separator(cell: &str) -> Option<char> {
    [';', '|', '\n', '؛', '；'].into_iter().find(|separator| cell.contains(*separator))
}

/// Returns `true` for one family name and given names that end in an initial: `Roe, Ann B`.
fn ends_in_initial(name: &str) -> bool {
    let Some((family, given)) = name.split_once(',').filter(|(_, given)| !given.contains(',')) else {
        return false;
    };
    let last = |text: &'_ str| text.rsplit(' ').next().is_some_and(are_initials);
    given.rsplit(' ').next().is_some_and(|word| word.chars().count() == 1)
        && !(family.contains(' ') && last(family))
}

/// Splits a list whose only separator is the comma.
fn between_commas(cell: &str) -> Vec<String> {
    // PubMed ends the list with a full stop: "Smith J, Doe A."
    let is_list = |list: &&str| !list.contains('.') && !ends_in_initial(list);
    let cell = cell.strip_suffix('.').filter(is_list).unwrap_or(cell);
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
    // Family names alone: "Smith, Jones, Brown"
    if parts.len() > 2 && single_words && !parts.iter().any(|part| is_suffix(part)) {
        return parts;
    }
    // Whole names such as "Jane Doe, John Smith, Mary Major"; two parts alone are one "Family, Given".
    if parts.len() > 2 && parts.iter().all(|part| part.contains(' ')) {
        return parts.iter().filter_map(|part| one(part)).collect();
    }
    one(cell).into_iter().collect()
}

/// The name in a map: the complete name of Semantic Scholar, or the parts of the name that Crossref provides.
fn mapped_name(map: &notation::Map) -> Option<String> {
    let value =
        |name: &str| map.iter().find(|(key, _)| key == name).map(|(_, value)| entities::decode(value));
    match (value("name"), value("family"), value("given")) {
        (Some(name), ..) | (None, Some(name), None) => one(&name),
        (None, Some(family), Some(given)) => joined(&family, &given),
        _ => None,
    }
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
