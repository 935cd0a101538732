//! Filters on the fields of views.

use std::str::FromStr;

use serde_json::Value;
use thiserror::Error;

/// The values that fields of a view's body must have. An empty filter matches every view.
///
/// A condition is written as `FIELD=VALUE`, such as `customer.country=CH`: dots separate the names of nested fields. A
/// value is the text of a string, or a number, `true`, `false` or `null`. A list matches if one of its elements does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FieldFilter {
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Condition {
    path: Vec<String>,
    value: String,
}

/// A text is not a condition. Another attempt has the same result.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a condition on a field: write FIELD=VALUE, such as customer.country=CH")]
pub struct ConditionError(String);

impl FieldFilter {
    /// Returns the filter with one more condition: the field has this value.
    #[must_use]
    pub fn and(mut self, field: &str, value: impl Into<String>) -> Self {
        let path = field.split('.').map(str::to_owned).collect();
        self.conditions.push(Condition { path, value: value.into() });
        self
    }

    /// Returns a filter that requires the conditions of both filters.
    #[must_use]
    pub fn and_all(mut self, other: Self) -> Self {
        self.conditions.extend(other.conditions);
        self
    }

    /// Returns `true` if the filter has no conditions.
    pub fn is_empty(&self) -> bool {
        self.conditions.is_empty()
    }

    /// Returns `true` if the body of a view satisfies every condition.
    pub fn matches(&self, body: &Value) -> bool {
        self.conditions.iter().all(|condition| condition.holds(body))
    }
}

impl FromStr for FieldFilter {
    type Err = ConditionError;

    /// Parses one condition.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let condition =
            text.split_once('=').filter(|(field, _)| field.split('.').all(|name| !name.is_empty()));
        let (field, value) = condition.ok_or_else(|| ConditionError(text.to_owned()))?;
        Ok(Self::default().and(field, value))
    }
}

impl Condition {
    fn holds(&self, body: &Value) -> bool {
        let field = self.path.iter().try_fold(body, |value, name| value.get(name));
        field.is_some_and(|field| match field {
            Value::Array(elements) => elements.iter().any(|element| self.is_value(element)),
            field => self.is_value(field),
        })
    }

    fn is_value(&self, field: &Value) -> bool {
        match field {
            Value::String(text) => *text == self.value,
            // A whole amount of a field with fractions may be written without its fraction.
            Value::Number(number) if number.is_f64() => self.value.parse().ok() == number.as_f64(),
            Value::Number(number) => number.to_string() == self.value,
            Value::Bool(truth) => truth.to_string() == self.value,
            Value::Null => self.value == "null",
            Value::Array(_) | Value::Object(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::text("state=Paid", true)]
    #[case::other_text("state=paid", false)]
    #[case::nested("customer.country=CH", true)]
    #[case::number("items=2", true)]
    #[case::whole_amount("price=1000", true)]
    #[case::amount("price=1000.00", true)]
    #[case::other_amount("price=1000.5", false)]
    #[case::truth("is_gift=false", true)]
    #[case::missing_value("note=null", true)]
    #[case::element("tags=fragile", true)]
    #[case::other_element("tags=heavy", false)]
    #[case::value_with_equals_sign("formula=a=b", true)]
    #[case::empty_value("empty=", true)]
    #[case::absent("absent=", false)]
    #[case::object("customer=CH", false)]
    #[case::below_text("state.Paid=", false)]
    fn condition_compares_field_with_text(#[case] condition: &str, #[case] matches: bool) {
        let body = json!({
            "state": "Paid", "customer": { "country": "CH" }, "items": 2, "is_gift": false, "note": null,
            "price": 1000.0, "tags": ["large", "fragile"], "formula": "a=b", "empty": "",
        });
        assert_eq!(condition.parse::<FieldFilter>().unwrap().matches(&body), matches);
    }

    #[test]
    fn filter_requires_every_condition() {
        let filter = FieldFilter::default().and("state", "Paid").and_all("items=2".parse().unwrap());
        assert!(filter.matches(&json!({ "state": "Paid", "items": 2 })));
        assert!(!filter.matches(&json!({ "state": "Paid", "items": 3 })));
        assert!(FieldFilter::default().matches(&json!(null)));
    }

    #[rstest]
    fn text_without_field_or_value_is_refused(#[values("", "state", "=Paid", "a..b=1", ".a=1")] text: &str) {
        assert_eq!(text.parse::<FieldFilter>(), Err(ConditionError(text.to_owned())));
    }
}
