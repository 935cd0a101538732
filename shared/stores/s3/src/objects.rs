//! Stored objects: their metadata, and starting to read their content.

use async_trait::async_trait;
use aws_sdk_s3::error::ProvideErrorMetadata;
use futures::stream::{self, StreamExt};
use imports::messages::ObjectRef;
use imports::{ObjectFacts, ObjectStream, ReadObject};
use messages::StoreError;

use crate::failure::failed;
use crate::resumable_read::{self, ResumableRead};
use crate::{Objects, resource};

/// The error codes of S3 for an absent object. S3 answers with `MethodNotAllowed` if the version is a delete marker
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/DeleteMarker.html>).
const ABSENT: [&str; 4] = ["NoSuchKey", "NoSuchVersion", "NotFound", "MethodNotAllowed"];

#[async_trait]
impl ReadObject for Objects {
    async fn head(
        &self,
        bucket: &str,
        key: &str,
        version: Option<&str>,
    ) -> Result<Option<ObjectFacts>, StoreError> {
        let request = self.client.head_object().bucket(bucket).key(key);
        match request.set_version_id(version.map(str::to_owned)).send().await {
            Ok(found) => Ok(Some(ObjectFacts {
                size_bytes: found.content_length.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
                version: found.version_id,
                metadata: found.metadata.unwrap_or_default().into_iter().collect(),
            })),
            Err(error) if is_absent(error.code(), error.raw_response().map(|raw| raw.status().as_u16())) => {
                self.check(bucket).await.map(|()| None)
            }
            Err(error) => Err(failed("looking for", bucket, key, &error)),
        }
    }

    async fn open(&self, object: &ObjectRef, from: u64) -> Result<Option<ObjectStream>, StoreError> {
        let request = self.client.get_object().bucket(&object.bucket).key(&object.key);
        let request = request.set_range((from > 0).then(|| resumable_read::range(from)));
        match request.set_version_id(object.version.clone()).send().await {
            Ok(opened) => ResumableRead::opened(self.clone(), object.clone(), from, opened)
                .map(|reading| Some(reading.stream())),
            // There is nothing from there on.
            Err(error) if error.code() == Some("InvalidRange") => Ok(Some(stream::empty().boxed())),
            Err(error) if error.code().is_some_and(|code| ABSENT.contains(&code)) => Ok(None),
            Err(error) => Err(failed("opening", &object.bucket, &object.key, &error)),
        }
    }
}

/// The response to HEAD has no body that could distinguish an absent object from an absent bucket.
fn is_absent(code: Option<&str>, status: Option<u16>) -> bool {
    code.is_some_and(|code| ABSENT.contains(&code)) || matches!(status, Some(404 | 405))
}

impl Objects {
    /// Checks that a bucket exists: a missing bucket must not look like an empty one.
    ///
    /// # Errors
    /// Returns an error if the bucket does not exist, or S3 does not answer.
    pub async fn check(&self, bucket: &str) -> Result<(), StoreError> {
        match self.client.head_bucket().bucket(bucket).send().await {
            Ok(_) => Ok(()),
            Err(error) => {
                let doing = format!("looking for bucket {bucket}");
                match error.raw_response().map(|raw| raw.status().as_u16()) {
                    Some(404) => {
                        Err(StoreError::unavailable(doing, aws::failure::Failure::Missing(resource(bucket))))
                    }
                    _ => Err(aws::failed(doing, &resource(bucket), &error)),
                }
            }
        }
    }
}
