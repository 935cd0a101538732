//! What each program wants of a file.

use std::fmt;
use std::str::FromStr;

use crate::Format;

/// A program that studies are exported for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// <https://support.covidence.org>: RIS, a file for each source.
    Covidence,
    /// <https://help.rayyan.ai>: a table with columns of its own.
    Rayyan,
    /// <https://asreview.readthedocs.io>: a table with columns of its own.
    Asreview,
    /// RIS.
    Endnote,
    /// RIS.
    Zotero,
    /// A workbook.
    Excel,
}

/// When another file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    /// The most studies of a file.
    pub studies: u64,
    /// The most bytes of a file; a study that is larger is a file by itself.
    pub bytes: u64,
}

impl Tool {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Covidence, Self::Rayyan, Self::Asreview, Self::Endnote, Self::Zotero, Self::Excel];

    /// The format that it reads best.
    pub const fn format(self) -> Format {
        match self {
            Self::Covidence | Self::Endnote | Self::Zotero => Format::Ris,
            Self::Rayyan => Format::Rayyan,
            Self::Asreview => Format::Asreview,
            Self::Excel => Format::Xlsx,
        }
    }

    /// What it takes at once, where that is limited; then each source has files of its own, too, since it is said with each
    /// file where its studies come from. Covidence takes 15,000 references and 50 MB in a file.
    pub const fn split(self) -> Option<Split> {
        match self {
            Self::Covidence => Some(Split { studies: 15_000, bytes: 50_000_000 }),
            _ => None,
        }
    }

    /// How it is asked for.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Covidence => "covidence",
            Self::Rayyan => "rayyan",
            Self::Asreview => "asreview",
            Self::Endnote => "endnote",
            Self::Zotero => "zotero",
            Self::Excel => "excel",
        }
    }
}

impl Split {
    /// Whether a study of `more` bytes begins another file, when this one has so many studies and bytes.
    pub const fn is_full(self, studies: u64, bytes: u64, more: u64) -> bool {
        studies > 0 && (studies >= self.studies || bytes.saturating_add(more) > self.bytes)
    }
}

/// A name that no program has that studies are exported for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the program is one of covidence, rayyan, asreview, endnote, zotero and excel")]
pub struct UnknownTool;

impl FromStr for Tool {
    type Err = UnknownTool;

    fn from_str(name: &str) -> Result<Self, UnknownTool> {
        Self::ALL.into_iter().find(|tool| tool.name() == name).ok_or(UnknownTool)
    }
}

impl fmt::Display for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_ends_before_it_is_too_large_for_its_program() {
        let split = Split { studies: 2, bytes: 100 };
        for (studies, bytes, more, is_full) in [
            (0, 0, 1_000, false),
            (1, 50, 50, false),
            (1, 50, 51, true),
            (2, 2, 1, true),
            (1, u64::MAX, 1, true),
        ] {
            assert_eq!(split.is_full(studies, bytes, more), is_full, "{studies} {bytes} {more}");
        }
    }

    #[test]
    fn each_program_has_a_name() {
        assert!(Tool::ALL.iter().all(|tool| tool.name().parse() == Ok(*tool)));
        let listed = UnknownTool.to_string();
        assert!(Tool::ALL.iter().all(|tool| listed.contains(tool.name())));
    }
}
