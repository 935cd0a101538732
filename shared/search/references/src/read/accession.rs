//! Finds the numbers that databases give to records: those of PubMed Central, Embase, Web of Science, registers of
//! trials and other databases.
//!
//! Most of these numbers have a distinctive shape, and databases write them under various tags, in links and in notes.
//! The values stay in `extra` as given.

mod forms;
mod registrations;

use std::sync::LazyLock;

use memchr::memmem::Finder;

use forms::{
    MAX_NUMBER, accession, is_apa, is_digits, is_doi, is_eric, of_scielo, pmcid, pui, with_collection,
};
pub(super) use registrations::is_registration;
use registrations::{apart, dutch_registration, european, european_registration, is_eudract, registration};

use super::{
    identifiers::{cites, doi, front, labelled_pmid, pmid, running_number},
    resolve,
};
use crate::{Reference, work::spend};

/// The longest value that is searched, except for links and notes. Affiliations and cited references are longer.
const MAX_VALUE: usize = 256;
/// The maximum number of registrations that are kept.
const MAX_TRIALS: usize = 20;

/// The collections in Web of Science, which are a part of its numbers: `WOS:000123456700001`.
const COLLECTIONS: [&str; 18] = [
    "WOS", "BCI", "BIOSIS", "BIOABS", "ZOOREC", "CCC", "KJD", "SCIELO", "CABI", "FSTA", "INSPEC", "DRCI",
    "DIIDW", "RSCI", "PQDT", "PPRN", "CSCD", "ARCI",
];

/// The states of records of MEDLINE on Ovid.
const STATES: [&str; 5] = ["MEDLINE", "OLDMEDLINE", "In-Process", "In-Data-Review", "PubMed-not-MEDLINE"];

/// Tags of RIS, EndNote and BibTeX under which databases also write a DOI.
const DOI_TAGS: [&str; 28] = [
    "custom1",
    "custom2",
    "custom3",
    "custom4",
    "custom5",
    "custom6",
    "custom7",
    "M1",
    "M3",
    "L3",
    "N1",
    "U1",
    "U2",
    "U3",
    "U4",
    "U5",
    "C1",
    "C2",
    "C3",
    "C4",
    "C5",
    "C6",
    "C8",
    "ID",
    "AN",
    "%M",
    "accession-num",
    "key",
];

/// The beginning of the keys that the ACM's library gives to works without a DOI. No DOI is registered there.
const ACM_KEY: &str = "10.5555/";

/// The beginning of the link that EndNote writes for a record of Web of Science.
const GO_TO_ISI: &str = "<Go to ISI>://";

/// Parts of the addresses of trial registers.
const REGISTERS_ON_LINE: [&str; 14] = [
    "clinicaltrials",
    "isrctn",
    "trialsearch",
    "anzctr",
    "drks",
    "who.int",
    "chictr",
    "ctri",
    "jrct",
    "rpcec",
    "ensaiosclinicos",
    "cris.nih",
    "pactr",
    "trialregister",
];

/// The numbers of a record.
#[derive(Debug, Default)]
pub(super) struct Accessions {
    pmcid: Option<String>,
    /// The accession number of Embase, and the identifier that embase.com shows instead.
    embase: [Option<String>; 2],
    wos: Option<String>,
    /// The PubMed identifier of a record of MEDLINE on Web of Science.
    pub(super) pmid: Option<String>,
    trials: Vec<String>,
    /// The number under a tag for the accession number in any database.
    number: Option<String>,
    is_embase: bool,
    /// `true` if the name of the database has a segment, as on Ovid.
    has_segment: bool,
    is_pubmed: bool,
    /// A number of at least seven digits, or of ERIC, under the tag for the number of a record in any file.
    id: Option<String>,
    doi: Option<String>,
}

/// Keeps the first value.
fn keep(slot: &mut Option<String>, found: Option<String>) {
    if slot.is_none() {
        *slot = found;
    }
}

impl Accessions {
    /// Inspects a value that has no field.
    pub(super) fn add(&mut self, tag: &str, value: &str) {
        let value = value.trim();
        // The number of a record in CENTRAL also has the form of a DOI, and so has the key of the ACM for a work without one.
        let is_of_acm = || {
            let number = value.strip_prefix(ACM_KEY);
            number.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.'))
        };
        let is_number = || value.contains("/central/") || (tag == "key" && is_of_acm());
        if DOI_TAGS.contains(&tag) && is_doi(value) && !is_number() {
            keep(&mut self.doi, doi(value));
        }
        if value.starts_with("http") {
            return self.link(value);
        }
        if value.len() > MAX_VALUE || !spend(value.len()) {
            return;
        }
        // `WOS:000123456700001 [wos]` in PubMed's format, where one tag holds identifiers of any type.
        let (number, kind) = value.split_once('[').filter(|_| value.ends_with(']')).unwrap_or((value, ""));
        let (number, mut kind) = (number.trim(), kind.trim_end_matches(']'));
        // Ovid writes a link in place of the number.
        if kind.starts_with("http") {
            self.link(kind);
            kind = "";
        }
        keep(&mut self.pmcid, pmcid(number));
        let is_joined = number.starts_with("ISI") || number.starts_with("WOS");
        self.web_of_science(&if is_joined { with_collection(number) } else { number.into() });
        let has_label =
            |label: &str| number.get(..label.len()).is_some_and(|front| front.eq_ignore_ascii_case(label));
        if has_label("pmid") || has_label("pubmed id:") {
            keep(&mut self.pmid, pmid(number).or_else(|| labelled_pmid(number)));
        }
        match plain(if kind.is_empty() { tag } else { kind }).as_str() {
            "db" | "dp" | "database" | "remotedatabasename" | "w" => {
                self.is_embase |= holds(value, "embase");
                self.is_pubmed |= resolve::is_pubmed(value);
                // `CAB Abstracts <1990 to 2026 Week 10>`
                self.has_segment |= value.contains(" <") && value.ends_with('>');
            }
            "pmid" | "pubmed" | "pubmedid" => {
                keep(&mut self.pmid, pmid(number).filter(|number| !running_number(number)));
            }
            // MEDLINE on Ovid, without the field for the database.
            "nlmjournalcode" => self.is_pubmed = true,
            "status" if STATES.contains(&value) => self.is_pubmed = true,
            "pmc" | "pmcid" | "pmcidentifier" if is_digits(number) => {
                keep(&mut self.pmcid, pmcid(&format!("PMC{number}")));
            }
            "pui" | "u2" if pui(number).is_some() => keep(&mut self.embase[1], pui(number)),
            "embaseaccessionid" | "embaseaccessionnumber" | "embaseid" | "embase" => self.embase(number),
            "id" if number.starts_with("CN-") || is_apa(number) => {
                keep(&mut self.number, accession(number));
            }
            // The key of an entry of Embase.
            "key" if number.len() > 8 => keep(&mut self.embase[1], pui(number)),
            // The portal of SciELO.
            "id" if let Some(number) = of_scielo(number) => keep(&mut self.number, accession(number)),
            // The portal of LILACS.
            "id" if number.starts_with("mdl-") => keep(&mut self.pmid, pmid(&number[4..])),
            "id" => {
                let is_number = |number: &String| is_eric(number) || is_digits(number) && number.len() > 6;
                keep(&mut self.id, accession(number).filter(is_number));
            }
            // `PUBMED 123,EMBASE 456` of the Cochrane Library.
            "c3" | "xr" | "pm" => self.of_databases(number),
            "trialid"
            | "trialnumber"
            | "euctnumber"
            | "euctrnumber"
            | "nctnumber"
            | "nctid"
            | "eudractnumber"
            | "isrctn"
            | "trialids"
            | "ctnumber"
            | "protocolsectionidentificationmodulenctid" => {
                let others = self.trials.len();
                number.split(';').for_each(|number| self.trial(number.trim()));
                // The number of the registration comes first, before the numbers of the trial in other registers.
                if matches!(tag, "TrialID" | "trial_id") || tag.ends_with(".nctId") {
                    self.trials.rotate_left(others);
                }
            }
            "an" | "ui" if number.starts_with("EMBASE:") => self.embase(number),
            "an" | "ui" | "accessionnumber" | "accessionnum" | "accession" | "uniqueidentifier" | "m"
            | "eid" | "ericnumber" | "oid" | "proquestdocumentid" | "centralid" => {
                keep(&mut self.number, accession(number));
            }
            _ => {}
        }
        self.trials_in(value);
    }

    /// Inspects a link.
    pub(super) fn link(&mut self, url: &str) {
        let url = front(url.trim());
        if let Some(rest) = url.strip_prefix(GO_TO_ISI) {
            let number = rest.split(char::is_whitespace).next().unwrap_or_default();
            return self.web_of_science(&with_collection(number));
        }
        if !url.starts_with("http") || !spend(url.len()) {
            return;
        }
        let lower = url.to_ascii_lowercase();
        // `contains` is faster than `find`, and most links have no mark.
        let behind = |mark: &str| {
            let at = lower.contains(mark).then(|| lower.find(mark)).flatten()?;
            Some(&url[at + mark.len()..])
        };
        let number = |rest: &str| {
            let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')));
            rest[..end.unwrap_or(rest.len())].to_owned()
        };
        let articles = [
            "/pmc/articles/",
            "pmc.ncbi.nlm.nih.gov/articles/",
            "europepmc.org/article/pmc/",
            "europepmc.org/articles/",
        ];
        if let Some(rest) = articles.iter().find_map(|mark| behind(mark)) {
            let rest = number(rest);
            let digits = rest.trim_start_matches(|c: char| c.is_ascii_alphabetic());
            keep(&mut self.pmcid, pmcid(&format!("PMC{digits}")));
        }
        if let Some(rest) = ["wos:", "wos%3a"].iter().find_map(|mark| behind(mark)) {
            self.web_of_science(&format!("WOS:{}", number(rest)));
        }
        if let Some(rest) = behind("keyut=") {
            self.web_of_science(&with_collection(&number(rest)));
        }
        if lower.contains("embase.com/") {
            let id = ["?id=", "&id="].iter().find_map(|mark| behind(mark)).or_else(|| behind("id="));
            keep(&mut self.embase[1], id.and_then(|rest| pui(&number(rest))));
        }
        let Some((host, parameters)) = url.split_once('?') else { return self.trials_in_link(url) };
        let parameter = |name: &str| {
            let mut parts = parameters.split('&').filter_map(|part| part.split_once('='));
            parts.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        let is_ovid = holds(host, "ovid");
        if is_ovid || holds(host, "ebscohost") {
            let database =
                parameter(if is_ovid { "d" } else { "db" }).unwrap_or_default().to_ascii_lowercase();
            let found = parameter("an").map(number).and_then(|found| accession(&found));
            if is_ovid && ["em", "oem"].iter().any(|start| database.starts_with(start)) {
                keep(&mut self.embase[0], found);
            } else {
                keep(&mut self.number, found);
            }
        }
        if holds(host, "scopus.com") {
            keep(&mut self.number, parameter("eid").map(number).and_then(|found| accession(&found)));
        }
        self.trials_in_link(url);
    }

    /// Inspects a keyword. Some databases list the numbers of trials among them, and some programs other numbers.
    pub(super) fn keyword(&mut self, keyword: &str) {
        const MIN_DIGITS: usize = 6;
        if keyword.bytes().filter(u8::is_ascii_digit).count() >= MIN_DIGITS
            && keyword.len() <= MAX_VALUE
            && spend(keyword.len())
        {
            for part in keyword.split([',', ';']).map(str::trim) {
                let label = part.get(..4).filter(|label| label.eq_ignore_ascii_case("pmid"));
                keep(&mut self.pmid, label.and_then(|_| labelled_pmid(part)));
                keep(&mut self.pmcid, pmcid(part));
            }
            self.trials_in(keyword);
        }
    }

    /// Inspects an abstract, which may end in a registration: `Trial registration: ClinicalTrials.gov NCT00000001.`
    pub(super) fn abstract_text(&mut self, text: &str) {
        /// The words before a number, without a first letter that may be a capital.
        static LABELS: LazyLock<[Finder<'static>; 5]> = LazyLock::new(|| {
            ["egistration", "EGISTRATION", "egistered", "egistry", "rials.gov"].map(Finder::new)
        });
        /// The number of bytes after a label that are searched, and of places where it occurs.
        const REACH: usize = 200;
        const MAX_PLACES: usize = 4;
        if !spend(text.len()) {
            return;
        }
        for label in LABELS.iter() {
            for at in label.find_iter(text.as_bytes()).take(MAX_PLACES) {
                let rest = &text[at..];
                if spend(REACH) {
                    self.trials_in(&rest[..rest.floor_char_boundary(REACH)]);
                }
            }
        }
    }

    /// Registers have links with the number of the trial.
    fn trials_in_link(&mut self, url: &str) {
        if REGISTERS_ON_LINE.iter().any(|host| holds(url, host)) {
            self.trials_in(url);
        }
    }

    /// Reads numbers after the names of databases.
    fn of_databases(&mut self, value: &str) {
        for part in value.split([',', ';']) {
            match part.trim().split_once(' ') {
                Some(("PUBMED", number)) => keep(&mut self.pmid, pmid(number)),
                Some(("EMBASE", number)) => self.embase(number.trim()),
                _ => {}
            }
        }
    }

    /// Inspects a note, in which numbers are found after labels.
    pub(super) fn note(&mut self, note: &str) {
        let note = front(note);
        if !spend(note.len()) {
            return;
        }
        let labelled = |label: &str| {
            let rest = note[note.find(label)? + label.len()..].trim_start();
            rest.split([' ', ';', ',']).next()
        };
        keep(&mut self.pmcid, labelled("PMCID:").and_then(pmcid));
        for word in note.split([' ', ';', ',', '(', ')']) {
            self.web_of_science(word);
        }
        if !cites(note) {
            keep(&mut self.pmcid, note.split([' ', ';', ',']).find_map(pmcid));
        }
        if let Some(found) =
            ["Embase ID:", "Embase accession number:"].iter().find_map(|label| labelled(label))
        {
            self.embase(found);
        }
        keep(
            &mut self.number,
            labelled("Accession number:").or(labelled("Accession Number:")).and_then(accession),
        );
        if let Some((_, numbers)) = note.split_once("Trial registration: ") {
            numbers.split([',', ';']).for_each(|number| self.trial(number.trim()));
        }
        self.trials_in(note);
    }

    /// A number of Embase after any label: digits, or the identifier of embase.com.
    fn embase(&mut self, value: &str) {
        let value = value.strip_prefix("EMBASE").map_or(value, |value| value.trim_start_matches([':', ' ']));
        let slot = usize::from(value.starts_with(['L', 'l']));
        let found = if slot == 1 { pui(value) } else { accession(value).filter(|number| is_digits(number)) };
        keep(&mut self.embase[slot], found);
    }

    fn web_of_science(&mut self, value: &str) {
        let Some((collection, number)) = value.split_once(':') else { return };
        let (collection, number) = (collection.trim(), number.trim());
        let is_number = (8..=MAX_NUMBER).contains(&number.len())
            && number.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
            && number.bytes().any(|byte| (b'1'..=b'9').contains(&byte));
        // The name of the company that published Web of Science before.
        let collection = if collection == "ISI" { "WOS" } else { collection };
        if collection == "MEDLINE" {
            keep(&mut self.pmid, pmid(number));
        }
        let known = COLLECTIONS.iter().find(|known| known.eq_ignore_ascii_case(collection));
        if let Some(known) = known.copied().or(Some("MEDLINE").filter(|known| *known == collection))
            && is_number
        {
            keep(&mut self.wos, Some(format!("{known}:{}", number.to_ascii_uppercase())));
        }
    }

    /// The number of a registration under its own tag.
    fn trial(&mut self, value: &str) {
        let number = if is_eudract(value) {
            Some(format!("{}{}", european(value), &value[..14]))
        } else {
            // A number without letters counts the rows of a table.
            registration(value).or_else(|| accession(value).filter(|number| !is_digits(number)))
        };
        if let Some(number) = number {
            self.push_trial(number);
        }
    }

    fn trials_in(&mut self, text: &str) {
        let separates = |c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '/'));
        let mut before = "";
        for word in text.split(separates).filter(|word| !word.is_empty()) {
            // In a link or a list of PubMed the name of the register precedes the number: `ClinicalTrials.gov/NCT1`.
            let number = || {
                registration(word)
                    .or_else(|| word.split('/').skip(1).find_map(registration))
                    .or_else(|| word.split('/').find_map(european_registration))
                    .or_else(|| apart(before, word))
                    .or_else(|| dutch_registration(before, word))
            };
            let has_digit = word.bytes().any(|byte| byte.is_ascii_digit());
            if let Some(number) = has_digit.then(number).flatten() {
                self.push_trial(number);
            }
            before = word;
        }
    }

    fn push_trial(&mut self, number: String) {
        if self.trials.len() < MAX_TRIALS && !self.trials.contains(&number) {
            self.trials.push(number);
        }
    }

    /// Sets the identifiers of a reference.
    pub(super) fn complete(mut self, reference: &mut Reference) {
        // Ovid writes the number of the database under this tag, and EndNote the number of the library.
        match self.id.take() {
            Some(id) if self.is_pubmed && id.len() < 9 => keep(&mut self.pmid, pmid(&id)),
            Some(id) if self.is_embase && id.len() > 8 => self.embase(&id),
            Some(id) if self.has_segment || is_eric(&id) => keep(&mut self.number, Some(id)),
            _ => {}
        }
        // EBSCO writes the number of the database in a note.
        let is_of_pubmed = |number: &String| is_digits(number) && number.len() < 9 && !running_number(number);
        if self.is_pubmed && self.pmid.is_none() && reference.pmid.is_none() {
            self.pmid = self.number.take_if(|number| is_of_pubmed(number));
        }
        if self.is_embase
            && let Some(number) = self.number.take()
        {
            if pui(&number).is_some() || is_digits(&number) {
                self.embase(&number);
            } else {
                self.number = Some(number);
            }
        }
        reference.pmid = reference.pmid.take().or(self.pmid);
        reference.doi = reference.doi.take().or(self.doi);
        let [number, identifier] = self.embase;
        reference.pmcid = self.pmcid;
        reference.embase_id = number.or(identifier);
        reference.wos_id = self.wos;
        reference.trial_ids = self.trials;
        let is_known = |number: &String| {
            let others = [&reference.pmcid, &reference.pmid, &reference.embase_id, &reference.doi];
            others.into_iter().flatten().any(|known| known == number) || reference.trial_ids.contains(number)
        };
        let number = self.number.filter(|number| !is_known(number));
        reference.accession =
            number.filter(|number| reference.wos_id.as_ref().is_none_or(|known| known != number));
    }
}

fn holds(text: &str, word: &str) -> bool {
    text.to_ascii_lowercase().contains(word)
}

/// A tag as letters and digits in lower case.
fn plain(tag: &str) -> String {
    tag.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(values: &[(&str, &str)]) -> Reference {
        let mut accessions = Accessions::default();
        for (tag, value) in values {
            accessions.add(tag, value);
        }
        let mut reference = Reference::default();
        accessions.complete(&mut reference);
        reference
    }

    #[test]
    fn numbers_are_found_under_any_tag_or_link() {
        for (tag, value, wanted) in [
            ("PMC", "PMC7012345", "PMC7012345"),
            ("C2", "PMCID: PMC7012345.2", "PMC7012345"),
            ("pmc", "7012345", "PMC7012345"),
            ("UR", "https://www.ncbi.nlm.nih.gov/pmc/articles/PMC7012345/pdf", "PMC7012345"),
            ("ids", "https://www.ncbi.nlm.nih.gov/pmc/articles/7012345", "PMC7012345"),
        ] {
            assert_eq!(found(&[(tag, value)]).pmcid.as_deref(), Some(wanted), "{value}");
        }
        for (tag, value, wanted) in [
            ("UT", "WOS:000478028100004", "WOS:000478028100004"),
            ("unique-id", "ISI:000478028100004", "WOS:000478028100004"),
            ("UT", "BCI:BCI202000123456", "BCI:BCI202000123456"),
            (
                "UR",
                "https://www.webofscience.com/wos/woscc/full-record/WOS:000478028100004",
                "WOS:000478028100004",
            ),
            ("UR", "http://example.org/?KeyUT=WOS%3A000478028100004&x=1", "WOS:000478028100004"),
        ] {
            assert_eq!(found(&[(tag, value)]).wos_id.as_deref(), Some(wanted), "{value}");
        }
        for (tag, value, wanted) in [
            ("U2", "L373791783", "L373791783"),
            ("Embase Accession ID", "2011123456", "2011123456"),
            ("L2", "https://www.embase.com/search/results?subaction=viewrecord&id=L373791783", "L373791783"),
            (
                "UR",
                "https://www.embase.com/records?subaction=viewrecord&rid=1&page=1&id=L373791783",
                "L373791783",
            ),
            ("AN", "EMBASE:2011123456", "2011123456"),
            ("L2", "http://ovidsp.ovid.com/ovidweb.cgi?T=JS&D=emed25&NEWS=N&AN=2011123456", "2011123456"),
        ] {
            assert_eq!(found(&[(tag, value)]).embase_id.as_deref(), Some(wanted), "{value}");
        }
        let both = found(&[("AN", "2011123456"), ("U2", "L373791783"), ("DB", "Embase <1974 to 2020>")]);
        assert_eq!((both.embase_id.as_deref(), both.accession), (Some("2011123456"), None));
        let medline = found(&[("UT", "MEDLINE:29512345")]);
        assert_eq!(
            (medline.pmid.as_deref(), medline.wos_id.as_deref()),
            (Some("29512345"), Some("MEDLINE:29512345"))
        );
    }

    #[test]
    fn other_databases_have_accession_numbers() {
        for (tag, value, wanted) in [
            ("AN", "2019-65183-001", "2019-65183-001"),
            ("UR", "http://ovidsp.ovid.com/ovidweb.cgi?D=psyc16&AN=2019-65183-001", "2019-65183-001"),
            (
                "UR",
                "https://search.ebscohost.com/login.aspx?direct=true&db=c8h&AN=104567890&site=x",
                "104567890",
            ),
            ("EID", "2-s2.0-85012345678", "2-s2.0-85012345678"),
            ("AN", "CN-01234567", "CN-01234567"),
        ] {
            assert_eq!(found(&[(tag, value)]).accession.as_deref(), Some(wanted), "{value}");
        }
        for value in ["0", "12", "0000000", "see note 1234", "10.5555/a1", ""] {
            assert_eq!(found(&[("AN", value)]).accession, None, "{value}");
        }
    }

    #[test]
    fn trials_are_found_by_their_numbers() {
        for (tag, value, wanted) in [
            ("SI", "ClinicalTrials.gov/NCT00000001", &["NCT00000001"][..]),
            (
                "Clinical Trial Numbers",
                "ClinicalTrials.gov (NCT00000001, NCT00000002)",
                &["NCT00000001", "NCT00000002"],
            ),
            ("UR", "https://clinicaltrials.gov/study/NCT00000001?tab=results", &["NCT00000001"]),
            (
                "JO",
                "https://trialsearch.who.int/Trial2.aspx?TrialID=ACTRN12605000001234",
                &["ACTRN12605000001234"],
            ),
            ("TrialID", "EUCTR2004-001234-12-GB", &["EUCTR2004-001234-12"]),
            ("EudraCT Number", "2004-001234-12", &["EUCTR2004-001234-12"]),
            ("Trial number", "2022-500123-12-00", &["CTIS2022-500123-12"]),
            ("TrialID", "CTIS2022-500123-12-00", &["CTIS2022-500123-12"]),
            (
                "N",
                "JPRN-UMIN000001234, ChiCTR-TRC-12345678 and CTRI/2019/03/012345",
                &["UMIN000001234", "ChiCTR-TRC-12345678", "CTRI/2019/03/012345"],
            ),
            ("N", "isrctn12345678", &["ISRCTN12345678"]),
            ("N", "ChiCTR-2000029308, NCT-01234567", &["ChiCTR2000029308", "NCT01234567"]),
            ("N", "Netherlands Trial Register NL8888; part NL9999", &["NL8888"]),
            ("N", "NCT 00000001, ISRCTN: 12345678", &["NCT00000001", "ISRCTN12345678"]),
            ("Other IDs", "A1|2004-001234-12", &["EUCTR2004-001234-12"]),
            ("N", "EU CT 2022-500123-12-00", &["CTIS2022-500123-12"]),
            (
                "UR",
                "https://www.clinicaltrialsregister.eu/ctr-search/trial/2004-001234-12/GB",
                &["EUCTR2004-001234-12"],
            ),
            ("N", "NL-OMON12345, SNCTP000001234", &["NL-OMON12345", "SNCTP000001234"]),
            ("N", "2004-001234-1, 2019-65183-001, 2004-001234-123", &[]),
            ("N", "ACTRN1, NTR, nothing, NCT00000000", &[]),
        ] {
            assert_eq!(found(&[(tag, value)]).trial_ids, wanted, "{value}");
        }
    }

    #[test]
    fn pubmed_identifiers_are_found_in_other_tags() {
        for values in [
            &[("U2", "PMID: 30000001")][..],
            &[("M1", "PMID 30000001")],
            &[("U1", "30000001[pmid]")],
            &[("U1", "30000001 [PubMed]")],
            &[("DB", "Ovid MEDLINE(R) ALL <1946 to 2021>"), ("ID", "30000001")],
            &[("DB", "MEDLINE"), ("ID", "mdl-30000001")],
            &[("C3", "PUBMED 30000001,EMBASE 620000001")],
            &[("UR", "<Go to ISI>://MEDLINE:30000001")],
            &[("Unique Identifier", "30000001"), ("NLM Journal Code", "abc, 101")],
        ] {
            let mut accessions = Accessions::default();
            for (tag, value) in values {
                accessions.add(tag, value);
                accessions.link(value);
            }
            let mut reference = Reference::default();
            accessions.complete(&mut reference);
            assert_eq!(reference.pmid.as_deref(), Some("30000001"), "{values:?}");
        }
        assert_eq!(found(&[("C3", "PUBMED 1,EMBASE 620000001")]).embase_id.as_deref(), Some("620000001"));
        assert_eq!(found(&[("DB", "Embase"), ("ID", "2012345678")]).embase_id.as_deref(), Some("2012345678"));
        // The number of the record in a library.
        assert_eq!(found(&[("DB", "PubMed"), ("ID", "12345")]).pmid, None);
        assert_eq!(found(&[("ID", "30000001")]).pmid, None);
    }

    #[test]
    fn doi_is_found_under_other_tags() {
        for (tag, value) in [
            ("M3", "doi:http://dx.doi.org/10.5555/a"),
            ("M3", "doi: 10.5555/a"),
            ("L3", "10.5555/a"),
            ("N1", "https://doi.org/10.5555/a"),
        ] {
            assert_eq!(found(&[(tag, value)]).doi.as_deref(), Some("10.5555/a"), "{value}");
        }
        assert_eq!(found(&[("CR", "10.5555/a")]).doi, None);
        assert_eq!(found(&[("N1", "10.5555/a was wrong")]).doi, None);
    }

    #[test]
    fn number_of_a_trial_is_not_a_name() {
        for name in ["NCT01234567", "NCT01234567,", "JPRN-UMIN000001234", "EUCTR2004-001234-12-GB"] {
            assert!(is_registration(name), "{name}");
        }
        assert!(!is_registration("Roe, Ann") && !is_registration("ISIS-2 12345 Group"));
    }

    #[test]
    fn keywords_and_abstract_labels_give_trials() {
        let mut accessions = Accessions::default();
        accessions.keyword("ClinicalTrials.gov/NCT00000001");
        accessions.abstract_text("As in NCT00000003, we tried. TRIAL REGISTRATION: EudraCT 2004-001234-12.");
        accessions.abstract_text("ClinicalTrials.gov number, NCT00000002.");
        let mut reference = Reference::default();
        accessions.complete(&mut reference);
        assert_eq!(reference.trial_ids, ["NCT00000001", "EUCTR2004-001234-12", "NCT00000002"]);
    }

    #[test]
    fn notes_name_numbers_behind_labels() {
        let mut accessions = Accessions::default();
        accessions.note(
            "PMID: 1 PMCID: PMC7 Accession Number: WOS:000478028100004; Embase ID: L373791783 (NCT00000001)",
        );
        let mut reference = Reference::default();
        accessions.complete(&mut reference);
        let found = [&reference.pmcid, &reference.wos_id, &reference.embase_id];
        assert_eq!(
            found.map(|value| value.as_deref()),
            [Some("PMC7"), Some("WOS:000478028100004"), Some("L373791783")]
        );
        assert_eq!((reference.trial_ids, reference.accession), (vec!["NCT00000001".to_owned()], None));
    }
}
