//! One `<record>` of EndNote XML.

use std::fmt::Write;

use biblib::EndNoteXmlParser;
use quick_xml::{
    Reader,
    escape::escape,
    events::{BytesRef, BytesStart, Event},
};

use super::{citation, fields::Fields, from_citation, names, values};
use crate::Reference;

/// Elements inside a record. Real ones have five levels.
const MOST_DEPTH: usize = 32;
/// Elements whose text is a value. `style` and unknown elements inside them add to their text.
const VALUES: [&str; 18] = [
    "ref-type",
    "author",
    "title",
    "secondary-title",
    "alt-title",
    "full-title",
    "abbr-1",
    "volume",
    "number",
    "issue",
    "pages",
    "year",
    "electronic-resource-num",
    "abstract",
    "keyword",
    "url",
    "accession-num",
    "remote-database-provider",
];
/// Elements whose contents are something else under the same names: editors, reprints, attached files.
const PASSED_OVER: [&str; 6] = [
    "secondary-authors",
    "tertiary-authors",
    "subsidiary-authors",
    "translated-authors",
    "pdf-urls",
    "orig-pub",
];

pub(super) fn read(text: &str) -> Result<Reference, String> {
    let fields = fields(text)?;
    let mut reference = if fields.first(&["title"]).is_some() {
        from_citation(&citation(&EndNoteXmlParser::new(), &canonical(&fields))?)
    } else {
        without_title(&fields)
    };
    reference.authors = fields.all(&["author"]).flat_map(names::of_value).collect();
    reference.url = fields.first(&["url"]).and_then(values::line);
    reference.pages = fields.first(&["pages"]).and_then(values::line);
    if fields.first(&["remote-database-provider"]).is_some_and(|provider| provider.contains("NLM")) {
        reference.pmid = fields.first(&["accession-num"]).and_then(values::pmid);
    }
    Ok(reference)
}

/// Without a title, `biblib` takes the journal for it, or refuses the record even if it has a DOI.
fn without_title(fields: &Fields) -> Reference {
    let some = |tags: &[&str]| fields.first(tags).and_then(values::line);
    Reference {
        year: fields.first(&["year"]).and_then(values::year),
        journal: journal(fields),
        volume: some(&["volume"]),
        issue: some(&["number", "issue"]),
        doi: doi(fields),
        r#abstract: fields.first(&["abstract"]).and_then(values::text),
        keywords: values::unique(keywords(fields)),
        r#type: some(&["ref-type"]),
        ..Reference::default()
    }
}

fn journal(fields: &Fields) -> Option<String> {
    fields.first(&["secondary-title", "full-title", "alt-title", "abbr-1"]).and_then(values::line)
}

fn doi(fields: &Fields) -> Option<String> {
    fields
        .all(&["electronic-resource-num"])
        .find_map(values::doi)
        .or_else(|| fields.all(&["url"]).find_map(values::doi_in_url))
}

/// Some libraries keep all keywords in one element, one per line.
fn keywords(fields: &Fields) -> impl Iterator<Item = &str> {
    fields.all(&["keyword"]).flat_map(|keywords| keywords.split(['\n', '\r', ';']))
}

/// The record as flat values, in document order.
fn fields(text: &str) -> Result<Fields, String> {
    let mut reader = Reader::from_str(text);
    let (mut fields, mut open, mut value) =
        (Fields::default(), Vec::<String>::new(), None::<(usize, String)>);
    loop {
        let event = reader.read_event().map_err(|error| format!("its XML is broken: {error}"))?;
        match event {
            Event::Start(start) => {
                let name = start.name().as_ref().to_owned();
                let passed_over = open.iter().any(|name| PASSED_OVER.contains(&name.as_str()));
                if value.is_none() && !passed_over && VALUES.contains(&name.as_str()) {
                    value = Some((open.len(), kind(&start)));
                }
                open.push(name);
                if open.len() > MOST_DEPTH {
                    return Err(format!("its XML is nested more than {MOST_DEPTH} levels deep"));
                }
            }
            Event::End(_) => {
                let name = open.pop().unwrap_or_default();
                if let Some((_, text)) = value.take_if(|(depth, _)| *depth == open.len()) {
                    fields.push(&name, &text);
                }
            }
            Event::Eof => break,
            other => {
                if let Some((_, text)) =
                    value.as_mut().filter(|_| !matches!(open.last().map(String::as_str), Some("ref-type")))
                {
                    append(text, &other);
                }
            }
        }
    }
    match open.last() {
        Some(name) => Err(format!("its XML is broken: <{name}> is not closed")),
        None => Ok(fields),
    }
}

/// The kind of work is the name of `<ref-type name="Journal Article">17</ref-type>`; elsewhere empty.
fn kind(start: &BytesStart<'_>) -> String {
    // Without the check for duplicates, which is quadratic.
    let mut attributes = start.attributes();
    let name = attributes.with_checks(false).flatten().find(|attribute| attribute.key.as_ref() == "name");
    match (start.name().as_ref(), name) {
        ("ref-type", Some(name)) => quick_xml::escape::unescape(&name.value)
            .map_or_else(|_| name.value.to_string(), std::borrow::Cow::into_owned),
        _ => String::new(),
    }
}

fn append(text: &mut String, event: &Event<'_>) {
    match event {
        Event::Text(more) => text.push_str(more),
        Event::CData(more) => text.push_str(more),
        Event::GeneralRef(reference) => text.push_str(&resolved(reference)),
        _ => {}
    }
}

/// Character references and the five predefined entities; any other is kept as it stands, since nothing here
/// defines it.
fn resolved(reference: &BytesRef<'_>) -> String {
    let name: &str = reference;
    match (reference.resolve_char_ref(), name) {
        (Ok(Some(c)), _) => c.to_string(),
        (_, "amp") => "&".to_owned(),
        (_, "lt") => "<".to_owned(),
        (_, "gt") => ">".to_owned(),
        (_, "quot") => "\"".to_owned(),
        (_, "apos") => "'".to_owned(),
        _ => format!("&{name};"),
    }
}

/// The record in the one shape that `biblib` reads without surprises: the title before the journal, which it
/// would take for the title otherwise; the year as digits; each element at most as often as it matters.
fn canonical(fields: &Fields) -> String {
    let mut text = String::from("<xml><records><record>");
    let mut element = |name: &str, value: Option<&str>| {
        if let Some(value) = value {
            // Writing to a string cannot fail.
            let _ = write!(text, "<{name}>{}</{name}>", escape(value));
        }
    };
    element("title", fields.first(&["title"]));
    element("secondary-title", journal(fields).as_deref());
    for (name, tags) in
        [("volume", ["volume"].as_slice()), ("number", &["number", "issue"]), ("abstract", &["abstract"])]
    {
        element(name, fields.first(tags));
    }
    let year = fields.first(&["year"]).and_then(values::year).map(|year| year.to_string());
    element("year", year.as_deref());
    element("electronic-resource-num", doi(fields).as_deref());
    for keyword in keywords(fields) {
        element("keyword", Some(keyword));
    }
    if let Some(kind) = fields.first(&["ref-type"]) {
        let _ = write!(text, "<ref-type name=\"{}\"></ref-type>", escape(kind));
    }
    text.push_str("</record></records></xml>");
    text
}
