//! What is written of a study.

use references::Reference;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// A study to be written.
#[derive(Debug, Clone, Copy)]
pub struct Study<'a> {
    /// Stands for the study for good, in every export: derived from what never changes, its search, its file and its place
    /// in that file.
    pub key: Uuid,
    /// The search that brought it.
    pub search: Uuid,
    /// The name of the file that it was in.
    pub file: &'a str,
    /// Its place among the file's records, from 1.
    pub record: u64,
    /// Where it was found.
    pub source: &'a Source,
    /// The key of the study that it repeats, if it does.
    pub duplicate_of: Option<Uuid>,
    /// What it says.
    pub reference: &'a Reference,
}

/// Where studies were found. Empty where nothing is known.
#[derive(
    Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, schemars::JsonSchema,
)]
pub struct Source {
    /// The database or register, such as `MEDLINE`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub database: Option<String>,
    /// What it was searched through, such as `Ovid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform: Option<String>,
    /// The date of the search, such as `2026-05-17`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub searched_on: Option<String>,
}
