//! The contract suite, and tests specific to S3.

use std::sync::Arc;

use async_trait::async_trait;
use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use backend::SystemHost;
use imports::ReadObject;
use s3::Uploads;
use servers::amazon::{Service, config};
use testing::exports::Download;

use super::form::Browser;
use super::{objects, put, read, with_bucket};
use servers::TestResult;

#[tokio::test]
async fn objects_and_forms() -> TestResult {
    with_bucket(|client, bucket| async move {
        let config = config(Service::S3).await;
        let uploads = Uploads::new(client.clone(), &config, &bucket, Arc::new(SystemHost));
        let ports = testing::objects::Ports {
            presign: &uploads,
            upload: &Browser,
            read: &objects(client),
            find: &uploads,
            host: &SystemHost,
            bucket: &bucket,
            prefix: "uploads/",
        };
        testing::objects::all(&ports).await
    })
    .await
}

/// Follows a link without credentials.
struct Client;

#[async_trait]
impl Download for Client {
    async fn download(&self, url: &str) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        let answer = reqwest::get(url).await?.error_for_status()?;
        let named = answer.headers().get("content-disposition").is_some();
        assert!(named, "a browser saves it under its name");
        Ok(answer.bytes().await?.into())
    }
}

#[tokio::test]
async fn exports_and_links() -> TestResult {
    with_bucket(|client, bucket| async move {
        let config = config(Service::S3).await;
        let uploads = Uploads::new(client.clone(), &config, &bucket, Arc::new(SystemHost));
        let host = SystemHost;
        let ports =
            testing::exports::Ports { keep: &uploads, download: &Client, find: &uploads, host: &host };
        testing::exports::all(&ports).await?;
        let begun = client.list_multipart_uploads().bucket(&bucket).send().await?;
        assert!(begun.uploads().is_empty(), "parts of what broke off are left");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn replaced_object_is_readable_by_version() -> TestResult {
    with_bucket(|client, bucket| async move {
        let enabled = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled).build();
        client.put_bucket_versioning().bucket(&bucket).versioning_configuration(enabled).send().await?;
        let old = put(&client, &bucket, b"old").await;
        let new = put(&client, &bucket, b"the new one").await;
        let objects = objects(client.clone());
        for (object, bytes) in [(&old, &b"old"[..]), (&new, b"the new one")] {
            assert!(object.version.is_some());
            let facts = objects.head(&bucket, &object.key, object.version.as_deref()).await?.unwrap();
            assert_eq!(facts.size_bytes, bytes.len() as u64);
            assert_eq!(read(objects.open(object, 0).await?.unwrap()).await?, bytes);
        }
        client.delete_object().bucket(&bucket).key(&new.key).send().await?;
        assert_eq!(objects.head(&bucket, &new.key, None).await?, None, "a delete marker is not an object");
        assert_eq!(read(objects.open(&old, 0).await?.unwrap()).await?, b"old");
        Ok(())
    })
    .await
}
