//! The shapes of names and their parts.

/// The maximum number of letters in initials; shorter family names are followed by initials themselves.
const MAX_INITIALS: usize = 4;
/// The maximum number of letters in initials without dots if all letters of a name are capitals: "IEEE COMP SOC" has no
/// initials.
const MAX_INITIALS_IN_CAPITALS: usize = 2;
/// Particles of family names, which begin with a small letter.
pub(super) const PARTICLES: [&str; 20] = [
    "van", "von", "der", "den", "de", "la", "le", "di", "da", "del", "della", "el", "al", "bin", "ten",
    "ter", "dos", "du", "y", "e",
];
/// Particles with which a family name may begin in capitals. Others, such as `Al` and `Bin`, are also given names.
const FAMILY_STARTS: [&str; 18] = [
    "Van", "Von", "Der", "Den", "De", "La", "Le", "Di", "Da", "Del", "El", "Ten", "Ter", "Dos", "Du", "St",
    "St.", "Mc",
];
/// The maximum number of words in the name of a person.
pub(super) const MAX_WORDS: usize = 6;

/// Returns `true` for `Griff RR` and `van der Berg A.B.`
pub(super) fn is_short_form(name: &str) -> bool {
    let name = name.trim();
    let name = match name.rsplit_once(' ') {
        Some((rest, last)) if is_suffix(last) => rest,
        _ => name,
    };
    let Some((family, initials)) = name.rsplit_once(' ') else { return false };
    let begins = family.chars().find(|c| c.is_alphabetic()).is_some_and(char::is_alphabetic);
    begins
        && are_initials(initials)
        && family.split(' ').count() < MAX_WORDS
        && (!are_initials(family) || is_in_capitals(family, initials))
}

/// Returns `true` for `ROE A`: the family name has more letters than initials in capitals have.
fn is_in_capitals(family: &str, initials: &str) -> bool {
    family.chars().all(char::is_alphabetic)
        && family.chars().count() > MAX_INITIALS_IN_CAPITALS
        && initials.chars().filter(|c| c.is_alphabetic()).count() <= MAX_INITIALS_IN_CAPITALS
}

/// Returns `true` for `Kate R. Lyberg`: words that begin with capitals, and do not end in an initial.
pub(crate) fn is_natural(name: &str) -> bool {
    let words: Vec<&str> = name.split_whitespace().collect();
    let is_part = |word: &&str| {
        PARTICLES.contains(word)
            || (word.starts_with(char::is_uppercase)
                && word.chars().all(|c| c.is_alphabetic() || matches!(c, '.' | '-' | '\'' | '’')))
    };
    let last = words.last().copied().unwrap_or_default();
    (2..=MAX_WORDS).contains(&words.len())
        && words.iter().all(is_part)
        && words[0].starts_with(char::is_uppercase)
        && last.chars().any(char::is_lowercase)
        && !are_initials(last)
        && !is_suffix(last)
}

/// Returns `true` for a family name that begins with a particle: `Van Houten`, `De la Cruz`.
pub(crate) fn begins_with_particle(name: &str) -> bool {
    let first = name.split_once(' ').map(|(first, _)| first);
    first.is_some_and(|first| FAMILY_STARTS.contains(&first) || PARTICLES.contains(&first))
}

/// Returns `true` for a single capitalized word.
pub(super) fn is_word(text: &str) -> bool {
    text.starts_with(char::is_uppercase) && text.chars().all(|c| c.is_alphabetic() || c == '-')
}

/// Returns `true` for suffixes, which are neither family nor given name.
pub(crate) fn is_suffix(word: &str) -> bool {
    matches!(word.trim_end_matches('.'), "Jr" | "Sr" | "2nd" | "3rd" | "4th" | "II" | "III" | "IV")
}

/// Returns `true` for initials such as `J`, `JD`, `J.D.` or `A.-M.`.
pub(crate) fn are_initials(text: &str) -> bool {
    let letters = text.chars().filter(|c| c.is_alphabetic());
    (1..=MAX_INITIALS).contains(&letters.clone().count())
        && letters.clone().all(char::is_uppercase)
        && text.chars().all(|c| c.is_alphabetic() || matches!(c, '.' | '-'))
}

/// Returns `true` if a name ends in initials.
pub(super) fn are_initials_of(family: &str, initials: &str) -> bool {
    let letters = initials.chars().filter(|c| c.is_alphabetic()).count();
    let telling = family.chars().any(char::is_lowercase)
        || initials.contains('.')
        || letters <= MAX_INITIALS_IN_CAPITALS;
    telling && initials.split(' ').all(are_initials)
}

/// Returns `true` for Chinese characters, kana and hangul.
pub(crate) fn is_ideographic(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}')
}

/// Returns `true` for a word of Chinese, Japanese or Korean characters.
pub(crate) fn is_without_alphabet(word: &str) -> bool {
    !word.is_empty() && word.chars().all(is_ideographic)
}

/// Returns `true` for words in the order of `Roe J.`
pub(in crate::read) fn is_short(words: &[String]) -> bool {
    !words.first().is_some_and(|word| are_initials(word)) && is_short_form(&words.join(" "))
}

/// Joins the parts to `"Family, Given"`, or returns the only part.
pub(in crate::read) fn joined(family: &str, given: &str) -> Option<String> {
    match (family.trim(), given.trim()) {
        ("", "") => None,
        (only, "") | ("", only) => Some(only.to_owned()),
        (family, given) => match (given.split_once(','), family.rsplit_once(' ')) {
            // `Roe,Ann,Jr.`
            (Some((given, suffix)), _) if is_suffix(suffix) => {
                Some([family, ", ", given, ", ", suffix].concat())
            }
            // `Roe Jr., Ann`
            (None, Some((family, suffix))) if is_suffix(suffix) => {
                Some([family, ", ", given, ", ", suffix].concat())
            }
            _ => Some([family, ", ", given].concat()),
        },
    }
}
