//! The input of a writer: a study and its source.

use references::Reference;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A study to write.
#[derive(Debug, Clone, Copy)]
pub struct Study<'a> {
    /// The study's permanent key, the same in every export. It is derived from the search, the file and the position in
    /// the file, which never change.
    pub key: Uuid,
    /// The search that imported the study.
    pub search: Uuid,
    /// The name of the file that contained the study.
    pub file: &'a str,
    /// The position among the file's records, from 1.
    pub record: u64,
    /// The database that the study was found in.
    pub source: &'a Source,
    /// The key of the study that this one duplicates, if any.
    pub duplicate_of: Option<Uuid>,
    /// The bibliographic data.
    pub reference: &'a Reference,
}

impl Source {
    /// Returns `true` if the numbers of the database are PMIDs.
    pub(crate) fn is_pubmed(&self) -> bool {
        let database = self.database.as_deref().unwrap_or_default().to_lowercase();
        ["pubmed", "medline"].iter().any(|name| database.contains(name))
    }
}

/// The database and platform that studies were found with. Unknown fields are absent.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Source {
    /// The database or register, such as `MEDLINE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// The search platform, such as `Ovid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The date of the search, such as `2026-05-17`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_on: Option<String>,
}
