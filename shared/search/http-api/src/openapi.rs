//! The parts of the description that several operations share: errors, authorization, and formats of exports.

use axum::http::Method;
use utoipa::IntoResponses;
use utoipa::openapi::path::Operation;
use utoipa::openapi::schema::{AllOf, ObjectBuilder, OneOf, Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, ContentBuilder, OpenApi, PathItem, Ref, RefOr, Response};

use super::extract::only_reads;
use super::problem::{BodyErrors, CommonErrors};

/// The name of the security scheme.
const TOKEN: &str = "token";

/// Names the shared errors once, and adds the scope of each operation.
pub(super) fn complete(api: &mut OpenApi) {
    let (errors, of_bodies) = (CommonErrors::responses(), BodyErrors::responses());
    let components = api.components.get_or_insert_with(Components::default);
    for (status, error) in errors.iter().chain(&of_bodies) {
        components.responses.insert(name(status).to_owned(), error.clone());
    }
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "A deployment with sign-in verifies the access token and its scope. A local server on an address that is \
             not a loopback address prints its token when it starts.",
        ))
        .build();
    components.add_security_scheme(TOKEN, SecurityScheme::Http(scheme));
    complete_variants(components);
    for (path, item) in &mut api.paths.paths {
        for (method, operation) in operations(item) {
            for (status, response) in &mut operation.responses.responses {
                if errors.get(status) == Some(response) {
                    *response = RefOr::Ref(Ref::from_response_name(name(status)));
                }
            }
            if operation.request_body.is_some() {
                for status in of_bodies.keys() {
                    let shared = || RefOr::Ref(Ref::from_response_name(name(status)));
                    operation.responses.responses.entry(status.clone()).or_insert_with(shared);
                }
            }
            if let Some(RefOr::T(response)) = operation.responses.responses.get_mut("200") {
                add_formats(response);
            }
            let scope = SecurityRequirement::new(TOKEN, [scope(&method, path)]);
            // A local server on a loopback address needs no token.
            operation.security = Some(vec![scope, SecurityRequirement::default()]);
        }
    }
}

/// Adds the fields that all variants of a type share to each variant. Generators of clients cannot read a schema that
/// combines an object with a choice (`allOf` with `oneOf`).
fn complete_variants(components: &mut Components) {
    let schemas = &mut components.schemas;
    let names: Vec<String> = schemas.keys().cloned().collect();
    for name in names {
        let Some(RefOr::T(Schema::AllOf(combined))) = schemas.get(&name) else { continue };
        let mut referred = combined.items.iter().filter_map(reference);
        let Some((variants, choice)) = referred.find_map(|name| match schemas.get(name)? {
            RefOr::T(Schema::OneOf(choice)) => Some((name.to_owned(), with_fields(choice, combined))),
            _ => None,
        }) else {
            continue;
        };
        schemas.remove(&variants);
        schemas.insert(name, RefOr::T(Schema::OneOf(choice)));
    }
}

/// Returns the name of the referred schema.
fn reference(schema: &RefOr<Schema>) -> Option<&str> {
    match schema {
        RefOr::Ref(reference) => reference.ref_location.rsplit('/').next(),
        RefOr::T(_) => None,
    }
}

/// Returns a choice whose variants have the fields of the objects that it is combined with.
fn with_fields(choice: &OneOf, combined: &AllOf) -> OneOf {
    let mut choice = OneOf { description: combined.description.clone(), ..choice.clone() };
    for variant in &mut choice.items {
        let RefOr::T(Schema::Object(variant)) = variant else { continue };
        for item in &combined.items {
            if let RefOr::T(Schema::Object(shared)) = item {
                variant.properties.extend(shared.properties.clone());
                variant.required.extend(shared.required.clone());
            }
        }
    }
    choice
}

/// Adds the media types of the other formats to the response of an export.
fn add_formats(response: &mut Response) {
    if !response.content.contains_key(writers::Format::Jsonl.media_type()) {
        return;
    }
    for format in writers::Format::ALL {
        let bytes = ObjectBuilder::new().schema_type(Type::String);
        // Parameters are not part of the name of a media type.
        let media_type = format.media_type().split(';').next().unwrap_or_default();
        let content = || RefOr::T(ContentBuilder::new().schema(Some(bytes)).build());
        response.content.entry(media_type.to_owned()).or_insert_with(content);
    }
}

fn operations(item: &mut PathItem) -> impl Iterator<Item = (Method, &mut Operation)> {
    let all =
        [(Method::GET, &mut item.get), (Method::POST, &mut item.post), (Method::DELETE, &mut item.delete)];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_mut()?)))
}

/// Returns the scope that an operation needs.
fn scope(method: &Method, path: &str) -> &'static str {
    match only_reads(method, path) {
        _ if path.starts_with("/admin/") => "operate",
        true => "read",
        false => "write",
    }
}

fn name(status: &str) -> &'static str {
    match status {
        "400" => "BadRequest",
        "403" => "Forbidden",
        "404" => "NotFound",
        "413" => "TooLarge",
        "415" => "UnsupportedMediaType",
        _ => "Unavailable",
    }
}
