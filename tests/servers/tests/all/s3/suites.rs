//! The contract suite, and what only S3 has.

use std::sync::Arc;

use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use backend::SystemHost;
use imports::ReadObject;
use s3::Uploads;
use servers::amazon::{Service, config};

use super::form::Browser;
use super::{objects, put, read, with_bucket};
use servers::Tested;

#[tokio::test]
async fn objects_and_forms() -> Tested {
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

#[tokio::test]
async fn a_replaced_object_is_still_read_by_its_version() -> Tested {
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
        assert_eq!(objects.head(&bucket, &new.key, None).await?, None, "a mark of deletion is no object");
        assert_eq!(read(objects.open(&old, 0).await?.unwrap()).await?, b"old");
        Ok(())
    })
    .await
}
