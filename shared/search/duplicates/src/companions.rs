//! Distinguishes the titles of companion works, which resemble each other except for one significant word.

use std::collections::HashSet;

use rapidfuzz::distance::levenshtein;
use references::work::spend;

use crate::fields::Fields;
use crate::text::{is_east_asian, start};
use crate::title::{digit_runs, value};
use crate::title_match::{TitleMatch, similarity};

/// The maximum number of unshared words that are compared between two titles. Similar titles have only a few unshared
/// words.
const MAX_OWN_WORDS: usize = 20;
/// Words with a lower similarity are different words, and not spellings of one.
const SAME_WORD: f64 = 0.75;

/// Returns `true` if a word shows that two similar titles belong to different works.
pub(crate) fn are_companions(a: &Fields, b: &Fields, titles: TitleMatch) -> bool {
    if titles == TitleMatch::Same {
        return false;
    }
    have_opposites(a, b)
        || have_distinct_ideographs(a, b)
        || have_substituted_word(a, b)
        || matches!(titles, TitleMatch::Similar(_)) && has_without(a) != has_without(b)
        || matches!(titles, TitleMatch::Similar(_) | TitleMatch::Ends) && has_added_modifier(a, b)
        || (titles.similarity() < 0.95 && have_distinct_words(a, b))
}

fn has_without(record: &Fields) -> bool {
    record.title().iter().any(|word| word == "without")
}

/// Returns `true` if the titles have equally many words, and in one place words that are not spellings of each other,
/// such as `Italy` and `Spain`, or `BRCA1` and `BRCA2`.
fn have_substituted_word(a: &Fields, b: &Fields) -> bool {
    let (one, other) = (a.title(), b.title());
    if one.len() != other.len() {
        return false;
    }
    spend(one.len());
    let differing = one.iter().zip(other).filter(|(one, other)| one != other).take(MAX_OWN_WORDS);
    // A word that the other title has elsewhere was moved.
    let substituted = differing.filter(|(left, right)| !other.contains(left) && !one.contains(right));
    substituted.into_iter().any(|(left, right)| are_other_words(left, right))
}

fn are_other_words(one: &str, other: &str) -> bool {
    let numbers = [one, other].map(|word| digit_runs(word).collect::<Vec<_>>());
    if numbers[0] != numbers[1] {
        // `II` and `2` may be the same number.
        return numbers.iter().all(|numbers| !numbers.is_empty());
    }
    let is_number = value(one).is_some() && value(one) == value(other);
    !is_number && (are_distinct(one, other) || !is_spelling(one, other))
}

/// Prefixes of words with different meanings: `hyperthyroidism` and `hypothyroidism`.
#[rustfmt::skip]
const PREFIXES: [(&str, &str); 41] = [
    ("ab", "ad"), ("ante", "post"), ("anti", "pro"), ("bi", "uni"), ("brady", "tachy"), ("de", "in"), ("down", "up"),
    ("ecto", "endo"), ("endo", "epi"), ("endo", "exo"), ("eu", "hyper"), ("eu", "hypo"), ("ex", "im"), ("ex", "in"),
    ("extra", "intra"), ("hetero", "homo"), ("hyper", "hypo"), ("hyper", "iso"), ("hyper", "normo"), ("hypo", "iso"),
    ("hypo", "normo"), ("in", "out"), ("infra", "supra"), ("inter", "intra"), ("intra", "peri"), ("intra", "post"),
    ("intra", "pre"), ("macro", "micro"), ("mono", "bi"), ("mono", "multi"), ("mono", "poly"), ("multi", "uni"),
    ("oligo", "poly"), ("over", "under"), ("peri", "post"), ("peri", "pre"), ("post", "pre"), ("sub", "super"),
    ("sub", "supra"), ("homo", "poly"), ("maxi", "mini"),
];

/// Prefixes that change the meaning of the word without them: `nonsmokers`, `asymptomatic`, `esomeprazole`. Stop words are
/// absent, because titles lose them: `in-hospital`.
#[rustfmt::skip]
const ADDED_PREFIXES: [&str; 25] = [
    "a", "anti", "des", "dex", "dis", "es", "ex", "extra", "hydroxy", "hyper", "hypo", "im", "inter", "intra", "levo",
    "methyl", "micro", "non", "nor", "post", "pre", "pro", "re", "sub", "un",
];

/// Words that resemble each other and differ in meaning. Each pair is sorted.
#[rustfmt::skip]
const CONFUSED: [(&str, &str); 30] = [
    ("aural", "oral"), ("australia", "austria"), ("brachial", "bronchial"), ("bupivacaine", "ropivacaine"),
    ("carotid", "parotid"), ("dobutamine", "dopamine"), ("estradiol", "estriol"), ("facial", "fascial"),
    ("gambia", "zambia"), ("ghana", "guyana"), ("height", "weight"), ("hepatic", "hepatitis"),
    ("ileum", "ilium"), ("iran", "iraq"), ("malawi", "mali"), ("mauritania", "mauritius"),
    ("morbidity", "mortality"), ("neonatal", "prenatal"), ("niger", "nigeria"), ("perineal", "peritoneal"),
    ("perineal", "peroneal"), ("peritoneal", "peroneal"), ("prednisolone", "prednisone"),
    ("quinidine", "quinine"), ("rabbits", "rats"), ("sensitivity", "specificity"), ("slovakia", "slovenia"),
    ("suburban", "urban"), ("ureteral", "urethral"), ("ureteric", "urethral"),
];

/// The ends of names of related drugs.
#[rustfmt::skip]
const STEMS: [&str; 52] = [
    "afil", "artan", "azepam", "azepine", "azolam", "azole", "bactam", "barbital", "caine", "calcitol", "cillin",
    "coxib", "cycline", "dipine", "dronate", "fenacin", "floxacin", "gliflozin", "glitazone", "glutide", "gliptin",
    "idone", "kinra", "lukast", "mab", "micin", "mycin", "nib", "olol", "onide", "oxetine", "parin", "penem",
    "platin", "poetin", "prazole", "pril", "profen", "quine", "relin", "rubicin", "setron", "statin", "taxel",
    "terol", "tidine", "triptan", "triptyline", "tropium", "vir", "vudine", "xaban",
];

/// Returns `true` for two names of related drugs: `simvastatin` and `pravastatin`. Their beginnings differ in more than a
/// letter.
fn are_related_drugs(one: &str, other: &str) -> bool {
    let beginnings = |stem: &&str| Some((one.strip_suffix(*stem)?, other.strip_suffix(*stem)?));
    // `sulphamethoxazole` and `sulfamethoxazole`
    let plain = |text: &str| text.replace("ph", "f").replace("th", "t").replace('y', "i");
    let is_other = |(one, other): (&str, &str)| {
        one.len().min(other.len()) > 1 && levenshtein::distance(plain(one).bytes(), plain(other).bytes()) > 1
    };
    STEMS.iter().filter_map(beginnings).any(is_other)
}

/// Returns `true` for different words that may resemble each other.
fn are_distinct(one: &str, other: &str) -> bool {
    let pair = if one < other { (one, other) } else { (other, one) };
    have_opposite_prefixes(one, other) || CONFUSED.contains(&pair) || are_related_drugs(one, other)
}

/// Returns `true` if two words differ in a prefix that gives them different meanings.
fn have_opposite_prefixes(one: &str, other: &str) -> bool {
    /// The minimum length of the rest in bytes. Short words begin like prefixes by chance.
    const MIN_REST: usize = 4;
    const MIN_WORD: usize = 5;
    let differ = |(left, right): &(&str, &str)| {
        let rest = |word: &'_ str, prefix| word.strip_prefix(prefix).map(str::len);
        let is_pair = |one: &str, other: &str| {
            rest(one, *left).is_some_and(|length| length >= MIN_REST)
                && one.strip_prefix(*left) == other.strip_prefix(*right)
        };
        is_pair(one, other) || is_pair(other, one)
    };
    let (short, long) = if one.len() < other.len() { (one, other) } else { (other, one) };
    let added = || long.strip_suffix(short).filter(|_| short.len() >= MIN_WORD);
    // British spelling writes `ae` for `e`.
    let is_added =
        |prefix: &str| ADDED_PREFIXES.contains(&prefix) && !(prefix == "a" && short.starts_with('e'));
    PREFIXES.iter().any(differ) || added().is_some_and(is_added)
}

/// Words that distinguish the titles of companion works if only one title has them.
#[rustfmt::skip]
const MODIFIERS: [&str; 22] = [
    "anti", "east", "eastern", "ex", "former", "hyper", "hypo", "never", "no", "non", "north", "northern", "not",
    "post", "pre", "quasi", "south", "southern", "sub", "un", "west", "western",
];

/// Returns `true` if only one title has such a word, which the other does not join to the word behind it: `smokers` and
/// `ex-smokers`, but not `non-smokers` and `nonsmokers`.
fn has_added_modifier(a: &Fields, b: &Fields) -> bool {
    /// The maximum number of words up to the end of the joined word.
    const MAX_BETWEEN: usize = 3;
    fn has_own(words: &[String], others: &[String]) -> bool {
        words.iter().enumerate().filter(|(_, word)| MODIFIERS.contains(&word.as_str())).any(|(at, word)| {
            spend(others.len());
            // `pre- and post-natal` is `prenatal and postnatal`.
            let next = || words.iter().skip(at + 1).take(MAX_BETWEEN);
            let is_joined = |other: &String| {
                let rest = other.strip_prefix(word.as_str());
                rest.is_some_and(|rest| rest.is_empty() || next().any(|next| is_spelling(rest, next)))
            };
            !others.iter().any(is_joined)
        })
    }
    has_own(a.title(), b.title()) != has_own(b.title(), a.title())
}

/// Returns `true` for two spellings of a word, or a word and its beginning.
fn is_spelling(one: &str, other: &str) -> bool {
    const SPELLINGS: [(&str, &str); 3] = [("alfa", "alpha"), ("man", "men"), ("while", "whilst")];
    similarity(one, other) >= SAME_WORD
        || begins_as(one, other)
        || begins_as(other, one)
        || SPELLINGS.contains(&(one, other))
        || SPELLINGS.contains(&(other, one))
}

fn begins_as(word: &str, other: &str) -> bool {
    word.starts_with(start(other, 5))
}

/// Words that distinguish the titles of companion articles, although they resemble each other.
const OPPOSITES: [(&str, &str); 21] = [
    ("men", "women"),
    ("man", "woman"),
    ("male", "female"),
    ("males", "females"),
    ("boys", "girls"),
    ("mothers", "fathers"),
    ("maternal", "paternal"),
    ("children", "adults"),
    ("left", "right"),
    ("upper", "lower"),
    ("acute", "chronic"),
    ("primary", "secondary"),
    ("prevention", "treatment"),
    ("incidence", "prevalence"),
    ("efficacy", "safety"),
    ("systolic", "diastolic"),
    ("preterm", "term"),
    ("smokers", "nonsmokers"),
    ("hypertension", "hypotension"),
    ("vivo", "vitro"),
    ("increased", "decreased"),
];

/// Returns `true` if the titles differ in a word, and the other title has the opposite word at the same position.
fn have_opposites(a: &Fields, b: &Fields) -> bool {
    let (one, other) = (a.title(), b.title());
    if one.len() != other.len() {
        return false;
    }
    spend(one.len());
    let differing = one.iter().zip(other).filter(|(one, other)| one != other);
    differing.into_iter().any(|(one, other)| {
        let is_pair =
            |(left, right): &(&str, &str)| (one == left && other == right) || (one == right && other == left);
        OPPOSITES.iter().any(is_pair)
    })
}

/// Returns `true` if each title has an East Asian letter that the other lacks. One such letter is often a word.
fn have_distinct_ideographs(a: &Fields, b: &Fields) -> bool {
    let (one, other) = (a.letters(), b.letters());
    if one == other || one.is_ascii() || other.is_ascii() {
        return false;
    }
    spend(one.len() + other.len());
    let ideographs = |text: &str| text.chars().filter(|c| is_east_asian(*c)).collect::<HashSet<char>>();
    let (one, other) = (ideographs(one), ideographs(other));
    one.difference(&other).next().is_some() && other.difference(&one).next().is_some()
}

/// Returns `true` if each title has a word that resembles no word of the other.
fn have_distinct_words(a: &Fields, b: &Fields) -> bool {
    fn own<'a>(words: &'a [String], others: &[String]) -> Vec<&'a str> {
        spend(words.len());
        let others: HashSet<&str> = others.iter().map(String::as_str).collect();
        let own = words.iter().filter(|word| word.chars().count() > 2 && !others.contains(word.as_str()));
        own.map(String::as_str).take(MAX_OWN_WORDS).collect()
    }
    fn has_another(words: &[&str], others: &[&str]) -> bool {
        words.iter().any(|word| {
            let is_other = |other: &str| {
                are_distinct(word, other) || (similarity(word, other) < SAME_WORD && !begins_as(word, other))
            };
            others.iter().all(|other| is_other(other))
        })
    }
    let (one, other) = (own(a.title(), b.title()), own(b.title(), a.title()));
    !one.is_empty() && !other.is_empty() && has_another(&one, &other) && has_another(&other, &one)
}
