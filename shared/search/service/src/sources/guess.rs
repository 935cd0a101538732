//! Guessing the source of a file from its format and first record.

use references::Reference;

use super::Source;

/// Short names of databases in files from EBSCOhost.
const SHORT_NAMES: [(&str, &str); 10] = [
    ("psyh", "APA PsycInfo"),
    ("pdh", "APA PsycArticles"),
    ("ccm", "CINAHL"),
    ("cin20", "CINAHL"),
    ("rzh", "CINAHL"),
    ("mdc", "MEDLINE"),
    ("mnh", "MEDLINE"),
    ("cmedm", "MEDLINE"),
    ("eric", "ERIC"),
    ("sih", "SocINDEX"),
];

/// The names of the source columns in the exports of this project.
const DATABASE: &str = "database";
const PLATFORM: &str = "platform";
const SEARCHED_ON: &str = "searched_on";

/// Hosts of links, with the database and platform that they belong to.
const HOSTS: [(&str, Option<&str>, Option<&str>); 8] = [
    ("pubmed.ncbi.nlm.nih.gov", Some("PubMed"), None),
    ("www.ncbi.nlm.nih.gov/pubmed", Some("PubMed"), None),
    ("www.scopus.com", Some("Scopus"), None),
    ("www.embase.com", Some("Embase"), None),
    ("ovidsp.ovid.com", None, Some("Ovid")),
    ("search.ebscohost.com", None, Some("EBSCOhost")),
    ("www.proquest.com", None, Some("ProQuest")),
    ("www.cochranelibrary.com", Some("Cochrane Library"), None),
];

/// Returns the source that the format of a file and its first record indicate; empty if they indicate none.
pub(super) fn guess(format: &str, first: Option<&Reference>) -> Source {
    let (by_format, through) = match format {
        "PubMed nbib" | "PubMed XML" | "PubMed text" => (Some("PubMed"), None),
        "Web of Science plain text" => (Some("Web of Science"), None),
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
    // In other formats `source` is the journal.
    if format == "CSL-JSON" {
        database = database.or_else(|| tag(&["source"]));
    }
    let searched_on = tag(&[SEARCHED_ON]).and_then(|date| date.parse().ok());
    if let Some(known) = database.as_ref().and_then(|name| spelt_out(name)) {
        database = Some(known.to_owned());
    }
    // The provider of PubMed is not a search platform.
    platform = platform.filter(|platform| platform != "NLM");
    if let Some((_, by_link, through)) = first.url.as_deref().and_then(of_link) {
        database = database.or_else(|| by_link.map(str::to_owned));
        platform = platform.or_else(|| through.map(str::to_owned));
    }
    Source { database, platform, searched_on }
}

fn spelt_out(short: &str) -> Option<&'static str> {
    SHORT_NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(short)).map(|(_, name)| *name)
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
            (&[("DB", "Medline"), ("DP", "NLM")], None, is(Some("Medline"), None)),
            (&[("remote-database-name", "Embase")], None, is(Some("Embase"), None)),
            (&[], Some("https://ovidsp.ovid.com/ovidweb.cgi?T=JS"), is(None, Some("Ovid"))),
            (&[], Some("https://www.scopus.com/inward/record.uri"), is(Some("Scopus"), None)),
            (&[("DB", "")], Some("https://example.org"), is(None, None)),
            (&[("database", "Embase"), ("platform", "Ovid")], None, is(Some("Embase"), Some("Ovid"))),
            (&[("source", "Embase")], None, is(None, None)),
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
            ("CSV", None),
        ] {
            assert_eq!(guess(format, None).database.as_deref(), database, "{format}");
        }
        assert_eq!(guess("Ovid text", None).platform.as_deref(), Some("Ovid"));
    }
}
