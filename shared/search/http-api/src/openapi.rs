//! The parts of the description that several operations share: errors, authorization, and formats of exports.

use axum::http::Method;
use operate::http::openapi as shared;
use operate::http::problem::CommonErrors as OperatorErrors;
use utoipa::openapi::schema::{AllOf, ObjectBuilder, OneOf, Schema, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::{Components, ContentBuilder, OpenApi, RefOr, Response};
use utoipa::{IntoResponses, PartialSchema, ToSchema};

use super::extract::only_reads;
use super::problem::{BodyErrors, CommonErrors, Problem};

/// The name of the security scheme.
const TOKEN: &str = "token";

/// Names the shared errors once, and adds the scope of each operation.
pub(super) fn complete(api: &mut OpenApi) {
    shared::merge_fields(api);
    // Handlers of every system describe the same errors in other words.
    let of_operators = OperatorErrors::responses();
    shared::share_errors(api, &CommonErrors::responses(), &BodyErrors::responses(), &of_operators);
    let components = api.components.get_or_insert_with(Components::default);
    let scheme = HttpBuilder::new()
        .scheme(HttpAuthScheme::Bearer)
        .description(Some(
            "A deployment with sign-in verifies the access token and its scope. A local server on an address that is \
             not a loopback address prints its token when it starts.",
        ))
        .build();
    components.add_security_scheme(TOKEN, SecurityScheme::Http(scheme));
    // It also has the errors of single files, which problems of operators never have.
    components.schemas.insert(Problem::name().into_owned(), Problem::schema());
    complete_variants(components);
    for (path, item) in &mut api.paths.paths {
        for (method, operation) in shared::operations(item) {
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

/// Returns the scope that an operation needs.
fn scope(method: &Method, path: &str) -> &'static str {
    match only_reads(method, path) {
        _ if path.starts_with("/admin/") => "operate",
        true => "read",
        false => "write",
    }
}
