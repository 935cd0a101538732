//! Reads a RIS record.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    entities,
    field::{Field, Index, Rule},
    identifiers, labels, resolve,
};
use crate::{
    split::{
        lines,
        ris::{
            NO_BREAK_SPACE, Separator, element, is_blank, line_elements, loose_tag, tag, tag_before,
            tag_behind_end, type_code,
        },
    },
    work::spend,
};

/// The maximum number of authors with which an author is compared.
const MAX_COMPARED: usize = 100;
/// The name of text before the first tag.
const TEXT: &str = "text";

/// The tags and their fields. Some exports write `VO` for `VL`.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["TI", "T1", "ST", "CT"] },
    Rule { field: Field::Book, names: &["BT"] },
    Rule { field: Field::Author, names: &["AU", "A1"] },
    Rule { field: Field::Editor, names: &["A2", "ED", "A3", "A4"] },
    Rule { field: Field::Date, names: &["PY", "Y1", "DA", "YR"] },
    Rule { field: Field::Journal, names: &["JF", "JO", "SO", "T2", "JA", "J2", "J1", "T3"] },
    Rule { field: Field::Volume, names: &["VL", "VO"] },
    Rule { field: Field::Issue, names: &["IS", "M1"] },
    Rule { field: Field::FirstPage, names: &["SP", "C7", "PG"] },
    Rule { field: Field::LastPage, names: &["EP", "OP"] },
    Rule { field: Field::Doi, names: &["DO", "DI"] },
    Rule { field: Field::Pmid, names: &["C2", "C5"] },
    Rule { field: Field::Accession, names: &["AN"] },
    Rule { field: Field::Database, names: &["DB", "DP"] },
    Rule { field: Field::Abstract, names: &["AB", "N2"] },
    Rule { field: Field::Keyword, names: &["KW"] },
    Rule { field: Field::Url, names: &["UR", "LK", "L2", "L1", "L3", "L4"] },
    Rule { field: Field::Type, names: &["TY", "M3"] },
    Rule { field: Field::LeftOut, names: &["ER"] },
];

/// The work types after the codes of `TY`. Other values of `TY` are kept unchanged.
pub const KINDS: [(&str, &str); 63] = [
    ("ABST", "Abstract"),
    ("ADVS", "Audiovisual Material"),
    ("AGGR", "Aggregated Database"),
    ("ANCIENT", "Ancient Text"),
    ("ART", "Art Work"),
    ("BILL", "Bill/Resolution"),
    ("BLOG", "Blog"),
    ("BOOK", "Book"),
    ("CASE", "Case"),
    ("CHAP", "Book Chapter"),
    ("CHART", "Chart or Table"),
    ("CLSWK", "Classical Work"),
    ("COMP", "Computer Program"),
    ("CONF", "Conference Proceeding"),
    ("CPAPER", "Conference Paper"),
    ("CTLG", "Catalog"),
    ("DATA", "Data File"),
    ("DBASE", "Online Database"),
    ("DICT", "Dictionary"),
    ("EBOOK", "Electronic Book"),
    ("ECHAP", "Electronic Book Section"),
    ("EDBOOK", "Edited Book"),
    ("EJOUR", "Electronic Article"),
    ("ELEC", "Electronic Citation"),
    ("ENCYC", "Encyclopedia"),
    ("EQUA", "Equation"),
    ("FIGURE", "Figure"),
    ("GEN", "Generic"),
    ("GOVDOC", "Government Document"),
    ("GRANT", "Grant"),
    ("HEAR", "Hearing"),
    ("ICOMM", "Internet Communication"),
    ("INPR", "In Press"),
    ("INTV", "Interview"),
    ("JFULL", "Journal/Periodical (Full)"),
    ("JOUR", "Journal Article"),
    ("LEGAL", "Legal Rule or Regulation"),
    ("MANSCPT", "Manuscript"),
    ("MAP", "Map"),
    ("MGZN", "Magazine Article"),
    ("MPCT", "Motion Picture"),
    ("MULTI", "Online Multimedia"),
    ("MUSIC", "Music Score"),
    ("NEWS", "Newspaper"),
    ("PAMP", "Pamphlet"),
    ("PAT", "Patent"),
    ("PCOMM", "Personal Communication"),
    ("POD", "Podcast"),
    ("PRESS", "Press Release"),
    ("RPRT", "Report"),
    ("SER", "Serial Publication"),
    ("SLIDE", "Slide"),
    ("SOUND", "Sound Recording"),
    ("STAND", "Standard"),
    ("STAT", "Statute"),
    ("THES", "Thesis/Dissertation"),
    ("UNBILL", "Unenacted Bill/Resolution"),
    ("UNPB", "Unpublished Work"),
    ("VIDEO", "Video Recording"),
    // Other codes of the same types, which are read but not written.
    ("EJOU", "Electronic Article"),
    ("GRNT", "Grant"),
    ("UNPD", "Unpublished Work"),
    ("WEB", "Electronic Citation"),
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::new(RULES));

/// The text of a record with line breaks in place of the elements of a web page, if these separate its lines.
pub(super) fn without_elements(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let first = bytes.trim_ascii_start();
    let is_page = match type_code(first) {
        Some((_, is_ended)) => is_ended,
        None => !text.contains(['\n', '\r']),
    };
    if !is_page
        || !spend(text.len())
        || !memchr::memchr_iter(b'<', bytes).any(|at| line_elements(&bytes[at..]).is_some())
    {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = 0;
    for at in memchr::memchr_iter(b'<', bytes) {
        if let Some(length) = element(&bytes[at..]) {
            out.push_str(&text[rest..at]);
            out.push('\n');
            rest = at + length;
        }
    }
    out.push_str(&text[rest..]);
    Cow::Owned(out.replace(NO_BREAK_SPACE, " "))
}

/// Removes the quotation marks around lines, which a spreadsheet adds.
pub(super) fn unquoted(text: &str) -> Cow<'_, str> {
    labels::unquoted(text, |line| tag(line.as_bytes()).is_some())
}

pub(super) fn read(text: &str) -> Draft<'_> {
    read_tagged(text, |line| field_tag(line.as_bytes()))
}

/// The tag of a line, and the offset of its value. `ER` with a value is text: `ER - estrogen receptor`. The tag of another
/// record may follow it.
fn field_tag(line: &[u8]) -> Option<([u8; 2], usize)> {
    let (name, value) = tag(line)?;
    if &name != b"ER" || is_blank(&line[value..]) { Some((name, value)) } else { tag_behind_end(line) }
}

/// Reads a record with other blanks and dashes. Its first line shows whether tags end in a dash or a colon.
pub(super) fn read_loose(text: &str) -> Draft<'_> {
    match loose_tag(text.trim_start().as_bytes()) {
        Some((_, Separator::Colon, _)) => read_tagged(text, |line| any_tag(line, Separator::Colon)),
        _ => read_tagged(text, |line| any_tag(line, Separator::Dash)),
    }
}

fn any_tag(line: &str, separator: Separator) -> Option<([u8; 2], usize)> {
    field_tag(line.as_bytes()).or_else(|| tag_before(line.as_bytes(), separator))
}

fn read_tagged<'a>(text: &'a str, label: labels::Label<'a, [u8; 2]>) -> Draft<'a> {
    let mut draft = Draft::default();
    let (mut short, mut is_pubmed) = (None, false);
    let (mut code, mut is_ovid, mut is_article) = (None, false, false);
    let (text, end) = without_end(text);
    for (name, value) in [(TEXT, leading_text(text, label)), ("ER", end)] {
        if value.contains(char::is_alphanumeric) && !value.trim_start().starts_with('<') {
            draft.extra.push(name, &entities::decode(value));
        }
    }
    let mut known = KnownTags::default();
    let mut people: Vec<([u8; 2], &str)> = Vec::new();
    for (name, value) in labels::values(text, |line| label(line).filter(|(name, _)| known.has(*name))) {
        match &name {
            // Some programs write all authors under both tags.
            b"AU" | b"A1" if people.iter().any(|(tag, known)| *tag != name && *known == value) => {}
            b"AU" | b"A1" => {
                if people.len() < MAX_COMPARED {
                    people.push((name, value));
                }
                add(&mut draft, name, value);
            }
            b"C2" | b"C5" if identifiers::running_number(value) => short = short.or(Some((name, value))),
            b"DB" | b"DP" => {
                is_pubmed |= resolve::is_pubmed(value);
                is_ovid |= value.starts_with("Ovid");
                add(&mut draft, name, value);
            }
            b"M1" if !(is_article && is_issue(value)) => draft.extra.push("M1", &entities::decode(value)),
            b"PG" if !(is_article && are_pages(value)) => draft.extra.push("PG", &entities::decode(value)),
            // RefWorks writes the last page there, and others the first publication.
            b"OP" if !is_page(value) => draft.extra.push("OP", &entities::decode(value)),
            b"TY" => {
                is_article |= ARTICLES.iter().any(|code| code.eq_ignore_ascii_case(value));
                add(&mut draft, name, value);
            }
            b"IS" if code.is_none() && is_journal_code(value) => code = Some(value),
            _ => add(&mut draft, name, value),
        }
    }
    match code {
        Some(value) if is_ovid => draft.extra.push("IS", value),
        Some(value) => add(&mut draft, *b"IS", value),
        None => {}
    }
    match short {
        Some((name, value)) if is_pubmed => add(&mut draft, name, value),
        Some((name, value)) => draft.extra.push(str::from_utf8(&name).unwrap_or_default(), value),
        None => {}
    }
    draft
}

/// The codes of articles, whose number under `M1` is an issue, and whose `PG` has their pages. Other works have the number
/// of a report or of their pages there.
const ARTICLES: [&str; 9] = ["JOUR", "EJOUR", "EJOU", "JFULL", "MGZN", "NEWS", "ABST", "INPR", "ARTICLE"];

/// Returns `true` for `3`, `3-4`, `Suppl 1` and `12 S2`. Databases also write codes, numbers of records and cited works
/// under `M1`.
fn is_issue(value: &str) -> bool {
    const MAX_LENGTH: usize = 24;
    const MAX_DIGITS: usize = 3;
    const WORDS: [&str; 7] = ["s", "suppl", "supplement", "pt", "part", "special", "issue"];
    let value = value.trim();
    let is_separator = |c: char| matches!(c, ' ' | '.' | '-' | '–' | '/' | ',' | '(' | ')');
    let is_part = |part: &str| {
        let digits = part.trim_start_matches(|c: char| c.is_ascii_alphabetic());
        let word = &part[..part.len() - digits.len()];
        (word.is_empty() || WORDS.iter().any(|known| known.eq_ignore_ascii_case(word)))
            && digits.len() <= MAX_DIGITS
            && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    value.len() <= MAX_LENGTH
        && value.contains(|c: char| c.is_ascii_digit())
        && value.split(is_separator).all(is_part)
}

/// Returns `true` for `19` and `e19`.
fn is_page(value: &str) -> bool {
    const MAX_LENGTH: usize = 8;
    value.len() <= MAX_LENGTH
        && value.bytes().all(|byte| byte.is_ascii_alphanumeric())
        && value.bytes().any(|byte| byte.is_ascii_digit())
}

/// Returns `true` for pages, and `false` for their number: `8 p.`
fn are_pages(value: &str) -> bool {
    let value = value.trim_end();
    value.contains(|c: char| c.is_ascii_digit())
        && ![" p", " p.", " pp", " pp.", " pages", " S."].iter().any(|end| value.ends_with(end))
}

/// The tags so far, by which a `TY` that begins a line of an abstract is recognized. A record has one behind an abstract
/// only as text, because another record begins there otherwise.
#[derive(Debug, Default)]
struct KnownTags {
    has_type: bool,
    is_in_abstract: bool,
}

impl KnownTags {
    /// Adds a tag, unless it is text.
    fn has(&mut self, name: [u8; 2]) -> bool {
        let is_type = &name == b"TY";
        if is_type && self.has_type && self.is_in_abstract {
            return false;
        }
        self.has_type |= is_type;
        self.is_in_abstract = matches!(&name, b"AB" | b"N2");
        true
    }
}

/// Returns `true` for the codes of the NLM for a journal, which Ovid writes in place of an issue: `abc, 7805975`.
fn is_journal_code(value: &str) -> bool {
    let is_number =
        |part: &str| (7..=9).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let is_code = |part: &str| part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    match value.split_once(", ") {
        Some((first, second)) => {
            (is_code(first) && is_number(second)) || (is_number(first) && is_code(second))
        }
        None => is_number(value),
    }
}

/// The text before the first tag.
fn leading_text<'a>(text: &'a str, label: labels::Label<'a, [u8; 2]>) -> &'a str {
    let first = lines::spans(text).find(|line| label(&text[line.clone()]).is_some());
    first.map_or("", |line| &text[..line.start])
}

/// Splits off the last line if it is `ER` without its dash, or with text, and the number of the next record after it.
/// The line may also be a keyword or other text. It therefore ends a record only if nothing else follows. Returns the
/// text before it, and its own.
fn without_end(text: &str) -> (&str, &str) {
    let mut end = text.len();
    for line in text.rsplit(['\n', '\r']) {
        let start = end - line.len();
        match line.trim().trim_end_matches(['-', '–', '—', ' ']) {
            "ER" => return (&text[..start], ""),
            number if number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') => {}
            _ => match tag(line.as_bytes()) {
                Some((name, value)) if &name == b"ER" && tag_behind_end(line.as_bytes()).is_none() => {
                    return (&text[..start], &line[value..]);
                }
                _ => return (text, ""),
            },
        }
        end = start.saturating_sub(1);
    }
    (text, "")
}

/// Adds a value. Under tags that apply to many lines, each line is a value. Elsewhere a line without a tag continues
/// the value before it.
fn add<'a>(draft: &mut Draft<'a>, name: [u8; 2], value: &'a str) {
    let Some(named) = INDEX.find(name) else {
        // A tag consists of a letter, and a letter or digit.
        return draft.extra.push(str::from_utf8(&name).unwrap_or_default(), &entities::decode(value));
    };
    match named.field {
        Field::Type if named.rank == 0 => draft.add_decoded(named, Cow::Borrowed(kind(value))),
        // The number of an article. In records of electronic books, this is the number in PubMed Central.
        Field::FirstPage if named.rank > 0 && value.trim_ascii_start().starts_with("PMC") => {
            draft.extra.push(named.tag, value);
        }
        _ => labels::add_lines(draft, named, value),
    }
}

/// The work type of a code, in upper or lower case.
fn kind(value: &str) -> &str {
    KINDS.iter().find(|(code, _)| code.eq_ignore_ascii_case(value)).map_or(value, |(_, kind)| kind)
}
