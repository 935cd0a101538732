//! Parses DOIs and PubMed identifiers.

use std::borrow::Cow;

use crate::work::spend;

/// Parses a PubMed identifier: up to nine digits after any label. Spreadsheets change them to `123.0`.
pub(super) fn pmid(value: &str) -> Option<String> {
    let value = value.trim();
    if value.starts_with("http") {
        return pmid_in_url(value);
    }
    let has = |label: &&str| value.get(..label.len()).is_some_and(|found| found.eq_ignore_ascii_case(label));
    let label = ["PMID", "PUBMED"].into_iter().find(has);
    let value = label.map_or(value, |label| value[label.len()..].trim_start_matches([':', ' ', '-']));
    // Ovid adds a link in brackets.
    let value = value.split_once(" [http").map_or(value, |(value, _)| value);
    let value = value.strip_suffix(".0").unwrap_or(value);
    let whole = from_exponent(value);
    let value = whole.as_deref().unwrap_or(value);
    let digits = (1..=8).contains(&value.len()) && value.bytes().all(|byte| byte.is_ascii_digit());
    // Programs write 0 for a missing number.
    digits.then(|| value.trim_start_matches('0').to_owned()).filter(|value| !value.is_empty())
}

/// A number that R or a spreadsheet wrote with an exponent and all digits: `3.0123456E7`, `3.0123456e+07`.
fn from_exponent(value: &str) -> Option<String> {
    let (number, exponent) = value.split_once(['E', 'e'])?;
    let (first, rest) = number.split_once('.')?;
    let exponent: usize = exponent.trim_start_matches('+').parse().ok()?;
    let is_whole = first.len() == 1 && rest.len() == exponent;
    is_whole.then(|| format!("{first}{rest}"))
}

/// Returns `true` for a number that may also count the records of the file.
pub(super) fn running_number(value: &str) -> bool {
    value.len() < 5 && value.bytes().all(|byte| byte.is_ascii_digit())
}

/// The beginnings of links to PubMed, in front of the identifier.
const PUBMED_LINKS: [&str; 9] = [
    "pubmed.ncbi.nlm.nih.gov/",
    "ncbi.nlm.nih.gov/pubmed/",
    "ncbi.nlm.nih.gov/m/pubmed/",
    "ncbi.nlm.nih.gov/pubmed?term=",
    "pubmed.gov/",
    "ncbi.nlm.nih.gov/entrez/query.fcgi?cmd=retrieve&db=pubmed&dopt=citation&list_uids=",
    "europepmc.org/abstract/med/",
    "europepmc.org/article/med/",
    "europepmc.org/med/",
];
/// The parameters of links by Ovid and EBSCO whose database is MEDLINE. Ovid adds segments and years to the names.
const MEDLINE_LINKS: [&str; 11] = [
    "d=med",
    "d=pmed",
    "d=prem",
    "d=pmnm",
    "d=ppez",
    "d=mesz",
    "db=cmedm",
    "db=mdc",
    "db=mnh",
    "db=mdl",
    "db=medline",
];

/// Extracts the PubMed identifier from a link to PubMed, or to MEDLINE on another platform.
pub(super) fn pmid_in_url(url: &str) -> Option<String> {
    let url = front(url.trim());
    let is_link =
        url.get(..4).is_some_and(|start| start.eq_ignore_ascii_case("http")) || url.starts_with("www.");
    if !is_link || !spend(url.len()) {
        return None;
    }
    let url = unproxied(url.to_ascii_lowercase());
    let number = |rest: &str| {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let ends = rest[digits..].bytes().next().is_none_or(|byte| !byte.is_ascii_alphanumeric());
        if ends { pmid(&rest[..digits]) } else { None }
    };
    let may_be_pubmed = url.contains("pubmed") || url.contains("/med/");
    if may_be_pubmed
        && let Some(link) =
            PUBMED_LINKS.iter().find_map(|link| url.find(link).map(|at| &url[at + link.len()..]))
    {
        return number(link.strip_prefix("?term=").unwrap_or(link));
    }
    let (page, parameters) = url.split_once('?')?;
    if page.contains("ncbi.nlm.nih.gov") && url.contains("pubmed") {
        let names = ["list_uids=", "term=", "uid="];
        return parameters
            .split('&')
            .find_map(|part| number(names.iter().find_map(|name| part.strip_prefix(name))?));
    }
    let is_medline =
        parameters.split('&').any(|part| MEDLINE_LINKS.iter().any(|link| part.starts_with(link)));
    parameters.split('&').filter(|_| is_medline).find_map(|part| number(part.strip_prefix("an=")?))
}

/// Restores the host in a link through the proxy of a library, which replaces its full stops by hyphens.
fn unproxied(url: String) -> String {
    const HOST: &str = "-nlm-nih-gov.";
    let Some(at) = url.find(HOST) else { return url };
    let start = url.find("://").map_or(0, |at| at + 3);
    let path = url[at..].find('/').map_or("", |slash| &url[at + slash..]);
    let host = url.get(start..at + HOST.len() - 1).unwrap_or_default();
    format!("https://{}{path}", host.replace('-', "."))
}

/// The letters that CINAHL writes before a PMID.
pub(super) const NLM: &str = "NLM";

/// Finds `PMID: 42` in a note, unless the note cites another work.
pub(super) fn labelled_pmid(note: &str) -> Option<String> {
    /// Without a colon, the number has to be longer than the numbers of list items.
    const MIN_DIGITS: usize = 5;
    let note = front(note);
    if !spend(note.len()) {
        return None;
    }
    let lower = note.to_ascii_lowercase();
    ["pmid", "pubmed id", "pubmedid", "pubmed:"].into_iter().find_map(|label| {
        let at = lower.find(label)?;
        let is_word = lower[..at].chars().next_back().is_none_or(|before| !before.is_alphanumeric());
        if !is_word || cites(&note[..at]) {
            return None;
        }
        let rest = &note[at + label.len()..];
        let number = rest.trim_start_matches([':', '=', '#', '-', ' ']);
        let number = number.strip_prefix(NLM).unwrap_or(number);
        let digits = number.bytes().take_while(u8::is_ascii_digit).count();
        let is_marked = label.ends_with(':') || rest.trim_start().starts_with(':');
        pmid(&number[..digits]).filter(|_| is_marked || digits >= MIN_DIGITS)
    })
}

/// Returns `true` if a note before an identifier refers to another work: `Comment in: BMJ`, `Republished from`.
pub(super) fn cites(before: &str) -> bool {
    #[rustfmt::skip]
    const CITES: [&str; 10] = [
        "omment", "rratum", "ee also", "pdate", "etract", "eply", "epublish", "elated", "upplement to", "eferences",
    ];
    CITES.iter().any(|word| before.contains(word))
}

/// Finds `DOI: 10.5555/a` in a note, unless the note cites another work.
pub(super) fn labelled_doi(note: &str) -> Option<String> {
    let note = front(note);
    ["DOI:", "doi:", "Doi:"].into_iter().find_map(|label| {
        let at = note.find(label)?;
        if !spend(at) || cites(&note[..at]) {
            return None;
        }
        let rest = note[at + label.len()..].trim_start();
        doi(rest.split([' ', ';']).next()?)
    })
}

/// The number of bytes of a value that are searched for a DOI or a citation.
const MAX_SEARCHED: usize = 4096;

/// The maximum length of a DOI. Real ones have fewer than 200 bytes.
const MAX_DOI: usize = 500;
/// The maximum length of a DOI's registrant with its subdivisions. Without this limit, the search for the slash would
/// pass through all later beginnings of a DOI.
const MAX_REGISTRANT: usize = 64;
/// Brackets, which are part of a DOI only in pairs.
const PAIRS: [(char, char); 4] = [('(', ')'), ('[', ']'), ('{', '}'), ('<', '>')];

/// The part of a value that is searched.
pub(super) fn front(value: &str) -> &str {
    &value[..value.floor_char_boundary(MAX_SEARCHED)]
}

/// Extracts a DOI from the text around it, in lower case, because DOIs are case-insensitive.
pub(super) fn doi(value: &str) -> Option<String> {
    // A template of a publisher: `10.1177/tobeassigned`.
    if value.trim_end().ends_with("tobeassigned") {
        return None;
    }
    if let Some(doi) = plain_doi(value) {
        return Some(doi);
    }
    let value = front(value);
    let is_link = value.trim_start().get(..4).is_some_and(|start| start.eq_ignore_ascii_case("http"));
    let decoded = if value.contains('%') { Cow::Owned(percent_decoded(value)) } else { Cow::Borrowed(value) };
    let decoded = if decoded.contains(|c| is_invisible(c) || is_dash(c)) {
        let visible = decoded.chars().filter(|c| !is_invisible(*c));
        Cow::Owned(visible.map(|c| if is_dash(c) { '-' } else { c }).collect())
    } else {
        decoded
    };
    let decoded = if decoded.contains('\\') { Cow::Owned(without_escapes(&decoded)) } else { decoded };
    let value = decoded.as_ref();
    if !spend(value.len()) {
        return None;
    }
    let found = if is_doi(value) {
        value
    } else {
        value.match_indices("10.").map(|(at, _)| &value[at..]).find(|rest| is_doi(rest))?
    };
    let whole = whole(found)?;
    let doi = without_next(&whole);
    // A sign of number is part of older DOIs.
    let doi = if is_link { &doi[..doi.find(['?', '#']).unwrap_or(doi.len())] } else { doi };
    let doi = trim_doi(without_version(without_page(doi))).to_lowercase();
    is_doi(&doi).then_some(doi)
}

/// Returns `true` for characters that web pages insert to allow or prevent line breaks.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}' | '\u{feff}')
}

/// Returns `true` for dashes that word processors write in place of a hyphen.
fn is_dash(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2015}' | '\u{2043}' | '\u{2212}')
}

/// Removes the backslashes that programs write before punctuation or at the end: `10.5555/a\_1`.
fn without_escapes(value: &str) -> String {
    let mut next = value.chars().skip(1);
    let is_escape = |c: char, next: Option<char>| c == '\\' && next.is_none_or(|c| c.is_ascii_punctuation());
    value.chars().filter(|c| !is_escape(*c, next.next())).collect()
}

/// Removes another DOI after a semicolon, comma or bar.
fn without_next(doi: &str) -> &str {
    let next = doi.match_indices([';', ',', '|']).find(|(at, _)| is_doi(&doi[at + 1..]));
    next.map_or(doi, |(at, _)| &doi[..at])
}

/// Removes the parts of a publisher's link after the DOI.
fn without_page(doi: &str) -> &str {
    // The last one begins the address of a link in Markdown.
    const PARAMETERS: [&str; 6] = ["?", "#sec", ";jsessionid", ".pmid:", ".PMID:", "]("];
    const PAGES: [&str; 12] = [
        "/full",
        "/abstract",
        "/pdf",
        "/epdf",
        "/html",
        "/meta",
        "/fulltext",
        ".full",
        ".short",
        ".abstract",
        ".pdf",
        ".full.pdf",
    ];
    let mut doi = doi;
    if doi.contains(['?', '#', ';', ':', ']']) {
        for parameters in PARAMETERS {
            doi = doi.split(parameters).next().unwrap_or(doi);
        }
    }
    while let Some(rest) =
        PAGES.iter().filter_map(|page| doi.strip_suffix(page)).min_by_key(|rest| rest.len())
    {
        doi = rest;
    }
    doi.trim_end_matches('/')
}

/// Removes the version from the DOI of a preprint of medRxiv or bioRxiv.
fn without_version(doi: &str) -> &str {
    if !doi.starts_with("10.1101/") {
        return doi;
    }
    match doi.rsplit_once('v') {
        Some((bare, version))
            if !version.is_empty()
                && version.bytes().all(|byte| byte.is_ascii_digit())
                && bare.ends_with(|c: char| c.is_ascii_digit()) =>
        {
            bare
        }
        _ => doi,
    }
}

/// A value that consists of a DOI of letters, digits and inner punctuation, as most do. PubMed adds the identifier type
/// after it.
fn plain_doi(value: &str) -> Option<String> {
    let value = value.strip_suffix(" [doi]").unwrap_or(value);
    let rest = value.strip_prefix("10.")?;
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let suffix = rest[digits..].strip_prefix('/')?;
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'/');
    let ends = suffix.bytes().next_back().is_some_and(|last| last.is_ascii_alphanumeric());
    let is_doi = (4..=9).contains(&digits) && value.len() <= MAX_DOI && ends && suffix.bytes().all(plain);
    is_doi.then(|| without_version(without_page(value)).to_ascii_lowercase())
}

/// The DOI at the beginning: up to markup or a blank, unless it continues after the blank, because some programs break
/// DOIs into lines.
fn whole(text: &str) -> Option<Cow<'_, str>> {
    let text = &text[..tag_start(text)];
    // The end of the attribute of a link.
    let text = text.split("\">").next().unwrap_or_default();
    let is_blank = |c: char| c.is_whitespace() || c.is_control();
    let word = |text: &str| text.find(is_blank).unwrap_or(text.len());
    let mut end = word(text);
    let mut doi = Cow::Borrowed(&text[..end]);
    let mut open = unpaired(&doi);
    loop {
        let rest = text[end..].trim_start_matches(is_blank);
        if doi.len() > MAX_DOI {
            return None;
        }
        let is_open = open[0] > 0 || open[1] > 0;
        if rest.is_empty() || !(is_open || continues(&doi, rest)) {
            return Some(doi);
        }
        let next = &rest[..word(rest)];
        doi.to_mut().push_str(next);
        open.iter_mut().zip(unpaired(next)).for_each(|(open, more)| *open += more);
        end = text.len() - rest.len() + next.len();
    }
}

/// The position of a tag such as `<br` or `</a`. DOIs derived from an item's pages contain `<1661::AID>`.
fn tag_start(text: &str) -> usize {
    let is_tag = |at: &usize| {
        let inner = text[at + 1..].strip_prefix('/').unwrap_or(&text[at + 1..]);
        let name = inner.bytes().take_while(u8::is_ascii_alphabetic).count();
        name > 0 && inner[name..].bytes().next().is_none_or(|byte| matches!(byte, b' ' | b'/' | b'>'))
    };
    memchr::memchr_iter(b'<', text.as_bytes()).find(is_tag).unwrap_or(text.len())
}

/// The number of opening brackets of each type, minus the closing ones.
fn unpaired(text: &str) -> [i32; 4] {
    spend(text.len());
    let mut unpaired = [0; 4];
    for c in text.chars() {
        for (count, (open, close)) in unpaired.iter_mut().zip(PAIRS) {
            *count += i32::from(c == open) - i32::from(c == close);
        }
    }
    unpaired
}

/// Returns `true` if a DOI without open brackets continues after a blank. This is the case if its last character
/// requires a further character, or if a bracket follows that does not enclose a remark.
fn continues(doi: &str, rest: &str) -> bool {
    if doi.ends_with(['/', '-', '_', ':']) {
        return true;
    }
    spend(rest.len());
    let close = match rest.chars().next() {
        Some('[') => ']',
        Some('(') => ')',
        _ => return false,
    };
    let after = rest.split_once(close).map(|(_, after)| after);
    after.is_some_and(|after| after.starts_with(char::is_alphanumeric))
}

/// Returns `true` for `10.`, a registrant of four to nine digits (possibly subdivided), a slash and a suffix.
pub(super) fn is_doi(text: &str) -> bool {
    let Some(rest) = text.strip_prefix("10.") else { return false };
    let front = &rest[..rest.floor_char_boundary(MAX_REGISTRANT)];
    spend(front.len());
    let Some(slash) = front.find('/') else { return false };
    let (registrant, suffix) = (&rest[..slash], &rest[slash + 1..]);
    let digits = registrant.split('.').next().unwrap_or_default().len();
    (4..=9).contains(&digits)
        && registrant.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && !suffix.trim_start().is_empty()
}

/// Removes the punctuation of the surrounding sentence; brackets are part of a DOI only in pairs.
fn trim_doi(mut doi: &str) -> &str {
    let mut open = unpaired(doi);
    loop {
        let mut trimmed =
            doi.strip_suffix("[doi]").unwrap_or(doi).trim_end_matches(['.', ',', ';', '"', '\'']);
        let mut last = open.iter_mut().zip(PAIRS);
        if trimmed.len() == doi.len()
            && let Some((open, _)) = last.find(|(open, (_, close))| **open < 0 && doi.ends_with(*close))
        {
            *open += 1;
            trimmed = &doi[..doi.len() - 1];
        }
        if trimmed.len() == doi.len() {
            return doi;
        }
        doi = trimmed;
    }
}

/// Extracts the DOI from a link: a resolver's, one passed as `id=doi:` or `doi=`, or one in the path of a publisher's
/// page.
pub(super) fn doi_in_url(url: &str) -> Option<String> {
    // Checked before decoding: most links contain no DOI, and these letters are never percent-encoded.
    if !["doi", "10."].iter().any(|mark| front(url).contains(mark)) {
        return None;
    }
    let url = percent_decoded(front(url));
    let marks = ["doi.org/", "doi:"];
    let rest = marks.iter().find_map(|mark| url.find(mark).map(|at| &url[at + mark.len()..]));
    if let Some(rest) = rest.or_else(|| behind_proxy(&url)).or_else(|| parameter(&url)) {
        return doi(rest.split('&').next().unwrap_or_default());
    }
    // The number of a record in CENTRAL also has the form of a DOI.
    let Some((_, page)) = url.split_once("/doi/").filter(|(host, _)| !host.ends_with("/central")) else {
        return doi_of_article(&url);
    };
    let found = ["", "full/", "abs/", "pdf/", "epdf/", "pdfdirect/", "abstract/", "figure/", "ref/"]
        .iter()
        .find_map(|kind| page.strip_prefix(kind).filter(|rest| rest.starts_with("10.")))?;
    doi(found.split(['?', '&', '#']).next().unwrap_or_default())
}

/// The value of a parameter `doi`, or of `id` if the page is `article`: `?doi=10.5555/a`, `/article?id=10.5555/a`.
fn parameter(url: &str) -> Option<&str> {
    ["?doi=10.", "&doi=10.", "/article?id=10."].iter().find_map(|mark| {
        let at = url.find(mark)?;
        let value = &url[at + mark.len() - "10.".len()..];
        value.split(['&', '#']).next()
    })
}

/// The DOI in the path of an article: `/article/10.5555/a`, `/articles/10.5555/a/full`, `/content/10.5555/av1.abstract`.
/// A further slash may not belong to the DOI.
fn doi_of_article(url: &str) -> Option<String> {
    let (_, path) = url.split_once("://")?.1.split_once('/')?;
    let path = path.split(['?', '&', '#']).next()?;
    let found = ["article/10.", "articles/10.", "content/10."].iter().find_map(|mark| {
        let at = path.find(mark).filter(|at| *at == 0 || path[..*at].ends_with('/'))?;
        Some(&path[at + mark.len() - "10.".len()..])
    })?;
    let found = if path.starts_with("content/") { without_page_of_version(found) } else { found };
    doi(found).filter(|doi| memchr::memchr_iter(b'/', doi.as_bytes()).count() == 1)
}

/// Removes the version of a preprint and the page of this version: `10.5555/2020.01.01.12v1.full-text`.
fn without_page_of_version(path: &str) -> &str {
    let version = |at: &usize| {
        let digits = path[at + 1..].bytes().take_while(u8::is_ascii_digit).count();
        let end = path[at + 1 + digits..].bytes().next();
        path[..*at].ends_with(|c: char| c.is_ascii_digit()) && digits > 0 && matches!(end, None | Some(b'.'))
    };
    path.match_indices('v').map(|(at, _)| at).find(version).map_or(path, |at| &path[..at])
}

/// The path of a link to a resolver through the proxy of a library: `https://doi-org.proxy.example.org/10.5555/a`.
fn behind_proxy(url: &str) -> Option<&str> {
    let (host, path) = url.split_once("://")?.1.split_once('/')?;
    let is_resolver =
        ["doi-org.", "dx-doi-org.", "doi.org.", "dx.doi.org."].iter().any(|name| host.starts_with(name));
    (is_resolver && path.starts_with("10.")).then_some(path)
}

fn percent_decoded(url: &str) -> String {
    let mut out = Vec::with_capacity(url.len());
    let mut bytes = url.as_bytes();
    while let Some((&byte, rest)) = bytes.split_first() {
        let hex = rest.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| byte == b'%') {
            Some(decoded) => {
                out.push(decoded);
                bytes = &rest[2..];
            }
            None => {
                out.push(byte);
                bytes = rest;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doi_is_extracted_from_surrounding_text() {
        let bare = Some("10.5555/abc(1)".to_owned());
        for given in [
            "10.5555/ABC(1)",
            "https://doi.org/10.5555/abc(1)",
            "http://dx.doi.org/10.5555/abc(1).",
            "doi: 10.5555/abc(1) [doi]",
            "(10.5555/abc(1))",
        ] {
            assert_eq!(doi(given), bare, "{given}");
        }
        for (given, whole) in [
            ("10.5555/0276(2002)022 [ 0056:PAI]2.0.CO;2", "10.5555/0276(2002)022[0056:pai]2.0.co;2"),
            ("10.5555/ a-1", "10.5555/a-1"),
            ("https://doi.org/10.5555/a- 1 and more", "10.5555/a-1"),
            ("10.5555/a 2020", "10.5555/a"),
            ("10.5555/a (2020)", "10.5555/a"),
            ("10.5555/a<br />", "10.5555/a"),
            ("10.5555/a</a>", "10.5555/a"),
            ("<a href=\"https://doi.org/10.5555/a\">full text</a>", "10.5555/a"),
            ("10.5555/(sici)1:16<1661::aid-sim9>3.0.co;2-2", "10.5555/(sici)1:16<1661::aid-sim9>3.0.co;2-2"),
            ("10.5555/a}", "10.5555/a"),
            ("<https://doi.org/10.5555/a>", "10.5555/a"),
            ("[10.5555/a](https://doi.org/10.5555/a)", "10.5555/a"),
            (r"10.5555/a\_1", "10.5555/a_1"),
            (r"https://doi.org/10.5555/a\\_1\(2\)", "10.5555/a_1(2)"),
            (r"10.5555/a\b\", r"10.5555/a\b"),
            ("10.5555/a[\u{1c}b]", "10.5555/a[b]"),
            ("10.5555/a\u{200b}", "10.5555/a"),
            ("10.5555/a;10.5555/b", "10.5555/a"),
            ("10.5555/(sici)1;2-2", "10.5555/(sici)1;2-2"),
            ("https://doi.org/10.5555/a?nosfx=y", "10.5555/a"),
            ("https://www.example.org/articles/10.5555/a.1/full", "10.5555/a.1"),
            (
                "https://www.medrxiv.org/content/10.1101/2020.01.01.20012345v1.full.pdf",
                "10.1101/2020.01.01.20012345",
            ),
            ("10.1101/2020.01.01.20012345v2 ", "10.1101/2020.01.01.20012345"),
            ("10.1101/2020.01.01.20012345v2.full", "10.1101/2020.01.01.20012345"),
            ("10.5555/a.1/full/html", "10.5555/a.1"),
            ("10.5555/a.1/abstract;jsessionid=0", "10.5555/a.1"),
            ("10.5555/a.1?af=R", "10.5555/a.1"),
            ("10.5555/3.0.co;2-#", "10.5555/3.0.co;2-#"),
        ] {
            assert_eq!(doi(given).as_deref(), Some(whole), "{given}");
        }
        assert_eq!(doi("10.5555/"), None);
        assert_eq!(doi("10.1 p"), None);
        assert_eq!(doi("see 10.5 and 10.5555/x"), Some("10.5555/x".into()));
    }

    #[test]
    fn identifiers_of_cited_works_are_ignored() {
        for note in ["Comment in: BMJ. 2000;320(7226):12.", "Republished from J Zinc.", "Reply to Lancet."] {
            assert_eq!(labelled_doi(&format!("{note} doi: 10.1136/bmj.320.7226.12")), None, "{note}");
            assert_eq!(labelled_pmid(&format!("{note} PMID: 12345678")), None, "{note}");
        }
        assert_eq!(labelled_doi("Accession. doi: 10.5555/a").as_deref(), Some("10.5555/a"));
    }

    #[test]
    fn dashes_of_word_processors_become_hyphens() {
        for given in ["10.5555/s1\u{2013}0327\u{2013}4", "10.5555/s1\u{2043}0327\u{2010}4"] {
            assert_eq!(doi(given).as_deref(), Some("10.5555/s1-0327-4"), "{given}");
        }
    }

    #[test]
    fn pmid_is_extracted_behind_any_label() {
        for given in [
            "42",
            " PMID: 42",
            "pmid:42",
            "PMID 42",
            "42.0",
            "42 [http://example.org/]",
            "https://pubmed.ncbi.nlm.nih.gov/42/",
        ] {
            assert_eq!(pmid(given).as_deref(), Some("42"), "{given}");
        }
        for given in ["", "PMC42", "611234567", "1234567890", "4.2", "PMID", "n° 42", "0", "000"] {
            assert_eq!(pmid(given), None, "{given}");
        }
    }

    #[test]
    fn pmid_is_found_in_links_and_notes() {
        for link in [
            "https://pubmed.ncbi.nlm.nih.gov/42",
            "http://www.ncbi.nlm.nih.gov/pubmed/42?dopt=Abstract",
            "https://europepmc.org/article/MED/42",
            "http://ovidsp.example.org/ovidweb.cgi?T=JS&PAGE=reference&D=medp&NEWS=N&AN=42",
            "https://search.example.org/login.aspx?direct=true&db=cmedm&AN=42&site=ehost-live",
        ] {
            assert_eq!(pmid_in_url(link).as_deref(), Some("42"), "{link}");
        }
        for link in [
            "http://ovidsp.example.org/ovidweb.cgi?T=JS&D=emed25&AN=2007000001",
            "https://search.example.org/login.aspx?db=c8h&AN=42",
            "https://pubmed.ncbi.nlm.nih.gov/42a",
            "https://example.org/pubmed",
        ] {
            assert_eq!(pmid_in_url(link), None, "{link}");
        }
        for link in [
            "https://www.ncbi.nlm.nih.gov/m/pubmed/42/",
            "https://www.ncbi.nlm.nih.gov/pubmed?term=42%5Buid%5D",
            "http://www.ncbi.nlm.nih.gov/entrez/query.fcgi?db=pubmed&cmd=Retrieve&dopt=AbstractPlus&list_uids=42",
            "https://pubmed-ncbi-nlm-nih-gov.proxy.example.org/42/",
            "https://www-ncbi-nlm-nih-gov.proxy.example.org/pubmed/42",
        ] {
            assert_eq!(pmid_in_url(link).as_deref(), Some("42"), "{link}");
        }
        for note in [
            "Cited 3 times; PMID 30000001",
            "PubMed PMID: 30000001.",
            "pubmed id: 30000001",
            "PubMed:30000001",
        ] {
            assert_eq!(labelled_pmid(note).as_deref(), Some("30000001"), "{note}");
        }
        assert_eq!(labelled_pmid("Comment in PMID 30000001"), None);
        assert_eq!(labelled_pmid("PMID 12 of 20"), None);
        assert_eq!(labelled_pmid("Place: United States PMID: 42  PMCID: PMC7").as_deref(), Some("42"));
        assert_eq!(labelled_pmid("PMCID: PMC7"), None);
        assert_eq!(labelled_doi("see DOI: 10.5555/A; and more").as_deref(), Some("10.5555/a"));
        assert_eq!(
            doi("https://dx.doi.org/10.5555/S0140%2818%2932-6").as_deref(),
            Some("10.5555/s0140(18)32-6")
        );
    }

    #[test]
    fn doi_is_found_in_a_link() {
        let link = "http://sfx.example.org/?sid=EMBASE&id=doi:10.5555%2Fab.12&atitle=A";
        assert_eq!(doi_in_url(link), Some("10.5555/ab.12".into()));
        for (page, found) in [
            ("https://publisher.example/doi/full/10.5555/ab.12?journalCode=x", Some("10.5555/ab.12")),
            ("https://publisher.example/doi/10.5555/ab.12", Some("10.5555/ab.12")),
            ("https://www.cochranelibrary.com/central/doi/10.1002/central/CN-1/full", None),
            (
                "https://www.scopus.com/inward/record.uri?eid=2-s2.0-8&doi=10.5555%2fab.12&partnerID=40",
                Some("10.5555/ab.12"),
            ),
            ("https://example.org/x?doi=10.5555/ab.12&a=b", Some("10.5555/ab.12")),
            ("https://link.springer.com/article/10.5555/ab-12?error=cookies", Some("10.5555/ab-12")),
            ("https://www.frontiersin.org/articles/10.5555/ab.12/full", Some("10.5555/ab.12")),
            (
                "https://www.biorxiv.org/content/10.1101/2020.01.01.12v1.abstract",
                Some("10.1101/2020.01.01.12"),
            ),
            (
                "https://www.medrxiv.org/content/10.5555/2020.01.01.12v2.full-text",
                Some("10.5555/2020.01.01.12"),
            ),
            (
                "https://www.medrxiv.org/content/10.5555/2020.01.01.12v2.full.pdf+html",
                Some("10.5555/2020.01.01.12"),
            ),
            ("https://www.medrxiv.org/content/10.5555/2020.01.01.12v2", Some("10.5555/2020.01.01.12")),
            ("https://journals.plos.org/plosone/article?id=10.5555/ab.12", Some("10.5555/ab.12")),
            ("https://journals.plos.org/plosone/article?id=10.5555/ab.12#abstract0", Some("10.5555/ab.12")),
            ("https://example.org/x?doi=10.5555/ab.12#tab1", Some("10.5555/ab.12")),
            // Parts of an article, and numbers that are no DOI.
            ("https://journals.plos.org/plosone/article/figure?id=10.5555/ab.12.g001", None),
            ("https://link.springer.com/article/10.5555/ab-12/figures/1", None),
            ("https://example.org/content/10/1/2", None),
            ("https://example.org/articles/10.1/2", None),
            ("https://10.0.0.1/article/5", None),
            ("https://example.org/x?mydoi=10.5555/ab.12", None),
            ("https://example.org/doi/about", None),
            ("https://example.org/100%", None),
        ] {
            assert_eq!(doi_in_url(page).as_deref(), found, "{page}");
        }
    }
}
