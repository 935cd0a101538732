//! Recognizes databases by the columns, numbers and remarks of records.

use references::Reference;

use super::{super::vocabulary, links::begins};

/// The column for the database of each record, in exports of searches in several databases: those of Ovid and of the
/// Virtual Health Library.
const RECORD_DATABASE: &str = "Database";

/// The columns that only one database exports.
const COLUMNS: [(&[&str], &str); 10] = [
    (&["Dimensions URL"], "Dimensions"),
    (&["Lens ID"], "Lens.org"),
    (&["EMBASE LINK"], "Embase"),
    (&["First Author", "Create Date"], "PubMed"),
    (&["Date Added To Xplore"], "IEEE Xplore"),
    (&["IEEE Terms", "Document Identifier"], "IEEE Xplore"),
    (&["is-referenced-by-count", "reference-count"], "Crossref"),
    (&["SrcDatabase-来源库"], "CNKI"),
    (&["流水号"], "SinoMed"),
    (&["文献番号", "論文種類"], "Ichushi"),
];

/// The columns with values that only one database exports, and the beginnings of the values.
const VALUES: [(&str, &str, &str); 3] = [
    ("id", "https://openalex.org/W", "OpenAlex"),
    ("CitesURL", "https://scholar.google.", "Google Scholar"),
    ("cites_url", "https://scholar.google.", "Google Scholar"),
];

/// The tables of trial registers: the column for the number, the beginning of the numbers, the columns that may
/// accompany it, and the register. The number alone may belong to a table of articles.
const REGISTRATIONS: [(&str, &str, &[&str], &str); 6] = [
    ("NCT Number", "NCT", &["Study Status", "Study Results", "Study Type"], "ClinicalTrials.gov"),
    ("ISRCTN", "ISRCTN", &["Condition category", "Overall trial status", "Overall study status"], "ISRCTN"),
    ("DRKS-ID", "DRKS", &["Registration Date in DRKS", "Recruitment Status"], "DRKS"),
    ("TRIAL ID", "ACTRN", &["PUBLIC TITLE", "RECRUITMENT STATUS", "HEALTH CONDITION(S)"], "ANZCTR"),
    ("注册号", "ChiCTR", &["研究课题的正式科学名称", "研究疾病", "研究类型"], "ChiCTR"),
    (
        "Trial number",
        "20",
        &["Overall decision date", "Status in each country", "Overall trial status"],
        "CTIS",
    ),
];

/// The remark that the American Psychological Association appends to its abstracts, in lower case.
const APA_REMARK: &str = "(psycinfo database record";

/// The beginning of the links that Web of Science writes for EndNote.
const ENDNOTE_LINK: &str = "<Go to ISI>://";

/// The collections in Web of Science by the beginnings of their numbers, except the core collection.
pub(super) const COLLECTIONS: [(&str, &str); 18] = [
    ("ARCI", "Arabic Citation Index"),
    ("BCI", "BIOSIS Citation Index"),
    ("BIOABS", "Biological Abstracts"),
    ("BIOSIS", "BIOSIS Previews"),
    ("CABI", "CABI: CAB Abstracts and Global Health"),
    ("CCC", "Current Contents Connect"),
    ("CSCD", "Chinese Science Citation Database"),
    ("DIIDW", "Derwent Innovations Index"),
    ("DRCI", "Data Citation Index"),
    ("FSTA", "FSTA"),
    ("INSPEC", "Inspec"),
    ("KJD", "KCI-Korean Journal Database"),
    ("MEDLINE", "MEDLINE"),
    ("PPRN", "Preprint Citation Index"),
    ("PQDT", "ProQuest Dissertations & Theses"),
    ("RSCI", "Russian Science Citation Index"),
    ("SCIELO", "SciELO"),
    ("ZOOREC", "Zoological Record"),
];

/// The tags under which exports of Web of Science have the number of the record. Notes, links and other identifiers may
/// hold the number although the record was found elsewhere.
const WEB_OF_SCIENCE_TAGS: [&str; 9] = [
    "UT",
    "UT (Unique WOS ID)",
    "UT (Unique ID)",
    "AN",
    "%M",
    "accession-num",
    "Accession Number",
    "unique-id",
    "key",
];

/// The tags under which exports of Embase have the number of the record. The Cochrane Library has it under other tags.
const EMBASE_TAGS: [&str; 4] = ["PUI", "U2", "Embase Accession ID", "key"];

/// The name of Web of Science, both of its core collection and of the platform.
pub(super) const WEB_OF_SCIENCE: &str = "Web of Science";

/// A database and its platform.
type Names = (&'static str, Option<&'static str>);

/// The database that the columns of a table indicate.
pub(super) fn of_columns(first: &Reference) -> Option<Names> {
    let has = |column: &&str| values(first, column).next().is_some();
    let by_name = || values(first, RECORD_DATABASE).find_map(vocabulary::find).map(|known| known.name);
    let by_columns = || COLUMNS.iter().find(|(columns, _)| columns.iter().all(has)).map(|(_, name)| *name);
    let by_value = || {
        let mut known = VALUES.iter();
        let found = known.find(|(column, start, _)| values(first, column).any(|value| begins(value, start)));
        found.map(|(.., name)| *name)
    };
    let by_registration = || {
        let found = REGISTRATIONS.iter().find(|(column, start, others, _)| {
            values(first, column).any(|number| begins(number, start)) && others.iter().any(has)
        });
        found.filter(|_| is_registration(first)).map(|(.., name)| *name)
    };
    by_name().or_else(by_columns).or_else(by_value).or_else(by_registration).map(|name| (name, None))
}

/// The database that gave a record its number.
pub(super) fn of_number(first: &Reference) -> Option<Names> {
    of_web_of_science(first)
        .or_else(|| is_of_embase(first).then_some(("Embase", None)))
        .or_else(|| is_of_apa(first).then_some(("APA PsycInfo", None)))
}

fn is_of_apa(first: &Reference) -> bool {
    let text = first.r#abstract.as_deref().unwrap_or_default();
    // The remark is at the end.
    let end = &text[text.ceil_char_boundary(text.len().saturating_sub(100))..];
    end.to_lowercase().contains(APA_REMARK)
}

pub(super) fn is_of_embase(first: &Reference) -> bool {
    first.embase_id.as_deref().is_some_and(|number| is_under(first, &EMBASE_TAGS, number))
}

/// The collection of a record of Web of Science.
pub(super) fn of_web_of_science(first: &Reference) -> Option<Names> {
    let has_link = first.url.as_deref().is_some_and(|url| url.starts_with(ENDNOTE_LINK));
    let Some((start, number)) = first.wos_id.as_deref().and_then(|number| number.split_once(':')) else {
        return has_link.then_some((WEB_OF_SCIENCE, None));
    };
    if !has_link && !is_under(first, &WEB_OF_SCIENCE_TAGS, number) {
        return None;
    }
    let collection = COLLECTIONS.iter().find(|(known, _)| *known == start);
    Some(collection.map_or((WEB_OF_SCIENCE, None), |(_, name)| (*name, Some(WEB_OF_SCIENCE))))
}

/// Returns `true` if one of the tags has the number, possibly behind a prefix.
fn is_under(first: &Reference, tags: &[&str], number: &str) -> bool {
    tags.iter().flat_map(|tag| values(first, tag)).any(|value| {
        let start = value.len().checked_sub(number.len());
        start.and_then(|start| value.get(start..)).is_some_and(|end| end.eq_ignore_ascii_case(number))
    })
}

/// Returns `true` if a record may be the registration of a trial: articles and records of CENTRAL have links to
/// registrations and their numbers. ISRCTN gives DOIs to its registrations.
pub(super) fn is_registration(first: &Reference) -> bool {
    let is_of_central = first.accession.as_deref().is_some_and(|number| number.starts_with("CN-"));
    first.pmid.is_none() && !is_of_central && first.doi.as_deref().is_none_or(|doi| doi.contains("isrctn"))
}

/// Returns the values of a tag or column in any case.
pub(super) fn values<'a>(first: &'a Reference, name: &str) -> impl Iterator<Item = &'a str> {
    let tagged = first.extra.iter().filter(move |(tag, _)| tag.eq_ignore_ascii_case(name));
    tagged.flat_map(|(_, values)| values).map(|value| value.trim())
}
