//! Reads the JSON of databases and programs whose names differ from those of CSL-JSON.

use std::{borrow::Cow, collections::BTreeMap};

use serde_json::{Map, Value};

use super::{
    draft::Draft,
    field::{Field, FieldName},
    names,
};

/// The maximum number of words in an abstract of OpenAlex, which lists the positions of each word.
const MAX_WORDS: u64 = 20_000;

/// A field, and the paths to its values, the preferred path first. A star is every item of a list.
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
    (Field::Author, &["authorList.author.*.fullName", "authorString"]),
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
            "protocolSection.statusModule.startDateStruct.date",
            "protocolSection.statusModule.studyFirstSubmitDate",
        ],
    ),
    (Field::Abstract, &["protocolSection.descriptionModule.briefSummary"]),
    (
        Field::Keyword,
        &["protocolSection.conditionsModule.conditions.*", "protocolSection.conditionsModule.keywords.*"],
    ),
    (Field::Type, &["protocolSection.designModule.studyType"]),
];

/// The names of Publish or Perish, CORE, DOAJ, Dimensions, The Lens, IEEE Xplore, medRxiv and others.
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
            "author.*.name",
        ],
    ),
    (
        Field::Date,
        &[
            "year",
            "year_published",
            "yearPublished",
            "publication_year",
            "date",
            "date_published",
            "publishedDate",
            "publication_date",
        ],
    ),
    (
        Field::Journal,
        &[
            "journal",
            "journal.title",
            "journal.name",
            "source",
            "source.title",
            "publication_title",
            "journals.*.title",
            "venue",
        ],
    ),
    (Field::Volume, &["volume", "journal.volume"]),
    (Field::Issue, &["issue", "number", "journal.number"]),
    (Field::Pages, &["pages"]),
    (Field::FirstPage, &["startpage", "start_page"]),
    (Field::LastPage, &["endpage", "end_page"]),
    (Field::Doi, &["doi"]),
    (Field::Pmid, &["pmid"]),
    (Field::Abstract, &["abstract"]),
    (Field::Keyword, &["keywords.*"]),
    (Field::Url, &["article_url", "url"]),
    (Field::Type, &["type", "publication_type"]),
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
    (Field::Date, &["publicationDate", "year"]),
    (Field::Journal, &["journal.name", "publicationVenue.name", "venue"]),
    (Field::Volume, &["journal.volume"]),
    (Field::Pages, &["journal.pages"]),
    (Field::Doi, &["externalIds.DOI", "doi"]),
    (Field::Pmid, &["externalIds.PubMed"]),
    (Field::Abstract, &["abstract"]),
    (Field::Keyword, &["fieldsOfStudy.*"]),
    (Field::Url, &["url"]),
    (Field::Type, &["publicationTypes.*"]),
];

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

/// Reads an object that has the names of a database. Returns `None` for other objects, such as those of CSL-JSON.
pub(super) fn read(item: &Map<String, Value>) -> Option<Draft<'static>> {
    // DOAJ has the work inside of its entry.
    let inner = item.get("bibjson").and_then(Value::as_object);
    let item = inner.unwrap_or(item);
    let has = |name: &str| item.contains_key(name);
    let (paths, database) = if has("authorships") || (has("display_name") && has("ids")) {
        (OPEN_ALEX, "OpenAlex")
    } else if has("protocolSection") {
        (CLINICAL_TRIALS, "ClinicalTrials.gov")
    } else if has("authorString") || has("journalInfo") {
        (EUROPE_PMC, "Europe PMC")
    } else if has("paperId") {
        (SEMANTIC_SCHOLAR, "Semantic Scholar")
    } else if has("ItemId") && has("Title") {
        (EPPI_REVIEWER, "")
    } else if has("dc:title") {
        (SCOPUS, "Scopus")
    } else if inner.is_some() || (has("title") && has("authors") && !has("author")) {
        (COMMON, "")
    } else {
        return None;
    };
    let mut draft = Draft::default();
    for (field, names) in paths {
        for (rank, path) in (0_u8..).zip(*names) {
            let steps: Vec<&str> = path.split('.').collect();
            let before = draft.people();
            values(item, &steps, &mut |value| add(&mut draft, FieldName::new(*field, path, rank), value));
            if draft.people() > before {
                break;
            }
        }
    }
    if draft.people() == 0 {
        let people = item.get("authors").and_then(Value::as_array);
        people.into_iter().flatten().filter_map(person).for_each(|name| draft.author(Field::Author, name));
    }
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
    if let Some(number) = item.get("externalIds").and_then(|ids| ids.get("PubMedCentral")).and_then(text) {
        draft.extra.push("PMC", &format!("PMC{}", number.trim_start_matches("PMC")));
    }
    if let Some(words) = item.get("abstract_inverted_index").and_then(Value::as_object) {
        draft.add_decoded(
            FieldName::new(Field::Abstract, "abstract_inverted_index", 0),
            Cow::Owned(in_order(words)),
        );
    }
    if let Some(number) =
        item.get("protocolSection").and_then(|value| value.pointer("/identificationModule/nctId"))
    {
        let url = format!("https://clinicaltrials.gov/study/{}", text(number).unwrap_or_default());
        draft.add_decoded(FieldName::new(Field::Url, "nctId", 0), Cow::Owned(url));
    }
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

/// The name of a person in parts.
fn person(value: &Value) -> Option<String> {
    let part = |names: [&str; 2]| {
        names.iter().find_map(|name| value.get(*name)).and_then(Value::as_str).unwrap_or_default()
    };
    names::joined(part(["last_name", "lastName"]), part(["first_name", "firstName"]))
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

fn add(draft: &mut Draft<'static>, named: FieldName, value: String) {
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
        _ => draft.add_decoded(named, Cow::Owned(value)),
    }
}

/// Puts the words of an abstract in their order.
fn in_order(index: &Map<String, Value>) -> String {
    let mut words: BTreeMap<u64, &str> = BTreeMap::new();
    for (word, places) in index {
        for place in places.as_array().into_iter().flatten().filter_map(Value::as_u64) {
            if place < MAX_WORDS {
                words.insert(place, word);
            }
        }
    }
    words.into_values().collect::<Vec<_>>().join(" ")
}
