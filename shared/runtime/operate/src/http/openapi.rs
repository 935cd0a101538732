//! Completion of descriptions: what several operations or schemas have in common.

use std::collections::BTreeMap;

use axum::http::Method;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{AllOf, Object, Schema};
use utoipa::openapi::{Components, OpenApi, PathItem, Ref, RefOr, Response};

/// Error responses by status.
pub type Errors = BTreeMap<String, RefOr<Response>>;

/// Describes each error that operations share once, as a component, and refers to it. `others` describes the same errors
/// in other words. Requests with a body get the errors `of_bodies`.
pub fn share_errors(api: &mut OpenApi, errors: &Errors, of_bodies: &Errors, others: &Errors) {
    let components = api.components.get_or_insert_with(Components::default);
    for (status, error) in errors.iter().chain(of_bodies) {
        components.responses.insert(error_name(status).to_owned(), error.clone());
    }
    let shared = |status: &str| RefOr::Ref(Ref::from_response_name(error_name(status)));
    for (_, operation) in api.paths.paths.values_mut().flat_map(operations) {
        for (status, response) in &mut operation.responses.responses {
            if [errors.get(status), others.get(status)].contains(&Some(&*response)) {
                *response = shared(status);
            }
        }
        if operation.request_body.is_some() {
            for status in of_bodies.keys() {
                operation.responses.responses.entry(status.clone()).or_insert_with(|| shared(status));
            }
        }
    }
}

fn error_name(status: &str) -> &'static str {
    match status {
        "400" => "BadRequest",
        "403" => "Forbidden",
        "404" => "NotFound",
        "409" => "Conflict",
        "413" => "TooLarge",
        "415" => "UnsupportedMediaType",
        _ => "Unavailable",
    }
}

/// Returns the operations of a path with their methods.
pub fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let all =
        [(Method::GET, &mut item.get), (Method::POST, &mut item.post), (Method::DELETE, &mut item.delete)];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Replaces each combination of objects (`allOf`) by one object with all of their fields, and removes the schemas that
/// nothing refers to afterwards. APIs that name instances differently share the other fields of their views, which is
/// irrelevant to clients.
pub fn merge_fields(api: &mut OpenApi) {
    let Some(components) = &mut api.components else { return };
    let merged = merged(components);
    // Text and numbers are always JSON.
    let text = serde_json::to_string(api).unwrap_or_default();
    let is_used = |name: &str| text.contains(&format!("\"#/components/schemas/{name}\""));
    if let Some(components) = &mut api.components {
        components.schemas.retain(|name, _| !merged.contains(name) || is_used(name));
    }
}

/// Merges the objects of each combination. Returns the names of the schemas that were merged into others.
fn merged(components: &mut Components) -> Vec<String> {
    let mut merged = Vec::new();
    let names: Vec<String> = components.schemas.keys().cloned().collect();
    for name in names {
        let Some(RefOr::T(Schema::AllOf(combined))) = components.schemas.get(&name) else { continue };
        let Some((object, parts)) = object(combined, components) else { continue };
        merged.extend(parts);
        components.schemas.insert(name, RefOr::T(Schema::Object(object)));
    }
    merged
}

/// Returns the fields of all objects of a combination, and the names of those that are referred to; `None` if some part
/// is not an object.
fn object(combined: &AllOf, components: &Components) -> Option<(Object, Vec<String>)> {
    let (mut whole, mut names) = (Object::default(), Vec::new());
    for item in &combined.items {
        let part = match item {
            RefOr::T(Schema::Object(part)) => part,
            RefOr::Ref(reference) => {
                let name = reference.ref_location.rsplit('/').next()?;
                names.push(name.to_owned());
                match components.schemas.get(name)? {
                    RefOr::T(Schema::Object(part)) => part,
                    _ => return None,
                }
            }
            RefOr::T(_) => return None,
        };
        whole.schema_type = part.schema_type.clone();
        whole.properties.extend(part.properties.clone());
        whole.required.extend(part.required.clone());
    }
    whole.description.clone_from(&combined.description);
    Some((whole, names))
}
