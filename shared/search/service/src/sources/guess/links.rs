//! Recognizes databases by the links of records.

use super::super::vocabulary;

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

/// Hosts of links without `www.`, with the database and platform that they belong to.
const HOSTS: [(&str, Option<&str>, Option<&str>); 25] = [
    ("pubmed.ncbi.nlm.nih.gov", Some("PubMed"), None),
    ("ncbi.nlm.nih.gov/pubmed", Some("PubMed"), None),
    ("scopus.com", Some("Scopus"), None),
    ("embase.com", Some("Embase"), None),
    ("ovidsp.ovid.com", None, Some("Ovid")),
    ("search.ebscohost.com", None, Some("EBSCOhost")),
    ("proquest.com", None, Some("ProQuest")),
    ("cochranelibrary.com", Some("Cochrane Library"), None),
    ("ieeexplore.ieee.org", Some("IEEE Xplore"), None),
    ("openalex.org", Some("OpenAlex"), None),
    ("app.dimensions.ai", Some("Dimensions"), None),
    ("lens.org", Some("Lens.org"), None),
    ("link.lens.org", Some("Lens.org"), None),
    ("clinicaltrials.gov", Some("ClinicalTrials.gov"), None),
    ("trialsearch.who.int", Some("WHO ICTRP"), None),
    ("isrctn.com", Some("ISRCTN"), None),
    ("clinicaltrialsregister.eu", Some("EU Clinical Trials Register"), None),
    ("euclinicaltrials.eu", Some("CTIS"), None),
    ("drks.de", Some("DRKS"), None),
    ("anzctr.org.au", Some("ANZCTR"), None),
    ("chictr.org.cn", Some("ChiCTR"), None),
    ("kns.cnki.net", Some("CNKI"), None),
    ("d.wanfangdata.com.cn", Some("Wanfang"), None),
    ("qikan.cqvip.com", Some("VIP"), None),
    ("europepmc.org", Some("Europe PMC"), None),
];

/// The database in a link of Ovid.
pub(super) fn of_ovid(url: &str) -> Option<&'static str> {
    let (host, parameters) = url.split_once("/ovidweb.cgi?")?;
    let database = parameters.split('&').find_map(|part| part.strip_prefix("D="))?;
    let database = database.to_ascii_lowercase();
    let name = OVID_NAMES.iter().find(|(start, _)| database.starts_with(start)).map(|(_, name)| *name);
    name.filter(|_| host.contains("ovid"))
}

/// The database in a link of `EBSCOhost`: `db=psyh`.
pub(super) fn of_ebsco(url: &str) -> Option<&'static str> {
    let (host, parameters) = url.split_once('?')?;
    let database = parameters.split('&').find_map(|part| part.strip_prefix("db="))?;
    vocabulary::find(database).filter(|_| host.contains("ebscohost")).map(|known| known.name)
}

pub(super) fn of_link(
    url: &str,
) -> Option<&'static (&'static str, Option<&'static str>, Option<&'static str>)> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    // The case of a host does not matter: `ClinicalTrials.gov`.
    let rest = if begins(rest, "www.") { &rest["www.".len()..] } else { rest };
    HOSTS.iter().find(|(host, ..)| begins(rest, host))
}

pub(super) fn begins(text: &str, start: &str) -> bool {
    text.get(..start.len()).is_some_and(|found| found.eq_ignore_ascii_case(start))
}
