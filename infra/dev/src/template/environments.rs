//! The parameters of an environment, in a file of the folder `config`.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Value;

use crate::template::Limits;

/// The error of an invalid file.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The text is not TOML, or has other tables or limits.
    #[error("the file is not a configuration of an environment")]
    Toml(#[from] toml::de::Error),
    /// A value that is neither text, a number, a truth value nor a list of them.
    #[error("the parameter {0} is a table or a date")]
    Parameter(String),
}

/// The values of parameters that differ from their defaults.
pub type Values = BTreeMap<String, String>;

/// An environment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    /// The parameters of the environment.
    pub values: Values,
    /// The limits of the environment.
    pub limits: Limits,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    parameters: BTreeMap<String, Value>,
    #[serde(default)]
    limits: LimitValues,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct LimitValues {
    mongodb_connections: Option<u64>,
    account_concurrency: Option<u64>,
}

/// Reads the file of an environment.
pub fn read(text: &str) -> Result<Environment, ConfigError> {
    let file: File = toml::from_str(text)?;
    let values = file.parameters.into_iter().map(|(name, value)| {
        let value = written(&value).ok_or_else(|| ConfigError::Parameter(name.clone()))?;
        Ok((name, value))
    });
    let default = Limits::default();
    let limits = Limits {
        mongodb_connections: file.limits.mongodb_connections.unwrap_or(default.mongodb_connections),
        account_concurrency: file.limits.account_concurrency.unwrap_or(default.account_concurrency),
    };
    Ok(Environment { values: values.collect::<Result<_, ConfigError>>()?, limits })
}

/// Returns a value as CloudFormation receives it.
fn written(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Boolean(value) => Some(value.to_string()),
        Value::Array(items) => Some(items.iter().map(written).collect::<Option<Vec<_>>>()?.join(",")),
        Value::Float(_) | Value::Datetime(_) | Value::Table(_) => None,
    }
}
