//! The rules for the log of a function.

use serde_json::Value;

/// Data of the sample events and their files that must not appear in a log: tokens, the keys that contain them, and the
/// text of references.
const SECRETS: [&str; 5] = ["0199b6d0-7d60-7c00", "uploads/", "psycinfo.ris", "One, Ann", "First"];

/// Checks the lines that a function logged for sample events: each line is JSON, each decision names its maker and its
/// subject, metrics have separate lines, and no line contains a secret.
///
/// # Panics
/// Panics if that is not so.
pub fn check_log(lines: &[String]) {
    for line in lines {
        let parsed: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if let Some(secret) = SECRETS.iter().find(|secret| line.contains(**secret)) {
            panic!("the log has {secret:?}: {line}");
        }
        if let Some(decision) = parsed.get("decision") {
            assert!(decision.is_string() && parsed["function"].is_string(), "{line}");
            // An unreadable message has neither.
            let ids =
                ["correlation_id", "message_id"].map(|name| parsed.get(name).is_some_and(Value::is_string));
            assert!(ids[0] == ids[1] && (ids[0] || decision == "rejected"), "{line}");
        }
    }
    let counts = lines.iter().filter(|line| line.contains("CloudWatchMetrics")).count();
    let decisions = lines.iter().filter(|line| line.contains("\"decision\"")).count();
    assert!(decisions == 0 || counts > 0, "decisions are counted: {lines:#?}");
}
