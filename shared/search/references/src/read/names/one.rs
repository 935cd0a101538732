//! Converts one name to `"Family, Given"`.

use memchr::{memchr, memchr2};

use super::{
    super::{
        placeholders::is_no_name,
        tidy::{line, tidied},
    },
    capitals::{is_chinese_in_capitals, short_family_last},
    groups::{is_organisation, without_lead},
    shapes::{PARTICLES, are_initials, are_initials_of, is_suffix, joined},
};
use crate::work::spend;

/// Converts one name to `"Family, Given"`, or returns `None` if the text contains no name.
pub(in crate::read) fn one(name: &str) -> Option<String> {
    let name = tidied(without_ordinal(name))?;
    if is_complete(&name) {
        return Some(with_suffix(name.into_owned()));
    }
    // EndNote marks a group by a comma at the end of its name.
    if let Some(group) = name.strip_suffix(',').filter(|group| !group.contains(',')) {
        return line(group);
    }
    let name = without_lead(name.trim_end_matches([',', ' ']));
    if let Some((family, given)) = name.split_once(',') {
        return joined(family, given);
    }
    let (whole, suffix) = match name.rsplit_once(' ') {
        Some((rest, last)) if is_suffix(last) && rest.contains(' ') => (rest, Some(last)),
        _ => (name, None),
    };
    if suffix.is_none()
        && let Some(name) = short_family_last(whole)
    {
        return Some(name);
    }
    if is_chinese_in_capitals(whole) {
        return line(name);
    }
    match (before_initials(whole), suffix) {
        // "Team X"
        (Some((family, initials)), _) if are_initials_of(family, initials) && is_organisation(name) => {
            line(name)
        }
        (Some((family, initials)), None) if are_initials_of(family, initials) => joined(family, initials),
        (Some((family, initials)), Some(suffix)) if are_initials_of(family, initials) => {
            joined(family, &format!("{initials}, {suffix}"))
        }
        _ => line(name),
    }
}

/// Removes the number of a person in a list: `1. Roe, Ann`, `(2) Doe, Bob`.
fn without_ordinal(name: &str) -> &str {
    const MAX_DIGITS: usize = 3;
    let text = name.trim_start();
    let bracket = text.strip_prefix('(');
    let number = bracket.unwrap_or(text);
    let digits = number.bytes().take_while(u8::is_ascii_digit).count();
    if !(1..=MAX_DIGITS).contains(&digits) {
        return name;
    }
    let marks: &[char] = if bracket.is_some() { &[')'] } else { &['.', ')'] };
    let rest = number[digits..].strip_prefix(marks).filter(|rest| rest.starts_with(' '));
    // A name may begin with a number: `1. FC Tests`.
    let is_person = |rest: &&str| {
        let has_parts = rest.contains(", ") || rest.rsplit(' ').next().is_some_and(are_initials);
        rest.starts_with(char::is_alphabetic) && has_parts
    };
    rest.map(str::trim_start).filter(is_person).unwrap_or(name)
}

/// Returns `true` if a name is already in the form `Family, Given`.
fn is_complete(name: &str) -> bool {
    let name = name.as_bytes();
    let Some(comma) = memchr(b',', name) else { return false };
    let (family, given) = (&name[..comma], &name[comma + 1..]);
    // `Roe Jr., Ann`
    let has_suffix =
        || family.contains(&b' ') && family.rsplit(|byte| *byte == b' ').next().is_some_and(may_be_suffix);
    !family.is_empty()
        && family.last() != Some(&b' ')
        && matches!(given, [b' ', .., last] if *last != b',')
        && !has_suffix()
}

/// Returns `true` for a word that begins like a suffix.
fn may_be_suffix(word: &[u8]) -> bool {
    word.len() <= 4 && matches!(word.first(), Some(b'J' | b'S' | b'I' | b'2'..=b'4'))
}

/// Splits a name before its last word, or before the initials at its end.
fn before_initials(name: &str) -> Option<(&str, &str)> {
    let (mut family, _) = name.rsplit_once(' ')?;
    while let Some((before, last)) = family.rsplit_once(' ')
        && (last.ends_with('.') || last.chars().count() == 1)
        && are_initials(last)
    {
        family = before;
    }
    Some((family, name[family.len()..].trim_start()))
}

/// Converts a name that begins with the family name: `van der Roe Ann` becomes `van der Roe, Ann`.
pub(in crate::read) fn family_first(name: &str) -> Option<String> {
    spend(name.len());
    let words: Vec<&str> = name.split_whitespace().collect();
    let particles = words.iter().take_while(|word| PARTICLES.contains(word)).count();
    let given = words.get(particles + 1..).unwrap_or_default();
    if given.is_empty() || name.contains(',') || is_organisation(name) {
        return one(name);
    }
    joined(&words[..=particles].join(" "), &given.join(" "))
}

/// Separates the suffix from the given names: `Roe, Ann Jr` becomes `Roe, Ann, Jr`.
pub(in crate::read) fn with_suffix(name: String) -> String {
    match name.rsplit_once(' ') {
        // `II` may also be initials.
        Some((front, last))
            if is_suffix(last)
                && front.contains(", ")
                && !front.ends_with(',')
                && (!last.starts_with('I') || front.ends_with(char::is_lowercase)) =>
        {
            format!("{front}, {last}")
        }
        _ => name,
    }
}

/// Converts "JA Smith" and "J. A. Smith" to "Smith, JA" and "Smith, J. A."
pub(super) fn initials_first(name: &str) -> Option<String> {
    let name = name.trim();
    let mut at = 0;
    for word in name.split_inclusive(' ') {
        if !are_initials(word.trim_end()) {
            break;
        }
        at += word.len();
    }
    let (initials, family) = (name[..at].trim_end(), &name[at..]);
    let is_family = family.chars().any(char::is_lowercase) && !family.split(' ').any(are_initials);
    (is_family && !initials.is_empty()).then(|| joined(family, initials)).flatten()
}

/// Removes an e-mail address from a name. Returns `None` if no name is left.
pub(in crate::read) fn without_address(name: String) -> Option<String> {
    // An address contains `@`, or is after `(e-mail)`.
    let may_have_address = memchr2(b'@', b')', name.as_bytes()).is_some();
    let has_address = may_have_address && (name.contains('@') || name.contains("mail)"));
    let name = if has_address { without_mail(&name) } else { name };
    (!is_no_name(&name)).then_some(name)
}

fn without_mail(name: &str) -> String {
    let mut out = name;
    if let Some(at) = name.find('(')
        && (name[at..].contains('@') || name[at..].to_ascii_lowercase().contains("mail"))
    {
        out = &name[..at];
    }
    let is_label =
        |word: &str| ["e-mail:", "email:", "mail:"].iter().any(|label| word.eq_ignore_ascii_case(label));
    let words: Vec<&str> = out.split(' ').filter(|word| !word.contains('@') && !is_label(word)).collect();
    words.join(" ").trim_matches([',', ';', ' ', '<', '>']).to_owned()
}
