//! Parses where a work appeared: pages, journal, identifiers.

use percent_encoding::percent_decode_str;
use references::Reference;

use crate::kind::ARTICLE;
use crate::text::{first_number, fold, significant_words, start, without_zeros, words};

/// The maximum number of letters of a journal's name or a DOI that are compared.
const MAX_LETTERS: usize = 200;

const MONTHS: [&str; 12] =
    ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];

/// Returns the first page as letters and a number without leading zeros, such as `a295` or `e43268`. The result is
/// empty without a first page.
///
/// `21-Aug` is a spreadsheet's misinterpretation of 8-21 or 21-8, and is ignored.
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

/// The complete last page: for `221-8`, it is 228.
pub(crate) fn last_page(pages: &str) -> String {
    let folded = fold(pages).replace(|c| matches!(c, '\u{2010}'..='\u{2015}'), "-");
    let Some((before, after)) = folded.split_once('-') else { return String::new() };
    // `3S-11S`
    let before = before.trim_end().trim_end_matches(|c: char| c.is_ascii_lowercase());
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

/// Removes `p.`, `pages`, `article no.` and similar prefixes.
fn without_lead(text: &str) -> &str {
    const LEADS: [&str; 7] = ["pages", "page", "article", "art", "pp", "no", "p"];
    let lead = LEADS.iter().find_map(|lead| text.strip_prefix(lead));
    let Some(rest) = lead.filter(|rest| !rest.starts_with(|c: char| c.is_alphabetic())) else { return text };
    let rest = rest.trim_start_matches(['.', ' ']);
    let number = ["no", "id"].iter().find_map(|label| rest.strip_prefix(label));
    let rest = number.filter(|rest| rest.starts_with(['.', ' ', ':'])).unwrap_or(rest);
    rest.trim_start_matches(['.', ' ', ':'])
}

/// Splits off up to four leading letters.
fn leading_letters(text: &str) -> (&str, &str) {
    let end = text.bytes().take(4).take_while(u8::is_ascii_lowercase).count();
    text.split_at(end)
}

/// The words of a journal's name, without a place in brackets, subtitle, translation or conference. The value is empty
/// for a link, which registrations of trials have instead.
pub(crate) fn journal(name: &str) -> Vec<String> {
    if name.starts_with("http") {
        return Vec::new();
    }
    let folded = fold(name);
    let end = suffix(&folded).into_iter().chain(conference(&folded)).min().unwrap_or(folded.len());
    let words = significant_words(&folded[..end], MAX_LETTERS);
    if words.is_empty() { significant_words(&folded, MAX_LETTERS) } else { words }
}

/// The position of a place in brackets, a subtitle or a translation in a journal's name.
fn suffix(folded: &str) -> Option<usize> {
    // The names of sister journals follow a colon, too: `Circulation: Heart Failure`.
    const SUBTITLES: [&str; 6] =
        [" : ", ": the ", ": an ", ": official ", ": journal of ", ": international journal "];
    // Most names have none of these marks.
    if !folded.contains(['(', '=', ':']) {
        return None;
    }
    let marks = [folded.find('('), folded.find(" = ")].into_iter().flatten();
    marks.chain(SUBTITLES.iter().filter_map(|start| folded.find(start))).min()
}

/// The position of `Conference:` in a journal's name.
fn conference(folded: &str) -> Option<usize> {
    let mut found = folded.match_indices("conference");
    let found = found.find(|(at, word)| {
        folded[at + word.len()..].starts_with([':', '.']) && !folded[..*at].ends_with(char::is_alphanumeric)
    });
    found.map(|(at, _)| at)
}

/// Returns `true` for the name of a server for preprints: `medRxiv`, `SSRN Electronic Journal`, `Preprints.org`.
pub(crate) fn is_preprint_server(journal: &[String]) -> bool {
    const WORDS: [&str; 4] = ["preprint", "preprints", "ssrn", "chinaxiv"];
    let is_server = |word: &String| word.ends_with("rxiv") || WORDS.contains(&word.as_str());
    journal.iter().any(is_server) || *journal == ["research", "square"]
}

/// Returns `true` for a DOI that a server for preprints registered.
pub(crate) fn is_preprint_doi(doi: &str) -> bool {
    const PREFIXES: [&str; 10] = [
        "10.2139/ssrn",
        "10.2196/preprints",
        "10.20944/preprints",
        "10.21203/rs.",
        "10.26434/chemrxiv",
        "10.31234/",
        "10.36227/techrxiv",
        "10.48550/arxiv",
        "10.64898/",
        "10.7287/peerj.preprints",
    ];
    PREFIXES.iter().any(|prefix| doi.starts_with(prefix))
        || doi.contains("/osf.io/")
        // The publisher of bioRxiv and medRxiv also has journals, whose DOIs begin with letters.
        || doi.strip_prefix("10.1101/").is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
}

/// Finds the ISSNs in a text, and returns them without hyphens in upper case.
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

/// Extracts a DOI in lower case, without prefix, encoding and any text after it. The result is empty if the text
/// contains no DOI.
pub(crate) fn doi(text: &str) -> String {
    let decoded = percent_decode_str(text).decode_utf8_lossy().to_lowercase();
    let from = decoded.match_indices("10.").find_map(|(at, _)| {
        let registrant = decoded[at + 3..].bytes().take_while(u8::is_ascii_digit).count();
        let is_doi = (4..=9).contains(&registrant) && decoded[at + 3 + registrant..].starts_with('/');
        is_doi.then(|| &decoded[at..])
    });
    let doi = from.and_then(|from| from.split_whitespace().next()).unwrap_or_default();
    let doi = doi.trim_end_matches(['.', ',', ';', ')', ']']);
    // The DOIs of registrations in ISRCTN contain the number of the trial, which other registers also state.
    let doi = doi.strip_prefix("10.1186/").filter(|number| number.starts_with("isrctn")).unwrap_or(doi);
    // CENTRAL gives its own DOI to the records of other databases.
    let doi = if doi.starts_with("10.1002/central/") { "" } else { doi };
    start(doi, MAX_LETTERS).to_owned()
}

/// Removes the version from a DOI: DOIs of Cochrane reviews end in `.pub2`, `.pub3`.
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

/// The maximum number of letters of an issue that are compared.
const MAX_ISSUE: usize = 60;

/// The months of an issue, from 0 for January: `Jan-Feb`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Months {
    first: usize,
    last: usize,
}

impl Months {
    /// The months that a normalized text names.
    fn of(folded: &str) -> Option<Self> {
        let mut named = words(folded).flat_map(without_digits).filter_map(Self::find);
        let first = named.next()?;
        Some(Self { first, last: named.last().unwrap_or(first) })
    }

    fn find(word: &str) -> Option<usize> {
        MONTHS.iter().position(|month| word.starts_with(month))
    }

    /// The part of an issue.
    fn part(self) -> String {
        let (first, last) = (MONTHS[self.first], MONTHS[self.last]);
        if first == last { format!("{MONTH}{first}") } else { format!("{MONTH}{first}-{last}") }
    }

    /// The months in the parts of an issue.
    pub(crate) fn among(parts: &[String]) -> Option<Self> {
        parts.iter().find_map(|part| Self::of(part.strip_prefix(MONTH)?))
    }

    /// The number of months. A range may continue in the next year.
    fn length(self) -> usize {
        (self.last + MONTHS.len() - self.first) % MONTHS.len() + 1
    }

    /// Returns `true` if a month belongs to both.
    pub(crate) fn overlap(self, other: Self) -> bool {
        let has =
            |range: Self, month: usize| (month + MONTHS.len() - range.first) % MONTHS.len() < range.length();
        has(self, other.first) || has(other, self.first)
    }

    /// Returns `true` if this is the number of the issue in a volume that begins in January: 2 for `Mar-Apr` and `Feb`.
    pub(crate) fn have_number(self, issue: &str) -> bool {
        let length = self.length();
        let is_regular = MONTHS.len().is_multiple_of(length) && self.first.is_multiple_of(length);
        is_regular && issue.parse() == Ok(self.first / length + 1)
    }
}

/// The kind of the months in the parts of an issue.
const MONTH: &str = "month ";

/// Returns `true` for the part of an issue that names its months.
pub(crate) fn is_month(part: &str) -> bool {
    part.starts_with(MONTH)
}

/// Extracts the number of an issue. The number directly before or after a month is a day or a year. The text is empty
/// if the record has none.
pub(crate) fn issue(text: &str) -> String {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return first_number(text);
    }
    let folded = fold(text);
    if Months::of(start(&folded, MAX_ISSUE)).is_none() {
        return first_number(&folded);
    }
    let tokens: Vec<&str> = start(&folded, MAX_ISSUE).split_whitespace().collect();
    let is_month = |token: Option<&&str>| token.is_some_and(|token| Months::find(token).is_some());
    let is_date = |at: usize, token: &str| {
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let is_year = token.len() == 4 && (token.starts_with("19") || token.starts_with("20"));
        let is_behind_month = at > 0 && is_month(tokens.get(at - 1));
        is_number(token) && (is_year || is_behind_month || is_month(tokens.get(at + 1)))
            || is_behind_month && is_number(token.trim_end_matches(','))
    };
    let mut numbers = tokens.iter().enumerate().filter(|(at, token)| !is_date(*at, token));
    numbers
        .find_map(|(_, token)| Some(first_number(token)).filter(|number| !number.is_empty()))
        .unwrap_or_default()
}

/// The parts of an issue other than a plain number: season, month, part, supplement and letter, each with its kind. Two
/// issues differ if they have different parts of one kind.
pub(crate) fn issue_parts(text: &str) -> Vec<String> {
    const MAX_PARTS: usize = 4;
    const SEASONS: [&str; 5] = ["spring", "summer", "autumn", "fall", "winter"];
    // Most issues are plain numbers.
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Vec::new();
    }
    let folded = fold(start(text, MAX_ISSUE));
    let mut named = "";
    let mut parts: Vec<String> = Months::of(&folded).map(Months::part).into_iter().collect();
    for word in words(&folded).flat_map(without_digits) {
        let is_number = word.bytes().all(|byte| byte.is_ascii_digit());
        let part = match named {
            _ if SEASONS.contains(&word) => {
                format!("season {}", if word == "fall" { "autumn" } else { word })
            }
            _ if Months::find(word).is_some() => String::new(),
            "pt" | "part" if is_number || word.len() == 1 => format!("part {}", without_zeros(word)),
            "s" | "suppl" | "supp" | "supplement" if is_number || word.len() == 1 => {
                format!("suppl {}", without_zeros(word))
            }
            "" if word.len() == 1 && !is_number && word != "s" => format!("letter {word}"),
            _ => String::new(),
        };
        let is_first = |part: &String| {
            part.split(' ').next().is_some_and(|kind| !parts.iter().any(|known| known.starts_with(kind)))
        };
        if !part.is_empty() && is_first(&part) {
            parts.push(part);
        }
        named = if is_number { "" } else { word };
    }
    parts.truncate(MAX_PARTS);
    parts
}

/// Splits a word between its letters and digits: `s1`, `6a`.
fn without_digits(word: &str) -> impl Iterator<Item = &str> {
    let is_digit = word.starts_with(|c: char| c.is_ascii_digit());
    let at = word.find(|c: char| c.is_ascii_digit() != is_digit).unwrap_or(word.len());
    let (first, rest) = word.split_at(at);
    [first, rest].into_iter().filter(|part| !part.is_empty())
}

/// Returns `true` for an abstract of a meeting, as far as its journal, type, issue or page shows. Articles of a
/// supplement are not distinguished from these. A conference paper without pages may be an article in a journal.
pub(crate) fn is_meeting_abstract(reference: &Reference, page: &str) -> bool {
    const MAX_TYPE: usize = 200;
    // Most values are plain numbers, or the usual type.
    let is_plain = |text: &str| text == ARTICLE || text.bytes().all(|byte| byte.is_ascii_digit());
    let stated = |text: &str| match text {
        plain if is_plain(plain) => String::new(),
        other => start(other, MAX_TYPE).to_ascii_lowercase(),
    };
    let of = |value: &Option<String>| stated(value.as_deref().unwrap_or_default());
    let is_meeting = |text: &str| text.contains("conference") || text.contains("meeting");
    let is_paper = |text: &str| ["paper", "article"].iter().any(|word| text.contains(word));
    let is_meeting_type =
        |text: &str| text.split(';').any(|kind| is_meeting(kind) && !(page.is_empty() && is_paper(kind)));
    let issue = of(&reference.issue);
    let is_supplement =
        issue.strip_prefix('s').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_lettered = page.starts_with(['s', 'a']) && page[1..].bytes().all(|byte| byte.is_ascii_digit());
    let mut kinds = reference.extra.get("M3").into_iter().flatten();
    is_lettered
        || is_supplement
        || issue.contains("suppl")
        || is_meeting(&issue)
        || is_meeting_type(&of(&reference.r#type))
        || kinds.any(|kind| is_meeting_type(&stated(kind)))
        || conference(&of(&reference.journal)).is_some()
}

/// Extracts a PubMed identifier or another number. The result is empty if the text contains no number.
pub(crate) fn number(text: &str) -> String {
    // Most values consist of digits only, which need no normalization.
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        first_number(text)
    } else {
        first_number(&fold(text))
    }
}

/// The beginning of an abstract: its first letters and digits, without a heading. `None` if the abstract is too short.
pub(crate) fn beginning(text: &str) -> Option<String> {
    /// The number of letters and digits in a beginning: two sentences, which distinguish abstracts.
    const LETTERS: usize = 150;
    /// The number of letters and digits that are collected, with an allowance for the heading that is removed.
    const MORE: usize = LETTERS + 60;
    /// The maximum number of characters that are scanned, including markup.
    const MAX_SCANNED: usize = 2_000;
    const HEADINGS: [&str; 8] =
        ["background", "objectives", "objective", "introduction", "purpose", "aims", "aim", "importance"];
    let folded = fold(start(text, MAX_SCANNED));
    let (mut letters, mut count) = (String::with_capacity(2 * MORE), 0);
    for word in words(&folded) {
        letters.push_str(word);
        count += word.chars().count();
        if count >= MORE {
            break;
        }
    }
    if count < LETTERS {
        return None;
    }
    let mut bare = start(&letters, MORE);
    for heading in HEADINGS {
        bare = bare.strip_prefix(heading).unwrap_or(bare);
    }
    Some(start(bare, LETTERS).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_parsed_from_any_notation() {
        for (pages, first, last) in [
            ("221-8", "221", "228"),
            ("0221-0228", "221", "228"),
            ("pp. 12–19", "12", "19"),
            ("A295-A301", "a295", "a301"),
            ("e43268", "e43268", ""),
            ("S12 - S19", "s12", "s19"),
            ("3S-11S", "3", "11"),
            ("Article no. 17", "17", ""),
            ("Article ID 123456", "123456", ""),
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
    fn issues_have_parts_of_several_kinds() {
        for (issue, parts) in [
            ("12", ""),
            ("Spring", "season spring"),
            ("Fall 2", "season autumn"),
            ("Jan-Feb", "month jan-feb"),
            ("3 (March)", "month mar"),
            ("6 Pt 1", "part 1"),
            ("Suppl A", "suppl a"),
            ("S1", "suppl 1"),
            ("15 SUPPL. 1", "suppl 1"),
            ("3 Suppl", ""),
            ("6A", "letter a"),
        ] {
            assert_eq!(issue_parts(issue).join(", "), parts, "{issue}");
        }
    }

    #[test]
    fn types_show_abstracts_of_meetings() {
        let stated = |kind: &str, page: &str| {
            is_meeting_abstract(&Reference { r#type: Some(kind.into()), ..Reference::default() }, page)
        };
        for kind in ["Conference Abstract", "Journal Article; Meeting Abstract", "Conference Proceeding"] {
            assert!(stated(kind, "") && stated(kind, "12"), "{kind}");
        }
        for kind in ["Conference Paper", "Article; Conference Paper", "conference article"] {
            assert!(!stated(kind, "") && stated(kind, "12"), "{kind}");
        }
    }

    #[test]
    fn journal_names_lose_suffixes() {
        for (name, words) in [
            ("The Lancet (London, England)", "lancet"),
            ("Praxis = Revue suisse", "praxis"),
            ("Diabetes. Conference: 70th Sessions of the Association", "diabetes"),
            ("Conference: Diabetes", "conference diabetes"),
            ("Nature : international weekly", "nature"),
            ("BJOG: An International Journal of Obstetrics and Gynaecology", "bjog"),
            ("Circulation: Heart Failure", "circulation heart failure"),
        ] {
            assert_eq!(journal(name).join(" "), words, "{name}");
        }
    }

    #[test]
    fn preprints_are_recognized_by_server() {
        for name in
            ["medRxiv : the preprint server", "SSRN Electronic Journal", "Preprints.org", "Research Square"]
        {
            assert!(is_preprint_server(&journal(name)), "{name}");
        }
        assert!(!is_preprint_server(&journal("Research in Nursing")));
        assert!(is_preprint_doi("10.1101/2020.01.01.20000001") && !is_preprint_doi("10.1101/gr.1"));
    }

    #[test]
    fn identifiers_are_found_within_text() {
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
    fn abstract_beginning_skips_heading_and_needs_length() {
        let text = "zinc ".repeat(60);
        assert_eq!(beginning(&format!("BACKGROUND: {text}")), beginning(&text));
        assert_eq!(beginning("No abstract available."), None);
    }
}
