//! Splits lists of names in scripts without capital letters or without blanks.

use super::{groups::is_organisation_without_alphabet, shapes::is_ideographic};
use crate::work::spend;

/// Splits a list of names in a script without capitals, such as Arabic or Thai, if each has at least two words.
pub(super) fn without_case(value: &str) -> Option<Vec<String>> {
    let is_caseless =
        |c: char| c.is_alphabetic() && !c.is_uppercase() && !c.is_lowercase() && !is_ideographic(c);
    if !value.contains([',', '،']) || !spend(value.len()) {
        return None;
    }
    let names: Vec<&str> = value.split([',', '،']).map(str::trim).filter(|name| !name.is_empty()).collect();
    let is_whole = |name: &&str| {
        name.contains(' ')
            && name.chars().all(|c| is_caseless(c) || !(c.is_alphanumeric() || c.is_ascii()) || c == ' ')
    };
    (names.len() > 1 && names.iter().all(is_whole)).then(|| names.into_iter().map(str::to_owned).collect())
}

/// Splits a list of Chinese, Japanese or Korean names. A single plain comma may separate family and given name.
pub(super) fn without_blanks(value: &str, is_marked: bool) -> Option<Vec<String>> {
    if !spend(value.len()) {
        return None;
    }
    let has_own_separator = value.contains(['，', '、', '；', '/', '／']);
    let mut parts: Vec<&str> = value
        .split(['，', '、', '；', '/', '／', ','])
        .map(|part| without_affiliation(part.trim()))
        .filter(|part| !part.is_empty())
        .collect();
    // `王伟，李娜等`: "and others".
    if let Some(last) = parts.last_mut()
        && let Some(name) = last.strip_suffix("等人").or(last.strip_suffix('等'))
        && name.chars().count() > 1
    {
        *last = name;
    }
    let is_name = |part: &&str| {
        let letters = part.chars().filter(|c| !matches!(c, ' ' | '\u{3000}' | '·' | '・'));
        letters.clone().all(is_ideographic)
            && ((2..=12).contains(&letters.count()) || is_organisation_without_alphabet(part))
    };
    // The part itself contains a family name and a given name.
    let is_whole = |part: &&str| {
        part.contains([' ', '\u{3000}'])
            || (part.chars().count() > 2 && part.chars().all(is_hangul))
            || is_organisation_without_alphabet(part)
    };
    let is_plain = !value.contains(['(', '（', '[']);
    let needed = if has_own_separator
        || is_marked
        || !is_plain
        || parts.iter().all(is_whole)
        || are_chinese(&parts)
        || parts.first().is_some_and(|part| part.chars().count() > 3)
    {
        1
    } else {
        2
    };
    if let Some(names) = between_blanks(&parts) {
        return Some(names);
    }
    let is_list = parts.len() > needed && parts.iter().all(is_name);
    is_list.then(|| parts.into_iter().map(str::to_owned).collect())
}

/// The most frequent family names of China.
const FAMILIES: &str = "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾肖田董潘袁蔡蒋余于杜叶程魏苏吕丁任卢姚沈钟姜崔谭\
陆范汪廖石金韦贾夏付方邹熊白孟秦邱侯江尹薛闫段雷龙黎史陶贺毛郝顾龚邵万覃武钱戴严莫孔向常汤張劉陳楊黃趙吳孫馬羅鄭謝許韓馮鄧蕭\
蔣餘葉蘇呂盧鍾譚陸賈鄒龍賀顧龔萬錢嚴湯";

/// Returns `true` for two or three characters that begin with a frequent family name of China.
fn is_chinese(name: &str) -> bool {
    (2..=3).contains(&name.chars().count())
        && name.chars().next().is_some_and(|first| FAMILIES.contains(first))
        && !name.ends_with(['郎', '介', '助', '子', '雄', '夫'])
}

/// Returns `true` for two Chinese names, at least one with a given name of two characters. Japanese family and given
/// names are shorter, or begin with other characters.
fn are_chinese(names: &[&str]) -> bool {
    names.iter().all(|name| is_chinese(name)) && names.iter().any(|name| name.chars().count() > 2)
}

/// Splits at least three Chinese names that only blanks separate.
fn between_blanks(parts: &[&str]) -> Option<Vec<String>> {
    let [part] = parts else { return None };
    let names: Vec<&str> = part.split([' ', '\u{3000}']).filter(|name| !name.is_empty()).collect();
    let is_list = names.len() > 2 && names.iter().all(|name| is_chinese(name));
    is_list.then(|| names.into_iter().map(str::to_owned).collect())
}

fn is_hangul(c: char) -> bool {
    matches!(c, '\u{ac00}'..='\u{d7a3}')
}

/// Removes the affiliation in brackets after a name without letters of the alphabet.
fn without_affiliation(name: &str) -> &str {
    let bare = name.split(['(', '（']).next().unwrap_or_default();
    let is_named = bare.len() < name.len() && name.ends_with([')', '）']) && bare.chars().all(is_ideographic);
    if is_named { bare } else { name }
}
