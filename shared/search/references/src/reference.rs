//! A bibliographic record.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// A bibliographic record as read from a file.
///
/// Values are normalized, but not interpreted: white space is collapsed where line breaks have no meaning, character
/// references (`&amp;`) are decoded, and empty values are absent. Everything else stays as the database exported it.
/// `docs/fields.md` lists which tag of each format becomes which field.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// The title; empty if the record has only other fields.
    pub title: String,
    /// The authors in the given order, as `"Family, Given"`; groups and ambiguous names are unchanged.
    pub authors: Vec<String>,
    /// The year of publication.
    pub year: Option<i32>,
    /// The date of publication if more than the year is known: `"2018-05"` or `"2018-05-17"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub date: Option<String>,
    /// The journal or book that contains the work; the abbreviation if the full name is missing.
    pub journal: Option<String>,
    /// The volume of the journal or series, without a label.
    pub volume: Option<String>,
    /// The issue of the volume, without a label.
    pub issue: Option<String>,
    /// The pages, unchanged; a separate first and last page are joined: `"152-160"`.
    pub pages: Option<String>,
    /// The complete pages with a plain hyphen, if they differ from `pages`: `"123-129"` for `"123-9"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pages_normalized: Option<String>,
    /// The DOI without prefix, in lower case: `"10.5555/abc"`.
    pub doi: Option<String>,
    /// The PubMed identifier, digits only.
    pub pmid: Option<String>,
    /// The number in PubMed Central: `"PMC7012345"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmcid: Option<String>,
    /// The accession number in Embase, digits only, or the identifier of embase.com: `"L2004567890"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub embase_id: Option<String>,
    /// The accession number in Web of Science with its collection: `"WOS:000478028100004"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wos_id: Option<String>,
    /// The accession number in another database, unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accession: Option<String>,
    /// The registration numbers of trials that the record is or names: `"NCT00000001"`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trial_ids: Vec<String>,
    /// The abstract, with its paragraphs if the format has any.
    pub r#abstract: Option<String>,
    /// Keywords and subject headings, in the given order, without repetitions.
    pub keywords: Vec<String>,
    /// The first link of the record.
    pub url: Option<String>,
    /// The work type as named by the format: `"Journal Article"`.
    pub r#type: Option<String>,
    /// Values of tags that have no field, by tag, each value on one line; up to 16 KiB.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// Serializes a [`Reference`] without its empty fields; it deserializes to the same value.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct SparseReference<'a> {
    #[serde(skip_serializing_if = "str::is_empty")]
    title: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    authors: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    year: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    date: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    journal: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    volume: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    issue: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pages_normalized: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    doi: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pmid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pmcid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    embase_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    wos_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    accession: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    trial_ids: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    r#abstract: Option<&'a str>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    keywords: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    r#type: Option<&'a str>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    extra: &'a BTreeMap<String, Vec<String>>,
}

impl Reference {
    /// Returns a form without empty fields, for storage.
    #[must_use]
    pub fn sparse(&self) -> SparseReference<'_> {
        SparseReference {
            title: &self.title,
            authors: &self.authors,
            year: self.year,
            date: self.date.as_deref(),
            journal: self.journal.as_deref(),
            volume: self.volume.as_deref(),
            issue: self.issue.as_deref(),
            pages: self.pages.as_deref(),
            pages_normalized: self.pages_normalized.as_deref(),
            doi: self.doi.as_deref(),
            pmid: self.pmid.as_deref(),
            pmcid: self.pmcid.as_deref(),
            embase_id: self.embase_id.as_deref(),
            wos_id: self.wos_id.as_deref(),
            accession: self.accession.as_deref(),
            trial_ids: &self.trial_ids,
            r#abstract: self.r#abstract.as_deref(),
            keywords: &self.keywords,
            url: self.url.as_deref(),
            r#type: self.r#type.as_deref(),
            extra: &self.extra,
        }
    }

    /// Returns `true` if nothing usable was read. The work type alone does not identify a work, and neither do values
    /// of unknown tags.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        self.title.is_empty()
            && self.authors.is_empty()
            && self.keywords.is_empty()
            && self.year.is_none()
            && [
                &self.journal,
                &self.volume,
                &self.issue,
                &self.pages,
                &self.doi,
                &self.pmid,
                &self.r#abstract,
                &self.url,
            ]
            .iter()
            .all(|value| value.is_none())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn type_alone_is_blank_but_doi_is_not() {
        let extra = BTreeMap::from([("DB".to_owned(), vec!["Embase".to_owned()])]);
        let typed = Reference { r#type: Some("Journal Article".into()), extra, ..Reference::default() };
        assert!(typed.is_blank());
        assert!(!Reference { doi: Some("10.5555/a".into()), ..typed }.is_blank());
    }

    /// Once with every field, so that none is forgotten, and once without any.
    #[test]
    fn sparse_form_deserializes_to_same_reference() {
        let text = |text: &str| Some(text.to_owned());
        let full = Reference {
            title: "T".into(),
            authors: vec!["A, B".into()],
            year: Some(2018),
            date: text("2018-05"),
            journal: text("J"),
            volume: text("1"),
            issue: text("2"),
            pages: text("3-4"),
            pages_normalized: text("3-4"),
            doi: text("10.5555/a"),
            pmid: text("7"),
            pmcid: text("PMC7"),
            embase_id: text("L373791783"),
            wos_id: text("WOS:000478028100004"),
            accession: text("2019-65183-001"),
            trial_ids: vec!["NCT00000001".into()],
            r#abstract: text("Abstract"),
            keywords: vec!["K".into()],
            url: text("https://example.org"),
            r#type: text("Book"),
            extra: BTreeMap::from([("DB".to_owned(), vec!["Embase".to_owned()])]),
        };
        for (reference, size) in [(full, 21), (Reference::default(), 0)] {
            let said = serde_json::to_value(reference.sparse()).unwrap();
            assert_eq!(said.as_object().unwrap().len(), size);
            assert_eq!(serde_json::from_value::<Reference>(said).unwrap(), reference);
        }
    }

    #[test]
    fn reference_serializes_under_plain_field_names() {
        let value = serde_json::to_value(Reference::default()).unwrap();
        let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
        names.sort_unstable();
        assert_eq!(
            names,
            [
                "abstract", "authors", "doi", "issue", "journal", "keywords", "pages", "pmid", "title",
                "type", "url", "volume", "year"
            ]
        );
    }
}
