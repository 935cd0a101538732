//! The certainty of a match, and its reason in words.

use serde::{Deserialize, Serialize};

/// The certainty that two records describe the same work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// The records are similar, but some evidence contradicts a match, or the evidence is insufficient. Such records
    /// are not grouped.
    Possible,
    /// About one in several hundred such matches is wrong.
    Likely,
    /// About one in several thousand such matches is wrong.
    Certain,
}

impl std::fmt::Display for Tier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Possible => "possible",
            Self::Likely => "likely",
            Self::Certain => "certain",
        })
    }
}

/// Defines the reasons, each with a phrase that completes "they have".
macro_rules! reasons {
    ($($name:ident: $words:literal,)+) => {
        /// The reason for a match: a line of the table. It is shown to users, and stored by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Reason {
            $(#[doc = $words] $name,)+
        }

        impl Reason {
            /// All reasons, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$name),+];
        }

        impl std::fmt::Display for Reason {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(match self { $(Self::$name => $words,)+ })
            }
        }
    };
}

reasons! {
    Said: "a reviewer's decision that they are the same",
    Pmid: "the same PMID",
    Number: "the same number in a database",
    DoiTitle: "the same DOI and title",
    DoiTitlePage: "the same DOI, title and first page",
    DoiAuthorPage: "the same DOI, first author and first page",
    DoiTitleJournal: "the same DOI and title; the authors differ",
    DoiTitleAuthor: "the same DOI, title and first author; the pages differ",
    DoiUntitled: "the same DOI; one has no title",
    DoiAuthorAlike: "the same DOI and first author, and titles or abstracts that are alike",
    DoiAuthor: "the same DOI and first author; the titles differ",
    TitlePage: "the same title and first page",
    TitleYearAuthor: "the same title, year and first author",
    TitleVolumeAuthor: "the same title, first author, journal and volume",
    TitleAuthor: "the same title and first author, and nothing that differs",
    TitleJournal: "the same title and journal",
    PageVolumeAuthor: "the same page, volume and first author, and titles or abstracts that are alike",
    PageJournalAuthor: "the same page, volume, journal and first author; the titles differ",
    AbstractAuthor: "the same abstract and first author",
    TitleJournalVolume: "the same title, journal, volume and year",
    TitleNearbyPage: "the same title, first author, journal and volume, and pages that are nearly the same",
    PageJournal: "the same pages, volume, journal and year",
    Doi: "the same DOI",
    PmidAlone: "the same PMID; other details differ",
    TitlePageElsewhere: "the same title and first page; the DOIs and the journals or volumes differ",
    Title: "the same title",
    AbstractElsewhere: "the same abstract and first author; they appeared in different places",
    Copy: "the same content in every compared field",
    OtherPmid: "the same title or DOI; the PMIDs differ",
    Notice: "the same title or DOI; one is a notice about the other",
    Reply: "the same title or DOI; one is a reply to the other",
    Numbers: "the same title or DOI; the numbers in the titles differ",
    Versions: "the same title; the DOIs are of two versions",
}
