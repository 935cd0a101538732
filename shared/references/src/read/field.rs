//! What the parts of a record mean, and the tables that say so for each format.

/// What a tag, column or element holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Field {
    Title,
    /// The title of a book: the title where there is none, else where the work appeared.
    Book,
    Author,
    /// An author in a shorter form, for records that have no other.
    ShortAuthor,
    /// A group that is an author.
    Group,
    /// Those who stand in where there are no authors.
    Editor,
    Date,
    /// Month and day for a year that stands elsewhere.
    MonthDay,
    Journal,
    Volume,
    Issue,
    Pages,
    FirstPage,
    LastPage,
    Doi,
    Pmid,
    /// The number of the record in its database: a PMID where the database is PubMed.
    Accession,
    /// The database; stays in `extra` as well.
    Database,
    Abstract,
    Keyword,
    Url,
    Type,
    /// Parts of one author's name in elements of their own.
    FamilyName,
    GivenName,
    Initials,
    NameSuffix,
    /// Kept in `extra`, like what no table names; listed where another rule would take it otherwise.
    Extra,
    /// Left out with all that it contains: housekeeping of the exporting program, and other works' data.
    LeftOut,
}

/// How many kinds of field there are.
pub(super) const FIELDS: usize = Field::LeftOut as usize + 1;

/// One row of a format's table: these names hold that field, the preferred name first.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) field: Field,
    pub(crate) names: &'static [&'static str],
}

/// A name found in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) field: Field,
    /// The name as the table spells it.
    pub(super) name: &'static str,
    /// How early it stands among the names for the field.
    pub(super) rank: u8,
}

/// What a name means by a table.
pub(super) fn look_up(rules: &'static [Rule], name: &str) -> Option<Named> {
    rules.iter().find_map(|rule| {
        let rank = rule.names.iter().position(|known| *known == name)?;
        // No row has anywhere near 256 names.
        let rank_in_row = u8::try_from(rank).unwrap_or(u8::MAX);
        Some(Named { field: rule.field, name: rule.names[rank], rank: rank_in_row })
    })
}
