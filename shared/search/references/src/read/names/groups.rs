//! Recognizes names of organisations and groups.

use super::shapes::{are_initials, is_natural, is_short_form, is_word};
use crate::work::spend;

/// Words that only names of organisations contain.
#[rustfmt::skip]
const ORGANISATIONS: [&str; 82] = [
    "academy", "administration", "agencia", "agency", "alliance", "arbeitsgemeinschaft", "arbeitsgruppe",
    "association", "associazione", "authority", "board", "bureau", "center", "centers", "centre", "centres", "centro",
    "clinic", "collaboration", "collaborative", "collaborators", "college", "commission", "committee", "company",
    "consortium", "corp", "corporation", "council", "department", "dept", "federation", "foundation", "fund",
    "gesellschaft", "gmbh", "group", "groupe", "grupo", "gruppe", "health", "hospital", "inc", "initiative",
    "institut", "institute", "institutes", "institution", "instituto", "international", "investigators", "istituto",
    "klinik", "laboratory", "llc", "ltd", "ministerio", "ministry", "national", "network", "office", "organisation",
    "organization", "pharma", "pharmaceutical", "pharmaceuticals", "plc", "programme", "project", "registry",
    "research", "school", "services", "sociedad", "sociedade", "society", "stiftung", "study", "team", "trial",
    "trialists", "universidad",
];
/// Further words of this type.
#[rustfmt::skip]
const MORE: [&str; 16] = [
    "asociación", "associação", "comité", "fundación", "fundação", "grp", "hôpital", "ministère", "ministério",
    "société", "univ", "universidade", "university", "università", "universität", "université",
];

/// Returns `true` for a text with a word that only names of organisations contain.
pub(crate) fn is_organisation(text: &str) -> bool {
    let is_known = |word: &str| {
        word.eq_ignore_ascii_case("the")
            || word == "of"
            || ORGANISATIONS.binary_search_by(|known| known.bytes().cmp(lower(word))).is_ok()
            || MORE.binary_search_by(|known| known.bytes().cmp(lower(word))).is_ok()
    };
    text.split(|c: char| !c.is_alphabetic()).any(|word| word.len() > 2 && is_known(word))
        || text.split(' ').any(|word| matches!(word, "of" | "for"))
}

/// The ends of names of organisations in Chinese, Japanese and Korean.
#[rustfmt::skip]
const ENDS: [&str; 32] = [
    "会", "會", "协会", "協会", "委员会", "大学", "大學", "医院", "病院", "研究所", "研究院", "中心", "センター", "学院", "公司",
    "会社", "総局", "总局", "省", "庁", "协作组", "工作组", "学组", "专家组", "编辑部", "グループ", "회", "병원", "대학교",
    "연구소", "센터", "연구원",
];

/// Returns `true` for the name of an organisation without letters of the alphabet: at least four characters that end in a
/// word of organisations.
pub(super) fn is_organisation_without_alphabet(name: &str) -> bool {
    name.chars().count() > 3 && ENDS.iter().any(|end| name.ends_with(end))
}

/// The bytes of a word, with its ASCII letters in lower case.
fn lower(word: &str) -> impl Iterator<Item = u8> {
    word.bytes().map(|letter| letter.to_ascii_lowercase())
}

/// The words before the name of the group for which the people before them write.
const LEADS: [&str; 6] = ["on behalf of the ", "on behalf of ", "for the ", "and the ", "and ", "& "];

/// Removes "on behalf of" and "for the" before the name of a group.
pub(super) fn without_lead(name: &str) -> &str {
    if let Some(group) = name.strip_prefix("for the ").filter(|group| is_organisation(group)) {
        return group;
    }
    let is_lead = name.get(..13).is_some_and(|lead| lead.eq_ignore_ascii_case("on behalf of "));
    let rest = if is_lead { &name[13..] } else { name };
    if is_lead { rest.strip_prefix("the ").unwrap_or(rest) } else { rest }
}

/// Removes the words before the name of a group.
fn group(text: &str) -> &str {
    LEADS.iter().find_map(|lead| text.strip_prefix(lead)).unwrap_or(text).trim()
}

/// Splits a list of people and groups: "Roe A, Doe B, on behalf of the Test Study Group". Returns `None` for a text
/// without people in a clear form, or without groups.
pub(super) fn people_and_groups(text: &str) -> Option<Vec<String>> {
    if !is_organisation(text) || !spend(2 * text.len()) {
        return None;
    }
    // PubMed ends a list with a full stop.
    let text = match text.strip_suffix('.') {
        Some(list) if list.ends_with(char::is_lowercase) && !ends_in_abbreviation(list) => list,
        _ => text,
    };
    if let Some(names) = after_pairs(text).or_else(|| before_people(text)).or_else(|| person_for_group(text))
    {
        return Some(names);
    }
    let parts: Vec<&str> =
        text.split(',').map(str::trim).filter(|part| !part.is_empty()).flat_map(around_lead).collect();
    let is_short = |part: &&str| is_short_form(part) && !is_organisation(part);
    let is_whole = |part: &&str| is_natural(part) && !is_organisation(part);
    let is_person = |part: &&str| is_short(part) || (!parts.first().is_some_and(is_short) && is_whole(part));
    // Two words with capitals may be a part of an organisation's name.
    let is_led = text.contains(" on behalf of ");
    let clear = if is_led || parts.first().is_some_and(is_short) { 1 } else { 2 };
    if parts.iter().take_while(|part| is_person(part)).count() < clear {
        return None;
    }
    let (mut names, mut open): (Vec<String>, Vec<&str>) = (Vec::new(), Vec::new());
    for part in parts.iter().copied().map(Some).chain([None]) {
        let is_in_group = part.is_some_and(|part| !is_person(&part));
        if let Some(part) = part.filter(|_| is_in_group) {
            open.push(part);
            continue;
        }
        if !open.is_empty() {
            let whole = std::mem::take(&mut open).join(", ");
            if !is_organisation(&whole) {
                return None;
            }
            names.push(group(&whole).to_owned());
        }
        names.extend(part.map(str::to_owned));
    }
    Some(names)
}

fn ends_in_abbreviation(text: &str) -> bool {
    const ABBREVIATIONS: [&str; 8] = ["Co", "Corp", "Dept", "Inc", "Inst", "Ltd", "Med", "Univ"];
    ABBREVIATIONS.contains(&text.rsplit(' ').next().unwrap_or_default())
}

/// Splits `Roe, A., Doe, B., Test Study Group`: pairs of a family name and initials before a group.
fn after_pairs(text: &str) -> Option<Vec<String>> {
    let mut parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    // `Roe, A., Doe, B. C. and Test Study Group`
    if let Some((last, others)) = parts.split_last()
        && !others.is_empty()
        && let Some((initials, group)) = SEPARATORS.iter().find_map(|lead| last.split_once(lead))
        && are_initials(&initials.replace(' ', ""))
    {
        parts.truncate(parts.len() - 1);
        parts.extend([initials, group]);
    }
    let is_pair = |pair: &&[&str]| matches!(pair, [family, given] if is_word(family) && are_initials(&given.replace(' ', "")));
    let pairs = parts.chunks(2).take_while(is_pair).count();
    let group = parts.get(2 * pairs..).filter(|rest| pairs > 0 && !rest.is_empty())?.join(", ");
    let is_group = is_organisation(&group) && group.contains(' ');
    let people = parts[..2 * pairs].chunks(2).map(|pair| pair.join(", "));
    is_group.then(|| people.chain([self::group(&group).to_owned()]).collect())
}

/// Splits `Test Study Group, Roe A, Doe B`. A single name in this form may be a place: `Test Institute, Boston MA`.
fn before_people(text: &str) -> Option<Vec<String>> {
    let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
    let (group, people) = parts.split_first()?;
    let is_person = |part: &&str| is_short_form(part) && !is_organisation(part);
    let is_list = people.len() > 1 && people.iter().all(is_person) && is_organisation(group);
    is_list.then(|| parts.iter().map(|part| (*part).to_owned()).collect())
}

/// Splits `Roe, Ann for the Test Study Group`.
fn person_for_group(text: &str) -> Option<Vec<String>> {
    let (person, group) = SEPARATORS[..2].iter().find_map(|lead| text.split_once(lead))?;
    let (family, given) = person.trim_end_matches([',', ' ']).split_once(", ")?;
    let is_family =
        !is_short_form(family) && !is_organisation(person) && family.split([' ', '\'', '’']).all(is_word);
    let is_person = is_family && given.split(' ').all(|word| is_word(word) || are_initials(word));
    let group = self::group(group.trim_start_matches("the "));
    (is_person && is_organisation(group)).then(|| vec![format!("{family}, {given}"), group.to_owned()])
}

/// The words between the last person and a group.
const SEPARATORS: [&str; 4] = [" on behalf of ", " for the ", " and ", " & "];

/// Splits a person from the group after "and" or "on behalf of".
fn around_lead(part: &str) -> impl Iterator<Item = &str> {
    let split = SEPARATORS.iter().find_map(|lead| {
        let (before, _) = part.split_once(lead)?;
        (is_short_form(before) || is_natural(before)).then(|| (before, part[before.len()..].trim_start()))
    });
    let (first, second) = match split {
        Some((before, after)) => (before, Some(after)),
        None => (part, None),
    };
    [Some(first), second.map(|after| if is_short_form(group(after)) { group(after) } else { after })]
        .into_iter()
        .flatten()
}

/// The words after the name of a study that do not occur as family names, in lower case.
#[rustfmt::skip]
const GROUPS: [&str; 7] = [
    "grp", "investigators", "consortium", "collaborators", "collaboration", "collaborat", "trialists",
];

/// Returns `true` for words that end in a word of organisations: at least three, or two if the last is one of [`GROUPS`]
/// or follows an acronym.
pub(in crate::read) fn is_group(words: &[String]) -> bool {
    /// Shorter words in capitals may be initials.
    const MIN_ACRONYM: usize = 4;
    match words {
        [first, last] => {
            let is_acronym =
                first.len() >= MIN_ACRONYM && first.bytes().all(|byte| byte.is_ascii_uppercase());
            GROUPS.contains(&&*last.to_lowercase()) || (is_acronym && is_organisation(last))
        }
        [_, _, .., last] => is_organisation(last),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_are_split_from_groups() {
        for (text, names) in [
            ("Roe A, Doe B, Test Study Group", &["Roe A", "Doe B", "Test Study Group"][..]),
            ("Roe A, Doe B, on behalf of the Test Study Group", &["Roe A", "Doe B", "Test Study Group"]),
            ("Roe A, Doe B and the Test Investigators", &["Roe A", "Doe B", "Test Investigators"]),
            ("Ann Roe, Bob Doe, Test Study Group", &["Ann Roe", "Bob Doe", "Test Study Group"]),
            ("Roe, A., Test Study Group", &["Roe, A.", "Test Study Group"]),
            ("Roe, A., Doe, B. C., and the Test Group", &["Roe, A.", "Doe, B. C.", "Test Group"]),
            ("Test Study Group, Roe A, Doe B", &["Test Study Group", "Roe A", "Doe B"]),
            ("Roe A, Doe B, Test Study Group.", &["Roe A", "Doe B", "Test Study Group"]),
            ("Roe A, Doe B, Test Group Inc.", &["Roe A", "Doe B", "Test Group Inc."]),
            ("Roe A for the Test Study Group", &["Roe A", "Test Study Group"]),
            ("Roe, Ann for the Test Study Group", &["Roe, Ann", "Test Study Group"]),
            ("O'Roe Doe, Ann for the Test Study Group", &["O'Roe Doe, Ann", "Test Study Group"]),
            ("Roe, Ann on behalf of the Test Study Group", &["Roe, Ann", "Test Study Group"]),
            ("Roe, A., Doe, B. C. and Test Study Group", &["Roe, A.", "Doe, B. C.", "Test Study Group"]),
            ("Centre for the Study of Tests", &[]),
            ("Roe Institute, Centre for the Study of Tests", &[]),
            ("Test Study Group, Roe A", &[]),
            ("Test Institute, Boston MA", &[]),
            ("Ministry of Health, Welfare and Sport", &[]),
            ("Pain, Palliative and Supportive Care Group", &[]),
            ("Roe A, Doe B", &[]),
        ] {
            assert_eq!(people_and_groups(text).unwrap_or_default(), names, "{text}");
        }
    }

    #[test]
    fn words_of_organisations_are_recognised() {
        for name in ["Grupo de Trabajo de la SEMI", "Société de Tests", "Roe & Doe LLC", "THE GROUP"] {
            assert!(is_organisation(name), "{name}");
        }
        assert!(!is_organisation("Roe, Ann"));
        assert!(ORGANISATIONS.is_sorted() && MORE.is_sorted());
    }
}
