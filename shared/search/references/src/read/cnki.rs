//! Reads a record of CNKI's or SinoMed's text. The names of its fields are those of tables.

use super::{draft::Draft, entities, field::Field, labels, names};
use crate::{split::cnki::tag, table::header::column};

pub(super) fn read(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    for (name, value) in labels::values(text, tag) {
        match column(name, 0).named {
            Some(named) if named.field == Field::Author => {
                draft.authors(Field::Author, names::split_cell(value));
            }
            // The number of pages has almost the name of the page numbers.
            _ if name == "PageCount-页数" => draft.extra.push(name, value),
            Some(named) => labels::add_lines(&mut draft, named, value),
            None => draft.extra.push(name, &entities::decode(value)),
        }
    }
    draft
}
