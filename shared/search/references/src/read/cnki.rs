//! Reads a record of CNKI's text. The names of its fields are those of CNKI's tables.

use super::{draft::Draft, entities, field::Field, labels, names};
use crate::{split::cnki::tag, table::header::column};

pub(super) fn read(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    for (name, value) in labels::values(text, tag) {
        match column(name, 0).named {
            Some(named) if named.field == Field::Author => {
                draft.authors(Field::Author, names::split_cell(value));
            }
            Some(named) => labels::add_lines(&mut draft, named, value),
            None => draft.extra.push(name, &entities::decode(value)),
        }
    }
    draft
}
