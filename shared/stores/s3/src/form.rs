//! Forms that upload one object each.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use aws::failed;
use aws_credential_types::Credentials;
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_sdk_s3::Client;
use aws_sdk_s3::presigning::PresigningConfig;
use aws_types::SdkConfig;
use imports::key::nickname;
use imports::{PresignUpload, PresignedPost, UploadGrant};
use messages::{Host, StoreError};

use crate::policy::{Signer, fields};
use crate::resource;

/// The setting that names the bucket of the uploads.
pub const UPLOAD_BUCKET: &str = "SEARCH_IMPORT_UPLOAD_BUCKET";

/// The key of an object whose URL is only requested to determine the URL of the bucket.
const ANY_KEY: &str = "x";

/// The bucket of the uploads.
#[derive(Clone)]
pub struct Uploads {
    pub(crate) client: Client,
    credentials: Option<SharedCredentialsProvider>,
    pub(crate) bucket: String,
    pub(crate) host: Arc<dyn Host>,
}

impl Uploads {
    /// Forms for `bucket`, signed with the credentials of `config`, which `client` was built from.
    pub fn new(client: Client, config: &SdkConfig, bucket: impl Into<String>, host: Arc<dyn Host>) -> Self {
        Self { client, credentials: config.credentials_provider(), bucket: bucket.into(), host }
    }

    async fn credentials(&self, doing: &str) -> Result<Credentials, StoreError> {
        let Some(provider) = &self.credentials else {
            return Err(StoreError::unusable(doing, "no credentials are configured"));
        };
        provider.provide_credentials().await.map_err(|error| match error {
            CredentialsError::CredentialsNotLoaded(_) | CredentialsError::InvalidConfiguration(_) => {
                StoreError::unusable(doing, error)
            }
            error => StoreError::unavailable(doing, error),
        })
    }

    /// The bucket's URL. The client knows all rules about regions, partitions and custom endpoints, so the URL of the
    /// bucket is derived from the URL of an object in it.
    async fn url(&self, doing: &str) -> Result<String, StoreError> {
        let valid = PresigningConfig::expires_in(Duration::from_secs(1))
            .map_err(|error| StoreError::unusable(doing, error))?;
        let request = self.client.get_object().bucket(&self.bucket).key(ANY_KEY);
        let presigned =
            request.presigned(valid).await.map_err(|error| failed(doing, &resource(&self.bucket), &error))?;
        Ok(bucket_of(presigned.uri()).to_owned())
    }
}

fn bucket_of(uri: &str) -> &str {
    let object = uri.split_once('?').map_or(uri, |(object, _)| object);
    object.strip_suffix(ANY_KEY).unwrap_or(object)
}

#[async_trait]
impl PresignUpload for Uploads {
    async fn presign(&self, grant: &UploadGrant) -> Result<PresignedPost, StoreError> {
        let doing = format!("granting the upload of {}", nickname(&grant.key));
        let credentials = self.credentials(&doing).await?;
        let region = self.client.config().region().map_or("us-east-1", |region| region.as_ref());
        let signer = Signer { credentials: &credentials, region, now: self.host.now() };
        let fields =
            fields(&self.bucket, grant, &signer).map_err(|error| StoreError::unusable(&*doing, error))?;
        Ok(PresignedPost { url: self.url(&doing).await?, fields, expires_at: grant.expires_at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bucket_url_is_derived_from_object_url() {
        for (object, bucket) in [
            (
                "https://b.s3.eu-central-1.amazonaws.com/x?X-Amz-Date=1",
                "https://b.s3.eu-central-1.amazonaws.com/",
            ),
            ("http://127.0.0.1:4566/b/x?x-id=GetObject", "http://127.0.0.1:4566/b/"),
        ] {
            assert_eq!(bucket_of(object), bucket);
        }
    }
}
