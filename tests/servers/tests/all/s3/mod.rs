//! S3.

mod faults;
mod form;
mod resumed;
mod suites;

use std::sync::Arc;

use aws_sdk_s3::Client;
use aws_sdk_s3::primitives::ByteStream;
use backend::SystemHost;
use futures::TryStreamExt;
use imports::ObjectStream;
use imports::messages::ObjectRef;
use s3::Objects;
use servers::amazon::{Service, config};

use servers::{TestResult, cleaned_up, unique};

/// Runs a test with a separate bucket.
async fn with_bucket<F: Future<Output = TestResult>>(test: impl FnOnce(Client, String) -> F) -> TestResult {
    let client = s3::client(&config(Service::S3).await);
    let bucket = unique("uploads");
    client.create_bucket().bucket(&bucket).send().await.expect("the bucket can be created");
    cleaned_up(test(client.clone(), bucket.clone()), empty_and_delete(&client, &bucket)).await
}

async fn empty_and_delete(client: &Client, bucket: &str) {
    loop {
        let listed = client.list_object_versions().bucket(bucket).send().await.expect("it can be listed");
        let versions = listed.versions().iter().map(|object| (object.key(), object.version_id()));
        let markers = listed.delete_markers().iter().map(|object| (object.key(), object.version_id()));
        let all: Vec<_> = versions.chain(markers).collect();
        if all.is_empty() {
            break;
        }
        for (key, version) in all {
            let request = client.delete_object().bucket(bucket).key(key.unwrap_or_default());
            let request = request.set_version_id(version.map(str::to_owned));
            request.send().await.expect("the object can be deleted");
        }
    }
    client.delete_bucket().bucket(bucket).send().await.expect("the bucket can be deleted");
}

fn objects(client: Client) -> Objects {
    Objects::new(client, Arc::new(SystemHost))
}

/// Stores an object and returns its reference, as in a message.
async fn put(client: &Client, bucket: &str, bytes: &[u8]) -> ObjectRef {
    let request = client.put_object().bucket(bucket).key("a file.ris");
    let stored = request.body(ByteStream::from(bytes.to_vec())).send().await.expect("it can be stored");
    ObjectRef {
        bucket: bucket.to_owned(),
        key: "a file.ris".to_owned(),
        version: stored.version_id,
        size_bytes: bytes.len() as u64,
    }
}

/// Returns bytes without repeated sequences, so that a misplaced part is detected.
fn pattern(length: usize) -> Vec<u8> {
    (0..length.div_ceil(4) as u32).flat_map(u32::to_le_bytes).take(length).collect()
}

async fn read(stream: ObjectStream) -> Result<Vec<u8>, messages::StoreError> {
    stream.try_concat().await
}
