//! Recognizes the databases and methods of a search, which reviewers write into a column for the source.

use crate::work::spend;

/// The columns that hold a journal in some tables and the label of a search in others.
pub(super) const COLUMNS: [&str; 7] =
    ["source", "来源", "文献来源", "出处", "источник", "来源出版物", "情報源"];

/// Names of databases, in lower case, without punctuation and [`OTHER_WORDS`].
#[rustfmt::skip]
const DATABASES: [&str; 86] = [
    "acm", "acm digital library", "agricola", "amed", "apa psycarticles", "apa psycinfo", "apa psycnet", "biosis",
    "biosis previews", "cab abstracts", "cbm", "cdsr", "central", "cinahl", "cinii", "clinicaltrials gov", "cnki",
    "cochrane", "cochrane central", "cochrane central register of controlled trials", "cochrane library", "crossref",
    "dblp", "dimensions", "doaj", "embase", "epistemonikos", "eric", "eudract", "europe pmc", "google", "google scholar",
    "ichushi", "ictrp", "ieee", "ieee digital library", "ieee xplore", "ieeexplore", "isrctn", "jstage", "jstor", "kci",
    "kiss", "koreamed", "lens", "lilacs", "medline", "opengrey", "open grey", "openalex", "pedro", "pmc", "prospero",
    "psycarticles", "psycinfo", "psycnet", "pubmed", "pubmed central", "pubpsych", "redalyc", "riss", "scholar", "science direct",
    "sciencedirect", "scielo", "scopus", "semantic scholar", "sinomed", "sociological abstracts", "sportdiscus",
    "springer link", "springerlink", "trip", "vip", "wanfang", "wanfang data", "web of knowledge",
    "web of science", "who ictrp", "wiley library", "wos", "worldcat", "中国知网", "万方", "维普", "医学中央雑誌",
];

/// Names of platforms and publishers, which sell several databases.
#[rustfmt::skip]
const PLATFORMS: [&str; 10] = [
    "clarivate", "ebsco", "ebscohost", "elsevier", "isi", "nlm", "ovid", "ovidsp", "proquest", "wiley",
];

/// Words for editions and parts of databases, and ends of names of files.
#[rustfmt::skip]
const OTHER_WORDS: [&str; 28] = [
    "advanced", "all", "bib", "ciw", "classic", "collection", "com", "complete", "core", "csv", "database", "databases", "enw",
    "nbib", "online", "plus", "r", "results", "ris", "search", "the", "tm", "txt", "ultimate", "via", "xls", "xlsx", "xml",
];

/// Methods of a search, in lower case, without punctuation.
#[rustfmt::skip]
const METHODS: [&str; 40] = [
    "additional sources", "backward citation", "backward citation searching", "backward citations", "backward search",
    "backward snowballing", "citation chasing", "citation search", "citation searching", "citation tracking", "citations",
    "database", "database search", "databases", "expert", "experts", "forward citation", "forward citation searching",
    "forward citations", "forward search", "forward snowballing", "gray literature", "grey literature", "hand search",
    "hand searched", "hand searching", "handsearch", "handsearched", "handsearching", "manual search", "manual searching", "other", "other source",
    "other sources", "reference list", "reference lists", "snowball", "snowballing", "trial registry", "website",
];

/// Returns `true` for the name of a database, platform or method of a search, or a list of them: `PubMed, Embase`.
pub(super) fn is_search(cell: &str) -> bool {
    /// The maximum length of a label.
    const MAX_LABEL: usize = 200;
    let cell = cell.trim();
    if cell.len() > MAX_LABEL || !spend(4 * cell.len()) {
        return false;
    }
    let label = without_brackets(&cell.to_lowercase());
    // `Ovid MEDLINE(R) and Epub Ahead of Print, In-Process, In-Data-Review & Other Non-Indexed Citations and Daily`
    if ["ovid medline", "ovid embase"].iter().any(|begin| label.starts_with(begin)) {
        return true;
    }
    let parts =
        || label.split([',', ';', '/', '+', '&', '|', '、', '；', '，']).flat_map(|part| part.split(" and "));
    let mut filled = parts().map(str::trim).filter(|part| !part.is_empty()).peekable();
    filled.peek().is_some() && filled.all(is_source)
}

/// Removes brackets with their content: `Embase (Ovid)`, `MEDLINE <1946 to 2024>`.
fn without_brackets(label: &str) -> String {
    let mut depth = 0_usize;
    let mut is_outside = |c: char| {
        match c {
            '(' | '<' | '[' | '（' => depth += 1,
            ')' | '>' | ']' | '）' => {
                depth = depth.saturating_sub(1);
                return false;
            }
            _ => {}
        }
        depth == 0
    };
    label.chars().filter(|c| is_outside(*c)).filter(|c| !matches!(c, '®' | '™')).collect()
}

fn is_source(part: &str) -> bool {
    let separates = |c: char| !c.is_alphanumeric();
    let words: Vec<&str> = part.split(separates).filter(|word| !word.is_empty()).collect();
    if METHODS.contains(&words.join(" ").as_str()) {
        return true;
    }
    let is_date = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    let rest = words.iter().copied().filter(|word| !OTHER_WORDS.contains(word) && !is_date(word));
    let (platforms, rest): (Vec<&str>, Vec<&str>) = rest.partition(|word| PLATFORMS.contains(word));
    if rest.is_empty() { !platforms.is_empty() } else { DATABASES.contains(&rest.join(" ").as_str()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn databases_and_methods_are_recognised() {
        for label in [
            "PubMed",
            "Ovid MEDLINE",
            "Ovid MEDLINE(R) and Epub Ahead of Print, In-Process and Daily <1946 to May 05, 2024>",
            "MEDLINE (EBSCO)",
            "Medline via Ovid",
            "Embase.com",
            "EMBASE (Ovid)",
            "Embase Classic+Embase",
            "CINAHL Complete",
            "Web of Science Core Collection",
            "EBSCOhost",
            "ProQuest",
            "PubMed, Embase",
            "PubMed; Scopus",
            "PubMed/MEDLINE",
            "Scopus and PubMed",
            "The Cochrane Library",
            "APA PsycINFO®",
            "Scopus 2023-05-01",
            "pubmed.ris",
            "Hand search",
            "Hand-searching",
            "Snowballing",
            "Citation tracking",
            "Reference list(s)",
            "Reference lists",
            "Grey literature",
            "中国知网",
        ] {
            assert!(is_search(label), "{label}");
        }
        for journal in [
            "Lancet",
            "Cochrane Database of Systematic Reviews",
            "The Cochrane database of systematic reviews",
            "Central European Journal of Medicine",
            "Database: the journal of tests",
            "Research and Search",
            "Plus",
            "Online",
            "IEEE Access",
            "Medline Plus Magazine",
            "Global Health",
            "Cell",
            "2020",
            "",
            "()",
        ] {
            assert!(!is_search(journal), "{journal}");
        }
    }
}
