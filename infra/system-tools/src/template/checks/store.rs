//! Checks of the table with the documents, if they are in DynamoDB.

use saga::{Service, System};
use serde_json::Value;

use super::Finding;
use crate::template::Template;
use crate::template::view::{Function, referred};

/// Returns the value of the setting with the table of the documents. `Null` if it is not set.
pub(super) fn of_function<'a, P>(system: &System<P>, function: &Function<'a>) -> &'a Value {
    let setting = backend::store_table(system.name);
    setting.map_or(&Value::Null, |name| &function.properties["Environment"]["Variables"][name])
}

/// Returns `true` if the documents are in DynamoDB: a function has the setting of their table.
pub(super) fn is_dynamo<P>(system: &System<P>, template: &Template) -> bool {
    template.functions().any(|function| !of_function(system, &function).is_null())
}

/// All functions have the same table of documents, with the key, the indexes and the expiry that the adapter uses.
pub(crate) fn table<P>(system: &System<P>, template: &Template) -> Vec<Finding> {
    let functions: Vec<Function<'_>> = template
        .functions()
        .filter(|function| {
            function
                .declaration(system)
                .is_some_and(|declared| declared.services.contains(&Service::DATABASE))
        })
        .collect();
    let tables = functions.iter().map(|function| (function.id, of_function(system, function)));
    let mut tables = tables.filter(|(_, table)| !table.is_null());
    let Some((_, first)) = tables.next() else { return Vec::new() };
    let mut findings: Vec<Finding> = tables
        .filter(|(_, table)| *table != first)
        .map(|(id, _)| Finding::new(id, "has another table of documents than the other functions"))
        .collect();
    // A restored table is not a resource of the stack.
    if let Some(id) = referred(first) {
        match template.of_type("AWS::DynamoDB::Table").find(|(table, _)| *table == id) {
            Some((id, properties)) => findings.extend(differences(id, properties)),
            None => findings.push(Finding::new(id, "is not a table of the template")),
        }
    }
    findings
}

/// Returns the differences of a table from its description. Additional indexes are not used by the adapter.
fn differences(id: &str, properties: &Value) -> Vec<Finding> {
    let described = dynamo::table::properties();
    let mut findings = Vec::new();
    for name in ["KeySchema", "TimeToLiveSpecification"] {
        if properties[name] != described[name] {
            findings.push(Finding::new(id, format!("has another {name} than {}", described[name])));
        }
    }
    for (list, key, kind) in [
        ("GlobalSecondaryIndexes", "IndexName", "index"),
        ("AttributeDefinitions", "AttributeName", "attribute"),
    ] {
        let found = properties[list].as_array().map_or(&[][..], Vec::as_slice);
        let wanted = described[list].as_array().into_iter().flatten();
        for wanted in wanted.filter(|wanted| !found.iter().any(|item| has_all(item, wanted))) {
            let name = wanted[key].as_str().unwrap_or_default();
            findings.push(Finding::new(id, format!("has no {kind} {name} as {wanted}")));
        }
    }
    findings
}

/// Returns `true` if a value has all properties of another. The table may have further properties, such as a
/// throughput.
fn has_all(value: &Value, wanted: &Value) -> bool {
    wanted.as_object().into_iter().flatten().all(|(name, property)| value[name] == *property)
}
