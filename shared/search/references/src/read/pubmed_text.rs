//! Reads PubMed's human-readable exports: summaries and abstracts.

use std::borrow::Cow;

use super::{
    citation,
    draft::Draft,
    field::{Field, FieldName},
    names, tidy,
};
use crate::work::spend;

/// The beginnings of paragraphs that are not part of the abstract.
const REMARKS: [&str; 25] = [
    "Associated data",
    "Author information",
    "Corrected and republished",
    "Collaborators",
    "Comment in",
    "Comment on",
    "Conflict of interest",
    "Copyright",
    "DOI:",
    "Erratum in",
    "Erratum for",
    "Expression of concern",
    "Original report in",
    "PMCID:",
    "PMID:",
    "Plain Language Summary",
    "Reprint",
    "Republished",
    "Retracted",
    "Retraction",
    "Summary for patients in",
    "Update in",
    "Update of",
    "[Article in",
    "©",
];

pub(super) fn read(text: &str) -> Draft<'_> {
    let text = text.trim_start_matches('\u{feff}');
    spend(text.len());
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let body = text.get(digits + 1..).unwrap_or_default();
    let mut draft = Draft::default();
    for (field, label) in [(Field::Pmid, "PMID:"), (Field::Doi, "doi:"), (Field::Doi, "DOI:")] {
        for value in labelled(body, label).take(2) {
            add(&mut draft, field, value.trim_end_matches(['.', ';']));
        }
    }
    if let Some(number) = labelled(body, "PMCID:").next() {
        draft.extra.push("PMC", number.trim_end_matches(['.', ';']));
    }
    if text[digits..].starts_with(':') {
        summary(&mut draft, body);
    } else {
        whole(&mut draft, body);
    }
    draft
}

/// Returns the words after a label and a blank or a line break. Citations in abstracts have no blank: `(PMID:1)`.
fn labelled<'a>(text: &'a str, label: &'a str) -> impl Iterator<Item = &'a str> {
    let after = text.match_indices(label).map(|(at, label)| &text[at + label.len()..]);
    after
        .filter(|value| value.starts_with(char::is_whitespace))
        .filter_map(|value| value.split_whitespace().next())
}

fn add(draft: &mut Draft<'_>, field: Field, text: &str) {
    let named = FieldName::new(field, "text", 0);
    draft.add_decoded(named, Cow::Owned(tidy::line(text).unwrap_or_default()));
}

fn authors(draft: &mut Draft<'_>, list: &str) {
    for name in names::split_cell(list.trim_end_matches('.')).into_iter().filter(|name| name != "et al") {
        draft.author(Field::Author, name);
    }
}

/// `Smith J, Doe A. Title. J Tests. 2020;1(2):3-4. doi: 10.5555/a. PMID: 1.`
fn summary(draft: &mut Draft<'_>, body: &str) {
    let Some(line) = tidy::line(body) else { return };
    let end = [" doi: ", " PMID: "].iter().filter_map(|label| line.find(label)).min().unwrap_or(line.len());
    let cited = &line[..end];
    let Some(found) = citation::parse_pubmed(cited) else { return add(draft, Field::Title, cited) };
    // The journal is the last sentence before the year.
    let before = found.journal;
    let at = [". ", "? ", "! ", "] "].iter().filter_map(|end| before.rfind(end)).max();
    let (front, journal) = at.map_or(("", before), |at| (&before[..=at], before[at + 2..].trim()));
    citation::add_parts(draft, "text", &citation::Citation { journal, ..found });
    let (list, title) = front.split_once(". ").unwrap_or(("", front));
    let is_person = |name: &str| names::one(name).is_some_and(|name| name.contains(", "));
    // `Smith J, Doe A, et al.` or `World Health Organization.`
    let people = list.strip_suffix(", et al").unwrap_or(list);
    let is_list = people
        .split([',', ';'])
        .map(str::trim)
        .enumerate()
        .all(|(at, name)| is_person(name) || (at > 0 && names::is_organisation(name)))
        || (is_organisation(list) && !title.is_empty());
    if is_list && !list.is_empty() {
        authors(draft, list);
        add(draft, Field::Title, title);
    } else {
        add(draft, Field::Title, front);
    }
}

/// Returns `true` for the name of an organisation that is the only author. A title seldom ends in one of these words, and
/// has no capitals.
fn is_organisation(text: &str) -> bool {
    const LAST: [&str; 14] = [
        "Academy",
        "Agency",
        "Association",
        "Collaborators",
        "Commission",
        "Committee",
        "Consortium",
        "Council",
        "Federation",
        "Foundation",
        "Group",
        "Investigators",
        "Organization",
        "Society",
    ];
    const SMALL: [&str; 5] = ["of", "the", "for", "and", "on"];
    // The beginnings of titles that name an organisation.
    const TITLES: [&str; 8] = [
        "Report",
        "Statement",
        "Position",
        "Guidelines",
        "Recommendations",
        "Proceedings",
        "Consensus",
        "Minutes",
    ];
    if TITLES.iter().any(|word| text.starts_with(word)) {
        return false;
    }
    text.rsplit_once(' ').is_some_and(|(before, last)| {
        let mut words = before.split(' ');
        LAST.contains(&last)
            && words.all(|word| word.starts_with(char::is_uppercase) || SMALL.contains(&word))
    })
}

/// Parses paragraphs with the citation, the title, the authors and the abstract.
fn whole(draft: &mut Draft<'_>, body: &str) {
    let body = body.replace("\r\n", "\n");
    let body = body.split(['\n', '\r']).map(str::trim_end).collect::<Vec<_>>().join("\n");
    let mut paragraphs = body.split("\n\n").filter_map(tidy::line);
    let Some(cited) = paragraphs.next() else { return };
    let end = cited.find(" doi: ").unwrap_or(cited.len());
    if let Some(found) = citation::parse_pubmed(cited[..end].split(" Epub ").next().unwrap_or_default()) {
        citation::add_parts(draft, "text", &found);
    }
    add(draft, Field::Title, &paragraphs.next().unwrap_or_default());
    let (mut first, mut is_complete) = (true, false);
    for paragraph in paragraphs {
        // Only the foot of the file follows the identifiers of a record.
        let is_foot = is_complete;
        is_complete |= ["DOI:", "PMCID:", "PMID:"].iter().any(|label| paragraph.starts_with(label));
        if is_foot || REMARKS.iter().any(|remark| paragraph.starts_with(remark)) {
            draft.extra.push("text", &paragraph);
        } else if std::mem::take(&mut first) {
            authors(draft, &without_marks(&paragraph));
        } else {
            add(draft, Field::Abstract, &paragraph);
        }
    }
}

/// Removes the numbers of affiliations, and the mark of equal contributors, after names: `Smith J(#)(1)(2), Doe A(1).`
fn without_marks(list: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(list.len()), list);
    while let Some((before, after)) = rest.split_once('(') {
        out.push_str(before);
        let length =
            after.bytes().take_while(|byte| byte.is_ascii_digit() || matches!(byte, b'#' | b'*')).count();
        rest = match after[length..].strip_prefix(')') {
            Some(after) if length > 0 => after,
            _ => {
                out.push('(');
                after
            }
        };
    }
    out + rest
}
