//! The entries of a BibTeX file that later ones may refer to with `crossref`.
//!
//! What stands behind an entry is at hand when it is read; what stood before it is gone by then. So the splitter keeps the
//! latest entries of those kinds that have parts, up to a fixed size, and they are in every checkpoint. Which are kept depends
//! on the entries alone, and not on how the file was cut or where reading went on.

use std::{collections::VecDeque, sync::LazyLock};

use memchr::memmem::Finder;

/// Most bytes of entries that are kept. Proceedings have about 300 each; a checkpoint has room for as many definitions
/// and more.
const MOST_KEPT: usize = 64 * 1024;
/// Longest entry that is taken over from.
pub(crate) const MOST_ENTRY: usize = 16 * 1024;
/// A book in a series of books may refer to that.
pub(crate) const MOST_PARENTS: usize = 3;
/// Kinds of which databases write nothing else, and that have no parts.
const PARTS: [&[u8]; 9] = [
    b"article",
    b"inproceedings",
    b"conference",
    b"incollection",
    b"phdthesis",
    b"mastersthesis",
    b"thesis",
    b"techreport",
    b"unpublished",
];

/// The entries kept, in the order of the file.
#[derive(Debug, Default)]
pub(super) struct Wholes {
    entries: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Wholes {
    /// Keeps an entry if it may have parts.
    pub(super) fn keep(&mut self, entry: &[u8]) {
        let kind = kind(entry);
        if entry.len() > MOST_ENTRY || PARTS.iter().any(|part| part.eq_ignore_ascii_case(kind)) {
            return;
        }
        self.bytes += entry.len();
        self.entries.push_back(entry.to_vec());
        while self.bytes > MOST_KEPT {
            self.bytes -= self.entries.pop_front().map_or(self.bytes, |oldest| oldest.len());
        }
    }

    /// The entries that this one refers to, one after the other.
    pub(super) fn of(&self, entry: &[u8]) -> Vec<u8> {
        let mut found = Vec::new();
        let mut wanted = crossref(entry);
        for _ in 0..MOST_PARENTS {
            let Some(whole) = wanted.and_then(|key| self.find(key)) else { break };
            found.extend_from_slice(whole);
            found.push(b'\n');
            wanted = crossref(whole);
        }
        found
    }

    fn find(&self, wanted: &[u8]) -> Option<&[u8]> {
        let is_key = |entry: &&Vec<u8>| key(entry).is_some_and(|key| key.eq_ignore_ascii_case(wanted));
        let is_other = |entry: &&Vec<u8>| place_of_alias(entry, wanted).is_some();
        let latest = || self.entries.iter().rev();
        latest().find(is_key).or_else(|| latest().find(is_other)).map(Vec::as_slice)
    }

    /// All entries, for a checkpoint.
    pub(super) fn all(&self) -> Vec<Vec<u8>> {
        self.entries.iter().cloned().collect()
    }

    /// The same from a checkpoint.
    pub(super) fn again(entries: Vec<Vec<u8>>) -> Self {
        Self { bytes: entries.iter().map(Vec::len).sum(), entries: entries.into() }
    }
}

/// The word after the sign.
fn kind(entry: &[u8]) -> &[u8] {
    let word = entry.get(1..).unwrap_or_default();
    let named = |byte: &&u8| !matches!(byte, b'{' | b'(') && !byte.is_ascii_whitespace();
    &word[..word.iter().take_while(named).count()]
}

fn key(entry: &[u8]) -> Option<&[u8]> {
    let open = entry.iter().position(|byte| matches!(byte, b'{' | b'('))?;
    let rest = &entry[open + 1..];
    Some(rest[..rest.iter().position(|byte| *byte == b',')?].trim_ascii())
}

/// Where `crossref` stands in an entry, in either case: looked for in each entry of a file.
fn places(entry: &[u8]) -> impl Iterator<Item = usize> {
    static ROSS: LazyLock<[Finder<'static>; 2]> =
        LazyLock::new(|| [Finder::new("ross"), Finder::new("ROSS")]);
    let named = move |found: usize| {
        let start = found.saturating_sub(1);
        let name = entry.get(start..start + b"crossref".len())?;
        name.eq_ignore_ascii_case(b"crossref").then_some(start)
    };
    ROSS.iter().flat_map(move |ross| ross.find_iter(entry).filter_map(named))
}

/// Where a field `ids`, the other keys of an entry, has this one among them.
pub(crate) fn place_of_alias(text: &[u8], wanted: &[u8]) -> Option<usize> {
    static IDS: LazyLock<[Finder<'static>; 2]> = LazyLock::new(|| [Finder::new("ids"), Finder::new("IDS")]);
    let names = |start: &usize| {
        let is_name = start.checked_sub(1).is_none_or(|before| !text[before].is_ascii_alphanumeric());
        let keys = value(&text[start + b"ids".len()..]).filter(|_| is_name);
        let mut keys = keys.into_iter().flat_map(|keys| keys.split(|byte| *byte == b','));
        keys.any(|key| key.trim_ascii().eq_ignore_ascii_case(wanted))
    };
    IDS.iter().find_map(|ids| ids.find_iter(text).find(names))
}

/// The value of a field behind its name, without its braces or quotes; none inside it are looked for.
fn value(field: &[u8]) -> Option<&[u8]> {
    let value = field.trim_ascii_start().strip_prefix(b"=")?.trim_ascii_start();
    let quoted = value.strip_prefix(b"{").or_else(|| value.strip_prefix(b"\""));
    let is_end = |byte: &u8| match quoted {
        Some(_) => matches!(byte, b'}' | b'"'),
        None => matches!(byte, b'}' | b',' | b')' | b'\n'),
    };
    let value = quoted.unwrap_or(value);
    Some(value[..value.iter().position(is_end)?].trim_ascii())
}

/// Whether an entry may refer to another one.
pub(super) fn may_refer(entry: &[u8]) -> bool {
    places(entry).next().is_some()
}

/// The key that an entry refers to.
fn crossref(entry: &[u8]) -> Option<&[u8]> {
    places(entry).find_map(|start| value(&entry[start + b"crossref".len()..])).filter(|key| !key.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_those_it_refers_to_whatever_the_case() {
        let mut kept = Wholes::default();
        let acids = "@book{u, title={Of acids}, ids = {r, P\n, T}}";
        for entry in
            [acids, "@book{s, title={S}}", "@Proceedings( p , CrossRef = \"S\" )", "@article{p, title={A}}"]
        {
            kept.keep(entry.as_bytes());
        }
        let found = |entry: &str| String::from_utf8(kept.of(entry.as_bytes())).unwrap();
        let both = "@Proceedings( p , CrossRef = \"S\" )\n@book{s, title={S}}\n";
        assert_eq!(found("@a{x, note={my crossref}, CROSSREF = {P}}"), both);
        assert_eq!(found("@a{x, crossref = q}"), "");
        assert_eq!(found("@a{x, title={The Rosser effect}}"), "");
        assert_eq!(found("@a{x, crossref = t}"), format!("{acids}\n"));
        assert_eq!(found("@a{x, crossref = P}"), both, "an entry's own key comes first");
        assert_eq!(Wholes::again(kept.all()).of(b"@a{x, crossref=p, y=1}"), both.as_bytes());
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let mut kept = Wholes::default();
        let entry = |number: usize| format!("@book{{{number}, note={{{}}}}}", "x".repeat(1000));
        (0..100).for_each(|number| kept.keep(entry(number).as_bytes()));
        kept.keep("x".repeat(MOST_ENTRY + 1).as_bytes());
        assert!(kept.bytes <= MOST_KEPT && kept.bytes > MOST_KEPT - 2000);
        assert!(kept.of(b"@a{x, crossref={9}}").is_empty());
        assert_eq!(kept.of(b"@a{x, crossref={99}}"), format!("{}\n", entry(99)).into_bytes());
    }
}
