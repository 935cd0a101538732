//! Reading S3's notifications of stored objects: its own form
//! (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/notification-content-structure.html>), and the form in which
//! EventBridge passes it on (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/ev-events.html>).

use std::cmp::Ordering;
use std::collections::HashMap;

use percent_encoding::percent_decode_str;
use serde::Deserialize;
use serde_json::Value;

/// One stored object, as a notification describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notification {
    /// The name of the bucket it is in.
    pub bucket: String,
    /// Its key, not URL-encoded any more.
    pub key: String,
    /// The object's version, in a bucket that keeps versions.
    pub version: Option<String>,
    /// Grows with each change of this key; those of different keys have nothing to do with each other.
    pub sequencer: String,
}

/// Why an event cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum NotificationError {
    /// Neither of the forms that are documented.
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
    s3: Stored,
}

/// What EventBridge passes on.
#[derive(Deserialize)]
struct Passed {
    detail: Stored,
}

#[derive(Deserialize)]
struct Stored {
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
    /// The created objects that an event reports, those of one key in the order in which they were stored. The test
    /// event that S3 sends when a notification is set up contains none.
    ///
    /// # Errors
    /// When the event is not one of S3's.
    pub fn read_all(event: &Value) -> Result<Vec<Self>, NotificationError> {
        // What Lambda gave up after some tries, as it describes that: the event is a part of it
        // (<https://docs.aws.amazon.com/lambda/latest/dg/invocation-async-retain-records.html>).
        let event = event.get("requestPayload").unwrap_or(event);
        let named = |field: &str, name: &str| event.get(field).and_then(Value::as_str) == Some(name);
        if named("Event", "s3:TestEvent") {
            return Ok(Vec::new());
        }
        if named("source", "aws.s3") {
            let stored = Passed::deserialize(event).map_err(NotificationError::Malformed)?.detail;
            // EventBridge passes keys on as they are.
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

    fn of(stored: Stored, key: String) -> Self {
        let Object { version_id: version, sequencer, .. } = stored.object;
        Self { bucket: stored.bucket.name, key, version, sequencer }
    }
}

/// Keys arrive URL-encoded, with `+` for a space; so the plus signs go first.
fn decode(key: &str) -> Option<String> {
    let spaced = key.replace('+', " ");
    Some(percent_decode_str(&spaced).decode_utf8().ok()?.into_owned())
}

/// Sorts the notifications of each key, and places them where the first of them was.
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

/// Compares two sequencers of one key: hexadecimal numbers of which the shorter is padded with zeros on the right.
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
    fn an_encoded_key_is_decoded_plus_signs_first() {
        let read =
            Notification::read_all(&event("ObjectCreated:Put", "a/My+file+%2B+50%25+%C3%84.ris")).unwrap();
        assert_eq!(read[0].key, "a/My file + 50% Ä.ris");
    }

    #[test]
    fn an_event_that_lambda_gave_up_is_read_like_itself() {
        let given_up = json!({
            "version": "1.0",
            "requestContext": {"condition": "RetriesExhausted", "approximateInvokeCount": 3},
            "requestPayload": event("ObjectCreated:Put", "a"),
            "responseContext": {"statusCode": 200, "functionError": "Unhandled"},
        });
        assert_eq!(
            Notification::read_all(&given_up).unwrap(),
            Notification::read_all(&event("ObjectCreated:Put", "a")).unwrap()
        );
    }

    #[test]
    fn only_created_objects_count() {
        assert_eq!(Notification::read_all(&event("ObjectRemoved:Delete", "a")).unwrap(), []);
        assert_eq!(Notification::read_all(&event("s3:ObjectCreated:Post", "a")).unwrap().len(), 1);
    }

    #[test]
    fn sequencers_compare_as_numbers_padded_on_the_right() {
        assert_eq!(compare("0066F3A1", "0066F3A100"), Ordering::Equal);
        assert_eq!(compare("0066F3A2", "0066F3A1FF"), Ordering::Greater);
        assert_eq!(compare("0066f3a1", "0066F3A1"), Ordering::Equal);
        assert_eq!(compare("", "01"), Ordering::Less);
    }

    #[test]
    fn eventbridge_passes_keys_on_as_they_are_and_tells_of_more_than_creations() {
        let passed = |kind: &str| {
            json!({
                "source": "aws.s3",
                "detail-type": kind,
                "detail": {"bucket": {"name": "b"}, "object": {"key": "a + 50%41.ris", "version-id": "v", "sequencer": "1"}},
            })
        };
        let read = Notification::read_all(&passed("Object Created")).unwrap();
        assert_eq!((read[0].key.as_str(), read[0].version.as_deref()), ("a + 50%41.ris", Some("v")));
        assert_eq!(Notification::read_all(&passed("Object Deleted")).unwrap(), []);
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
