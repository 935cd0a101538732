//! The log queries in the documents use fields that the logs contain.

use std::collections::BTreeSet;

use events::{Installation, event};
use serde_json::Value;

const DOCUMENTS: [&str; 2] =
    [include_str!("../../../docs/runbook.md"), include_str!("../../../docs/telemetry.md")];
const TEMPLATE: &str = include_str!("../../../template.yaml");
/// The keywords of CloudWatch Logs Insights
/// (<https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/CWL_QuerySyntax.html>).
const WORDS: [&str; 9] = ["filter", "stats", "sort", "display", "by", "count", "as", "desc", "asc"];

/// Returns the queries: lines of code that begin with `filter`.
fn queries() -> Vec<String> {
    let code = DOCUMENTS.iter().flat_map(|document| document.split(['`', '\n'])).map(str::trim);
    let queries = code.filter(|code| code.starts_with("filter ") && code.contains('|'));
    queries.map(str::to_owned).chain(filters()).collect()
}

/// Returns the queries of a single command.
fn filters() -> Vec<String> {
    let lines = DOCUMENTS.iter().flat_map(|document| document.lines());
    lines.filter_map(|line| line.strip_prefix("    filter ")).map(|rest| format!("filter {rest}")).collect()
}

/// Returns the fields that a query uses, without quoted text and names that it introduces with `as`.
fn fields(query: &str) -> BTreeSet<String> {
    let plain: String = query.split('"').step_by(2).collect();
    let words = plain.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '@'));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let own: BTreeSet<&str> = words.windows(2).filter(|pair| pair[0] == "as").map(|pair| pair[1]).collect();
    let is_field = |word: &&&str| {
        let is_name = word.starts_with(|c: char| c.is_ascii_lowercase());
        is_name && !WORDS.contains(*word) && !own.contains(**word)
    };
    words.iter().filter(is_field).map(|word| (*word).to_owned()).collect()
}

/// Returns the fields of the API's access log, as the template declares them.
fn of_access_log() -> BTreeSet<String> {
    let (_, format) = TEMPLATE.split_once("Format: >-").unwrap();
    let (format, _) = format.split_once('}').unwrap();
    format.split('"').skip(1).step_by(2).filter(|text| !text.starts_with('$')).map(str::to_owned).collect()
}

/// Returns the fields of the log lines about messages, both rejected and handled ones.
async fn of_decisions() -> BTreeSet<String> {
    let batch = event("sqs-saga-mixed");
    let installation = Installation::admitting(&batch).await;
    let mut function = installation.start(env!("CARGO_BIN_EXE_run-saga")).await;
    function.invoke(&batch).await.unwrap();
    let lines = function.stop().await;
    let decisions = lines.iter().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let decisions = decisions.filter(|line| line["decision"].is_string() && line["message_id"].is_string());
    decisions.flat_map(|line| line.as_object().unwrap().keys().cloned().collect::<Vec<_>>()).collect()
}

#[tokio::test]
async fn documented_queries_use_existing_fields() {
    let (requests, decisions) = (of_access_log(), of_decisions().await);
    assert!(requests.contains("route") && decisions.contains("why"), "{requests:?} {decisions:?}");
    let queries = queries();
    assert!(queries.len() >= 4, "{queries:?}");
    for query in queries {
        let fields = fields(&query);
        assert!(!fields.is_empty(), "{query}");
        assert!(fields.is_subset(&requests) || fields.is_subset(&decisions), "{query}: {fields:?}");
    }
}
