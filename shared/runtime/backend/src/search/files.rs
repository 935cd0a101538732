//! Adapters of the uploaded files.

use std::sync::Arc;

use aws_types::SdkConfig;
use imports::ReadObject;
use messages::Host;
use s3::{Objects, Uploads};
use saga::MissingSetting;

use crate::config::Config;

pub(crate) const BUCKET: MissingSetting =
    MissingSetting::of(s3::UPLOAD_BUCKET, "the S3 bucket of the uploads");

pub(crate) type OpenFiles = fn(&SdkConfig, &Config, &Arc<dyn Host>) -> Files;

/// Adapters of the uploaded files.
pub(crate) struct Files {
    pub(super) objects: Arc<dyn ReadObject>,
    pub(super) uploads: Result<Arc<Uploads>, MissingSetting>,
}

pub(crate) fn open_files(sdk: &SdkConfig, config: &Config, host: &Arc<dyn Host>) -> Files {
    let client = s3::client(sdk);
    let bucket = config.services.upload_bucket.as_ref().ok_or(BUCKET);
    Files {
        objects: Arc::new(Objects::new(client.clone(), Arc::clone(host))),
        uploads: bucket.map(|bucket| Arc::new(Uploads::new(client, sdk, bucket, Arc::clone(host)))),
    }
}
