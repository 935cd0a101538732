//! EndNote XML in UTF-8: one `<record>` per study, on one line.
//!
//! Text is escaped, and `line` drops the characters that XML 1.0 forbids.

use std::fmt::Write;

use references::work::spend;

use crate::clean::{line, paragraphs};
use crate::date::DateParts;
use crate::work_type::WorkType;
use crate::{Study, extra, identifiers};

pub(crate) const BEGIN: &[u8] = b"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<xml><records>\n";
pub(crate) const END: &[u8] = b"</records></xml>\n";

pub(crate) fn push(study: &Study<'_>, out: &mut Vec<u8>) {
    let reference = study.reference;
    let mut record = Record(String::from("<record>"));
    let (name, number) = WorkType::from_reference(reference).endnote();
    record.0.push_str(&format!("<ref-type name=\"{name}\">{number}</ref-type>"));
    record.within("contributors", |record| {
        record.within("authors", |record| {
            for author in &reference.authors {
                // A comma at the end marks the name of a group. Programs treat a semicolon as the end of a name.
                let name = author.replace(';', ",");
                let end = if name.contains(',') { "" } else { "," };
                record.text("author", &format!("{name}{end}"));
            }
        });
    });
    record.within("titles", |record| {
        record.text("title", &reference.title);
        record.optional("secondary-title", reference.journal.as_deref());
    });
    record.optional("pages", reference.pages.as_deref());
    record.optional("volume", reference.volume.as_deref());
    record.optional("number", reference.issue.as_deref());
    record.within("keywords", |record| {
        for keyword in &reference.keywords {
            record.text("keyword", &keyword.replace(';', ","));
        }
    });
    let date = DateParts::from_reference(reference);
    record.within("dates", |record| {
        record.optional("year", date.year.map(|year| year.to_string()).as_deref());
        if let Some(month) = date.month_name() {
            let day = date.day.map(|day| format!(" {day}")).unwrap_or_default();
            record.within("pub-dates", |record| record.text("date", &format!("{month}{day}")));
        }
    });
    record.optional("publisher", extra::publisher(reference).as_deref());
    record.optional("isbn", extra::issn(reference).as_deref());
    let is_pubmed = study.source.is_pubmed();
    record.optional("accession-num", reference.pmid.as_deref().filter(|_| is_pubmed));
    record.optional("electronic-resource-num", reference.doi.as_deref());
    record.paragraphs("abstract", reference.r#abstract.as_deref().unwrap_or_default());
    let pmid = reference.pmid.as_ref().filter(|_| !is_pubmed).map(|pmid| format!("PMID: {pmid}"));
    let notes: Vec<String> = pmid.into_iter().chain(identifiers::notes_without_pmcid(reference)).collect();
    record.text("notes", &notes.join("; "));
    record.within("urls", |record| {
        record.within("related-urls", |record| record.optional("url", reference.url.as_deref()));
    });
    // The field in which EndNote keeps this number.
    record.optional("custom2", reference.pmcid.as_deref());
    record.text("label", &study.key.to_string());
    record.optional("language", extra::language(reference).as_deref());
    record.optional("remote-database-name", study.source.database.as_deref());
    record.optional("remote-database-provider", study.source.platform.as_deref());
    record.0.push_str("</record>\n");
    out.extend_from_slice(record.0.as_bytes());
}

/// The text of a record.
struct Record(String);

impl Record {
    /// Writes an element around others, unless they are empty.
    fn within(&mut self, name: &str, write: impl FnOnce(&mut Self)) {
        let start = self.0.len();
        // Writing to a string does not fail.
        let _ = write!(self.0, "<{name}>");
        let inner = self.0.len();
        write(self);
        if self.0.len() == inner {
            self.0.truncate(start);
        } else {
            let _ = write!(self.0, "</{name}>");
        }
    }

    fn optional(&mut self, name: &str, value: Option<&str>) {
        self.text(name, value.unwrap_or_default());
    }

    /// Writes an element with a value on one line, unless the value is empty.
    fn text(&mut self, name: &str, value: &str) {
        self.escaped(name, &line(value));
    }

    fn paragraphs(&mut self, name: &str, value: &str) {
        self.escaped(name, &paragraphs(value));
    }

    fn escaped(&mut self, name: &str, value: &str) {
        spend(value.len());
        if value.is_empty() {
            return;
        }
        let _ = write!(self.0, "<{name}>");
        for c in value.chars() {
            match c {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                c => self.0.push(c),
            }
        }
        let _ = write!(self.0, "</{name}>");
    }
}
