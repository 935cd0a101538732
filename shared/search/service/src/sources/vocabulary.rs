//! The list of known sources: databases, trial registers and other methods, and the platforms of databases.
//!
//! Different spellings of a known name are the same source. Names that are not in the list are accepted as they are.

use serde::Serialize;
use utoipa::ToSchema;

use Method::{Database, Other, Register};

/// How records of a source were identified, as distinguished by PRISMA 2020.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Method {
    /// A bibliographic database. A source that is not in the list counts as a database.
    Database,
    /// A register of trials or reviews.
    Register,
    /// Other methods, such as citation searching.
    Other,
}

/// A known source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct VocabularyEntry {
    /// The usual name of the source.
    pub name: &'static str,
    /// How its records are identified.
    pub method: Method,
    /// Other spellings, in lower case.
    spellings: &'static [&'static str],
}

const fn known(name: &'static str, method: Method, spellings: &'static [&'static str]) -> VocabularyEntry {
    VocabularyEntry { name, method, spellings }
}

/// All known sources, by method and name.
pub const KNOWN: &[VocabularyEntry] = &[
    known(
        "Academic Search",
        Database,
        &["a9h", "aph", "asn", "afh", "academic search premier", "academic search elite"],
    ),
    known("ACM Digital Library", Database, &["acm"]),
    known("AGRICOLA", Database, &[]),
    known("AGRIS", Database, &[]),
    known("AMED", Database, &[]),
    known("APA PsycArticles", Database, &["pdh", "psycarticles"]),
    known("APA PsycInfo", Database, &["psyh", "psycinfo"]),
    known("Arabic Citation Index", Database, &[]),
    known("ASSIA", Database, &[]),
    known("Biological Abstracts", Database, &[]),
    known("BIOSIS Citation Index", Database, &[]),
    known("BIOSIS Previews", Database, &["biosis"]),
    known("Business Source", Database, &["business source premier", "buh", "bth"]),
    known("CAB Abstracts", Database, &[]),
    known("CABI: CAB Abstracts and Global Health", Database, &[]),
    known("CENTRAL", Database, &["cochrane central register of controlled trials", "cochrane central"]),
    known("Chinese Science Citation Database", Database, &["cscd"]),
    known("CINAHL", Database, &["ccm", "cin20", "rzh", "c8h", "c9h", "jlh", "cinahl plus"]),
    known("CNKI", Database, &[]),
    known("Cochrane Database of Systematic Reviews", Database, &["cdsr"]),
    known("Cochrane Library", Database, &["cochrane"]),
    known("Compendex", Database, &["ei compendex"]),
    known("Crossref", Database, &[]),
    known("CSSCI", Database, &[]),
    known("Current Contents Connect", Database, &[]),
    known("Data Citation Index", Database, &[]),
    known("Derwent Innovations Index", Database, &[]),
    known("Dimensions", Database, &[]),
    known("EconLit", Database, &["ecn"]),
    known("Embase", Database, &["embase.com", "embase classic", "embase classic+embase"]),
    known("Epistemonikos", Database, &[]),
    known("ERIC", Database, &[]),
    known("Europe PMC", Database, &["europepmc"]),
    known("FSTA", Database, &["food science and technology abstracts"]),
    known("Global Health", Database, &[]),
    known("Global Index Medicus", Database, &[]),
    known("Google Scholar", Database, &[]),
    known("HMIC", Database, &[]),
    known("Ichushi", Database, &["医中誌"]),
    known("IEEE Xplore", Database, &["ieee"]),
    known("Inspec", Database, &[]),
    known("JSTOR", Database, &[]),
    known("KCI-Korean Journal Database", Database, &["korean journal database"]),
    known("Lens.org", Database, &["lens", "the lens"]),
    known("LILACS", Database, &[]),
    known("MEDLINE", Database, &["ovid medline", "ovid medline all", "mdc", "mnh", "cmedm", "medline all"]),
    known("OpenAlex", Database, &[]),
    known("PEDro", Database, &[]),
    known("Preprint Citation Index", Database, &[]),
    known("ProQuest Dissertations & Theses", Database, &["proquest dissertations and theses", "pqdt"]),
    known("PubMed", Database, &[]),
    known("Russian Science Citation Index", Database, &[]),
    known(
        "SciELO",
        Database,
        &[
            "scielo citation index",
            "scielo brazil",
            "scielo brasil",
            "scielo public health",
            "scielo preprints",
        ],
    ),
    known("Scopus", Database, &[]),
    known("Semantic Scholar", Database, &[]),
    known("SinoMed", Database, &["中国生物医学文献服务系统"]),
    known("Social Services Abstracts", Database, &[]),
    known("Sociological Abstracts", Database, &[]),
    known("SocINDEX", Database, &["sih"]),
    known("SPORTDiscus", Database, &["s3h", "sph"]),
    known("VIP", Database, &[]),
    known("Wanfang", Database, &["wanfang data"]),
    known(
        "Web of Science",
        Database,
        &["wos", "web of science core collection", "web of science all databases", "web of science nextgen"],
    ),
    known("Zoological Record", Database, &[]),
    known("ANZCTR", Register, &["australian new zealand clinical trials registry"]),
    known("ChiCTR", Register, &["chinese clinical trial registry"]),
    known("ClinicalTrials.gov", Register, &["clinicaltrials", "clinical trials.gov", "nct"]),
    known("CRIS", Register, &["clinical research information service"]),
    known("CTIS", Register, &["clinical trials information system", "eu clinical trials"]),
    known("CTRI", Register, &["clinical trials registry - india"]),
    known("DRKS", Register, &["german clinical trials register"]),
    known("EU Clinical Trials Register", Register, &["eu ctr", "euctr", "eudract"]),
    known("IRCT", Register, &["iranian registry of clinical trials"]),
    known("ISRCTN", Register, &["isrctn registry"]),
    known("jRCT", Register, &["japan registry of clinical trials"]),
    known("PACTR", Register, &["pan african clinical trials registry"]),
    known("PROSPERO", Register, &[]),
    known("ReBEC", Register, &["brazilian clinical trials registry"]),
    known("UMIN-CTR", Register, &["umin"]),
    known("WHO ICTRP", Register, &["ictrp", "international clinical trials registry platform"]),
    known("Citation searching", Other, &["citation search", "reference lists", "snowballing"]),
    known("Experts", Other, &["personal communication"]),
    known("Hand searching", Other, &["handsearching", "hand search"]),
    known("Organisations", Other, &["organizations"]),
    known("Websites", Other, &["website", "websites and grey literature"]),
];

/// The usual names of platforms, with their other spellings in lower case.
const PLATFORMS: &[(&str, &[&str])] = &[
    ("Clarivate", &[]),
    ("Cochrane Library", &["wiley"]),
    ("EBSCOhost", &["ebsco"]),
    ("Elsevier", &[]),
    ("Embase.com", &[]),
    ("Ovid", &["ovidsp", "ovid technologies", "wolters kluwer"]),
    ("ProQuest", &[]),
    ("PubMed", &[]),
    ("Web of Science", &["wos"]),
];

/// Returns the names of all known platforms.
pub fn platforms() -> impl Iterator<Item = &'static str> {
    PLATFORMS.iter().map(|(name, _)| *name)
}

/// The characters before the edition or the trademark of a database.
const BEFORE_EDITION: [char; 5] = ['<', '‹', '(', '®', '['];
/// The name of Ovid's group of databases, which precedes theirs.
const GROUP: &str = "ebm reviews - ";
/// The words for the extent of a database on a platform.
const EXTENTS: [&str; 2] = [" ultimate", " global"];

/// Parts of Chinese names of databases, and the lower-case names of the databases.
const CHINESE: [(&str, &str); 3] = [("万方", "wanfang"), ("维普", "vip"), ("知网", "cnki")];

/// Returns the known source with this name in any spelling. Databases add editions, which do not matter:
/// `Embase <1980 to 2024 Week 25>`.
pub(super) fn find(name: &str) -> Option<&'static VocabularyEntry> {
    let lower = name.trim().to_lowercase();
    let plain = lower.split(BEFORE_EDITION).next().unwrap_or_default();
    let plain =
        plain.split(" with ").next().unwrap_or_default().split(" complete").next().unwrap_or_default();
    let plain = plain.trim();
    let plain = plain.strip_prefix(GROUP).unwrap_or(plain);
    let plain = EXTENTS.iter().find_map(|extent| plain.strip_suffix(extent)).unwrap_or(plain).trim_end();
    // The names of Chinese providers contain those of companies.
    let plain = CHINESE.iter().find(|(part, _)| plain.contains(part)).map_or(plain, |(_, name)| name);
    KNOWN.iter().find(|known| known.name.to_lowercase() == plain || known.spellings.contains(&plain))
}

/// Returns the usual spelling of a database's name, or the name itself without surrounding spaces. Editions are kept.
pub(crate) fn usual_database(name: &str) -> String {
    let trimmed = name.trim();
    // Searches of the same database may differ in the edition.
    let found = find(trimmed).filter(|_| !trimmed.contains(['<', '‹', '(', '[']));
    found.map_or(trimmed, |known| known.name).to_owned()
}

/// Returns the usual spelling of a platform's name, or the name itself without surrounding spaces.
pub(super) fn usual_platform(name: &str) -> String {
    let trimmed = name.trim();
    let lower = trimmed.to_lowercase();
    let found = PLATFORMS
        .iter()
        .find(|(name, spellings)| name.to_lowercase() == lower || spellings.contains(&lower.as_str()));
    found.map_or(trimmed, |(name, _)| *name).to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn spellings_are_unique_and_in_lower_case() {
        let names = KNOWN.iter().map(|known| known.name.to_lowercase());
        let spellings = KNOWN.iter().flat_map(|known| known.spellings).map(|spelling| (*spelling).to_owned());
        let all: Vec<String> = names.chain(spellings).collect();
        assert_eq!(all.iter().collect::<BTreeSet<_>>().len(), all.len());
        assert!(all.iter().all(|name| *name == name.to_lowercase()));
        assert!(KNOWN.iter().all(|known| find(known.name) == Some(known)));
    }

    #[test]
    fn editions_of_a_database_are_one_source() {
        for (name, expected) in [
            ("a9h", Some("Academic Search")),
            ("Academic Search Ultimate", Some("Academic Search")),
            ("MEDLINE Ultimate", Some("MEDLINE")),
            ("MEDLINE Complete", Some("MEDLINE")),
            ("CINAHL Ultimate", Some("CINAHL")),
            ("ProQuest Dissertations & Theses Global", Some("ProQuest Dissertations & Theses")),
            ("Embase Classic+Embase <1947 to 2024 Week 25>", Some("Embase")),
            ("Embase Classic+Embase ‹1947 to 2024 Week 25›", Some("Embase")),
            ("EBM Reviews - Cochrane Central Register of Controlled Trials <May 2020>", Some("CENTRAL")),
            ("Web of Science All Databases", Some("Web of Science")),
            ("CAB Abstracts <1973 to 2024>", Some("CAB Abstracts")),
            ("CABI: CAB Abstracts and Global Health", Some("CABI: CAB Abstracts and Global Health")),
            ("Global Health <1973 to 2024>", Some("Global Health")),
            ("Global", None),
            ("EBM Reviews - ", None),
        ] {
            assert_eq!(find(name).map(|known| known.name), expected, "{name}");
        }
        assert_eq!(usual_database("MEDLINE ‹1946 to 2024›"), "MEDLINE ‹1946 to 2024›");
    }

    #[test]
    fn spellings_of_a_source_have_one_name() {
        for name in ["MEDLINE", "Medline", "medline ", " MEDLINE"] {
            assert_eq!(usual_database(name), "MEDLINE");
        }
        assert_eq!(usual_database(" Our own database "), "Our own database");
        assert_eq!(usual_database("Embase <1980 to 2024>"), "Embase <1980 to 2024>");
        assert_eq!(
            [usual_platform("ebsco"), usual_platform("OVID "), usual_platform("Else")],
            ["EBSCOhost", "Ovid", "Else"]
        );
    }
}
