//! The description of parameters whose text is one of a few names. The types have no values.

use imports::JobState;
use operate::http::effects;
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The states of imports.
pub(super) const STATES: [JobState; 5] =
    [JobState::Uploading, JobState::Uploaded, JobState::Parsing, JobState::Completed, JobState::Error];

/// The format of an export.
pub(super) enum ExportFormat {}

/// The studies of a list or an export.
pub(super) enum Studies {}

/// Whether a list has duplicates.
pub(super) enum Duplicates {}

/// A tier of duplicates.
pub(super) enum DuplicateTier {}

/// The state of an effect.
pub(super) enum EffectState {}

/// The state of a failure.
pub(super) enum FailureState {}

/// One or several states of imports.
pub(super) enum SearchStates {}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

fn one_of<'a>(names: impl IntoIterator<Item = &'a str>) -> RefOr<Schema> {
    text().enum_values(Some(names)).into()
}

macro_rules! described {
    ($($choice:ident: $schema:expr;)*) => {
        $(
            impl PartialSchema for $choice {
                fn schema() -> RefOr<Schema> {
                    $schema
                }
            }

            impl ToSchema for $choice {}
        )*
    };
}

described! {
    ExportFormat: one_of(writers::Format::ALL.iter().map(|format| format.name()));
    Studies: one_of(["all", "unique", "duplicates"]);
    Duplicates: one_of(["only", "none"]);
    DuplicateTier: one_of(["certain", "likely", "possible"]);
    EffectState: one_of(effects::STATES.iter().map(|state| state.name()));
    FailureState: one_of(["open", "retrying", "retried", "closed", "archived"]);
    SearchStates: {
        let names = STATES.map(|state| state.to_string()).join("|");
        text().pattern(Some(format!("^({names})(,({names}))*$"))).into()
    };
}
