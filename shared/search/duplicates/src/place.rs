//! Where a work appeared: pages, journal, identifiers.

use percent_encoding::percent_decode_str;

use crate::text::{first_number, fold, start, telling_words, without_zeros};

/// Most letters of a journal's name that are compared, and of a DOI.
const MOST_LETTERS: usize = 200;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// The first page, letters and number without leading zeros: `a295`, `e43268`; empty when there is none.
///
/// `21-Aug` is what a spreadsheet makes of 8-21 or 21-8, so it says nothing.
pub(crate) fn first_page(pages: &str) -> String {
    let folded = fold(pages);
    let text = folded.trim_matches(|c: char| !c.is_alphanumeric());
    if text.contains("no pagination") || text.contains("n.pag") || text.contains("n. pag") || text == "na" {
        return String::new();
    }
    let text = without_lead(text);
    let (letters, rest) = leading_letters(text);
    let digits = rest.trim_start_matches([' ', '.']);
    let number = &digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())];
    let is_date = letters.is_empty()
        && number.len() <= 2
        && digits[number.len()..]
            .strip_prefix('-')
            .is_some_and(|rest| MONTHS.iter().any(|month| rest.starts_with(month)));
    if number.is_empty() || is_date {
        return String::new();
    }
    format!("{letters}{}", without_zeros(number))
}

/// The last page in full: that of `221-8` is 228.
pub(crate) fn last_page(pages: &str) -> String {
    let folded = fold(pages).replace(|c| matches!(c, '\u{2010}'..='\u{2015}'), "-");
    let Some((before, after)) = folded.split_once('-') else { return String::new() };
    let before = before.trim_end();
    let stem = before.trim_end_matches(|c: char| c.is_ascii_digit());
    let first = &before[stem.len()..];
    let letters = &stem[stem.trim_end_matches(|c: char| c.is_ascii_lowercase()).len()..];
    let (_, rest) = leading_letters(after.trim_start_matches(['-', ' ']));
    let last = &rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())];
    if first.is_empty() || last.is_empty() {
        return String::new();
    }
    let (first, last) = (without_zeros(first), without_zeros(last));
    let kept = first.get(..first.len().saturating_sub(last.len())).unwrap_or_default();
    format!("{letters}{kept}{last}")
}

/// Without `p.`, `pages`, `article no.` and the like.
fn without_lead(text: &str) -> &str {
    const LEADS: [&str; 7] = ["pages", "page", "article", "art", "pp", "no", "p"];
    let lead = LEADS.iter().find_map(|lead| text.strip_prefix(lead));
    let Some(rest) = lead.filter(|rest| !rest.starts_with(|c: char| c.is_alphabetic())) else { return text };
    let rest = rest.trim_start_matches(['.', ' ']);
    let rest = rest.strip_prefix("no").filter(|rest| rest.starts_with(['.', ' '])).unwrap_or(rest);
    rest.trim_start_matches(['.', ' '])
}

/// Up to four letters at the front, and the rest.
fn leading_letters(text: &str) -> (&str, &str) {
    let end = text.bytes().take(4).take_while(u8::is_ascii_lowercase).count();
    text.split_at(end)
}

/// The words of a journal's name, without a place in brackets, a subtitle, a translation or a conference.
pub(crate) fn journal(name: &str) -> Vec<String> {
    let folded = fold(name);
    let conference = folded.match_indices("conference").find(|(at, word)| {
        folded[at + word.len()..].starts_with([':', '.']) && !folded[..*at].ends_with(char::is_alphanumeric)
    });
    let ends = [folded.find('('), folded.find(" = "), folded.find(" : "), conference.map(|(at, _)| at)];
    let end = ends.into_iter().flatten().min().unwrap_or(folded.len());
    let words = telling_words(&folded[..end], MOST_LETTERS);
    if words.is_empty() { telling_words(&folded, MOST_LETTERS) } else { words }
}

/// The ISSNs in a text, without hyphens, in upper case.
pub(crate) fn issns(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '-');
    parts.map(|part| part.replace('-', "").to_ascii_uppercase()).filter(|part| {
        let (digits, check) = part.split_at(part.len().min(7));
        digits.len() == 7
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && check.len() == 1
            && check.bytes().all(|byte| byte.is_ascii_digit() || byte == b'X')
    })
}

/// A DOI in lower case, without prefix, encoding and what follows it in a sentence; empty when there is none.
pub(crate) fn doi(text: &str) -> String {
    let decoded = percent_decode_str(text).decode_utf8_lossy().to_lowercase();
    let from = decoded.match_indices("10.").find_map(|(at, _)| {
        let registrant = decoded[at + 3..].bytes().take_while(u8::is_ascii_digit).count();
        let is_doi = (4..=9).contains(&registrant) && decoded[at + 3 + registrant..].starts_with('/');
        is_doi.then(|| &decoded[at..])
    });
    let doi = from.and_then(|from| from.split_whitespace().next()).unwrap_or_default();
    let doi = doi.trim_end_matches(['.', ',', ';', ')', ']']);
    start(doi, MOST_LETTERS).to_owned()
}

/// A DOI without the version that it names: those of a Cochrane review end in `.pub2`, `.pub3`.
pub(crate) fn without_version(doi: &str) -> &str {
    match doi.rsplit_once(".pub") {
        Some((review, version))
            if !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            review
        }
        _ => doi,
    }
}

/// A PubMed identifier or another number; empty when there is none.
pub(crate) fn number(text: &str) -> String {
    // Most are nothing but digits, which nothing folds.
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        first_number(text)
    } else {
        first_number(&fold(text))
    }
}

/// The beginning of an abstract: its first letters and digits, without a heading; none when there are fewer.
pub(crate) fn beginning(text: &str) -> Option<String> {
    /// Letters and digits that make a beginning: two sentences, which no other abstract has.
    const LETTERS: usize = 150;
    /// Those and the headings.
    const MORE: usize = LETTERS + 60;
    /// Most characters that are looked at for them, markup included.
    const LOOKED_AT: usize = 2_000;
    const HEADINGS: [&str; 8] =
        ["background", "objectives", "objective", "introduction", "purpose", "aims", "aim", "importance"];
    let folded = fold(start(text, LOOKED_AT));
    let letters: String = folded.chars().filter(|c| c.is_alphanumeric()).take(MORE).collect();
    if letters.chars().count() < LETTERS {
        return None;
    }
    let mut bare = letters.as_str();
    for heading in HEADINGS {
        bare = bare.strip_prefix(heading).unwrap_or(bare);
    }
    Some(start(bare, LETTERS).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_read_as_they_are_written() {
        for (pages, first, last) in [
            ("221-8", "221", "228"),
            ("0221-0228", "221", "228"),
            ("pp. 12–19", "12", "19"),
            ("A295-A301", "a295", "a301"),
            ("e43268", "e43268", ""),
            ("S12 - S19", "s12", "s19"),
            ("Article no. 17", "17", ""),
            ("21-Aug", "", ""),
            ("Aug-21", "", ""),
            ("no pagination", "", ""),
            ("\"52-4, 64\"", "52", "54"),
            ("xii", "", ""),
            ("é-9", "", ""),
            ("", "", ""),
        ] {
            assert_eq!((first_page(pages).as_str(), last_page(pages).as_str()), (first, last), "{pages}");
        }
    }

    #[test]
    fn journals_lose_what_follows_their_names() {
        for (name, words) in [
            ("The Lancet (London, England)", "lancet"),
            ("Praxis = Revue suisse", "praxis"),
            ("Diabetes. Conference: 70th Sessions of the Association", "diabetes"),
            ("Conference: Diabetes", "conference diabetes"),
            ("Nature : international weekly", "nature"),
        ] {
            assert_eq!(journal(name).join(" "), words, "{name}");
        }
    }

    #[test]
    fn identifiers_are_found_in_what_is_around_them() {
        for (text, expected) in [
            ("https://doi.org/10.1000%2FAbc.", "10.1000/abc"),
            ("doi: 10.10 10.1000/x(1) and", "10.1000/x(1"),
            ("11.1000/x", ""),
        ] {
            assert_eq!(doi(text), expected);
        }
        assert_eq!(without_version("10.1002/x.cd1.pub12"), "10.1002/x.cd1");
        assert_eq!(without_version("10.1002/x.publication"), "10.1002/x.publication");
        let found: Vec<_> = issns("1234-567X (print) 12345678; 978-0-123 9780471972037").collect();
        assert_eq!(found, ["1234567X", "12345678"]);
    }

    #[test]
    fn an_abstract_begins_after_its_heading_and_is_long_enough_or_none() {
        let text = "zinc ".repeat(60);
        assert_eq!(beginning(&format!("BACKGROUND: {text}")), beginning(&text));
        assert_eq!(beginning("No abstract available."), None);
    }
}
