//! CSL-JSON: an array with one item per line.

use std::io;

use serde_json::{Map, Value, json};

use crate::clean::{keywords, line, paragraphs};
use crate::date::DateParts;
use crate::person::Name;
use crate::work_type::WorkType;
use crate::{Study, extra, identifiers};

pub(crate) fn push(study: &Study<'_>, is_first: bool, out: &mut Vec<u8>) -> io::Result<()> {
    out.extend_from_slice(if is_first { b"[\n" } else { b",\n" });
    Ok(serde_json::to_writer(out, &item(study))?)
}

pub(crate) fn finish(is_empty: bool, out: &mut Vec<u8>) {
    out.extend_from_slice(if is_empty { b"[]\n" } else { b"\n]\n" });
}

fn item(study: &Study<'_>) -> Value {
    let reference = study.reference;
    let mut item = Map::new();
    item.insert("id".to_owned(), json!(study.key));
    item.insert("type".to_owned(), json!(WorkType::from_reference(reference).csl()));
    let mut text = |name: &str, value: Option<&str>| {
        let value = line(value.unwrap_or_default());
        if !value.is_empty() {
            item.insert(name.to_owned(), json!(value));
        }
    };
    text("title", Some(&reference.title));
    text("container-title", reference.journal.as_deref());
    text("volume", reference.volume.as_deref());
    text("issue", reference.issue.as_deref());
    text("page", reference.pages.as_deref());
    text("DOI", reference.doi.as_deref());
    text("PMID", reference.pmid.as_deref());
    text("PMCID", reference.pmcid.as_deref());
    text("note", Some(&identifiers::notes_without_pmcid(reference).join("; ")));
    text("keyword", Some(&keywords(&reference.keywords)));
    text("URL", reference.url.as_deref());
    text("ISSN", extra::issn(reference).as_deref());
    text("language", extra::language(reference).as_deref());
    text("publisher", extra::publisher(reference).as_deref());
    text("source", study.source.database.as_deref());
    if let Some(text) = &reference.r#abstract {
        item.insert("abstract".to_owned(), json!(paragraphs(text)));
    }
    if !reference.authors.is_empty() {
        let names: Vec<Value> = reference.authors.iter().map(|author| name(author)).collect();
        item.insert("author".to_owned(), json!(names));
    }
    let date = DateParts::from_reference(reference);
    if let Some(year) = date.year {
        let more = [date.month, date.day].into_iter().flatten().map(i32::from);
        let parts: Vec<i32> = std::iter::once(year).chain(more).collect();
        item.insert("issued".to_owned(), json!({ "date-parts": [parts] }));
    }
    // CSL's extension point for fields that it does not define.
    let custom = json!({
        "study_key": study.key,
        "platform": study.source.platform,
        "searched_on": study.source.searched_on,
    });
    item.insert("custom".to_owned(), custom);
    Value::Object(item)
}

fn name(author: &str) -> Value {
    match Name::parse(author) {
        Name::Person { family, given, suffix: None } => json!({ "family": family, "given": given }),
        Name::Person { family, given, suffix } => {
            json!({ "family": family, "given": given, "suffix": suffix })
        }
        Name::Whole(name) => json!({ "literal": name }),
    }
}
