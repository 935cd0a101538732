//! Guessing the source of a file from its format and first record, and further records if the first one shows only
//! where it was found itself. No source is better than a wrong one: PRISMA reports it.

mod contents;
mod links;

use std::collections::BTreeSet;

use contents::{
    WEB_OF_SCIENCE, is_of_embase, is_registration, of_columns, of_number, of_web_of_science, values,
};
use links::{of_ebsco, of_link, of_ovid};
use references::Reference;

use super::{Method, Source, is_name, vocabulary};

/// The tags in `extra` that hold further links.
const LINK_TAGS: [&str; 4] = ["L2", "UR", "L1", "Link to the Ovid Full Text or citation"];

/// The tags for the name of the database.
const DATABASE_TAGS: [&str; 3] = ["DB", "remote-database-name", DATABASE];
/// The tags for the name of the platform.
const PLATFORM_TAGS: [&str; 3] = ["DP", "remote-database-provider", PLATFORM];
/// Other tags and columns for the name of the database. They may also contain other values.
const OTHER_TAGS: [&str; 8] =
    ["%W", "%~", "DS", "Database Provider", "Source", "SrcDatabase-来源库", "Library Catalog", "longDBName"];
/// The columns for the register of a trial in tables of the WHO's portal.
const PORTAL_TAGS: [&str; 2] = ["Source Register", "Source_Register"];

/// The names of the source columns in the exports of this project.
const DATABASE: &str = "database";
const PLATFORM: &str = "platform";
const SEARCHED_ON: &str = "searched_on";
/// The end of the identifier of a study in nbib exports of this project.
const STUDY_KEY: &str = "[study-key]";

/// The beginnings of names that reference managers and screening tools write in place of a database. `DOI.org` is the
/// service in which Zotero looks up single identifiers.
const MANAGERS: [&str; 14] = [
    "asreview",
    "citavi",
    "covidence",
    "distillersr",
    "doi.org",
    "endnote",
    "eppi-reviewer",
    "jabref",
    "mendeley",
    "paperpile",
    "rayyan",
    "readcube",
    "refworks",
    "zotero",
];

/// The owners of records in PubMed. Other databases use the same format with their own name.
const NLM_OWNERS: [&str; 7] = ["NLM", "NASA", "PIP", "KIE", "HSR", "HMD", "NOTNLM"];

/// The number of places at which further records are read if the first one shows only its own source, and the number of
/// records at each. A reference manager may have sorted its records by database.
pub(super) const PLACES: u64 = 3;
pub(super) const SAMPLE: usize = 7;
/// One record in this number may show no source, for example because it lacks the columns of its database. A single
/// such record is always allowed.
const RECORDS_PER_SILENT: usize = 5;

/// The source that one record of a file indicates.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Guess {
    /// The source; empty if the record indicates none.
    pub(super) source: Source,
    /// `true` if the record shows where it was found itself. A library that was merged in a reference manager, or a
    /// search in all collections of Web of Science, has records of several databases.
    pub(super) needs_others: bool,
}

impl Guess {
    /// Returns the source of the file, given further records of it: no database if they show another one.
    pub(super) fn confirmed<'a>(self, format: &str, others: impl Iterator<Item = &'a Reference>) -> Source {
        let first = self.source;
        let others: Vec<Source> = others.map(|other| guess(format, Some(other)).source).collect();
        let silent = others.iter().filter(|other| other.database.is_none()).count();
        let is_shared =
            others.iter().all(|other| other.database.is_none() || other.database == first.database);
        if is_shared && silent <= (others.len() / RECORDS_PER_SILENT).max(1) {
            return first;
        }
        if others.iter().chain([&first]).all(is_in_web_of_science) {
            let database = Some(WEB_OF_SCIENCE.to_owned());
            return Source { database, platform: None, ..first };
        }
        let platform =
            first.platform.filter(|name| others.iter().all(|other| other.platform.as_ref() == Some(name)));
        Source { database: None, platform, ..first }
    }
}

/// Returns `true` for Web of Science itself and its collections.
fn is_in_web_of_science(source: &Source) -> bool {
    [&source.database, &source.platform].into_iter().flatten().any(|name| name == WEB_OF_SCIENCE)
}

/// The names of databases in fields with the tags for the database.
enum DatabaseNames {
    Nothing,
    /// The only name, in its usual spelling.
    One(String),
    /// The record was merged from records of several databases.
    Several,
}

/// Returns the source that the format of a file and its first record indicate; empty if they indicate none.
pub(super) fn guess(format: &str, first: Option<&Reference>) -> Guess {
    let (by_format, through) = match format {
        "PubMed nbib" | "PubMed XML" | "PubMed text" => (Some("PubMed"), None),
        "Web of Science plain text" => (Some(WEB_OF_SCIENCE), None),
        "WHO ICTRP XML" => (Some("WHO ICTRP"), None),
        "ISRCTN XML" => (Some("ISRCTN"), None),
        "EU Clinical Trials Register text" => (Some("EU Clinical Trials Register"), None),
        "Europe PMC XML" => (Some("Europe PMC"), None),
        "Cochrane text" => (Some("Cochrane Library"), None),
        "Ovid text" => (None, Some("Ovid")),
        "ProQuest text" => (None, Some("ProQuest")),
        _ => (None, None),
    };
    let from_format = Source {
        database: by_format.map(str::to_owned),
        platform: through.map(str::to_owned),
        searched_on: None,
    };
    match (by_format, first) {
        (None, Some(first)) => of_record(format, from_format, first),
        (Some(_), Some(first)) if format == "PubMed nbib" => {
            Guess { source: Source { database: of_nbib(first), ..from_format }, needs_others: false }
        }
        (Some(WEB_OF_SCIENCE), Some(first)) => {
            let collection = of_web_of_science(first).filter(|(_, platform)| platform.is_some());
            let needs_others = collection.is_some();
            let source = collection.map_or(from_format, |(name, platform)| source(name, platform));
            Guess { source, needs_others }
        }
        _ => Guess { source: from_format, needs_others: false },
    }
}

/// Returns the source of a record in a format of several databases.
fn of_record(format: &str, from_format: Source, first: &Reference) -> Guess {
    let tag = |names: &[&str]| {
        let found = names.iter().find_map(|name| first.extra.get(*name)?.first());
        let name = found.map(|text| text.trim()).filter(|text| is_name(text) && !is_manager(text));
        name.map(str::to_owned)
    };
    let searched_on = tag(&[SEARCHED_ON]).and_then(|date| date.parse().ok());
    // SciELO writes an address there.
    let named_platform = tag(&PLATFORM_TAGS).filter(|platform| !platform.contains("://"));
    let platform = from_format.platform.or(named_platform);
    // The provider of PubMed is not a search platform.
    let mut platform = platform.filter(|platform| platform != "NLM");
    if DATABASE_TAGS.iter().flat_map(|tag| values(first, tag)).any(is_on_ovid) {
        platform = platform.or_else(|| Some("Ovid".to_owned()));
    }
    let mut database = match named(first) {
        DatabaseNames::One(name) => Some(name),
        DatabaseNames::Nothing => None,
        // The numbers and links belong to one of the merged records.
        DatabaseNames::Several => {
            return Guess { source: Source { database: None, platform, searched_on }, needs_others: false };
        }
    };
    let other_names = OTHER_TAGS.iter().filter_map(|name| first.extra.get(*name)?.first());
    database = database.or_else(|| {
        other_names.into_iter().find_map(|name| vocabulary::find(name)).map(|known| known.name.to_owned())
    });
    // Trials of all registers, each with its own link.
    if PORTAL_TAGS.iter().any(|name| first.extra.contains_key(*name)) {
        database = database.or_else(|| Some("WHO ICTRP".to_owned()));
    }
    // In other formats `source` is the journal.
    if matches!(format, "CSL-JSON" | "Zotero RDF") {
        database = database.or_else(|| tag(&["source"]).map(usual_name));
    }
    if database.is_none()
        && let Some((name, through)) = of_columns(first).or_else(|| of_number(first))
    {
        database = Some(name.to_owned());
        platform = platform.or_else(|| through.map(str::to_owned));
    }
    let links = || {
        let tagged = LINK_TAGS.iter().filter_map(|tag| first.extra.get(*tag)).flatten();
        first.url.iter().chain(tagged).map(String::as_str)
    };
    if let Some(name) = links().find_map(of_ovid) {
        database = database.or_else(|| Some(name.to_owned()));
        platform = platform.or_else(|| Some("Ovid".to_owned()));
    }
    if let Some(name) = links().find_map(of_ebsco).filter(|_| database.is_none()) {
        database = Some(name.to_owned());
    }
    let may_be_registration = is_registration(first);
    let is_evidence = |by_link: &str| {
        may_be_registration || vocabulary::find(by_link).is_none_or(|known| known.method != Method::Register)
    };
    if let Some((_, by_link, through)) = links().find_map(of_link) {
        database = database.or_else(|| by_link.filter(|name| is_evidence(name)).map(str::to_owned));
        platform = platform.or_else(|| through.map(str::to_owned));
    }
    let needs_others = database.is_some();
    Guess { source: Source { database, platform, searched_on }, needs_others }
}

fn source(database: &str, platform: Option<&str>) -> Source {
    Source { database: Some(database.to_owned()), platform: platform.map(str::to_owned), searched_on: None }
}

/// Returns `true` for `Ovid MEDLINE(R) ALL`, `Embase (Ovid)` and `APA PsycInfo <2002 to 2021>`. Only Ovid names segments.
fn is_on_ovid(database: &str) -> bool {
    let is_one = !database.contains([';', '|']);
    let names_it =
        database.split(|c: char| !c.is_alphanumeric()).any(|word| word.eq_ignore_ascii_case("ovid"));
    is_one && (names_it || database.contains(" <") && database.ends_with('>'))
}

/// The usual spelling of a database's name, without its edition.
fn usual_name(name: String) -> String {
    vocabulary::find(&name).map_or(name, |known| known.name.to_owned())
}

/// Returns `true` for the name of a program that manages records, and in which reviewers do not search.
fn is_manager(name: &str) -> bool {
    let lower = name.to_lowercase();
    MANAGERS.iter().any(|manager| {
        lower
            .strip_prefix(manager)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '/'))
    })
}

/// The database under the tags for it. A record with the numbers of two databases was merged from records of both.
fn named(first: &Reference) -> DatabaseNames {
    let names = |tag: &&str| -> Vec<&str> {
        let values = first.extra.get(*tag).into_iter().flatten().map(|name| name.trim());
        values.filter(|name| is_name(name) && !is_manager(name)).collect()
    };
    let Some(names) = DATABASE_TAGS.iter().map(names).find(|names| !names.is_empty()) else {
        return if is_of_embase(first) && of_web_of_science(first).is_some() {
            DatabaseNames::Several
        } else {
            DatabaseNames::Nothing
        };
    };
    let parts = names.iter().flat_map(|name| name.split([';', '|']));
    let known: BTreeSet<&str> = parts.filter_map(vocabulary::find).map(|known| known.name).collect();
    // embase.com names both databases for records that it has from MEDLINE.
    if is_of_embase(first) && known == BTreeSet::from(["Embase", "MEDLINE"]) {
        return DatabaseNames::One("Embase".to_owned());
    }
    let mut usual = names.iter().map(|name| usual_name((*name).to_owned())).collect::<BTreeSet<String>>();
    match usual.pop_first() {
        Some(name) if known.len() <= 1 && usual.is_empty() => DatabaseNames::One(name),
        _ => DatabaseNames::Several,
    }
}

/// Returns the database of a record in PubMed's format. ERIC exports this format too, and so does this project, for
/// studies of any source.
fn of_nbib(first: &Reference) -> Option<String> {
    match named(first) {
        DatabaseNames::One(name) => return Some(name),
        DatabaseNames::Several => return None,
        DatabaseNames::Nothing => {}
    }
    let owner = values(first, "OWN").next();
    if let Some(owner) = owner.filter(|owner| !NLM_OWNERS.contains(owner)) {
        return vocabulary::find(owner).map(|known| known.name.to_owned());
    }
    let is_exported = values(first, "AID").any(|value| value.ends_with(STUDY_KEY));
    (!is_exported).then(|| "PubMed".to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::contents::COLLECTIONS;
    use super::*;

    fn guessed(tags: &[(&str, &str)], url: Option<&str>) -> (Option<String>, Option<String>) {
        let extra = tags.iter().map(|(tag, text)| ((*tag).to_owned(), vec![(*text).to_owned()])).collect();
        let first = Reference { extra, url: url.map(str::to_owned), ..Reference::default() };
        of(guess("RIS", Some(&first)).source)
    }

    fn of(source: Source) -> (Option<String>, Option<String>) {
        (source.database, source.platform)
    }

    /// A record with tags, the first value of each behind its name: `("UT", "WOS:000600000100001")`.
    fn record(tags: &[(&str, &str)]) -> Reference {
        let extra = tags.iter().map(|(tag, text)| ((*tag).to_owned(), vec![(*text).to_owned()])).collect();
        Reference { extra, ..Reference::default() }
    }

    fn of_wos(tag: &str, number: &str) -> Reference {
        Reference { wos_id: Some(number.to_owned()), ..record(&[(tag, number)]) }
    }

    fn is(database: Option<&str>, platform: Option<&str>) -> (Option<String>, Option<String>) {
        (database.map(str::to_owned), platform.map(str::to_owned))
    }

    #[test]
    fn name_that_no_reviewer_could_set_is_no_source() {
        assert_eq!(guessed(&[("DB", &"x".repeat(255))], None).0, Some("x".repeat(255)));
        for name in ["x".repeat(256), "Tests\u{7}".to_owned()] {
            assert_eq!(guessed(&[("DB", &name), ("DP", &name)], None), (None, None), "{name:?}");
        }
    }

    #[test]
    fn remark_of_the_abstract_shows_psycinfo() {
        let text = "We test. (PsycInfo Database Record (c) 2020 APA, all rights reserved)";
        let first = Reference { r#abstract: Some(text.to_owned()), ..Reference::default() };
        assert_eq!(of(guess("RIS", Some(&first)).source), is(Some("APA PsycInfo"), None));
    }

    #[test]
    fn source_is_guessed_from_tags_and_links() {
        for (tags, url, expected) in [
            (&[("DB", "psyh"), ("DP", "EBSCOhost")][..], None, is(Some("APA PsycInfo"), Some("EBSCOhost"))),
            (&[("DB", " Scopus ")], None, is(Some("Scopus"), None)),
            (&[("DB", "Medline"), ("DP", "NLM")], None, is(Some("MEDLINE"), None)),
            (&[("DB", "MEDLINE ")], None, is(Some("MEDLINE"), None)),
            (
                &[("DB", "CINAHL with Full Text"), ("DP", "EBSCOhost")],
                None,
                is(Some("CINAHL"), Some("EBSCOhost")),
            ),
            (&[("DB", "Embase <1980 to 2024 Week 25>")], None, is(Some("Embase"), Some("Ovid"))),
            (&[("DB", "Ovid MEDLINE(R) ALL")], None, is(Some("MEDLINE"), Some("Ovid"))),
            (&[("DB", "EMBASE (Ovid)"), ("DP", "EBSCOhost")], None, is(Some("Embase"), Some("EBSCOhost"))),
            (
                &[("L2", "http://ovidsp.ovid.com/ovidweb.cgi?T=JS&D=medp&AN=1")],
                None,
                is(Some("MEDLINE"), Some("Ovid")),
            ),
            (
                &[],
                Some("https://search.ebscohost.com/login.aspx?direct=true&db=psyh&AN=2019-12345-001"),
                is(Some("APA PsycInfo"), Some("EBSCOhost")),
            ),
            (&[], Some("https://clinicaltrials.gov/study/NCT1"), is(Some("ClinicalTrials.gov"), None)),
            (&[("remote-database-name", "Embase")], None, is(Some("Embase"), None)),
            (&[], Some("https://ovidsp.ovid.com/ovidweb.cgi?T=JS"), is(None, Some("Ovid"))),
            (&[], Some("https://www.scopus.com/inward/record.uri"), is(Some("Scopus"), None)),
            (&[("DB", "")], Some("https://example.org"), is(None, None)),
            (&[("database", "Embase"), ("platform", "Ovid")], None, is(Some("Embase"), Some("Ovid"))),
            (&[("source", "Embase")], None, is(None, None)),
            (&[("%W", "CNKI")], None, is(Some("CNKI"), None)),
            (&[("%~", "PubMed")], None, is(Some("PubMed"), None)),
            (&[("DB", "c8h")], None, is(Some("CINAHL"), None)),
            (&[("Database Provider", "北京万方数据股份有限公司")], None, is(Some("Wanfang"), None)),
            (&[("SrcDatabase-来源库", "期刊")], None, is(Some("CNKI"), None)),
            (&[("流水号", "2020123456")], None, is(Some("SinoMed"), None)),
            (&[("文献番号", "2020123456"), ("論文種類", "原著")], None, is(Some("Ichushi"), None)),
            (
                &[("cites_url", "https://scholar.google.com/scholar?cites=1")],
                None,
                is(Some("Google Scholar"), None),
            ),
            (&[], Some("https://ieeexplore.ieee.org/document/1"), is(Some("IEEE Xplore"), None)),
            (&[("Source", "Journal of Tests")], None, is(None, None)),
            (&[("Source Register", "ISRCTN")], Some("https://www.isrctn.com/1"), is(Some("WHO ICTRP"), None)),
        ] {
            assert_eq!(guessed(tags, url), expected, "{tags:?} {url:?}");
        }
    }

    #[test]
    fn exported_source_survives_reimport() {
        let guess = |format, tags: &[(&str, &str)]| {
            let extra =
                tags.iter().map(|(tag, text)| ((*tag).to_owned(), vec![(*text).to_owned()])).collect();
            guess(format, Some(&Reference { extra, ..Reference::default() })).source
        };
        let table =
            guess("CSV", &[("database", "Embase"), ("platform", "Ovid"), ("searched_on", "2026-05-17")]);
        assert_eq!(table.database.as_deref(), Some("Embase"));
        assert_eq!(table.searched_on.map(|date| date.to_string()).as_deref(), Some("2026-05-17"));
        assert_eq!(guess("CSV", &[("searched_on", "last May")]), Source::default());
        assert_eq!(guess("CSL-JSON", &[("source", "Embase")]).database.as_deref(), Some("Embase"));
    }

    #[test]
    fn single_database_formats_need_no_record() {
        for (format, database) in [
            ("PubMed nbib", Some("PubMed")),
            ("PubMed XML", Some("PubMed")),
            ("Web of Science plain text", Some("Web of Science")),
            ("Cochrane text", Some("Cochrane Library")),
            ("ISRCTN XML", Some("ISRCTN")),
            ("EU Clinical Trials Register text", Some("EU Clinical Trials Register")),
            ("CSV", None),
        ] {
            assert_eq!(guess(format, None).source.database.as_deref(), database, "{format}");
        }
        assert_eq!(guess("Ovid text", None).source.platform.as_deref(), Some("Ovid"));
    }

    #[test]
    fn wos_collection_is_database_on_platform() {
        let wos = |database| is(Some(database), Some("Web of Science"));
        for (format, tag, number, expected) in [
            ("RIS", "AN", "WOS:000600000100001", is(Some("Web of Science"), None)),
            ("TSV", "UT", "WOS:000600000100001", is(Some("Web of Science"), None)),
            ("BibTeX", "unique-id", "WOS:000600000100001", is(Some("Web of Science"), None)),
            ("CSV", "UT (Unique WOS ID)", "WOS:000600000100001", is(Some("Web of Science"), None)),
            ("CSV", "UT (Unique WOS ID)", "MEDLINE:33333333", wos("MEDLINE")),
            ("Web of Science plain text", "UT", "WOS:000600000100001", is(Some("Web of Science"), None)),
            ("Web of Science plain text", "UT", "ZOOREC:ZOOR15602012345", wos("Zoological Record")),
            ("Web of Science plain text", "UT", "KJD:ART002500001", wos("KCI-Korean Journal Database")),
            // The record was found elsewhere.
            ("RIS", "N1", "WOS:000600000100001", is(None, None)),
            ("CSV", "wos_id", "WOS:000600000100001", is(None, None)),
        ] {
            let found = guess(format, Some(&of_wos(tag, number)));
            assert_eq!(of(found.source), expected, "{format} {tag} {number}");
        }
        let link =
            Reference { url: Some("<Go to ISI>://000243564000008".to_owned()), ..Reference::default() };
        assert_eq!(of(guess("RIS", Some(&link)).source), is(Some("Web of Science"), None));
        assert!(COLLECTIONS.iter().all(|(_, name)| vocabulary::find(name).is_some()));
    }

    #[test]
    fn embase_number_counts_only_in_own_exports() {
        let number = |tag, number: &str| Reference {
            embase_id: Some("L2001234567".to_owned()),
            ..record(&[(tag, number)])
        };
        for (tag, value, expected) in [
            ("PUI", "L2001234567", is(Some("Embase"), None)),
            ("U2", "L2001234567", is(Some("Embase"), None)),
            ("C3", "PUBMED 33333333,EMBASE 2001234567", is(None, None)),
            ("N1", "Embase ID: L2001234567", is(None, None)),
        ] {
            assert_eq!(of(guess("RIS", Some(&number(tag, value))).source), expected, "{tag}");
        }
        let tags = [("PUI", "L2001234567"), ("AN", "WOS:000600000100001")];
        let merged = Reference {
            embase_id: Some("L2001234567".to_owned()),
            wos_id: Some("WOS:000600000100001".to_owned()),
            url: Some("https://www.scopus.com/x".to_owned()),
            ..record(&tags)
        };
        assert_eq!(of(guess("RIS", Some(&merged)).source), is(None, None));
    }

    #[test]
    fn columns_of_one_database_show_it() {
        for (tags, expected) in [
            (&[("Dimensions URL", "https://app.dimensions.ai/details/publication/pub.1")][..], "Dimensions"),
            (&[("Lens ID", "001-234-567-890-123")], "Lens.org"),
            (&[("EMBASE LINK", "https://www.embase.com/search/results?id=L1")], "Embase"),
            (&[("First Author", "Roe A"), ("Create Date", "2020/12/16")], "PubMed"),
            (&[("id", "https://openalex.org/W3100000001")], "OpenAlex"),
            (&[("Database", "LILACS")], "LILACS"),
            (&[("Database", "Embase <1974 to 2024 Week 2>")], "Embase"),
            (&[("ISRCTN", "ISRCTN12345678"), ("Condition category", "Injury")], "ISRCTN"),
            (&[("DRKS-ID", "DRKS00012345"), ("Registration Date in DRKS", "2019-02-03")], "DRKS"),
            (&[("TRIAL ID", "ACTRN12619000123456"), ("PUBLIC TITLE", "Falls")], "ANZCTR"),
            (&[("注册号", "ChiCTR2000029953"), ("研究疾病", "新冠肺炎")], "ChiCTR"),
            (&[("Trial number", "2022-500123-27-00"), ("Overall decision date", "03/02/2023")], "CTIS"),
            (&[("NCT Number", "NCT04012345"), ("Study Results", "NO")], "ClinicalTrials.gov"),
        ] {
            let found = guess("CSV", Some(&record(tags)));
            assert_eq!(found.source.database.as_deref(), Some(expected), "{tags:?}");
            assert!(found.needs_others && vocabulary::find(expected).is_some(), "{tags:?}");
        }
        for tags in [
            &[("NCT Number", "NCT04012345")][..],
            &[("ISRCTN", "ISRCTN12345678"), ("Country", "UK")],
            &[("id", "https://example.org/W3100000001")],
            &[("Create Date", "2020/12/16")],
            &[("Database", "Our library")],
        ] {
            assert_eq!(guess("CSV", Some(&record(tags))).source, Source::default(), "{tags:?}");
        }
    }

    #[test]
    fn link_to_registration_shows_register_only_for_registrations() {
        let linked = |url: &str, pmid: Option<&str>| {
            let first = Reference {
                url: Some(url.to_owned()),
                pmid: pmid.map(str::to_owned),
                ..Reference::default()
            };
            guess("CSV", Some(&first)).source.database
        };
        for (url, register) in [
            ("https://ClinicalTrials.gov/show/NCT04012345", "ClinicalTrials.gov"),
            ("HTTPS://WWW.ISRCTN.COM/ISRCTN12345678", "ISRCTN"),
            ("https://drks.de/search/de/trial/DRKS00012345", "DRKS"),
            ("https://www.anzctr.org.au/ACTRN12619000123456.aspx", "ANZCTR"),
        ] {
            assert_eq!(linked(url, None).as_deref(), Some(register), "{url}");
            assert_eq!(linked(url, Some("33333333")), None, "{url}");
        }
    }

    #[test]
    fn nbib_of_another_owner_is_not_pubmed() {
        for (tags, expected) in [
            (&[("OWN", "NLM")][..], Some("PubMed")),
            (&[("OWN", "NOTNLM")], Some("PubMed")),
            (&[], Some("PubMed")),
            (&[("OWN", "ERIC")], Some("ERIC")),
            (&[("OWN", "Our library")], None),
            // Exports of this project.
            (&[("DB", "Embase"), ("AID", "k1 [study-key]")], Some("Embase")),
            (&[("OWN", "NOTNLM"), ("AID", "k1 [study-key]")], None),
        ] {
            let found = guess("PubMed nbib", Some(&record(tags)));
            assert_eq!(found.source.database.as_deref(), expected, "{tags:?}");
        }
    }

    #[test]
    fn reference_manager_or_merged_record_is_no_source() {
        for (tags, expected) in [
            (&[("DB", "EndNote"), ("DP", "Zotero")][..], is(None, None)),
            (&[("DB", "Mendeley Desktop"), ("DP", "DOI.org (Crossref)")], is(None, None)),
            (&[("DB", "Embase; MEDLINE"), ("DP", "Ovid")], is(None, Some("Ovid"))),
            (&[("DB", "MEDLINE; Ovid MEDLINE(R)")], is(Some("MEDLINE; Ovid MEDLINE(R)"), None)),
            (&[("DB", "Zoterology Index")], is(Some("Zoterology Index"), None)),
        ] {
            assert_eq!(guessed(tags, None), expected, "{tags:?}");
        }
        let zotero = |source| guess("CSL-JSON", Some(&record(&[("source", source)]))).source;
        assert_eq!(zotero("Zotero"), Source::default());
        assert_eq!(zotero("DOI.org (Crossref)"), Source::default());
        assert_eq!(zotero("Web of Science Nextgen").database.as_deref(), Some("Web of Science"));
        let twice = BTreeMap::from([("DB".to_owned(), vec!["Embase".to_owned(), "MEDLINE".to_owned()])]);
        let first = Reference { extra: twice, ..Reference::default() };
        assert_eq!(guess("RIS", Some(&first)).source, Source::default());
    }

    #[test]
    fn further_records_confirm_source_or_remove_it() {
        let (core, medline) = (of_wos("AN", "WOS:000600000100001"), of_wos("AN", "MEDLINE:33333333"));
        let (scopus, silent) = (record(&[("DB", "Scopus")]), Reference::default());
        let confirmed = |first: &Reference, others: &[&Reference]| {
            let found = guess("RIS", Some(first));
            assert!(found.needs_others);
            of(found.confirmed("RIS", others.iter().copied()))
        };
        let of_core = is(Some("Web of Science"), None);
        assert_eq!(confirmed(&core, &[]), of_core);
        assert_eq!(confirmed(&core, &[&core; 4]), of_core);
        assert_eq!(confirmed(&core, &[&core, &silent]), of_core);
        assert_eq!(confirmed(&core, &[&core, &silent, &silent]), is(None, None));
        assert_eq!(confirmed(&core, &[&core, &core, &core, &scopus]), is(None, None));
        assert_eq!(confirmed(&medline, &[&medline; 2]), is(Some("MEDLINE"), Some("Web of Science")));
        // A search in all databases.
        assert_eq!(confirmed(&medline, &[&medline, &core]), of_core);
        assert_eq!(confirmed(&medline, &[&medline, &scopus]), is(None, None));
        // A library that was merged in a reference manager.
        assert_eq!(confirmed(&scopus, &[&record(&[("DB", "Embase")])]), is(None, None));
        // embase.com names MEDLINE for some records.
        let embase = |names: &[&str]| Reference {
            embase_id: Some("L2004567890".to_owned()),
            extra: BTreeMap::from([
                ("DB".to_owned(), names.iter().map(|name| (*name).to_owned()).collect()),
                ("U2".to_owned(), vec!["L2004567890".to_owned()]),
            ]),
            ..Reference::default()
        };
        let [one, both] = [embase(&["Embase"]), embase(&["Embase", "Medline"])];
        assert_eq!(confirmed(&both, &[&one, &both]), is(Some("Embase"), None));
        assert_eq!(confirmed(&one, &[&both; 3]), is(Some("Embase"), None));
        // A search of Ovid in several databases.
        let [embase, amed] = ["Embase <1974 to 2024>", "AMED"].map(|name| record(&[("Database", name)]));
        let found = guess("Ovid text", Some(&embase)).confirmed("Ovid text", [&embase, &amed].into_iter());
        assert_eq!(of(found), is(None, Some("Ovid")));
    }
}
