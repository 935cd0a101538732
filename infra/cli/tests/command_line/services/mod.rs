//! The program on MongoDB, DynamoDB, SQS and S3.

mod bad_input;
mod commands;
mod deep;
mod deployment;
mod expiry;
mod faults;
mod restore;
mod secrets;
mod time;

use std::collections::BTreeMap;

use aws_sdk_s3::primitives::ByteStream;
use dev::provision::Provision;
use imports::PresignedPost;
use imports::queues::QUEUES;
use messages::QueueSpec;
use servers::amazon::Service;
use servers::{TestResult, cleaned_up, unique};

use crate::program::Program;

/// The environment of one test: queues, tables, a bucket and a database.
struct Environment {
    /// The settings that select the service.
    settings: BTreeMap<String, String>,
}

impl Environment {
    /// Runs a test in a new environment.
    async fn with<F: Future<Output = TestResult>>(test: impl FnOnce(Self) -> F) -> TestResult {
        Self::with_queues(&QUEUES, test).await
    }

    /// Runs a test in a new environment with these queues.
    async fn with_queues<F: Future<Output = TestResult>>(
        queues: &'static [QueueSpec],
        test: impl FnOnce(Self) -> F,
    ) -> TestResult {
        let provision = Provision::with_queues(&aws::config().await, unique("t"), queues);
        let mut settings: BTreeMap<String, String> = provision.create().await?.into_iter().collect();
        settings.insert("SEARCH_IMPORT_BACKEND".into(), "aws".into());
        settings.insert("MONGODB_URI".into(), servers::mongo::uri());
        settings.insert("MONGODB_DATABASE".into(), unique("test"));
        for service in [Service::DynamoDb, Service::Sqs, Service::S3] {
            settings.insert(service.variable().into(), service.address());
        }
        let database = (settings["MONGODB_URI"].clone(), settings["MONGODB_DATABASE"].clone());
        let clean = async {
            provision.remove().await.expect("the environment can be removed");
            let client = mongodb::Client::with_uri_str(&database.0).await.expect("the address is valid");
            client.database(&database.1).drop().await.expect("the database can be dropped");
        };
        cleaned_up(test(Self { settings }), clean).await
    }

    /// Returns the environment with one setting changed.
    fn but(&self, name: &str, value: &str) -> Self {
        let mut settings = self.settings.clone();
        settings.insert(name.to_owned(), value.to_owned());
        Self { settings }
    }

    /// Returns the program with these settings.
    fn program(&self) -> Program {
        self.settings.iter().fold(Program::new(), |program, (name, value)| program.setting(name, value))
    }

    /// Connects to the database of the environment.
    async fn database(&self) -> Result<mongodb::Database, mongodb::error::Error> {
        let client = mongodb::Client::with_uri_str(&self.settings["MONGODB_URI"]).await?;
        Ok(client.database(&self.settings["MONGODB_DATABASE"]))
    }
}

/// Stores an object as an upload with this form does.
async fn upload(environment: &Environment, form: &PresignedPost, content: &[u8]) -> TestResult {
    let fields: BTreeMap<&str, &str> =
        form.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let metadata = fields.iter().filter_map(|(name, value)| {
        Some((name.strip_prefix("x-amz-meta-")?.to_owned(), (*value).to_owned()))
    });
    let request =
        s3::client(&aws::config().await).put_object().bucket(&environment.settings[s3::UPLOAD_BUCKET]);
    let request = request.key(fields["key"]).set_metadata(Some(metadata.collect()));
    request.body(ByteStream::from(content.to_vec())).send().await?;
    Ok(())
}
