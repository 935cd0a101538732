//! The calls of the functions to the services of this application.

use imports::exports;
use imports::ports::{BUCKET, EXPORTS, LINKS, OBJECTS, UPLOADS};
use saga::Service;
use system_tools::template::checks::permissions::{Call, on};

use crate::template::Template;
use crate::template::view::{Function, text};

/// Returns the calls of a function to a service.
pub(crate) fn own_calls(template: &Template, function: &Function<'_>, service: Service) -> Vec<Call> {
    let bucket = bucket(template);
    let prefix = function.environment().get("SEARCH_IMPORT_KEY_PREFIX").cloned().unwrap_or_default();
    let keys = format!("{bucket}/{prefix}*");
    let exports = format!("{bucket}/{}*", exports::PREFIX);
    match service {
        // Without s3:ListBucket, S3 returns 403 instead of 404 for a missing object.
        OBJECTS => {
            let mut calls = on(&["s3:GetObject", "s3:GetObjectVersion"], &keys);
            calls.extend(on(&["s3:ListBucket"], &bucket));
            calls
        }
        BUCKET => {
            let mut calls = on(&["s3:ListBucket"], &bucket);
            calls.extend(on(&["s3:DeleteObject"], &keys));
            calls
        }
        UPLOADS => on(&["s3:PutObject"], &keys),
        // Large exports are uploaded in parts and aborted on failure. Exports of a deleted search are deleted.
        EXPORTS => on(&["s3:PutObject", "s3:AbortMultipartUpload", "s3:DeleteObject"], &exports),
        LINKS => on(&["s3:GetObject"], &exports),
        _ => Vec::new(),
    }
}

/// Returns the ARN of the uploads bucket as required in the template: by name, because the bucket refers to the
/// functions.
fn bucket(template: &Template) -> String {
    let mut buckets = template.of_type("AWS::S3::Bucket").map(|(_, bucket)| bucket);
    let uploads = buckets.find(|bucket| !bucket["NotificationConfiguration"].is_null());
    format!(
        "arn:${{AWS::Partition}}:s3:::{}",
        uploads.map(|bucket| text(&bucket["BucketName"])).unwrap_or_default()
    )
}
