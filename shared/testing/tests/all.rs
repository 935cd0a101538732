//! The comparison with recorded forms.

use std::panic::catch_unwind;

use serde_json::json;
use testing::fixtures::same;

#[test]
fn form_fields_may_only_be_added() {
    let recorded = json!({ "a": 1, "b": [{ "c": null }] });
    for grown in [
        recorded.clone(),
        json!({ "a": 1, "b": [{ "c": null, "d": 2 }] }),
        json!({ "a": 1, "b": [{ "c": null }], "e": {} }),
    ] {
        same("a form", &grown, &recorded);
    }
    for wrong in [
        json!({ "a": 1, "b": [{}] }),
        json!({ "a": 2, "b": [{ "c": null }] }),
        json!({ "a": 1, "b": [{ "c": null }, 2] }),
        json!({ "a": 1, "b": [] }),
        json!({ "a": "1", "b": [{ "c": null }] }),
        json!({ "b": [{ "c": null }] }),
        json!([]),
    ] {
        assert!(catch_unwind(|| same("a form", &wrong, &recorded)).is_err(), "{wrong}");
    }
}
