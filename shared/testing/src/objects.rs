//! What [`PresignUpload`] and [`ReadObject`] promise.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::TryStreamExt;
use imports::messages::ObjectRef;
use imports::{PresignUpload, PresignedPost, ReadObject, UploadGrant};
use messages::Host;

use crate::{Checked, sample};

/// What came of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Uploaded {
    /// The object is stored.
    Stored,
    /// The form does not allow it.
    Refused,
}

/// Sends a form as a reviewer's browser does.
#[async_trait]
pub trait Upload: Send + Sync {
    /// Uploads `bytes` with a form.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn upload(
        &self,
        form: &PresignedPost,
        bytes: Vec<u8>,
    ) -> Result<Uploaded, Box<dyn std::error::Error + Send + Sync>>;
}

/// What is under test.
pub struct Ports<'a> {
    /// Makes forms.
    pub presign: &'a dyn PresignUpload,
    /// Sends them.
    pub upload: &'a dyn Upload,
    /// Reads.
    pub read: &'a dyn ReadObject,
    /// Ids and time: the clock that forms expire by.
    pub host: &'a dyn Host,
    /// The bucket of the uploads.
    pub bucket: &'a str,
    /// What keys have to begin with, such as `uploads/`.
    pub prefix: &'a str,
}

/// Checks every promise.
///
/// # Errors
/// When a port fails.
pub async fn all(ports: &Ports<'_>) -> Checked {
    an_uploaded_object_has_its_bytes_size_and_metadata(ports).await?;
    an_object_of_several_pieces_reads_back_whole(ports).await?;
    the_size_must_be_within_its_range(ports).await?;
    a_form_is_for_its_key_alone(ports).await?;
    an_expired_form_is_refused(ports).await?;
    a_form_may_be_used_again_and_replaces(ports).await?;
    an_absent_object_is_none(ports).await
}

const MAX_BYTES: u64 = 1000;

impl Ports<'_> {
    /// A grant for an hour, with a key that has everything a file's name may have.
    fn grant(&self) -> UploadGrant {
        UploadGrant {
            key: format!("{}{}/My search + 50% (Ärzte).ris", self.prefix, self.host.fresh_id()),
            max_bytes: MAX_BYTES,
            metadata: BTreeMap::from([("search-name".to_owned(), "Spiel%20%26%20Sucht".to_owned())]),
            expires_at: sample::later(sample::now(self.host), 3600),
        }
    }

    async fn form(&self, grant: &UploadGrant) -> Result<PresignedPost, messages::StoreError> {
        let form = self.presign.presign(grant).await?;
        assert_eq!(form.expires_at, grant.expires_at);
        Ok(form)
    }

    async fn size(&self, key: &str) -> Result<Option<u64>, messages::StoreError> {
        Ok(self.read.head(self.bucket, key, None).await?.map(|facts| facts.size_bytes))
    }

    async fn bytes(&self, key: &str, size_bytes: u64) -> Result<Option<Vec<u8>>, messages::StoreError> {
        let object =
            ObjectRef { bucket: self.bucket.to_owned(), key: key.to_owned(), version: None, size_bytes };
        match self.read.open(&object, 0).await? {
            Some(stream) => Ok(Some(stream.try_concat().await?)),
            None => Ok(None),
        }
    }
}

/// Under exactly its key.
///
/// # Errors
/// When a port fails.
pub async fn an_uploaded_object_has_its_bytes_size_and_metadata(ports: &Ports<'_>) -> Checked {
    let grant = ports.grant();
    let form = ports.form(&grant).await?;
    assert_eq!(ports.size(&grant.key).await?, None, "a form alone stores nothing");
    assert_eq!(ports.upload.upload(&form, b"TY  - JOUR\r\n".to_vec()).await?, Uploaded::Stored);
    let facts = ports.read.head(ports.bucket, &grant.key, None).await?.ok_or("it is stored")?;
    assert_eq!((facts.size_bytes, facts.metadata), (12, grant.metadata));
    assert_eq!(ports.bytes(&grant.key, 12).await?, Some(b"TY  - JOUR\r\n".to_vec()));
    Ok(())
}

/// Larger than any piece that a store would read at once.
///
/// # Errors
/// When a port fails.
pub async fn an_object_of_several_pieces_reads_back_whole(ports: &Ports<'_>) -> Checked {
    let grant = UploadGrant { max_bytes: 10_000_000, ..ports.grant() };
    let form = ports.form(&grant).await?;
    let bytes: Vec<u8> = (0..1_500_001_u32).flat_map(u32::to_le_bytes).collect();
    assert_eq!(ports.upload.upload(&form, bytes.clone()).await?, Uploaded::Stored);
    let read = ports.bytes(&grant.key, bytes.len() as u64).await?;
    assert!(read.is_some_and(|read| read == bytes), "other bytes");
    for from in [1, 3_000_000, bytes.len() - 1, bytes.len()] {
        let (bucket, key) = (ports.bucket.to_owned(), grant.key.clone());
        let object = ObjectRef { bucket, key, version: None, size_bytes: bytes.len() as u64 };
        let rest = ports.read.open(&object, from as u64).await?.ok_or("it is stored")?;
        assert!(rest.try_concat().await? == bytes[from..], "other bytes from {from} on");
    }
    Ok(())
}

/// From one byte to the grant's limit, both included.
///
/// # Errors
/// When a port fails.
pub async fn the_size_must_be_within_its_range(ports: &Ports<'_>) -> Checked {
    for (size, expected) in
        [(0, Uploaded::Refused), (1, Uploaded::Stored), (1000, Uploaded::Stored), (1001, Uploaded::Refused)]
    {
        let grant = ports.grant();
        let form = ports.form(&grant).await?;
        assert_eq!(ports.upload.upload(&form, vec![b'x'; size]).await?, expected, "{size} bytes");
        let stored = (expected == Uploaded::Stored).then_some(size as u64);
        assert_eq!(ports.size(&grant.key).await?, stored, "{size} bytes");
    }
    Ok(())
}

/// Changing it makes another form, which nobody granted.
///
/// # Errors
/// When a port fails.
pub async fn a_form_is_for_its_key_alone(ports: &Ports<'_>) -> Checked {
    let grant = ports.grant();
    let mut form = ports.form(&grant).await?;
    let other = ports.grant().key;
    form.fields.insert("key".to_owned(), other.clone());
    assert_eq!(ports.upload.upload(&form, b"x".to_vec()).await?, Uploaded::Refused);
    assert_eq!((ports.size(&grant.key).await?, ports.size(&other).await?), (None, None));
    Ok(())
}

/// The moment it expires.
///
/// # Errors
/// When a port fails.
pub async fn an_expired_form_is_refused(ports: &Ports<'_>) -> Checked {
    let lifetime = 3;
    let grant = UploadGrant { expires_at: sample::later(sample::now(ports.host), lifetime), ..ports.grant() };
    let form = ports.form(&grant).await?;
    ports.host.sleep(Duration::from_secs(lifetime.unsigned_abs())).await;
    assert_eq!(ports.upload.upload(&form, b"x".to_vec()).await?, Uploaded::Refused);
    assert_eq!(ports.size(&grant.key).await?, None);
    Ok(())
}

/// A reviewer who sees an error tries again.
///
/// # Errors
/// When a port fails.
pub async fn a_form_may_be_used_again_and_replaces(ports: &Ports<'_>) -> Checked {
    let grant = ports.grant();
    let form = ports.form(&grant).await?;
    for bytes in [b"first".to_vec(), b"the second".to_vec()] {
        assert_eq!(ports.upload.upload(&form, bytes.clone()).await?, Uploaded::Stored);
        assert_eq!(ports.size(&grant.key).await?, Some(bytes.len() as u64));
        assert_eq!(ports.bytes(&grant.key, bytes.len() as u64).await?, Some(bytes));
    }
    Ok(())
}

/// Neither an error nor empty.
///
/// # Errors
/// When a port fails.
pub async fn an_absent_object_is_none(ports: &Ports<'_>) -> Checked {
    let key = ports.grant().key;
    assert_eq!(ports.read.head(ports.bucket, &key, None).await?, None);
    assert_eq!(ports.bytes(&key, 1).await?, None);
    Ok(())
}
