//! Words of a text, in the form in which they are compared: lower case, without diacritics.

use unicode_normalization::char::{canonical_combining_class, decompose_compatible};

/// The maximum length of a word in bytes. The rest of a longer word is ignored.
const MAX_WORD_BYTES: usize = 64;

/// Calls `each` for each word of a text, in order. `word` is a buffer.
///
/// A word is a run of letters and digits. Each character of a script without spaces between words, such as Chinese and
/// Japanese, is a word.
pub(super) fn each_word(text: &str, word: &mut String, mut each: impl FnMut(&str)) {
    word.clear();
    for c in text.chars() {
        if c.is_ascii_alphanumeric() {
            push(c.to_ascii_lowercase(), word);
        } else if c.is_ascii() {
            end(word, &mut each);
        } else {
            decompose_compatible(c, |part| {
                for c in part.to_lowercase() {
                    push_other(c, word, &mut each);
                }
            });
        }
    }
    end(word, &mut each);
}

/// Adds a decomposed character. A diacritic is ignored.
fn push_other(c: char, word: &mut String, each: &mut impl FnMut(&str)) {
    if canonical_combining_class(c) != 0 {
        return;
    }
    if let Some(letters) = plain(c) {
        letters.chars().for_each(|c| push(c, word));
    } else if is_word(c) {
        end(word, each);
        push(c, word);
        end(word, each);
    } else if c.is_alphanumeric() {
        push(c, word);
    } else {
        end(word, each);
    }
}

fn push(c: char, word: &mut String) {
    if word.len() + c.len_utf8() <= MAX_WORD_BYTES {
        word.push(c);
    }
}

fn end(word: &mut String, each: &mut impl FnMut(&str)) {
    if !word.is_empty() {
        each(word);
        word.clear();
    }
}

/// Returns the plain letters of a letter that Unicode does not decompose.
fn plain(c: char) -> Option<&'static str> {
    Some(match c {
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        'ø' => "o",
        'ł' => "l",
        'đ' | 'ð' => "d",
        'þ' => "th",
        'ı' => "i",
        _ => return None,
    })
}

/// Returns `true` for characters that are words: ideographs, hiragana and katakana.
fn is_word(c: char) -> bool {
    matches!(c, '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{30ff}' | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}'
        | '\u{4e00}'..='\u{9fff}' | '\u{20000}'..='\u{3ffff}')
        && c.is_alphanumeric()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        let mut words = Vec::new();
        each_word(text, &mut String::new(), |word| words.push(word.to_owned()));
        words
    }

    #[test]
    fn words_are_lower_case_and_without_diacritics() {
        assert_eq!(
            words("Crohn’s disease (n=12), COVID-19"),
            ["crohn", "s", "disease", "n", "12", "covid", "19"]
        );
        assert_eq!(
            words("Ménière, Ångström, Straße, Łódź, ŒUVRE"),
            ["meniere", "angstrom", "strasse", "lodz", "oeuvre"]
        );
        assert_eq!(words("e\u{301}tude ﬁne x²"), ["etude", "fine", "x2"]);
        assert_eq!(words("Ελλάδα МОСКВА"), ["ελλαδα", "москва"]);
    }

    #[test]
    fn characters_of_scripts_without_spaces_are_words() {
        assert_eq!(words("新型コロナ2019年"), ["新", "型", "コ", "ロ", "ナ", "2019", "年"]);
        assert_eq!(words("がん"), words("か\u{3099}ん"));
    }

    #[test]
    fn long_word_is_cut_off() {
        let long = "ab".repeat(MAX_WORD_BYTES);
        assert_eq!(words(&long), [&long[..MAX_WORD_BYTES]]);
        assert_eq!(words(&"é".repeat(1_000)), ["e".repeat(MAX_WORD_BYTES)]);
        assert!(words(" +- \" \u{301} ").is_empty());
    }
}
