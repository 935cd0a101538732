//! The descriptions of the HTTP API and of the messages, of which there are copies for whoever generates code from them.

use std::collections::BTreeSet;
use std::path::Path;

use functions::api;
use serde_json::Value;

/// Writes the copy anew, when it is set.
const UPDATE: &str = "UPDATE";

fn description() -> Value {
    serde_json::to_value(api::description()).unwrap()
}

#[test]
fn the_copies_in_the_docs_are_what_the_code_says() {
    let copies = [("openapi.json", description()), ("messages.schema.json", imports::schemas::schemas())];
    for (name, said) in copies {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
        let text = format!("{said:#}\n");
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let copy = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(copy == text, "docs/{name} is not what the code says: make openapi writes it anew");
    }
}

#[test]
fn every_operation_has_an_id_of_its_own_and_says_what_it_answers() {
    let description = description();
    let mut ids = BTreeSet::new();
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} is there twice");
            let told = operation["summary"].as_str().or(operation["description"].as_str());
            assert!(told.is_some_and(|told| !told.is_empty()), "{method} {path}");
            for (status, answer) in operation["responses"].as_object().unwrap() {
                assert_ne!(answer["description"], "", "{method} {path}: {status}");
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                assert_ne!(parameter["description"].as_str().unwrap_or_default(), "", "{path}: {parameter}");
            }
        }
    }
    assert!(ids.len() >= 13, "{ids:?}");
}

#[test]
fn every_field_is_described() {
    let description = description();
    for (name, schema) in description["components"]["schemas"].as_object().unwrap() {
        check(name, schema);
    }
}

fn check(name: &str, schema: &Value) {
    for (field, value) in schema["properties"].as_object().into_iter().flatten() {
        // The name of a variant tells what it is.
        let is_tag = value["enum"].as_array().is_some_and(|values| values.len() == 1);
        // A field that may be null has its description beside the name of its schema.
        let parts = value["oneOf"].as_array().into_iter().flatten().chain([value]);
        let is_described =
            parts.into_iter().any(|part| part["description"].as_str().is_some_and(|it| !it.is_empty()));
        assert!(is_tag || is_described, "{name}.{field} is not described: {value}");
    }
    for kind in ["oneOf", "allOf", "anyOf"] {
        for part in schema[kind].as_array().into_iter().flatten() {
            check(name, part);
        }
    }
}
