//! The programs that files are written for, and their requirements.

use std::fmt;
use std::str::FromStr;

use crate::Format;

/// A program that studies are exported for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tool {
    /// <https://support.covidence.org>: RIS, one file per source.
    Covidence,
    /// <https://help.rayyan.ai>: a table with Rayyan's columns.
    Rayyan,
    /// <https://asreview.readthedocs.io>: a table with ASReview's columns.
    Asreview,
    /// RIS.
    Endnote,
    /// RIS.
    Zotero,
    /// A workbook.
    Excel,
}

/// The limits at which a new file begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileLimits {
    /// The maximum number of studies in a file.
    pub studies: u64,
    /// The maximum size of a file in bytes. A larger study gets its own file.
    pub bytes: u64,
}

impl Tool {
    /// All programs.
    pub const ALL: [Self; 6] =
        [Self::Covidence, Self::Rayyan, Self::Asreview, Self::Endnote, Self::Zotero, Self::Excel];

    /// The format that the program reads best.
    pub const fn format(self) -> Format {
        match self {
            Self::Covidence | Self::Endnote | Self::Zotero => Format::Ris,
            Self::Rayyan => Format::Rayyan,
            Self::Asreview => Format::Asreview,
            Self::Excel => Format::Xlsx,
        }
    }

    /// The limits of one upload, if the program has any. Each source then gets its own files, because the program asks
    /// for the source of every file. Covidence accepts 15,000 references and 50 MB in a file.
    pub const fn file_limits(self) -> Option<FileLimits> {
        match self {
            Self::Covidence => Some(FileLimits { studies: 15_000, bytes: 50_000_000 }),
            _ => None,
        }
    }

    /// The name by which users select the program.
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

impl FileLimits {
    /// Returns `true` if a study of `more` bytes begins a new file, given the studies and bytes already in this one.
    pub const fn is_full(self, studies: u64, bytes: u64, more: u64) -> bool {
        studies > 0 && (studies >= self.studies || bytes.saturating_add(more) > self.bytes)
    }
}

/// The error for an unknown program name.
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
    fn file_ends_before_exceeding_program_limits() {
        let split = FileLimits { studies: 2, bytes: 100 };
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
    fn program_names_are_unique() {
        assert!(Tool::ALL.iter().all(|tool| tool.name().parse() == Ok(*tool)));
        let listed = UnknownTool.to_string();
        assert!(Tool::ALL.iter().all(|tool| listed.contains(tool.name())));
    }
}
