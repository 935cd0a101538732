//! The ports of uploaded files.

use std::collections::BTreeMap;

use ::messages::StoreError;
use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::messages::ObjectRef;

/// The bytes of an object, in chunks of a size that the store chooses.
pub type ObjectStream = BoxStream<'static, Result<Vec<u8>, StoreError>>;

/// The metadata of a stored object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectFacts {
    /// The size of the object in bytes.
    pub size_bytes: u64,
    /// The version of the object, in a bucket with versioning.
    pub version: Option<String>,
    /// The user metadata of the object, as set by the upload form.
    pub metadata: BTreeMap<String, String>,
}

/// Reads stored objects.
#[async_trait]
pub trait ReadObject: Send + Sync {
    /// Returns the metadata of an object, of its latest version unless one is given; `None` if the object does not
    /// exist.
    async fn head(
        &self,
        bucket: &str,
        key: &str,
        version: Option<&str>,
    ) -> Result<Option<ObjectFacts>, StoreError>;

    /// Returns the bytes of an object from byte `from` on; `None` if the object does not exist.
    ///
    /// # Errors
    /// Returns an error if the store is unavailable. The stream itself may also fail.
    async fn open(&self, object: &ObjectRef, from: u64) -> Result<Option<ObjectStream>, StoreError>;
}

/// The maximum number of objects that one listing returns: several for each file that a search can have.
pub const MAX_FOUND: usize = 1_000;

/// Lists and removes objects in the bucket of the uploads.
#[async_trait]
pub trait FindObjects: Send + Sync {
    /// Lists the latest versions of the objects whose keys begin with `prefix`, in the order of their keys, up to
    /// [`MAX_FOUND`]. The `version` of the results is not set.
    async fn find(&self, prefix: &str) -> Result<Vec<ObjectRef>, StoreError>;

    /// Removes an object; does nothing if it does not exist. A bucket with versioning keeps the old version for a
    /// while.
    async fn remove(&self, key: &str) -> Result<(), StoreError>;
}

/// The permission to upload one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UploadGrant {
    /// The exact key of the object.
    pub key: String,
    /// The exact size of the object, in bytes; at least 1.
    pub size_bytes: u64,
    /// User metadata of the object.
    pub metadata: BTreeMap<String, String>,
    /// The time at which the permission expires.
    pub expires_at: Timestamp,
}

/// A form that uploads one object: send `fields` and the file to `url` as `multipart/form-data`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PresignedPost {
    /// The URL to send the form to.
    pub url: String,
    /// The form's fields, which must be sent unchanged.
    pub fields: BTreeMap<String, String>,
    /// The time at which the form expires.
    pub expires_at: Timestamp,
}

/// Signs upload forms.
#[async_trait]
pub trait PresignUpload: Send + Sync {
    /// Returns the form for a grant.
    async fn presign(&self, grant: &UploadGrant) -> Result<PresignedPost, StoreError>;
}
