//! Splits values that hold several names.

use std::borrow::Cow;

use memchr::{memchr, memchr_iter};

use super::{
    super::placeholders::is_no_name,
    additions::{is_degree, without_additions},
    capitals::{in_capitals, may_have_capitals},
    groups::{is_organisation, people_and_groups},
    one::{initials_first, one},
    scripts::{without_blanks, without_case},
    shapes::{
        PARTICLES, are_initials, begins_with_particle, is_ideographic, is_natural, is_short_form, is_suffix,
        is_word, joined,
    },
};
use crate::work::spend;

/// Splits a value that should hold one name, but sometimes holds several. It must be decoded, because a character
/// reference also ends in a semicolon.
pub(in crate::read) fn split_decoded(value: &str) -> impl Iterator<Item = String> {
    let names = in_capitals_between(value, SEPARATORS).or_else(|| between_signs(value));
    let others = names.is_none().then(|| {
        // Some programs separate the degree from the name before it.
        let names =
            value.split(SEPARATORS).filter(|name| name.len() == value.len() || !is_degree(name.trim()));
        names.flat_map(each)
    });
    names.into_iter().flatten().chain(others.into_iter().flatten())
}

/// The separators between names in one value.
const SEPARATORS: &[char] = &[';', '|', '؛', '；'];

/// Splits a list of Latin names at bullets, or at commas of Chinese and Japanese. Each part contains a whole name.
pub(super) fn between_signs(value: &str) -> Option<Vec<String>> {
    let is_sign = |c: char| matches!(c, '•' | '，' | '、');
    if value.is_ascii() || !value.contains(is_sign) || value.contains(is_ideographic) || !spend(value.len()) {
        return None;
    }
    let names: Vec<&str> = value.split(is_sign).map(str::trim).filter(|name| !name.is_empty()).collect();
    let are_whole = names.len() > 1 && names.iter().all(|name| name.contains(' '));
    are_whole.then(|| in_capitals(&names).unwrap_or_else(|| names.into_iter().flat_map(each).collect()))
}

/// Splits a list of names with family names in capitals.
pub(super) fn in_capitals_between(value: &str, separators: &[char]) -> Option<Vec<String>> {
    if !may_have_capitals(value) || !value.contains(separators) || !spend(value.len()) {
        return None;
    }
    let names: Vec<&str> = value.split(separators).map(str::trim).filter(|name| !name.is_empty()).collect();
    (names.len() > 1).then(|| in_capitals(&names)).flatten()
}

/// The names in a value. Nearly every value is one name, for which no list is allocated.
pub(super) fn each(value: &str) -> impl Iterator<Item = String> {
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
pub(super) fn several(value: &str, is_marked: bool) -> Vec<String> {
    let whole = value;
    let complete = without_ellipsis(value);
    let value = without_others(&complete);
    let is_marked = is_marked || value.len() < whole.len();
    if let Some(names) = in_capitals_between(value, &[',']) {
        return names;
    }
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
    if has_and && let Some(names) = inverted_and_groups(value) {
        return names;
    }
    if is_organisation(value) {
        return one(value).into_iter().collect();
    }
    let pieces = if has_and { at_and(value) } else { vec![value] };
    let pieces: Vec<&str> = pieces.into_iter().filter(|piece| !is_missing(piece)).collect();
    // "Ann Roe, Bob Doe and Kay Farm"
    let in_natural_order = pieces.len() > 1 && pieces.last().is_some_and(|name| is_natural(name.trim()));
    let order = match (pieces.len(), in_natural_order) {
        (1, _) => Order::Alone,
        _ if are_inverted(&pieces) => Order::Inverted,
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

/// Splits people in inverted order and groups at "and": `Roe, Ann and Doe, Bob and Test Study Group`.
fn inverted_and_groups(value: &str) -> Option<Vec<String>> {
    let pieces: Vec<&str> = at_and(value).into_iter().filter(|piece| !is_missing(piece)).collect();
    let (groups, people): (Vec<&str>, Vec<&str>) = pieces.iter().partition(|piece| is_organisation(piece));
    let are_mixed = !groups.is_empty()
        && !people.is_empty()
        && groups.iter().all(|group| !group.contains(','))
        && people.iter().all(|person| person.contains(',') && is_inverted(person));
    are_mixed.then(|| pieces.into_iter().filter_map(one).collect())
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
pub(in crate::read) fn without_others(value: &str) -> &str {
    #[rustfmt::skip]
    const OTHERS: [&str; 28] = [
        " et al", " et al.", " et. al.", " and others", " & others", " et coll.", " y cols.", " y col.", " e cols.",
        " e col.", " y otros", " u.a.", " u. a.", " i wsp.", " a kol.", " m.fl.", " m. fl.", " ve ark.", " и др.", " и др",
        " [и др.]", " и соавт.", " та ін.", " 等", ",等", "，等", "、等", " ほか",
    ];
    // The last bytes of the texts above. Characters without a case end in other bytes than ASCII.
    let may_end = |last: &u8| matches!(last, b'.' | b'l' | b'L' | b's' | b'S' | b']') || !last.is_ascii();
    let value = value.trim_end();
    if !value.as_bytes().last().is_some_and(may_end) {
        return value;
    }
    let end = |words: &&&str| {
        let at = value.len().checked_sub(words.len());
        at.and_then(|at| value.get(at..)).is_some_and(|end| end.eq_ignore_ascii_case(words))
    };
    // Google Scholar cuts long lists.
    let whole = value.strip_suffix('…').or_else(|| value.strip_suffix("...")).unwrap_or(value).trim_end();
    let others = OTHERS.iter().find(end).map_or(value.len() - whole.len(), |words| words.len());
    if others == 0 { value } else { value[..value.len() - others].trim_end_matches([',', ' ']) }
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

/// Frequent given names that are hardly family names, and with which no family name of two words begins.
#[rustfmt::skip]
const GIVEN_NAMES: [&str; 133] = [
    "Alessandro", "Alice", "Amanda", "Amy", "Anders", "Andrew", "Angela", "Ann", "Anna", "Anne", "Ashley",
    "Barbara", "Benjamin", "Bob", "Brandon", "Brenda", "Brian", "Carol", "Caroline", "Catherine", "Charles",
    "Charlotte", "Chiara", "Christina", "Christine", "Christopher", "Claire", "Claudia", "Cynthia", "David",
    "Deborah", "Dennis", "Donna", "Elizabeth", "Ellen", "Emily", "Emma", "Eric", "Erik", "Florian",
    "Francesca", "François", "Giulia", "Giuseppe", "Gregory", "Hannah", "Hans", "Heather", "Heike", "Helen",
    "Ingrid", "Isabelle", "Jacob", "Jane", "Janet", "Jason", "Jeffrey", "Jennifer", "Jeremy", "Jessica",
    "Johannes", "John", "Jonathan", "Julia", "Julie", "Justin", "Jürgen", "Karen", "Katherine", "Kathleen",
    "Kathryn", "Katrin", "Kevin", "Kimberly", "Klaus", "Lars", "Laura", "Lauren", "Linda", "Lisa", "Lucy",
    "Margaret", "Maria", "Marie", "Mark", "Mary", "Matthew", "Matthias", "Megan", "Melissa", "Michael",
    "Michelle", "Monika", "Nancy", "Nathalie", "Nicholas", "Nicole", "Olivia", "Pamela", "Paolo", "Patricia",
    "Patrick", "Peter", "Petra", "Philippe", "Pierre", "Rachel", "Rebecca", "Richard", "Robert", "Ruth",
    "Sabine", "Samantha", "Sandra", "Sarah", "Sharon", "Sophia", "Sophie", "Stefan", "Stefano", "Stephanie",
    "Stephen", "Steven", "Susan", "Teresa", "Timothy", "Tobias", "Tyler", "Ulrich", "Victoria", "Virginia",
    "William", "Wolfgang",
];

/// Returns `true` for `Ann Roe, Bob Doe`: each name begins with a frequent given name, and ends in another word.
fn begin_with_given_names(names: &[&str]) -> bool {
    let is_given = |word: &str| GIVEN_NAMES.binary_search(&word).is_ok();
    names.iter().all(|name| {
        name.split_once(' ').is_some_and(|(first, _)| is_given(first))
            && name.rsplit(' ').next().is_some_and(|last| !is_given(last))
    })
}

/// The evidence about a list of names from the text around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// There is no other text.
    Alone,
    /// A name in natural order follows after "and".
    Natural,
    /// "And" separates all names, and a comma the parts of a name.
    Inverted,
    /// Another name follows or precedes.
    Unknown,
}

/// Splits a list of names at commas. Returns `None` for a text without the shape of a name or list.
fn list(piece: &str, order: Order) -> Option<Vec<String>> {
    let parts: Vec<&str> = piece.split(',').map(str::trim).filter(|part| !is_missing(part)).collect();
    if let Some(names) = pairs_with_suffixes(&parts) {
        return Some(names);
    }
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
        [family, _] if order == Order::Inverted || begins_with_particle(family) => {
            Some(one(piece).into_iter().collect())
        }
        names
            if names.iter().all(|name| is_natural(name))
                && (names.len() > 2
                    || order == Order::Natural
                    || has_middle_initial(names)
                    || begin_with_given_names(names)
                    || names.iter().all(|name| has_patronymic(name))) =>
        {
            each(parts)
        }
        // "Liu, R., Adler, D.G." and "Roe, Ann B., Doe, Carl"
        names if have_initials(names) || are_pairs(names) => {
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

/// Returns `true` for "Roe Doe, Mary Beth" and "Poe, Ann" on both sides of "and": a list in natural order has commas only
/// before its last "and".
fn are_inverted(pieces: &[&str]) -> bool {
    let commas = |piece: &str| memchr_iter(b',', piece.as_bytes()).count();
    let names =
        || pieces.iter().map(|piece| piece.trim_end_matches([',', ' '])).filter(|name| name.contains(','));
    names().all(|name| commas(name) == 1) && (names().count() > 1 || names().any(is_inverted))
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

/// Splits `Roe, A., Jr., Doe, B.` and `Roe, Ann B., Jr., Doe, Carl`: pairs of a family name and given names, and at least
/// one suffix behind the given names.
pub(in crate::read) fn pairs_with_suffixes(parts: &[&str]) -> Option<Vec<String>> {
    /// Two people and a suffix.
    const MIN_PARTS: usize = 5;
    if parts.len() < MIN_PARTS || !parts.iter().any(|part| is_suffix(part)) {
        return None;
    }
    let (mut names, mut suffixes): (Vec<&str>, Vec<Option<&str>>) = (Vec::new(), Vec::new());
    for part in parts {
        if !is_suffix(part) {
            names.push(part);
            continue;
        }
        suffixes.resize(names.len().div_ceil(2), None);
        let last = suffixes.last_mut().filter(|last| last.is_none() && names.len().is_multiple_of(2))?;
        *last = Some(part);
    }
    suffixes.resize(names.len().div_ceil(2), None);
    if !have_initials(&names) && !are_pairs(&names) {
        return None;
    }
    let pairs = names.chunks(2).zip(suffixes);
    let people = pairs.filter_map(|(pair, suffix)| {
        let name = joined(pair[0], pair.get(1)?)?;
        Some(match suffix {
            Some(suffix) => [&name, ", ", suffix].concat(),
            None => name,
        })
    });
    Some(people.collect())
}

/// Returns `true` if the names are pairs of a family name and initials.
fn have_initials(names: &[&str]) -> bool {
    names.len() > 2
        && names.len().is_multiple_of(2)
        && names.iter().skip(1).step_by(2).all(|name| are_initials(&name.replace(' ', "")))
}

/// Returns `true` if the names are pairs of a family name and given names. In at least one pair, an initial has to
/// follow the given name.
pub(in crate::read) fn are_pairs(names: &[&str]) -> bool {
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

/// Returns `true` if a name has an initial between two words.
fn has_middle_initial(names: &[&str]) -> bool {
    let is_initial = |word: &str| word.len() == 2 && word.ends_with('.') || word.chars().count() == 1;
    names.iter().any(|name| {
        let words: Vec<&str> = name.split_whitespace().collect();
        words.len() > 2 && words[1..words.len() - 1].iter().any(|word| is_initial(word))
    })
}

/// Returns `true` for a family name, a given name and a patronymic: `Иванов Иван Иванович`.
fn has_patronymic(name: &str) -> bool {
    const ENDS: [&str; 6] = ["вич", "вна", "ична", "ьич", "оглы", "кызы"];
    name.split(' ').count() == 3 && ENDS.iter().any(|end| name.ends_with(end))
}

/// Returns `true` for `Smith, Ann`, the most frequent form: one of the two parts is a single word, so they are not two
/// names.
pub(super) fn is_inverted(value: &str) -> bool {
    let Some((family, given)) = value.split_once(',') else { return false };
    let (family, given) = (family.trim(), given.trim());
    let is_word = |part: &str| !part.is_empty() && !part.contains(char::is_whitespace);
    (is_word(family) || is_word(given)) && ![family, given].into_iter().any(is_missing)
}

/// Returns `true` if a part of a list does not name a person. A family may be called Null or None.
fn is_missing(part: &str) -> bool {
    is_no_name(part) && !matches!(part.trim(), "Null" | "None" | "Nil")
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

/// The longest text in bytes that may be the second part of a family name with initials.
const MAX_NAME: usize = 128;

/// Returns `true` if `y` joins the parts of a family name, before initials that follow both: `Ramón y Cajal S`.
fn is_in_family(before: &str, after: &str) -> bool {
    // A longer text is not a name.
    let after = &after[..after.floor_char_boundary(MAX_NAME)];
    let first = before.rsplit(',').next().unwrap_or_default().trim();
    let second = after.split(',').next().unwrap_or_default().trim();
    spend(before.len() + after.len()) && is_word(first) && is_short_form(second)
}
