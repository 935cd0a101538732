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
    /// The key of the object, URL-decoded.
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
    /// Returns the created objects that an event reports. Objects with the same key are in the order in which they were
    /// stored. The test event that S3 sends when a notification is configured contains none.
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
