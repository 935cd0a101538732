//! The generated descriptions of the HTTP API and of the messages, which are committed for code generators.

use std::collections::BTreeSet;
use std::path::Path;

use http_api as api;
use serde_json::Value;

/// The environment variable that makes the test update the committed descriptions.
const UPDATE: &str = "UPDATE";

fn description() -> Value {
    serde_json::to_value(api::description()).unwrap()
}

#[test]
fn committed_descriptions_are_current() {
    let operator = serde_json::to_value(operate::http::description()).unwrap();
    let copies = [
        ("openapi.json", description()),
        ("operator-api.json", operator),
        ("messages.schema.json", imports::schemas::schemas()),
    ];
    for (name, description) in copies {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs").join(name);
        let text = format!("{description:#}\n");
        if std::env::var_os(UPDATE).is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let copy = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(copy == text, "docs/{name} is outdated: run `make openapi`");
    }
}

#[test]
fn operations_have_unique_ids_and_descriptions() {
    let description = description();
    let mut ids = BTreeSet::new();
    for (path, operations) in description["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(ids.insert(id.to_owned()), "{id} is not unique");
            let summary = operation["summary"].as_str().or(operation["description"].as_str());
            assert!(summary.is_some_and(|told| !told.is_empty()), "{method} {path}");
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
        // The name of a variant describes it.
        let is_tag = value["enum"].as_array().is_some_and(|values| values.len() == 1);
        // A nullable field has its description next to the reference to its schema.
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
