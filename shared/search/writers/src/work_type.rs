//! Types of work and their names in each output format.

use references::{RIS_KINDS, Reference};

/// The type of a work, as far as the formats distinguish it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkType {
    Article,
    Chapter,
    Conference,
    Book,
    Thesis,
    Report,
    Patent,
    Dataset,
    Web,
    News,
    Other,
}

/// Words that identify a type; the first match counts. `"Case Reports"` and `"Book Review"` are articles.
const WORDS: [(WorkType, &[&str]); 10] = [
    (WorkType::Thesis, &["thesis", "dissertation"]),
    (WorkType::Chapter, &["chapter", "book section", "incollection", "inbook"]),
    (WorkType::Conference, &["conference", "proceeding", "congress", "meeting abstract"]),
    (
        WorkType::Article,
        &["journal", "article", "review", "trial", "case report", "letter", "editorial", "comment"],
    ),
    (WorkType::Book, &["book", "monograph"]),
    (WorkType::Report, &["report"]),
    (WorkType::Patent, &["patent"]),
    (WorkType::Dataset, &["data"]),
    (WorkType::Web, &["web", "electronic", "online"]),
    (WorkType::News, &["news"]),
];

impl WorkType {
    pub(crate) fn from_reference(reference: &Reference) -> Self {
        let words = reference.r#type.as_deref().unwrap_or_default().to_lowercase();
        let named = WORDS.iter().find(|(_, names)| names.iter().any(|name| words.contains(name)));
        match named {
            Some((kind, _)) => *kind,
            None if reference.journal.is_some() => Self::Article,
            None => Self::Other,
        }
    }

    /// The RIS code of a work. A type name that RIS itself defines keeps its code.
    pub(crate) fn ris(reference: &Reference) -> &'static str {
        /// Codes of reference managers whose names databases also give to works in journals.
        const OF_JOURNALS: [&str; 6] = ["CPAPER", "DICT", "FIGURE", "INTV", "PRESS", "STAND"];
        let name = reference.r#type.as_deref().unwrap_or_default();
        let is_other = |code: &str| reference.journal.is_some() && OF_JOURNALS.contains(&code);
        if let Some((code, _)) = RIS_KINDS.iter().find(|(_, kind)| kind.eq_ignore_ascii_case(name))
            && !is_other(code)
        {
            return code;
        }
        match Self::from_reference(reference) {
            Self::Article => "JOUR",
            Self::Chapter => "CHAP",
            Self::Conference => "CONF",
            Self::Book => "BOOK",
            Self::Thesis => "THES",
            Self::Report => "RPRT",
            Self::Patent => "PAT",
            Self::Dataset => "DATA",
            Self::Web => "ELEC",
            Self::News => "NEWS",
            Self::Other => "GEN",
        }
    }

    pub(crate) const fn bibtex(self) -> &'static str {
        match self {
            Self::Article | Self::News => "article",
            Self::Chapter => "incollection",
            Self::Conference => "inproceedings",
            Self::Book => "book",
            Self::Thesis => "phdthesis",
            Self::Report => "techreport",
            Self::Patent | Self::Dataset | Self::Web | Self::Other => "misc",
        }
    }

    /// The name and number of the type in EndNote.
    pub(crate) const fn endnote(self) -> (&'static str, u8) {
        match self {
            Self::Article => ("Journal Article", 17),
            Self::Chapter => ("Book Section", 5),
            Self::Conference => ("Conference Paper", 47),
            Self::Book => ("Book", 6),
            Self::Thesis => ("Thesis", 32),
            Self::Report => ("Report", 27),
            Self::Patent => ("Patent", 25),
            Self::Dataset => ("Dataset", 59),
            Self::Web => ("Web Page", 12),
            Self::News => ("Newspaper Article", 23),
            Self::Other => ("Generic", 13),
        }
    }

    pub(crate) const fn csl(self) -> &'static str {
        match self {
            Self::Article => "article-journal",
            Self::Chapter => "chapter",
            Self::Conference => "paper-conference",
            Self::Book => "book",
            Self::Thesis => "thesis",
            Self::Report => "report",
            Self::Patent => "patent",
            Self::Dataset => "dataset",
            Self::Web => "webpage",
            Self::News => "article-newspaper",
            Self::Other => "document",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_types_of_databases_are_recognized() {
        for (name, code, kind) in [
            (Some("Journal Article"), "JOUR", WorkType::Article),
            (Some("Abstract"), "ABST", WorkType::Other),
            (Some("Case Reports; Journal Article"), "JOUR", WorkType::Article),
            (Some("Conference Abstract"), "CONF", WorkType::Conference),
            (Some("Conference Paper"), "CPAPER", WorkType::Conference),
            (Some("Electronic Article"), "EJOUR", WorkType::Article),
            (Some("Electronic Book Section"), "ECHAP", WorkType::Chapter),
            (Some("article"), "JOUR", WorkType::Article),
            (Some("inproceedings"), "CONF", WorkType::Conference),
            (Some("Book Review"), "JOUR", WorkType::Article),
            (Some("Book Chapter"), "CHAP", WorkType::Chapter),
            (Some("phdthesis"), "THES", WorkType::Thesis),
            (Some("Ephemera"), "GEN", WorkType::Other),
            (None, "GEN", WorkType::Other),
        ] {
            let reference = Reference { r#type: name.map(str::to_owned), ..Reference::default() };
            assert_eq!(
                (WorkType::ris(&reference), WorkType::from_reference(&reference)),
                (code, kind),
                "{name:?}"
            );
        }
        let in_journal = |name: Option<&str>| Reference {
            journal: Some("J".into()),
            r#type: name.map(str::to_owned),
            ..Reference::default()
        };
        assert_eq!(WorkType::from_reference(&in_journal(None)), WorkType::Article);
        assert_eq!(WorkType::ris(&in_journal(Some("Conference paper"))), "CONF");
        assert_eq!(WorkType::ris(&in_journal(Some("Interview"))), "JOUR");
    }

    #[test]
    fn types_of_ris_are_equal_after_writing() {
        for (_, name) in RIS_KINDS {
            let reference = Reference { r#type: Some(name.to_owned()), ..Reference::default() };
            let code = WorkType::ris(&reference);
            let read = RIS_KINDS.iter().find(|(known, _)| *known == code).map(|(_, name)| *name);
            assert_eq!(read, Some(name));
        }
    }
}
