//! Splits texts of CNKI with names of fields in two languages, lines `Title-题名: …`, and of SinoMed, VIP and Ichushi,
//! lines `【标题】: …` or `标题：…`.
//!
//! A record begins at `SrcDatabase-来源库`, and ends at the next one. CNKI's reference manager begins it at `DataType`
//! instead. In SinoMed the number of the record precedes its title, unless the export lacks it. Behind a blank line,
//! other fields with a title are also a record. The number of a record may be on a line of its own, as in
//! Ichushi.

use super::{
    lines::{self, MARK_LENGTH, unmarked},
    tagged::{LineRole, LineRules, OpenRecord, TaggedSplitter},
};

const FIRST: &[u8] = b"SrcDatabase-";
/// The beginning of a record of CNKI's reference manager, before a digit.
const DATA_TYPE: &[u8] = b"DataType: ";
/// `来源库` in UTF-8 and GBK.
const SOURCE: [&[u8]; 2] = ["来源库".as_bytes(), b"\xc0\xb4\xd4\xb4\xbf\xe2"];
/// `【流水号】` in UTF-8 and GBK.
const NUMBER: [&[u8]; 2] = ["【流水号】".as_bytes(), b"\xa1\xbe\xc1\xf7\xcb\xae\xba\xc5\xa1\xbf"];
/// `【标题】`, `【来源篇名】` of CSSCI, and `【题名】` of VIP, also with blanks, in UTF-8 and GBK, and `【タイトル】` of Ichushi, in
/// UTF-8 and Shift_JIS.
const TITLE: [&[u8]; 14] = [
    "【来源篇名】".as_bytes(),
    b"\xa1\xbe\xc0\xb4\xd4\xb4\xc6\xaa\xc3\xfb\xa1\xbf",
    "【标题】".as_bytes(),
    b"\xa1\xbe\xb1\xea\xcc\xe2\xa1\xbf",
    "【题名】".as_bytes(),
    b"\xa1\xbe\xcc\xe2\xc3\xfb\xa1\xbf",
    "【题\u{3000}名】".as_bytes(),
    b"\xa1\xbe\xcc\xe2\xa1\xa1\xc3\xfb\xa1\xbf",
    "【题 名】".as_bytes(),
    b"\xa1\xbe\xcc\xe2 \xc3\xfb\xa1\xbf",
    "【题  名】".as_bytes(),
    b"\xa1\xbe\xcc\xe2  \xc3\xfb\xa1\xbf",
    "【タイトル】".as_bytes(),
    b"\x81\x79\x83\x5e\x83\x43\x83\x67\x83\x8b\x81\x7a",
];
/// `Title-题名` in UTF-8 and GBK.
const CNKI_TITLE: [&[u8]; 2] = ["Title-题名".as_bytes(), b"Title-\xcc\xe2\xc3\xfb"];
/// `【` in UTF-8, GBK and Shift_JIS.
const BRACKET: [&[u8]; 3] = ["【".as_bytes(), b"\xa1\xbe", b"\x81\x79"];
/// `流水号` in UTF-8 and GBK, which precedes a colon in texts without brackets.
const BARE_NUMBER: [&[u8]; 2] = ["流水号".as_bytes(), b"\xc1\xf7\xcb\xae\xba\xc5"];
/// `标题` and `题名` in UTF-8 and GBK.
const BARE_TITLE: [&[u8]; 4] =
    ["标题".as_bytes(), b"\xb1\xea\xcc\xe2", "题名".as_bytes(), b"\xcc\xe2\xc3\xfb"];
/// `作者`, `出处`, `摘要`, `期刊`, `刊名`, `英文标题`, `作者单位` in UTF-8 and GBK.
const BARE_FIELDS: [&[u8]; 14] = [
    "作者".as_bytes(),
    b"\xd7\xf7\xd5\xdf",
    "出处".as_bytes(),
    b"\xb3\xf6\xb4\xa6",
    "摘要".as_bytes(),
    b"\xd5\xaa\xd2\xaa",
    "期刊".as_bytes(),
    b"\xc6\xda\xbf\xaf",
    "刊名".as_bytes(),
    b"\xbf\xaf\xc3\xfb",
    "英文标题".as_bytes(),
    b"\xd3\xa2\xce\xc4\xb1\xea\xcc\xe2",
    "作者单位".as_bytes(),
    b"\xd7\xf7\xd5\xdf\xb5\xa5\xce\xbb",
];
/// The names of fields in texts without brackets. Abstracts have other words before colons: `方法：…`.
#[rustfmt::skip]
const BARE_NAMES: [&str; 38] = [
    "流水号", "标题", "题名", "英文标题", "中文标题", "作者", "英文作者", "第一作者", "通讯作者", "作者单位", "第一作者单位", "通讯作者单位", "国省市名", "摘要", "英文摘要", "出处", "出版年", "年代", "年", "期刊",
    "刊名", "期刊名称", "卷", "期", "页码", "起止页码", "关键词", "英文关键词", "主题词", "特征词", "分类号", "基金", "基金项目", "语种", "文献类型", "内部编号", "出版地", "参考文献",
];
/// A wide colon in UTF-8 and GBK.
const COLON: [&[u8]; 2] = ["：".as_bytes(), b"\xa3\xba"];
/// The marks behind the number of a record, in UTF-8 and GBK.
const NUMBER_MARKS: [&[u8]; 5] = [b".", "、".as_bytes(), b"\xa1\xa2", "．".as_bytes(), b"\xa3\xae"];
/// The number of lines at the beginning of a text without brackets that are inspected.
const MAX_LINES: usize = 40;
/// The minimum number of different names in these lines.
const MIN_NAMES: usize = 3;
/// The number of bytes that determine whether a line begins a record.
const TAG_PREFIX: usize = MARK_LENGTH + 22;
/// The maximum number of digits in the number of a record.
const MAX_DIGITS: usize = 12;
/// The maximum length of a field's name.
const MAX_NAME: usize = 60;

/// The name of a field, an English word, a hyphen and a Chinese word before a colon, and the offset of its value.
pub(crate) fn tag(line: &str) -> Option<(&str, usize)> {
    if let Some((name, value)) = line.strip_prefix('【').and_then(|rest| rest.split_once('】')) {
        let value = value.trim_start().trim_start_matches([':', '：']);
        return (!name.is_empty() && name.len() <= MAX_NAME).then_some((name, line.len() - value.len()));
    }
    if line.as_bytes().starts_with(DATA_TYPE) {
        return Some((&line[..8], DATA_TYPE.len()));
    }
    let end = line.find([':', '：'])?;
    let (name, rest) = line.split_at(end);
    let (english, chinese) = name.split_once('-')?;
    let is_name = !english.is_empty()
        && english.bytes().all(|byte| byte.is_ascii_alphabetic())
        && chinese.chars().next().is_some_and(|first| !first.is_ascii() || chinese == "DOI");
    let colon = rest.chars().next().map_or(0, char::len_utf8);
    (is_name && name.len() <= MAX_NAME).then_some((name, end + colon))
}

/// The name of a field without brackets, and the offset of its value: `标题：…`.
pub(crate) fn bare_tag(line: &str) -> Option<(&str, usize)> {
    let end = line.find([':', '：'])?;
    let (name, rest) = line.split_at(end);
    let name = name.trim_start_matches('\u{feff}').trim_end();
    let colon = rest.chars().next().map_or(0, char::len_utf8);
    (name.len() <= MAX_NAME && BARE_NAMES.contains(&name)).then_some((name, end + colon))
}

/// Returns `true` if the first field of a record has no brackets.
pub(crate) fn is_bare(text: &str) -> bool {
    let mut lines = lines::all(text).filter(|line| !line.trim().is_empty() && !is_number(line.as_bytes()));
    lines.next().is_some_and(|line| bare_tag(line).is_some())
}

/// Returns `true` for a text without brackets whose first lines have different names, among them a title.
pub(crate) fn begins_bare(text: &str) -> bool {
    if !is_bare(text) {
        return false;
    }
    let mut names: Vec<&str> =
        lines::all(text).take(MAX_LINES).filter_map(bare_tag).map(|(name, _)| name).collect();
    let has_title = names.contains(&"标题") || names.contains(&"题名");
    names.sort_unstable();
    names.dedup();
    has_title && names.len() >= MIN_NAMES
}

/// Returns `true` for the line of a number without brackets: `流水号：2020123456`.
pub(crate) fn is_bare_number(line: &[u8]) -> bool {
    value_of(unmarked(line), &BARE_NUMBER).is_some_and(|value| value.first().is_some_and(u8::is_ascii_digit))
}

/// The value of a line that begins with one of these names and a colon.
fn value_of<'a>(line: &'a [u8], names: &[&[u8]]) -> Option<&'a [u8]> {
    let rest = names.iter().find_map(|name| line.strip_prefix(*name))?.trim_ascii_start();
    let value =
        rest.strip_prefix(b":").or_else(|| COLON.iter().find_map(|colon| rest.strip_prefix(*colon)))?;
    Some(value.trim_ascii_start())
}

/// Returns `true` for the number of a record on a line of its own.
pub(crate) fn is_number(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    let digits = NUMBER_MARKS.iter().find_map(|mark| line.strip_suffix(*mark)).unwrap_or(line);
    (1..=MAX_DIGITS).contains(&digits.len()) && digits.iter().all(u8::is_ascii_digit)
}

/// Returns `true` if a text begins with the number of a record and a line that begins one.
pub(crate) fn begins_with_number(text: &str) -> bool {
    let mut lines = lines::all(text).filter(|line| !line.trim().is_empty()).map(str::as_bytes);
    lines.next().is_some_and(is_number) && lines.next().is_some_and(is_type_line)
}

/// Returns `true` for a line of CSSCI that begins a record. Lines about the program precede the first record.
pub(crate) fn is_of_cssci(line: &[u8]) -> bool {
    begins_with(unmarked(line), &TITLE[..2])
}

/// Returns `true` if a line begins a record.
pub(crate) fn is_type_line(line: &[u8]) -> bool {
    let line = unmarked(line);
    match kind(line) {
        // A table has the same names in one row.
        LineRole::UntypedStart => {
            let name = SOURCE.iter().find_map(|name| line.get(FIRST.len()..)?.strip_prefix(*name));
            name.is_none_or(|rest| !matches!(rest.first(), Some(b',' | b';' | b'\t' | b'"')))
        }
        LineRole::Title(_) => begins_with(line, &TITLE),
        role => matches!(role, LineRole::Type | LineRole::Number),
    }
}

fn begins_with(line: &[u8], names: &[&[u8]]) -> bool {
    names.iter().any(|name| line.starts_with(name))
}

/// Returns `true` for `Author-作者`, the beginning of a field of CNKI.
fn is_cnki_field(line: &[u8]) -> bool {
    let english =
        line.iter().take(TAG_PREFIX - MARK_LENGTH).take_while(|byte| byte.is_ascii_alphabetic()).count();
    english > 0 && matches!(line[english..], [b'-', 128..=255, ..])
}

fn kind(line: &[u8]) -> LineRole {
    let line = unmarked(line);
    let is_source = || line.strip_prefix(FIRST).is_some_and(|rest| begins_with(rest, &SOURCE));
    match line.first() {
        Some(b'D')
            if line.starts_with(DATA_TYPE) && line.get(DATA_TYPE.len()).is_some_and(u8::is_ascii_digit) =>
        {
            LineRole::Type
        }
        Some(b'S') if is_source() => LineRole::UntypedStart,
        Some(0xE3 | 0xA1 | 0x81) if begins_with(line, &NUMBER) => LineRole::Number,
        Some(0xE3 | 0xA1 | 0x81) if begins_with(line, &TITLE) => LineRole::Title(0),
        Some(0xE3 | 0xA1 | 0x81) if begins_with(line, &BRACKET) => LineRole::Field,
        Some(b'0'..=b'9') if line.len() < TAG_PREFIX - MARK_LENGTH && is_number(line) => LineRole::Field,
        Some(128..) if is_bare_number(line) => LineRole::EndAndStart,
        Some(128..) if value_of(line, &BARE_TITLE).is_some() => LineRole::Title(1),
        Some(128..) if value_of(line, &BARE_FIELDS).is_some() => LineRole::Field,
        Some(b'T') if begins_with(line, &CNKI_TITLE) => LineRole::Title(0),
        Some(first) if first.is_ascii_alphabetic() && is_cnki_field(line) => LineRole::Field,
        _ => LineRole::Other,
    }
}

/// Splits texts of CNKI and SinoMed.
pub(crate) fn splitter(limit: usize) -> TaggedSplitter {
    // The database and the title begin a record only if no other line has begun it.
    let begins_next = |open: &OpenRecord, kind| match kind {
        LineRole::Type | LineRole::Number | LineRole::EndAndStart => true,
        LineRole::UntypedStart => open.began != LineRole::Type,
        // Without brackets, a text may begin like a title.
        LineRole::Title(1) if open.blanks > 0 && open.title == Some(LineRole::Title(0)) => true,
        LineRole::Title(_) => open.began == kind,
        _ => false,
    };
    TaggedSplitter::new(LineRules { kind, prefix: TAG_PREFIX, begins_next }, limit)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::split::cut;

    #[test]
    fn cnki_records_begin_at_their_database() {
        let text = "SrcDatabase-来源库: 期刊\nTitle-题名: 一\n\nSrcDatabase-来源库: 期刊\nTitle-题名: 二\n";
        assert_eq!(cut(&mut splitter(1000), text).len(), 2);
        assert_eq!(tag("DOI-DOI: 10.5555/a"), Some(("DOI-DOI", 8)));
        assert_eq!(tag("x-y: z"), None);
        assert!(!is_type_line("SrcDatabase-来源库,Title-题名".as_bytes()));
        assert!(!is_type_line("Title-题名: 一".as_bytes()) && !is_type_line("【作者】a".as_bytes()));
        let text = "SrcDatabase-来源库: 期刊\nTitle-题名: 一\n\nAuthor-作者: a\nTitle-题名: 二\n";
        assert_eq!(cut(&mut splitter(1000), text).len(), 2);
    }

    #[test]
    fn database_after_type_begins_no_record() {
        let text = "DataType: 1\nTitle-题名: 一\nSrcDatabase-来源库: 期刊\nOrgan-机构: a\n\nDataType: 1\nTitle-题名: 二\n";
        assert_eq!(cut(&mut splitter(1000), text).len(), 2);
    }

    #[test]
    fn sinomed_records_begin_at_their_number_or_title() {
        let numbered = "【流水号】: 1\n【标题】: 一\n\n【流水号】: 2\n【标题】: 二\n";
        assert_eq!(cut(&mut splitter(1000), numbered).len(), 2);
        assert_eq!(cut(&mut splitter(1000), "【标题】：一\n【作者】：a\n\n【标题】：二\n").len(), 2);
        assert_eq!(cut(&mut splitter(1000), "【题名】一\n【作者】a\n\n【题名】二\n").len(), 2);
        assert_eq!(cut(&mut splitter(1000), "【题　名】一\n【作　者】a\n\n【题　名】二\n").len(), 2);
        let cnki = "SrcDatabase-来源库: 期刊\nTitle-题名: 三\n";
        assert_eq!(cut(&mut splitter(1000), &[numbered, cnki, numbered].concat()).len(), 5);
        assert_eq!(cut(&mut splitter(1000), "【题 名】一\n【作 者】a\n\n【题 名】二\n").len(), 2);
        assert_eq!(tag("【标题】：一"), Some(("标题", 15)));
    }

    #[test]
    fn number_line_belongs_to_following_record() {
        let text = "2019000001\n【タイトル】一\n【著者】a\n\n2019000002\n【タイトル】二\n";
        let records = ["2019000001\n【タイトル】一\n【著者】a", "2019000002\n【タイトル】二"];
        assert_eq!(cut(&mut splitter(1000), text), records);
        assert!(
            begins_with_number(text)
                && begins_with_number("1.\r\n【流水号】1")
                && !begins_with_number("1.\na")
        );
    }
}
