//! Reads an `<article>` of JATS, the XML format of PubMed Central and publishers. Only the article's metadata is read,
//! not its text or its references.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    elements::{Visitor, attribute, walk},
    field::{Field, FieldName, Index, Rule},
    names,
    person::Person,
    tidy,
};

/// The elements and their fields.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["title-group/article-title", "title-group/subtitle"] },
    Rule { field: Field::FamilyName, names: &["name/surname", "string-name/surname"] },
    Rule { field: Field::GivenName, names: &["name/given-names", "string-name/given-names"] },
    Rule { field: Field::NameSuffix, names: &["name/suffix", "string-name/suffix"] },
    Rule { field: Field::Group, names: &["collab"] },
    Rule { field: Field::Date, names: &["pub-date/year"] },
    Rule { field: Field::MonthDay, names: &["pub-date/month", "pub-date/day"] },
    Rule { field: Field::Journal, names: &["journal-title", "abbrev-journal-title"] },
    Rule { field: Field::Volume, names: &["article-meta/volume"] },
    Rule { field: Field::Issue, names: &["article-meta/issue"] },
    Rule { field: Field::FirstPage, names: &["article-meta/fpage", "article-meta/elocation-id"] },
    Rule { field: Field::LastPage, names: &["article-meta/lpage"] },
    Rule { field: Field::Doi, names: &["article-meta/article-id"] },
    Rule { field: Field::Abstract, names: &["abstract"] },
    Rule { field: Field::Keyword, names: &["kwd"] },
    Rule {
        field: Field::LeftOut,
        names: &[
            "body",
            "back",
            "sub-article",
            "response",
            "floats-group",
            "related-article",
            "permissions",
            "history",
            "trans-abstract",
            "trans-title-group",
            "counts",
            "contrib-id",
        ],
    },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

/// Abstract types that are not summaries of the article.
const OTHER_ABSTRACTS: [&str; 6] = ["graphical", "teaser", "toc", "key-points", "web-summary", "precis"];

pub(super) fn read(text: &str) -> Result<Draft<'_>, String> {
    walk(text, Jats::default()).map(|mut read| {
        if let Some((named, title)) = read.title {
            read.draft.add_decoded(named, title);
        }
        read.draft
    })
}

#[derive(Default)]
struct Jats<'a> {
    draft: Draft<'a>,
    person: Person,
    editor: bool,
    /// `true` inside of a contributor.
    in_contributor: bool,
    /// The state inside alternative forms of one name: `true` if the first form was read.
    has_alternative: Option<bool>,
    /// Year, month and day of the current date, and its rank: the date of the issue precedes that of a publication online.
    date: [String; 3],
    rank: u8,
    /// The title, to which a subtitle is appended.
    title: Option<(FieldName, Cow<'a, str>)>,
}

impl<'a> Jats<'a> {
    /// Adds the name of a contributor. The first of several alternative forms counts, such as one in another script.
    fn name(&mut self, name: Option<String>) {
        let is_other = self.has_alternative.as_mut().is_some_and(|has| std::mem::replace(has, true));
        if let Some(name) = name.filter(|_| self.in_contributor && !is_other) {
            self.draft.author(if self.editor { Field::Editor } else { Field::Author }, name);
        }
    }

    /// Articles have several identifiers, each with a type.
    fn identifier(&mut self, named: FieldName, attributes: &str, text: Cow<'a, str>) {
        match attribute(attributes, "pub-id-type").as_deref() {
            Some("doi") => self.draft.add_decoded(named, text),
            Some("pmid") => self.draft.add_decoded(FieldName { field: Field::Pmid, ..named }, text),
            kind => self.draft.extra.push(kind.unwrap_or(named.name), &text),
        }
    }
}

impl<'a> Visitor<'a> for Jats<'a> {
    const DRESS: &'static [&'static str] = &[
        "italic",
        "bold",
        "sub",
        "sup",
        "sc",
        "underline",
        "monospace",
        "xref",
        "ext-link",
        "named-content",
    ];
    const PARTS: &'static [&'static str] = &["p", "title", "sec", "break"];
    const OMITTED: &'static [&'static str] = &["contrib-group", "fn"];

    fn index(&self) -> &'static Index {
        &INDEX
    }

    fn value(&mut self, named: FieldName, attributes: &'a str, text: Cow<'a, str>) {
        match named.field {
            Field::FamilyName | Field::GivenName | Field::NameSuffix => self.person.add(named.field, &text),
            Field::Group => {
                let field = if self.editor { Field::Editor } else { Field::Group };
                if let Some(name) = tidy::line(&text) {
                    self.draft.author(field, name);
                }
            }
            Field::Date => self.date[0] = text.into_owned(),
            Field::MonthDay => self.date[1 + usize::from(named.rank)] = text.into_owned(),
            Field::Title if named.rank > 0 => match &mut self.title {
                Some((_, title)) if !tidy::is_blank(&text) => {
                    let whole = title.to_mut();
                    whole.truncate(whole.trim_end().len());
                    whole.push_str(": ");
                    whole.push_str(text.trim_start());
                }
                _ => self.draft.extra.push(named.tag, &text),
            },
            Field::Title if self.title.is_none() => self.title = Some((named, text)),
            Field::Doi => self.identifier(named, attributes, text),
            Field::Keyword => self.draft.keyword(named.rank, &text),
            Field::Abstract => match attribute(attributes, "abstract-type") {
                Some(kind) if OTHER_ABSTRACTS.contains(&kind.as_ref()) => self.draft.extra.push(&kind, &text),
                _ => self.draft.add_decoded(named, text),
            },
            _ => self.draft.add_decoded(named, text),
        }
    }

    fn other(&mut self, name: &'a str, text: &str) {
        if name == "string-name" && self.in_contributor && !tidy::is_blank(text) {
            return self.name(names::one(text));
        }
        self.draft.extra.push(name, text);
    }

    fn start(&mut self, name: &'a str, attributes: &'a str) {
        match name {
            "contrib" => {
                let kind = attribute(attributes, "contrib-type");
                self.editor = kind.is_some_and(|kind| kind.contains("editor"));
                self.in_contributor = true;
            }
            "name-alternatives" => self.has_alternative = Some(false),
            "pub-date" => {
                let kind =
                    ["pub-type", "date-type", "publication-format"].map(|name| attribute(attributes, name));
                let is = |known: &[&str]| kind.iter().flatten().any(|kind| known.contains(&kind.as_ref()));
                self.rank = if is(&["ppub", "print"]) {
                    0
                } else if is(&["collection", "epub-ppub"]) {
                    1
                } else {
                    2 + u8::from(is(&["nihms-submitted", "pmc-release", "preprint", "corrected"]))
                };
            }
            "article" => {
                if let Some(kind) = attribute(attributes, "article-type") {
                    self.draft.add_decoded(FieldName::new(Field::Type, "article-type", 0), kind);
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, name: &'a str) {
        match name {
            "name" | "string-name" => {
                let name = self.person.finish();
                self.name(name);
            }
            "name-alternatives" => self.has_alternative = None,
            "contrib" => self.in_contributor = false,
            "pub-date" => {
                let date = std::mem::take(&mut self.date).join("-");
                self.draft.add_decoded(FieldName::new(Field::Date, "pub-date", self.rank), Cow::Owned(date));
            }
            _ => {}
        }
    }
}
