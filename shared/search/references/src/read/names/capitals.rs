//! Names whose family name is in capitals: `Hanako SATO`, `WANG Wei`.
//!
//! Initials are in capitals too. A word is certainly a family name if it has at least four letters that can be
//! pronounced, or if it is one of a few family names with three letters. Words with two letters count only in a list of
//! such names.

use super::{
    additions::is_degree,
    groups::is_organisation,
    shapes::{is_suffix, is_word, joined},
};
use crate::work::spend;
use unicode_normalization::{UnicodeNormalization, char::is_combining_mark};

/// Family names with two letters.
#[rustfmt::skip]
const TWO_LETTERS: [&str; 66] = [
    "AI", "AK", "AN", "AO", "AU", "AY", "BA", "BI", "BO", "BU", "CO", "CU", "DI", "DO", "DU", "DY", "EK", "ER", "FU",
    "GE", "GO", "GU", "HA", "HE", "HO", "HU", "IM", "JI", "JO", "JU", "KE", "KO", "LE", "LI", "LO", "LU", "LY", "MA",
    "MI", "MO", "MU", "NA", "NG", "NI", "NO", "OH", "OK", "OU", "PU", "QI", "QU", "RU", "SA", "SI", "SO", "SU", "SY",
    "TA", "TU", "TY", "WU", "XI", "XU", "YE", "YI", "YU",
];
/// Frequent family names with three letters that are hardly initials.
#[rustfmt::skip]
const THREE_LETTERS: [&str; 62] = [
    "BAI", "CAI", "CAO", "CHO", "CHU", "COX", "CUI", "DAI", "DOE", "FAN", "FOX", "GAO", "GOH", "GUO", "HAN", "HOU", "HUI",
    "JIN", "KIM", "KOH", "LEE", "LIM", "LIN", "LIU", "LUO", "MAO", "MEI", "NAM", "NIE", "NIU", "NOH", "OOI", "PAN", "POE",
    "QIN", "QIU", "REN", "ROE", "ROH", "ROY", "SEO", "SHI", "SIM", "SOH", "SUI", "SUN", "TAN", "TAO", "TOH", "WEI", "WEN",
    "WOO", "XIA", "XIE", "XUE", "YAN", "YAO", "YEO", "YIN", "YOO", "ZHU", "ZOU",
];
/// Given names that follow family names in capitals: `Smith JOHN`.
#[rustfmt::skip]
const GIVEN: [&str; 32] = [
    "ADAM", "ALAN", "ANNA", "ANNE", "CARL", "EMMA", "ERIC", "ERIK", "EVAN", "HANS", "IVAN", "JANE", "JEAN", "JOAN", "JOAO",
    "JOHN", "JOSE", "JUAN", "KARL", "LARS", "LISA", "LUIS", "MARC", "MARK", "MARY", "OLGA", "PAUL", "RITA", "ROSA", "RUTH",
    "SARA", "YURI",
];
/// The maximum number of given names.
const MAX_GIVEN: usize = 3;

/// Returns `true` for a family name with two letters.
pub(in crate::read) fn is_family_of_two(word: &str) -> bool {
    TWO_LETTERS.binary_search(&word).is_ok()
}

/// Converts `Hanako SATO` to `SATO, Hanako` if the last word has three or four letters and is not initials.
pub(super) fn short_family_last(name: &str) -> Option<String> {
    let (given, family) = name.rsplit_once(' ')?;
    let is_family =
        (3..=4).contains(&family.len()) && is_certain(family) && are_given(given) && !is_organisation(name);
    is_family.then(|| joined(family, given)).flatten()
}

/// Returns `true` for a Chinese name in capitals that ends in a family name with two letters: `JUNCHANG LÜ`. Chinese family
/// names have one syllable, except a few. The second letter of initials is hardly I, U or `Ü`.
pub(super) fn is_chinese_in_capitals(name: &str) -> bool {
    /// Family names with two syllables.
    const COMPOUNDS: [&str; 12] = [
        "DONGFANG",
        "GONGSUN",
        "HUANGFU",
        "LINGHU",
        "MURONG",
        "NANGONG",
        "OUYANG",
        "SHANGGUAN",
        "SIMA",
        "SITU",
        "XIAHOU",
        "ZHUGE",
    ];
    let Some((given, family)) = name.rsplit_once(' ') else { return false };
    if family.chars().count() != 2 || !family.chars().all(char::is_uppercase) || !are_capitals(given) {
        return false;
    }
    let letters: String = family.nfd().filter(|c| !is_combining_mark(*c)).collect();
    // Letters that hardly occur in family names of other languages with such syllables.
    let is_typical = || given.contains(['X', 'Q']) || given.contains("ZH");
    let ends_syllable = |rest: &str| !rest.starts_with(['A', 'E', 'I', 'O', 'U']);
    let has_nasal = || given.split("NG").skip(1).any(ends_syllable);
    let is_rare = !family.is_ascii() || is_typical() || (family.ends_with(['I', 'U']) && has_nasal());
    is_rare && is_family_of_two(&letters) && !COMPOUNDS.contains(&given) && has_two_syllables(given)
}

/// Returns `true` for a value that may be a name with a family name in capitals. Most names fail at this check.
pub(in crate::read) fn may_have_capitals(name: &str) -> bool {
    let are_capitals = |pair: Option<&[u8]>| pair.is_some_and(|pair| pair.iter().all(u8::is_ascii_uppercase));
    let name = name.trim().as_bytes();
    let end = name.len().checked_sub(2).and_then(|at| name.get(at..));
    are_capitals(name.get(..2)) || are_capitals(end)
}

/// Converts a list of names in one order: `WANG Wei`, `LI Na`, or `Wei WANG`, `Na LI`. Returns `None` unless each name has
/// a family name in capitals, and at least one of them is certain.
pub(in crate::read) fn in_capitals(names: &[&str]) -> Option<Vec<String>> {
    families_first(names).or_else(|| families_last(names))
}

/// Converts a list of names with the family name first: `WANG Wei`, `LI Na`.
pub(in crate::read) fn families_first(names: &[&str]) -> Option<Vec<String>> {
    let parts = parts(names, |name| name.split_once(' '))?;
    let is_name = |(family, given): &(&str, &str)| {
        are_capitals(family)
            && are_given(given)
            && given.split(' ').all(|word| word.contains(char::is_lowercase))
    };
    let is_list = parts.iter().all(is_name) && parts.iter().any(|(family, _)| is_certain(family));
    is_list.then(|| parts.into_iter().filter_map(|(family, given)| joined(family, given)).collect())
}

/// Converts a list of names with the family name last: `Wei WANG`, `Na LI`.
fn families_last(names: &[&str]) -> Option<Vec<String>> {
    let parts = parts(names, |name| name.rsplit_once(' '))?;
    let is_long = |family: &str| family.chars().count() > 3 && is_certain(family);
    let has_long = parts.iter().any(|(_, family)| is_long(family));
    // Next to a longer family name, any other with three letters counts too.
    let is_short = |family: &str| {
        has_long
            && family.chars().count() == 3
            && are_capitals(family)
            && is_pronounceable(family)
            && !is_degree(family)
    };
    let is_family = |family: &str| is_certain(family) || is_family_of_two(family) || is_short(family);
    let is_name = |(given, family): &(&str, &str)| is_family(family) && are_given(given);
    let is_list = parts.iter().all(is_name)
        && (parts.iter().any(|(_, family)| is_certain(family)) || are_in_pinyin(&parts));
    is_list.then(|| parts.into_iter().filter_map(|(given, family)| joined(family, given)).collect())
}

/// Splits each name into two parts. Returns `None` if a name is not a person.
fn parts<'a>(
    names: &[&'a str],
    split: impl Fn(&'a str) -> Option<(&'a str, &'a str)>,
) -> Option<Vec<(&'a str, &'a str)>> {
    if !names.iter().all(|name| may_have_capitals(name) && spend(name.len()) && !is_organisation(name)) {
        return None;
    }
    names.iter().map(|name| split(name.trim())).collect()
}

/// Returns `true` for given names with a small letter in the first.
fn are_given(given: &str) -> bool {
    let is_initial = |word: &str| word.strip_suffix('.').unwrap_or(word).chars().count() == 1;
    let mut words = given.split(' ');
    words.clone().count() <= MAX_GIVEN
        && words.next().is_some_and(|first| is_word(first) && first.contains(char::is_lowercase))
        && words.all(|word| is_word(word) || (is_initial(word) && word.starts_with(char::is_uppercase)))
}

/// Returns `true` for a word of at least two capitals.
fn are_capitals(word: &str) -> bool {
    word.chars().count() > 1
        && word.chars().all(|c| c.is_uppercase() || matches!(c, '-' | '\'' | '’'))
        && word.starts_with(char::is_uppercase)
}

/// Returns `true` for capitals that are certainly not initials.
fn is_certain(word: &str) -> bool {
    if !are_capitals(word) || is_degree(word) || is_suffix(word) {
        return false;
    }
    match word.chars().count() {
        0..=2 => false,
        3 => THREE_LETTERS.binary_search(&word).is_ok(),
        4 if GIVEN.binary_search(&word).is_ok() => false,
        _ => is_pronounceable(word),
    }
}

/// Returns `true` for a word with vowels and consonants, and at most two consonants in a row unless it is long.
fn is_pronounceable(word: &str) -> bool {
    let is_vowel = |c: char| !c.is_ascii() || "AEIOUY".contains(c);
    let runs = || word.split(is_vowel).map(str::len);
    let longest = if word.len() > 4 { 4 } else { 2 };
    word.contains(is_vowel) && runs().sum::<usize>() > 0 && runs().all(|run| run <= longest)
}

/// Returns `true` for Chinese given names with family names of two letters. The second letter of a family name shows that
/// they are not initials: no Chinese syllable begins with it.
fn are_in_pinyin(names: &[(&str, &str)]) -> bool {
    names.len() > 1
        && names.iter().all(|(given, _)| given.split([' ', '-']).all(is_pinyin))
        && names.iter().any(|(_, family)| family.ends_with(['I', 'U']))
}

/// Returns `true` for two Chinese syllables, also with a hyphen between them. Without one, the second begins with a
/// consonant.
fn has_two_syllables(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let pair = |first: &str, second: &str| is_chinese_syllable(first) && is_chinese_syllable(second);
    match word.split_once('-') {
        Some((first, second)) => pair(first, second),
        None => {
            let mut ends = word.char_indices().map(|(at, _)| at).skip(1);
            let is_pair =
                |at: usize| !word[at..].starts_with(['a', 'e', 'o']) && pair(&word[..at], &word[at..]);
            !is_chinese_syllable(&word) && ends.any(is_pair)
        }
    }
}

/// Returns `true` for a syllable that occurs in Chinese. Fewer texts count than for [`is_syllable`].
fn is_chinese_syllable(text: &str) -> bool {
    if !is_syllable(text) {
        return false;
    }
    let end = text.find(|c| "aeiouv".contains(c)).unwrap_or(text.len());
    match text.split_at(end) {
        ("", rest) => rest.starts_with(['a', 'e', 'o']),
        (_, "er") => false,
        (initial, "o") => matches!(initial, "b" | "p" | "m" | "f" | "w"),
        ("j" | "q" | "x", rest) => rest.starts_with(['i', 'u']),
        ("zh" | "ch" | "sh" | "r" | "z" | "c" | "s", rest) => rest == "i" || !rest.starts_with('i'),
        ("g" | "k" | "h" | "f" | "w", rest) => !rest.starts_with('i'),
        _ => true,
    }
}

/// Returns `true` for one or two Chinese syllables.
fn is_pinyin(word: &str) -> bool {
    let word = word.to_ascii_lowercase();
    let mut ends = word.char_indices().map(|(at, _)| at).skip(1);
    is_syllable(&word) || ends.any(|at| is_syllable(&word[..at]) && is_syllable(&word[at..]))
}

fn is_syllable(text: &str) -> bool {
    #[rustfmt::skip]
    const FINALS: [&str; 33] = [
        "a", "ai", "an", "ang", "ao", "e", "ei", "en", "eng", "er", "i", "ia", "ian", "iang", "iao", "ie", "in", "ing", "iong",
        "iu", "o", "ong", "ou", "u", "ua", "uai", "uan", "uang", "ue", "ui", "un", "uo", "v",
    ];
    const INITIALS: [&str; 23] = [
        "zh", "ch", "sh", "b", "p", "m", "f", "d", "t", "n", "l", "g", "k", "h", "j", "q", "x", "r", "z",
        "c", "s", "y", "w",
    ];
    let rest = INITIALS.iter().find_map(|initial| text.strip_prefix(initial)).unwrap_or(text);
    FINALS.binary_search(&rest).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn families_in_capitals_are_distinguished_from_initials() {
        for (name, read) in [
            ("Hanako SATO", Some("SATO, Hanako")),
            ("Wei WANG", Some("WANG, Wei")),
            ("Ann B. ROSS", Some("ROSS, Ann B.")),
            ("Ann ROE", Some("ROE, Ann")),
            ("Xiao-Ming CHEN", Some("CHEN, Xiao-Ming")),
            ("Smith JA", None),
            ("Smith JAB", None),
            ("Smith JRMT", None),
            ("Smith JOHN", None),
            ("Silva MCPA", None),
            ("Roe FACC", None),
            ("Wei LI", None),
            ("van der Berg JRM", None),
            ("van der Berg JANA", None),
            ("World Health Organization WHO", None),
            ("A ROE", None),
        ] {
            assert_eq!(short_family_last(name).as_deref(), read, "{name}");
        }
        assert!(TWO_LETTERS.is_sorted() && THREE_LETTERS.is_sorted() && GIVEN.is_sorted());
    }

    #[test]
    fn chinese_names_in_capitals_are_distinguished_from_initials() {
        for name in ["JUNCHANG LÜ", "JUNCHANG LU", "MING-HAO WU", "XIAOMING MA", "WEIDONG LI"] {
            assert!(is_chinese_in_capitals(name), "{name}");
        }
        for name in [
            "WANG LI",
            "OUYANG YU",
            "HANSEN LI",
            "LANGE LI",
            "CHIANG LI",
            "SAKAI YU",
            "JUNCHANG MA",
            "COHEN LI",
            "WEBER LI",
            "MÜLLER LI",
            "JUNCHANG LX",
            "JUNCHANG L.U.",
            "Junchang LU",
            "LÜ",
            "ANN JUNCHANG",
        ] {
            assert!(!is_chinese_in_capitals(name), "{name}");
        }
    }

    #[test]
    fn lists_of_families_in_capitals_are_read() {
        for (names, read) in [
            (&["WANG Wei", "LI Na", "ZHAO Ming"][..], &["WANG, Wei", "LI, Na", "ZHAO, Ming"][..]),
            (&["KIM Min Soo", "OH Ann"], &["KIM, Min Soo", "OH, Ann"]),
            (&["Wei WANG", "Na LI"], &["WANG, Wei", "LI, Na"]),
            (&["Pierre DUPONT", "Ann ROE"], &["DUPONT, Pierre", "ROE, Ann"]),
            (&["Hanako SATO", "Ken ABE"], &["SATO, Hanako", "ABE, Ken"]),
            (&["Wei LI", "Na WU", "Jun MA"], &["LI, Wei", "WU, Na", "MA, Jun"]),
        ] {
            assert_eq!(in_capitals(names).unwrap_or_default(), read, "{names:?}");
        }
        for names in [
            &["Smith JA", "Doe BC"][..],
            &["Smith JA", "Lee KIM"],
            &["Smith JAB", "Lee KIM"],
            &["Smith MA", "Doe LI"],
            &["Wang LY", "Li WJ"],
            &["JA Smith", "BC Doe"],
            &["JRR Smith", "BC Doe"],
            &["XU Li", "MA Jun"],
            &["WANG Wei", "Test Study Group"],
            &["WANG Wei", "Na LI"],
            &["WANG W", "LI N"],
        ] {
            assert_eq!(in_capitals(names), None, "{names:?}");
        }
    }
}
