//! A template as written, with the short forms of intrinsic functions (`!Ref x`) expanded.

use serde_json::{Map, Value, json};
use serde_yaml_ng::Value as Yaml;
use serde_yaml_ng::value::TaggedValue;

/// The error of an invalid template.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The text is not YAML.
    #[error("the template is not YAML")]
    Yaml(#[from] serde_yaml_ng::Error),
    /// The text is YAML, but not a template.
    #[error("the template has no Resources")]
    NoResources,
    /// A name that is not text.
    #[error("the template has a key that is not text: {0}")]
    Key(String),
    /// A value that JSON cannot represent.
    #[error("the template has a number that JSON does not know")]
    Number,
}

/// A template as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Source(pub(crate) Value);

impl Source {
    /// Reads a template.
    ///
    /// # Errors
    /// Returns an error if the text is not a template.
    pub fn read(text: &str) -> Result<Self, SourceError> {
        let template = json_of(serde_yaml_ng::from_str(text)?)?;
        if template["Resources"].is_object() { Ok(Self(template)) } else { Err(SourceError::NoResources) }
    }

    /// Returns its parameters with their defaults.
    pub fn defaults(&self) -> impl Iterator<Item = (&str, Option<&Value>)> {
        let parameters = self.0["Parameters"].as_object().into_iter().flatten();
        parameters.map(|(name, parameter)| (name.as_str(), parameter.get("Default")))
    }
}

fn json_of(yaml: Yaml) -> Result<Value, SourceError> {
    Ok(match yaml {
        Yaml::Null => Value::Null,
        Yaml::Bool(value) => Value::Bool(value),
        Yaml::Number(value) => serde_json::to_value(value).map_err(|_| SourceError::Number)?,
        Yaml::String(value) => Value::String(value),
        Yaml::Sequence(items) => items.into_iter().map(json_of).collect::<Result<_, _>>()?,
        Yaml::Mapping(pairs) => {
            let pair = |(key, value): (Yaml, Yaml)| match key {
                Yaml::String(key) => Ok((key, json_of(value)?)),
                other => Err(SourceError::Key(format!("{other:?}"))),
            };
            Value::Object(pairs.into_iter().map(pair).collect::<Result<Map<_, _>, _>>()?)
        }
        Yaml::Tagged(tagged) => intrinsic(*tagged)?,
    })
}

fn intrinsic(tagged: TaggedValue) -> Result<Value, SourceError> {
    let tag = tagged.tag.to_string();
    let name = tag.trim_start_matches('!');
    let argument = json_of(tagged.value)?;
    Ok(match (name, argument) {
        ("Ref" | "Condition", argument) => json!({ name: argument }),
        ("GetAtt", Value::String(path)) => {
            let (resource, attribute) = path.split_once('.').unwrap_or((&path, ""));
            json!({ "Fn::GetAtt": [resource, attribute] })
        }
        (name, argument) => json!({ format!("Fn::{name}"): argument }),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_forms_are_expanded() {
        let text = "Resources:\n  A: !If [C, !GetAtt B.Arn, !Ref AWS::NoValue]\n";
        let expected = json!({"Resources": {"A": {"Fn::If":
            ["C", {"Fn::GetAtt": ["B", "Arn"]}, {"Ref": "AWS::NoValue"}]}}});
        assert_eq!(Source::read(text).unwrap().0, expected);
    }

    #[test]
    fn what_is_no_template_is_refused() {
        assert!(matches!(Source::read("[1, 2]"), Err(SourceError::NoResources)));
        assert!(matches!(Source::read("a: [1"), Err(SourceError::Yaml(_))));
        assert!(matches!(Source::read("Resources: {1: 2}"), Err(SourceError::Key(_))));
    }
}
