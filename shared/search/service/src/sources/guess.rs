//! Guessing the source of a file from its format and first record.

use references::Reference;

use super::{Source, vocabulary};

/// The beginnings of the short names of databases in links of Ovid: `D=medp`, `D=emed25`.
const OVID_NAMES: [(&str, &str); 10] = [
    ("med", "MEDLINE"),
    ("pmnm", "MEDLINE"),
    ("prem", "MEDLINE"),
    ("ppez", "MEDLINE"),
    ("em", "Embase"),
    ("oemez", "Embase"),
    ("psyc", "APA PsycInfo"),
    ("psyh", "APA PsycInfo"),
    ("cctr", "CENTRAL"),
    ("coch", "Cochrane Database of Systematic Reviews"),
];

/// The tags in `extra` that hold further links.
const LINK_TAGS: [&str; 4] = ["L2", "UR", "L1", "Link to the Ovid Full Text or citation"];

/// Other tags and columns for the name of the database, which may also hold something else.
const OTHER_TAGS: [&str; 6] =
    ["%W", "DS", "Database Provider", "Source", "SrcDatabase-来源库", "Library Catalog"];
/// The columns for the register of a trial in tables of the WHO's portal.
const PORTAL_TAGS: [&str; 2] = ["Source Register", "Source_Register"];

/// The names of the source columns in the exports of this project.
const DATABASE: &str = "database";
const PLATFORM: &str = "platform";
const SEARCHED_ON: &str = "searched_on";

/// Hosts of links, with the database and platform that they belong to.
const HOSTS: [(&str, Option<&str>, Option<&str>); 20] = [
    ("pubmed.ncbi.nlm.nih.gov", Some("PubMed"), None),
    ("www.ncbi.nlm.nih.gov/pubmed", Some("PubMed"), None),
    ("www.scopus.com", Some("Scopus"), None),
    ("www.embase.com", Some("Embase"), None),
    ("ovidsp.ovid.com", None, Some("Ovid")),
    ("search.ebscohost.com", None, Some("EBSCOhost")),
    ("www.proquest.com", None, Some("ProQuest")),
    ("www.cochranelibrary.com", Some("Cochrane Library"), None),
    ("openalex.org", Some("OpenAlex"), None),
    ("app.dimensions.ai", Some("Dimensions"), None),
    ("clinicaltrials.gov", Some("ClinicalTrials.gov"), None),
    ("www.clinicaltrials.gov", Some("ClinicalTrials.gov"), None),
    ("trialsearch.who.int", Some("WHO ICTRP"), None),
    ("www.isrctn.com", Some("ISRCTN"), None),
    ("www.clinicaltrialsregister.eu", Some("EU Clinical Trials Register"), None),
    ("euclinicaltrials.eu", Some("CTIS"), None),
    ("kns.cnki.net", Some("CNKI"), None),
    ("d.wanfangdata.com.cn", Some("Wanfang"), None),
    ("qikan.cqvip.com", Some("VIP"), None),
    ("europepmc.org", Some("Europe PMC"), None),
];

/// Returns the source that the format of a file and its first record indicate; empty if they indicate none.
pub(super) fn guess(format: &str, first: Option<&Reference>) -> Source {
    let (by_format, through) = match format {
        "PubMed nbib" | "PubMed XML" | "PubMed text" => (Some("PubMed"), None),
        "Web of Science plain text" => (Some("Web of Science"), None),
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
    let (None, Some(first)) = (by_format, first) else { return from_format };
    let tag = |names: &[&str]| {
        let found = names.iter().find_map(|name| first.extra.get(*name)?.first());
        found.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let (mut database, mut platform) = (
        tag(&["DB", "remote-database-name", DATABASE]),
        from_format.platform.or_else(|| tag(&["DP", "remote-database-provider", PLATFORM])),
    );
    let named = OTHER_TAGS.iter().filter_map(|name| first.extra.get(*name)?.first());
    database = database.or_else(|| {
        named.into_iter().find_map(|name| vocabulary::find(name)).map(|known| known.name.to_owned())
    });
    // Trials of all registers, each with its own link.
    if PORTAL_TAGS.iter().any(|name| first.extra.contains_key(*name)) {
        database = database.or_else(|| Some("WHO ICTRP".to_owned()));
    }
    // In other formats `source` is the journal.
    if matches!(format, "CSL-JSON" | "Zotero RDF") {
        database = database.or_else(|| tag(&["source"]));
    }
    let searched_on = tag(&[SEARCHED_ON]).and_then(|date| date.parse().ok());
    if let Some(known) = database.as_ref().and_then(|name| vocabulary::find(name)) {
        database = Some(known.name.to_owned());
    }
    // The provider of PubMed is not a search platform.
    platform = platform.filter(|platform| platform != "NLM");
    let links = || {
        let tagged = LINK_TAGS.iter().filter_map(|tag| first.extra.get(*tag)).flatten();
        first.url.iter().chain(tagged).map(String::as_str)
    };
    if let Some(name) = links().find_map(of_ovid) {
        database = database.or_else(|| Some(name.to_owned()));
        platform = platform.or_else(|| Some("Ovid".to_owned()));
    }
    if let Some((_, by_link, through)) = links().find_map(of_link) {
        database = database.or_else(|| by_link.map(str::to_owned));
        platform = platform.or_else(|| through.map(str::to_owned));
    }
    Source { database, platform, searched_on }
}

/// The database in a link of Ovid.
fn of_ovid(url: &str) -> Option<&'static str> {
    let (host, parameters) = url.split_once("/ovidweb.cgi?")?;
    let database = parameters.split('&').find_map(|part| part.strip_prefix("D="))?;
    let database = database.to_ascii_lowercase();
    let name = OVID_NAMES.iter().find(|(start, _)| database.starts_with(start)).map(|(_, name)| *name);
    name.filter(|_| host.contains("ovid"))
}

fn of_link(url: &str) -> Option<&'static (&'static str, Option<&'static str>, Option<&'static str>)> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    HOSTS.iter().find(|(host, ..)| rest.starts_with(host))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn guessed(tags: &[(&str, &str)], url: Option<&str>) -> (Option<String>, Option<String>) {
        let extra = tags.iter().map(|(tag, text)| ((*tag).to_owned(), vec![(*text).to_owned()])).collect();
        let first = Reference { extra, url: url.map(str::to_owned), ..Reference::default() };
        let Source { database, platform, .. } = guess("RIS", Some(&first));
        (database, platform)
    }

    fn is(database: Option<&str>, platform: Option<&str>) -> (Option<String>, Option<String>) {
        (database.map(str::to_owned), platform.map(str::to_owned))
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
            (&[("DB", "Embase <1980 to 2024 Week 25>")], None, is(Some("Embase"), None)),
            (
                &[("L2", "http://ovidsp.ovid.com/ovidweb.cgi?T=JS&D=medp&AN=1")],
                None,
                is(Some("MEDLINE"), Some("Ovid")),
            ),
            (&[], Some("https://clinicaltrials.gov/study/NCT1"), is(Some("ClinicalTrials.gov"), None)),
            (&[("remote-database-name", "Embase")], None, is(Some("Embase"), None)),
            (&[], Some("https://ovidsp.ovid.com/ovidweb.cgi?T=JS"), is(None, Some("Ovid"))),
            (&[], Some("https://www.scopus.com/inward/record.uri"), is(Some("Scopus"), None)),
            (&[("DB", "")], Some("https://example.org"), is(None, None)),
            (&[("database", "Embase"), ("platform", "Ovid")], None, is(Some("Embase"), Some("Ovid"))),
            (&[("source", "Embase")], None, is(None, None)),
            (&[("%W", "CNKI")], None, is(Some("CNKI"), None)),
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
            guess(format, Some(&Reference { extra, ..Reference::default() }))
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
            assert_eq!(guess(format, None).database.as_deref(), database, "{format}");
        }
        assert_eq!(guess("Ovid text", None).platform.as_deref(), Some("Ovid"));
    }
}
