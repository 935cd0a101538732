//! Normalizes text for comparison: without case, accents, markup and punctuation.

use std::borrow::Cow;

use references::work::spend;
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::canonical_combining_class;

/// The maximum length of a recognized tag, in characters between its brackets: `<sup>`, `<span class="…">`.
const MAX_TAG: usize = 61;

/// Normalizes text: lower case, compatibility forms decomposed, accents removed, Greek letters and ligatures spelled
/// out, tags removed.
///
/// Character references are decoded twice, because databases that re-export another database's records encode them
/// again.
pub(crate) fn fold(text: &str) -> String {
    spend(text.len());
    let decoded = references::unescape(text);
    let decoded = references::unescape(&decoded);
    let text = without_tags(&decoded);
    let mut folded = String::with_capacity(text.len());
    let mut rest = &*text;
    while !rest.is_empty() {
        // Most text is ASCII, which needs only lower-casing. A combining accent does not compose with it at this point.
        let (plain, other) = rest.split_at(length(rest, true));
        let begun = folded.len();
        folded.push_str(plain);
        folded[begun..].make_ascii_lowercase();
        let (other, behind) = other.split_at(length(other, false));
        rest = behind;
        for c in other.nfkd().flat_map(char::to_lowercase) {
            if canonical_combining_class(c) == 0 {
                match spelt_out(c) {
                    Some(name) => folded.push_str(name),
                    None => folded.push(c),
                }
            }
        }
    }
    folded
}

/// The length in bytes of the leading run that is ASCII, or that is not.
fn length(text: &str, ascii: bool) -> usize {
    if ascii && text.is_ascii() {
        return text.len();
    }
    text.bytes().position(|byte| byte.is_ascii() != ascii).unwrap_or(text.len())
}

/// Splits text into runs of letters and digits.
pub(crate) fn words(folded: &str) -> impl Iterator<Item = &str> {
    words_and_rest(folded).map(|(word, _)| word)
}

/// Splits text into runs of letters and digits, each with the text behind it.
pub(crate) fn words_and_rest(folded: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = folded;
    std::iter::from_fn(move || {
        rest = &rest[run(rest, false)..];
        let (word, behind) = rest.split_at(run(rest, true));
        rest = behind;
        (!word.is_empty()).then_some((word, behind))
    })
}

/// The length in bytes of the leading run of letters and digits, or of other characters.
fn run(text: &str, of_words: bool) -> usize {
    let mut end = 0;
    loop {
        // Nearly all text is ASCII, which is classified byte by byte.
        let known = if of_words { &LETTERS } else { &OTHERS };
        let ascii = text.as_bytes()[end..].iter().position(|byte| !known[usize::from(*byte)]);
        end = ascii.map_or(text.len(), |ascii| end + ascii);
        match text[end..].chars().next() {
            Some(c) if !c.is_ascii() && c.is_alphanumeric() == of_words => end += c.len_utf8(),
            _ => return end,
        }
    }
}

/// ASCII bytes that are letters or digits, and ASCII bytes that are not.
const LETTERS: [bool; 256] = ascii(true);
const OTHERS: [bool; 256] = ascii(false);

const fn ascii(of_words: bool) -> [bool; 256] {
    let mut known = [false; 256];
    let mut byte = 0_u8;
    while byte.is_ascii() {
        known[byte as usize] = byte.is_ascii_alphanumeric() == of_words;
        byte += 1;
    }
    known
}

/// The first characters of a text.
pub(crate) fn start(text: &str, characters: usize) -> &str {
    match text.as_bytes().get(..characters) {
        None => text,
        Some(bytes) if bytes.is_ascii() => &text[..characters],
        Some(_) => text.char_indices().nth(characters).map_or(text, |(at, _)| &text[..at]),
    }
}

/// The last characters of a text.
pub(crate) fn end(text: &str, characters: usize) -> &str {
    match text.len().checked_sub(characters).map(|from| &text.as_bytes()[from..]) {
        None => text,
        Some(bytes) if bytes.is_ascii() => &text[text.len() - characters..],
        Some(_) => text.char_indices().rev().take(characters).last().map_or("", |(at, _)| &text[at..]),
    }
}

/// Returns `true` for a letter of Chinese, Japanese or Korean, which stands for a word or a syllable. Folding splits
/// Korean syllables, so that the first letter of each stands for the syllable.
pub(crate) fn is_east_asian(c: char) -> bool {
    is_syllable(c) || is_kana(c)
}

fn is_syllable(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{115F}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}' | '\u{20000}'..='\u{3FFFF}')
}

fn is_kana(c: char) -> bool {
    matches!(c, '\u{3041}'..='\u{30FF}' | '\u{31F0}'..='\u{31FF}')
}

/// The length of the East Asian part of a text, in letters of an alphabet: about two for an ideograph or a Korean
/// syllable, and one for a kana.
pub(crate) fn east_asian_length(folded: &str) -> usize {
    if folded.is_ascii() {
        return 0;
    }
    folded.chars().map(|c| if is_syllable(c) { 2 } else { usize::from(is_kana(c)) }).sum()
}

/// Returns `true` if both texts are known, and only one is mostly in the Latin alphabet.
pub(crate) fn has_other_script(one: &str, other: &str) -> bool {
    let is_latin = |text: &str| 2 * text.bytes().filter(u8::is_ascii).count() >= text.chars().count();
    spend(one.len() + other.len());
    !one.is_empty() && !other.is_empty() && is_latin(one) != is_latin(other)
}

/// Returns `true` if a text has words of another language, and none of English.
pub(crate) fn is_foreign(folded: &str) -> bool {
    let is_english =
        |word: &str| matches!(word, "the" | "of" | "and" | "for" | "with" | "by" | "from" | "to");
    let mut is_foreign = false;
    for word in words(folded) {
        if is_english(word) {
            return false;
        }
        is_foreign |= is_foreign_word(word);
    }
    is_foreign
}

#[rustfmt::skip]
fn is_foreign_word(word: &str) -> bool {
    matches!(
        word,
        "und" | "der" | "die" | "das" | "des" | "bei" | "mit" | "von" | "zur" | "im" | "de" | "la" | "le" | "el"
            | "los" | "las" | "du" | "les" | "et" | "del" | "di" | "dei" | "nel" | "con" | "para" | "em"
    )
}

/// Returns `true` for words that databases add, omit or translate, in the most common languages of titles.
#[rustfmt::skip]
pub(crate) fn is_stop_word(word: &str) -> bool {
    matches!(
        word,
        "a" | "an" | "the" | "of" | "and" | "or" | "in" | "on" | "for" | "to" | "with" | "by" | "from" | "at" | "as"
            | "is" | "are" | "be" | "its" | "their" | "into" | "via" | "versus" | "vs" | "und" | "der" | "die" | "das"
            | "des" | "de" | "la" | "le" | "el" | "los" | "las" | "du" | "et" | "en" | "zur" | "im" | "les" | "y"
            | "del" | "di" | "ein"
    )
}

/// Returns the leading words without stop words, up to `max` letters in total, so that the comparison is bounded for
/// any file.
pub(crate) fn significant_words(folded: &str, max: usize) -> Vec<String> {
    words_with_labels(folded, &[], max)
}

/// Returns the words of [`significant_words`], and the stop words at the positions `labels`.
pub(crate) fn words_with_labels(folded: &str, labels: &[usize], max: usize) -> Vec<String> {
    let mut letters = 0;
    let telling = words(folded).enumerate().filter(|(at, word)| !is_stop_word(word) || labels.contains(at));
    let bounded = telling.map(|(_, word)| word).take_while(|word| {
        letters += word.chars().count();
        letters <= max
    });
    bounded.map(str::to_owned).collect()
}

/// The first number in a text, without leading zeros. The result is empty if the text has no number.
pub(crate) fn first_number(folded: &str) -> String {
    let from = folded.trim_start_matches(|c: char| !c.is_ascii_digit());
    let digits = &from[..from.find(|c: char| !c.is_ascii_digit()).unwrap_or(from.len())];
    without_zeros(digits).to_owned()
}

/// Removes leading zeros; a single zero remains.
pub(crate) fn without_zeros(digits: &str) -> &str {
    let bare = digits.trim_start_matches('0');
    if bare.is_empty() { digits.get(..1).unwrap_or_default() } else { bare }
}

fn without_tags(text: &str) -> Cow<'_, str> {
    if !text.contains('<') {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        kept.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = tag(rest);
        if end == 0 {
            kept.push('<');
        }
        rest = &rest[end.max(1)..];
    }
    kept.push_str(rest);
    Cow::Owned(kept)
}

/// The length of the tag at the beginning of a text, or 0 if there is none, as in `p < 0.05`.
fn tag(text: &str) -> usize {
    let inner = text.strip_prefix('<').unwrap_or(text);
    let name = inner.strip_prefix('/').unwrap_or(inner);
    if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return 0;
    }
    let end = name.char_indices().take(MAX_TAG + 1).find(|(_, c)| matches!(c, '<' | '>'));
    match end {
        Some((at, '>')) => text.len() - name.len() + at + 1,
        _ => 0,
    }
}

/// The name of a Greek letter as a separate word, or the letters of a ligature.
fn spelt_out(c: char) -> Option<&'static str> {
    Some(match c {
        'α' => " alpha ",
        'β' => " beta ",
        'γ' => " gamma ",
        'δ' => " delta ",
        'ε' => " epsilon ",
        'ζ' => " zeta ",
        'η' => " eta ",
        'θ' => " theta ",
        'ι' => " iota ",
        'κ' => " kappa ",
        'λ' => " lambda ",
        'μ' => " mu ",
        'ν' => " nu ",
        'ξ' => " xi ",
        'π' => " pi ",
        'ρ' => " rho ",
        'σ' | 'ς' => " sigma ",
        'τ' => " tau ",
        'υ' => " upsilon ",
        'φ' => " phi ",
        'χ' => " chi ",
        'ψ' => " psi ",
        'ω' => " omega ",
        'ß' => "ss",
        'ø' => "o",
        'æ' => "ae",
        'œ' => "oe",
        'ł' => "l",
        'đ' => "d",
        'ı' => "i",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folded_words(text: &str) -> Vec<String> {
        words(&fold(text)).map(str::to_owned).collect()
    }

    #[test]
    fn case_accents_markup_and_encoding_are_ignored() {
        for (one, other) in [
            ("Überleben – EINE Studie.", "uberleben: eine studie"),
            ("H<sub>2</sub>O &amp;amp; CO<span class=\"x\">2</span>", "h2o & co2"),
            ("TNF-α and Δ9-THC", "TNF alpha and delta 9 THC"),
            ("5 µm", "5 μm"),
            ("Bøgh’s straße, İstanbul", "bogh's strasse istanbul"),
            ("ﬁbrosis", "fibrosis"),
            // An accent after an ASCII letter, two accents, and one at the beginning of the text.
            ("e\u{301}tude, a\u{323}\u{302}b \u{301}c", "étude ậb c"),
        ] {
            assert_eq!(folded_words(one), folded_words(other), "{one}");
        }
    }

    #[test]
    fn words_are_split_in_any_alphabet() {
        for text in ["", "a", "é", "–", "a–b", " zinc, 3é毛x — ٣ ", "été", "_a_é_", "x\u{301}y", "毛。泽"]
        {
            let runs = text.split(|c: char| !c.is_alphanumeric()).filter(|run| !run.is_empty());
            assert_eq!(words(text).collect::<Vec<_>>(), runs.collect::<Vec<_>>(), "{text}");
        }
    }

    #[test]
    fn start_keeps_whole_characters() {
        for (text, two) in
            [("", ""), ("a", "a"), ("ab", "ab"), ("abc", "ab"), ("éa", "éa"), ("aéb", "aé"), ("abé", "ab")]
        {
            assert_eq!(start(text, 2), two, "{text}");
        }
    }

    #[test]
    fn end_keeps_whole_characters() {
        for (text, two) in [
            ("", ""),
            ("a", "a"),
            ("ab", "ab"),
            ("abc", "bc"),
            ("aé", "aé"),
            ("béa", "éa"),
            ("éab", "ab"),
            ("é", "é"),
        ] {
            assert_eq!(end(text, 2), two, "{text}");
        }
        assert_eq!(end("é", 0), "");
    }

    #[test]
    fn text_resembling_tags_is_kept() {
        for (text, words) in [
            ("p < 0.05 and q > 1", &["p", "0", "05", "and", "q", "1"][..]),
            ("a <b", &["a", "b"]),
            ("<>", &[]),
            ("x<é>y", &["x", "e", "y"]),
        ] {
            assert_eq!(folded_words(text), words, "{text}");
        }
        let long = format!("a<b{}>c", "x".repeat(200));
        assert_eq!(folded_words(&long).len(), 3);
    }

    #[test]
    fn first_number_loses_leading_zeros() {
        for (text, number) in [("Vol. 012(3)", "12"), ("none", ""), ("000", "0"), ("7", "7")] {
            assert_eq!(first_number(text), number);
        }
    }

    #[test]
    fn significant_words_are_bounded() {
        assert_eq!(significant_words("the effect of zinc in adults", 100), ["effect", "zinc", "adults"]);
        assert_eq!(significant_words("effect zinc adults", 10), ["effect", "zinc"]);
    }
}
