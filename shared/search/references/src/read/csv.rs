//! Reads a row of a table.

use std::borrow::Cow;

use super::{
    REPAIRED, citation, dates,
    draft::Draft,
    entities,
    field::{FIELDS, Field, FieldName},
    frames, identifiers, json, names, notation,
    pages::{self, Restoration},
    sources, tidy, wos,
};
use crate::{
    Reference,
    split::fields,
    table::{
        cells::{cells, escaped_cells, inner_cells, is_quoted},
        header::{Column, Header, column},
    },
    work::spend,
};

pub(super) fn read(header: &Header, text: &str) -> Result<Reference, String> {
    let width = header.columns.len();
    spend(text.len());
    let (mut row, is_unclosed) = cells_of_row(header, text);
    for (at, cell) in row.iter_mut().enumerate().filter(|(_, cell)| cell.starts_with('=')) {
        let named = header.columns.get(at).and_then(|column| column.named);
        let is_link = named.is_some_and(|named| matches!(named.field, Field::Url | Field::Doi | Field::Pmid));
        if let Some(text) = without_formula(cell, is_link) {
            *cell = Cow::Owned(text);
        }
    }
    let mut draft = Draft::default();
    if row.len() == width + 1 && begins_with_name(header, &row, text) {
        draft.extra.push("column 1", &entities::decode(&row[0]));
        row.remove(0);
    }
    if row.iter().skip(width).any(|cell| !tidy::is_blank(cell)) {
        let found = row.len();
        return Err(format!(
            "it has {found} cells where the header has {width}; a cell may lack its quotation marks"
        ));
    }
    let best = best_columns(header, &row);
    let is_filled = |name: &str| {
        let mut cells = header.columns.iter().zip(&row);
        cells.any(|(column, cell)| column.name == name && !tidy::is_blank(cell))
    };
    // The range of the Zoological Record, for records without a first page.
    let has_first = header.columns.first().is_some_and(|first| first.name == "PT")
        && (is_filled("BP") || is_filled("AR"));
    let (mut source, mut subtitle) = (None, None);
    if is_unclosed {
        draft.extra.push(REPAIRED, "a quotation mark was not closed");
    }
    let filled = || header.columns.iter().zip(&row).filter(|(_, cell)| !tidy::is_blank(cell));
    for (at, (column, cell)) in filled().enumerate() {
        // Programs repeat the column of the authors.
        let is_author =
            column.named.is_some_and(|named| named.field == Field::Author) && width <= MAX_COMPARED;
        if is_author && filled().take(at).any(|before| before.0.name == column.name && before.1 == cell) {
            continue;
        }
        // R writes NA into empty cells.
        if frames::is_absent(cell) || add_of_one_database(&mut draft, header, &row, column, cell) {
            continue;
        }
        match column.named {
            // A complete citation begins with the authors of the work. A citation of PubMed follows the name of the
            // journal.
            Some(named) if named.field == Field::Citation => {
                add_citation(&mut draft, header, named, &column.name, cell);
            }
            // A column with this name holds the label of a search if another column holds the journal.
            Some(named) if named.name == "source" && header.has_journal => {
                draft.extra.push(&column.name, &entities::decode(cell));
                source = Some(cell);
            }
            Some(named) if sources::COLUMNS.contains(&named.name) && sources::is_search(cell) => {
                let database = FieldName { field: Field::Database, ..named };
                draft.add_as(database, &column.name, entities::decode(cell));
            }
            Some(named) if named.name == "PS" && has_first => {
                draft.extra.push(&column.name, &entities::decode(cell));
            }
            Some(named)
                if named.field == Field::Author
                    && let Some(people) = people_of_program(header, named, &column.name, cell) =>
            {
                draft.authors(Field::Author, people);
            }
            Some(named) if named.name == "number" && best[Field::Volume as usize] == u8::MAX => {
                numbers_of_scholar(&mut draft, named, &column.name, cell);
            }
            Some(named) if named.field == Field::Journal && cell.starts_with('{') => {
                journal_in_parts(&mut draft, named, &column.name, cell);
            }
            Some(named) => {
                add(&mut draft, named, &column.name, cell, best[named.field as usize] == named.rank);
            }
            None if column.name.eq_ignore_ascii_case("subtitle") => subtitle = Some(cell),
            None => add_unnamed(&mut draft, &column.name, cell),
        }
    }
    if draft.people() == 0 {
        author_in_parts(&mut draft, header, &row);
    }
    let mut reference = draft.finish();
    if let Some(subtitle) = subtitle {
        add_subtitle(&mut reference, &entities::decode(subtitle));
    }
    complete_from_source(&mut reference);
    if let Some(source) = source {
        complete_from_other(&mut reference, source);
    }
    Ok(reference)
}

/// Adds the cell of a column that has another meaning or notation in the tables of one database. Returns `false` for all
/// other columns.
fn add_of_one_database<'a>(
    draft: &mut Draft<'a>,
    header: &Header,
    row: &[Cow<'_, str>],
    column: &'a Column,
    cell: &'a str,
) -> bool {
    let is_of_web_of_science = || header.columns.first().is_some_and(|first| first.name == "PT");
    match (column.name.as_str(), column.named) {
        // MEDLINE separates its headings by full stops, and subheadings by semicolons.
        ("MH", Some(named)) if is_of_web_of_science() => {
            wos::headings(&entities::decode(cell)).for_each(|keyword| draft.keyword(named.rank, keyword));
            true
        }
        // Europe PMC has the numbers of several sources in one column.
        ("EXTERNAL_ID", None) => {
            let source = header.columns.iter().position(|column| column.name == "SOURCE");
            let is_pmid = source.and_then(|at| row.get(at)).is_some_and(|source| source.trim() == "MED");
            if is_pmid {
                draft.add_as(FieldName::new(Field::Pmid, "pmid", u8::MAX), &column.name, Cow::Borrowed(cell));
            }
            is_pmid
        }
        _ => false,
    }
}

/// The names in a cell of a program with its own notation.
fn people_of_program(header: &Header, named: FieldName, column: &str, cell: &str) -> Option<Vec<String>> {
    if header.joins_authors {
        return Some(names::split_cell(&apart(&entities::decode(cell))));
    }
    if header.has_natural_names {
        return names::in_natural_order(cell);
    }
    let people = |separator: &str| {
        let decoded = entities::decode(cell);
        let name = |person: &str| names::one(person.split("::").next().unwrap_or_default());
        decoded.split(separator).filter_map(name).collect()
    };
    match named.name {
        // DSpace appends the key of the person in its register.
        "dccontributorauthor" => Some(people("||")),
        // HAL writes commas between whole names.
        "authfullname" if column.ends_with("_s") => Some(people(",")),
        _ => None,
    }
}

/// Appends the subtitle, which the column of titles may repeat.
fn add_subtitle(reference: &mut Reference, subtitle: &str) {
    let title = &mut reference.title;
    let Some(subtitle) = tidy::line(subtitle).filter(|subtitle| !title.ends_with(subtitle.as_str())) else {
        return;
    };
    if !title.is_empty() {
        title.push_str(if title.ends_with([':', '?', '!', '.']) { " " } else { ": " });
    }
    title.push_str(&subtitle);
}

/// The cells of a row, and `true` if a quotation mark is not closed.
fn cells_of_row<'a>(header: &Header, text: &'a str) -> (Vec<Cow<'a, str>>, bool) {
    let (width, delimiter) = (header.columns.len(), header.delimiter.byte());
    // A row has fewer cells than bytes, however many columns the header declares.
    let mut row: Vec<Cow<'_, str>> = Vec::with_capacity(width.min(text.len() + 1));
    let mut found = cells(text, delimiter, header.quotes).with_unclosed_as_text();
    row.extend(found.by_ref());
    if width > 1
        && let Some(inner) = inner_cells(text, header.delimiter, &row, width + 1)
        && inner.len() == width
    {
        return (inner, found.is_unclosed());
    }
    // A backslash may precede the quotation marks in quoted cells.
    let is_irregular = row.len() != width || found.is_irregular() || found.is_unclosed();
    if header.quotes
        && is_irregular
        && let Some(escaped) = escaped_cells(text, delimiter)
        && (escaped.len() == width
            || (escaped.len() == width + 1 && begins_with_name(header, &escaped, text)))
    {
        return (escaped, false);
    }
    (row, found.is_unclosed())
}

/// Returns `true` for a row with one cell more than the header that begins with the name of the row, as R writes it. A
/// comma in a cell that is not quoted has the same effect, so the cells must show that the first one is such a name.
fn begins_with_name(header: &Header, row: &[Cow<'_, str>], text: &str) -> bool {
    let [name, row @ ..] = row else { return false };
    let delimiter = header.delimiter.byte();
    let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit());
    let is_quoted =
        || text.starts_with('"') && (is_quoted(text, delimiter) || escaped_cells(text, delimiter).is_some());
    let holds_text = header.columns.first().and_then(|column| column.named).is_some_and(|named| {
        matches!(
            named.field,
            Field::Title | Field::Author | Field::Abstract | Field::Journal | Field::Doi | Field::Keyword
        )
    });
    if is_number && holds_text && row.last().is_some_and(|last| !tidy::is_blank(last)) {
        // A title may begin with a year.
        return name.len() != 4 || delimiter == b'\t' || is_quoted();
    }
    let fit = |cells: &[Cow<'_, str>]| {
        let mut fit = header.columns.iter().zip(cells).filter_map(|(column, cell)| fits(column, cell));
        fit.next().map(|first| first && fit.all(|next| next))
    };
    !tidy::is_blank(name)
        && fit(row) == Some(true)
        && is_quoted()
        && header
            .columns
            .iter()
            .zip([name].into_iter().chain(row))
            .any(|(column, cell)| fits(column, cell) == Some(false))
}

/// Returns `true` if the cell has a value of its column, and `None` if that is not known.
fn fits(column: &Column, cell: &str) -> Option<bool> {
    let cell = Some(cell.trim()).filter(|cell| !cell.is_empty() && !frames::is_absent(cell))?;
    match column.named?.field {
        Field::Date => Some(cell.len() <= 10 && dates::year(cell).is_some()),
        Field::Doi => Some(cell.contains("10.")),
        Field::Pmid => Some(cell.bytes().all(|byte| byte.is_ascii_digit())),
        _ => None,
    }
}

/// Adds the numbers of a source that is not the journal. LILACS writes the pages only there, and Embase the number of the
/// article.
fn complete_from_other(reference: &mut Reference, source: &str) {
    let source = identifiers::front(source);
    if let Some((_, _, rest)) = source_parts(source) {
        let (volume, issue, pages) = embase_numbers(rest);
        complete_numbers(reference, volume, issue, pages);
    } else if let Some(found) = citation::parse_source(source) {
        complete_numbers(reference, found.volume, found.issue, found.pages);
    }
}

/// Reads a record with one row per field: the name, and one or more values.
pub(super) fn read_fields(text: &str) -> Reference {
    spend(text.len());
    let named = fields::rows(text).map(|row| {
        let mut cells = cells(row, b',', true);
        let name = cells.next().unwrap_or_default();
        (column(&name, 0), cells)
    });
    let rows: Vec<_> = named.collect();
    let (mut draft, mut source) = (Draft::default(), None);
    for (Column { named, name }, cells) in &rows {
        for cell in cells.clone().filter(|cell| !tidy::is_blank(cell)) {
            match *named {
                Some(named) if named.field == Field::Author => {
                    draft.authors(Field::Author, names::split_cell(&cell));
                }
                Some(named) if named.field == Field::Keyword => {
                    draft.keyword(named.rank, &entities::decode(&cell));
                }
                Some(named) => {
                    let value = entities::decode(&cell).into_owned();
                    if named.name == "source" {
                        source = Some(value.clone());
                    }
                    draft.add_as(named, name, Cow::Owned(value));
                }
                None => draft.extra.push(name, &entities::decode(&cell)),
            }
        }
    }
    let mut reference = draft.finish();
    complete_from_source(&mut reference);
    if let Some(source) = source {
        complete_from_other(&mut reference, &source);
    }
    reference
}

/// The text in a formula that spreadsheets show as text or as a link: `="0012"`, `=HYPERLINK("https://…","Title")`.
fn without_formula(cell: &str, is_link: bool) -> Option<String> {
    const LINK: &str = "=HYPERLINK(";
    let cell = cell.trim();
    spend(cell.len());
    let plain = |text: &str| text.replace("\"\"", "\"");
    let quoted = |text: &str| Some(plain(text.trim().strip_prefix('"')?.strip_suffix('"')?));
    if !cell.get(..LINK.len()).is_some_and(|front| front.eq_ignore_ascii_case(LINK)) {
        return quoted(&cell[1..]);
    }
    let arguments = cell[LINK.len()..].strip_suffix(')')?;
    let (link, text) = ["\",\"", "\";\"", "\", \"", "\"; \""]
        .iter()
        .find_map(|between| arguments.split_once(between))
        .map_or((arguments, None), |(link, text)| (link, Some(text)));
    let chosen = text.filter(|_| !is_link).unwrap_or(link);
    Some(plain(chosen.trim().trim_matches('"')))
}

/// The rank of the preferred nonempty column for each field.
fn best_columns(header: &Header, row: &[Cow<'_, str>]) -> [u8; FIELDS] {
    let mut best = [u8::MAX; FIELDS];
    for (column, _) in header.columns.iter().zip(row).filter(|(_, cell)| !tidy::is_blank(cell)) {
        if let Some(FieldName { field, rank, .. }) = column.named {
            best[field as usize] = best[field as usize].min(rank);
        }
    }
    best
}

fn add<'a>(draft: &mut Draft<'a>, named: FieldName, column: &'a str, cell: &'a str, best: bool) {
    match named.field {
        // Databases may list the same people in two columns, one of them with full names.
        Field::Author if best => draft.authors(Field::Author, names::split_cell(cell)),
        Field::Author => draft.extra.push(column, &entities::decode(cell)),
        Field::Editor | Field::ShortAuthor => draft.authors(named.field, names::split_cell(cell)),
        Field::Group => {
            let separated = || entities::decode(cell).split(';').map(str::to_owned).collect();
            let names = notation::list(cell).unwrap_or_else(separated);
            for name in names.iter().filter_map(|name| tidy::line(name)) {
                draft.author(Field::Group, name);
            }
        }
        Field::Keyword => {
            list(&entities::decode(cell), |keyword| draft.keyword(named.rank, without_descriptor(keyword)));
        }
        Field::Issue | Field::Pages | Field::FirstPage | Field::LastPage => {
            match restored(named.field, cell) {
                Restoration::Same => draft.add_as(named, column, entities::decode(without_fraction(cell))),
                Restoration::Range(range) => draft.add_as(named, column, Cow::Owned(range)),
                Restoration::Unclear => draft.extra.push(column, &entities::decode(cell)),
            }
        }
        Field::Date if let Some(date) = dates::of_day_number(cell) => {
            draft.add_as(named, column, Cow::Owned(date));
        }
        Field::Pmid => match first_pmid(cell) {
            Some((first, is_only)) => {
                if !is_only {
                    draft.extra.push(column, &entities::decode(cell));
                }
                draft.add_as(named, column, Cow::Owned(first));
            }
            None => draft.add_as(named, column, entities::decode(without_fraction(cell))),
        },
        Field::Volume | Field::Accession => {
            draft.add_as(named, column, entities::decode(without_fraction(cell)));
        }
        // MEDLINE has other identifiers under the same tags.
        Field::Doi if matches!(named.name, "LID" | "AID") => {
            for text in notation::list(cell).unwrap_or_else(|| vec![cell.to_owned()]) {
                let is_doi = text.ends_with("[doi]") || identifiers::doi_in_url(&text).is_some();
                match is_doi {
                    true => draft.add_as(named, column, Cow::Owned(text)),
                    false => draft.extra.push(column, &entities::decode(&text)),
                }
            }
        }
        // A link in a DOI column may lead elsewhere, and a link in a URL column may lead to a DOI.
        _ => match frames::texts_of_r(cell).or_else(|| notation::list(cell)) {
            Some(texts) => {
                for text in texts {
                    draft.add_as(named, column, Cow::Owned(entities::decode(&text).into_owned()));
                }
            }
            None => draft.add_as(named, column, entities::decode(cell)),
        },
    }
}

/// Restores numbers that a spreadsheet turned into a date. A single page is not a range.
fn restored(field: Field, cell: &str) -> Restoration {
    match field {
        Field::Issue => pages::restored_issue(cell),
        Field::Pages => pages::restored(cell),
        _ => match pages::restored(cell) {
            Restoration::Range(_) => Restoration::Unclear,
            other => other,
        },
    }
}

/// Separates the names in `Ann RoeBob McDoeKay Poe`, as SpringerLink writes them: a capital follows the end of a name.
fn apart(cell: &str) -> String {
    /// The beginnings of family names before a second capital.
    const BEGINNINGS: [&str; 17] = [
        "Al", "Da", "De", "Del", "Della", "Di", "Du", "El", "Fitz", "La", "Le", "Lo", "Mac", "Mc", "O", "St",
        "Van",
    ];
    spend(cell.len());
    let (mut names, mut word) = (String::with_capacity(cell.len() + 16), String::new());
    // Given names with an inner capital, such as `JoAnn`, precede the family name.
    let mut has_family = false;
    for letter in cell.chars() {
        let is_end = || {
            word.ends_with(char::is_lowercase)
                || (word.ends_with('.') && word.chars().nth(3).is_some())
                || names::is_suffix(&word)
        };
        if letter.is_uppercase() && has_family && is_end() && !BEGINNINGS.contains(&word.as_str()) {
            names.push(';');
            word.clear();
            has_family = false;
        }
        if letter.is_whitespace() || letter == '-' {
            has_family |= letter.is_whitespace();
            word.clear();
        } else {
            word.push(letter);
        }
        names.push(letter);
    }
    names
}

/// The maximum number of columns of a table in which columns are compared with each other.
const MAX_COMPARED: usize = 256;

/// Adds the author whose names are in two columns, as in tables with a row for each author.
fn author_in_parts(draft: &mut Draft<'_>, header: &Header, row: &[Cow<'_, str>]) {
    const FAMILY: [&str; 3] = ["lastname", "familyname", "surname"];
    const GIVEN: [&str; 3] = ["firstname", "givenname", "forename"];
    let part = |names: [&str; 3]| {
        let is_named = |column: &Column| {
            let plain = column.name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
            names.iter().any(|name| plain.clone().eq(name.chars()))
        };
        let cell = header.columns.iter().zip(row).find(|(column, _)| is_named(column)).map(|(_, cell)| cell);
        cell.filter(|cell| !frames::is_absent(cell)).map(|cell| entities::decode(cell))
    };
    if let (Some(family), Some(given)) = (part(FAMILY), part(GIVEN))
        && let Some(name) = names::joined(&family, &given)
    {
        draft.author(Field::Author, name);
    }
}

fn add_citation<'a>(draft: &mut Draft<'a>, header: &Header, named: FieldName, column: &'a str, cell: &str) {
    let cited = entities::decode(cell);
    if let Some(found) = citation::numbers_of_year(&citation::narrow(&cited)) {
        return citation::add_parts(draft, named.name, &found);
    }
    if let Some((volume, issue)) = citation::volume_and_issue(&cited) {
        for (field, number) in [(Field::Volume, volume), (Field::Issue, issue)] {
            draft.add_as(FieldName { field, ..named }, column, Cow::Owned(number.to_owned()));
        }
        return;
    }
    // Tables of PubMed from before 2020 have no other column for the journal and the DOI.
    let is_of_pubmed = column == "Details";
    if is_of_pubmed && let Some(doi) = identifiers::labelled_doi(&cited) {
        draft.add_decoded(FieldName::new(Field::Doi, "doi", u8::MAX), Cow::Owned(doi));
    }
    if !((header.has_journal || is_of_pubmed) && citation::add(draft, named.name, &cited)) {
        draft.extra.push(column, &cited);
    }
}

/// The columns of OpenAlex with several values in one cell.
const NESTED: [&str; 4] = ["ids", "biblio", "primary_location", "abstract_inverted_index"];

/// Adds the cell of a column whose name is not in the table.
fn add_unnamed<'a>(draft: &mut Draft<'a>, column: &'a str, cell: &str) {
    if column == EXTERNAL_IDS {
        external_ids(draft, cell);
    } else if column == "externalIds.PubMedCentral" {
        draft.extra.push("PMC", &format!("PMC{}", without_fraction(cell).trim_start_matches("PMC")));
    } else if !NESTED.contains(&column) || !nested(draft, column, cell) {
        draft.extra.push(column, &entities::decode(cell));
    }
}

/// Adds the values of such a column. Returns `false` if the cell is in another notation.
fn nested<'a>(draft: &mut Draft<'a>, column: &'a str, cell: &str) -> bool {
    const FIELDS_OF: [(&str, Field); 8] = [
        ("doi", Field::Doi),
        ("pmid", Field::Pmid),
        ("pmcid", Field::Extra),
        ("volume", Field::Volume),
        ("issue", Field::Issue),
        ("first_page", Field::FirstPage),
        ("last_page", Field::LastPage),
        ("landing_page_url", Field::Url),
    ];
    let Some(value) = frames::parse(cell) else { return false };
    if let (Some(words), "abstract_inverted_index") = (value.as_object(), column) {
        let text = Cow::Owned(json::in_order(words));
        draft.add_as(FieldName::new(Field::Abstract, "abstract_inverted_index", 9), column, text);
        return true;
    }
    for text in value.as_array().into_iter().flatten().filter_map(|item| item.as_str()) {
        if text.contains("pubmed.ncbi.nlm.nih.gov/") {
            let named = FieldName::new(Field::Pmid, "ids", 9);
            draft.add_as(named, column, Cow::Owned(text.to_owned()));
        } else {
            draft.extra.push(column, text);
        }
    }
    for (name, value) in value.as_object().into_iter().flatten() {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        match FIELDS_OF.iter().find(|(known, _)| known == name) {
            _ if value.is_null() => {}
            Some((_, field)) => draft.add_as(FieldName::new(*field, "", 9), column, Cow::Owned(text)),
            None if value.is_string() => draft.extra.push(column, &text),
            None => {}
        }
    }
    if let Some(journal) = value.pointer("/source/display_name").and_then(|name| name.as_str()) {
        let named = FieldName::new(Field::Journal, "primary_location", 9);
        draft.add_as(named, column, Cow::Owned(journal.to_owned()));
    }
    true
}

/// The column in which Semantic Scholar lists the identifiers of a work.
const EXTERNAL_IDS: &str = "externalIds";

fn external_ids(draft: &mut Draft<'_>, cell: &str) {
    let Some(maps) = notation::maps(cell) else {
        return draft.extra.push(EXTERNAL_IDS, &entities::decode(cell));
    };
    for (name, number) in maps.into_iter().flatten() {
        let number = entities::decode(&number).into_owned();
        let field = match name.as_str() {
            "DOI" => Field::Doi,
            "PubMed" => Field::Pmid,
            "PubMedCentral" => {
                draft.extra.push("PMC", &format!("PMC{}", number.trim_start_matches("PMC")));
                continue;
            }
            _ => {
                draft.extra.push(EXTERNAL_IDS, &format!("{name}: {number}"));
                continue;
            }
        };
        draft.add_as(FieldName::new(field, EXTERNAL_IDS, 1), EXTERNAL_IDS, Cow::Owned(number));
    }
}

/// Adds the journal of Semantic Scholar: `{'name': 'J Tests', 'volume': '5', 'pages': '1-9'}`.
fn journal_in_parts<'a>(draft: &mut Draft<'a>, named: FieldName, column: &'a str, cell: &'a str) {
    let Some(maps) = notation::maps(cell) else { return draft.add_as(named, column, entities::decode(cell)) };
    for (name, value) in maps.into_iter().flatten() {
        let field = match name.as_str() {
            "name" => Field::Journal,
            "volume" => Field::Volume,
            "pages" => Field::Pages,
            _ => continue,
        };
        let value = Cow::Owned(entities::decode(&value).into_owned());
        draft.add_as(FieldName { field, ..named }, column, value);
    }
}

/// Adds the numbers that the package `scholar` of R writes into one column: `12 (3), 12-19`.
fn numbers_of_scholar<'a>(draft: &mut Draft<'a>, named: FieldName, column: &'a str, cell: &'a str) {
    let Some((volume, issue, pages)) = scholar_parts(cell) else {
        return add(draft, named, column, cell, true);
    };
    for (field, text) in [(Field::Volume, volume), (Field::Issue, issue), (Field::Pages, pages)] {
        draft.add_as(FieldName { field, ..named }, column, Cow::Borrowed(text));
    }
}

fn scholar_parts(cell: &str) -> Option<(&str, &str, &str)> {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let (numbers, pages) = cell.trim().split_once(", ").unwrap_or((cell.trim(), ""));
    let (volume, issue) = match numbers.split_once(" (") {
        Some((volume, issue)) => (volume, issue.strip_suffix(')')?),
        None => (numbers, ""),
    };
    let has_digit = |text: &str| text.contains(|c: char| c.is_ascii_digit());
    let is_page = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '–');
    let are_pages = has_digit(pages) && pages.chars().all(is_page);
    let is_whole =
        if issue.is_empty() { are_pages && pages.contains(['-', '–']) } else { has_digit(issue) };
    (is_number(volume) && is_whole && (are_pages || pages.is_empty())).then_some((volume, issue, pages))
}

/// A whole number without the `.0` that pandas appends in columns with missing values.
fn without_fraction(cell: &str) -> &str {
    let number = cell.trim().strip_suffix(".0").unwrap_or_default();
    let is_whole = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    if is_whole { number } else { cell }
}

/// The first PMID of a cell with several, as programs for PubMed append the cited works, and `true` for a single PMID.
/// Spreadsheets have an apostrophe before a number as text, and commas between its thousands.
fn first_pmid(cell: &str) -> Option<(String, bool)> {
    /// The maximum length of an inspected cell.
    const MAX: usize = 4096;
    let is_mark = |c: char| matches!(c, '\'' | '"' | '[' | ']') || c.is_whitespace();
    let is_between = |c: char| matches!(c, ';' | ',' | '|') || is_mark(c);
    let is_digits = |part: &&str| part.len() <= 8 && part.bytes().all(|byte| byte.is_ascii_digit());
    let bare = cell.trim_matches(is_mark);
    if bare.len() == cell.len() && !cell.contains(is_between) {
        return None;
    }
    let parts: Vec<&str> =
        bare[..bare.floor_char_boundary(MAX)].split(is_between).filter(|part| !part.is_empty()).collect();
    let (first, others) = parts.split_first().filter(|_| parts.iter().all(is_digits))?;
    let is_thousands = bare.bytes().all(|byte| byte == b',' || byte.is_ascii_digit())
        && first.len() <= 3
        && others.iter().all(|part| part.len() == 3);
    match others {
        [] => Some(((*first).to_owned(), true)),
        _ if is_thousands => Some((parts.concat(), true)),
        _ => (first.len() > 4).then(|| ((*first).to_owned(), false)),
    }
}

/// Removes the number of a MeSH descriptor, as in `D006801:Humans` of pubmed_parser.
fn without_descriptor(keyword: &str) -> &str {
    let number = keyword.trim_start().strip_prefix('D').and_then(|rest| rest.split_once(':'));
    let is_number =
        |number: &str| (4..=9).contains(&number.len()) && number.bytes().all(|byte| byte.is_ascii_digit());
    number.filter(|(number, _)| is_number(number)).map_or(keyword, |(_, keyword)| keyword)
}

/// Splits a cell with several items: quoted, or separated by semicolons, bars, line breaks, or commas outside of
/// brackets, as in "cyst (diagnosis, surgery), stomach". Packages of R join at least three items by "and", and an array
/// of PostgreSQL has braces.
fn list(cell: &str, mut item: impl FnMut(&str)) {
    const AND: &str = " and ";
    let array = cell.trim().strip_prefix('{').and_then(|cell| cell.strip_suffix('}'));
    let cell = array.filter(|inner| !inner.contains(['{', '}', '"', ':'])).unwrap_or(cell);
    if let Some(items) = frames::keywords(cell).or_else(|| notation::list(cell)) {
        return items.iter().for_each(|text| item(text));
    }
    if let Some(separator) = names::separator(cell) {
        return cell.split(separator).for_each(item);
    }
    if !cell.contains(',') && cell.matches(AND).count() > 1 {
        return cell.split(AND).for_each(item);
    }
    let is_east_asian = !cell.is_ascii() && cell.contains(names::is_ideographic);
    let mut depth = 0_usize;
    cell.split(|c: char| {
        match c {
            '(' | '[' | '（' => depth += 1,
            ')' | ']' | '）' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && (c == ',' || (matches!(c, '，' | '、') && is_east_asian))
    })
    .for_each(item);
}

/// Parses the journal column of Embase, which holds "Cancer (2004) 102:4 (253-258). Date of Publication: 25 Aug 2004",
/// and those of Ovid and SinoMed.
pub(super) fn complete_from_source(reference: &mut Reference) {
    let Some(given) = reference.journal.take() else { return };
    let narrow = citation::narrow(identifiers::front(&given));
    let source = narrow.as_ref();
    if let Some((journal, year, rest)) = source_parts(source) {
        let (volume, issue, pages) = embase_numbers(rest);
        reference.year = reference.year.or(Some(year));
        complete_numbers(reference, volume, issue, pages);
        reference.journal = Some(journal.to_owned());
    } else if let Some(found) = citation::parse_source(source) {
        complete_from(reference, &found);
    } else {
        reference.journal = Some(given);
    }
}

/// Parses the journal of a record without volume, issue and pages. Ovid writes a citation there for records of CENTRAL.
pub(super) fn complete_from_journal(reference: &mut Reference) {
    let Reference { volume: None, issue: None, pages: None, journal: Some(journal), .. } = reference else {
        return;
    };
    let journal = std::mem::take(journal);
    match citation::parse_journal(&citation::narrow(identifiers::front(&journal))) {
        Some(found) => complete_from(reference, &found),
        None => reference.journal = Some(journal),
    }
}

fn complete_from(reference: &mut Reference, found: &citation::Citation<'_>) {
    let date = dates::date(found.date);
    if reference.year.is_none_or(|year| Some(year) == date.year) {
        reference.date = reference.date.take().or(date.iso());
    }
    reference.year = reference.year.or(date.year);
    complete_numbers(reference, found.volume, found.issue, found.pages);
    reference.journal = tidy::line(found.journal);
}

/// Splits `102:4 (253-258). Date of Publication: 25 Aug 2004` into volume, issue and pages, or the number of the article.
fn embase_numbers(rest: &str) -> (&str, &str, &str) {
    let (rest, article) = citation::article_number(rest);
    let (numbers, pages) = rest.split_once('(').unwrap_or((rest, ""));
    let (volume, issue) = source_numbers(numbers);
    let pages = pages.split_once(')').map_or("", |(pages, _)| pages);
    // `(no pagination)`
    let pages = if pages.contains(|c: char| c.is_ascii_digit()) { pages } else { article };
    (volume, issue, pages)
}

/// Splits `102:4`, `22 Supplement 3` or `35 SUPPL. 1` into volume and issue.
fn source_numbers(numbers: &str) -> (&str, &str) {
    const PARTS: [&str; 4] = ["suppl", "part", "pt", "spec"];
    // A sentence may follow.
    let end = numbers
        .match_indices('.')
        .find(|(at, _)| !numbers[at + 1..].trim_start().starts_with(|c: char| c.is_ascii_digit()));
    let numbers = end.map_or(numbers, |(at, _)| &numbers[..at]).trim();
    let is_part = |issue: &str| {
        PARTS.iter().any(|part| issue.get(..part.len()).is_some_and(|found| found.eq_ignore_ascii_case(part)))
    };
    if is_part(numbers) {
        return ("", numbers);
    }
    let spaced = || numbers.split_once(' ').filter(|(_, issue)| is_part(issue));
    numbers.split_once(':').or_else(spaced).unwrap_or((numbers, ""))
}

/// Sets the numbers that no other column holds.
fn complete_numbers(reference: &mut Reference, volume: &str, issue: &str, pages: &str) {
    reference.volume = reference.volume.take().or_else(|| tidy::line(volume));
    reference.issue = reference.issue.take().or_else(|| tidy::line(issue));
    reference.pages = reference.pages.take().or_else(|| tidy::line(pages));
    reference.pages_normalized = reference.pages.as_deref().and_then(pages::normalized);
}

/// Splits a source into the journal, the year in parentheses after it, and the rest.
fn source_parts(source: &str) -> Option<(&str, i32, &str)> {
    // Most journal names contain no parentheses.
    memchr::memchr(b'(', source.as_bytes())?;
    source.match_indices(" (").find_map(|(at, opening)| {
        let (year, rest) = citation::bracketed(&source[at + opening.len()..], 4)?;
        let year = (year.len() == 4).then(|| dates::year(year)).flatten()?;
        // A journal's name may end in a year; the numbers after it show that this is a citation.
        const NUMBERS: [&str; 4] = [". Date of Publication:", " Article Number:", " SUPPL", " Supplement"];
        let cited = rest.trim_start().starts_with(|c: char| c.is_ascii_digit() || c == '(' || c == ':')
            || NUMBERS.iter().any(|numbers| rest.starts_with(numbers));
        cited.then_some((source[..at].trim_end(), year, rest))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_column_citation_is_parsed() {
        let mut reference = Reference {
            journal: Some("Cancer (2004) 102:4 (253-258). Date of Publication: 25 Aug 2004".into()),
            ..Reference::default()
        };
        complete_from_source(&mut reference);
        assert_eq!(reference.journal.as_deref(), Some("Cancer"));
        assert_eq!(reference.year, Some(2004));
        assert_eq!(reference.volume.as_deref(), Some("102"));
        assert_eq!(reference.issue.as_deref(), Some("4"));
        assert_eq!(reference.pages.as_deref(), Some("253-258"));
    }

    #[test]
    fn source_column_has_supplements_and_article_numbers() {
        for (source, numbers) in [
            (
                "Tests (2019) 9:4 Article Number: e025123. Date of Publication: 1 Apr 2019",
                ["9", "4", "e025123"],
            ),
            (
                "Tests (2019) 22 Supplement 3 (S508). Date of Publication: 1 Nov 2019",
                ["22", "Supplement 3", "S508"],
            ),
            ("Tests (2019) 22 (508)", ["22", "", "508"]),
            (
                "Tests (2019) 35 SUPPL. 1 (S5-S10). Date of Publication: May 2019",
                ["35", "SUPPL. 1", "S5-S10"],
            ),
            ("Tests (2019) 22 A (508)", ["22 A", "", "508"]),
            ("Tests (2019). Date of Publication: 2019", ["", "", ""]),
            ("Tests (2019) Article Number: 123. Date of Publication: 2019", ["", "", "123"]),
            ("Tests (2019) SUPPL. 1 (S12). Date of Publication: 2019", ["", "SUPPL. 1", "S12"]),
            ("Tests (2019) 9:4 (no pagination) Article Number: e025123", ["9", "4", "e025123"]),
        ] {
            let mut reference = Reference { journal: Some(source.into()), ..Reference::default() };
            complete_from_source(&mut reference);
            assert_eq!(
                (reference.journal.as_deref(), reference.year),
                (Some("Tests"), Some(2019)),
                "{source}"
            );
            let Reference { volume, issue, pages, .. } = reference;
            assert_eq!([volume, issue, pages].map(Option::unwrap_or_default), numbers, "{source}");
        }
    }

    #[test]
    fn joined_names_are_separated() {
        for (cell, names) in [
            ("Ann RoeBob C. DoeEd Poe", "Ann Roe;Bob C. Doe;Ed Poe"),
            ("Kay McDonaldPat O'Neil", "Kay McDonald;Pat O'Neil"),
            ("Jiun-Yi YangJ.K. Roe", "Jiun-Yi Yang;J.K. Roe"),
            ("Ann Roe Jr.Bob Doe", "Ann Roe Jr.;Bob Doe"),
            ("JoAnn DaRoeYoungJin Doe", "JoAnn DaRoe;YoungJin Doe"),
            ("Ann Roe", "Ann Roe"),
        ] {
            assert_eq!(apart(cell), names);
        }
    }

    #[test]
    fn sources_of_other_databases_are_parsed() {
        for (source, journal, date) in [
            ("Lancet. 1(2):100-109, 2020 May 15.", "Lancet", Some("2020-05-15")),
            ("中华医学杂志 2020;1(2):100-109", "中华医学杂志", None),
            ("中华医学杂志,2020,1(2):100-109", "中华医学杂志", None),
        ] {
            let mut reference = Reference { journal: Some(source.into()), ..Reference::default() };
            complete_from_source(&mut reference);
            assert_eq!(reference.journal.as_deref(), Some(journal), "{source}");
            assert_eq!((reference.year, reference.date.as_deref()), (Some(2020), date), "{source}");
            assert_eq!((reference.volume.as_deref(), reference.issue.as_deref()), (Some("1"), Some("2")));
            assert_eq!(reference.pages.as_deref(), Some("100-109"));
        }
    }

    #[test]
    fn plain_journal_is_unchanged() {
        let mut reference =
            Reference { journal: Some("Heart (British Cardiac Society)".into()), ..Reference::default() };
        let before = reference.clone();
        complete_from_source(&mut reference);
        assert_eq!(reference, before);
    }

    #[test]
    fn first_of_several_pmids_counts() {
        for (cell, first) in [
            ("30000009\n12345\n23456", Some(("30000009", false))),
            ("30000009; 30000010", Some(("30000009", false))),
            ("'30000009", Some(("30000009", true))),
            ("\"30000009\"", Some(("30000009", true))),
            ("['30000009', '5']", Some(("30000009", false))),
            ("30,000,009", Some(("30000009", true))),
            ("30000009", None),
            ("3.01E+07", None),
            ("PMID: 30000009", None),
            ("12, 34", None),
        ] {
            let found = first_pmid(cell);
            assert_eq!(found.as_ref().map(|(first, is_only)| (first.as_str(), *is_only)), first, "{cell}");
        }
    }

    #[test]
    fn only_whole_numbers_lose_their_fraction() {
        for (cell, number) in
            [("12.0", "12"), (" 3.0 ", "3"), ("1.10", "1.10"), (".0", ".0"), ("2S.0", "2S.0")]
        {
            assert_eq!(without_fraction(cell), number);
        }
    }

    #[test]
    fn commas_in_brackets_do_not_separate_items() {
        let mut items = Vec::new();
        list("cyst (diagnosis, surgery),stomach", |item| items.push(item.to_owned()));
        assert_eq!(items, ["cyst (diagnosis, surgery)", "stomach"]);
    }
}
