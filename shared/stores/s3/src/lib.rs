//! S3 adapters: the uploaded files.
//!
//! - [`Objects`]: [`imports::ReadObject`]. An object is read as one stream; when the connection breaks, the stream
//!   goes on where it was, with the same version of the object, a bounded number of times. What is in memory is what
//!   the connection has delivered and nobody has taken yet, whatever the object's size;
//! - [`Uploads`]: [`imports::PresignUpload`]. A form is a signature over what it allows, computed here without a call;
//!   [`imports::FindObjects`], a look through the bucket; and [`imports::KeepExports`], what is exported.
//!
//! Keys are taken and given as they are; reading them out of a notification is
//! somebody else's business.

mod failure;
mod finding;
mod form;
mod head;
mod keeping;
mod policy;
mod reading;

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

/// What `AWS_ENDPOINT_URL_S3`, `AWS_ENDPOINT_URL` or a profile say, as the client itself will look it up.
fn configured_endpoint(config: &SdkConfig) -> Option<String> {
    let key = ServiceConfigKey::builder().service_id("S3").env("AWS_ENDPOINT_URL").profile("endpoint_url");
    config.service_config()?.load_config(key.build().ok()?)
}

fn resource(bucket: &str) -> Resource {
    Resource { kind: "bucket", name: bucket.to_owned(), setting: UPLOAD_BUCKET.to_owned() }
}
