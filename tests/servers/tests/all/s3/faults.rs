//! Faults and their error messages.

use std::collections::BTreeMap;
use std::sync::Arc;

use backend::SystemHost;
use imports::messages::ObjectRef;
use imports::{PresignUpload, ReadObject, UploadGrant};
use messages::{Host, StoreError};
use s3::Uploads;
use servers::amazon::{Service, config, config_as, config_at};

use super::objects;
use servers::net::ScriptedServer;
use servers::{TestResult, unique};

fn object(bucket: &str) -> ObjectRef {
    ObjectRef { bucket: bucket.to_owned(), key: "a/b.ris".to_owned(), version: None, size_bytes: 1 }
}

/// Returns the error of a streaming response.
fn error<T>(answer: Result<T, StoreError>) -> StoreError {
    match answer {
        Ok(_) => panic!("it succeeded"),
        Err(error) => error,
    }
}

#[tokio::test]
async fn missing_bucket_names_setting() {
    let objects = objects(s3::client(&config(Service::S3).await));
    let bucket = unique("missing");
    let expected = format!("there is no bucket \"{bucket}\" (set by SEARCH_IMPORT_UPLOAD_BUCKET)");
    for error in
        [error(objects.head(&bucket, "a/b.ris", None).await), error(objects.open(&object(&bucket), 0).await)]
    {
        assert!(error.is_retryable() && error.chain().ends_with(&expected), "{}", error.chain());
    }
}

#[tokio::test]
async fn wrong_credentials_are_reported() {
    let refused = "<?xml version=\"1.0\"?><Error><Code>SignatureDoesNotMatch</Code><Message>The request \
        signature we calculated does not match.</Message><StringToSign>a-secret</StringToSign></Error>";
    let server = ScriptedServer::start(|_, _| (403, refused.to_owned())).await;
    let objects = objects(s3::client(&config_at(&server.address).await));
    let error = error(objects.open(&object("bucket"), 0).await);
    assert!(
        error.is_retryable() && error.chain().contains("the credentials were refused"),
        "{}",
        error.chain()
    );
    assert!(!error.chain().contains("a-secret"), "{}", error.chain());
}

#[tokio::test]
async fn slow_down_is_retried_then_unavailable() {
    let slower = "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code><Message>Slower.</Message></Error>";
    let server = ScriptedServer::start(|_, _| (503, slower.to_owned())).await;
    let objects = objects(s3::client(&config_at(&server.address).await));
    let error = error(objects.open(&object("bucket"), 0).await);
    assert!(error.is_retryable() && error.chain().contains("SlowDown"), "{}", error.chain());
    assert_eq!(server.requests(), aws::MAX_ATTEMPTS as usize);
}

#[tokio::test]
async fn form_contains_session_token_and_no_secret() -> TestResult {
    let config = config_as(&Service::S3.address(), "ASIAEXAMPLE", Some("a-session".to_owned())).await;
    let uploads = Uploads::new(s3::client(&config), &config, "bucket", Arc::new(SystemHost));
    let grant = UploadGrant {
        key: "uploads/x".to_owned(),
        size_bytes: 1,
        metadata: BTreeMap::new(),
        expires_at: SystemHost.now(),
    };
    let form = uploads.presign(&grant).await?;
    assert_eq!(form.fields["x-amz-security-token"], "a-session");
    assert_eq!(form.url, format!("{}/bucket/", Service::S3.address()));
    assert!(!format!("{form:?}").contains("a-secret-key"));
    let eternal = UploadGrant { expires_at: "2099-01-01T00:00:00Z".parse()?, ..grant };
    let error = uploads.presign(&eternal).await.unwrap_err();
    assert!(!error.is_retryable() && error.chain().contains("seven days"), "{}", error.chain());
    Ok(())
}

#[tokio::test]
async fn forms_default_to_bucket_at_aws() -> TestResult {
    let credentials = aws_sdk_s3::config::Credentials::new("AKIAEXAMPLE", "a-secret-key", None, None, "test");
    let config = aws_config::SdkConfig::builder()
        .behavior_version(aws_config::BehaviorVersion::latest())
        .region(aws_config::Region::new("eu-central-1"))
        .credentials_provider(aws_sdk_s3::config::SharedCredentialsProvider::new(credentials))
        .build();
    let uploads = Uploads::new(s3::client(&config), &config, "our-uploads", Arc::new(SystemHost));
    let grant = UploadGrant {
        key: "uploads/x".to_owned(),
        size_bytes: 1,
        metadata: BTreeMap::new(),
        expires_at: SystemHost.now(),
    };
    let form = uploads.presign(&grant).await?;
    assert_eq!(form.url, "https://our-uploads.s3.eu-central-1.amazonaws.com/");
    assert!(form.fields["x-amz-credential"].contains("/eu-central-1/s3/aws4_request"));
    Ok(())
}
