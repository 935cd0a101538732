//! The queues and tables of a system on local servers, for development and tests.
//!
//! On AWS the deployment creates them, with roles, encryption and alarms. Here they only have the properties on which
//! the functions depend: keys, expiry, receive limits and dead-letter queues.

use std::sync::Arc;

use aws::queues::Queues;
use aws::{Resource, failed};
use aws_sdk_dynamodb::error::ProvideErrorMetadata;
use aws_sdk_dynamodb::types::{
    AttributeDefinition, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType, TimeToLiveSpecification,
};
use aws_sdk_sqs::types::QueueAttributeName;
use aws_types::SdkConfig;
use backend::SystemHost;
use dynamo::Dynamo;
use futures::future::{try_join_all, try_join3};
use local::output;
use messages::{Queue, QueueSpec, StoreError, naming};
use saga::System;
use serde_json::json;

use crate::DocumentStore;

/// The variables with the endpoints of the local servers.
const ENDPOINTS: [&str; 2] = ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS"];

/// The options of the command.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Prefix of all names [default: the name of the system]
    #[arg(long, value_parser = prefix)]
    pub name: Option<String>,
    /// Database of the documents; its table is created as well
    #[arg(long, value_enum, default_value_t)]
    pub store: DocumentStore,
}

/// Checks the prefix of the names. The name of a bucket has the strictest rules: 3 to 63 lower-case letters, digits and
/// hyphens (<https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html>), including the suffix
/// `-upload`.
///
/// # Errors
/// Returns the rule if the prefix breaks it.
pub fn prefix(name: &str) -> Result<String, String> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if (1..=56).contains(&name.len()) && name.chars().all(allowed) && !name.starts_with('-') {
        Ok(name.to_owned())
    } else {
        Err("must be 1 to 56 lower-case letters, digits and hyphens".to_owned())
    }
}

/// Creates the missing queues and tables of a system, and prints the settings as shell commands.
///
/// # Errors
/// Returns an error if no local servers are configured, or a service is unavailable.
pub async fn run<P>(system: &System<P>, args: &Args) -> anyhow::Result<bool> {
    require_endpoints(&ENDPOINTS)?;
    let name = args.name.as_deref().unwrap_or(system.name);
    let provision = Provision::of(system, &aws::config().await, name).with_store(args.store);
    let settings = provision.create().await?;
    print(system.name, settings)?;
    Ok(true)
}

/// Checks that the services are local ones.
///
/// # Errors
/// Returns an error that names the first variable that is not set.
pub fn require_endpoints(variables: &[&str]) -> anyhow::Result<()> {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    match variables.iter().find(|name| !is_set(name) && !is_set("AWS_ENDPOINT_URL")) {
        Some(name) => anyhow::bail!(
            "{name} is not set: this is for servers of your own, such as those of `make services`; on AWS, \
             `sam deploy` creates everything"
        ),
        None => Ok(()),
    }
}

/// Prints the settings of a system as shell commands.
pub fn print(system: &str, settings: Vec<(String, String)>) -> anyhow::Result<()> {
    output::line(&format!("export {}=aws", naming::setting(system, "BACKEND")))?;
    for (name, value) in settings {
        output::line(&format!("export {name}={value}"))?;
    }
    Ok(())
}

/// The queues and tables of one environment.
#[derive(Clone)]
pub struct Provision {
    dynamo: aws_sdk_dynamodb::Client,
    sqs: aws_sdk_sqs::Client,
    name: String,
    system: &'static str,
    queues: &'static [QueueSpec],
    store: DocumentStore,
}

/// A response of SQS without a required value.
#[derive(Debug, thiserror::Error)]
#[error("SQS reported no {0}")]
struct NotReported(&'static str);

impl Provision {
    /// Returns an environment of a system. The names of its queues and tables begin with `name`.
    pub fn of<P>(system: &System<P>, sdk: &SdkConfig, name: impl Into<String>) -> Self {
        Self::new(system.name, system.queues, sdk, name)
    }

    /// Returns an environment with these queues.
    pub fn new(
        system: &'static str,
        queues: &'static [QueueSpec],
        sdk: &SdkConfig,
        name: impl Into<String>,
    ) -> Self {
        Self {
            dynamo: aws_sdk_dynamodb::Client::new(sdk),
            sqs: aws_sdk_sqs::Client::new(sdk),
            name: name.into(),
            system,
            queues,
            store: DocumentStore::Mongodb,
        }
    }

    /// Returns the environment with this database. The environment includes the table of the documents.
    #[must_use]
    pub fn with_store(self, store: DocumentStore) -> Self {
        Self { store, ..self }
    }

    /// Creates missing queues and tables, and returns their settings as pairs of name and value.
    ///
    /// # Errors
    /// Returns an error if a service is unavailable, or an existing queue of the same name is different.
    pub async fn create(&self) -> Result<Vec<(String, String)>, StoreError> {
        let tables = [
            (aws::ledger::LEDGER_TABLE, aws::ledger::LEDGER_KEY),
            (aws::ledger::PROCESSED_TABLE, aws::ledger::PROCESSED_KEY),
        ];
        let tables = try_join_all(tables.map(|(setting, key)| self.create_table(setting, key)));
        let (mut settings, store, queues) =
            try_join3(tables, self.create_store(), self.create_queues()).await?;
        settings.extend(store.into_iter().chain(queues));
        Ok(settings)
    }

    /// Removes the queues and tables.
    pub async fn remove(&self) -> Result<(), StoreError> {
        for setting in [aws::ledger::LEDGER_TABLE, aws::ledger::PROCESSED_TABLE] {
            let table = self.resource("table", &naming::setting(self.system, setting));
            let removed = self.dynamo.delete_table().table_name(&table.name).send().await;
            removed.map_err(|error| failed("removing", &table, &error))?;
        }
        if let Some((_, store)) = self.store() {
            store.delete_table().await?;
        }
        for spec in self.queues {
            let resource = self.resource("queue", &Queues::setting(self.system, &spec.queue));
            let url = self.sqs.get_queue_url().queue_name(&resource.name).send().await;
            let url = url.map_err(|error| failed("looking up", &resource, &error))?.queue_url;
            let removed = self.sqs.delete_queue().set_queue_url(url).send().await;
            removed.map_err(|error| failed("removing", &resource, &error))?;
        }
        Ok(())
    }

    /// Returns the resource of a setting. The resource of `SEARCH_IMPORT_SAGA_DEAD_QUEUE_URL` is `name-saga-dead`.
    pub fn resource(&self, kind: &'static str, setting: &str) -> Resource {
        const ENDS: [&str; 3] = ["_QUEUE_URL", "_TABLE", "_BUCKET"];
        let own = naming::setting(self.system, "");
        let part = setting.strip_prefix(own.as_str()).unwrap_or(setting);
        let part = ENDS.iter().find_map(|end| part.strip_suffix(end)).unwrap_or(part);
        let name = format!("{}-{}", self.name, part.replace('_', "-").to_lowercase());
        Resource { kind, name, setting: setting.to_owned() }
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

    async fn create_store(&self) -> Result<Option<(String, String)>, StoreError> {
        let Some((table, store)) = self.store() else { return Ok(None) };
        store.create_table().await?;
        Ok(Some((table.setting, table.name)))
    }

    /// Returns the table of the documents; `None` if they are in MongoDB.
    fn store(&self) -> Option<(Resource, Dynamo)> {
        let setting = backend::store_table(self.system).filter(|_| self.store == DocumentStore::Dynamodb)?;
        let table = self.resource("table", &setting);
        let settings = dynamo::Settings { table: table.name.clone(), ..dynamo::Settings::new(self.system) };
        Some((table, Dynamo::new(self.dynamo.clone(), settings, Arc::new(SystemHost))))
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
        let url = created.queue_url.ok_or_else(|| StoreError::unusable(&*doing, NotReported("URL")))?;
        Ok((resource.setting, url))
    }

    /// Returns the ARN of an existing queue.
    pub async fn arn_of(&self, queue: &Queue) -> Result<String, StoreError> {
        self.queue_arn(&self.resource("queue", &Queues::setting(self.system, queue))).await
    }

    async fn queue_arn(&self, queue: &Resource) -> Result<String, StoreError> {
        let doing = "looking up a queue";
        let url = self.sqs.get_queue_url().queue_name(&queue.name).send().await;
        let url = url.map_err(|error| failed(doing, queue, &error))?.queue_url;
        let request = self.sqs.get_queue_attributes().set_queue_url(url);
        let answer = request.attribute_names(QueueAttributeName::QueueArn).send().await;
        let attributes = answer.map_err(|error| failed(doing, queue, &error))?.attributes.unwrap_or_default();
        let arn = attributes.get(&QueueAttributeName::QueueArn).cloned();
        arn.ok_or_else(|| StoreError::unusable(format!("{doing}: {}", queue.name), NotReported("ARN")))
    }
}
