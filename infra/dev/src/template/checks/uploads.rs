//! Checks of the bucket and its notifications of uploads.

use imports::exports;
use serde_json::Value;

use crate::template::view::{Function, number, referred, text};
use crate::template::{Finding, Template};

const PREFIX: &str = "SEARCH_IMPORT_KEY_PREFIX";

/// Returns the queues that a bucket notifies of uploads.
fn notifications(bucket: &Value) -> impl Iterator<Item = &Value> {
    bucket["NotificationConfiguration"]["QueueConfigurations"].as_array().into_iter().flatten()
}

/// Exports in the uploads bucket expire, and no upload has their prefix.
pub(crate) fn exports(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, bucket) in template.of_type("AWS::S3::Bucket") {
        if notifications(bucket).next().is_none() {
            continue;
        }
        let rules = bucket["LifecycleConfiguration"]["Rules"].as_array().into_iter().flatten();
        let ends = |rule: &&Value| rule["Status"] == "Enabled" && rule["ExpirationInDays"].as_u64().is_some();
        let mut ending = rules.filter(ends).filter_map(|rule| rule["Prefix"].as_str());
        if !ending.any(|prefix| prefix == exports::PREFIX) {
            findings.push(Finding::new(id, format!("exports ({}) never expire", exports::PREFIX)));
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

/// The bucket sends notifications for exactly the keys that its queue's function treats as uploads. If the rule matches
/// more events, the function is invoked unnecessarily. If the rule matches fewer events, uploads are missed.
pub(crate) fn prefix(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut told = false;
    for (id, bucket) in template.of_type("AWS::S3::Bucket") {
        for configuration in notifications(bucket) {
            told = true;
            let behind = |function: &Function<'_>| {
                function
                    .sources(template)
                    .any(|source| Some(source.queue.id) == referred(&configuration["Queue"]))
            };
            let function = template.functions().find(behind);
            let wanted = function.and_then(|function| function.environment().get(PREFIX).cloned());
            let rules = configuration["Filter"]["S3Key"]["Rules"].as_array().into_iter().flatten();
            let prefix =
                rules.filter(|rule| rule["Name"] == "prefix").find_map(|rule| rule["Value"].as_str());
            if prefix != wanted.as_deref() {
                let name =
                    |prefix: Option<&str>| prefix.map_or("none".to_owned(), |prefix| format!("{prefix:?}"));
                let what = format!(
                    "notifies of keys with prefix {}, but the function handles those with {}",
                    name(prefix),
                    name(wanted.as_deref())
                );
                findings.push(Finding::new(id, what));
            }
        }
    }
    if !told {
        findings.push(Finding::new("Resources", "no bucket notifies a queue of uploads"));
    }
    findings
}

/// Uploads expire, but not before the last message about them.
pub(crate) fn kept(template: &Template) -> Vec<Finding> {
    const SECONDS_OF_DAY: u64 = 86_400;
    let mut findings = Vec::new();
    for (id, bucket) in template.of_type("AWS::S3::Bucket") {
        let Some(uploads) = notifications(bucket).find_map(|told| {
            let rules = told["Filter"]["S3Key"]["Rules"].as_array()?;
            rules.iter().find_map(|rule| rule["Value"].as_str())
        }) else {
            continue;
        };
        let rules = bucket["LifecycleConfiguration"]["Rules"].as_array().into_iter().flatten();
        let mut rules = rules.filter(|rule| rule["Status"] == "Enabled");
        let days = rules
            .clone()
            .filter(|rule| rule["Prefix"] == uploads)
            .find_map(|rule| number(&rule["ExpirationInDays"]));
        let lifetime = template.queues().map(|queue| queue.retention()).max().unwrap_or_default();
        match days {
            None => findings.push(Finding::new(id, format!("uploads ({uploads}) never expire"))),
            Some(days) if days * SECONDS_OF_DAY <= lifetime => {
                let what =
                    format!("keeps uploads for {days} days, no longer than a message about one may wait");
                findings.push(Finding::new(id, what));
            }
            Some(_) => {}
        }
        if !rules.any(|rule| !rule["AbortIncompleteMultipartUpload"].is_null() && rule["Prefix"].is_null()) {
            findings.push(Finding::new(id, "never deletes the parts of unfinished uploads"));
        }
    }
    findings
}

/// The queue accepts notifications only from its bucket in this account, because another account may reuse a bucket's
/// name (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/grant-destinations-permissions-to-s3.html>).
pub(crate) fn senders(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, bucket) in template.of_type("AWS::S3::Bucket") {
        let arn = format!("arn:${{AWS::Partition}}:s3:::{}", text(&bucket["BucketName"]));
        for queue in notifications(bucket).filter_map(|told| referred(&told["Queue"])) {
            let policies = template.of_type("AWS::SQS::QueuePolicy");
            let mut of_queue = policies.filter(|(_, policy)| {
                policy["Queues"]
                    .as_array()
                    .is_some_and(|queues| queues.iter().any(|of| referred(of) == Some(queue)))
            });
            let Some((policy, properties)) = of_queue.next() else {
                findings.push(Finding::new(queue, "has no policy that lets its bucket send"));
                continue;
            };
            for statement in properties["PolicyDocument"]["Statement"].as_array().into_iter().flatten() {
                let condition = &statement["Condition"];
                if referred(&condition["StringEquals"]["aws:SourceAccount"]) != Some("AWS::AccountId") {
                    findings.push(Finding::new(policy, "lets the buckets of other accounts send"));
                }
                if condition["ArnLike"]["aws:SourceArn"] != arn.as_str() {
                    findings.push(Finding::new(policy, "lets other buckets send"));
                }
            }
            if template.resources[id]["DependsOn"] != policy {
                findings
                    .push(Finding::new(id, format!("is made before {policy}, without which S3 refuses it")));
            }
        }
    }
    findings
}
