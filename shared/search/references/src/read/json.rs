//! Reads the JSON of databases and programs whose names differ from those of CSL-JSON.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Map, Value};

use super::{
    draft::Draft,
    entities,
    field::{Field, FieldName},
    names, notation, tidy,
};

/// The maximum number of words in an abstract of OpenAlex, which lists the positions of each word.
const MAX_WORDS: u64 = 20_000;
/// The maximum length of such an abstract in bytes. A long word at many places would become far longer than its record.
const MAX_ABSTRACT: usize = 256 * 1024;

/// A field, and the paths to its values, the preferred path first. `*` in a path matches every item of a list.
type Path = (Field, &'static [&'static str]);

const OPEN_ALEX: &[Path] = &[
    (Field::Title, &["display_name", "title"]),
    (Field::Author, &["authorships.*.author.display_name"]),
    (Field::Date, &["publication_date", "publication_year"]),
    (Field::Journal, &["primary_location.source.display_name", "host_venue.display_name"]),
    (Field::Volume, &["biblio.volume"]),
    (Field::Issue, &["biblio.issue"]),
    (Field::FirstPage, &["biblio.first_page"]),
    (Field::LastPage, &["biblio.last_page"]),
    (Field::Doi, &["doi", "ids.doi"]),
    (Field::Pmid, &["ids.pmid"]),
    (Field::Extra, &["ids.pmcid"]),
    (Field::Keyword, &["keywords.*.display_name", "keywords.*.keyword"]),
    (Field::Url, &["primary_location.landing_page_url", "id"]),
    (Field::Type, &["type"]),
];

const EUROPE_PMC: &[Path] = &[
    (Field::Title, &["title"]),
    (Field::Author, &["authorString"]),
    (Field::Date, &["journalInfo.yearOfPublication", "pubYear", "firstPublicationDate"]),
    (Field::Journal, &["journalInfo.journal.title", "journalTitle"]),
    (Field::Volume, &["journalInfo.volume", "journalVolume"]),
    (Field::Issue, &["journalInfo.issue", "issue"]),
    (Field::Pages, &["pageInfo"]),
    (Field::Doi, &["doi"]),
    (Field::Pmid, &["pmid"]),
    (Field::Abstract, &["abstractText"]),
    (Field::Keyword, &["keywordList.keyword.*"]),
    (Field::Type, &["pubTypeList.pubType.*", "pubType"]),
];

const CLINICAL_TRIALS: &[Path] = &[
    (
        Field::Title,
        &[
            "protocolSection.identificationModule.officialTitle",
            "protocolSection.identificationModule.briefTitle",
        ],
    ),
    (Field::Accession, &["protocolSection.identificationModule.nctId"]),
    (
        Field::Date,
        &[
            "protocolSection.statusModule.studyFirstSubmitDate",
            "protocolSection.statusModule.startDateStruct.date",
        ],
    ),
    (Field::Abstract, &["protocolSection.descriptionModule.briefSummary"]),
    (
        Field::Keyword,
        &["protocolSection.conditionsModule.conditions.*", "protocolSection.conditionsModule.keywords.*"],
    ),
    (Field::Type, &["protocolSection.designModule.studyType"]),
];

/// The names of the interface of ClinicalTrials.gov until 2024.
const CLASSIC_TRIALS: &[Path] = &[
    (
        Field::Title,
        &[
            "ProtocolSection.IdentificationModule.OfficialTitle",
            "ProtocolSection.IdentificationModule.BriefTitle",
        ],
    ),
    (Field::Accession, &["ProtocolSection.IdentificationModule.NCTId"]),
    (
        Field::Extra,
        &["ProtocolSection.IdentificationModule.SecondaryIdInfoList.SecondaryIdInfo.*.SecondaryId"],
    ),
    (
        Field::Date,
        &[
            "ProtocolSection.StatusModule.StudyFirstSubmitDate",
            "ProtocolSection.StatusModule.StartDateStruct.StartDate",
        ],
    ),
    (Field::Abstract, &["ProtocolSection.DescriptionModule.BriefSummary"]),
    (
        Field::Keyword,
        &[
            "ProtocolSection.ConditionsModule.ConditionList.Condition.*",
            "ProtocolSection.ConditionsModule.KeywordList.Keyword.*",
        ],
    ),
    (Field::Type, &["ProtocolSection.DesignModule.StudyType"]),
];

/// The names of the same interface for chosen fields. Each value is a list.
const STUDY_FIELDS: &[Path] = &[
    (Field::Title, &["OfficialTitle.*", "BriefTitle.*"]),
    (Field::Accession, &["NCTId.*"]),
    (Field::Extra, &["SecondaryId.*", "OrgStudyId.*"]),
    (Field::Date, &["StudyFirstSubmitDate.*", "StudyFirstPostDate.*", "StartDate.*"]),
    (Field::Abstract, &["BriefSummary.*"]),
    (Field::Keyword, &["Condition.*", "Keyword.*"]),
    (Field::Type, &["StudyType.*"]),
];

/// The names of HAL.
const HAL: &[Path] = &[
    (Field::Title, &["title_s.*", "title_s", "en_title_s.*", "fr_title_s.*"]),
    (Field::Author, &["authFullName_s.*", "authFullName_s", "authLastNameFirstName_s.*"]),
    (
        Field::Date,
        &["publicationDate_s", "producedDate_s", "publicationDateY_i", "producedDateY_i", "defenseDate_s"],
    ),
    (Field::Journal, &["journalTitle_s", "bookTitle_s", "conferenceTitle_s", "source_s"]),
    (Field::Volume, &["volume_s"]),
    (Field::Issue, &["issue_s.*", "issue_s"]),
    (Field::Pages, &["page_s"]),
    (Field::Doi, &["doiId_s"]),
    (Field::Pmid, &["pubmedId_s"]),
    (Field::Extra, &["pubmedcentralId_s"]),
    (Field::Accession, &["halId_s"]),
    (Field::Abstract, &["abstract_s.*", "abstract_s"]),
    (Field::Keyword, &["keyword_s.*", "keyword_s"]),
    (Field::Url, &["uri_s"]),
    (Field::Type, &["docType_s"]),
];

/// HAL's codes of types.
const HAL_TYPES: [(&str, &str); 9] = [
    ("ART", "Journal Article"),
    ("COMM", "Conference Paper"),
    ("POSTER", "Poster"),
    ("OUV", "Book"),
    ("COUV", "Book Chapter"),
    ("THESE", "Thesis"),
    ("HDR", "Thesis"),
    ("REPORT", "Report"),
    ("UNDEFINED", "Preprint"),
];

/// The names of Publish or Perish, CORE, DOAJ, DBLP, Zenodo, Mendeley, Dimensions, The Lens, IEEE Xplore, medRxiv and
/// others.
const COMMON: &[Path] = &[
    (Field::Title, &["title"]),
    (
        Field::Author,
        &[
            "authors",
            "authors.*",
            "authors.*.name",
            "authors.*.full_name",
            "authors.authors.*.full_name",
            "authors.*.display_name",
            "authors.*.displayName",
            "authors.*.fullName",
            "author.*.name",
            "author.*",
            "author",
            "authors.author.*.name",
            "authors.author.*.text",
            "authors.author.text",
            "creators.*.name",
        ],
    ),
    (
        Field::Date,
        &[
            "year",
            "year_published",
            "yearPublished",
            "publication_year",
            "pub_year",
            "published.year",
            "date",
            "date_published",
            "publishedDate",
            "publication_date",
            "pub_date",
            "published",
        ],
    ),
    (
        Field::Journal,
        &[
            "journalfull",
            "journal",
            "journal.title",
            "journal.name",
            "source",
            "source.title",
            "publication_title",
            "journal_name",
            "journals.*.title",
            "venue",
        ],
    ),
    (Field::Volume, &["volume", "journal.volume"]),
    (Field::Issue, &["issue", "number", "journal.number", "journal.issue"]),
    (Field::Pages, &["pages", "page", "journal.pages"]),
    (Field::FirstPage, &["startpage", "start_page"]),
    (Field::LastPage, &["endpage", "end_page"]),
    (Field::Doi, &["doi", "DOI", "identifiers.doi"]),
    (Field::Pmid, &["pmid", "PMID", "identifiers.pmid"]),
    (Field::Abstract, &["abstract", "description"]),
    (Field::Keyword, &["keywords.*", "keywords"]),
    (Field::Url, &["article_url", "ee", "url", "URL", "url.*"]),
    (Field::Type, &["type", "publication_type", "kind"]),
];

const DATA_CITE: &[Path] = &[
    (Field::Title, &["titles.*.title"]),
    (Field::Author, &["creators.*.name"]),
    (Field::Date, &["publicationYear"]),
    (Field::Journal, &["container.title"]),
    (Field::Volume, &["container.volume"]),
    (Field::Issue, &["container.issue"]),
    (Field::FirstPage, &["container.firstPage"]),
    (Field::LastPage, &["container.lastPage"]),
    (Field::Doi, &["doi"]),
    (Field::Abstract, &["descriptions.*.description"]),
    (Field::Keyword, &["subjects.*.subject"]),
    (Field::Url, &["url"]),
    (Field::Type, &["types.resourceType", "types.resourceTypeGeneral"]),
];

/// The names of the interface *Starter* of Web of Science.
const WOS_STARTER: &[Path] = &[
    (Field::Title, &["title"]),
    (Field::Author, &["names.authors.*.displayName", "names.authors.*.wosStandard"]),
    (Field::Group, &["names.corp.*.displayName"]),
    (Field::Editor, &["names.editors.*.displayName", "names.bookEditors.*.displayName"]),
    (Field::Date, &["source.publishYear"]),
    (Field::MonthDay, &["source.publishMonth"]),
    (Field::Journal, &["source.sourceTitle"]),
    (Field::Volume, &["source.volume"]),
    (Field::Issue, &["source.issue"]),
    (Field::Pages, &["source.pages.range", "source.articleNumber"]),
    (Field::Doi, &["identifiers.doi"]),
    (Field::Keyword, &["keywords.authorKeywords.*"]),
    (Field::Url, &["links.record"]),
    (Field::Type, &["types.*"]),
];

const ERIC: &[Path] = &[
    (Field::Title, &["title"]),
    (Field::Author, &["author.*"]),
    (Field::Date, &["publicationdateyear"]),
    (Field::Journal, &["source"]),
    (Field::Abstract, &["description"]),
    (Field::Keyword, &["subject.*"]),
    (Field::Url, &["url"]),
    (Field::Type, &["publicationtype.*"]),
];

const SCOPUS: &[Path] = &[
    (Field::Title, &["dc:title"]),
    (Field::Author, &["author.*.authname", "dc:creator"]),
    (Field::Date, &["prism:coverDate", "prism:coverDisplayDate"]),
    (Field::Journal, &["prism:publicationName"]),
    (Field::Volume, &["prism:volume"]),
    (Field::Issue, &["prism:issueIdentifier"]),
    (Field::Pages, &["prism:pageRange", "article-number"]),
    (Field::Doi, &["prism:doi"]),
    (Field::Pmid, &["pubmed-id"]),
    (Field::Abstract, &["dc:description"]),
    (Field::Keyword, &["authkeywords"]),
    (Field::Type, &["subtypeDescription"]),
];

const SEMANTIC_SCHOLAR: &[Path] = &[
    (Field::Title, &["title"]),
    (Field::Author, &["authors.*.name"]),
    (Field::Date, &["publicationDate", "publicationdate", "year"]),
    (Field::Journal, &["journal.name", "publicationVenue.name", "venue"]),
    (Field::Volume, &["journal.volume"]),
    (Field::Pages, &["journal.pages"]),
    (Field::Doi, &["externalIds.DOI", "externalids.DOI", "doi"]),
    (Field::Pmid, &["externalIds.PubMed", "externalids.PubMed"]),
    (Field::Abstract, &["abstract"]),
    (Field::Keyword, &["fieldsOfStudy.*"]),
    (Field::Url, &["url"]),
    (Field::Type, &["publicationTypes.*", "publicationtypes.*"]),
];

/// The summaries of PubMed and PubMed Central.
const SUMMARY: &[Path] = &[
    (Field::Title, &["title", "booktitle", "vernaculartitle"]),
    (Field::Date, &["pubdate", "printpubdate", "epubdate"]),
    (Field::Journal, &["fulljournalname", "bookname", "source"]),
    (Field::Volume, &["volume"]),
    (Field::Issue, &["issue"]),
    (Field::Pages, &["pages"]),
    (Field::Type, &["pubtype.*"]),
];

const CTIS: &[Path] = &[
    (
        Field::Title,
        &[
            "authorizedApplication.authorizedPartI.trialDetails.clinicalTrialIdentifiers.fullTitle",
            "ctTitle",
            "authorizedApplication.authorizedPartI.trialDetails.clinicalTrialIdentifiers.publicTitle",
        ],
    ),
    (Field::Extra, &["ctNumber"]),
    (Field::Date, &["decisionDate", "decisionDateOverall", "startDateEU"]),
    (
        Field::Abstract,
        &["authorizedApplication.authorizedPartI.trialDetails.trialInformation.trialObjective.mainObjective"],
    ),
    (
        Field::Keyword,
        &["conditions", "authorizedApplication.authorizedPartI.medicalConditions.*.medicalCondition"],
    ),
];

/// The number of the same trial in ClinicalTrials.gov.
const CTIS_NCT: &str =
    "/authorizedPartI/trialDetails/clinicalTrialIdentifiers/secondaryIdentifyingNumbers/nctNumber/number";

const EPPI_REVIEWER: &[Path] = &[
    (Field::Title, &["Title"]),
    (Field::Author, &["Authors"]),
    (Field::Editor, &["ParentAuthors"]),
    (Field::Date, &["Year"]),
    (Field::MonthDay, &["Month"]),
    (Field::Journal, &["ParentTitle"]),
    (Field::Volume, &["Volume"]),
    (Field::Issue, &["Issue"]),
    (Field::Pages, &["Pages"]),
    (Field::Doi, &["DOI"]),
    (Field::Abstract, &["Abstract"]),
    (Field::Keyword, &["Keywords"]),
    (Field::Url, &["URL"]),
    (Field::Type, &["TypeName"]),
];

/// The fields of the JSON Lines that this product exports.
const EXPORTED: &[Path] = &[
    (Field::Title, &["title"]),
    (Field::Date, &["date", "year"]),
    (Field::Journal, &["journal"]),
    (Field::Volume, &["volume"]),
    (Field::Issue, &["issue"]),
    (Field::Pages, &["pages"]),
    (Field::Doi, &["doi"]),
    (Field::Pmid, &["pmid"]),
    (Field::Abstract, &["abstract"]),
    (Field::Url, &["url"]),
    (Field::Type, &["type"]),
];

/// The paths of the numbers of a record in databases, each with a tag for this number.
const EXPORTED_NUMBERS: [(&[&str], &str); 5] = [
    (&["pmcid"], "PMC"),
    (&["embase_id"], "Embase Accession ID"),
    (&["wos_id"], "UT"),
    (&["accession"], "AN"),
    (&["trial_ids", "*"], "ctNumber"),
];

/// Reads a line that this product has exported. Lists of names and keywords were divided when they were first read.
fn exported(item: &Map<String, Value>) -> Option<Draft<'static>> {
    if !(item.contains_key("study_key") && item.contains_key("search_id")) {
        return None;
    }
    let mut draft = Draft::default();
    add_values(&mut draft, item, EXPORTED, |value| value);
    values(item, &["authors", "*"], &mut |name| {
        if let Some(name) = tidy::line(&name) {
            draft.author(Field::Author, name);
        }
    });
    values(item, &["keywords", "*"], &mut |keyword| draft.keyword(0, &keyword));
    for (path, tag) in EXPORTED_NUMBERS {
        values(item, path, &mut |number| draft.extra.inspect(tag, &number));
    }
    let extra = item.get("extra").and_then(Value::as_object);
    for (tag, values) in extra.into_iter().flatten() {
        for value in values.as_array().into_iter().flatten().filter_map(text) {
            draft.extra.push(tag, &value);
        }
    }
    let has_database = extra.is_some_and(|extra| extra.contains_key("DB"));
    if let Some(database) = item.get("database").and_then(text).filter(|_| !has_database) {
        draft.add_decoded(FieldName::new(Field::Database, "DB", 0), Cow::Owned(database));
    }
    Some(draft)
}

/// Reads an object that has the names of a database. Returns `None` for other objects, such as those of CSL-JSON.
pub(super) fn read(item: &Map<String, Value>) -> Option<Draft<'static>> {
    if let Some(draft) = exported(item) {
        return Some(draft);
    }
    let item = study(item);
    let inner = inner(item);
    let item = inner.unwrap_or(item);
    let (paths, database) = shape(item).or(inner.map(|_| (COMMON, "")))?;
    let mut draft = Draft::default();
    if database.starts_with("PubMed") {
        summary(&mut draft, item);
    } else {
        listed_people(&mut draft, item);
        people_of_eppi_reviewer(&mut draft, item);
        people_of_hal(&mut draft, item);
    }
    add_values(&mut draft, item, paths, |value| entities::decode(&value).into_owned());
    if draft.people() == 0 {
        let people = ["authors", "author", "creators"].iter().find_map(|name| item.get(*name));
        let people = people.map(|people| people.get("author").unwrap_or(people)).and_then(Value::as_array);
        people.into_iter().flatten().filter_map(person).for_each(|name| draft.author(Field::Author, name));
    }
    numbers(&mut draft, item);
    if let Some(words) = item.get("abstract_inverted_index").and_then(Value::as_object) {
        draft.add_decoded(
            FieldName::new(Field::Abstract, "abstract_inverted_index", 0),
            Cow::Owned(in_order(words)),
        );
    }
    registration(&mut draft, item);
    if !database.is_empty() {
        draft.add_decoded(FieldName::new(Field::Database, "DB", 0), Cow::Borrowed(database));
    }
    for (name, value) in item {
        if let Some(value) =
            text(value).filter(|_| !paths.iter().any(|(_, paths)| paths.contains(&name.as_str())))
        {
            draft.extra.push(name, &value);
        }
    }
    Some(draft)
}

/// The study inside of a record of ClinicalTrials.gov: `{"FullStudy": {"Rank": 1, "Study": {…}}}`.
fn study(item: &Map<String, Value>) -> &Map<String, Value> {
    let full = item.get("FullStudy").and_then(Value::as_object).unwrap_or(item);
    full.get("Study").and_then(Value::as_object).unwrap_or(item)
}

/// The object inside of a record that holds the work, in answers of DOAJ, DataCite, DBLP, Zenodo and Semantic Scholar, and
/// in files of the package `scholarly` of Python.
fn inner(item: &Map<String, Value>) -> Option<&Map<String, Value>> {
    let is_work = |inner: &&Map<String, Value>| inner.contains_key("title") || inner.contains_key("titles");
    let parts = ["bibjson", "attributes", "info", "metadata", "citingPaper", "citedPaper", "bib"];
    // Search engines and programs have an object around each work.
    const AROUND: [&str; 5] = ["_source", "record", "fields", "work", "paper"];
    let around = if item.contains_key("title") { &[][..] } else { &AROUND[..] };
    parts.iter().chain(around).filter_map(|name| item.get(*name)?.as_object()).find(is_work)
}

/// The paths of the object's database, and the name of the database.
fn shape(item: &Map<String, Value>) -> Option<(&'static [Path], &'static str)> {
    let has = |name: &str| item.contains_key(name);
    // Paperpile has the names of people in parts.
    let has_parts =
        item.get("author").and_then(|people| people.get(0)?.get("last")).is_some_and(Value::is_string);
    // The fields of a BibTeX entry, with all authors in one text. CSL-JSON has a list of them, and `issued`.
    let is_entry =
        !has("issued") && !has("container-title") && item.get("author").is_some_and(Value::is_string);
    let shapes: [(bool, &'static [Path], &'static str); 16] = [
        (has("authorships") || (has("display_name") && has("ids")), OPEN_ALEX, "OpenAlex"),
        (has("protocolSection"), CLINICAL_TRIALS, "ClinicalTrials.gov"),
        (has("ProtocolSection"), CLASSIC_TRIALS, "ClinicalTrials.gov"),
        (has("BriefTitle") || has("OfficialTitle"), STUDY_FIELDS, "ClinicalTrials.gov"),
        (has("title_s") || has("halId_s"), HAL, "HAL"),
        (has("authorString") || has("journalInfo") || has("authorList"), EUROPE_PMC, "Europe PMC"),
        (has("ctNumber"), CTIS, "CTIS"),
        (has("uid") && has("pubdate") && has("pubtype"), SUMMARY, "PubMed"),
        (has("uid") && has("pubdate"), SUMMARY, "PubMed Central"),
        (has("uid") && has("names") && has("source"), WOS_STARTER, "Web of Science"),
        (has("paperId") || (has("corpusid") && has("title")), SEMANTIC_SCHOLAR, "Semantic Scholar"),
        (has("ItemId") && has("Title"), EPPI_REVIEWER, ""),
        (has("dc:title"), SCOPUS, "Scopus"),
        (has("titles") && has("creators"), DATA_CITE, ""),
        (has("title") && has("publicationdateyear"), ERIC, "ERIC"),
        (has("title") && ((has("authors") && !has("author")) || is_entry || has_parts), COMMON, ""),
    ];
    shapes.into_iter().find(|(fits, ..)| *fits).map(|(_, paths, database)| (paths, database))
}

/// Adds the values at the paths of a database, after a conversion. The first path with people counts.
fn add_values(
    draft: &mut Draft<'static>,
    item: &Map<String, Value>,
    paths: &[Path],
    convert: fn(String) -> String,
) {
    for (field, names) in paths {
        if *field == Field::Author && draft.people() > 0 {
            continue;
        }
        for (rank, path) in (0_u8..).zip(*names) {
            let steps: Vec<&str> = path.split('.').collect();
            let before = draft.people();
            values(item, &steps, &mut |value| {
                add(draft, FieldName::new(*field, path, rank), convert(value));
            });
            if draft.people() > before {
                break;
            }
        }
    }
}

/// Adds identifiers from lists, in which each has a type.
pub(super) fn numbers(draft: &mut Draft<'static>, item: &Map<String, Value>) {
    let numbers = ["external_ids", "identifier"].iter().find_map(|name| item.get(*name)?.as_array());
    for number in numbers.into_iter().flatten() {
        let value = number.get("value").or(number.get("id")).and_then(text).unwrap_or_default();
        let field = match number.get("type").and_then(Value::as_str) {
            Some("doi") => Field::Doi,
            Some("pmid") => Field::Pmid,
            _ => continue,
        };
        draft.add_decoded(FieldName::new(field, "identifier", 1), Cow::Owned(value));
    }
    // The identifiers of Web of Science: `WOS:000300000000001` and `MEDLINE:30000001`.
    if let Some(number) = item.get("uid").and_then(text).filter(|number| number.starts_with("WOS:")) {
        draft.extra.inspect("UT", &number);
    }
    let number = item.get("identifiers").and_then(|ids| ids.get("pmid")?.as_str()?.strip_prefix("MEDLINE:"));
    if let Some(number) = number {
        draft.add_decoded(FieldName::new(Field::Pmid, "pmid", 0), Cow::Owned(number.to_owned()));
    }
    let external = item.get("externalIds").or_else(|| item.get("externalids"));
    if let Some(number) = external.and_then(|ids| ids.get("PubMedCentral")).and_then(text) {
        draft.extra.push("PMC", &format!("PMC{}", number.trim_start_matches("PMC")));
    }
}

/// Adds the link of a registration, and its number in another register.
fn registration(draft: &mut Draft<'static>, item: &Map<String, Value>) {
    const NUMBERS: [(&str, &str); 3] = [
        ("protocolSection", "/identificationModule/nctId"),
        ("ProtocolSection", "/IdentificationModule/NCTId"),
        ("NCTId", "/0"),
    ];
    let study = NUMBERS.iter().find_map(|(name, path)| item.get(*name)?.pointer(path));
    if let Some(number) = study {
        let url = format!("https://clinicaltrials.gov/study/{}", text(number).unwrap_or_default());
        draft.add_decoded(FieldName::new(Field::Url, "nctId", 0), Cow::Owned(url));
    }
    let others = item
        .get("protocolSection")
        .and_then(|value| value.pointer("/identificationModule/secondaryIdInfos"))
        .and_then(Value::as_array);
    for number in others.into_iter().flatten().filter_map(|info| text(info.get("id")?)) {
        draft.extra.push("secondaryIdInfos", &number);
    }
    let Some(number) = item.get("ctNumber").and_then(text) else { return };
    let url = format!("https://euclinicaltrials.eu/ctis-public/view/{number}");
    draft.add_decoded(FieldName::new(Field::Url, "ctNumber", 0), Cow::Owned(url));
    let application = item.get("authorizedApplication");
    if let Some(number) = application.and_then(|value| value.pointer(CTIS_NCT)).and_then(text) {
        draft.extra.push("nctNumber", &number);
    }
}

/// Adds the people and identifiers of a summary of PubMed or PubMed Central.
fn summary(draft: &mut Draft<'static>, item: &Map<String, Value>) {
    let of = |value: &Value, name: &str| value.get(name).and_then(text).unwrap_or_default();
    for person in item.get("authors").and_then(Value::as_array).into_iter().flatten() {
        let name = of(person, "name");
        match of(person, "authtype").as_str() {
            "CollectiveName" | "Corporate" => draft.author(Field::Group, name),
            "Editor" => draft.authors(Field::Editor, names::split_decoded(&name).collect()),
            "" | "Author" => draft.authors(Field::Author, names::split_decoded(&name).collect()),
            _ => {}
        }
    }
    let mut is_numbered = false;
    for number in item.get("articleids").and_then(Value::as_array).into_iter().flatten() {
        let value = of(number, "value");
        let field = match of(number, "idtype").as_str() {
            "pubmed" | "pmid" => Field::Pmid,
            "doi" => Field::Doi,
            "pmc" | "pmcid" => {
                draft.extra.push("PMC", &value);
                continue;
            }
            _ => continue,
        };
        is_numbered |= field == Field::Pmid;
        draft.add_decoded(FieldName::new(field, "articleids", 0), Cow::Owned(value));
    }
    // Summaries of PubMed Central are numbered differently.
    let number = item.get("uid").and_then(text).filter(|_| !is_numbered && item.contains_key("pubtype"));
    if let Some(number) = number {
        draft.add_decoded(FieldName::new(Field::Pmid, "uid", 1), Cow::Owned(number));
    }
}

/// Adds the people and groups that Europe PMC lists.
fn listed_people(draft: &mut Draft<'static>, item: &Map<String, Value>) {
    let list = item.get("authorList").and_then(|list| list.get("author")).and_then(Value::as_array);
    for author in list.into_iter().flatten() {
        let part = |name: &str| author.get(name).and_then(decoded);
        if let Some(group) = part("collectiveName") {
            draft.author(Field::Group, group);
        } else if let (Some(family), Some(given)) = (part("lastName"), part("firstName").or(part("initials")))
        {
            names::joined(&family, &given).into_iter().for_each(|name| draft.author(Field::Author, name));
        } else if let Some(name) = part("fullName") {
            names::split_decoded(&name).for_each(|name| draft.author(Field::Author, name));
        }
    }
}

/// Adds the authors of EPPI-Reviewer: `Roe Ann ; Doe Bob C; `.
fn people_of_eppi_reviewer(draft: &mut Draft<'static>, item: &Map<String, Value>) {
    let authors = item.get("Authors").and_then(decoded).filter(|_| item.contains_key("ItemId"));
    for name in authors.unwrap_or_default().split(';').filter_map(names::family_first) {
        draft.author(Field::Author, name);
    }
}

/// Adds the people of HAL, whose family and given names are parallel lists.
fn people_of_hal(draft: &mut Draft<'static>, item: &Map<String, Value>) {
    let parts = |name: &str| item.get(name).and_then(Value::as_array);
    let (Some(family), Some(given)) = (parts("authLastName_s"), parts("authFirstName_s")) else { return };
    let people = parts("authFullName_s").map_or(family.len(), Vec::len);
    if family.len() != given.len() || people != family.len() {
        return;
    }
    for (family, given) in family.iter().zip(given) {
        let part = |value: &Value| decoded(value).unwrap_or_default();
        if let Some(name) = names::joined(&part(family), &part(given)) {
            draft.author(Field::Author, name);
        }
    }
}

/// The name of a person in parts: in an object, or in a list with the family name first.
pub(super) fn person(value: &Value) -> Option<String> {
    const FAMILY: [&str; 8] =
        ["last_name", "lastName", "last", "lastname", "LastName", "family", "surname", "Surname"];
    const GIVEN: [&str; 8] =
        ["first_name", "firstName", "first", "firstname", "FirstName", "given", "forename", "ForeName"];
    let part = |names: [&str; 8]| {
        names.iter().find_map(|name| value.get(*name)).and_then(decoded).unwrap_or_default()
    };
    match value.as_array().map(Vec::as_slice) {
        Some([Value::String(family), Value::String(given)]) => {
            names::joined(&entities::decode(family), &entities::decode(given))
        }
        _ => names::joined(&part(FAMILY), &part(GIVEN)),
    }
}

/// Calls a function with each value at the end of a path.
fn values(item: &Map<String, Value>, path: &[&str], take: &mut dyn FnMut(String)) {
    let Some((first, rest)) = path.split_first() else { return };
    if let Some(value) = item.get(*first) {
        values_of(value, rest, take);
    }
}

fn values_of(value: &Value, path: &[&str], take: &mut dyn FnMut(String)) {
    match (path.split_first(), value) {
        (Some((&"*", rest)), Value::Array(items)) => {
            items.iter().for_each(|item| values_of(item, rest, take));
        }
        (Some(_), Value::Object(item)) => values(item, path, take),
        (None, value) => {
            if let Some(value) = text(value) {
                take(value);
            }
        }
        (Some(_), _) => {}
    }
}

fn text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

/// The text of a value without character references.
fn decoded(value: &Value) -> Option<String> {
    text(value).map(|text| entities::decode(&text).into_owned())
}

fn add(draft: &mut Draft<'static>, named: FieldName, value: String) {
    if matches!(named.field, Field::Author | Field::Editor)
        && value.starts_with('[')
        && let Some(names) = notation::list(&value)
    {
        let names = names.iter().filter_map(|name| names::one(name));
        return names.for_each(|name| draft.author(named.field, name));
    }
    match named.field {
        Field::Author | Field::Editor => {
            // A list of names ends in a full stop.
            let value = value
                .strip_suffix('.')
                .filter(|list| list.contains(", ") && !list.contains(';'))
                .unwrap_or(&value);
            for name in names::split_decoded(value) {
                draft.author(named.field, name);
            }
        }
        Field::Keyword => value.split([';', '\n']).for_each(|keyword| draft.keyword(named.rank, keyword)),
        Field::Type if named.name == "docType_s" => {
            let kind =
                HAL_TYPES.iter().find(|(code, _)| *code == value).map_or(value.as_str(), |(_, kind)| kind);
            draft.add_decoded(named, Cow::Owned(kind.to_owned()));
        }
        _ => draft.add_decoded(named, Cow::Owned(value)),
    }
}

/// Puts the words of an abstract in their order.
pub(super) fn in_order(index: &Map<String, Value>) -> String {
    let mut words: BTreeMap<u64, &str> = BTreeMap::new();
    for (word, places) in index {
        for place in places.as_array().into_iter().flatten().filter_map(Value::as_u64) {
            if place < MAX_WORDS {
                words.insert(place, word);
            }
        }
    }
    let mut text = String::new();
    for word in words.into_values() {
        if text.len() + word.len() > MAX_ABSTRACT {
            break;
        }
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}
