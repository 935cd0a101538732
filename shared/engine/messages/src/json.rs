//! JSON that is passed on unparsed.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// JSON as text: carriers pass it on unparsed, and its reader parses it once. Two texts are equal if their values are.
///
/// Only `serde_json` serializes and deserializes it; for another format use its [`Value`].
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// Serializes a value.
    ///
    /// # Errors
    /// Returns an error if it cannot be represented in JSON, such as a map with keys that are not strings.
    pub fn of<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// Deserializes the JSON.
    ///
    /// # Errors
    /// Returns an error if the JSON has another form.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    /// Returns the JSON as a generic value.
    pub fn value(&self) -> Value {
        // The text was validated before; JSON that is nested too deeply for a value becomes null.
        self.read().unwrap_or_default()
    }

    /// Returns the text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// Returns the JSON with a field added or replaced; JSON that is not an object is returned unchanged.
    #[must_use]
    pub fn with(self, field: &str, value: Value) -> Self {
        match self.value() {
            Value::Object(mut fields) => {
                fields.insert(field.to_owned(), value);
                Self::from(Value::Object(fields))
            }
            _ => self,
        }
    }
}

impl From<Value> for Json {
    fn from(value: Value) -> Self {
        // A value is valid JSON, so serializing it cannot fail.
        Self::of(&value).unwrap_or_default()
    }
}

impl Default for Json {
    fn default() -> Self {
        Self(RawValue::NULL.to_owned())
    }
}

impl PartialEq for Json {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text() || self.value() == other.value()
    }
}

impl Eq for Json {}

impl PartialEq<Value> for Json {
    fn eq(&self, other: &Value) -> bool {
        self.value() == *other
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn json_keeps_its_text_and_compares_by_value() {
        let text = r#"{"b": 1.50, "a":[ ]}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        assert_eq!(json, Json::from(json!({ "a": [], "b": 1.5 })));
        assert_ne!(json, Json::default());
        let through_a_value: Json = serde_json::from_value(serde_json::to_value(&json).unwrap()).unwrap();
        assert_eq!(through_a_value, json);
    }

    #[test]
    fn field_is_added_to_objects_only() {
        assert_eq!(Json::from(json!({ "a": 1 })).with("b", json!(2)), json!({ "a": 1, "b": 2 }));
        assert_eq!(Json::from(json!([1])).with("b", json!(2)), json!([1]));
    }
}
