//! Events of S3 and EventBridge, and what they report.

use functions::notify_upload::{Notification, NotificationError};
use serde_json::{Value, json};

fn event_of(name: &str, key: &str) -> Value {
    json!({"Records": [{"eventName": name, "s3": {"bucket": {"name": "b"}, "object": {"key": key}}}]})
}

#[test]
fn plus_signs_are_decoded_first() {
    let read =
        Notification::read_all(&event_of("ObjectCreated:Put", "a/My+file+%2B+50%25+%C3%84.ris")).unwrap();
    assert_eq!(read[0].key, "a/My file + 50% Ä.ris");
}

#[test]
fn failed_invocation_record_contains_the_event() {
    let failed = json!({
        "version": "1.0",
        "requestContext": {"condition": "RetriesExhausted", "approximateInvokeCount": 3},
        "requestPayload": event_of("ObjectCreated:Put", "a"),
        "responseContext": {"statusCode": 200, "functionError": "Unhandled"},
    });
    assert_eq!(
        Notification::read_all(&failed).unwrap(),
        Notification::read_all(&event_of("ObjectCreated:Put", "a")).unwrap()
    );
}

#[test]
fn only_created_objects_are_reported() {
    assert_eq!(Notification::read_all(&event_of("ObjectRemoved:Delete", "a")).unwrap(), []);
    assert_eq!(Notification::read_all(&event_of("s3:ObjectCreated:Post", "a")).unwrap().len(), 1);
}

/// Sequencers are hexadecimal numbers. S3 documents that the shorter one is padded with zeros on the right.
#[test]
fn notifications_of_one_key_are_sorted_by_sequencer() {
    let stored = |sequencer: &str| {
        let object = json!({"key": "a", "sequencer": sequencer});
        json!({"eventName": "ObjectCreated:Put", "s3": {"bucket": {"name": "b"}, "object": object}})
    };
    let sorted = |sequencers: &[&str]| {
        let records: Vec<Value> = sequencers.iter().copied().map(stored).collect();
        let read = Notification::read_all(&json!({"Records": records})).unwrap();
        read.into_iter().map(|notification| notification.sequencer).collect::<Vec<_>>()
    };
    assert_eq!(sorted(&["0066F3A2", "0066F3A1FF"]), ["0066F3A1FF", "0066F3A2"]);
    assert_eq!(sorted(&["01", ""]), ["", "01"]);
    for equal in [["0066F3A1", "0066F3A100"], ["0066F3A100", "0066F3A1"], ["0066F3A1", "0066f3a1"]] {
        assert_eq!(sorted(&equal), equal, "equal numbers keep their order");
    }
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
    let latin1 = Notification::read_all(&event_of("ObjectCreated:Put", "%FF"));
    assert!(matches!(latin1, Err(NotificationError::Key(0))));
}
