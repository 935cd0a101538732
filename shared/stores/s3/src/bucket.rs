//! The bucket of uploads: finding its objects, and removing one.

use async_trait::async_trait;
use aws::failed;
use imports::FindObjects;
use imports::messages::ObjectRef;
use imports::objects::MAX_FOUND;
use messages::StoreError;

use crate::{Uploads, resource};

#[async_trait]
impl FindObjects for Uploads {
    async fn find(&self, prefix: &str) -> Result<Vec<ObjectRef>, StoreError> {
        // One answer contains up to this number of objects.
        let max = i32::try_from(MAX_FOUND).unwrap_or(i32::MAX);
        let request = self.client.list_objects_v2().bucket(&self.bucket).prefix(prefix).max_keys(max);
        let found = request.send().await.map_err(|error| {
            failed(format!("looking for objects below {prefix}"), &resource(&self.bucket), &error)
        })?;
        let object = |object: aws_sdk_s3::types::Object| {
            Some(ObjectRef {
                bucket: self.bucket.clone(),
                key: object.key?,
                version: None,
                size_bytes: object.size.and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
            })
        };
        Ok(found.contents.unwrap_or_default().into_iter().filter_map(object).collect())
    }

    async fn remove(&self, key: &str) -> Result<(), StoreError> {
        // Deleting an object that does not exist succeeds.
        let request = self.client.delete_object().bucket(&self.bucket).key(key);
        // The key is not named: it may hold a token.
        request
            .send()
            .await
            .map_err(|error| failed("removing an object", &resource(&self.bucket), &error))?;
        Ok(())
    }
}
