//! Removes additions of databases to names: degrees, titles, roles, and marks of affiliations.

use std::borrow::Cow;

use super::groups::is_organisation;
use super::shapes::{
    PARTICLES, are_initials, is_ideographic, is_natural, is_short_form, is_suffix, is_without_alphabet,
    is_word, joined,
};
use crate::work::spend;

/// Degrees and memberships, as lower-case letters.
#[rustfmt::skip]
const DEGREES: [&str; 50] = [
    "ba", "bmbs", "bs", "bsc", "bsn", "dds", "dm", "dmd", "dmedsc", "dnp", "do", "dphil", "dpt", "drmed", "drph",
    "dsc", "dvm", "edd", "facc", "facp", "facs", "fracp", "frcp", "frcpc", "frcs", "ma", "mb", "mba", "mbbs", "mbchb",
    "md", "med", "mhs", "mhsc", "mlis", "mls", "mph", "mphil", "mrcp", "ms", "msc", "msn", "msph", "pharmd", "phd", "psyd", "pt",
    "rd", "rn", "scd",
];
/// Titles in front of names.
const TITLES: [&str; 5] = ["Dr. ", "Prof. ", "Mr. ", "Mrs. ", "Ms. "];
/// The beginnings of remarks in brackets, in lower case.
#[rustfmt::skip]
const REMARKS: [&str; 21] = [
    "orcid", "ed.", "eds.", "editor", "author", "correspond", "translator", "deceased", "hrsg", "hg.", "coord", "comp.",
    "red.", "presenter", "presenting", "co-author", "inventor", "reprint", "通讯作者", "通信作者", "责任作者",
];
/// Words of affiliations in brackets.
#[rustfmt::skip]
const AFFILIATIONS: [&str; 14] = [
    "大学", "大學", "病院", "医院", "醫院", "学部", "研究所", "センター", "대학", "병원", "Univ", "Hospital", "Institut", "Dept",
];
/// The maximum number of roles and lives that are removed from the end of a name.
const MAX_ROLES: usize = 4;
/// The maximum length of a remark in brackets.
const MAX_REMARK: usize = 64;

/// Removes everything that is not part of the names in a value. Most values are returned unchanged.
pub(in crate::read) fn without_additions(value: &str) -> Cow<'_, str> {
    let given = value.trim_end();
    let mut value = Cow::Borrowed(without_homonym(without_transcription(value)));
    if may_have_orcid(&value) && spend(value.len()) {
        value = Cow::Owned(without_orcid(&value));
    }
    if may_have_marks(&value) && spend(value.len()) {
        value = Cow::Owned(without_marks(&value));
    }
    if let Some(rest) = without_title(&value) {
        value = Cow::Owned(rest.to_owned());
    }
    if let Some(rest) = without_repeated_initials(&value) {
        value = Cow::Owned(rest.to_owned());
    }
    if value.bytes().any(|byte| byte.is_ascii_digit())
        && let Some(rest) = without_joined_numbers(&value).or_else(|| without_numbers(&value))
    {
        value = Cow::Owned(rest);
    }
    if let Some(rest) = without_end_marks(&value) {
        value = Cow::Owned(rest.to_owned());
    }
    let mut rest = value.as_ref();
    for _ in 0..MAX_ROLES {
        let Some(name) = without_life(rest).filter(|_| spend(rest.len())) else { break };
        rest = name;
    }
    if rest.len() < value.len() {
        value = Cow::Owned(rest.to_owned());
    }
    if let Some(rest) = without_degrees_of_one(&value, given.ends_with(is_end_mark)) {
        value = Cow::Owned(rest.to_owned());
    }
    if value.contains(',')
        && let Some(rest) = without_degrees(&value)
    {
        value = Cow::Owned(rest);
    }
    value
}

/// Removes the initials that Scopus has written in front of the full name since 2025: `A.B., Roe, Ann B.`
fn without_repeated_initials(value: &str) -> Option<&str> {
    let (initials, name) = value.split_once(',').filter(|(initials, _)| initials.ends_with('.'))?;
    let (family, given) = name.split_once(',')?;
    repeats_initials(initials, family, given).then(|| name.trim_start())
}

/// Returns `true` for initials with full stops, a family name, and given names that begin with the first of the initials.
pub(in crate::read) fn repeats_initials(initials: &str, family: &str, given: &str) -> bool {
    let initials = initials.trim();
    // A letter of another script may be two Latin ones: `Yu.`
    let is_initial = |part: &str| {
        let mut letters = part.trim_start().chars();
        letters.next().is_some_and(char::is_uppercase)
            && letters.next().is_none_or(char::is_lowercase)
            && letters.next().is_none()
    };
    let Some(letters) = initials.strip_suffix('.') else { return false };
    let first = letters.split(['.', '-']).next().unwrap_or_default();
    let is_whole = given.split_once(',').is_none_or(|(_, rest)| is_suffix(rest.trim()));
    let mut parts = letters.split(['.', '-']).filter(|part| !part.is_empty());
    parts.all(is_initial)
        && given.trim_start().starts_with(first)
        && is_whole
        && family.contains(char::is_alphabetic)
        && !are_initials(family.trim())
}

/// Removes the name in Latin letters behind a name in other characters: `김철수 ( Chul Soo Kim )`.
fn without_transcription(value: &str) -> &str {
    /// The maximum number of characters in a name without an alphabet.
    const MAX_NAME: usize = 6;
    let is_latin =
        |c: char| c.is_alphabetic() && !is_ideographic(c) || matches!(c, ' ' | '-' | ',' | '.' | '\'');
    let whole = value.trim();
    let Some((name, inner)) = whole
        .strip_suffix([')', '）'])
        .filter(|_| whole.starts_with(is_ideographic))
        .and_then(|whole| whole.split_once(['(', '（']))
    else {
        return value;
    };
    let name = name.trim_end();
    let is_name = (2..=MAX_NAME).contains(&name.chars().count()) && is_without_alphabet(name);
    let is_transcription = inner.trim().contains([' ', ',']) && inner.chars().all(is_latin);
    if is_name && is_transcription { name } else { value }
}

/// Returns `true` if a value may contain an ORCID. Most values have no digits, so this check is fast.
fn may_have_orcid(value: &str) -> bool {
    value.len() >= ORCID && memchr::memmem::find(value.as_bytes(), b"0000-000").is_some()
}

/// The length of an ORCID: `0000-0002-1825-0097`.
const ORCID: usize = 19;

/// Removes ORCIDs that are not in brackets, and their labels.
fn without_orcid(value: &str) -> String {
    let is_orcid = |word: &str| {
        let bare = word.trim_end_matches([',', ';']);
        let number = bare.get(bare.len().saturating_sub(ORCID)..).unwrap_or_default();
        let is_digit = |(at, byte): (usize, u8)| match at {
            4 | 9 | 14 => byte == b'-',
            18 => byte.is_ascii_digit() || byte.eq_ignore_ascii_case(&b'x'),
            _ => byte.is_ascii_digit(),
        };
        number.len() == ORCID
            && number.bytes().enumerate().all(is_digit)
            && (bare.len() == ORCID || bare.to_ascii_lowercase().contains("orcid"))
    };
    let is_label = |word: &str| word.trim_matches([':', ',']).eq_ignore_ascii_case("orcid");
    let mut words: Vec<&str> = value.split(' ').collect();
    words.retain(|word| !is_orcid(word) && !is_label(word));
    words.join(" ").trim_end_matches([',', ' ']).to_owned()
}

/// Removes the numbers of affiliations in a list: `Roe A1,2, Doe B 3`. `None` if a name has no number.
fn without_numbers(value: &str) -> Option<String> {
    let has_brackets = value.contains(['(', '（']);
    let is_number = |c: char| c.is_ascii_digit() || c == ' ' || (c == ')' && !has_brackets);
    if !value.contains([',', '，', '、']) || !spend(value.len()) || is_organisation(value) {
        return None;
    }
    let parts = || value.split([',', '，', '、']).filter(|part| !part.chars().all(is_number));
    let has_number = |part: &str| {
        let name = part.trim_end_matches(is_number);
        name.len() < part.trim_end().len() && name.ends_with(char::is_alphabetic)
    };
    let has_other = |part: &str| part.trim_end_matches(is_number).bytes().any(|byte| byte.is_ascii_digit());
    if parts().count() < 2 || !parts().all(has_number) || parts().any(has_other) {
        return None;
    }
    let names: Vec<&str> = parts().map(|part| part.trim_end_matches(is_number).trim_start()).collect();
    // Two names in natural order with a comma between them may be a single name.
    let separator = match &names[..] {
        names if names.iter().all(|name| is_without_alphabet(name)) => "、",
        names if names.iter().all(|name| is_natural(name)) => " and ",
        _ => ", ",
    };
    Some(names.join(separator))
}

/// Removes the numbers of affiliations directly behind names in letters: `Ann Roe1, Bob Doe2,3 & Kay Poe4`, `Roe, Ann1`.
fn without_joined_numbers(value: &str) -> Option<String> {
    let is_digit = |c: char| c.is_ascii_digit();
    if !spend(4 * value.len()) {
        return None;
    }
    let parts = value.split(',').flat_map(|part| part.split(" and ")).flat_map(|part| part.split(" & "));
    let parts = parts.map(str::trim).map(|part| part.strip_prefix("and ").unwrap_or(part));
    let parts: Vec<(&str, &str)> = parts
        .filter(|part| !part.is_empty())
        .map(|part| part.split_at(part.trim_end_matches(is_digit).len()))
        .collect();
    let is_short = |(_, number): &(&str, &str)| number.len() <= MAX_NUMBER;
    if !parts.iter().all(is_short) {
        return None;
    }
    let parts: Vec<(&str, &str)> = parts.into_iter().filter(|(name, _)| !name.is_empty()).collect();
    let is_name = |(name, number): &(&str, &str)| number.is_empty() || ends_in_name(name);
    if !parts.iter().all(is_name) || is_organisation(value) {
        return None;
    }
    let numbered = parts.iter().filter(|(_, number)| !number.is_empty()).count();
    if parts.iter().all(|(name, _)| is_natural(name)) {
        // The name of a group without a word of organisations may end in a larger number.
        let is_list = if let [(_, number)] = parts[..] { number.len() == 1 } else { numbered > 1 };
        let names = || parts.iter().map(|(name, _)| *name).collect::<Vec<_>>();
        return is_list.then(|| names().join(" and "));
    }
    let is_person = |pair: &[(&str, &str)]| {
        let [(family, none), (given, number)] = pair else { return false };
        none.is_empty()
            && !number.is_empty()
            && family.split(' ').all(|word| is_word(word) || PARTICLES.contains(&word))
            && given.split(' ').all(|word| is_word(word) || are_initials(word))
    };
    let pairs = parts.chunks(2);
    pairs.clone().all(is_person).then(|| {
        let names: Vec<String> = pairs.filter_map(|pair| joined(pair[0].0, pair.get(1)?.0)).collect();
        names.join(" and ")
    })
}

/// The maximum number of digits in the number of an affiliation behind a name.
const MAX_NUMBER: usize = 2;
/// Parts of organisations, which have numbers.
const UNITS: [&str; 9] =
    ["Unit", "District", "Mission", "Panel", "Group", "Team", "Section", "Region", "Committee"];

/// Returns `true` for a text in front of a number that ends in a small letter or an initial, as names of people do.
fn ends_in_name(name: &str) -> bool {
    let last = name.rsplit([' ', '-']).next().unwrap_or_default();
    name.ends_with(|c: char| c.is_lowercase() || c == '.') && !UNITS.contains(&last) && last != "Covid"
}

/// Removes what Ovid writes behind the name of an author: `Roe, Ann MD, PhD *`, `Doe, Bob 1,2,+`, `Poe, Kay MD`.
pub(in crate::read) fn of_ovid(value: &str) -> &str {
    let marked = without_end_marks(value);
    let name = marked.unwrap_or(value);
    if let Some(rest) = without_degrees_of_one(name, marked.is_some()) {
        return rest;
    }
    // Other degrees of two letters may be initials there.
    let before = name.strip_suffix(" MD").or_else(|| name.strip_suffix(" M.D."));
    let is_given =
        |before: &&str| before.contains(',') && before.ends_with(|c: char| c.is_lowercase() || c == '.');
    before.filter(is_given).unwrap_or(name)
}

/// Returns `true` for the number of an affiliation or another mark behind a name.
fn is_end_mark(c: char) -> bool {
    c.is_ascii_digit() || matches!(c, '*' | '+')
}

/// Returns `true` for a word that may be a membership, behind a degree: `FACSM`.
fn is_membership(part: &str) -> bool {
    (3..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_uppercase()) && !is_suffix(part)
}

/// Removes the numbers of affiliations and other marks behind a single name: `Roe, Ann 1,2,+`.
fn without_end_marks(value: &str) -> Option<&str> {
    let is_part = |c: char| is_end_mark(c) || matches!(c, ' ' | ',');
    let value = value.trim_end();
    if !value.ends_with(is_part) || !spend(value.len()) {
        return None;
    }
    let name = value.trim_end_matches(is_part);
    let marks = &value[name.len()..];
    let given = name.rsplit(',').next().unwrap_or_default();
    let is_unit = || given.rsplit(' ').next().is_some_and(|word| UNITS.contains(&word));
    let is_short = |number: &str| number.bytes().filter(u8::is_ascii_digit).count() <= MAX_NUMBER;
    let mut degrees = name.split(',').skip(2).map(str::trim);
    let is_name = marks.starts_with(' ')
        && marks.contains(is_end_mark)
        && name.contains(',')
        && name.split(',').nth(1).is_some_and(|given| given.contains(|c: char| c.is_lowercase() || c == '.'))
        && marks.split([' ', ',']).all(is_short)
        && !is_unit()
        && degrees.all(|part| is_degree(part) || is_membership(part))
        && name.ends_with(|c: char| c.is_alphabetic() || c == '.')
        && !name.contains(|c: char| c.is_ascii_digit());
    (is_name && !is_organisation(name)).then_some(name)
}

/// Removes the degrees behind a single name, if no comma separates the first of them: `Roe, Ann MD, PhD`. Capitals may
/// also be initials, unless `is_certain` is `true`.
fn without_degrees_of_one(value: &str, is_certain: bool) -> Option<&str> {
    let (family, rest) = value.split_once(',')?;
    let end = rest.find(',').map_or(value.len(), |end| value.len() - rest.len() + end);
    let given_at = value.len() - rest.trim_start().len();
    let whole = value[..end].trim_end();
    let (_, last) = whole.get(given_at..)?.rsplit_once(' ')?;
    if !is_degree(last) || is_short_form(family) || !spend(value.len()) {
        return None;
    }
    let others = || value[end..].split(',').map(str::trim).filter(|part| !part.is_empty());
    if !others().all(|part| is_degree(part) || is_membership(part)) {
        return None;
    }
    let is_certain = is_certain || others().any(is_degree);
    let mut name = whole;
    while let Some((before, last)) = name.get(given_at..).and_then(|given| given.rsplit_once(' '))
        && is_degree(last)
        && (is_sure(last)
            || (is_certain && before.trim_end().ends_with(|c: char| c.is_lowercase() || c == '.')))
    {
        name = name[..name.len() - last.len()].trim_end();
    }
    (name.len() < whole.len()).then_some(name)
}

/// Removes the years of a life, or a role, from the end of a name, as catalogues of libraries write: `Roe, Ann, 1975-`.
fn without_life(value: &str) -> Option<&str> {
    const ROLES: [&str; 6] = ["author", "editor", "translator", "compiler", "contributor", "illustrator"];
    /// Short forms, which may also be given names.
    const SHORT_ROLES: [&str; 3] = ["Ed", "Eds", "Comp"];
    /// The forms that catalogues and ProQuest write without a comma.
    const ENDS: [&str; 4] = [" ed", " eds", " ed.", " eds."];
    if let Some(name) = ENDS.iter().find_map(|role| value.trim_end().strip_suffix(role)) {
        let name = name.trim_end_matches([',', ' ']);
        return name.contains(',').then_some(name);
    }
    let (name, last) = value.rsplit_once(',')?;
    let last = last.trim().trim_end_matches('.');
    let is_year = |year: &str| year.len() == 4 && year.bytes().all(|byte| byte.is_ascii_digit());
    let is_life =
        last.split_once('-').is_some_and(|(born, died)| is_year(born) && (died.is_empty() || is_year(died)));
    let is_short_role = || {
        let given = name.split_once(',').map(|(_, given)| given.trim());
        SHORT_ROLES.contains(&last) && given.is_some_and(|given| !given.contains(',') && !is_suffix(given))
    };
    let is_added = (is_life || ROLES.contains(&last)) && name.contains(',') || is_short_role();
    is_added.then(|| name.trim_end())
}

/// Removes the number by which DBLP distinguishes people of one name: `Ann Roe 0001`.
pub(in crate::read) fn without_homonym(name: &str) -> &str {
    let is_number = |word: &str| {
        word.len() == 4 && word.starts_with("00") && word.bytes().all(|byte| byte.is_ascii_digit())
    };
    match name.rsplit_once(' ') {
        Some((before, last)) if is_number(last) => before.trim_end(),
        _ => name,
    }
}

/// Returns `false` for a value without brackets and marks, which is the usual case.
fn may_have_marks(value: &str) -> bool {
    value.bytes().any(|byte| matches!(byte, b'(' | b'[' | b'*'))
        || (!value.is_ascii() && value.contains(is_mark))
}

/// Returns `true` for the marks of affiliations and of corresponding authors.
fn is_mark(c: char) -> bool {
    matches!(c, '*' | '†' | '‡' | '§' | '¶' | '¹' | '²' | '³' | '\u{2070}'..='\u{2079}' | '①'..='⑳')
}

/// Removes marks, and brackets with a remark, an affiliation or numbers.
fn without_marks(value: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(value.len()), value);
    while let Some(at) = rest.find(|c| is_mark(c) || matches!(c, '(' | '[')) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let first = rest.chars().next().map_or(0, char::len_utf8);
        match remark(rest) {
            Some(length) => {
                out.truncate(out.trim_end().len());
                rest = &rest[length..];
            }
            None => {
                // A mark within a word is a damaged letter.
                let is_inside =
                    out.ends_with(char::is_alphabetic) && rest[first..].starts_with(char::is_alphabetic);
                let is_kept = |mark: &&str| is_inside || matches!(*mark, "(" | "[");
                out.push_str(rest.get(..first).filter(is_kept).unwrap_or_default());
                rest = &rest[first..];
            }
        }
    }
    out + rest
}

/// The length of a remark in brackets at the beginning.
fn remark(text: &str) -> Option<usize> {
    let close = match text.as_bytes().first()? {
        b'(' => ')',
        b'[' => ']',
        _ => return None,
    };
    let front = &text[..text.floor_char_boundary(MAX_REMARK)];
    spend(front.len());
    let inner = &front[1..front.find(close)?];
    let lower = inner.to_ascii_lowercase();
    let is_number = !inner.is_empty()
        && inner.bytes().all(|byte| {
            byte.is_ascii_digit() || matches!(byte, b',' | b' ' | b'-' | b';' | b'X' | b'#' | b'*')
        });
    let is_role = REMARKS.iter().any(|begins| lower.starts_with(begins))
        || lower.contains("orcid.org/")
        || matches!(&*lower, "ed" | "eds");
    let is_affiliation = || AFFILIATIONS.iter().any(|word| inner.contains(word));
    (is_number || is_role || is_affiliation()).then_some(inner.len() + 2)
}

/// Removes titles in front of a name.
fn without_title(value: &str) -> Option<&str> {
    let mut rest = value;
    while let Some(name) = TITLES.iter().find_map(|title| rest.strip_prefix(title)) {
        rest = name.trim_start();
    }
    (rest.len() < value.len() && !rest.is_empty()).then_some(rest)
}

/// Returns `true` for a degree in capitals or in its usual spelling. `Ma` and `Do` are also names of families.
pub(in crate::read) fn is_degree(part: &str) -> bool {
    let letters = || part.bytes().filter(u8::is_ascii_alphabetic);
    let is_plain = part.bytes().all(|byte| byte.is_ascii_alphabetic() || matches!(byte, b'.' | b' '));
    let capitals = letters().skip(1).any(|letter| letter.is_ascii_uppercase());
    is_plain
        && part.starts_with(|c: char| c.is_ascii_uppercase())
        && capitals
        && DEGREES
            .binary_search_by(|known| known.bytes().cmp(letters().map(|letter| letter.to_ascii_lowercase())))
            .is_ok()
}

/// Returns `true` for a degree that cannot be initials.
fn is_sure(part: &str) -> bool {
    part.bytes().any(|byte| byte.is_ascii_lowercase())
}

/// Removes degrees after names. Returns `None` if the name has no degree. Capitals after a family name alone are
/// initials.
fn without_degrees(value: &str) -> Option<String> {
    if !value.rsplit(',').any(|part| is_degree(part.trim())) || !spend(value.len()) {
        return None;
    }
    let parts: Vec<&str> = value.split(',').map(str::trim).collect();
    let initials = |part: &&&str| are_initials(&part.replace(' ', "")) && !is_sure(part);
    if parts.len().is_multiple_of(2)
        && parts.iter().skip(1).step_by(2).filter(initials).count() * 2 == parts.len()
        && !parts.iter().step_by(2).any(|part| is_suffix(part))
        && !parts.iter().step_by(2).any(|part| is_short_form(part))
    {
        return None;
    }
    let last_degree = parts.iter().rposition(|part| is_degree(part));
    let mut kept: Vec<&str> = Vec::with_capacity(parts.len());
    let mut is_after_degree = false;
    for (at, part) in parts.iter().enumerate() {
        let before = kept.last().copied().unwrap_or_default();
        let is_before_initials = parts.get(at + 1).is_some_and(|next| initials(&next) && !is_degree(next));
        let has_name = kept.len() > 1 || is_short_form(before);
        let others = last_degree > Some(at);
        let is_dropped = at > 0
            && is_degree(part)
            && (is_sure(part)
                || (!is_before_initials
                    && (has_name || ((is_after_degree || others) && is_natural(before)))));
        if !is_dropped {
            kept.push(part);
        }
        is_after_degree |= is_dropped;
    }
    (kept.len() < parts.len()).then(|| kept.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_to_names_are_removed() {
        for (given, name) in [
            ("Smith, John, PhD", "Smith, John"),
            ("Smith, John, MD", "Smith, John"),
            ("John Smith, MD, PhD", "John Smith"),
            ("Smith J., Ph.D.", "Smith J."),
            ("Doe A., MD", "Doe A."),
            ("Ann Roe, MD, Bob C. Doe, PhD, Ed Poe, MPH", "Ann Roe, Bob C. Doe, Ed Poe"),
            ("Roe, M.L., Sr., MD", "Roe, M.L., Sr."),
            ("Smith, John*", "Smith, John"),
            ("Smith, John (1)", "Smith, John"),
            ("Smith J¹, Doe A²", "Smith J, Doe A"),
            ("Smith, John (57190000000)", "Smith, John"),
            ("Smith, John (ORCID: 0000-0001-2345-6789)", "Smith, John"),
            ("Smith, John P. (Ed.)", "Smith, John P."),
            ("Prof. Dr. Hans Roe", "Hans Roe"),
            ("Roe, Ann 0000-0002-1825-0097", "Roe, Ann"),
            ("Roe, Ann, ORCID: https://orcid.org/0000-0002-1825-009X", "Roe, Ann"),
            ("Roe, Ann (Correspondence)", "Roe, Ann"),
            ("Roe A (Hrsg.)", "Roe A"),
            ("Roe, Ann (https://orcid.org/0000-0002-1825-0097)", "Roe, Ann"),
            ("Roe, Ann, 1975-", "Roe, Ann"),
            ("Roe, Ann eds", "Roe, Ann"),
            ("Roe, Ann B. ed.", "Roe, Ann B."),
            ("Roe, Ann [Inventor, Reprint Author]", "Roe, Ann"),
            ("Roe, Ann, 1920-1999, author.", "Roe, Ann"),
            ("Roe A1, Doe B1,2", "Roe A, Doe B"),
            ("Roe A 1,2 , Doe B 3", "Roe A, Doe B"),
            ("王伟1,李娜2", "王伟、李娜"),
            ("Roe, Ann 1,2,+", "Roe, Ann"),
            ("Roe, Ann 2", "Roe, Ann"),
            ("Roe, Ann MD, PhD *", "Roe, Ann"),
            ("Roe, Ann MD +", "Roe, Ann"),
            ("Roe, Ann B. Ph.D., FACSM", "Roe, Ann B."),
            ("Roe, Ann MSc PhD", "Roe, Ann"),
            ("Ann Roe1, Bob Doe2,3", "Ann Roe and Bob Doe"),
            ("Ann Roe1, Bob C. Doe2,3 & Kay Poe*", "Ann Roe and Bob C. Doe and Kay Poe"),
            ("Ann Roe1, Bob Doe2, and Kay Poe12", "Ann Roe and Bob Doe and Kay Poe"),
            ("Ann Roe 1, Bob Doe 2", "Ann Roe and Bob Doe"),
            ("Ann Roe1", "Ann Roe"),
            ("Ann Roe1,2", "Ann Roe"),
            ("Roe, Ann1", "Roe, Ann"),
            ("van der Roe, Ann B.12,13", "van der Roe, Ann B."),
            ("Roe, Ann1, Doe, Bob2,3", "Roe, Ann and Doe, Bob"),
            ("A.B., Roe, Ann B.", "Roe, Ann B."),
            ("È.-M., van der Roe, Ève-Marie", "van der Roe, Ève-Marie"),
            ("Yu. A., Roe, Yuri A.", "Roe, Yuri A."),
            ("B., Roe, Bob, Jr.", "Roe, Bob, Jr."),
        ] {
            assert_eq!(without_additions(given), name, "{given}");
        }
        for name in [
            "Smith, MD",
            "Smith, J, Doe, MD",
            "Roe, MA, Doe, BS, Poe, III",
            "SMITH, J., MA, X.",
            "Smith, J., Ma, X.",
            "Li Ming (李明)",
            "Ma, Do",
            "UK Study (UKS) Group",
            "MÃ¶ller, JÃ¶rg",
            "COVID-19, Team 2",
            "Group 1, Group 2",
            "Roe A1, Doe B",
            "Roe, Ann MD",
            "Roe, MD, III",
            "Roe, A MS",
            "ISO, TC 215",
            "INSERM, Unit 1018",
            "Health Service, Panel 2",
            "ATLAS, CMS 2",
            "Roe A., Doe MD",
            "Roe, ed",
            "Roe, Ed",
            "Roe, Ann Ma",
            "Roe Covid19",
            "Roe, Covid19",
            "INSERM U1018",
            "Inserm, U1018",
            "Group 1",
            "Group1",
            "COVID-19",
            "COVID-19, Roe",
            "Zinc Iron12",
            "Zinc Horizon2020",
            "Roe, A1",
            "Roe, Panel1",
            "Ann Roe1, Bob Doe",
            "Ann1 Roe2, Bob Doe2",
            "A.B., Roe, Bob",
            "A., B., Ann",
            "A., Roe, A., Doe",
            "AB, Roe, Ann",
            "Roe A., Doe, Ann",
        ] {
            assert_eq!(without_additions(name), name);
        }
    }

    #[test]
    fn degrees_are_sorted() {
        assert!(DEGREES.is_sorted());
    }
}
