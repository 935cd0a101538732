//! One bibliographic record as read.

use serde::{Deserialize, Serialize};

/// One bibliographic record as read from a file.
///
/// Values are tidied, not judged: white space is collapsed where line breaks mean nothing, empty values are
/// absent, and everything else stays as the database exported it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Reference {
    /// The title; empty when the record has none but says something else.
    pub title: String,
    /// Authors in the order given, `"Family, Given"`; groups and unclear names as given.
    pub authors: Vec<String>,
    /// Year of publication.
    pub year: Option<i32>,
    /// Journal or book the work appeared in; the abbreviation when there is no full name.
    pub journal: Option<String>,
    /// Volume.
    pub volume: Option<String>,
    /// Issue.
    pub issue: Option<String>,
    /// Pages as given; a separate first and last page are joined: `"152-160"`.
    pub pages: Option<String>,
    /// DOI without prefix, in lower case: `"10.5555/abc"`.
    pub doi: Option<String>,
    /// PubMed identifier, digits only.
    pub pmid: Option<String>,
    /// Abstract.
    pub r#abstract: Option<String>,
    /// Keywords and subject headings, in the order given, each once.
    pub keywords: Vec<String>,
    /// First link of the record.
    pub url: Option<String>,
    /// Kind of work as the format names it: `"Journal Article"`.
    pub r#type: Option<String>,
}

impl Reference {
    /// Whether nothing usable was read. The kind of work alone says nothing about which work it is.
    #[must_use]
    pub fn is_blank(&self) -> bool {
        *self == Self { r#type: self.r#type.clone(), ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_type_alone_is_blank_and_a_doi_alone_is_not() {
        let typed = Reference { r#type: Some("Journal Article".into()), ..Reference::default() };
        assert!(typed.is_blank());
        assert!(!Reference { doi: Some("10.5555/a".into()), ..typed }.is_blank());
    }

    #[test]
    fn serialises_under_the_plain_field_names() {
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
