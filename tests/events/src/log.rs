//! The lines that the log of a function must have, and the texts that it must not contain.

use serde_json::Value;

/// Texts of the sample events and their files that must not be logged: tokens, keys that contain them, and the text of
/// references.
const SECRETS: [&str; 5] = ["0199b6d0-7d60-7c00", "uploads/", "psycinfo.ris", "One, Ann", "First"];

/// Checks the lines that a function wrote while it was fed sample events: each is JSON, each decision says who made it
/// about what, counts are in a line of their own, and no line has a secret.
///
/// # Panics
/// When that is not so.
pub fn check_log(lines: &[String]) {
    for line in lines {
        let parsed: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        if let Some(secret) = SECRETS.iter().find(|secret| line.contains(**secret)) {
            panic!("the log has {secret:?}: {line}");
        }
        if let Some(decision) = parsed.get("decision") {
            assert!(decision.is_string() && parsed["function"].is_string(), "{line}");
            // A message that cannot be read has neither.
            let ids =
                ["correlation_id", "message_id"].map(|name| parsed.get(name).is_some_and(Value::is_string));
            assert!(ids[0] == ids[1] && (ids[0] || decision == "rejected"), "{line}");
        }
    }
    let counts = lines.iter().filter(|line| line.contains("CloudWatchMetrics")).count();
    let decisions = lines.iter().filter(|line| line.contains("\"decision\"")).count();
    assert!(decisions == 0 || counts > 0, "decisions are counted: {lines:#?}");
}
