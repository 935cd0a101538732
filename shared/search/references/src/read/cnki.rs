//! Reads a record of the text of CNKI, SinoMed, VIP or Ichushi. The fields have the same names as the columns of
//! tables.

use super::{
    citation,
    draft::Draft,
    entities,
    field::{Field, FieldName},
    labels, names,
};
use crate::{
    split::cnki::{bare_tag, is_bare, is_number, tag},
    table::header::column,
};

/// The types that Ichushi appends to a title: `亜鉛の効果(原著論文/症例報告)`.
const TYPES: [&str; 14] = [
    "原著論文",
    "会議録",
    "解説",
    "総説",
    "症例報告",
    "症例検討会",
    "コクランレビュー",
    "図説",
    "一般",
    "座談会",
    "講義",
    "レター",
    "比較研究",
    "Q&A",
];

/// Divides a title of Ichushi into the title and its type.
fn title_and_type(value: &str) -> (&str, &str) {
    let bracket = value.trim_end().strip_suffix(')').and_then(|rest| rest.rsplit_once('('));
    // Marks such as `特集` follow the type.
    let is_typed =
        |(_, types): &(&str, &str)| types.split('/').next().is_some_and(|first| TYPES.contains(&first));
    bracket.filter(is_typed).unwrap_or((value, ""))
}

pub(super) fn read(text: &str) -> Draft<'_> {
    let mut draft = Draft::default();
    let tag = if is_bare(text) { bare_tag } else { tag };
    for (name, value) in labels::values(text, tag) {
        // The last value of a record may end with the number of the next record.
        let value = match value.rsplit_once(['\n', '\r']) {
            Some((value, number)) if is_number(number.as_bytes()) => value.trim_end(),
            // CSSCI separates records by a line.
            Some((value, line)) if line.trim().bytes().all(|byte| byte == b'-') => value.trim_end(),
            _ => value,
        };
        match column(name, 0).named {
            Some(named) if name == "タイトル" => {
                let (title, kind) = title_and_type(value);
                draft.add(named, title);
                draft.add(FieldName::new(Field::Type, "タイトル", named.rank), kind);
            }
            // CSSCI repeats the first author.
            _ if name == "第一作者" && draft.people() > 0 => draft.extra.push(name, value),
            Some(named) if named.field == Field::Keyword && value.contains('/') && !value.contains(';') => {
                value.split('/').for_each(|keyword| draft.keyword(named.rank, keyword));
            }
            Some(named) if named.field == Field::Author => {
                draft.authors(Field::Author, names::split_cell(value));
            }
            Some(named)
                if named.field == Field::Citation
                    && let Some(found) = citation::numbers_of_year(&citation::narrow(value)) =>
            {
                citation::add_parts(&mut draft, named.name, &found);
            }
            // The number of pages has almost the name of the page numbers.
            _ if name == "PageCount-页数" => draft.extra.push(name, value),
            Some(named) => labels::add_lines(&mut draft, named, value),
            None => draft.extra.push(name, &entities::decode(value)),
        }
    }
    draft
}
