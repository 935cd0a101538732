//! BibTeX in UTF-8: one entry per study, whose citation key is the study's key.
//!
//! Text that TeX would interpret as a command, a comment or a formula is escaped so that it prints unchanged. URLs and
//! DOIs are written without backslashes, as BibLaTeX and reference managers expect them.

use std::fmt::Write;

use references::work::spend;

use crate::clean::{keywords, line, list};
use crate::date::DateParts;
use crate::person::Name;
use crate::work_type::WorkType;
use crate::{Study, extra};

pub(crate) fn push(study: &Study<'_>, out: &mut Vec<u8>) {
    let reference = study.reference;
    let kind = WorkType::from_reference(reference);
    let mut entry = format!("@{}{{{}", kind.bibtex(), study.key);
    let mut text = |name: &str, value: Option<&str>| {
        let value = line(value.unwrap_or_default());
        if !value.is_empty() {
            field(&mut entry, name, &escaped(&value));
        }
    };
    text("title", Some(&reference.title));
    // Without a title, the book's title would become the entry's title.
    let in_book = matches!(kind, WorkType::Chapter | WorkType::Conference) && !reference.title.is_empty();
    text(if in_book { "booktitle" } else { "journal" }, reference.journal.as_deref());
    text("volume", reference.volume.as_deref());
    text("number", reference.issue.as_deref());
    text("pages", reference.pages.as_deref());
    text("pmid", reference.pmid.as_deref());
    text("pmcid", reference.pmcid.as_deref());
    text("embase_id", reference.embase_id.as_deref());
    text("wos_id", reference.wos_id.as_deref());
    text("accession", reference.accession.as_deref());
    text("trial_ids", Some(&list(&reference.trial_ids)));
    text("abstract", reference.r#abstract.as_deref());
    text("keywords", Some(&keywords(&reference.keywords)));
    text("issn", extra::issn(reference).as_deref());
    text("language", extra::language(reference).as_deref());
    text("publisher", extra::publisher(reference).as_deref());
    text("database", study.source.database.as_deref());
    text("platform", study.source.platform.as_deref());
    text("searched_on", study.source.searched_on.as_deref());
    let names: Vec<String> = reference.authors.iter().map(|author| name(author)).collect();
    if !names.is_empty() {
        field(&mut entry, "author", &names.join(" and "));
    }
    let date = DateParts::from_reference(reference);
    if let Some(year) = date.year {
        field(&mut entry, "year", &year.to_string());
    }
    if let (Some(month), Some(date)) = (date.month_name(), &reference.date) {
        // A month macro of BibTeX, which each style prints in its own language.
        let _ = write!(entry, ",\n  month = {}", month.to_lowercase());
        field(&mut entry, "date", date);
    }
    for (name, value) in [("doi", &reference.doi), ("url", &reference.url)] {
        if let Some(value) = value {
            field(&mut entry, name, &literal(&line(value)));
        }
    }
    entry.push_str("\n}\n\n");
    out.extend_from_slice(entry.as_bytes());
}

fn field(entry: &mut String, name: &str, value: &str) {
    // Writing to a string does not fail.
    let _ = write!(entry, ",\n  {name} = {{{value}}}");
}

/// Escapes text so that TeX prints it unchanged. BibTeX counts braces even after a backslash, so unbalanced braces are
/// written as commands, which fewer programs understand.
fn escaped(text: &str) -> String {
    spend(text.len());
    let mut out = String::with_capacity(text.len());
    let is_paired = is_paired(text);
    let mut before = ' ';
    for c in text.chars() {
        match c {
            '\\' => out.push_str("\\textbackslash{}"),
            '{' if !is_paired => out.push_str("\\textbraceleft{}"),
            '}' if !is_paired => out.push_str("\\textbraceright{}"),
            '{' | '}' | '$' | '&' | '#' | '_' | '%' => {
                out.push('\\');
                out.push(c);
            }
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            // Two in a row would form a ligature.
            '-' | '`' | '\'' if before == c => {
                out.push_str("{}");
                out.push(c);
            }
            c => out.push(c),
        }
        before = c;
    }
    out
}

/// Returns `true` if every brace is closed, and none is closed before it is opened.
fn is_paired(text: &str) -> bool {
    let depth = text.chars().try_fold(0_usize, |depth, c| match c {
        '{' => Some(depth + 1),
        '}' => depth.checked_sub(1),
        _ => Some(depth),
    });
    depth == Some(0)
}

/// Escapes a URL or DOI: only backslashes and braces, which would end or break the value.
fn literal(text: &str) -> String {
    text.replace('\\', "%5C").replace('{', "%7B").replace('}', "%7D")
}

/// Formats a name as `Family, Given`, `Family, Suffix, Given`, or a group in braces. Parts that contain the word `and`
/// are wrapped in braces.
fn name(author: &str) -> String {
    let part = |part: &str| {
        let text = escaped(part);
        let has_and = part.split(' ').any(|word| word.eq_ignore_ascii_case("and"));
        if has_and { format!("{{{text}}}") } else { text }
    };
    match Name::parse(author) {
        Name::Person { family, given, suffix: None } => format!("{}, {}", part(&family), part(&given)),
        Name::Person { family, given, suffix: Some(suffix) } => {
            format!("{}, {}, {}", part(&family), part(&suffix), part(&given))
        }
        Name::Whole(name) => format!("{{{}}}", escaped(&name)),
    }
}
