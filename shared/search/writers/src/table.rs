//! The columns of tables.

use references::Reference;

use crate::clean::{keywords, line, list, paragraphs};
use crate::date::DateParts;
use crate::{Study, extra, identifiers};

/// A column: its name, and the function that returns its cell for a study.
pub(crate) type Column = (&'static str, fn(&Study<'_>) -> String);

/// The columns of tables that people read. The readers of this project recognize their names.
pub(crate) const PLAIN: &[Column] = &[
    ("study_key", |study| study.key.to_string()),
    ("title", |study| text(Some(&study.reference.title))),
    ("authors", |study| list(&study.reference.authors)),
    ("year", |study| year(study.reference)),
    ("date", |study| text(study.reference.date.as_deref())),
    ("journal", |study| text(study.reference.journal.as_deref())),
    ("volume", |study| text(study.reference.volume.as_deref())),
    ("issue", |study| text(study.reference.issue.as_deref())),
    ("pages", |study| text(study.reference.pages.as_deref())),
    ("doi", |study| text(study.reference.doi.as_deref())),
    ("pmid", |study| text(study.reference.pmid.as_deref())),
    ("pmcid", |study| text(study.reference.pmcid.as_deref())),
    ("embase_id", |study| text(study.reference.embase_id.as_deref())),
    ("wos_id", |study| text(study.reference.wos_id.as_deref())),
    ("accession", |study| text(study.reference.accession.as_deref())),
    ("trial_ids", |study| list(&study.reference.trial_ids)),
    ("abstract", |study| long(study.reference)),
    ("keywords", |study| keywords(&study.reference.keywords)),
    ("url", |study| text(study.reference.url.as_deref())),
    ("type", |study| text(study.reference.r#type.as_deref())),
    ("issn", |study| extra::issn(study.reference).unwrap_or_default().into_owned()),
    ("language", |study| extra::language(study.reference).unwrap_or_default().into_owned()),
    ("publisher", |study| extra::publisher(study.reference).unwrap_or_default().into_owned()),
    ("database", |study| text(study.source.database.as_deref())),
    ("platform", |study| text(study.source.platform.as_deref())),
    ("searched_on", |study| text(study.source.searched_on.as_deref())),
    ("search_id", |study| study.search.to_string()),
    ("file", |study| text(Some(study.file))),
    ("record", |study| study.record.to_string()),
    ("duplicate_of", |study| study.duplicate_of.map(|key| key.to_string()).unwrap_or_default()),
];

/// Rayyan's columns in its order. Authors are separated by "and".
pub(crate) const RAYYAN: &[Column] = &[
    ("key", |study| study.key.to_string()),
    ("title", |study| text(Some(&study.reference.title))),
    ("year", |study| year(study.reference)),
    ("month", |study| {
        DateParts::from_reference(study.reference).month.map(|month| month.to_string()).unwrap_or_default()
    }),
    ("day", |study| {
        DateParts::from_reference(study.reference).day.map(|day| day.to_string()).unwrap_or_default()
    }),
    ("journal", |study| text(study.reference.journal.as_deref())),
    ("issn", |study| extra::issn(study.reference).unwrap_or_default().into_owned()),
    ("volume", |study| text(study.reference.volume.as_deref())),
    ("issue", |study| text(study.reference.issue.as_deref())),
    ("pages", |study| text(study.reference.pages.as_deref())),
    ("authors", |study| {
        let names: Vec<String> =
            study.reference.authors.iter().map(|author| line(author).into_owned()).collect();
        names.join(" and ")
    }),
    ("url", |study| text(study.reference.url.as_deref())),
    ("language", |study| extra::language(study.reference).unwrap_or_default().into_owned()),
    ("publisher", |study| extra::publisher(study.reference).unwrap_or_default().into_owned()),
    ("location", |_| String::new()),
    ("abstract", |study| long(study.reference)),
    ("notes", |study| sources(study)),
    ("doi", |study| text(study.reference.doi.as_deref())),
    ("keywords", |study| keywords(&study.reference.keywords)),
    ("pubmed_id", |study| text(study.reference.pmid.as_deref())),
    ("pmc_id", |study| text(study.reference.pmcid.as_deref())),
];

/// ASReview's columns, and additional ones that it preserves.
pub(crate) const ASREVIEW: &[Column] = &[
    ("study_key", |study| study.key.to_string()),
    ("title", |study| text(Some(&study.reference.title))),
    ("abstract", |study| long(study.reference)),
    ("keywords", |study| keywords(&study.reference.keywords)),
    ("authors", |study| list(&study.reference.authors)),
    ("year", |study| year(study.reference)),
    ("doi", |study| text(study.reference.doi.as_deref())),
    ("url", |study| text(study.reference.url.as_deref())),
    ("pmid", |study| text(study.reference.pmid.as_deref())),
    ("pmcid", |study| text(study.reference.pmcid.as_deref())),
    ("embase_id", |study| text(study.reference.embase_id.as_deref())),
    ("wos_id", |study| text(study.reference.wos_id.as_deref())),
    ("accession", |study| text(study.reference.accession.as_deref())),
    ("trial_ids", |study| list(&study.reference.trial_ids)),
    ("journal", |study| text(study.reference.journal.as_deref())),
    ("database", |study| text(study.source.database.as_deref())),
    ("platform", |study| text(study.source.platform.as_deref())),
    ("searched_on", |study| text(study.source.searched_on.as_deref())),
];

fn text(value: Option<&str>) -> String {
    line(value.unwrap_or_default()).into_owned()
}

fn year(reference: &Reference) -> String {
    reference.year.map(|year| year.to_string()).unwrap_or_default()
}

fn long(reference: &Reference) -> String {
    paragraphs(reference.r#abstract.as_deref().unwrap_or_default())
}

/// Describes a study's source in words, and the numbers for which Rayyan has no column.
fn sources(study: &Study<'_>) -> String {
    let source = study.source;
    let said =
        [("Database", &source.database), ("Platform", &source.platform), ("Searched", &source.searched_on)];
    let said = said.iter().filter_map(|(what, value)| Some(format!("{what}: {}", line(value.as_deref()?))));
    said.chain(identifiers::notes_without_pmcid(study.reference)).collect::<Vec<_>>().join("; ")
}
