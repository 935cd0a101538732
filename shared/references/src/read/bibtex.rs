//! One BibTeX entry.

use std::{borrow::Cow, sync::LazyLock};

use super::{
    draft::Draft,
    entities,
    field::{Field, Index, Rule},
    latex, names, tidy,
};

/// BibTeX's fields and ours. The word after `@` is the type, under the name `@`.
pub(super) const RULES: &[Rule] = &[
    Rule { field: Field::Title, names: &["title", "shorttitle"] },
    Rule { field: Field::Book, names: &["booktitle"] },
    Rule { field: Field::Author, names: &["author"] },
    Rule { field: Field::Editor, names: &["editor", "translator"] },
    Rule { field: Field::Date, names: &["year", "date"] },
    Rule { field: Field::MonthDay, names: &["month"] },
    Rule { field: Field::Journal, names: &["journal", "journaltitle", "shortjournal", "series"] },
    Rule { field: Field::Volume, names: &["volume"] },
    Rule { field: Field::Issue, names: &["number", "issue"] },
    Rule { field: Field::Pages, names: &["pages", "eid", "article-number"] },
    Rule { field: Field::Doi, names: &["doi"] },
    Rule { field: Field::Pmid, names: &["pmid"] },
    Rule { field: Field::Abstract, names: &["abstract"] },
    Rule { field: Field::Keyword, names: &["keywords", "keyword", "author_keywords", "mesh_terms"] },
    Rule { field: Field::Url, names: &["url", "link"] },
    Rule { field: Field::Type, names: &["@", "type"] },
    Rule { field: Field::LeftOut, names: &["file"] },
];

static INDEX: LazyLock<Index> = LazyLock::new(|| Index::of(RULES));

pub(super) fn read(text: &str) -> Result<Draft<'_>, String> {
    let (kind, body) = text.trim_start_matches('@').split_once('{').ok_or("it has no opening brace")?;
    let body = body.strip_suffix('}').unwrap_or(body);
    let mut draft = Draft::default();
    if let Some(named) = INDEX.find("@") {
        draft.take(named, kind.trim());
    }
    let (key, mut rest) = body.split_once(',').unwrap_or((body, ""));
    draft.extra.push("key", key);
    while let Some((name, after)) = rest.split_once('=') {
        let name = name.trim_matches(|c: char| c.is_whitespace() || c == ',').to_ascii_lowercase();
        if name.contains(|c: char| c.is_whitespace() || matches!(c, '{' | '}' | '"')) {
            return Err(format!("a field before {:?} has no end", excerpt(after)));
        }
        let (text, after) = value(after);
        take(&mut draft, &name, &text);
        rest = after;
    }
    Ok(draft)
}

fn excerpt(text: &str) -> String {
    text.trim().chars().take(30).collect()
}

/// The value at the front, without its outer braces or quotes and with its parts joined, and what follows it.
fn value(text: &str) -> (Cow<'_, str>, &str) {
    let mut joined = Cow::Borrowed("");
    let mut rest = text;
    loop {
        let (part, after) = part(rest.trim_start());
        if joined.is_empty() {
            joined = Cow::Borrowed(part);
        } else {
            joined.to_mut().push_str(part);
        }
        match after.trim_start().strip_prefix('#') {
            Some(more) => rest = more,
            None => return (joined, after),
        }
    }
}

/// One part of a value: `{…}`, `"…"`, or a word.
fn part(text: &str) -> (&str, &str) {
    let quoted = text.starts_with('"');
    if !quoted && !text.starts_with('{') {
        let end = text.find([',', '#', '\n', '}']).unwrap_or(text.len());
        return (text[..end].trim(), &text[end..]);
    }
    let (mut depth, mut escaped) = (0_usize, false);
    for (at, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => {
                escaped = false;
                continue;
            }
            b'\\' => escaped = true,
            b'"' if quoted && depth == 0 => return (&text[1..at], &text[at + 1..]),
            b'}' if !quoted && depth == 0 => return (&text[1..at], &text[at + 1..]),
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (&text[1..], "")
}

fn take(draft: &mut Draft<'_>, name: &str, text: &str) {
    let Some(named) = INDEX.find(name) else { return draft.extra.push(name, &plain(text)) };
    match named.field {
        Field::Author | Field::Editor => {
            for name in people(text) {
                draft.author(named.field, name);
            }
        }
        Field::Keyword => {
            let keywords = plain(text);
            let separator =
                [';', '\n'].into_iter().find(|separator| keywords.contains(*separator)).unwrap_or(',');
            keywords.split(separator).for_each(|keyword| draft.keyword(named.rank, keyword));
        }
        // Underscores and tildes are literal in links.
        Field::Url | Field::Doi => {
            draft.take_decoded(named, Cow::Owned(text.replace("\\_", "_").replace("\\%", "%")));
        }
        Field::Abstract => {
            draft.take_decoded(named, Cow::Owned(tidy::line(&plain(text)).unwrap_or_default()));
        }
        _ => draft.take_decoded(named, Cow::Owned(plain(text))),
    }
}

fn plain(text: &str) -> String {
    latex::decode(&entities::decode(text))
}

/// The names, separated by ` and ` outside of braces.
fn people(text: &str) -> Vec<String> {
    let (mut names, mut start, mut depth) = (Vec::new(), 0, 0_usize);
    let words = text.split_inclusive(char::is_whitespace);
    let mut at = 0;
    for word in words {
        if depth == 0 && word.trim() == "and" {
            names.push(&text[start..at]);
            start = at + word.len();
        }
        depth += word.matches('{').count();
        depth = depth.saturating_sub(word.matches('}').count());
        at += word.len();
    }
    names.push(&text[start..]);
    names.into_iter().filter_map(person).collect()
}

/// `Family, Given`, `Family, Jr, Given`, `Given von Family`, or a group in braces.
fn person(name: &str) -> Option<String> {
    let name = name.trim();
    let inner = name.strip_prefix('{').and_then(|name| name.strip_suffix('}'));
    if let Some(group) = inner.filter(|inner| !inner.contains(['{', '}'])) {
        return tidy::line(&plain(group));
    }
    let name = tidy::line(&plain(name)).filter(|name| name != "others")?;
    let parts: Vec<&str> = name.split(',').map(str::trim).collect();
    match parts.as_slice() {
        [family, suffix, given] => Some(format!("{family}, {given}, {suffix}")),
        [whole] => {
            let (given, family) = family_last(whole);
            names::joined(family, given)
        }
        _ => names::joined(parts[0], &parts[1..].join(", ")),
    }
}

/// Splits before the first particle in lower case, or else before the last word.
fn family_last(name: &str) -> (&str, &str) {
    let particle = name
        .match_indices(' ')
        .map(|(at, _)| at)
        .find(|at| name[at + 1..].starts_with(char::is_lowercase) && name[at + 1..].contains(' '));
    match particle.or_else(|| name.rfind(' ')) {
        Some(at) => (&name[..at], &name[at + 1..]),
        None => ("", name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart_by_the_rules_of_bibtex() {
        let text = r#"Doe, Jane and John van der Berg and {Study Group and Friends} and Smith, Jr, J. and M{\"u}ller, J{\"o}rg and others"#;
        assert_eq!(
            people(text),
            ["Doe, Jane", "van der Berg, John", "Study Group and Friends", "Smith, J., Jr", "Müller, Jörg"]
        );
    }

    #[test]
    fn values_are_quoted_braced_or_bare_and_joined() {
        assert_eq!(value(r#" "a {"} b" # jan , c"#).0, "a {\"} bjan");
        assert_eq!(value("{a {b}}, c"), (Cow::Borrowed("a {b}"), ", c"));
        assert_eq!(value(" 2020\n}").0, "2020");
        assert_eq!(value("{a").0, "a");
    }
}
