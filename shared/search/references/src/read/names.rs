//! Converts authors' names to `"Family, Given"`.
//!
//! A name whose parts cannot be distinguished is kept unchanged: a wrong family name is worse than none, because
//! deduplication and screening use it.

mod additions;
mod groups;
mod shapes;

use std::borrow::Cow;

pub(super) use additions::{is_degree, of_ovid, without_additions};
pub(super) use groups::is_organisation;
use groups::{is_organisation_without_alphabet, people_and_groups};
use memchr::{memchr, memchr_iter, memchr2};
use shapes::{PARTICLES, are_initials_of, is_short_form, is_word};
pub(super) use shapes::{are_initials, is_ideographic, is_natural, is_suffix, is_without_alphabet};

use super::{
    entities, notation,
    placeholders::is_no_name,
    tidy::{line, tidied},
};
use crate::work::spend;

/// Splits a value that should hold one name, but sometimes holds several. It must be decoded, because a character
/// reference also ends in a semicolon.
pub(super) fn split_decoded(value: &str) -> impl Iterator<Item = String> {
    value.split([';', '|', '؛', '；']).flat_map(each)
}

/// The names in a value. Nearly every value is one name, for which no list is allocated.
fn each(value: &str) -> impl Iterator<Item = String> {
    let bare = without_additions(value);
    let is_marked = bare.len() < value.len();
    let value = bare.as_ref();
    let is_one = value.is_ascii()
        && is_single(value)
        && without_others(value).len() == value.trim_end().len()
        && !value.contains(". ")
        && !value.contains(" / ")
        && !value.contains(" on behalf of ")
        && !value.contains(" for the ");
    let several = if is_one { Vec::new() } else { several(value, is_marked) };
    is_one.then(|| one(value)).flatten().into_iter().chain(several)
}

/// Returns `true` for a value without "and" and with the shape of a single name.
fn is_single(value: &str) -> bool {
    !has_and(value)
        && match memchr_iter(b',', value.as_bytes()).count() {
            0 => true,
            1 => is_inverted(value),
            _ => false,
        }
}

/// Splits a value at commas and "and" if each part has the shape of a name. Otherwise the value is one name. `is_marked`
/// is `true` if marks of affiliations have been removed from it.
fn several(value: &str, is_marked: bool) -> Vec<String> {
    let whole = value;
    let complete = without_ellipsis(value);
    let value = without_others(&complete);
    let is_marked = is_marked || value.len() < whole.len();
    if !value.is_ascii()
        && let Some(names) = without_blanks(value, is_marked)
    {
        return names;
    }
    if !value.is_ascii()
        && let Some(names) = without_case(value)
    {
        return names;
    }
    if let Some(names) = between_slashes(value) {
        return names;
    }
    if is_single(value) {
        return without_commas(value);
    }
    spend(value.len());
    if let Some(names) = people_and_groups(value) {
        return names.iter().filter_map(|name| one(name)).collect();
    }
    let has_and = has_and(value);
    if is_organisation(value) {
        return one(value).into_iter().collect();
    }
    let pieces = if has_and { at_and(value) } else { vec![value] };
    let pieces: Vec<&str> = pieces.into_iter().filter(|piece| !is_missing(piece)).collect();
    // "Ann Roe, Bob Doe and Kay Farm"
    let in_natural_order = pieces.len() > 1 && pieces.last().is_some_and(|name| is_natural(name.trim()));
    let order = match (pieces.len(), in_natural_order) {
        (1, _) => Order::Alone,
        (_, true) => Order::Natural,
        _ => Order::Unknown,
    };
    let lists: Option<Vec<_>> = pieces.iter().map(|piece| list(piece, order)).collect();
    if let Some(lists) = lists {
        return lists.concat();
    }
    // "Smith, Jones and Brown"
    let parts: Vec<&str> = pieces.iter().flat_map(|piece| piece.split(',')).map(str::trim).collect();
    let is_spanish = value.contains(" y ");
    if has_and && !is_spanish && parts.len() > 2 && parts.iter().all(|part| is_word(part)) {
        return parts.into_iter().map(str::to_owned).collect();
    }
    one(value).into_iter().collect()
}

/// Removes the dots before the last author, which the style of APA writes instead of omitted authors.
fn without_ellipsis(value: &str) -> Cow<'_, str> {
    let marks = [", . . . ", ", ... ", ", … "];
    let found = marks.iter().find_map(|mark| value.split_once(mark));
    found.map_or(Cow::Borrowed(value), |(before, last)| Cow::Owned([before, ", ", last].concat()))
}

/// Splits `Roe A. Doe B. C.`, where blanks separate the names: each ends in initials with full stops.
fn without_commas(value: &str) -> Vec<String> {
    let is_initial = |word: &&str| word.ends_with('.') && are_initials(word);
    let words: Vec<&str> = value.split_whitespace().collect();
    let (mut names, mut start) = (Vec::new(), 0);
    for (at, pair) in words.windows(2).enumerate() {
        if is_initial(&pair[0]) && !is_initial(&pair[1]) && !is_suffix(pair[1]) {
            names.push(words[start..=at].join(" "));
            start = at + 1;
        }
    }
    names.push(words[start..].join(" "));
    let is_list = names.len() > 1
        && !value.contains(',')
        && names
            .iter()
            .all(|name| is_short_form(name) && !name.split(' ').next().is_some_and(|word| is_initial(&word)));
    if is_organisation(value) {
        let names = people_and_groups(value).unwrap_or_else(|| vec![value.to_owned()]);
        return names.iter().filter_map(|name| one(name)).collect();
    }
    if !is_list {
        return one(value).into_iter().collect();
    }
    names.iter().filter_map(|name| one(name)).collect()
}

/// Drops "et al." after the last name.
pub(super) fn without_others(value: &str) -> &str {
    #[rustfmt::skip]
    const OTHERS: [&str; 28] = [
        " et al", " et al.", " et. al.", " and others", " & others", " et coll.", " y cols.", " y col.", " e cols.",
        " e col.", " y otros", " u.a.", " u. a.", " i wsp.", " a kol.", " m.fl.", " m. fl.", " ve ark.", " и др.", " и др",
        " [и др.]", " и соавт.", " та ін.", " 等", ",等", "，等", "、等", " ほか",
    ];
    let value = value.trim_end();
    let end = |words: &&&str| {
        let at = value.len().checked_sub(words.len());
        at.and_then(|at| value.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(words))
    };
    // Google Scholar cuts long lists.
    let whole = value.strip_suffix('…').or_else(|| value.strip_suffix("...")).unwrap_or(value).trim_end();
    let others = OTHERS.iter().find(end).map_or(value.len() - whole.len(), |words| words.len());
    if others == 0 { value } else { value[..value.len() - others].trim_end_matches([',', ' ']) }
}

/// Splits a list of names in a script without capitals, such as Arabic or Thai, if each has at least two words.
fn without_case(value: &str) -> Option<Vec<String>> {
    let is_caseless =
        |c: char| c.is_alphabetic() && !c.is_uppercase() && !c.is_lowercase() && !is_ideographic(c);
    if !value.contains([',', '،']) || !spend(value.len()) {
        return None;
    }
    let names: Vec<&str> = value.split([',', '،']).map(str::trim).filter(|name| !name.is_empty()).collect();
    let is_whole = |name: &&str| {
        name.contains(' ')
            && name.chars().all(|c| is_caseless(c) || !(c.is_alphanumeric() || c.is_ascii()) || c == ' ')
    };
    (names.len() > 1 && names.iter().all(is_whole)).then(|| names.into_iter().map(str::to_owned).collect())
}

/// Returns `true` for a family name, a given name and a patronymic: `Иванов Иван Иванович`.
fn has_patronymic(name: &str) -> bool {
    const ENDS: [&str; 6] = ["вич", "вна", "ична", "ьич", "оглы", "кызы"];
    name.split(' ').count() == 3 && ENDS.iter().any(|end| name.ends_with(end))
}

/// Splits a list at slashes between blanks, if each part has the shape of a name.
fn between_slashes(value: &str) -> Option<Vec<String>> {
    if !value.contains(" / ") || !spend(value.len()) {
        return None;
    }
    let is_name = |name: &str| {
        is_short_form(name) || is_natural(name) || (is_inverted(name) && name.matches(',').count() == 1)
    };
    let names: Vec<&str> = value.split(" / ").map(str::trim).collect();
    names
        .iter()
        .all(|name| is_name(name) && !is_organisation(name))
        .then(|| names.into_iter().filter_map(one).collect())
}

/// Splits a list of Chinese, Japanese or Korean names. A single plain comma may separate family and given name.
fn without_blanks(value: &str, is_marked: bool) -> Option<Vec<String>> {
    if !spend(value.len()) {
        return None;
    }
    let has_own_separator = value.contains(['，', '、', '；', '/', '／']);
    let mut parts: Vec<&str> = value
        .split(['，', '、', '；', '/', '／', ','])
        .map(|part| without_affiliation(part.trim()))
        .filter(|part| !part.is_empty())
        .collect();
    // `王伟，李娜等`: "and others".
    if let Some(last) = parts.last_mut()
        && let Some(name) = last.strip_suffix("等人").or(last.strip_suffix('等'))
        && name.chars().count() > 1
    {
        *last = name;
    }
    let is_name = |part: &&str| {
        let letters = part.chars().filter(|c| !matches!(c, ' ' | '\u{3000}' | '·' | '・'));
        letters.clone().all(is_ideographic)
            && ((2..=12).contains(&letters.count()) || is_organisation_without_alphabet(part))
    };
    // A family name and a given name are in the part itself.
    let is_whole = |part: &&str| {
        part.contains([' ', '\u{3000}'])
            || (part.chars().count() > 2 && part.chars().all(is_hangul))
            || is_organisation_without_alphabet(part)
    };
    let is_plain = !value.contains(['(', '（', '[']);
    let needed = if has_own_separator
        || is_marked
        || !is_plain
        || parts.iter().all(is_whole)
        || are_chinese(&parts)
        || parts.first().is_some_and(|part| part.chars().count() > 3)
    {
        1
    } else {
        2
    };
    if let Some(names) = between_blanks(&parts) {
        return Some(names);
    }
    let is_list = parts.len() > needed && parts.iter().all(is_name);
    is_list.then(|| parts.into_iter().map(str::to_owned).collect())
}

/// The most frequent family names of China.
const FAMILIES: &str = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢姚沈钟姜崔谭\
陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常汤張劉陳楊黃趙吳孫馬羅鄭謝許韓馮鄧蕭\
蔣餘葉蘇呂盧鍾譚陸賈鄒龍賀顧龔萬錢嚴湯";

/// Returns `true` for two or three characters that begin with a frequent family name of China.
fn is_chinese(name: &str) -> bool {
    (2..=3).contains(&name.chars().count())
        && name.chars().next().is_some_and(|first| FAMILIES.contains(first))
        && !name.ends_with(['郎', '介', '助', '子', '雄', '夫'])
}

/// Returns `true` for two Chinese names, at least one with a given name of two characters. Japanese family and given
/// names are shorter, or begin with other characters.
fn are_chinese(names: &[&str]) -> bool {
    names.iter().all(|name| is_chinese(name)) && names.iter().any(|name| name.chars().count() > 2)
}

/// Splits at least three Chinese names that only blanks separate.
fn between_blanks(parts: &[&str]) -> Option<Vec<String>> {
    let [part] = parts else { return None };
    let names: Vec<&str> = part.split([' ', '\u{3000}']).filter(|name| !name.is_empty()).collect();
    let is_list = names.len() > 2 && names.iter().all(|name| is_chinese(name));
    is_list.then(|| names.into_iter().map(str::to_owned).collect())
}

/// Returns `true` for words in the order of `Roe J.`
pub(super) fn is_short(words: &[String]) -> bool {
    !words.first().is_some_and(|word| are_initials(word)) && is_short_form(&words.join(" "))
}

/// The words after the name of a study that do not occur as family names, in lower case.
#[rustfmt::skip]
const GROUPS: [&str; 7] = [
    "grp", "investigators", "consortium", "collaborators", "collaboration", "collaborat", "trialists",
];

/// Returns `true` for words that end in a word of organisations: at least three, or two if the last is one of [`GROUPS`]
/// or follows an acronym.
pub(super) fn is_group(words: &[String]) -> bool {
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

fn is_hangul(c: char) -> bool {
    matches!(c, '\u{ac00}'..='\u{d7a3}')
}

/// Removes the affiliation in brackets after a name without letters of the alphabet.
fn without_affiliation(name: &str) -> &str {
    let bare = name.split(['(', '（']).next().unwrap_or_default();
    let is_named = bare.len() < name.len() && name.ends_with([')', '）']) && bare.chars().all(is_ideographic);
    if is_named { bare } else { name }
}

/// The evidence about a list of names from the text around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// There is no other text.
    Alone,
    /// A name in natural order follows after "and".
    Natural,
    /// Another name follows or precedes.
    Unknown,
}

/// Splits a list of names at commas. Returns `None` for a text without the shape of a name or list.
fn list(piece: &str, order: Order) -> Option<Vec<String>> {
    let parts: Vec<&str> = piece.split(',').map(str::trim).filter(|part| !is_missing(part)).collect();
    // "Smith J, Jr., Doe A"
    if let Some(at) = parts.iter().position(|part| is_suffix(part))
        && at > 0
        && is_short_form(parts[at - 1])
    {
        let names = with_suffixes(&parts);
        return names
            .iter()
            .all(|name| is_short_form(name))
            .then(|| names.iter().filter_map(|name| one(name)).collect());
    }
    let each = |names: Vec<&str>| Some(names.into_iter().filter_map(one).collect());
    match parts.as_slice() {
        [] => Some(Vec::new()),
        [name] if order != Order::Alone => match initials_first(name) {
            Some(name) => Some(vec![name]),
            None => (is_short_form(name) || is_natural(name)).then(|| one(name).into_iter().collect()),
        },
        [name] => each(vec![name]),
        names if names.iter().all(|name| is_short_form(name)) => {
            // PubMed ends the list with a full stop: "Smith J, Doe A."
            let last = parts.len() - 1;
            let is_list = last > 0 && !parts[..last].iter().any(|name| name.contains('.'));
            let names = parts.iter().enumerate();
            each(
                names
                    .map(|(at, name)| if is_list && at == last { name.trim_end_matches('.') } else { name })
                    .collect(),
            )
        }
        // "JA Smith, A van der Berg"
        names if names.len() > 1 && names.iter().all(|name| initials_first(name).is_some()) => {
            Some(names.iter().filter_map(|name| initials_first(name)).collect())
        }
        names
            if names.iter().all(|name| is_natural(name))
                && (names.len() > 2
                    || order == Order::Natural
                    || has_middle_initial(names)
                    || names.iter().all(|name| has_patronymic(name))) =>
        {
            each(parts)
        }
        // "Liu, R., Adler, D.G."
        names
            if names.len() > 2
                && names.len().is_multiple_of(2)
                && names.iter().skip(1).step_by(2).all(|name| are_initials(&name.replace(' ', ""))) =>
        {
            Some(names.chunks(2).filter_map(|pair| self::joined(pair[0], pair.get(1)?)).collect())
        }
        // "Roe, Ann B., Doe, Carl"
        names if are_pairs(names) => {
            Some(names.chunks(2).filter_map(|pair| self::joined(pair[0], pair.get(1)?)).collect())
        }
        // "Smith, Jones, Brown"
        names
            if names.len() > 2
                && !names.len().is_multiple_of(2)
                && names.iter().all(|name| {
                    is_word(name) && !is_suffix(name) && name.chars().any(char::is_lowercase)
                }) =>
        {
            Some(names.iter().map(|name| (*name).to_owned()).collect())
        }
        [_, _] => Some(one(piece).into_iter().collect()),
        _ => None,
    }
}

/// Joins suffixes to the names before them.
fn with_suffixes(parts: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = Vec::with_capacity(parts.len());
    for part in parts {
        match names.last_mut() {
            Some(name) if is_suffix(part) => {
                name.push(' ');
                name.push_str(part);
            }
            _ => names.push((*part).to_owned()),
        }
    }
    names
}

/// Returns `true` for pairs of a family name and given names. An initial shows that they are pairs.
fn are_pairs(names: &[&str]) -> bool {
    let is_initial =
        |word: &str| word.chars().filter(|c| c.is_alphabetic()).count() == 1 && are_initials(word);
    let is_family = |name: &str| {
        let (particles, last) = name.rsplit_once(' ').unwrap_or(("", name));
        is_word(last) && particles.split(' ').all(|word| word.is_empty() || PARTICLES.contains(&word))
    };
    let is_given = |name: &str| name.split(' ').all(|word| is_word(word) || is_initial(word));
    let pairs = names.chunks(2);
    names.len() > 2
        && names.len().is_multiple_of(2)
        && pairs.clone().all(|pair| is_family(pair[0]) && is_given(pair[1]) && !is_suffix(pair[1]))
        && pairs.clone().any(|pair| pair[1].split(' ').skip(1).any(is_initial))
}

/// Splits a text at "and" in any case and in other languages, and at ampersands.
fn at_and(text: &str) -> Vec<&str> {
    let (mut pieces, mut start, mut at) = (Vec::new(), 0, 0);
    for word in text.split_inclusive(' ') {
        let is_and = matches!(word.trim(), "and" | "AND" | "And" | "&" | "et" | "und")
            || (word.trim() == "y" && !is_in_family(&text[start..at], &text[at + word.len()..]));
        if is_and {
            pieces.push(&text[start..at]);
            start = at + word.len();
        }
        at += word.len();
    }
    pieces.push(&text[start..]);
    pieces
}

/// Returns `true` if `y` joins the parts of a family name, before initials that follow both: `Ramón y Cajal S`.
fn is_in_family(before: &str, after: &str) -> bool {
    let first = before.rsplit(',').next().unwrap_or_default().trim();
    let second = after.split(',').next().unwrap_or_default().trim();
    is_word(first) && is_short_form(second)
}

/// Returns `true` for `Smith, Ann`, the most frequent form: one of the two parts is a single word, so they are not two
/// names.
fn is_inverted(value: &str) -> bool {
    let Some((family, given)) = value.split_once(',') else { return false };
    let (family, given) = (family.trim(), given.trim());
    let is_word = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
    (is_word(family) || is_word(given)) && ![family, given].into_iter().any(is_missing)
}

/// Returns `true` if a part of a list does not name a person. A family may be called Null or None.
fn is_missing(part: &str) -> bool {
    is_no_name(part) && !matches!(part.trim(), "Null" | "None" | "Nil")
}

/// Returns `true` if a name has an initial between two words.
fn has_middle_initial(names: &[&str]) -> bool {
    let is_initial = |word: &str| word.len() == 2 && word.ends_with('.') || word.chars().count() == 1;
    names.iter().any(|name| {
        let words: Vec<&str> = name.split_whitespace().collect();
        words.len() > 2 && words[1..words.len() - 1].iter().any(|word| is_initial(word))
    })
}

/// Removes an e-mail address from a name. Returns `None` if no name is left.
pub(super) fn without_address(name: String) -> Option<String> {
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
    let name = groups::without_lead(name.trim_end_matches([',', ' ']));
    if let Some((family, given)) = name.split_once(',') {
        return joined(family, given);
    }
    let (whole, suffix) = match name.rsplit_once(' ') {
        Some((rest, last)) if is_suffix(last) && rest.contains(' ') => (rest, Some(last)),
        _ => (name, None),
    };
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

/// Converts a name that begins with the family name: `van der Roe Ann` becomes `van der Roe, Ann`.
pub(super) fn family_first(name: &str) -> Option<String> {
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
pub(super) fn with_suffix(name: String) -> String {
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
        // `Roe,Ann,Jr.`
        (family, given) => match given.split_once(',') {
            Some((given, suffix)) if is_suffix(suffix) => Some([family, ", ", given, ", ", suffix].concat()),
            _ => Some([family, ", ", given].concat()),
        },
    }
}

/// Splits the names in a table cell. Databases use four notations: `['A, B', 'C, D']`, semicolons, bars or line breaks,
/// and commas that also occur inside names.
pub(super) fn split_cell(cell: &str) -> Vec<String> {
    if !spend(cell.len()) {
        return Vec::new();
    }
    let mapped: Vec<_> =
        notation::maps(cell).into_iter().flatten().filter_map(|map| mapped_name(&map)).collect();
    if !mapped.is_empty() {
        return mapped;
    }
    let decoded = entities::decode(cell.trim());
    let cell = decoded.as_ref();
    if let Some(items) = notation::list(cell) {
        return items.iter().filter_map(|name| one(name)).collect();
    }
    if let Some(separator) = separator(cell) {
        return cell.split(separator).flat_map(each).collect();
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

/// Returns `true` if "and" or an ampersand separates words; most lists have neither.
fn has_and(cell: &str) -> bool {
    let cell = cell.as_bytes();
    let word = |blank: usize| {
        let word = cell.get(blank + 1..blank + 5);
        word.is_some_and(|word| {
            word[3] == b' ' && (word[..3].eq_ignore_ascii_case(b"and") || &word[..3] == b"und")
                || matches!(word, [b'e', b't', b' ', _] | [b'y', b' ', _, _])
        })
    };
    memchr(b'&', cell).is_some() || memchr_iter(b' ', cell).any(word)
}

/// The separator between the items of a cell, unless it is a comma.
pub(super) fn separator(cell: &str) -> Option<char> {
    [';', '|', '\n', '؛', '；'].into_iter().find(|separator| cell.contains(*separator))
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

/// The name in a map: that of Semantic Scholar, or the parts that Crossref gives.
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

/// Converts "JA Smith" and "J. A. Smith" to "Smith, JA" and "Smith, J. A."
fn initials_first(name: &str) -> Option<String> {
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
        assert_eq!(split_cell("Roe J, et al"), ["Roe, J"]);
        assert_eq!(
            split_cell("Roe J*, Doe A (1,2), Test Study Group"),
            ["Roe, J", "Doe, A", "Test Study Group"]
        );
    }

    #[test]
    fn particles_suffixes_and_accents_stay_with_names() {
        for (given, read) in [
            ("van der Berg AB", "van der Berg, AB"),
            ("van der Berg, Anna B.", "van der Berg, Anna B."),
            ("Smith, John, Jr.", "Smith, John, Jr."),
            ("Smith,John,Jr.", "Smith, John, Jr."),
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
    fn names_in_one_value_are_split_by_shape() {
        for (given, names) in [
            ("Griff RR, John MW, Card MA", &["Griff, RR", "John, MW", "Card, MA"][..]),
            ("Breck A, Grob DE", &["Breck, A", "Grob, DE"]),
            ("Vollen F.X. and Vonto P. and Hell D.", &["Vollen, F.X.", "Vonto, P.", "Hell, D."]),
            ("Roe, Ann and Doe, Bob C.", &["Roe, Ann", "Doe, Bob C."]),
            ("Roe, Ann & Doe, Bob", &["Roe, Ann", "Doe, Bob"]),
            (
                "Kate R. Lyberg, Emily S. Bond, Kay J. Farm",
                &["Kate R. Lyberg", "Emily S. Bond", "Kay J. Farm"],
            ),
            ("Ann Roe, Bob C. Doe", &["Ann Roe", "Bob C. Doe"]),
            ("Liu, R., Adler, D.G.", &["Liu, R.", "Adler, D.G."]),
            ("Smith, Jones, Brown", &["Smith", "Jones", "Brown"]),
            ("Smith, Jones and Brown", &["Smith", "Jones", "Brown"]),
            ("Carha, R. and NA", &["Carha, R."]),
            ("Roe A, Doe B, et al.", &["Roe, A", "Doe, B"]),
            ("Roe, A., et al.", &["Roe, A."]),
            ("Roe A et al", &["Roe, A"]),
            ("Ann Roe, Bob Doe, and Kay Farm", &["Ann Roe", "Bob Doe", "Kay Farm"]),
            ("García, M., López, J. y Pérez, A.", &["García, M.", "López, J.", "Pérez, A."]),
            ("Dupont, J. et Durand, P.", &["Dupont, J.", "Durand, P."]),
            ("Schmidt H. und Meier K.", &["Schmidt, H.", "Meier, K."]),
            ("Ortega y Gasset, José", &["Ortega y Gasset, José"]),
            ("Ramón y Cajal S", &["Ramón y Cajal, S"]),
            ("王小明，李四", &["王小明", "李四"]),
            ("张三、李四", &["张三", "李四"]),
            ("王小明, 李四, 张三", &["王小明", "李四", "张三"]),
            ("山田 太郎, 鈴木 花子", &["山田 太郎", "鈴木 花子"]),
            ("山田 太郎 / 鈴木 花子", &["山田 太郎", "鈴木 花子"]),
            ("山田太郎(大学),鈴木花子", &["山田太郎", "鈴木花子"]),
            ("김철수, 이영희", &["김철수", "이영희"]),
            ("Roe A B, Doe C D", &["Roe, A B", "Doe, C D"]),
            ("Roe J. Doe A. B.", &["Roe, J.", "Doe, A. B."]),
            ("Roe J Jr, Doe A", &["Roe, J, Jr", "Doe, A"]),
            ("Roe J.R., Jr., Doe A.", &["Roe, J.R., Jr.", "Doe, A."]),
            ("Roe, Ann B., Doe, Carl D.", &["Roe, Ann B.", "Doe, Carl D."]),
            ("J.A. Roe, A.-M. Doe and K. Farm", &["Roe, J.A.", "Doe, A.-M.", "Farm, K."]),
            ("Roe, John, PhD", &["Roe, John"]),
            ("on behalf of the Test Study Group", &["Test Study Group"]),
            ("Roe J on behalf of the Test Study Group", &["Roe, J", "Test Study Group"]),
            ("Roe & Doe LLC", &["Roe & Doe LLC"]),
            ("Grupo de Tests de la SEMI", &["Grupo de Tests de la SEMI"]),
            ("山田, 太郎", &["山田, 太郎"]),
            ("Null, Jane", &["Null, Jane"]),
            ("None, Guy", &["None, Guy"]),
            ("Team X", &["Team X"]),
            ("García Márquez, Gabriel José", &["García Márquez, Gabriel José"]),
            ("Smith, John, Jr.", &["Smith, John, Jr."]),
            ("Ministry of Health, Labour and Welfare", &["Ministry of Health, Labour and Welfare"]),
            ("National Heart and Lung Institute", &["National Heart and Lung Institute"]),
            ("Johnson and Johnson", &["Johnson and Johnson"]),
        ] {
            assert_eq!(of(given), names, "{given}");
        }
        assert_eq!(without_address("Roe, Ann (ann.roe@example.org)".into()).as_deref(), Some("Roe, Ann"));
        assert_eq!(without_address("ann.roe@example.org".into()), None);
        assert_eq!(without_address("Roe, E-mail: roe@example.org".into()).as_deref(), Some("Roe"));
        assert_eq!(without_address("-".into()), None);
        assert_eq!(without_address("And Others".into()), None);
    }

    #[test]
    fn group_names_are_not_split() {
        let group = "Department of Health and Human Services";
        assert_eq!(of(group), [group]);
        assert_eq!(of("Smith, John , "), ["Smith, John"]);
    }
}
