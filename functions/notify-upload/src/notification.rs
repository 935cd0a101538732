//! Reading S3's event notification
//! (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html>).

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::Value;

/// One stored object, as the store tells of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The bucket.
    pub bucket: String,
    /// The key, decoded.
    pub key: String,
    /// The object's version, in a bucket that keeps versions.
    pub version: Option<String>,
}

/// Why an event cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NotificationError {
    /// Not the form that S3 documents.
    #[error("the event is not a notification of stored objects")]
    Malformed(#[source] serde_json::Error),
    /// A key that is not UTF-8 once decoded.
    #[error("the key of record {0} is not UTF-8")]
    Key(usize),
}

#[derive(Deserialize)]
struct Event {
    #[serde(rename = "Records")]
    records: Vec<Record>,
}

#[derive(Deserialize)]
struct Record {
    #[serde(rename = "eventName")]
    event_name: String,
    s3: S3,
}

#[derive(Deserialize)]
struct S3 {
    bucket: Bucket,
    object: Object,
}

#[derive(Deserialize)]
struct Bucket {
    name: String,
}

#[derive(Deserialize)]
struct Object {
    key: String,
    #[serde(rename = "versionId")]
    version_id: Option<String>,
}

impl Notification {
    /// The created objects that an event tells of. The test event that S3 sends when a notification is set up
    /// tells of none.
    ///
    /// # Errors
    /// When the event is not one of S3's.
    pub fn read_all(event: &Value) -> Result<Vec<Self>, NotificationError> {
        if event.get("Event").and_then(Value::as_str) == Some("s3:TestEvent") {
            return Ok(Vec::new());
        }
        let event = Event::deserialize(event).map_err(NotificationError::Malformed)?;
        let created =
            event.records.into_iter().enumerate().filter(|(_, record)| {
                record.event_name.trim_start_matches("s3:").starts_with("ObjectCreated:")
            });
        created
            .map(|(index, record)| {
                Ok(Self {
                    bucket: record.s3.bucket.name,
                    key: decode(&record.s3.object.key).ok_or(NotificationError::Key(index))?,
                    version: record.s3.object.version_id,
                })
            })
            .collect()
    }
}

/// Keys arrive URL-encoded, with `+` for a space; so the plus signs go first.
fn decode(key: &str) -> Option<String> {
    let spaced = key.replace('+', " ");
    Some(percent_decode_str(&spaced).decode_utf8().ok()?.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(name: &str, key: &str) -> Value {
        json!({"Records": [{"eventName": name, "s3": {"bucket": {"name": "b"}, "object": {"key": key}}}]})
    }

    #[test]
    fn an_encoded_key_is_decoded_plus_signs_first() {
        let read =
            Notification::read_all(&event("ObjectCreated:Put", "a/My+file+%2B+50%25+%C3%84.ris")).unwrap();
        assert_eq!(read[0].key, "a/My file + 50% Ä.ris");
    }

    #[test]
    fn only_created_objects_count() {
        assert_eq!(Notification::read_all(&event("ObjectRemoved:Delete", "a")).unwrap(), []);
        assert_eq!(Notification::read_all(&event("s3:ObjectCreated:Post", "a")).unwrap().len(), 1);
    }

    #[test]
    fn the_test_event_tells_of_nothing_and_junk_is_refused() {
        let test = json!({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"});
        assert_eq!(Notification::read_all(&test).unwrap(), []);
        assert!(matches!(Notification::read_all(&json!({"x": 1})), Err(NotificationError::Malformed(_))));
        let latin1 = Notification::read_all(&event("ObjectCreated:Put", "%FF"));
        assert!(matches!(latin1, Err(NotificationError::Key(0))));
    }
}
