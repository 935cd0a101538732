//! The uploaded files.

use std::collections::BTreeMap;

use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::Timestamp;
use messages::StoreError;
use serde::{Deserialize, Serialize};

use crate::messages::ObjectRef;

/// The bytes of an object, in pieces of a size that the store chooses.
pub type ObjectStream = BoxStream<'static, Result<Vec<u8>, StoreError>>;

/// What is known of a stored object without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectFacts {
    /// Its size in bytes.
    pub size_bytes: u64,
    /// Its version, in a bucket that keeps versions.
    pub version: Option<String>,
    /// Its user metadata, as the upload form set it.
    pub metadata: BTreeMap<String, String>,
}

/// Reads stored objects.
#[async_trait]
pub trait ReadObject: Send + Sync {
    /// What is known of an object, of its latest version unless one is named; `None` when there is no such object, or no
    /// longer.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn head(
        &self,
        bucket: &str,
        key: &str,
        version: Option<&str>,
    ) -> Result<Option<ObjectFacts>, StoreError>;

    /// The object's bytes from byte `from` on; `None` when there is no such object, or no longer.
    ///
    /// # Errors
    /// When the store does not answer. The stream itself may fail later.
    async fn open(&self, object: &ObjectRef, from: u64) -> Result<Option<ObjectStream>, StoreError>;
}

/// The most objects that one look finds: several for each file that a search may have.
pub const MAX_FOUND: usize = 1_000;

/// Looks through the bucket of the uploads, and removes objects from it.
#[async_trait]
pub trait FindObjects: Send + Sync {
    /// The latest versions of the objects whose keys begin with `prefix`, in the order of their keys, at most
    /// [`MAX_FOUND`]. Their versions are left open.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn find(&self, prefix: &str) -> Result<Vec<ObjectRef>, StoreError>;

    /// Removes an object, whatever its version; nothing happens when there is none. A bucket that keeps versions keeps what
    /// it was for a while.
    ///
    /// # Errors
    /// When the store does not answer.
    async fn remove(&self, key: &str) -> Result<(), StoreError>;
}

/// The right to upload one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadGrant {
    /// The key that the object has to have, exactly.
    pub key: String,
    /// The size that the object has to have, in bytes, exactly; at least 1.
    pub size_bytes: u64,
    /// User metadata that the object will have.
    pub metadata: BTreeMap<String, String>,
    /// When the right ends.
    pub expires_at: Timestamp,
}

/// A form that uploads one object: send `fields` and the file to `url` as `multipart/form-data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresignedPost {
    /// Where to.
    pub url: String,
    /// The form's fields, which must be sent unchanged.
    pub fields: BTreeMap<String, String>,
    /// Valid until.
    pub expires_at: Timestamp,
}

/// Makes forms that upload one object each.
#[async_trait]
pub trait PresignUpload: Send + Sync {
    /// The form for a grant.
    ///
    /// # Errors
    /// When the store does not answer or the grant cannot be signed.
    async fn presign(&self, grant: &UploadGrant) -> Result<PresignedPost, StoreError>;
}
