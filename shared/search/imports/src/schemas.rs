//! JSON Schemas of the messages for other programs, generated from the types that are sent.

use ::messages::{Kind, Message, Payload};
use schemars::generate::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::messages::{
    CompareStudies, ImportEvent, LookForUploads, MakeExport, ParseCommand, ParseTimeout,
    ReferenceFileFaulted, ReferenceFileParsingCompleted, SearchEvent, SearchImportEnded, SearchUploadSaved,
    SearchUploadStarted, SearchWithdrawn, StartParsing, StartParsingFaulted, TakeBackFiles, UploadTimeout,
    UploadsFound,
};

/// Returns the JSON Schema (draft 2020-12) of all messages. Each message has a definition with its name, and the
/// `type` field distinguishes them.
pub fn schemas() -> Value {
    let mut generator = SchemaGenerator::default();
    let envelope = Message::schema().to_value();
    let mut messages = Map::new();
    for (kind, system) in kinds() {
        let data = data(&mut generator, kind.name);
        messages.insert(kind.name.to_owned(), message(&envelope, kind, system, data));
    }
    let any: Vec<Value> = messages.keys().map(|name| json!({ "$ref": format!("#/$defs/{name}") })).collect();
    // Messages often have the same name as their data, so the data gets a different name.
    let parts =
        generator.take_definitions(true).into_iter().map(|(name, part)| (format!("{name}Data"), part));
    let mut definitions: Map<String, Value> = parts.collect();
    definitions.extend(messages);
    let mut document = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Messages of search-import",
        "oneOf": any,
        "$defs": definitions,
    });
    refer_to_data(&mut document["$defs"]);
    document
}

/// Returns every kind of message with its system.
fn kinds() -> impl Iterator<Item = (&'static Kind, &'static str)> {
    fn of<P: Payload>() -> impl Iterator<Item = (&'static Kind, &'static str)> {
        P::KINDS.iter().map(|kind| (kind, P::SYSTEM))
    }
    of::<SearchEvent>().chain(of::<ParseCommand>()).chain(of::<ImportEvent>())
}

/// Returns the schema of a message's data; kinds that are not listed accept anything.
fn data(generator: &mut SchemaGenerator, name: &str) -> Value {
    let schema = match name {
        "SearchUploadStarted" => generator.subschema_for::<SearchUploadStarted>(),
        "SearchUploadSaved" => generator.subschema_for::<SearchUploadSaved>(),
        "ReferenceFileParsingCompleted" => generator.subschema_for::<ReferenceFileParsingCompleted>(),
        "ReferenceFileFaulted" => generator.subschema_for::<ReferenceFileFaulted>(),
        "StartParsingFaulted" => generator.subschema_for::<StartParsingFaulted>(),
        "UploadTimeout" => generator.subschema_for::<UploadTimeout>(),
        "UploadsFound" => generator.subschema_for::<UploadsFound>(),
        "ParseTimeout" => generator.subschema_for::<ParseTimeout>(),
        "SearchWithdrawn" => generator.subschema_for::<SearchWithdrawn>(),
        "StartParsing" => generator.subschema_for::<StartParsing>(),
        "LookForUploads" => generator.subschema_for::<LookForUploads>(),
        "TakeBackFiles" => generator.subschema_for::<TakeBackFiles>(),
        "MakeExport" => generator.subschema_for::<MakeExport>(),
        "CompareStudies" => generator.subschema_for::<CompareStudies>(),
        "SearchImportCompleted" | "SearchImportFailed" => generator.subschema_for::<SearchImportEnded>(),
        _ => return Value::Bool(true),
    };
    schema.to_value()
}

/// Returns the schema of one kind of message: the envelope with its data.
fn message(envelope: &Value, kind: &Kind, system: &str, data: Value) -> Value {
    let mut message = envelope.clone();
    if let Some(fields) = message.as_object_mut() {
        fields.remove("$schema");
        fields.insert("title".to_owned(), kind.name.into());
    }
    message["properties"]["type"] = json!({ "const": format!("{system}.{}.v{}", kind.name, kind.version) });
    message["properties"]["data"] = data;
    message
}

/// Renames references in the same way as the definitions.
fn refer_to_data(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(Value::String(reference)) = fields.get_mut("$ref") {
                reference.push_str("Data");
            }
            fields.values_mut().for_each(refer_to_data);
        }
        Value::Array(items) => items.iter_mut().for_each(refer_to_data),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_message_kind_has_a_data_schema() {
        let schemas = schemas();
        let definitions = schemas["$defs"].as_object().unwrap();
        for (kind, system) in kinds() {
            let message = &definitions[kind.name];
            assert_eq!(
                message["properties"]["type"]["const"],
                format!("{system}.{}.v{}", kind.name, kind.version)
            );
            let data = message["properties"]["data"]["$ref"].as_str();
            let named = data.and_then(|data| data.strip_prefix("#/$defs/")).unwrap_or_default();
            assert!(definitions[named]["properties"].is_object(), "{}: {data:?}", kind.name);
        }
    }
}
