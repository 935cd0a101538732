//! Interprets a title: whether it announces something about another work, and the numbers that distinguish it from
//! related titles.

use references::work::spend;

use crate::text::{
    end, fold, is_east_asian, is_foreign, is_stop_word, start, without_zeros, words, words_and_rest,
    words_with_labels,
};

/// The maximum number of letters of a title that are compared.
const MAX_LETTERS: usize = 600;
/// The number of characters, at the beginning of a note in brackets, by which the note is recognized.
const MAX_NOTE: usize = 40;

/// The beginnings of notes that databases add in brackets: `[Erratum appears in …]`, `[German]`, `(see comment)`.
const NOTES: [&str; 34] = [
    "version",
    "erratum",
    "errata",
    "comment",
    "comments",
    "summary for",
    "republished",
    "corrected",
    "correction",
    "retraction",
    "retracted",
    "withdrawn",
    "update",
    "reprint",
    "in process",
    "abstract",
    "german",
    "french",
    "spanish",
    "italian",
    "russian",
    "chinese",
    "japanese",
    "polish",
    "portuguese",
    "dutch",
    "turkish",
    "danish",
    "swedish",
    "czech",
    "hungarian",
    "norwegian",
    "korean",
    "persian",
];

/// The maximum number of words at the end of a title that say what it is.
const MAX_LABEL: usize = 3;

/// Words that mark a notice about an article, if they are among its first words, or the only ones after a colon.
const ALWAYS_NOTICES: [&str; 3] = ["erratum", "errata", "addendum"];
/// Words that mark a notice unless they belong to a sentence.
const NOTICES: [&str; 4] = ["correction", "corrections", "retraction", "withdrawal"];
/// The beginnings of works that belong to an article.
const SUPPLEMENTS: [&[&str]; 3] =
    [&["data", "from"], &["supplementary", "material"], &["supplemental", "material"]];

/// Labels that databases add to the title of an article that was retracted. The article remains the same work.
const STATUSES: [&str; 7] = [
    "retracted",
    "retracted article",
    "retracted chapter",
    "retracted paper",
    "withdrawn",
    "withdrawn article",
    "temporary removal",
];

/// The beginnings of replies to an article.
const REPLIES: [&[&str]; 17] = [
    &["comment", "on"],
    &["comment", "to"],
    &["comments", "on"],
    &["comments", "to"],
    &["commentary"],
    &["re"],
    &["reply"],
    &["response"],
    &["in", "reply"],
    &["author", "reply"],
    &["authors", "reply"],
    &["author", "s", "reply"],
    &["author", "response"],
    &["authors", "response"],
    &["author", "s", "response"],
    &["letter", "to"],
    &["discussion"],
];
/// Beginnings that only two words distinguish from titles of articles.
const EDITORIAL_REPLIES: [&[&str]; 2] = [&["invited", "commentary"], &["editorial", "comment"]];

/// Words that give a following single letter or number word a meaning: `part B`, `phase one`.
const PARTS: [&str; 16] = [
    "part",
    "phase",
    "study",
    "trial",
    "type",
    "section",
    "chapter",
    "volume",
    "vol",
    "no",
    "number",
    "stage",
    "class",
    "grade",
    "amendment",
    "update",
];

/// A title in the form that is compared.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Title {
    /// The words without stop words.
    pub(crate) words: Vec<String>,
    /// `true` for a notice about an article, such as an erratum or a retraction.
    pub(crate) is_notice: bool,
    /// `true` for a reply to an article, such as a comment or a letter.
    pub(crate) is_reply: bool,
    /// `true` for a title in another language than English.
    pub(crate) is_foreign: bool,
}

impl Title {
    pub(crate) fn read(title: &str) -> Self {
        let bare = without_notes(title);
        // A title that consists of a note is a title.
        let bare = if words(&bare).next().is_none() { title.to_owned() } else { bare };
        let whole = fold(&bare);
        let folded = without_status(&whole);
        let labels = if folded.len() == whole.len() { labels(&bare, folded) } else { Vec::new() };
        let first: Vec<&str> = words(folded).take(5).collect();
        let is_reply =
            |words: &[&str]| REPLIES.iter().chain(&EDITORIAL_REPLIES).any(|reply| words.starts_with(reply));
        let label = fold(last_part(title));
        let last: Vec<&str> = words(&label).take(MAX_LABEL + 1).collect();
        let is_label = !last.is_empty() && last.len() <= MAX_LABEL;
        Self {
            is_notice: is_notice(folded)
                || SUPPLEMENTS.iter().any(|supplement| first.starts_with(supplement))
                || (is_label && is_notice(&label)),
            is_reply: (is_reply(&first) && !begins_with_prefix(folded)) || (is_label && is_reply(&last)),
            is_foreign: is_foreign(start(folded, MAX_LETTERS)),
            words: title_words(folded, &labels),
        }
    }
}

/// Returns `true` for `re-evaluation`, which announces no reply.
fn begins_with_prefix(folded: &str) -> bool {
    folded.trim_start().strip_prefix("re-").is_some_and(|rest| rest.starts_with(char::is_alphabetic))
}

/// The positions of words in capitals that are labels, although they look like stop words: `hepatitis A`, `patients with
/// AS`. The list is empty for a title in which other stop words have capitals too, or whose words folding changes.
fn labels(title: &str, folded: &str) -> Vec<usize> {
    /// The maximum number of labels.
    const MAX_LABELS: usize = 8;
    if title.len() > MAX_LETTERS {
        return Vec::new();
    }
    let is_capital = |word: &str| word.bytes().all(|byte| byte.is_ascii_uppercase());
    // A word at the beginning of a sentence or subtitle has a capital letter in any case.
    let is_inside = |word: &str, rest: &str| {
        let before = title[..title.len() - rest.len() - word.len()].strip_suffix(' ');
        before.is_some_and(|before| before.ends_with(char::is_alphanumeric))
    };
    let found = words_and_rest(title).enumerate().filter(|(_, (word, rest))| {
        is_capital(word) && is_stop_word(&word.to_ascii_lowercase()) && is_inside(word, rest)
    });
    let found: Vec<usize> = found.map(|(at, _)| at).take(MAX_LABELS).collect();
    let has_small = || {
        let others = || words(title).skip(1).filter(|word| word.starts_with(char::is_alphabetic));
        let small = || others().filter(|word| word.starts_with(char::is_lowercase));
        small().any(is_stop_word) || 2 * small().count() > others().count()
    };
    let is_aligned = || words(title).count() == words(folded).count();
    if found.is_empty() || !has_small() || !is_aligned() { Vec::new() } else { found }
}

/// The words of a title without stop words, unless it has no others.
fn title_words(folded: &str, labels: &[usize]) -> Vec<String> {
    let significant = words_with_labels(folded, labels, MAX_LETTERS);
    if significant.is_empty() {
        return words(start(folded, MAX_LETTERS)).map(str::to_owned).collect();
    }
    significant
}

/// The part of a title that may be a label: `Title of the article: Correction`, `Title of the article. Reply`,
/// `Title of the article REPLY`. The text is empty if the title has none.
fn last_part(title: &str) -> &str {
    /// The maximum length of a label with its separator, in characters.
    const MAX_LAST: usize = 60;
    let title = title.trim_end_matches(|c: char| !c.is_alphanumeric() && !matches!(c, ')' | ']'));
    let end = end(title, MAX_LAST + 1);
    // Most titles have no separator.
    if !end.contains(['-', '.', ':', '(', '[']) && !end.ends_with("REPLY") {
        return "";
    }
    let bracket = end.rfind([':', '(', '[']).map(|at| at + 1);
    let separators =
        [" - ", ". "].iter().filter_map(|separator| Some(end.rfind(separator)? + separator.len()));
    let capitals = end.strip_suffix(" REPLY").filter(|_| title.contains(char::is_lowercase)).map(str::len);
    let start = separators.chain(bracket).chain(capitals).max();
    start.map_or("", |start| &end[start..])
}

/// Returns `true` if a text begins with the announcement of a notice: `Erratum`, `Author correction: zinc`, `Retraction
/// notice to zinc`. Titles of articles have the same words: `Surgical correction of …`.
fn is_notice(text: &str) -> bool {
    const BEFORE: [&str; 13] = [
        "notice",
        "of",
        "author",
        "authors",
        "publisher",
        "publishers",
        "s",
        "editorial",
        "partial",
        "a",
        "the",
        "published",
        "statement",
    ];
    let mut said = Vec::new();
    for (word, rest) in words_and_rest(text).take(3) {
        if ALWAYS_NOTICES.contains(&word) || (word.starts_with("corrigend") && word.len() > 9) {
            return true;
        }
        if NOTICES.contains(&word) && said.iter().all(|word| BEFORE.contains(word)) {
            return said.contains(&"notice") || ends_announcement(rest);
        }
        said.push(word);
    }
    let first: Vec<&str> = words(text).take(5).collect();
    first.windows(3).any(|words| words == ["expression", "of", "concern"])
}

/// Returns `true` for the text after a notice word, if that is not a part of a sentence.
fn ends_announcement(rest: &str) -> bool {
    let rest = rest.trim_start();
    let next: Vec<&str> = words(rest).take(3).collect();
    !rest.starts_with(char::is_alphanumeric)
        || matches!(next.first(), Some(&("to" | "notice")))
        || matches!(next[..], ["of", "the", "article" | "paper"] | ["of", "article" | "paper", _])
}

/// Removes the label of a retracted article before or after its title: `RETRACTED: Zinc`, `Zinc - RETRACTED ARTICLE`.
fn without_status(folded: &str) -> &str {
    spend(folded.len());
    // Most titles have no separator.
    if !folded.contains([':', '-']) {
        return folded;
    }
    let is_status = |label: &str| STATUSES.contains(&label.trim_matches(|c: char| !c.is_alphanumeric()));
    for separator in [":", " - "] {
        match folded.split_once(separator) {
            Some((label, title)) if is_status(label) && words(title).next().is_some() => return title,
            _ => {}
        }
        match folded.rsplit_once(separator) {
            Some((title, label)) if is_status(label) && words(title).next().is_some() => return title,
            _ => {}
        }
    }
    folded
}

fn without_notes(title: &str) -> String {
    spend(title.len());
    let mut kept = String::with_capacity(title.len());
    // The end of the title that was copied so far.
    let mut taken = 0;
    // The position where the first bracket after that is closed, and whether it holds a note. Both are computed once
    // for all brackets opened before it without a word between them.
    let (mut close, mut judged, mut is_note) = (0, 0, false);
    for (at, _) in title.match_indices(['[', '(']) {
        if at < taken {
            continue;
        }
        if close <= at {
            close = title[at..].find([']', ')']).map_or(title.len(), |end| at + end);
            spend(close - at);
            judged = at;
        }
        if judged == at || title[judged..at].contains(char::is_alphanumeric) {
            is_note = close < title.len() && begins_note(start(&title[at + 1..close], MAX_NOTE));
        }
        judged = at;
        kept.push_str(&title[taken..at]);
        kept.push_str(if is_note { " " } else { &title[at..=at] });
        taken = if is_note { close + 1 } else { at + 1 };
    }
    kept.push_str(&title[taken..]);
    kept
}

/// Returns `true` if a bracket with this beginning holds a note.
fn begins_note(inside: &str) -> bool {
    let folded = fold(inside);
    let text = words(&folded).take(4).collect::<Vec<_>>().join(" ");
    let text = ["published ", "see "].iter().find_map(|lead| text.strip_prefix(lead)).unwrap_or(&text);
    NOTES
        .iter()
        .any(|note| text.strip_prefix(note).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')))
}

/// Extracts the numbers of a title, sorted: digits, also within words as in `BRCA1`, Roman numerals from ii, number words
/// from two, and letters or numbers after `part` and similar words. Part 1 and part 2 of a work have nearly equal titles.
pub(crate) fn numbers(words: &[String]) -> Vec<String> {
    let mut previous = "";
    let mut found = Vec::new();
    for word in words.iter().flat_map(|word| alphabetic_parts(word)) {
        let number = value(word).filter(|number| {
            // `1c` is a number of a work only after `part` and similar words: `HbA(1c)` has one digit.
            let is_named = !matches!(word, "i" | "v" | "x" | "one" | "first")
                && number.bytes().all(|byte| byte.is_ascii_digit());
            is_named || PARTS.contains(&previous)
        });
        let is_letter = matches!(previous, "part" | "section") && word.chars().count() == 1;
        match number {
            Some(number) => found.push(number),
            None if is_letter => found.push(word.to_owned()),
            None => found.extend(digit_runs(word).map(str::to_owned)),
        }
        previous = word;
    }
    found.sort_unstable();
    found
}

/// The parts of a word between East Asian letters.
fn alphabetic_parts(word: &str) -> impl Iterator<Item = &str> {
    let (ascii, other) = if word.is_ascii() { (Some(word), "") } else { (None, word) };
    ascii.into_iter().chain(other.split(is_east_asian)).filter(|part| !part.is_empty())
}

/// The words of a title with digits in place of number words: `24` for `twenty four`, `1st` for `first`. The value is
/// empty for a title without number words.
pub(crate) fn in_digits(words: &[String]) -> Vec<String> {
    if !words.iter().any(|word| is_number_word(word)) {
        return Vec::new();
    }
    let mut digits: Vec<String> = Vec::with_capacity(words.len());
    // The value of the last word, if it is a number word that another one may continue.
    let mut open: Option<u32> = None;
    for word in words {
        let number = match (cardinal(word), open) {
            // `twenty four`, `one hundred`
            (Some(unit @ 1..=9), Some(tens)) if tens >= 20 && tens.is_multiple_of(10) => {
                Some((tens + unit, true))
            }
            (Some(100), Some(hundreds @ 1..=9)) => Some((100 * hundreds, true)),
            (Some(number), _) => Some((number, false)),
            _ => None,
        };
        open = number.map(|(number, _)| number);
        match number {
            Some((number, is_continued)) => {
                if is_continued {
                    digits.pop();
                }
                digits.push(number.to_string());
            }
            None => digits.push(ordinal(word).unwrap_or_else(|| word.clone())),
        }
    }
    digits
}

fn is_number_word(word: &str) -> bool {
    cardinal(word).is_some() || ordinal(word).is_some()
}

/// The value of `one` to `twenty`, of the tens and of `hundred`.
fn cardinal(word: &str) -> Option<u32> {
    const TENS: [&str; 8] = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
    const TEENS: [&str; 7] =
        ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen"];
    /// The lengths of these words.
    const LENGTHS: std::ops::RangeInclusive<usize> = 3..=9;
    if !LENGTHS.contains(&word.len())
        || !matches!(word.as_bytes(), [b'e' | b'f' | b'h' | b'n' | b'o' | b's' | b't', ..])
    {
        return None;
    }
    let at = |names: &[&str]| Some(u32::try_from(names.iter().position(|name| *name == word)?).ok()? + 1);
    at(&WORDS)
        .or_else(|| Some(at(&TEENS)? + 12))
        .or_else(|| Some(10 * (at(&TENS)? + 1)))
        .or_else(|| (word == "hundred").then_some(100))
}

/// The ordinal number of `first` to `tenth`, in digits.
fn ordinal(word: &str) -> Option<String> {
    if !matches!(word.as_bytes(), [b'e' | b'f' | b'n' | b's' | b't', ..]) {
        return None;
    }
    let number = ORDINALS.iter().position(|known| *known == word)? + 1;
    let end = ["st", "nd", "rd"].get(number - 1).copied().unwrap_or("th");
    Some(format!("{number}{end}"))
}

/// The numbers from 1.
const WORDS: [&str; 12] =
    ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
const ORDINALS: [&str; 10] =
    ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth"];

/// The runs of digits in a word, without leading zeros.
pub(crate) fn digit_runs(word: &str) -> impl Iterator<Item = &str> {
    // Most words have no digits.
    let word = if word.bytes().any(|byte| byte.is_ascii_digit()) { word } else { "" };
    word.split(|c: char| !c.is_ascii_digit()).filter(|run| !run.is_empty()).map(without_zeros)
}

/// The value of a number word, or of a Roman numeral, possibly with a letter: `4` for `iv`, `2a` for `iia` and `2a`.
pub(crate) fn value(word: &str) -> Option<String> {
    const ROMAN: [&str; 20] = [
        "i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv", "xv", "xvi",
        "xvii", "xviii", "xix", "xx",
    ];
    /// The number of letters of the longest name. Most words are longer, or begin with another letter.
    const LONGEST: usize = 7;
    let may_be_number = matches!(
        word.as_bytes(),
        [b'e' | b'f' | b'i' | b'n' | b'o' | b's' | b't' | b'v' | b'x' | b'0'..=b'9', ..]
    );
    if word.len() > LONGEST || !may_be_number {
        return None;
    }
    let at = |names: &[&str], name: &str| names.iter().position(|known| *known == name).map(|at| at + 1);
    if let Some(number) = at(&WORDS, word).or_else(|| at(&ORDINALS, word)).or_else(|| at(&ROMAN, word)) {
        return Some(number.to_string());
    }
    // A single letter before another one is mostly a word or an abbreviation: `via`, `xa`.
    let (roman, letter) = word.split_at(word.len().checked_sub(1).filter(|_| word.is_ascii())?);
    let is_decimal = !roman.is_empty() && roman.bytes().all(|byte| byte.is_ascii_digit());
    let number = if is_decimal {
        Some(without_zeros(roman).to_owned())
    } else {
        at(&ROMAN, roman).filter(|_| roman.len() > 1).map(|number| number.to_string())
    };
    number.filter(|_| matches!(letter, "a" | "b" | "c")).map(|number| number + letter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_in_capitals_are_no_stop_words() {
        for (title, words) in [
            ("Hepatitis A in Egyptian children", "hepatitis a egyptian children"),
            ("Prevalence of Hepatitis A in Children", "prevalence hepatitis a children"),
            ("Work disability of patients with AS", "work disability patients as"),
            ("Étude sur la vitamine A chez les enfants", "etude sur vitamine a chez enfants"),
            // Articles.
            ("A trial of zinc", "trial zinc"),
            ("Zinc in adults: A randomised trial", "zinc adults randomised trial"),
            ("Zinc in adults. A trial - A report", "zinc adults trial report"),
            ("Building A Better Test", "building better test"),
            ("Effects Of A Diet On Rats", "effects diet rats"),
            ("HEPATITIS A IN CHILDREN", "hepatitis children"),
            // Folding changes the words.
            ("Vitamin A and H<sub>2</sub>O in rats", "vitamin h2o rats"),
        ] {
            assert_eq!(Title::read(title).words.join(" "), words, "{title}");
        }
    }

    #[test]
    fn database_notes_are_removed_other_brackets_kept() {
        for (title, words) in [
            ("Zinc in adults [Erratum appears in Lancet 2010]", "zinc adults"),
            ("Zink bei Erwachsenen. [German].", "zink bei erwachsenen"),
            ("Zinc (see comment) in adults", "zinc adults"),
            ("Zinc (abstracted) [the ZINC trial] (x", "zinc abstracted zinc trial x"),
            ("[Zinc in adults]", "zinc adults"),
            ("[Erratum]", "erratum"),
            ("", ""),
        ] {
            assert_eq!(Title::read(title).words.join(" "), words);
        }
    }

    #[test]
    fn label_of_retracted_article_is_removed() {
        for title in [
            "RETRACTED: Zinc in adults",
            "Retracted article: zinc in adults",
            "*WITHDRAWN*: Zinc in adults",
            "Withdrawn - Zinc in adults",
            "TEMPORARY REMOVAL: Zinc in adults",
            "[RETRACTED] Zinc in adults",
            "[Retracted: zinc in adults]",
            "Zinc in adults [Retracted article]",
            "Zinc in adults (Withdrawn article)",
            "Zinc in adults: RETRACTED",
            "Zinc in adults - Retracted article",
        ] {
            let read = Title::read(title);
            assert_eq!(read.words.join(" "), "zinc adults", "{title}");
            assert!(!read.is_notice, "{title}");
        }
        for (title, words) in [
            ("Retracted articles: a review", "retracted articles review"),
            ("Retracted:", "retracted"),
            ("Withdrawn", "withdrawn"),
        ] {
            assert_eq!(Title::read(title).words.join(" "), words);
        }
    }

    #[test]
    fn notices_and_replies_are_recognized_by_beginning() {
        for title in [
            "Erratum: zinc",
            "Corrigendum to zinc",
            "Notice of retraction",
            "Retraction: RETRACTED: zinc",
            "Withdrawal: zinc",
            "Author correction: zinc",
            "Zinc in adults. Erratum",
            "Retraction of the article zinc",
            "Data from: zinc",
            "Expression of concern: zinc",
        ] {
            assert!(Title::read(title).is_notice, "{title}");
        }
        for title in [
            "Comment on: zinc",
            "Re: zinc",
            "Authors' reply",
            "Zinc: author's response",
            "Letter to the editor",
            "Invited commentary",
        ] {
            assert!(Title::read(title).is_reply, "{title}");
        }
        for title in [
            "Surgical correction of pectus excavatum: experience of a centre",
            "Correction of hyponatraemia",
            "Long-term use of zinc: strategies for withdrawal",
            "Eyelid retraction: a review",
        ] {
            assert!(!Title::read(title).is_notice, "{title}");
        }
        for title in [
            "Zinc in adults after a retraction",
            "Recovery",
            "Re-evaluation of zinc",
            "Responses to zinc",
            "Comment letters",
        ] {
            let title = Title::read(title);
            assert!(!title.is_notice && !title.is_reply, "{title:?}");
        }
    }

    #[test]
    fn numbers_distinguish_parts_and_phases() {
        for (title, expected) in [
            ("Zinc, part II: 12 months", "12 2"),
            ("Zinc, part two", "2"),
            ("Zinc, part B", "b"),
            ("Phase one trial of vitamin D", "1"),
            ("One trial of factor V", ""),
            ("锌治疗感冒第2部分", "2"),
            ("Update 3 of a review in six countries", "3 6"),
        ] {
            assert_eq!(numbers(&Title::read(title).words).join(" "), expected, "{title}");
        }
    }
}
