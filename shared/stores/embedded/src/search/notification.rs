//! The notification about a stored object, in the form of S3
//! (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html>).

use jiff::Timestamp;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use crate::search::object_rows::BUCKET;

/// The characters that are not escaped in a notification's key; a space becomes `+`.
const KEPT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'/')
    .remove(b' ')
    .remove(b'*');

/// The body of a notification. `sequencer` grows with each upload of a key.
pub(crate) fn notification(key: &str, size_bytes: u64, sequencer: i64, now: Timestamp) -> String {
    let key = utf8_percent_encode(key, KEPT).to_string().replace(' ', "+");
    json!({ "Records": [{
        "eventVersion": "2.1",
        "eventSource": "aws:s3",
        "awsRegion": "local",
        "eventTime": format!("{now:.3}"),
        "eventName": "ObjectCreated:Post",
        "userIdentity": { "principalId": "embedded" },
        "requestParameters": { "sourceIPAddress": "127.0.0.1" },
        "responseElements": {},
        "s3": {
            "s3SchemaVersion": "1.0",
            "configurationId": "embedded",
            "bucket": {
                "name": BUCKET,
                "ownerIdentity": { "principalId": "embedded" },
                "arn": format!("arn:aws:s3:::{BUCKET}"),
            },
            "object": { "key": key, "size": size_bytes, "sequencer": format!("{sequencer:016X}") },
        },
    }]})
    .to_string()
}
