//! Objects, progress, and the memory of processed commands.

use async_trait::async_trait;
use contracts::message::ObjectRef;
use contracts::{FileId, SearchId, StoreError};
use dedup::RememberProcessed;
use futures::StreamExt;
use futures::stream;
use imports::objects::ObjectStream;
use imports::{ObjectFacts, PresignUpload, PresignedPost, Progress, ReadObject, ReportProgress, UploadGrant};
use jiff::Timestamp;

use crate::coverage::Call;
use crate::port::Port;
use crate::world::{StoredObject, World};

#[async_trait]
impl ReadObject for Port {
    async fn head(
        &self,
        _: &str,
        key: &str,
        version: Option<&str>,
    ) -> Result<Option<ObjectFacts>, StoreError> {
        let (key, version) = (key.to_owned(), version.map(str::to_owned));
        let head = move |world: &mut World| {
            let stored = world.object(&key, version.as_deref())?;
            let size_bytes = stored.object.size_bytes;
            Some(ObjectFacts { size_bytes, metadata: stored.metadata.clone() })
        };
        self.call(Call::ObjectsHead, head).await
    }

    async fn open(&self, object: &ObjectRef) -> Result<Option<ObjectStream>, StoreError> {
        let object = object.clone();
        let open = move |world: &mut World| {
            let Some(stored) = world.object(&object.key, object.version.as_deref()) else { return Ok(None) };
            // Nobody ever succeeds in reading a poisonous file.
            let broken = || StoreError::unavailable("reading an object", "the object cannot be read");
            let bytes = stored.bytes.ok_or_else(broken)?;
            Ok(Some(stream::iter([Ok(bytes.to_vec())]).boxed()))
        };
        self.call(Call::ObjectsOpen, open).await?
    }
}

impl World {
    fn object(&self, key: &str, version: Option<&str>) -> Option<&StoredObject> {
        let is =
            |stored: &&StoredObject| stored.object.key == key && stored.object.version.as_deref() == version;
        self.objects.iter().find(is)
    }
}

/// Progress is for the eye alone.
#[async_trait]
impl ReportProgress for Port {
    async fn report(&self, _: SearchId, _: FileId, _: Progress) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl RememberProcessed for Port {
    async fn is_remembered(&self, key: &str, now: Timestamp) -> Result<bool, StoreError> {
        let key = key.to_owned();
        let look = move |world: &mut World| world.processed.get(&key).is_some_and(|until| *until > now);
        self.call(Call::ProcessedLook, look).await
    }

    async fn remember(&self, key: &str, expires_at: Timestamp) -> Result<(), StoreError> {
        let key = key.to_owned();
        self.call(Call::ProcessedRemember, move |world| {
            world.processed.insert(key, expires_at);
        })
        .await
    }
}

/// Making a form takes no call.
#[async_trait]
impl PresignUpload for Port {
    async fn presign(&self, grant: &UploadGrant) -> Result<PresignedPost, StoreError> {
        let mut fields = grant.metadata.clone();
        fields.insert("key".to_owned(), grant.key.clone());
        Ok(PresignedPost { url: "simulated".to_owned(), fields, expires_at: grant.expires_at })
    }
}
