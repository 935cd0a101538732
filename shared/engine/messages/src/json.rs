//! JSON that is passed on as it is.

use std::fmt;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

/// JSON as text: what carries it keeps it unread, and only who knows its meaning reads it, once. Two are equal when
/// they say the same.
///
/// Written and read by `serde_json` alone; another format takes the [`Value`] of it.
#[derive(Clone, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Json(Box<RawValue>);

impl Json {
    /// What this says.
    ///
    /// # Errors
    /// When it cannot be written as JSON, as a map with keys that are no text.
    pub fn of<T: Serialize>(value: &T) -> Result<Self, serde_json::Error> {
        serde_json::value::to_raw_value(value).map(Self)
    }

    /// As one who knows it reads it.
    ///
    /// # Errors
    /// When it is something else.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(self.text())
    }

    /// As a value, for who does not know it.
    pub fn value(&self) -> Value {
        // The text was checked when it was read or written; what is nested too deeply for a value is none.
        self.read().unwrap_or_default()
    }

    /// The text.
    pub fn text(&self) -> &str {
        self.0.get()
    }

    /// The same with one more field, or with another value for it; what is no object stays as it is.
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
        // A value is JSON already, so writing it cannot fail.
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
    fn it_is_passed_on_as_it_is_and_equal_to_what_says_the_same() {
        let text = r#"{"b": 1.50, "a":[ ]}"#;
        let json: Json = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&json).unwrap(), text);
        assert_eq!(json, Json::from(json!({ "a": [], "b": 1.5 })));
        assert_ne!(json, Json::default());
        let through_a_value: Json = serde_json::from_value(serde_json::to_value(&json).unwrap()).unwrap();
        assert_eq!(through_a_value, json);
    }

    #[test]
    fn a_field_is_added_to_an_object_alone() {
        assert_eq!(Json::from(json!({ "a": 1 })).with("b", json!(2)), json!({ "a": 1, "b": 2 }));
        assert_eq!(Json::from(json!([1])).with("b", json!(2)), json!([1]));
    }
}
