//! Compares the names of journals, which databases abbreviate.

use references::work::spend;

use crate::agreement::Match;
use crate::fields::Fields;
use crate::title_match::similarity;

/// Returns `true` for journals with the same ISSN, or with the same name, possibly with abbreviated words. Sister
/// journals have names that begin alike, with more words.
pub(crate) fn have_same_journal(a: &Fields, b: &Fields, journal: Match) -> bool {
    let (one, other) = (a.journal(), b.journal());
    have_same_words(one, other)
        || are_initials(one, other)
        || are_initials(other, one)
        || a.issns().iter().any(|issn| b.issns().contains(issn))
        || journal.agrees() && have_same_words(&significant(one), &significant(other))
}

/// Returns `true` for the same words in the same order, which one name may abbreviate.
fn have_same_words<W: AsRef<str>>(one: &[W], other: &[W]) -> bool {
    !one.is_empty() && one.len() == other.len() && (abbreviates(one, other) || abbreviates(other, one))
}

/// The words of a journal's name that its abbreviation has, too: without an acronym before the name, the society, the
/// place, and words such as `für`.
fn significant(name: &[String]) -> Vec<&str> {
    const OMITTED: [&str; 24] = [
        "fur", "pour", "per", "para", "por", "do", "da", "dos", "das", "dei", "della", "degli", "sur", "sul",
        "voor", "het", "van", "den", "och", "og", "e", "i", "w", "na",
    ];
    const PLACES: [[&str; 2]; 6] = [
        ["london", "england"],
        ["oxford", "england"],
        ["paris", "france"],
        ["berlin", "germany"],
        ["baltimore", "md"],
        ["tokyo", "japan"],
    ];
    let mut words: Vec<&str> = name.iter().map(String::as_str).collect();
    spend(words.len());
    // `Clin Infect Dis Off Publ Infect Dis Soc Am`
    let is_society = |pair: &[&str]| {
        matches!(pair, ["off" | "official", "publ" | "publication" | "j" | "journal" | "organ"])
    };
    if let Some(at) = words.windows(2).position(is_society).filter(|at| *at > 0) {
        words.truncate(at);
    }
    // `AJR Am J Roentgenol`
    if let [acronym, ref rest @ ..] = words[..]
        && acronym.chars().count() >= 3
        && acronym.chars().map(Some).eq(rest.iter().map(|word| word.chars().next()))
    {
        words.remove(0);
    }
    // `U S A` has no `A`, which is a stop word.
    if words.ends_with(&["united", "states", "america"]) {
        words.pop();
    }
    if words.last() == Some(&"usa") {
        words.splice(words.len() - 1.., ["u", "s"]);
    }
    let is_place = |[city, country]: &[&str; 2], end: &[&str]| matches!(end, [first, second] if city.starts_with(first) && country.starts_with(second) && first.len() > 2);
    if words.len() > 2 && PLACES.iter().any(|place| is_place(place, &words[words.len() - 2..])) {
        words.truncate(words.len() - 2);
    }
    let mut kept = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let next = words.get(at + 1).copied().unwrap_or_default();
        // `L'Encéphale`, `Revue d'épidémiologie`
        let is_elided = matches!(*word, "d" | "l") && next.starts_with(['a', 'e', 'h', 'i', 'o', 'u']);
        if !is_elided && (next.is_empty() || at == 0 || !OMITTED.contains(word)) {
            kept.push(*word);
        }
    }
    kept
}

/// Compares names of journals, which databases abbreviate in different ways.
pub(crate) fn journals(a: &Fields, b: &Fields) -> Match {
    if a.issns().iter().any(|issn| b.issns().contains(issn)) {
        return Match::Agree;
    }
    let (one, other) = (a.journal(), b.journal());
    if one.is_empty() || other.is_empty() {
        return Match::Unknown;
    }
    let (short, long) = if one.len() <= other.len() { (one, other) } else { (other, one) };
    Match::from_equality(
        one == other
            || abbreviates(short, long)
            // If both have the same length, either may be the abbreviation.
            || short.len() == long.len() && abbreviates(long, short)
            || are_initials(short, long)
            || (!have_own_words(short, long) && similarity(&short.join(" "), &long.join(" ")) >= 0.8)
            // Most journals that differ begin with other letters.
            || begin_alike(short, long) && have_same_words(&significant(short), &significant(long)),
    )
}

fn begin_alike(one: &[String], other: &[String]) -> bool {
    let first = |words: &[String]| words.first().and_then(|word| word.chars().next());
    first(one) == first(other)
}

/// Returns `true` for names with equally many words that differ in one place. Sister journals have long
/// names that resemble each other.
fn have_own_words(one: &[String], other: &[String]) -> bool {
    let is_alike = |one: &str, other: &str| {
        is_abbreviation_of(one, other) || is_abbreviation_of(other, one) || similarity(one, other) >= 0.75
    };
    one.len() == other.len() && one.iter().zip(other).any(|(one, other)| !is_alike(one, other))
}

/// Returns `true` if each word of the shorter name abbreviates a word of the longer name, in order.
fn abbreviates(short: &[impl AsRef<str>], long: &[impl AsRef<str>]) -> bool {
    let mut left = short.iter().peekable();
    for word in long {
        if left.next_if(|abbreviation| is_abbreviation_of(abbreviation.as_ref(), word.as_ref())).is_none()
            && left.peek().is_none()
        {
            break;
        }
    }
    left.peek().is_none()
}

/// Returns `true` if a word abbreviates another: by its beginning, its first and last letter, or some of its letters in
/// order.
fn is_abbreviation_of(short: &str, word: &str) -> bool {
    /// The number of letters of the longest usual contractions, such as `Dtsch` and `Wschr`.
    const MAX_CONTRACTION: usize = 6;
    let mut letters = word.chars();
    let mut is_among = |letter: char| letters.any(|other| other == letter);
    let (few, many) = (short.chars().count(), word.chars().count());
    let is_contraction = 5 * few <= 3 * many && short.chars().next_back() == word.chars().next_back();
    short.starts_with(word)
        || word.starts_with(short)
        || is_cut_before_last(short, word)
        || few > 2
            && short.chars().next() == word.chars().next()
            // Longer words are other words, such as `neurology` in `neuroradiology`, or spellings.
            && (few <= MAX_CONTRACTION || few + 1 >= many)
            && (is_contraction || short.chars().all(&mut is_among))
}

/// Returns `true` for the beginning of a word with one of its later letters: `Geneeskd` of `geneeskunde`.
fn is_cut_before_last(short: &str, word: &str) -> bool {
    /// Other words differ in the last letter of a shorter beginning.
    const MIN_BEGINNING: usize = 6;
    let Some((at, last)) = short.char_indices().next_back() else { return false };
    at >= MIN_BEGINNING && word.strip_prefix(&short[..at]).is_some_and(|rest| rest.contains(last))
}

fn are_initials(short: &[String], long: &[String]) -> bool {
    let [initials] = short else { return false };
    let count = initials.chars().count();
    let of_long: String = long.iter().filter_map(|word| word.chars().next()).take(count).collect();
    count >= 3 && *initials == of_long
}
