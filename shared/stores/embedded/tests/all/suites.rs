//! The contract suites.

use std::sync::Arc;

use async_trait::async_trait;
use contracts::failures::StoredValue;
use contracts::sample::Samples;
use embedded::{BUCKET, Store, UploadError};
use futures::FutureExt;
use imports::{PresignedPost, StudyRef, queues};
use messages::{MessageId, PartitionKey, QueueSpec};
use percent_encoding::percent_decode_str;
use saga::Views;
use testing::exports::Download;
use testing::objects::{Upload, UploadOutcome};

use crate::depot::{Depot, TestResult};

#[tokio::test]
async fn sagas() -> TestResult {
    let depot = Depot::new();
    let Depot { store, host, .. } = &depot;
    let (sweep, retention) = (store.saga_outbox(), store.settings().saga_retention);
    let damage = |partition: PartitionKey| {
        let damaged = depot
            .database()
            .execute("UPDATE saga SET content = '{}' WHERE search_id = ?1", [partition.to_string()]);
        async move {
            assert_eq!(damaged?, 1);
            Ok(())
        }
        .boxed()
    };
    let damage_entry = |partition: PartitionKey, entry: MessageId| {
        let damaged = depot.database().execute(
            r#"UPDATE outbox SET kind = '{"kind":"webhook","to":"x"}' WHERE owner_id = ?1 AND entry_id = ?2"#,
            [partition.to_string(), entry.to_string()],
        );
        async move {
            assert_eq!(damaged?, 1);
            Ok(())
        }
        .boxed()
    };
    let ports = contracts::documents::Ports {
        read: store,
        write: store,
        sweep: &sweep,
        host: &**host,
        retention,
        damage: Some(&damage),
        damage_entry: Some(&damage_entry),
    };
    contracts::documents::all(&ports).await
}

#[tokio::test]
async fn views() -> TestResult {
    let Depot { store, host, folder: _folder } = Depot::new();
    let shared = Arc::new(store.clone());
    let views = Views { saga: Samples, written: shared.clone(), documents: shared, host: host.clone() };
    let ports = contracts::views::Ports { views: &views, write: &store, documents: &store, host: &*host };
    contracts::views::all(&ports).await
}

#[tokio::test]
async fn progress() -> TestResult {
    let Depot { store, host, folder: _folder } = Depot::new();
    testing::progress::all(&testing::progress::Ports { report: &store, read: &store, host: &*host }).await
}

#[tokio::test]
async fn reading() -> TestResult {
    let Depot { store, host, folder: _folder } = Depot::new();
    testing::parse_attempts::all(&testing::parse_attempts::Ports { track: &store, host: &*host }).await
}

#[tokio::test]
async fn studies() -> TestResult {
    let depot = Depot::new();
    let damage = |study: StudyRef| {
        let sql = "UPDATE study SET study = '{', packed = NULL
            WHERE record = ?2 AND source = (SELECT seq FROM source WHERE file_id = ?1)";
        let damaged = depot.database().execute(sql, (study.file_id.to_string(), study.record.to_string()));
        async move {
            assert_eq!(damaged?, 1);
            Ok(())
        }
        .boxed()
    };
    let Depot { store, host, .. } = &depot;
    testing::studies::all(&testing::studies::Ports {
        read: store,
        write: store,
        compare: store,
        track: store,
        host: &**host,
        damage: &damage,
    })
    .await
}

#[tokio::test]
async fn words() -> TestResult {
    let Depot { store, host, folder: _folder } = Depot::new();
    testing::words::all(&testing::words::Ports {
        index: &store,
        read: &store,
        write: &store,
        track: &store,
        host: &*host,
    })
    .await
}

#[tokio::test]
async fn sessions() -> TestResult {
    let Depot { store, host, folder: _folder } = Depot::new();
    let sweep = store.session_outbox();
    let ports = contracts::sessions::Ports::of(&store, &sweep, &*host);
    contracts::sessions::all(&ports).await
}

#[tokio::test]
async fn ledger() -> TestResult {
    let Depot { store, host, folder: _folder } = Depot::new();
    let ports = contracts::ledger::Ports { claim: &store, grant: &store, check: &store, host: &*host };
    contracts::ledger::all(&ports).await
}

#[tokio::test]
async fn failures() -> TestResult {
    let depot = Depot::new();
    let damage = |stored: StoredValue| {
        let (sql, id) = match stored {
            StoredValue::Failure(id) => ("UPDATE failure SET failure = '{}' WHERE id = ?1", id.to_string()),
            StoredValue::Operation(id) => {
                ("UPDATE operation SET operation = '{}' WHERE id = ?1", id.to_string())
            }
        };
        let damaged = depot.database().execute(sql, [id]);
        async move {
            assert_eq!(damaged?, 1);
            Ok(())
        }
        .boxed()
    };
    let Depot { store, host, .. } = &depot;
    contracts::failures::all(&contracts::failures::Ports { store, host: &**host, damage: &damage }).await
}

#[tokio::test]
async fn history() -> TestResult {
    let Depot { store, host, folder: _folder } = Depot::new();
    contracts::history::all(&contracts::history::Ports { store: &store, host: &*host }).await
}

#[tokio::test]
async fn processed() -> TestResult {
    let Depot { store, host, folder: _folder } = Depot::new();
    contracts::processed::all(&contracts::processed::Ports { store: &store, host: &*host }).await
}

/// Two queues of the application, one with a limit that the suite reaches sooner.
static QUEUES: [QueueSpec; 4] = [
    QueueSpec::with_consumer(queues::SAGA, queues::SAGA_DEAD, 4, 30, 10, 2),
    QueueSpec::without_consumer(queues::SAGA_DEAD),
    QueueSpec::with_consumer(queues::PARSE, queues::PARSE_DEAD, 8, 900, 1, 2),
    QueueSpec::without_consumer(queues::PARSE_DEAD),
];

#[tokio::test]
async fn queues() -> TestResult {
    let Depot { store, host, folder: _folder } = Depot::with(&QUEUES);
    let ports = contracts::queues::Ports {
        send: &store,
        receive: &store,
        inspect: &store,
        host: &*host,
        queues: &QUEUES,
        queue: queues::SAGA,
        other: queues::PARSE,
        fair: true,
    };
    contracts::queues::all(&ports).await
}

struct Browser(Store);

#[async_trait]
impl Upload for Browser {
    async fn upload(
        &self,
        form: &PresignedPost,
        bytes: Vec<u8>,
    ) -> Result<UploadOutcome, Box<dyn std::error::Error + Send + Sync>> {
        match self.0.upload(form, bytes.as_slice()).await {
            Ok(_) => Ok(UploadOutcome::Stored),
            Err(UploadError::Read(error)) => Err(error.into()),
            Err(UploadError::Store(error)) => Err(error.into()),
            Err(_) => Ok(UploadOutcome::Refused),
        }
    }
}

#[tokio::test]
async fn objects() -> TestResult {
    let Depot { store, host, folder: _folder } = Depot::new();
    let browser = Browser(store.clone());
    let ports = testing::objects::Ports {
        presign: &store,
        upload: &browser,
        read: &store,
        find: &store,
        host: &*host,
        bucket: BUCKET,
        prefix: "uploads/",
    };
    testing::objects::all(&ports).await
}

/// Reads the file that a link leads to.
struct Reader;

#[async_trait]
impl Download for Reader {
    async fn download(&self, url: &str) -> Result<Vec<u8>, Box<dyn std::error::Error + Send + Sync>> {
        let path = percent_decode_str(url.strip_prefix("file://").ok_or("no file")?).decode_utf8()?;
        Ok(std::fs::read(&*path)?)
    }
}

#[tokio::test]
async fn exports() -> TestResult {
    let Depot { store, host, folder: _folder } = Depot::new();
    let ports = testing::exports::Ports { keep: &store, download: &Reader, find: &store, host: &*host };
    testing::exports::all(&ports).await
}
