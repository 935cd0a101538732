//! Exports in the bucket of the uploads.

use std::time::Duration;

use async_trait::async_trait;
use aws::failed;
use aws_sdk_s3::operation::head_object::HeadObjectError;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_sdk_s3::primitives::ByteStream;
use aws_sdk_s3::types::{CompletedMultipartUpload, CompletedPart};
use futures::stream::TryStreamExt;
use imports::exports::{Pieces, content_disposition};
use imports::{ExportKey, ExportLink, KeepExports};
use jiff::{SignedDuration, Timestamp};
use messages::StoreError;

use crate::{Uploads, resource};

/// The size of a part. S3 requires at least 5 MiB for all parts except the last, and accepts up to 10,000 parts
/// (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/qfacts.html>): an export may have 80 GiB.
const PART_BYTES: usize = 8 << 20;

#[async_trait]
impl KeepExports for Uploads {
    async fn keep(&self, key: &ExportKey, mut pieces: Pieces<'_>) -> Result<u64, StoreError> {
        let (first, is_last) = part(&mut pieces).await?;
        if is_last {
            return self.put(key, first).await;
        }
        let upload = Upload { uploads: self, key, id: self.begin(key).await? };
        match upload.send(first, pieces).await {
            Ok(size) => Ok(size),
            Err(error) => {
                upload.abort().await;
                Err(error)
            }
        }
    }

    async fn link(
        &self,
        key: &ExportKey,
        file_name: &str,
        valid_for: Duration,
    ) -> Result<Option<ExportLink>, StoreError> {
        let doing = format!("looking for {key}");
        let head = self.client.head_object().bucket(&self.bucket).key(key.to_string()).send().await;
        let size_bytes = match head {
            Ok(head) => head.content_length().and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
            Err(error) if error.as_service_error().is_some_and(HeadObjectError::is_not_found) => {
                return Ok(None);
            }
            Err(error) => return Err(failed(doing, &resource(&self.bucket), &error)),
        };
        let doing = format!("signing a link to {key}");
        let valid = PresigningConfig::expires_in(valid_for)
            .map_err(|error| StoreError::unusable(doing.clone(), error))?;
        let request = self
            .client
            .get_object()
            .bucket(&self.bucket)
            .key(key.to_string())
            .response_content_disposition(content_disposition(file_name));
        // The validity starts before the signing, so that a link is never reported as valid for longer than it is.
        let now = self.host.now();
        let signed =
            request.presigned(valid).await.map_err(|error| failed(doing, &resource(&self.bucket), &error))?;
        let valid_for = SignedDuration::try_from(valid_for).unwrap_or(SignedDuration::MAX);
        let expires_at = now.checked_add(valid_for).unwrap_or(Timestamp::MAX);
        Ok(Some(ExportLink { url: signed.uri().to_owned(), size_bytes, expires_at }))
    }
}

impl Uploads {
    /// Stores an export that fits into one request.
    async fn put(&self, key: &ExportKey, bytes: Vec<u8>) -> Result<u64, StoreError> {
        let size = bytes.len() as u64;
        let request = self.client.put_object().bucket(&self.bucket).key(key.to_string());
        let request = request.content_type(key.content.media_type()).body(ByteStream::from(bytes));
        request
            .send()
            .await
            .map_err(|error| failed(format!("storing {key}"), &resource(&self.bucket), &error))?;
        Ok(size)
    }

    async fn begin(&self, key: &ExportKey) -> Result<String, StoreError> {
        let doing = format!("beginning to store {key}");
        let request = self.client.create_multipart_upload().bucket(&self.bucket).key(key.to_string());
        let begun = request.content_type(key.content.media_type()).send().await;
        let begun = begun.map_err(|error| failed(&*doing, &resource(&self.bucket), &error))?;
        let unnamed = || StoreError::unusable(&*doing, "the answer names no upload");
        begun.upload_id.ok_or_else(unnamed)
    }
}

/// An object that is uploaded in parts.
struct Upload<'a> {
    uploads: &'a Uploads,
    key: &'a ExportKey,
    id: String,
}

impl Upload<'_> {
    async fn send(&self, first: Vec<u8>, mut pieces: Pieces<'_>) -> Result<u64, StoreError> {
        let (mut size, mut sent, mut next) = (0, Vec::new(), Some(first));
        while let Some(bytes) = next {
            size += bytes.len() as u64;
            sent.push(
                self.part(i32::try_from(sent.len()).unwrap_or(i32::MAX).saturating_add(1), bytes).await?,
            );
            let (part, _) = part(&mut pieces).await?;
            next = (!part.is_empty()).then_some(part);
        }
        let parts = CompletedMultipartUpload::builder().set_parts(Some(sent)).build();
        let client = &self.uploads.client;
        let request =
            client.complete_multipart_upload().bucket(&self.uploads.bucket).key(self.key.to_string());
        let done = request.upload_id(&self.id).multipart_upload(parts).send().await;
        done.map_err(|error| failed(self.doing(), &resource(&self.uploads.bucket), &error))?;
        Ok(size)
    }

    async fn part(&self, number: i32, bytes: Vec<u8>) -> Result<CompletedPart, StoreError> {
        let client = &self.uploads.client;
        let request = client.upload_part().bucket(&self.uploads.bucket).key(self.key.to_string());
        let request = request.upload_id(&self.id).part_number(number).body(ByteStream::from(bytes));
        let sent = request.send().await;
        let sent = sent.map_err(|error| failed(self.doing(), &resource(&self.uploads.bucket), &error))?;
        // The checksum of the part is present if the SDK has sent one. S3 checks the complete object with the checksums
        // of all parts.
        let part = CompletedPart::builder().part_number(number).set_e_tag(sent.e_tag);
        Ok(part.set_checksum_crc32(sent.checksum_crc32).build())
    }

    /// If aborting fails, the bucket's lifecycle rule aborts the upload.
    async fn abort(&self) {
        let client = &self.uploads.client;
        let request = client.abort_multipart_upload().bucket(&self.uploads.bucket).key(self.key.to_string());
        if let Err(error) = request.upload_id(&self.id).send().await {
            let error = failed(self.doing(), &resource(&self.uploads.bucket), &error);
            tracing::warn!(error = error.chain(), "parts of an export are left");
        }
    }

    fn doing(&self) -> String {
        format!("storing {}", self.key)
    }
}

/// Collects enough bytes for one part. The last part has fewer bytes, or none. Returns `true` if the part is the last
/// one.
async fn part(pieces: &mut Pieces<'_>) -> Result<(Vec<u8>, bool), StoreError> {
    let mut part = Vec::new();
    while part.len() < PART_BYTES {
        match pieces.try_next().await? {
            Some(piece) => part.extend(piece),
            None => return Ok((part, true)),
        }
    }
    Ok((part, false))
}
