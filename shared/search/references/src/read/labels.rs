//! Values under labels that begin lines, for formats whose labels differ and whose values do not.

use super::{
    draft::Draft,
    entities,
    field::{Field, Index, Named},
    names,
    ris::on_one_line,
    tidy,
};
use crate::{split::lines, work::spend};

/// The label at the beginning of a line, and where its value begins.
pub(super) type Label<'a, Name> = fn(&'a str) -> Option<(Name, usize)>;

/// The labels of a record and their values, each of which goes on to the next line with a label.
pub(super) fn values<'a, Name: Copy>(
    text: &'a str,
    label: Label<'a, Name>,
) -> impl Iterator<Item = (Name, &'a str)> {
    let text = text.trim_start_matches('\u{feff}');
    spend(text.len());
    let mut lines = lines::spans(text);
    let mut open: Option<(Name, usize)> = None;
    // Where the last line ended: what follows it up to the next one is no part of a value.
    let mut end = 0;
    std::iter::from_fn(move || {
        for line in lines.by_ref() {
            let before = std::mem::replace(&mut end, line.end);
            if let Some((name, value)) = label(&text[line.clone()])
                && let Some((name, start)) = open.replace((name, line.start + value))
            {
                return Some((name, tidy::trim(&text[start..before])));
            }
        }
        open.take().map(|(name, start)| (name, tidy::trim(&text[start..])))
    })
}

/// A record that is nothing but such values.
pub(super) fn read<'a>(text: &'a str, label: Label<'a, &'a str>, index: &Index) -> Draft<'a> {
    let mut draft = Draft::default();
    for (name, value) in values(text, label) {
        take(&mut draft, index, name, value);
    }
    draft
}

/// Takes a value.
pub(super) fn take<'a>(draft: &mut Draft<'a>, index: &Index, name: &'a str, value: &'a str) {
    let Some(named) = index.find(name) else { return draft.extra.push(name, &entities::decode(value)) };
    match named.field {
        // What the journal, year, volume, issue and pages are, in one line.
        Field::Citation => {
            let citation = tidy::line(&entities::decode(value)).unwrap_or_default();
            if !super::citation::take(draft, named.name, &citation) {
                draft.extra.push(name, &citation);
            }
        }
        _ => take_lines(draft, named, value),
    }
}

/// Takes a value of a tag: of people and keywords each line is one, or several between semicolons, and a wrapped abstract is
/// one paragraph.
pub(super) fn take_lines<'a>(draft: &mut Draft<'a>, named: Named, value: &'a str) {
    match named.field {
        Field::Author | Field::Editor => {
            for line in lines::all(value) {
                // A character reference ends in a semicolon too: "M&uuml;ller".
                for name in names::of_decoded(&entities::decode(line)) {
                    draft.author(named.field, name);
                }
            }
        }
        Field::Keyword => keywords(draft, named, &entities::decode(value)),
        Field::Abstract => draft.take_decoded(named, on_one_line(value)),
        _ => draft.take(named, value),
    }
}

/// Takes keywords between line breaks and semicolons.
pub(super) fn keywords(draft: &mut Draft<'_>, named: Named, value: &str) {
    let ends = memchr::memchr3_iter(b'\n', b'\r', b';', value.as_bytes());
    for keyword in lines::between(ends, value.len()) {
        draft.keyword(named.rank, &value[keyword]);
    }
}
