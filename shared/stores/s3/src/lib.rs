//! S3 adapters: the uploaded files.
//!
//! - [`Objects`]: [`imports::ReadObject`]. An object is read as one stream. If the connection breaks, the stream
//!   resumes at its position with the same version of the object, a bounded number of times. Only bytes that were
//!   received and not yet consumed are in memory, regardless of the object's size;
//! - [`Uploads`]: [`imports::PresignUpload`]. A form is a signature over its conditions, computed here without a call;
//!   [`imports::FindObjects`], listing the bucket; and [`imports::KeepExports`], exports.
//!
//! Keys are used as they are; `notify-upload` decodes the keys of notifications.

mod bucket;
mod exports;
mod failure;
mod form;
mod objects;
mod policy;
mod resumable_read;

use std::sync::Arc;

use aws::Resource;
use aws_sdk_s3::Client;
use aws_types::SdkConfig;
use aws_types::service_config::ServiceConfigKey;
use messages::Host;

pub use form::{UPLOAD_BUCKET, Uploads};
pub use policy::{MAX_VALIDITY, MalformedGrant};

/// Stored objects, through one client.
#[derive(Clone)]
pub struct Objects {
    client: Client,
    host: Arc<dyn Host>,
}

impl Objects {
    /// Reads objects of any bucket: each call names its own.
    pub fn new(client: Client, host: Arc<dyn Host>) -> Self {
        Self { client, host }
    }
}

/// The client for a configuration. A custom endpoint is addressed by path, `http://127.0.0.1:4566/bucket/key`, since
/// the host name `bucket.127.0.0.1` does not resolve.
pub fn client(config: &SdkConfig) -> Client {
    let own_server = config.endpoint_url().is_some() || configured_endpoint(config).is_some();
    let config = aws_sdk_s3::config::Builder::from(config).force_path_style(own_server).build();
    Client::from_conf(config)
}

/// Returns the endpoint that `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` or a profile names, as the client itself
/// resolves it.
fn configured_endpoint(config: &SdkConfig) -> Option<String> {
    let key = ServiceConfigKey::builder().service_id("S3").env("AWS_ENDPOINT_URL").profile("endpoint_url");
    config.service_config()?.load_config(key.build().ok()?)
}

fn resource(bucket: &str) -> Resource {
    Resource { kind: "bucket", name: bucket.to_owned(), setting: UPLOAD_BUCKET.to_owned() }
}
