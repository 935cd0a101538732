//! Parsing S3's notifications of stored objects, in its own format
//! (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html>) and in that of
//! EventBridge (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html>).

use std::cmp::Ordering;
use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::Value;

/// A stored object, as described by a notification.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The name of its bucket.
    pub bucket: String,
    /// Its key, URL-decoded.
    pub key: String,
    /// The object's version, in a bucket with versioning.
    pub version: Option<String>,
    /// A value that grows with each change of this key; values of different keys are not comparable.
    pub sequencer: String,
}

/// Reasons why an event cannot be parsed.
#[derive(Debug, thiserror::Error)]
pub enum NotificationError {
    /// The event has neither of the documented formats.
    #[error("the event is not a notification of stored objects")]
    Malformed(#[source] serde_json::Error),
    /// The decoded key is not UTF-8.
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
    s3: StoredObject,
}

/// An event in the format of EventBridge.
#[derive(Deserialize)]
struct EventBridgeEvent {
    detail: StoredObject,
}

#[derive(Deserialize)]
struct StoredObject {
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
    #[serde(rename = "versionId", alias = "version-id")]
    version_id: Option<String>,
    #[serde(default)]
    sequencer: String,
}

impl Notification {
    /// Returns the created objects that an event reports, those of one key in the order in which they were stored.
    /// The test event that S3 sends when a notification is configured contains none.
    ///
    /// # Errors
    /// Returns an error if the event is not one of S3's.
    pub fn read_all(event: &Value) -> Result<Vec<Self>, NotificationError> {
        // The record of a failed asynchronous invocation by Lambda contains the event
        // (<https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html>).
        let event = event.get("requestPayload").unwrap_or(event);
        let named = |field: &str, name: &str| event.get(field).and_then(Value::as_str) == Some(name);
        if named("Event", "s3:TestEvent") {
            return Ok(Vec::new());
        }
        if named("source", "aws.s3") {
            let stored = EventBridgeEvent::deserialize(event).map_err(NotificationError::Malformed)?.detail;
            // EventBridge does not URL-encode keys.
            let key = stored.object.key.clone();
            return Ok(if named("detail-type", "Object Created") {
                vec![Self::of(stored, key)]
            } else {
                vec![]
            });
        }
        let event = Event::deserialize(event).map_err(NotificationError::Malformed)?;
        let created =
            event.records.into_iter().enumerate().filter(|(_, record)| {
                record.event_name.trim_start_matches("s3:").starts_with("ObjectCreated:")
            });
        let read = created.map(|(index, record)| {
            let key = decode(&record.s3.object.key).ok_or(NotificationError::Key(index))?;
            Ok(Self::of(record.s3, key))
        });
        Ok(in_order(read.collect::<Result<_, _>>()?))
    }

    fn of(stored: StoredObject, key: String) -> Self {
        let Object { version_id: version, sequencer, .. } = stored.object;
        Self { bucket: stored.bucket.name, key, version, sequencer }
    }
}

/// Decodes a URL-encoded key, in which `+` stands for a space; the plus signs have to be replaced first.
fn decode(key: &str) -> Option<String> {
    let spaced = key.replace('+', " ");
    Some(percent_decode_str(&spaced).decode_utf8().ok()?.into_owned())
}

/// Sorts the notifications of each key, at the position of the first of them.
fn in_order(mut notifications: Vec<Notification>) -> Vec<Notification> {
    let mut places = HashMap::new();
    for (place, notification) in notifications.iter().enumerate() {
        places.entry(notification.key.clone()).or_insert(place);
    }
    notifications.sort_by(|one, other| {
        let by_place = places.get(&one.key).cmp(&places.get(&other.key));
        by_place.then_with(|| compare(&one.sequencer, &other.sequencer))
    });
    notifications
}

/// Compares two sequencers of one key: hexadecimal numbers, the shorter one padded with zeros on the right.
fn compare(one: &str, other: &str) -> Ordering {
    let digits = one.len().max(other.len());
    let padded = |text: &str| format!("{text:0<digits$}").to_ascii_uppercase();
    padded(one).cmp(&padded(other))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn event(name: &str, key: &str) -> Value {
        json!({"Records": [{"eventName": name, "s3": {"bucket": {"name": "b"}, "object": {"key": key}}}]})
    }

    #[test]
    fn plus_signs_are_decoded_first() {
        let read =
            Notification::read_all(&event("ObjectCreated:Put", "a/My+file+%2B+50%25+%C3%84.ris")).unwrap();
        assert_eq!(read[0].key, "a/My file + 50% Ä.ris");
    }

    #[test]
    fn failed_invocation_record_contains_the_event() {
        let failed = json!({
            "version": "1.0",
            "requestContext": {"condition": "RetriesExhausted", "approximateInvokeCount": 3},
            "requestPayload": event("ObjectCreated:Put", "a"),
            "responseContext": {"statusCode": 200, "functionError": "Unhandled"},
        });
        assert_eq!(
            Notification::read_all(&failed).unwrap(),
            Notification::read_all(&event("ObjectCreated:Put", "a")).unwrap()
        );
    }

    #[test]
    fn only_created_objects_are_reported() {
        assert_eq!(Notification::read_all(&event("ObjectRemoved:Delete", "a")).unwrap(), []);
        assert_eq!(Notification::read_all(&event("s3:ObjectCreated:Post", "a")).unwrap().len(), 1);
    }

    #[test]
    fn sequencers_compare_as_right_padded_numbers() {
        assert_eq!(compare("0066F3A1", "0066F3A100"), Ordering::Equal);
        assert_eq!(compare("0066F3A2", "0066F3A1FF"), Ordering::Greater);
        assert_eq!(compare("0066f3a1", "0066F3A1"), Ordering::Equal);
        assert_eq!(compare("", "01"), Ordering::Less);
    }

    #[test]
    fn eventbridge_keys_are_not_encoded() {
        let forwarded = |kind: &str| {
            json!({
                "source": "aws.s3",
                "detail-type": kind,
                "detail": {"bucket": {"name": "b"}, "object": {"key": "a + 50%41.ris", "version-id": "v", "sequencer": "1"}},
            })
        };
        let read = Notification::read_all(&forwarded("Object Created")).unwrap();
        assert_eq!((read[0].key.as_str(), read[0].version.as_deref()), ("a + 50%41.ris", Some("v")));
        assert_eq!(Notification::read_all(&forwarded("Object Deleted")).unwrap(), []);
    }

    #[test]
    fn test_event_is_empty_and_junk_is_refused() {
        let test = json!({"Service": "Amazon S3", "Event": "s3:TestEvent", "Bucket": "b"});
        assert_eq!(Notification::read_all(&test).unwrap(), []);
        assert!(matches!(Notification::read_all(&json!({"x": 1})), Err(NotificationError::Malformed(_))));
        let latin1 = Notification::read_all(&event("ObjectCreated:Put", "%FF"));
        assert!(matches!(latin1, Err(NotificationError::Key(0))));
    }
}
