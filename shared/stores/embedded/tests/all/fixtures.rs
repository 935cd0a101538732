//! Data of earlier versions in SQLite: this version reads them, and writes the format of the latest.

use std::io;
use std::sync::Arc;

use contracts::ManualHost;
use embedded::{Settings, Store};
use imports::queues::QUEUES;
use rusqlite::Connection;
use rusqlite::types::ValueRef;
use serde_json::{Map, Value};
use tempfile::TempDir;
use testing::fixtures::{Release, documents, ledger, same};

use crate::depot::{Depot, TestResult};

/// The stored data, as SQL that creates the database.
const DUMP: &str = "sqlite.sql";
const DOCUMENTS: &str = "documents.json";
const LEDGER: &str = "ledger.json";

/// Returns a folder with the database of a version, opened by this version.
fn opened(release: &Release) -> (TempDir, Store) {
    let folder = TempDir::new().unwrap();
    let database = Connection::open(folder.path().join("search-import.sqlite")).unwrap();
    database.execute_batch(&release.text(DUMP)).unwrap();
    drop(database);
    let store = Store::open(folder.path(), Arc::new(ManualHost::seeded(1)), Settings::new(&QUEUES)).unwrap();
    (folder, store)
}

#[tokio::test]
async fn data_of_all_versions_is_readable() -> TestResult {
    for release in Release::all() {
        let (_folder, store) = opened(&release);
        let facts: documents::Facts = release.json(DOCUMENTS);
        let (sagas, sessions) = (store.saga_outbox(), store.session_outbox());
        let ports = documents::Ports { store: Arc::new(store.clone()), sagas: &sagas, sessions: &sessions };
        let read = serde_json::to_value(documents::read(&ports, &facts).await?)?;
        same(DOCUMENTS, &read, &release.json(DOCUMENTS));
        ledger::check(&store, &store, &release.json(LEDGER)).await?;
    }
    Ok(())
}

#[tokio::test]
async fn stored_form_matches_migrated_form() -> TestResult {
    let release = Release::latest();
    let depot = Depot::new();
    let store = &depot.store;
    let (sagas, sessions) = (store.saga_outbox(), store.session_outbox());
    let ports = documents::Ports { store: Arc::new(store.clone()), sagas: &sagas, sessions: &sessions };
    documents::write(&ports, &release.json(DOCUMENTS)).await?;
    ledger::write(store, store, &release.json(LEDGER)).await?;
    release.record(DUMP, || dump(&depot.database()).unwrap());
    // An earlier version cannot open a database after this version has migrated it, so the migrated form is compared.
    let (folder, _store) = opened(&release);
    let recorded = Connection::open(folder.path().join("search-import.sqlite"))?;
    let before = Connection::open_in_memory()?;
    before.execute_batch(&release.text(DUMP))?;
    same(DUMP, &rows(&depot.database())?, &normalized(rows(&recorded)?, &tables_of(&before)?));
    Ok(())
}

/// Returns the rows of a version without empty columns and without the tables that only this version has.
fn normalized(mut rows: Value, had: &[String]) -> Value {
    let Some(tables) = rows.as_object_mut() else { return rows };
    tables.retain(|name, rows| had.contains(name) || rows.as_array().is_some_and(|rows| !rows.is_empty()));
    for row in tables.values_mut().filter_map(Value::as_array_mut).flatten() {
        // Earlier versions did not number their records.
        let is_said = |name: &String, value: &mut Value| name != "changed" && !value.is_null();
        row.as_object_mut().into_iter().for_each(|row| row.retain(is_said));
    }
    rows
}

/// Returns the dictionary of packed studies.
fn dictionary() -> Vec<u8> {
    let (tables, words) = (
        include_bytes!("../../src/search/dictionary.tables"),
        include_bytes!("../../src/search/dictionary.txt"),
    );
    [&tables[..], words].concat()
}

/// Returns all rows by table, and each column by name. JSON in columns is parsed, and packed text is unpacked.
fn rows(database: &Connection) -> rusqlite::Result<Value> {
    let mut tables = Map::new();
    for table in tables_of(database)? {
        let mut statement = database.prepare(&format!("SELECT * FROM {table}"))?;
        let names: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let rows = statement.query_map([], |row| {
            let columns = names.iter().map(|name| Ok((name.clone(), value(row.get_ref(&**name)?))));
            let mut columns = columns.collect::<rusqlite::Result<Map<String, Value>>>()?;
            if let Ok(ValueRef::Blob(packed)) = row.get_ref("packed") {
                let text = zstd::stream::Decoder::with_dictionary(packed, &dictionary())
                    .and_then(io::read_to_string);
                columns.insert("study".to_owned(), value(ValueRef::Text(text.unwrap().as_bytes())));
                columns.insert("packed".to_owned(), Value::Null);
            }
            Ok(Value::Object(columns))
        })?;
        let rows = rows.collect::<rusqlite::Result<Vec<Value>>>()?;
        tables.insert(table, Value::Array(rows));
    }
    Ok(Value::Object(tables))
}

fn value(column: ValueRef<'_>) -> Value {
    match column {
        ValueRef::Null => Value::Null,
        ValueRef::Integer(number) => number.into(),
        ValueRef::Real(number) => number.into(),
        ValueRef::Text(text) | ValueRef::Blob(text) => {
            let text = String::from_utf8_lossy(text);
            let is_json = text.starts_with('{');
            is_json.then(|| serde_json::from_str(&text).ok()).flatten().unwrap_or_else(|| text.into())
        }
    }
}

fn tables_of(database: &Connection) -> rusqlite::Result<Vec<String>> {
    let sql = "SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name";
    database.prepare(sql)?.query_map([], |row| row.get(0))?.collect()
}

/// Returns the database as SQL that creates it again.
fn dump(database: &Connection) -> rusqlite::Result<String> {
    let number = |pragma| database.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let mut lines = vec![
        format!("PRAGMA application_id = {};", number("application_id")?),
        format!("PRAGMA user_version = {};", number("user_version")?),
    ];
    let schema = "SELECT sql || ';' FROM sqlite_schema WHERE sql IS NOT NULL AND name NOT LIKE 'sqlite_%'";
    let mut statement = database.prepare(schema)?;
    lines.extend(statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()?);
    for table in tables_of(database)? {
        let statement = database.prepare(&format!("SELECT * FROM {table}"))?;
        let names = statement.column_names().collect::<Vec<_>>().join(", ");
        let quoted = names.split(", ").map(|name| format!("quote({name})")).collect::<Vec<_>>();
        let sql = format!("SELECT {} FROM {table}", quoted.join(" || ', ' || "));
        let mut statement = database.prepare(&sql)?;
        for row in statement.query_map([], |row| row.get::<_, String>(0))? {
            lines.push(format!("INSERT INTO {table} ({names}) VALUES ({});", row?));
        }
    }
    Ok(lines.join("\n"))
}
