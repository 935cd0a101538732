//! The queues, tables and bucket of the search import on local servers, for development and tests.

use aws::failed;
use aws_sdk_s3::error::ProvideErrorMetadata;
use aws_sdk_s3::types::{
    BucketVersioningStatus, Event, NotificationConfiguration, QueueConfiguration, VersioningConfiguration,
};
use aws_types::SdkConfig;
use imports::queues::{QUEUES, UPLOADS};
use messages::{QueueSpec, StoreError};

/// An environment of the search import.
#[derive(Clone)]
pub struct Provision {
    shared: system_tools::Provision,
    s3: aws_sdk_s3::Client,
}

impl Provision {
    /// Returns an environment. The names of its resources begin with `name`.
    pub fn new(sdk: &SdkConfig, name: impl Into<String>) -> Self {
        Self::with_queues(sdk, name, &QUEUES)
    }

    /// Works like [`Provision::new`], with other specifications of the queues.
    pub fn with_queues(sdk: &SdkConfig, name: impl Into<String>, queues: &'static [QueueSpec]) -> Self {
        let shared = system_tools::Provision::new(imports::SYSTEM, queues, sdk, name);
        Self { shared, s3: s3::client(sdk) }
    }

    /// Creates missing resources, and returns their settings as pairs of name and value.
    ///
    /// # Errors
    /// Returns the errors of [`system_tools::Provision::create`].
    pub async fn create(&self) -> Result<Vec<(String, String)>, StoreError> {
        let mut settings = self.shared.create().await?;
        // The bucket is created last, because it notifies a queue of its uploads.
        settings.push(self.create_bucket().await?);
        Ok(settings)
    }

    /// Removes all resources.
    pub async fn remove(&self) -> Result<(), StoreError> {
        self.shared.remove().await?;
        self.remove_bucket().await
    }

    async fn create_bucket(&self) -> Result<(String, String), StoreError> {
        let bucket = self.shared.resource("bucket", s3::UPLOAD_BUCKET);
        let doing = format!("creating bucket {}", bucket.name);
        match self.s3.create_bucket().bucket(&bucket.name).send().await {
            Ok(_) => {}
            Err(error) if error.code() == Some("BucketAlreadyOwnedByYou") => {}
            Err(error) => return Err(failed(doing, &bucket, &error)),
        }
        let versions = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled).build();
        let request = self.s3.put_bucket_versioning().bucket(&bucket.name).versioning_configuration(versions);
        request.send().await.map_err(|error| failed(&*doing, &bucket, &error))?;
        let notify = QueueConfiguration::builder()
            .queue_arn(self.shared.arn_of(&UPLOADS).await?)
            .events(Event::from("s3:ObjectCreated:*"))
            .build()
            .map_err(|error| StoreError::unusable(&*doing, error))?;
        let notify = NotificationConfiguration::builder().queue_configurations(notify).build();
        let request = self.s3.put_bucket_notification_configuration().bucket(&bucket.name);
        let set = request.notification_configuration(notify).send().await;
        set.map_err(|error| failed(doing, &bucket, &error))?;
        Ok((bucket.setting, bucket.name))
    }

    async fn remove_bucket(&self) -> Result<(), StoreError> {
        let bucket = self.shared.resource("bucket", s3::UPLOAD_BUCKET);
        let doing = format!("removing bucket {}", bucket.name);
        loop {
            let listed = self.s3.list_object_versions().bucket(&bucket.name).send().await;
            let listed = listed.map_err(|error| failed(&*doing, &bucket, &error))?;
            let versions = listed.versions().iter().map(|version| (version.key(), version.version_id()));
            let markers = listed.delete_markers().iter().map(|marker| (marker.key(), marker.version_id()));
            let stored: Vec<_> = versions.chain(markers).collect();
            if stored.is_empty() {
                break;
            }
            for (key, version) in stored {
                let request = self.s3.delete_object().bucket(&bucket.name).key(key.unwrap_or_default());
                let removed = request.set_version_id(version.map(str::to_owned)).send().await;
                removed.map_err(|error| failed(&*doing, &bucket, &error))?;
            }
        }
        let removed = self.s3.delete_bucket().bucket(&bucket.name).send().await;
        removed.map_err(|error| failed(doing, &bucket, &error))?;
        Ok(())
    }
}
