//! Queues, tables and a bucket, for trying things out and for tests.
//!
//! On AWS `template.yaml` creates them, with roles, encryption and alarms. Here they get what the functions can tell
//! apart: keys, expiry, receive limits, dead-letter queues, versions, and notifications of uploads.

use aws::queues::Queues;
use aws::{Resource, failed};
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TimeToLiveSpecification,
};
use aws_sdk_s3::types::{
    BucketVersioningStatus, Event, NotificationConfiguration, QueueConfiguration, VersioningConfiguration,
};
use aws_sdk_sqs::types::QueueAttributeName;
use aws_types::SdkConfig;
use futures::future::{try_join, try_join_all};
use imports::queues::{QUEUES, UPLOADS};
use messages::{QueueSpec, StoreError, naming};
use serde_json::json;

/// The services of one environment.
#[derive(Clone)]
pub struct Provision {
    dynamo: aws_sdk_dynamodb::Client,
    sqs: aws_sdk_sqs::Client,
    s3: aws_sdk_s3::Client,
    name: String,
    system: &'static str,
    queues: &'static [QueueSpec],
    has_bucket: bool,
}

impl Provision {
    /// An environment of the search import whose parts are all called `name`-something.
    pub fn new(sdk: &SdkConfig, name: impl Into<String>) -> Self {
        Self { has_bucket: true, ..Self::of(imports::SYSTEM, &QUEUES, sdk, name) }
    }

    /// An environment of a system with these queues, whose parts are all called `name`-something.
    pub fn of(
        system: &'static str,
        queues: &'static [QueueSpec],
        sdk: &SdkConfig,
        name: impl Into<String>,
    ) -> Self {
        Self {
            dynamo: aws_sdk_dynamodb::Client::new(sdk),
            sqs: aws_sdk_sqs::Client::new(sdk),
            s3: s3::client(sdk),
            name: name.into(),
            system,
            queues,
            has_bucket: false,
        }
    }

    /// The same with other receive limits of its queues.
    #[must_use]
    pub fn with_queues(self, queues: &'static [QueueSpec]) -> Self {
        Self { queues, ..self }
    }

    /// Creates what is missing.
    ///
    /// # Returns
    /// The settings that lead to it, as pairs of name and value.
    ///
    /// # Errors
    /// Returns an error if a service does not answer, or something of the same name is different.
    pub async fn create(&self) -> Result<Vec<(String, String)>, StoreError> {
        let tables = [
            (aws::ledger::LEDGER_TABLE, aws::ledger::LEDGER_KEY),
            (aws::ledger::PROCESSED_TABLE, aws::ledger::PROCESSED_KEY),
        ];
        let tables = try_join_all(tables.map(|(setting, key)| self.create_table(setting, key)));
        let (mut settings, queues) = try_join(tables, self.create_queues()).await?;
        settings.extend(queues);
        // Last: it sends notifications of its uploads to a queue.
        if self.has_bucket {
            settings.push(self.create_bucket().await?);
        }
        Ok(settings)
    }

    /// Removes it all again.
    ///
    /// # Errors
    /// Returns an error if a service does not answer.
    pub async fn remove(&self) -> Result<(), StoreError> {
        for setting in [aws::ledger::LEDGER_TABLE, aws::ledger::PROCESSED_TABLE] {
            let table = self.resource("table", &naming::setting(self.system, setting));
            let removed = self.dynamo.delete_table().table_name(&table.name).send().await;
            removed.map_err(|error| failed("removing", &table, &error))?;
        }
        for spec in self.queues {
            let resource = self.resource("queue", &Queues::setting(self.system, &spec.queue));
            let url = self.sqs.get_queue_url().queue_name(&resource.name).send().await;
            let url = url.map_err(|error| failed("looking up", &resource, &error))?.queue_url;
            let removed = self.sqs.delete_queue().set_queue_url(url).send().await;
            removed.map_err(|error| failed("removing", &resource, &error))?;
        }
        if self.has_bucket { self.remove_bucket().await } else { Ok(()) }
    }

    /// Something's name, from the setting that leads to it: `SEARCH_IMPORT_SAGA_DEAD_QUEUE_URL` is `name-saga-dead`.
    fn resource(&self, kind: &'static str, setting: &str) -> Resource {
        let part =
            setting.trim_start_matches(&naming::setting(self.system, "")).trim_end_matches("_QUEUE_URL");
        let part =
            part.trim_end_matches("_TABLE").trim_end_matches("_BUCKET").replace('_', "-").to_lowercase();
        Resource { kind, name: format!("{}-{part}", self.name), setting: setting.to_owned() }
    }

    async fn create_table(&self, setting: &str, key: &str) -> Result<(String, String), StoreError> {
        let table = self.resource("table", &naming::setting(self.system, setting));
        let doing = format!("creating table {}", table.name);
        let build = |error| StoreError::unusable(&*doing, error);
        let attribute =
            AttributeDefinition::builder().attribute_name(key).attribute_type(ScalarAttributeType::S).build();
        let schema = KeySchemaElement::builder().attribute_name(key).key_type(KeyType::Hash).build();
        let expiry =
            TimeToLiveSpecification::builder().enabled(true).attribute_name(aws::ledger::EXPIRES_AT).build();
        let request = self
            .dynamo
            .create_table()
            .table_name(&table.name)
            .attribute_definitions(attribute.map_err(build)?)
            .key_schema(schema.map_err(build)?)
            .billing_mode(BillingMode::PayPerRequest);
        match request.send().await {
            Ok(_) => {
                let request = self.dynamo.update_time_to_live().table_name(&table.name);
                let set = request.time_to_live_specification(expiry.map_err(build)?).send().await;
                set.map_err(|error| failed(&*doing, &table, &error))?;
            }
            Err(error) if error.code() == Some("ResourceInUseException") => {}
            Err(error) => return Err(failed(doing, &table, &error)),
        }
        Ok((table.setting, table.name))
    }

    async fn create_queues(&self) -> Result<Vec<(String, String)>, StoreError> {
        let mut settings = Vec::new();
        // In reverse: a queue refers to its dead-letter queue, which is listed after it.
        for spec in self.queues.iter().rev() {
            settings.push(self.create_queue(spec).await?);
        }
        Ok(settings)
    }

    async fn create_queue(&self, spec: &QueueSpec) -> Result<(String, String), StoreError> {
        let resource = self.resource("queue", &Queues::setting(self.system, &spec.queue));
        let doing = format!("creating queue {}", resource.name);
        let mut request = self.sqs.create_queue().queue_name(&resource.name);
        if !spec.visibility.is_zero() {
            let visibility = spec.visibility.as_secs().to_string();
            request = request.attributes(QueueAttributeName::VisibilityTimeout, visibility);
        }
        if let (Some(dead), Some(limit)) = (&spec.dead_letters, spec.receive_limit) {
            let dead = self.resource("queue", &Queues::setting(self.system, dead));
            let target = self.queue_arn(&dead).await?;
            let policy = json!({ "deadLetterTargetArn": target, "maxReceiveCount": limit });
            request = request.attributes(QueueAttributeName::RedrivePolicy, policy.to_string());
        }
        let created = request.send().await.map_err(|error| failed(&*doing, &resource, &error))?;
        Ok((resource.setting, created.queue_url.unwrap_or_default()))
    }

    async fn queue_arn(&self, queue: &Resource) -> Result<String, StoreError> {
        let doing = "looking up a queue";
        let url = self.sqs.get_queue_url().queue_name(&queue.name).send().await;
        let url = url.map_err(|error| failed(doing, queue, &error))?.queue_url;
        let request = self.sqs.get_queue_attributes().set_queue_url(url);
        let answer = request.attribute_names(QueueAttributeName::QueueArn).send().await;
        let attributes = answer.map_err(|error| failed(doing, queue, &error))?.attributes.unwrap_or_default();
        Ok(attributes.get(&QueueAttributeName::QueueArn).cloned().unwrap_or_default())
    }

    async fn create_bucket(&self) -> Result<(String, String), StoreError> {
        let bucket = self.resource("bucket", s3::UPLOAD_BUCKET);
        let doing = format!("creating bucket {}", bucket.name);
        match self.s3.create_bucket().bucket(&bucket.name).send().await {
            Ok(_) => {}
            Err(error) if error.code() == Some("BucketAlreadyOwnedByYou") => {}
            Err(error) => return Err(failed(doing, &bucket, &error)),
        }
        let versions = VersioningConfiguration::builder().status(BucketVersioningStatus::Enabled).build();
        let request = self.s3.put_bucket_versioning().bucket(&bucket.name).versioning_configuration(versions);
        request.send().await.map_err(|error| failed(&*doing, &bucket, &error))?;
        let uploads = self.resource("queue", &Queues::setting(self.system, &UPLOADS));
        let notify = QueueConfiguration::builder()
            .queue_arn(self.queue_arn(&uploads).await?)
            .events(Event::from("s3:ObjectCreated:*"))
            .build()
            .map_err(|error| StoreError::unusable(&*doing, error))?;
        let notify = NotificationConfiguration::builder().queue_configurations(notify).build();
        let request = self.s3.put_bucket_notification_configuration().bucket(&bucket.name);
        let set = request.notification_configuration(notify).send().await;
        set.map_err(|error| failed(doing, &bucket, &error))?;
        Ok((bucket.setting, bucket.name))
    }

    async fn remove_bucket(&self) -> Result<(), StoreError> {
        let bucket = self.resource("bucket", s3::UPLOAD_BUCKET);
        let doing = format!("removing bucket {}", bucket.name);
        loop {
            let listed = self.s3.list_object_versions().bucket(&bucket.name).send().await;
            let listed = listed.map_err(|error| failed(&*doing, &bucket, &error))?;
            let versions = listed.versions().iter().map(|version| (version.key(), version.version_id()));
            let markers = listed.delete_markers().iter().map(|marker| (marker.key(), marker.version_id()));
            let stored: Vec<_> = versions.chain(markers).collect();
            if stored.is_empty() {
                break;
            }
            for (key, version) in stored {
                let request = self.s3.delete_object().bucket(&bucket.name).key(key.unwrap_or_default());
                let removed = request.set_version_id(version.map(str::to_owned)).send().await;
                removed.map_err(|error| failed(&*doing, &bucket, &error))?;
            }
        }
        let removed = self.s3.delete_bucket().bucket(&bucket.name).send().await;
        removed.map_err(|error| failed(doing, &bucket, &error))?;
        Ok(())
    }
}
