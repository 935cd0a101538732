//! Reads a `<mods>` record of the Library of Congress, as reference managers and catalogues export it.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    elements::{Visitor, attribute, walk},
    field::{Field, FieldName, Index, Rule},
    names,
    person::Person,
    tidy,
};

/// The elements and their fields. Titles in `relatedItem` of type `host` belong to the journal.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["titleInfo/title"] },
    Rule { field: Field::Author, names: &["name/namePart", "name/displayForm"] },
    Rule { field: Field::Date, names: &["dateIssued", "part/date", "copyrightDate", "dateCreated"] },
    Rule { field: Field::Volume, names: &["detail/number"] },
    Rule { field: Field::FirstPage, names: &["extent/start"] },
    Rule { field: Field::LastPage, names: &["extent/end"] },
    Rule { field: Field::Pages, names: &["extent/list"] },
    Rule { field: Field::Doi, names: &["identifier"] },
    Rule { field: Field::Abstract, names: &["abstract"] },
    Rule { field: Field::Keyword, names: &["subject/topic"] },
    Rule { field: Field::Url, names: &["location/url"] },
    Rule { field: Field::Type, names: &["genre", "typeOfResource"] },
    Rule { field: Field::Extra, names: &["subTitle", "nonSort", "roleTerm", "partNumber", "partName"] },
    Rule { field: Field::LeftOut, names: &["recordInfo", "tableOfContents"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

pub(super) fn read(text: &str) -> Result<Draft<'_>, String> {
    walk(text, Mods::default()).map(Mods::finish)
}

/// The item that the current element describes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Item {
    #[default]
    Work,
    /// The journal or book that contains the work.
    Host,
    Series,
    /// Another work.
    Other,
}

#[derive(Default)]
struct Mods<'a> {
    draft: Draft<'a>,
    person: Person,
    /// The name as one part, for groups and programs that do not separate its parts.
    whole: String,
    /// The name as it is displayed, for names without parts.
    shown: String,
    role: String,
    is_group: bool,
    item: Item,
    /// `true` inside of a subject, which may be a person or a work.
    is_subject: bool,
    /// The attributes of the open title or number.
    kind: String,
    /// The article, title and subtitle of the work, and the number and name of its part, which are separate elements.
    title: [String; 5],
}

impl<'a> Mods<'a> {
    fn name(&mut self) {
        let shown = std::mem::take(&mut self.shown);
        let whole = Some(std::mem::take(&mut self.whole)).filter(|whole| !whole.is_empty()).unwrap_or(shown);
        let role = std::mem::take(&mut self.role).to_lowercase();
        let name = self.person.finish().or_else(|| {
            if self.is_group { tidy::line(&whole) } else { names::one(&names::without_additions(&whole)) }
        });
        if self.is_subject {
            name.into_iter().for_each(|name| self.draft.extra.push("subject", &name));
            return;
        }
        let field = match role.as_str() {
            "" | "author" | "aut" | "creator" | "cre" | "verfasser" | "verfasserin" | "autor" | "auteur" => {
                Field::Author
            }
            "editor" | "edt" => Field::Editor,
            _ => return,
        };
        let field = match self.item {
            Item::Work if field == Field::Author && self.is_group => Field::Group,
            Item::Work => field,
            Item::Host => Field::Editor,
            Item::Series | Item::Other => return,
        };
        if let Some(name) = name {
            self.draft.author(field, name);
        }
    }

    /// Completes a title.
    fn title(&mut self) {
        let [article, title, subtitle, number, part] = std::mem::take(&mut self.title);
        let mut title = [article, title].join(" ");
        let separator = if number.is_empty() { ". " } else { ", " };
        for (separator, text) in [(": ", subtitle), (". ", number), (separator, part)] {
            if !text.is_empty() {
                title = format!("{}{separator}{text}", title.trim_end());
            }
        }
        if self.is_subject {
            return self.draft.extra.push("subject", &title);
        }
        let named = match (self.item, self.kind.as_str()) {
            (Item::Work, "") => FieldName::new(Field::Title, "title", 0),
            (Item::Work, _) => FieldName::new(Field::Title, "title", 1),
            (Item::Host, "") => FieldName::new(Field::Journal, "host", 0),
            (Item::Host, _) => FieldName::new(Field::Journal, "host", 1),
            (Item::Series, _) => FieldName::new(Field::Series, "series", 0),
            (Item::Other, _) => return,
        };
        self.draft.add_decoded(named, Cow::Owned(title));
    }

    fn finish(self) -> Draft<'a> {
        self.draft
    }

    fn identifier(&mut self, attributes: &str, text: Cow<'a, str>) {
        let kind = attribute(attributes, "type").unwrap_or_default().to_lowercase();
        let field = match kind.as_str() {
            "doi" if self.item == Item::Work => Field::Doi,
            "pmid" | "pubmed" if self.item == Item::Work => Field::Pmid,
            "uri" | "url" if self.item == Item::Work => Field::Url,
            // Such a number identifies the journal or the book, not a single study.
            "issn" | "isbn" if self.item != Item::Other => return self.draft.extra.push(&kind, &text),
            _ if self.item == Item::Work => return self.draft.extra.push("identifier", &text),
            _ => return,
        };
        self.draft.add_decoded(FieldName::new(field, "identifier", 1), text);
    }
}

impl<'a> Visitor<'a> for Mods<'a> {
    const DRESS: &'static [&'static str] = &["i", "b", "sub", "sup"];
    const PARTS: &'static [&'static str] = &[];

    fn index(&self) -> &'static Index {
        &INDEX
    }

    fn value(&mut self, named: FieldName, attributes: &'a str, text: Cow<'a, str>) {
        match named.name {
            "titleInfo/title" => self.title[1] = text.into_owned(),
            "nonSort" => self.title[0] = text.into_owned(),
            "subTitle" => self.title[2] = tidy::line(&text).unwrap_or_default(),
            "partNumber" if self.item == Item::Work => self.title[3] = tidy::line(&text).unwrap_or_default(),
            "partName" if self.item == Item::Work => self.title[4] = tidy::line(&text).unwrap_or_default(),
            "name/displayForm" => self.shown = text.into_owned(),
            "roleTerm" => self.role = tidy::line(&text).unwrap_or_default(),
            "name/namePart" => match attribute(attributes, "type").as_deref() {
                Some("family") => self.person.add(Field::FamilyName, &text),
                Some("given") => self.person.add_given(&text),
                Some("termsOfAddress") => self.person.add(Field::NameSuffix, &text),
                Some("date") => {}
                // The unit of an organisation is a part of its own.
                _ if self.is_group && !self.whole.is_empty() => {
                    let end = self.whole.trim_end().trim_end_matches('.').len();
                    self.whole.truncate(end);
                    self.whole.push_str(". ");
                    self.whole.push_str(&text);
                }
                _ => self.whole = text.into_owned(),
            },
            "identifier" => self.identifier(attributes, text),
            "detail/number" => match self.kind.as_str() {
                "volume" => self.draft.add_decoded(named, text),
                "issue" | "number" => {
                    self.draft.add_decoded(FieldName::new(Field::Issue, "issue", 0), text);
                }
                "page" | "pages" => self.draft.add_decoded(FieldName::new(Field::Pages, "pages", 1), text),
                _ => self.draft.extra.push("number", &text),
            },
            "subject/topic" => self.draft.keyword(named.rank, &text),
            _ if self.item != Item::Other => self.draft.add_decoded(named, text),
            _ => {}
        }
    }

    fn other(&mut self, name: &'a str, text: &str) {
        if self.item != Item::Other {
            self.draft.extra.push(name, text);
        }
    }

    fn start(&mut self, name: &'a str, attributes: &'a str) {
        let kind = || attribute(attributes, "type").unwrap_or_default();
        match name {
            "relatedItem" => {
                self.item = match kind().as_ref() {
                    "host" => Item::Host,
                    "series" => Item::Series,
                    _ => Item::Other,
                };
            }
            "subject" => self.is_subject = true,
            "name" => self.is_group = matches!(kind().as_ref(), "corporate" | "conference"),
            "titleInfo" | "detail" => self.kind = kind().into_owned(),
            _ => {}
        }
    }

    fn end(&mut self, name: &'a str) {
        match name {
            "relatedItem" => self.item = Item::Work,
            "subject" => self.is_subject = false,
            "name" => self.name(),
            "titleInfo" => self.title(),
            _ => {}
        }
    }
}
