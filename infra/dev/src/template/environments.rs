//! The parameters of each environment in `samconfig.toml`.

use std::collections::BTreeMap;

use toml::Value;

/// The error of an invalid `samconfig.toml`.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The text is not TOML.
    #[error("the configuration of SAM is not TOML")]
    Toml(#[from] toml::de::Error),
    /// An override that is not `Name=Value`.
    #[error("environment {environment} has a parameter override that is not Name=Value: {text}")]
    Override {
        /// The environment.
        environment: String,
        /// The invalid override.
        text: String,
    },
}

/// The values of parameters that differ from their defaults.
pub type Values = BTreeMap<String, String>;

/// Returns the environments with their values, ordered by name.
///
/// # Errors
/// Returns an error if the text is invalid.
pub fn read(text: &str) -> Result<BTreeMap<String, Values>, ConfigError> {
    let config: BTreeMap<String, Value> = toml::from_str(text)?;
    let environments = config.into_iter().filter(|(_, value)| value.is_table());
    environments.map(|(name, commands)| Ok((name.clone(), overrides(&name, &commands)?))).collect()
}

fn overrides(environment: &str, commands: &Value) -> Result<Values, ConfigError> {
    let of = |command: &str| commands.get(command)?.get("parameters")?.get("parameter_overrides");
    let items: Vec<&str> = match of("deploy").or_else(|| of("global")) {
        Some(Value::String(text)) => text.split_whitespace().collect(),
        Some(Value::Array(items)) => items.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let pair = |item: &str| match item.split_once('=') {
        Some((name, value)) => Ok((name.to_owned(), value.trim_matches('"').to_owned())),
        None => Err(ConfigError::Override { environment: environment.to_owned(), text: item.to_owned() }),
    };
    items.into_iter().map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_have_their_overrides() {
        let text = "version = 0.1\n[default.global.parameters]\nstack_name = 's'\n\
            [dev.deploy.parameters]\nparameter_overrides = 'Mode=optimistic Days=\"3\"'\n\
            [prod.deploy.parameters]\nparameter_overrides = ['Days=7']\n";
        let environments = read(text).unwrap();
        assert_eq!(environments.keys().collect::<Vec<_>>(), ["default", "dev", "prod"]);
        assert!(environments["default"].is_empty());
        assert_eq!(environments["dev"]["Days"], "3");
        assert_eq!(environments["prod"]["Days"], "7");
    }

    #[test]
    fn override_without_value_is_rejected() {
        let text = "[dev.deploy.parameters]\nparameter_overrides = 'Mode'\n";
        assert!(matches!(read(text), Err(ConfigError::Override { .. })));
    }
}
