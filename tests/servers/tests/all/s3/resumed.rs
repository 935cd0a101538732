//! Reads over broken connections.

use aws_sdk_s3::types::{BucketVersioningStatus, VersioningConfiguration};
use futures::TryStreamExt;
use imports::ReadObject;
use servers::amazon::{Service, config_at};

use super::{objects, pattern, put, read, with_bucket};
use servers::TestResult;
use servers::net::{Fate, Unreliable};

const SIZE: usize = 3_000_000;

#[tokio::test]
async fn reading_resumes_after_broken_connection() -> TestResult {
    with_bucket(|client, bucket| async move {
        let bytes = pattern(SIZE);
        let object = put(&client, &bucket, &bytes).await;
        let fate = |request| if request < 2 { Fate::BrokenOff(700_000) } else { Fate::Passed };
        let way = Unreliable::before(&Service::S3.address(), fate).await;
        let objects = objects(s3::client(&config_at(&way.address).await));
        let whole = read(objects.open(&object, 0).await?.unwrap()).await?;
        assert!(whole == bytes, "other bytes");
        assert_eq!(way.requests(), 3);
        Ok(())
    })
    .await
}

#[tokio::test]
async fn always_broken_connection_is_abandoned() -> TestResult {
    with_bucket(|client, bucket| async move {
        let object = put(&client, &bucket, &pattern(SIZE)).await;
        let way = Unreliable::before(&Service::S3.address(), |_| Fate::BrokenOff(100_000)).await;
        let objects = objects(s3::client(&config_at(&way.address).await));
        let error = read(objects.open(&object, 0).await?.unwrap()).await.unwrap_err();
        assert!(error.is_retryable(), "{}", error.chain());
        assert!(error.chain().contains("reading the object with fingerprint"), "{}", error.chain());
        assert_eq!(way.requests(), 6, "the first one, and five more");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn replaced_object_is_never_mixed_in() -> TestResult {
    with_bucket(|client, bucket| async move {
        let object = put(&client, &bucket, &pattern(SIZE)).await;
        let fate = |request| if request < 1 { Fate::BrokenOff(700_000) } else { Fate::Passed };
        let way = Unreliable::before(&Service::S3.address(), fate).await;
        let objects = objects(s3::client(&config_at(&way.address).await));
        let mut stream = objects.open(&object, 0).await?.unwrap();
        assert!(stream.try_next().await?.is_some());
        put(&client, &bucket, &vec![b'x'; SIZE]).await;
        let error = read(stream).await.unwrap_err();
        assert!(
            error.is_retryable() && error.chain().contains("replaced while it was read"),
            "{}",
            error.chain()
        );
        Ok(())
    })
    .await
}

#[tokio::test]
async fn version_is_read_completely_despite_replacement() -> TestResult {
    with_bucket(|client, bucket| async move {
        let enabled = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled).build();
        client.put_bucket_versioning().bucket(&bucket).versioning_configuration(enabled).send().await?;
        let bytes = pattern(SIZE);
        let mut object = put(&client, &bucket, &bytes).await;
        // The message need not contain the version.
        object.version = None;
        let fate = |request| if request < 1 { Fate::BrokenOff(700_000) } else { Fate::Passed };
        let way = Unreliable::before(&Service::S3.address(), fate).await;
        let objects = objects(s3::client(&config_at(&way.address).await));
        let mut stream = objects.open(&object, 0).await?.unwrap();
        let mut whole = stream.try_next().await?.unwrap();
        put(&client, &bucket, &vec![b'x'; SIZE]).await;
        whole.extend(read(stream).await?);
        assert!(whole == bytes, "other bytes");
        Ok(())
    })
    .await
}
