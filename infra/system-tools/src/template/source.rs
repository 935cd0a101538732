//! A template as written, with short forms of intrinsic functions (`!Ref x`) and loops (`Fn::ForEach`) expanded.

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
    #[error("the template has a number that JSON cannot represent")]
    Number,
    /// A loop without an identifier, a list of values and a body.
    #[error("the template has a loop that is not [identifier, [values], body]: {0}")]
    Loop(String),
    /// A name that a loop or another template of the deployment uses as well.
    #[error("{0} is defined twice")]
    Twice(String),
}

/// The beginning of the name of a loop.
const LOOP: &str = "Fn::ForEach::";

/// A template as written.
#[derive(Debug, Clone, PartialEq)]
pub struct Source(pub(crate) Value);

impl Source {
    /// Reads a template.
    ///
    /// # Errors
    /// Returns an error if the text is not a template.
    pub fn read(text: &str) -> Result<Self, SourceError> {
        let mut template = json_of(serde_yaml_ng::from_str(text)?)?;
        let Some(resources) = template["Resources"].as_object() else { return Err(SourceError::NoResources) };
        template["Resources"] = Value::Object(unrolled(resources)?);
        Ok(Self(template))
    }

    /// Returns the parameters of the template with their defaults.
    pub fn defaults(&self) -> impl Iterator<Item = (&str, Option<&Value>)> {
        let parameters = self.0["Parameters"].as_object().into_iter().flatten();
        parameters.map(|(name, parameter)| (name.as_str(), parameter.get("Default")))
    }
}

/// Returns a section with the results of its loops in their places
/// (<https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference-foreach.html>).
fn unrolled(section: &Map<String, Value>) -> Result<Map<String, Value>, SourceError> {
    let mut result = Map::new();
    for (name, value) in section {
        let found = if name.starts_with(LOOP) {
            rounds(name, value)?
        } else {
            Map::from_iter([(name.clone(), value.clone())])
        };
        for (name, value) in found {
            if result.insert(name.clone(), value).is_some() {
                return Err(SourceError::Twice(name));
            }
        }
    }
    Ok(result)
}

fn rounds(name: &str, value: &Value) -> Result<Map<String, Value>, SourceError> {
    let parts = (value[0].as_str(), value[1].as_array(), value[2].as_object());
    let (Some(identifier), Some(values), Some(body)) = parts else {
        return Err(SourceError::Loop(name.to_owned()));
    };
    let mut result = Map::new();
    for value in values.iter().filter_map(Value::as_str) {
        for (name, found) in unrolled(&filled_in(body, identifier, value))? {
            if result.insert(name.clone(), found).is_some() {
                return Err(SourceError::Twice(name));
            }
        }
    }
    Ok(result)
}

/// Returns the body of a loop with a value for its identifier, in names and values.
fn filled_in(body: &Map<String, Value>, identifier: &str, by: &str) -> Map<String, Value> {
    let written = format!("${{{identifier}}}");
    body.iter().map(|(name, value)| (name.replace(&written, by), filled(value, identifier, by))).collect()
}

fn filled(value: &Value, identifier: &str, by: &str) -> Value {
    match value {
        Value::String(text) => Value::String(text.replace(&format!("${{{identifier}}}"), by)),
        Value::Array(items) => items.iter().map(|item| filled(item, identifier, by)).collect(),
        Value::Object(map) if map.len() == 1 && map.get("Ref").is_some_and(|name| name == identifier) => {
            Value::String(by.to_owned())
        }
        Value::Object(map) => Value::Object(filled_in(map, identifier, by)),
        other => other.clone(),
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

/// Returns a value such as an ARN as text, with a reference to `Resource.Arn` as `${Resource.Arn}`.
pub fn text(value: &Value) -> String {
    let reference = value["Ref"].as_str().map(|id| format!("${{{id}}}"));
    let attribute = || {
        let parts = value["Fn::GetAtt"].as_array()?;
        Some(format!("${{{}.{}}}", parts.first()?.as_str()?, parts.get(1)?.as_str()?))
    };
    let plain = || value.as_str().map(str::to_owned);
    reference.or_else(attribute).or_else(plain).unwrap_or_else(|| value.to_string())
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
    fn loops_are_expanded() {
        let text = "Resources:\n  Fn::ForEach::Queues:\n    - Of\n    - [Saga, Parse]\n    - ${Of}Queue:\n        \
                    Name: !Sub [\"${AWS::StackName}-${Name}\", { Name: !FindInMap [Queues, !Ref Of, Name] }]\n  A: 1\n";
        let queue = |of: &str| {
            json!({"Name": {"Fn::Sub": ["${AWS::StackName}-${Name}",
            {"Name": {"Fn::FindInMap": ["Queues", of, "Name"]}}]}})
        };
        let expected =
            json!({"Resources": {"SagaQueue": queue("Saga"), "ParseQueue": queue("Parse"), "A": 1}});
        assert_eq!(Source::read(text).unwrap().0, expected);
    }

    #[test]
    fn duplicate_or_empty_loops_are_refused() {
        let twice = "Resources:\n  AQueue: 1\n  Fn::ForEach::Q: [Of, [A], {\"${Of}Queue\": 2}]\n";
        assert!(matches!(Source::read(twice), Err(SourceError::Twice(name)) if name == "AQueue"));
        let fixed = "Resources:\n  Fn::ForEach::Q: [Of, [A, B], {Queue: 2}]\n";
        assert!(matches!(Source::read(fixed), Err(SourceError::Twice(name)) if name == "Queue"));
        let odd = "Resources:\n  Fn::ForEach::Q: [Of, A, {Queue: 2}]\n";
        assert!(matches!(Source::read(odd), Err(SourceError::Loop(_))));
    }

    #[test]
    fn other_documents_are_refused() {
        assert!(matches!(Source::read("[1, 2]"), Err(SourceError::NoResources)));
        assert!(matches!(Source::read("a: [1"), Err(SourceError::Yaml(_))));
        assert!(matches!(Source::read("Resources: {1: 2}"), Err(SourceError::Key(_))));
    }
}
