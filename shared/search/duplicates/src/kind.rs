//! The kind of a work.

use references::Reference;
use serde::{Deserialize, Serialize};

/// The kind of a work that is not an article. An article may have the title of a thesis or a registration.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    /// An article, or unknown.
    #[default]
    Other,
    Thesis,
    Dataset,
    Report,
    Registration,
}

impl Kind {
    /// Derives the kind of a work, except a registration, from its type and DOI.
    pub(crate) fn of(reference: &Reference, doi: &str) -> Self {
        const DATASETS: [&str; 4] = ["10.5061/dryad", "10.6084/m9.figshare", "10.5281/zenodo", "10.7910/dvn"];
        let stated = reference.r#type.as_deref().filter(|stated| *stated != ARTICLE);
        let stated = stated.unwrap_or_default().to_ascii_lowercase();
        let states = |words: &[&str]| words.iter().any(|word| stated.contains(word));
        if states(&["thesis", "dissertation"]) {
            Self::Thesis
        } else if states(&["data file", "dataset", "data set"])
            || reference.r#type.is_none() && DATASETS.iter().any(|prefix| doi.starts_with(prefix))
        {
            Self::Dataset
        } else if matches!(&*stated, "report" | "technical report" | "government document" | "working paper")
        {
            Self::Report
        } else {
            Self::Other
        }
    }

    pub(crate) fn is_other(&self) -> bool {
        *self == Self::Other
    }
}

/// The type of most works.
pub(crate) const ARTICLE: &str = "Journal Article";
