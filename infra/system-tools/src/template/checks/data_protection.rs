//! Checks of stored data: it is retained with the stack, recoverable, and reachable over TLS only.

use serde_json::Value;

use super::Finding;
use crate::template::Template;
use crate::template::view::referred;

/// Data is retained when the stack is deleted or an update replaces the resource. A failed first creation deletes it,
/// so that its name can be reused
/// (<https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-attribute-deletionpolicy.html>).
pub(crate) fn retention(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for kind in ["AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::DynamoDB::Table"] {
        for (id, _) in template.of_type(kind) {
            let resource = &template.resources[id];
            match resource["DeletionPolicy"].as_str() {
                Some("RetainExceptOnCreate") => {}
                Some("Retain") => {
                    findings.push(Finding::new(id, "stays when a first create fails, and blocks the next"));
                }
                _ => findings.push(Finding::new(id, "is deleted with the stack")),
            }
            if resource["UpdateReplacePolicy"] != "Retain" {
                findings.push(Finding::new(id, "is deleted when an update replaces it"));
            }
        }
    }
    findings
}

/// Tables can be restored, and are protected only after their creation, because a failed first creation cannot delete a
/// protected table (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/WorkingWithTables.Basics.html>).
pub(crate) fn tables(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, table) in template.of_type("AWS::DynamoDB::Table") {
        if table["PointInTimeRecoverySpecification"]["PointInTimeRecoveryEnabled"] != true {
            findings.push(Finding::new(id, "cannot be restored to a point in time"));
        }
        match &table["DeletionProtectionEnabled"] {
            Value::Null => findings.push(Finding::new(id, "cannot be protected from being deleted")),
            Value::Bool(true) => findings
                .push(Finding::new(id, "is protected from its first create on, which then cannot fail")),
            _ => {}
        }
    }
    findings
}

/// Buckets deny requests without TLS.
pub(crate) fn secure_transport(template: &Template) -> Vec<Finding> {
    let buckets = template.of_type("AWS::S3::Bucket");
    let open = buckets.filter(|(id, _)| {
        let mut policies = template.of_type("AWS::S3::BucketPolicy");
        !policies.any(|(_, policy)| {
            let mut statements = policy["PolicyDocument"]["Statement"].as_array().into_iter().flatten();
            referred(&policy["Bucket"]) == Some(id)
                && statements.any(|statement| {
                    statement["Effect"] == "Deny"
                        && statement["Condition"]["Bool"]["aws:SecureTransport"] == "false"
                })
        })
    });
    open.map(|(id, _)| Finding::new(id, "takes requests without TLS")).collect()
}
