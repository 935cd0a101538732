//! Error messages for wrong settings.

use std::sync::Arc;
use std::time::Duration;

use backend::SystemHost;
use backend::config::{BackendKind, Config, Mode, Secret, Services};
use backend::services::LinkedServices;
use functions::run_saga::FUNCTION;
use imports::messages::SearchUploadStarted;
use imports::queues::QUEUES;
use imports::{FileId, Manifest, ManifestFile, ProjectId, SearchEvent, SearchId};
use jiff::Timestamp;
use messages::{Delivery, Disposition, Message, MessageId, Payload, StoreError};
use mongo::{Mongo, Settings, Uri};
use outbox::SweepOutbox;
use servers::mongo::{OwnServer, Proxy, uri, with_option};
use servers::unique;
use uuid::Uuid;

use super::TestResult;

fn settings(uri: String) -> Settings {
    Settings {
        server_selection_timeout: Duration::from_millis(500),
        database: "reviews".to_owned(),
        ..Settings::new(imports::SYSTEM, Uri::new(uri))
    }
}

async fn refusal(uri: String) -> String {
    let error = Mongo::connect(&settings(uri)).await.unwrap_err();
    format!("{error} {error:?}")
}

/// Returns the address with credentials.
fn with_credentials(uri: &str) -> String {
    uri.replacen("mongodb://", "mongodb://reviewer:hunter2@", 1)
}

#[tokio::test]
async fn replica_set_is_accepted() -> TestResult {
    let mongo = Mongo::connect(&settings(uri())).await?;
    assert_eq!(format!("{mongo:?}"), r#"Mongo { database: "reviews", .. }"#);
    Ok(())
}

#[tokio::test]
async fn wrong_credentials_name_setting_and_stay_hidden() {
    let text = refusal(with_credentials(&uri())).await;
    assert!(text.contains("user name or the password in MONGODB_URI"), "{text}");
    assert!(!text.contains("hunter2") && !text.contains("reviewer"), "{text}");
}

#[tokio::test]
async fn silent_server_names_setting() {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let text = refusal(format!("mongodb://reviewer:hunter2@127.0.0.1:{nobody}/")).await;
    assert!(text.contains("no MongoDB server answers at the address in MONGODB_URI"), "{text}");
    assert!(!text.contains("hunter2") && !text.contains("reviewer"), "{text}");
}

#[tokio::test]
async fn standalone_server_is_refused() -> TestResult {
    let server = OwnServer::standalone().await?;
    let text = refusal(server.uri()).await;
    assert!(text.contains("MONGODB_URI leads to a standalone server"), "{text}");
    Ok(())
}

/// Later errors hide the credentials in the address like the first ones.
#[tokio::test]
async fn port_errors_hide_password() -> TestResult {
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let unreachable = format!("mongodb://reviewer:hunter2@127.0.0.1:{nobody}/");
    for uri in [unreachable, with_credentials(&uri())] {
        let settings = settings(with_option(&uri, "serverSelectionTimeoutMS=300"));
        let client = mongodb::Client::with_options(mongo::connect::client_options(&settings).await?)?;
        let mongo = Mongo::new(client, &settings);
        let error: StoreError = mongo.saga_outbox().due(Timestamp::now(), 1).await.unwrap_err();
        let text = format!("{} {error:?} {mongo:?}", error.chain());
        assert!(!text.contains("hunter2") && !text.contains("reviewer"), "{text}");
        assert!(error.is_retryable(), "an operator corrects the credentials: {text}");
    }
    Ok(())
}

/// Failures of an outage are grouped by their text.
#[tokio::test]
async fn outage_message_does_not_depend_on_server() -> TestResult {
    let proxy = Proxy::before(servers::mongo::host().await?).await?;
    let nobody = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    proxy.cut_off();
    for uri in [
        proxy.uri(),
        format!("mongodb://127.0.0.1:{nobody}/"),
        format!("mongodb://127.0.0.1:{nobody},127.0.0.2:{nobody}/"),
    ] {
        let settings = settings(with_option(&uri, "serverSelectionTimeoutMS=300"));
        let client = mongodb::Client::with_options(mongo::connect::client_options(&settings).await?)?;
        let error = Mongo::new(client, &settings).saga_outbox().due(Timestamp::now(), 1).await.unwrap_err();
        assert!(error.chain().ends_with(" failed: no MongoDB server answers"), "{uri}: {}", error.chain());
    }
    proxy.restore();
    assert!(Mongo::connect(&settings(proxy.uri())).await.is_ok(), "it is there again");
    Ok(())
}

/// A function that has started in an outage needs no other start.
#[tokio::test]
async fn function_recovers_after_start_without_database() -> TestResult {
    const LINKED: LinkedServices = LinkedServices::with(FUNCTION.services);
    let proxy = Proxy::before(servers::mongo::host().await?).await?;
    proxy.cut_off();
    // No server listens at this address, so messages stay in the outbox.
    let queues = FUNCTION.queues(&QUEUES);
    let queue_url = |queue| (backend::queue_setting(queue), "http://127.0.0.1:1/queue".to_owned());
    let services = Services {
        mongodb_uri: Some(Secret::new(with_option(&proxy.uri(), "serverSelectionTimeoutMS=300"))),
        mongodb_database: unique("absent"),
        queue_urls: queues.iter().map(queue_url).collect(),
        ..Config::default().services
    };
    let config = Config { backend: BackendKind::Aws, mode: Mode::Optimistic, services, ..Config::default() };
    let opened = backend::open_for(&FUNCTION, &LINKED, config.clone(), Arc::new(SystemHost), Arc::new(()));
    let backend = opened.await?;
    let consumer = FUNCTION.build.unwrap()(&backend.ports)?;
    let search = SearchId::from_uuid(Uuid::now_v7());
    let file =
        ManifestFile { file_id: FileId::announced(search, 0), name: "a.ris".to_owned(), size_bytes: 1 };
    let manifest = Manifest { name: "Gambling harms".to_owned(), files: vec![file], repairs: None };
    let started = SearchUploadStarted { project_id: ProjectId::from_uuid(Uuid::nil()), manifest };
    let body = SearchEvent::SearchUploadStarted(started).body()?;
    let id = MessageId::from_uuid(Uuid::now_v7());
    let body = Message::new(id, "test", search, Timestamp::now(), body).encode()?;
    let delivery = Delivery { record_id: "1".to_owned(), body, receive_count: 1, reason: None };
    for _ in 0..2 {
        let said = consumer.consume(std::slice::from_ref(&delivery), None).await;
        assert!(matches!(said[..], [Disposition::Retry { .. }]), "{said:?}");
    }
    proxy.restore();
    assert_eq!(consumer.consume(&[delivery], None).await, [Disposition::Acknowledge]);
    backend::services::database(&config, &aws::config().await).await?.drop_database().await?;
    Ok(())
}
