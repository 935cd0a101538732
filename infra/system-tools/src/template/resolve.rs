//! Resolving a template for given values of its parameters.
//!
//! The result has no parameters and conditions. References to resources stay as they are, in `Fn::Sub` as
//! `${Resource.Attribute}`, because only AWS knows their values.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::template::source::{Source, SourceError, text};

/// A template with evaluated parameters and conditions, and SAM's `Globals` merged into its functions.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The values of the parameters.
    pub parameters: BTreeMap<String, Value>,
    /// `Resources`, by logical id.
    pub resources: Map<String, Value>,
    /// Violations of the template's own `Rules`, which CloudFormation checks before it deploys anything.
    pub refused: Vec<String>,
    /// The limits of the account and the database, which the functions have to respect.
    pub limits: Limits,
}

/// Limits of the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// The maximum number of connections to one MongoDB server.
    pub mongodb_connections: u64,
    /// The maximum number of concurrent executions of the account.
    pub account_concurrency: u64,
}

impl Default for Limits {
    /// The limits of a dedicated cluster, and of an account whose limit was raised to the default of old accounts.
    fn default() -> Self {
        Self { mongodb_connections: 1_500, account_concurrency: 1_000 }
    }
}

/// The parameters of the other templates that the deployment takes from the application's stack.
const OF_APPLICATION: [(&str, &str); 3] =
    [("Application", "${AWS::StackName}"), ("ApplicationRegion", "${AWS::Region}"), ("ApiId", "${HttpApi}")];

/// Evaluates a template.
struct Resolver<'a> {
    parameters: &'a BTreeMap<String, Value>,
    conditions: &'a Value,
    mappings: &'a Value,
}

impl Template {
    /// Resolves the template for these values of its parameters. The other parameters have their defaults.
    pub fn new(source: &Source, values: &BTreeMap<String, String>) -> Self {
        let parameters = parameters(&source.0["Parameters"], values);
        let resolver = Resolver {
            parameters: &parameters,
            conditions: &source.0["Conditions"],
            mappings: &source.0["Mappings"],
        };
        let globals = resolver.value(&source.0["Globals"]["Function"]);
        let resources = source.0["Resources"].as_object().into_iter().flatten();
        let resources = resources.filter_map(|(id, resource)| {
            let exists = resource["Condition"].as_str().is_none_or(|name| resolver.condition(name));
            exists.then(|| (id.clone(), resolver.value(resource).unwrap_or_default()))
        });
        let mut resources: Map<String, Value> = resources.collect();
        for resource in
            resources.values_mut().filter(|resource| resource["Type"] == "AWS::Serverless::Function")
        {
            merge(&mut resource["Properties"], globals.as_ref().unwrap_or(&Value::Null));
        }
        let refused = resolver.refused(&source.0["Rules"]);
        Self { parameters, resources, refused, limits: Limits::default() }
    }

    /// Resolves the templates of a deployment as one.
    ///
    /// # Errors
    /// Returns an error if a resource is in two of them.
    pub fn of_all<'a>(
        sources: impl IntoIterator<Item = &'a Source>,
        values: &BTreeMap<String, String>,
        limits: Limits,
    ) -> Result<Self, SourceError> {
        let mut all =
            Self { parameters: BTreeMap::new(), resources: Map::new(), refused: Vec::new(), limits };
        for source in sources {
            let one = Self::new(source, values);
            all.parameters.extend(one.parameters);
            all.refused.extend(one.refused);
            for (id, resource) in one.resources {
                if all.resources.insert(id.clone(), resource).is_some() {
                    return Err(SourceError::Twice(id));
                }
            }
        }
        Ok(all)
    }
}

fn parameters(declared: &Value, values: &BTreeMap<String, String>) -> BTreeMap<String, Value> {
    let declared = declared.as_object().into_iter().flatten();
    let parameter = |(name, parameter): (&String, &Value)| {
        let of_application = OF_APPLICATION.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
        let default = || match &parameter["Default"] {
            Value::Null => of_application.unwrap_or_default().to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let text = values.get(name).cloned().unwrap_or_else(default);
        let is_list = parameter["Type"] == "CommaDelimitedList";
        let value = if is_list { text.split(',').collect::<Vec<_>>().into() } else { Value::String(text) };
        (name.clone(), value)
    };
    declared.map(parameter).collect()
}

/// Adds values that `target` does not define itself.
fn merge(target: &mut Value, defaults: &Value) {
    match (target, defaults) {
        (Value::Object(target), Value::Object(defaults)) => {
            for (key, default) in defaults {
                merge(target.entry(key).or_insert(Value::Null), default);
            }
        }
        (target @ Value::Null, defaults) => *target = defaults.clone(),
        _ => {}
    }
}

impl Resolver<'_> {
    /// Evaluates a value; `None` for `AWS::NoValue`.
    fn value(&self, value: &Value) -> Option<Value> {
        match value {
            Value::Array(items) => Some(items.iter().filter_map(|item| self.value(item)).collect()),
            Value::Object(map) => match self.function(map) {
                Some(result) => result,
                None => {
                    let pairs = map.iter().filter_map(|(key, value)| Some((key.clone(), self.value(value)?)));
                    Some(Value::Object(pairs.collect()))
                }
            },
            other => Some(other.clone()),
        }
    }

    /// Evaluates a map that is an intrinsic function, if this function can be evaluated.
    fn function(&self, map: &Map<String, Value>) -> Option<Option<Value>> {
        let (name, argument) = map.iter().next().filter(|_| map.len() == 1)?;
        match name.as_str() {
            "Ref" if argument == "AWS::NoValue" => Some(None),
            "Ref" => self.parameters.get(argument.as_str()?).map(|value| Some(value.clone())),
            "Fn::Sub" => Some(Some(Value::String(self.substituted(argument)?))),
            "Fn::FindInMap" => {
                let key = |index: usize| Some(self.text(argument.get(index)?));
                let found = self.mappings.get(key(0)?)?.get(key(1)?)?.get(key(2)?)?;
                Some(self.value(found))
            }
            "Fn::Select" => {
                let items = self.value(&argument[1])?;
                let index: usize = self.text(&argument[0]).parse().ok()?;
                items.get(index).map(|item| Some(item.clone()))
            }
            "Fn::If" => {
                let branch = if self.condition(argument[0].as_str()?) { 1 } else { 2 };
                Some(self.value(&argument[branch]))
            }
            "Fn::Join" => {
                let items = self.value(&argument[1])?;
                let items: Vec<&str> = items.as_array()?.iter().filter_map(Value::as_str).collect();
                Some(Some(Value::String(items.join(argument[0].as_str()?))))
            }
            _ => None,
        }
    }

    /// Returns the descriptions of the violated assertions.
    fn refused(&self, rules: &Value) -> Vec<String> {
        let rules = rules.as_object().into_iter().flat_map(|rules| rules.values());
        let applying =
            rules.filter(|rule| rule.get("RuleCondition").is_none_or(|condition| self.holds(condition)));
        let assertions = applying.flat_map(|rule| rule["Assertions"].as_array().into_iter().flatten());
        let failing = assertions.filter(|assertion| !self.holds(&assertion["Assert"]));
        failing.filter_map(|assertion| assertion["AssertDescription"].as_str()).map(str::to_owned).collect()
    }

    /// Returns the result of `Fn::Sub`, with references to resources as they are.
    fn substituted(&self, argument: &Value) -> Option<String> {
        let written = argument.as_str().or_else(|| argument[0].as_str())?;
        let own = argument[1].as_object().into_iter().flatten();
        let own = own.map(|(name, value)| (name.clone(), text(&self.value(value).unwrap_or_default())));
        let parameters = self.parameters.iter();
        let parameters =
            parameters.filter_map(|(name, value)| Some((name.clone(), value.as_str()?.to_owned())));
        let fill =
            |text: String, (name, value): (String, String)| text.replace(&format!("${{{name}}}"), &value);
        Some(own.chain(parameters).fold(written.to_owned(), fill))
    }

    fn condition(&self, name: &str) -> bool {
        self.holds(&self.conditions[name])
    }

    fn holds(&self, condition: &Value) -> bool {
        let parts = |name: &str| condition[name].as_array();
        if let Some(sides) = parts("Fn::Equals") {
            return self.text(&sides[0]) == self.text(&sides[1]);
        }
        if let Some(negated) = parts("Fn::Not") {
            return !negated.iter().all(|part| self.holds(part));
        }
        if let Some(all) = parts("Fn::And") {
            return all.iter().all(|part| self.holds(part));
        }
        if let Some(sides) = parts("Fn::EachMemberEquals") {
            let members = self.value(&sides[0]).unwrap_or_default();
            return members
                .as_array()
                .is_some_and(|members| members.iter().all(|member| *member == sides[1]));
        }
        if let Some(any) = parts("Fn::Or") {
            return any.iter().any(|part| self.holds(part));
        }
        condition["Condition"].as_str().is_some_and(|name| self.condition(name))
    }

    /// Compares values as text, like CloudFormation.
    fn text(&self, value: &Value) -> String {
        match self.value(value) {
            Some(Value::String(text)) => text,
            other => json!(other).to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"
Mappings:
  Names: { Work: { Long: worker } }
Parameters:
  Pair: { Type: CommaDelimitedList, Default: "," }
  Origins: { Type: CommaDelimitedList, Default: "" }
  Days: { Type: Number, Default: 3 }
Conditions:
  HasPages: !Not [!Equals [!Join ["", !Ref Origins], ""]]
Globals:
  Function: { Environment: { Variables: { DAYS: !Ref Days, MODE: ledger } } }
Resources:
  Page: { Type: A, Condition: HasPages, Properties: { For: !Ref Origins } }
  Work:
    Type: AWS::Serverless::Function
    Properties:
      Cors: !If [HasPages, !Ref Origins, !Ref AWS::NoValue]
      Name: !Sub ${AWS::StackName}-${Days}
      Long: !Sub ["${Days}-${Of}", { Of: !FindInMap [Names, Work, Long] }]
      Second: !Select [1, !Ref Pair]
      Environment: { Variables: { MODE: optimistic } }
"#;

    fn resolved(origins: &str) -> Template {
        let values = BTreeMap::from([("Origins".to_owned(), origins.to_owned())]);
        Template::new(&Source::read(TEXT).unwrap(), &values)
    }

    #[test]
    fn conditions_select_resources() {
        let without = resolved("");
        assert!(!without.resources.contains_key("Page"));
        assert_eq!(without.resources["Work"]["Properties"].get("Cors"), None);
        let with = resolved("https://a.example,https://b.example");
        assert_eq!(
            with.resources["Page"]["Properties"]["For"],
            json!(["https://a.example", "https://b.example"])
        );
    }

    #[test]
    fn function_properties_override_globals() {
        let work = &resolved("").resources["Work"]["Properties"];
        assert_eq!(work["Environment"]["Variables"], json!({"DAYS": "3", "MODE": "optimistic"}));
        assert_eq!(work["Name"], "${AWS::StackName}-3");
        assert_eq!((&work["Long"], &work["Second"]), (&json!("3-worker"), &json!("")));
    }

    #[test]
    fn deployment_templates_are_combined() {
        let other = "Parameters:\n  Application: { Type: String }\nResources:\n  \
                     Alarm: { Of: !Sub \"${Application}-saga\" }\n";
        let sources = [Source::read(TEXT).unwrap(), Source::read(other).unwrap()];
        let all = Template::of_all(&sources, &BTreeMap::new(), Limits::default()).unwrap();
        assert_eq!(all.resources["Alarm"]["Of"], "${AWS::StackName}-saga");
        assert!(all.resources.contains_key("Work"));
        let twice = [&sources[1], &sources[1]];
        let refused = Template::of_all(twice, &BTreeMap::new(), Limits::default());
        assert!(matches!(refused, Err(SourceError::Twice(id)) if id == "Alarm"));
    }
}
