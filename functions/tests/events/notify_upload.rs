//! Sample events of S3, fed to the library and to the built binary.

use std::sync::Arc;

use async_trait::async_trait;
use embedded::Store;
use events::{Batches, ExpectedResult, Installation, check_log, event};
use functions::notify_upload::{FUNCTION, Notification, NotifyUpload};
use imports::messages::ObjectRef;
use imports::queues::SAGA;
use imports::{ObjectFacts, ObjectStream, ReadObject, SearchEvent};
use lambda_host::Outcome;
use messages::{Message, StoreError};

use crate::answer;

/// Returns the events, each with the name and version of the files that are reported to the saga.
fn events() -> impl Iterator<Item = (&'static str, &'static [(&'static str, &'static str)])> {
    ExpectedResult::names("s3-").map(|name| match ExpectedResult::of(name) {
        Some(ExpectedResult::Files(files)) => (name, *files),
        other => panic!("{name}: {other:?}"),
    })
}

/// Returns an installation that stores the files of an event.
async fn installation(name: &str) -> Installation {
    let installation = Installation::new();
    for notification in Notification::read_all(&event(name)).unwrap() {
        installation.store_upload(&notification.key).await;
    }
    installation
}

/// Returns the function over a store that has every version of a file; the embedded one has no versions.
fn function(installation: &Installation) -> NotifyUpload {
    let objects = Arc::new(AnyVersion(Arc::clone(&installation.store)));
    NotifyUpload { objects, ..NotifyUpload::over(&installation.backend().ports).unwrap() }
}

struct AnyVersion(Arc<Store>);

#[async_trait]
impl ReadObject for AnyVersion {
    async fn head(
        &self,
        bucket: &str,
        key: &str,
        _: Option<&str>,
    ) -> Result<Option<ObjectFacts>, StoreError> {
        self.0.head(bucket, key, None).await
    }

    async fn open(&self, object: &ObjectRef, from: u64) -> Result<Option<ObjectStream>, StoreError> {
        self.0.open(object, from).await
    }
}

/// Returns the name and version of the files that messages report.
fn files(messages: &[Message]) -> Vec<(String, String)> {
    messages.iter().map(file).collect()
}

fn file(message: &Message) -> (String, String) {
    match message.read().unwrap() {
        SearchEvent::SearchUploadSaved(saved) => (saved.file_name, saved.object.version.unwrap_or_default()),
        other => panic!("{other:?}"),
    }
}

fn owned(files: &[(&str, &str)]) -> Vec<(String, String)> {
    files.iter().map(|(name, version)| ((*name).to_owned(), (*version).to_owned())).collect()
}

#[tokio::test]
async fn library_reports_every_file() {
    for (name, expected) in events() {
        let installation = installation(name).await;
        let notifications = Notification::read_all(&event(name)).unwrap();
        function(&installation).handle(&notifications).await.unwrap();
        let sent = installation.sent(&SAGA).await;
        assert_eq!(files(&sent), owned(expected), "{name}");
    }
}

#[tokio::test]
async fn binary_reports_every_file() {
    for (name, expected) in events() {
        let installation = installation(name).await;
        let mut function = installation.start(env!("CARGO_BIN_EXE_notify-upload")).await;
        let outcome = function.invoke(&event(name)).await.unwrap();
        assert_eq!(outcome, Outcome::Answer("null".into()), "{name}");
        // In the binary's store, files with a version do not exist.
        let expected: Vec<_> = expected.iter().filter(|(_, version)| version.is_empty()).copied().collect();
        assert_eq!(files(&installation.sent(&SAGA).await), owned(&expected), "{name}");
        check_log(&function.stop().await);
    }
}

#[tokio::test]
async fn repeated_notification_repeats_the_message() {
    let installation = installation("s3-duplicate").await;
    let notifications = Notification::read_all(&event("s3-duplicate")).unwrap();
    function(&installation).handle(&notifications).await.unwrap();
    let sent = installation.sent(&SAGA).await;
    assert_eq!(sent[0].id, sent[1].id);
}

/// The batches of its queue; an invalid notification fails only its own record.
const BATCHES: Batches = Batches("sqs-uploads");

#[tokio::test]
async fn library_answers_each_record() {
    BATCHES.feed_library(async |backend: &_, batch| answer(&FUNCTION, backend, batch).await).await;
}

#[tokio::test]
async fn binary_answers_each_record() {
    BATCHES.feed_binary(env!("CARGO_BIN_EXE_notify-upload")).await;
}

#[tokio::test]
async fn binary_survives_a_foreign_event() {
    let installation = installation("s3-put").await;
    let mut function = installation.start(env!("CARGO_BIN_EXE_notify-upload")).await;
    for other in ["schedule", "http-list-searches"] {
        let failed = function.invoke(&event(other)).await.unwrap();
        assert!(matches!(failed, Outcome::Failure(_)), "{other}: {failed:?}");
    }
    assert_eq!(function.invoke(&event("s3-put")).await.unwrap(), Outcome::Answer("null".into()));
}
