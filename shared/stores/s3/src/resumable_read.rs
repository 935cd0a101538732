//! Reading the bytes of an object, over as many connections as necessary.

use std::time::Duration;

use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::operation::get_object::GetObjectOutput;
use aws_sdk_s3::primitives::ByteStream;
use futures::stream::{self, StreamExt};
use imports::ObjectStream;
use imports::key::nickname;
use imports::messages::ObjectRef;
use messages::StoreError;
use messages::store::Source;

use crate::Objects;
use crate::failure::failed;

/// The maximum number of times that reading an object resumes after a broken connection. A connection to S3 usually
/// lasts for gigabytes. If the connection breaks more often, the object is read again when its message is redelivered.
pub(crate) const RESUMES: u32 = 5;
const FIRST_BACKOFF: Duration = Duration::from_millis(100);

/// The position of a reader, and its object.
#[derive(Debug, Clone)]
pub(crate) struct Position {
    object: ObjectRef,
    /// The object version of the first answer: reading must not resume with another one.
    etag: Option<String>,
    offset: u64,
    /// The object's size.
    size: u64,
}

impl Position {
    fn opened(mut object: ObjectRef, offset: u64, opened: &GetObjectOutput) -> Self {
        // In a bucket with versions, the rest has to be read from the version with which the reading began.
        object.version = object.version.or_else(|| opened.version_id().map(str::to_owned));
        let length = opened.content_length().and_then(|length| u64::try_from(length).ok());
        let before = if opened.content_range().is_some() { offset } else { 0 };
        let size = length.map_or(object.size_bytes, |length| before + length);
        Self { object, etag: opened.e_tag().map(str::to_owned), offset, size }
    }

    /// Returns the number of bytes of a response that were already read: zero if it resumes at this position, and all
    /// bytes up to it if it starts over, since a server may ignore the range (RFC 9110, section 14.2). Returns `None`
    /// for any other range.
    fn read_before(&self, content_range: Option<&str>) -> Option<u64> {
        match content_range {
            Some(range) => range.starts_with(&format!("bytes {}-", self.offset)).then_some(0),
            None => Some(self.offset),
        }
    }

    /// The number of bytes of an answer to skip.
    fn unread(&self, content_range: Option<&str>) -> Result<u64, StoreError> {
        self.read_before(content_range)
            .ok_or_else(|| StoreError::unusable(self.doing(), "the answer is another part of the object"))
    }

    fn doing(&self) -> String {
        format!("reading {} from byte {}", nickname(&self.object.key), self.offset)
    }
}

/// The range from a byte to the end.
pub(crate) fn range(from: u64) -> String {
    format!("bytes={from}-")
}

/// An object that is being read.
pub(crate) struct ResumableRead {
    objects: Objects,
    position: Position,
    body: ByteStream,
    /// The bytes at the start of the body that were read before.
    skip: u64,
    resumes: u32,
}

impl ResumableRead {
    /// Reads an answer for the object from byte `from` on.
    pub(crate) fn opened(
        objects: Objects,
        object: ObjectRef,
        from: u64,
        opened: GetObjectOutput,
    ) -> Result<Self, StoreError> {
        let position = Position::opened(object, from, &opened);
        let skip = position.unread(opened.content_range())?;
        Ok(Self { objects, position, body: opened.body, skip, resumes: 0 })
    }

    pub(crate) fn stream(self) -> ObjectStream {
        stream::try_unfold(self, |mut reading| async move {
            Ok(reading.next().await?.map(|piece| (piece, reading)))
        })
        .boxed()
    }

    async fn next(&mut self) -> Result<Option<Vec<u8>>, StoreError> {
        loop {
            let broken: Source = match self.body.try_next().await {
                Ok(Some(piece)) => match self.unread(&piece) {
                    [] => continue,
                    new => {
                        let new = new.to_vec();
                        self.position.offset += new.len() as u64;
                        return Ok(Some(new));
                    }
                },
                Ok(None) if self.position.offset >= self.position.size => return Ok(None),
                Ok(None) => "the connection ended early".into(),
                // The object is complete, but its checksum does not match the stored bytes.
                Err(error) if self.position.offset >= self.position.size => {
                    return Err(StoreError::unavailable(self.position.doing(), error));
                }
                Err(error) => error.into(),
            };
            self.resume(broken).await?;
        }
    }

    /// Returns the part of the body's next piece that was not read before.
    fn unread<'a>(&mut self, piece: &'a [u8]) -> &'a [u8] {
        let known = usize::try_from(self.skip).unwrap_or(usize::MAX).min(piece.len());
        self.skip -= known as u64;
        piece.get(known..).unwrap_or_default()
    }

    /// Opens the rest of the object; fails with the last cause when that was needed too often.
    async fn resume(&mut self, mut broken: Source) -> Result<(), StoreError> {
        while self.resumes < RESUMES {
            // The log line omits the key, because the key contains a token.
            tracing::debug!(offset = self.position.offset, %broken, "reading on");
            self.resumes += 1;
            self.back_off().await;
            match self.rest().await {
                Ok((body, skip)) => {
                    (self.body, self.skip) = (body, skip);
                    return Ok(());
                }
                Err(error) if error.is_retryable() => broken = error.into(),
                Err(error) => return Err(error),
            }
        }
        Err(StoreError::unavailable(self.position.doing(), broken))
    }

    async fn back_off(&self) {
        let longest = FIRST_BACKOFF * 2_u32.saturating_pow(self.resumes - 1);
        let host = &self.objects.host;
        host.sleep(longest.mul_f64(0.5 + host.unit_random() / 2.0)).await;
    }

    async fn rest(&self) -> Result<(ByteStream, u64), StoreError> {
        let Position { object, etag, .. } = &self.position;
        let request = self.objects.client.get_object().bucket(&object.bucket).key(&object.key);
        let answer = request
            .set_version_id(object.version.clone())
            .set_if_match(etag.clone())
            .range(range(self.position.offset))
            .send()
            .await;
        match answer {
            Ok(rest) => self.position.unread(rest.content_range()).map(|skip| (rest.body, skip)),
            // The new object can be read from its beginning when the message is redelivered.
            Err(error) if error.code() == Some("PreconditionFailed") => {
                Err(StoreError::unavailable(self.position.doing(), "it was replaced while it was read"))
            }
            Err(error) => {
                let doing = format!("reading from byte {} of", self.position.offset);
                Err(failed(&doing, &object.bucket, &object.key, &error))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(offset: u64) -> Position {
        let object = ObjectRef { bucket: "b".into(), key: "k".into(), version: None, size_bytes: 1_000 };
        let opened = GetObjectOutput::builder().content_length(900).version_id("v1").e_tag("\"e\"").build();
        Position { offset, ..Position::opened(object, 0, &opened) }
    }

    #[test]
    fn reading_resumes_at_offset() {
        let position = position(10);
        assert_eq!((position.size, position.object.version.as_deref()), (900, Some("v1")));
        assert_eq!(range(position.offset), "bytes=10-");
    }

    #[test]
    fn response_resumes_restarts_or_is_refused() {
        assert_eq!(position(10).read_before(Some("bytes 10-899/900")), Some(0));
        assert_eq!(position(10).read_before(None), Some(10));
        for other in ["bytes 0-899/900", "bytes 100-899/900"] {
            assert_eq!(position(10).read_before(Some(other)), None, "{other}");
        }
    }
}
