//! Kinds of work, as each format calls them.

use references::{RIS_KINDS, Reference};

/// What sort of work a study is, as far as formats tell them apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
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

/// The kinds by words that name them, the first that fits. `"Case Reports"` and `"Book Review"` are articles.
const WORDS: [(Kind, &[&str]); 10] = [
    (Kind::Thesis, &["thesis", "dissertation"]),
    (Kind::Chapter, &["chapter", "book section", "incollection", "inbook"]),
    (Kind::Conference, &["conference", "proceeding", "congress", "meeting abstract"]),
    (
        Kind::Article,
        &["journal", "article", "review", "trial", "case report", "letter", "editorial", "comment"],
    ),
    (Kind::Book, &["book", "monograph"]),
    (Kind::Report, &["report"]),
    (Kind::Patent, &["patent"]),
    (Kind::Dataset, &["data"]),
    (Kind::Web, &["web", "electronic", "online"]),
    (Kind::News, &["news"]),
];

impl Kind {
    pub(crate) fn of(reference: &Reference) -> Self {
        let words = reference.r#type.as_deref().unwrap_or_default().to_lowercase();
        let named = WORDS.iter().find(|(_, names)| names.iter().any(|name| words.contains(name)));
        match named {
            Some((kind, _)) => *kind,
            None if reference.journal.is_some() => Self::Article,
            None => Self::Other,
        }
    }

    /// RIS's code of a work. Where its kind is called as RIS calls one, that is it.
    pub(crate) fn ris(reference: &Reference) -> &'static str {
        let name = reference.r#type.as_deref().unwrap_or_default();
        if let Some((code, _)) = RIS_KINDS.iter().find(|(_, kind)| kind.eq_ignore_ascii_case(name)) {
            return code;
        }
        match Self::of(reference) {
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
    fn kinds_of_many_databases_are_known() {
        for (name, code, kind) in [
            (Some("Journal Article"), "JOUR", Kind::Article),
            (Some("Abstract"), "ABST", Kind::Other),
            (Some("Case Reports; Journal Article"), "JOUR", Kind::Article),
            (Some("Conference Abstract"), "CONF", Kind::Conference),
            (Some("article"), "JOUR", Kind::Article),
            (Some("inproceedings"), "CONF", Kind::Conference),
            (Some("Book Review"), "JOUR", Kind::Article),
            (Some("Book Chapter"), "CHAP", Kind::Chapter),
            (Some("phdthesis"), "THES", Kind::Thesis),
            (Some("Ephemera"), "GEN", Kind::Other),
            (None, "GEN", Kind::Other),
        ] {
            let reference = Reference { r#type: name.map(str::to_owned), ..Reference::default() };
            assert_eq!((Kind::ris(&reference), Kind::of(&reference)), (code, kind), "{name:?}");
        }
        let reference = Reference { journal: Some("J".into()), ..Reference::default() };
        assert_eq!(Kind::of(&reference), Kind::Article);
    }
}
