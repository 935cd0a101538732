//! The bucket and the function that it notifies of uploads.

use imports::exports;
use serde_json::Value;

use super::Finding;
use crate::template::Template;
use crate::template::view::referred;

const PREFIX: &str = "SEARCH_IMPORT_KEY_PREFIX";

/// Exports are not kept for ever in the bucket of the uploads, and no upload is among them.
pub(crate) fn exports(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, bucket) in template.of_type("AWS::S3::Bucket") {
        if bucket["NotificationConfiguration"].is_null() {
            continue;
        }
        let rules = bucket["LifecycleConfiguration"]["Rules"].as_array().into_iter().flatten();
        let ends = |rule: &&Value| rule["Status"] == "Enabled" && rule["ExpirationInDays"].as_u64().is_some();
        let mut ending = rules.filter(ends).filter_map(|rule| rule["Prefix"].as_str());
        if !ending.any(|prefix| prefix == exports::PREFIX) {
            findings.push(Finding::new(id, format!("exports ({}) are kept for ever", exports::PREFIX)));
        }
    }
    for function in template.functions() {
        let prefix = function.environment().get(PREFIX).cloned().unwrap_or_default();
        if prefix.starts_with(exports::PREFIX) {
            let what = format!("takes uploads below {prefix}, where exports are");
            findings.push(Finding::new(function.id, what));
        }
    }
    findings
}

/// The bucket sends notifications for exactly the keys that the function takes for uploads: with more, the function is
/// invoked for nothing; with fewer, uploads are never noticed.
pub(crate) fn prefix(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut told = false;
    for (id, bucket) in template.of_type("AWS::S3::Bucket") {
        for configuration in
            bucket["NotificationConfiguration"]["LambdaConfigurations"].as_array().into_iter().flatten()
        {
            told = true;
            let function = template
                .functions()
                .find(|function| Some(function.id) == referred(&configuration["Function"]));
            let wanted = function.and_then(|function| function.environment().get(PREFIX).cloned());
            let rules = configuration["Filter"]["S3Key"]["Rules"].as_array().into_iter().flatten();
            let prefix =
                rules.filter(|rule| rule["Name"] == "prefix").find_map(|rule| rule["Value"].as_str());
            if prefix != wanted.as_deref() {
                let name =
                    |prefix: Option<&str>| prefix.map_or("none".to_owned(), |prefix| format!("{prefix:?}"));
                let what = format!(
                    "tells of keys with prefix {}, but the function takes those with {}",
                    name(prefix),
                    name(wanted.as_deref())
                );
                findings.push(Finding::new(id, what));
            }
        }
    }
    if !told {
        findings.push(Finding::new("Resources", "no bucket tells a function of uploads"));
    }
    findings
}
