//! The meaning of a record's parts, and the tables that define it for each format.

use std::borrow::Cow;

/// The content of a tag, column or element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Title,
    /// The title of a book: the record's title if it has no other, else the journal.
    Book,
    /// The series of a book: the journal if no other value is available.
    Series,
    Author,
    /// An author in short form, for records without full names.
    ShortAuthor,
    /// A group that is an author.
    Group,
    /// People who count as authors if the record has no author.
    Editor,
    Date,
    /// Month and day for a year in another tag.
    MonthDay,
    Journal,
    /// A citation on one line, which is parsed.
    Citation,
    Volume,
    Issue,
    Pages,
    FirstPage,
    LastPage,
    Doi,
    Pmid,
    /// The record number in its database: a PMID if the database is PubMed.
    Accession,
    /// The database; also kept in `extra`.
    Database,
    Abstract,
    Keyword,
    Url,
    Type,
    /// Parts of one author's name in separate elements.
    FamilyName,
    GivenName,
    Initials,
    NameSuffix,
    /// The value is kept in `extra`, like the value of an unknown name. Such names are listed only if another rule
    /// would apply otherwise.
    Extra,
    /// Omitted with its whole content: bookkeeping of the exporting program, and data about other works.
    LeftOut,
}

/// The number of field variants.
pub(crate) const FIELDS: usize = Field::LeftOut as usize + 1;

/// One row of a format's table: the names that hold a field, the preferred name first.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) field: Field,
    pub(crate) names: &'static [&'static str],
}

/// A name found in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FieldName {
    pub(crate) field: Field,
    /// The name as spelled in the table.
    pub(crate) name: &'static str,
    /// The name without its required parent.
    pub(crate) tag: &'static str,
    /// The position of the name among the names of the field.
    pub(crate) rank: u8,
}

impl FieldName {
    /// A name that is not in any table.
    pub(crate) fn new(field: Field, name: &'static str, rank: u8) -> Self {
        Self { field, name, tag: name, rank }
    }
}

/// A value and its field.
#[derive(Debug)]
pub(crate) struct Value<'a> {
    pub(crate) field: Field,
    pub(crate) rank: u8,
    pub(crate) tag: &'a str,
    pub(crate) text: Cow<'a, str>,
}

/// A table prepared for lookups, which happen for every line of a file.
#[derive(Debug)]
pub(crate) struct Index {
    /// Buckets by a few properties of the name, in the order of the table, so that the first match is the right one.
    buckets: [Vec<Entry>; BUCKETS],
}

#[derive(Debug)]
struct Entry {
    /// The required parent element, if any.
    parent: Option<&'static str>,
    named: FieldName,
}

const BUCKETS: usize = 64;

impl Index {
    pub(crate) fn new(rules: &'static [Rule]) -> Self {
        let mut buckets = [const { Vec::new() }; BUCKETS];
        for rule in rules {
            for (rank, &whole) in rule.names.iter().enumerate() {
                let (parent, tag) = match whole.split_once('/') {
                    Some((parent, tag)) => (Some(parent), tag),
                    None => (None, whole),
                };
                // No row has anywhere near 256 names.
                let rank = u8::try_from(rank).unwrap_or(u8::MAX);
                let named = FieldName { field: rule.field, name: whole, tag, rank };
                buckets[bucket(tag.as_bytes())].push(Entry { parent, named });
            }
        }
        Self { buckets }
    }

    /// Finds the rule for a name, which may contain a slash: `Issue/Part`.
    pub(crate) fn find(&self, name: impl AsRef<[u8]>) -> Option<FieldName> {
        let name = name.as_ref();
        match memchr::memchr(b'/', name) {
            Some(at) => {
                let is_whole = |entry: &&Entry| entry.named.name.as_bytes() == name;
                self.buckets[bucket(&name[at + 1..])].iter().find(is_whole).map(|entry| entry.named)
            }
            None => self.find_within(None, name),
        }
    }

    /// Finds the rule for an element with this parent.
    pub(crate) fn find_within(&self, parent: Option<&str>, name: impl AsRef<[u8]>) -> Option<FieldName> {
        let name = name.as_ref();
        let fits = |entry: &&Entry| {
            entry.named.tag.as_bytes() == name && (entry.parent.is_none() || entry.parent == parent)
        };
        self.buckets[bucket(name)].iter().find(fits).map(|entry| entry.named)
    }
}

fn bucket(name: &[u8]) -> usize {
    let (first, last) = (name.first().copied().unwrap_or_default(), name.last().copied().unwrap_or_default());
    (usize::from(first) * 3 + usize::from(last) * 5 + name.len()) % BUCKETS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_matching_rule_counts() {
        const RULES: &[Rule] = &[
            Rule { field: Field::LeftOut, names: &["files/url"] },
            Rule { field: Field::Url, names: &["link", "url"] },
        ];
        let index = Index::new(RULES);
        let field = |parent, name| index.find_within(parent, name).map(|named| (named.field, named.rank));
        assert_eq!(field(Some("files"), "url"), Some((Field::LeftOut, 0)));
        assert_eq!(field(Some("urls"), "url"), Some((Field::Url, 1)));
        assert_eq!(field(None, "url"), Some((Field::Url, 1)));
        assert_eq!(field(None, ""), None);
        assert_eq!(index.find("files/url").map(|named| named.field), Some(Field::LeftOut));
        assert_eq!(index.find("other/url"), None);
    }
}
