//! The database's address from Secrets Manager.

use aws_sdk_secretsmanager::Client;
use aws_types::SdkConfig;
use backend::OpenError;
use backend::config::{BackendKind, Config, Services};
use servers::amazon::{self, Service};
use servers::{TestResult, cleaned_up, unique};

fn config(arn: &str) -> Config {
    let services = Services { mongodb_uri_secret: Some(arn.to_owned()), ..Config::default().services };
    Config { backend: BackendKind::Aws, services, ..Config::default() }
}

/// Runs a test with a secret that contains a text.
async fn with_secret(text: &str, test: impl AsyncFnOnce(&SdkConfig, &str) -> TestResult) -> TestResult {
    // The server that provides SQS also provides Secrets Manager.
    let sdk = amazon::config(Service::Sqs).await;
    let client = Client::new(&sdk);
    let created = client.create_secret().name(unique("mongodb")).secret_string(text).send().await?;
    let arn = created.arn.unwrap_or_default();
    let removed = async {
        let removed = client.delete_secret().secret_id(&arn).force_delete_without_recovery(true).send().await;
        assert!(removed.is_ok(), "{removed:?}");
    };
    cleaned_up(test(&sdk, &arn), removed).await
}

/// Returns the error of connecting with this secret.
async fn refusal(sdk: &SdkConfig, arn: &str) -> String {
    match backend::services::database(&config(arn), sdk).await {
        Ok(_) => panic!("it connected"),
        Err(error @ OpenError::Secret(_)) => error.to_string(),
        Err(other) => panic!("{other}"),
    }
}

#[tokio::test]
async fn secret_contains_database_address() -> TestResult {
    let text = serde_json::json!({ "uri": servers::mongo::uri() }).to_string();
    with_secret(&text, async |sdk, arn| {
        backend::services::database(&config(arn), sdk).await?;
        Ok(())
    })
    .await
}

/// A function selects a new version by its id, and the previous version stays selectable, so a rotation can be
/// reverted.
#[tokio::test]
async fn secret_version_is_read_by_id() -> TestResult {
    let address = |database: &str| serde_json::json!({ "uri": database }).to_string();
    with_secret(&address("mongodb://nowhere.invalid"), async |sdk, arn| {
        let client = Client::new(sdk);
        let put = client.put_secret_value().secret_id(arn).secret_string(address(&servers::mongo::uri()));
        let version = put.send().await?.version_id;
        let of_version = |version| {
            let services = Services { mongodb_uri_secret_version: version, ..config(arn).services };
            Config { services, ..config(arn) }
        };
        backend::services::database(&of_version(version), sdk).await?;
        let unknown = of_version(Some("00000000-0000-0000-0000-000000000000".to_owned()));
        assert!(matches!(backend::services::database(&unknown, sdk).await, Err(OpenError::Secret(_))));
        Ok(())
    })
    .await
}

#[tokio::test]
async fn malformed_secret_is_refused_and_not_shown() -> TestResult {
    with_secret("mongodb://reviewer:hunter2@db.example", async |sdk, arn| {
        let text = refusal(sdk, arn).await;
        assert!(text.contains("MONGODB_URI_SECRET_ARN") && text.contains("\"uri\""), "{text}");
        assert!(!text.contains("hunter2"), "{text}");
        Ok(())
    })
    .await
}

#[tokio::test]
async fn missing_secret_names_setting() -> TestResult {
    let sdk = amazon::config(Service::Sqs).await;
    let arn = "arn:aws:secretsmanager:us-east-1:000000000000:secret:nowhere-AbCdEf";
    let text = refusal(&sdk, arn).await;
    assert!(text.contains("MONGODB_URI_SECRET_ARN cannot be read"), "{text}");
    assert!(text.contains("there is no secret"), "{text}");
    // The complete response may quote the signed request.
    assert!(!text.contains("ServiceError") && !text.contains("headers"), "{text}");
    Ok(())
}
