//! The contract suites.

use async_trait::async_trait;
use embedded::{BUCKET, ReceiveLimits, Settings, Store, UploadError};
use imports::PresignedPost;
use testing::objects::{Upload, Uploaded};

use crate::depot::{Depot, Tested};

#[tokio::test]
async fn sagas() -> Tested {
    let Depot { store, host, folder: _folder } = Depot::new();
    let (sweep, retention) = (store.saga_outbox(), store.settings().saga_retention);
    let ports = testing::saga::Ports { read: &store, write: &store, sweep: &sweep, host: &*host, retention };
    testing::saga::all(&ports).await
}

#[tokio::test]
async fn jobs() -> Tested {
    let Depot { store, host, folder: _folder } = Depot::new();
    testing::jobs::all(&testing::jobs::Ports {
        read: &store,
        write: &store,
        sagas: &store,
        report: &store,
        host: &*host,
    })
    .await
}

#[tokio::test]
async fn studies() -> Tested {
    let Depot { store, host, folder: _folder } = Depot::new();
    testing::studies::all(&testing::studies::Ports { read: &store, write: &store, host: &*host }).await
}

#[tokio::test]
async fn sessions() -> Tested {
    let Depot { store, host, folder: _folder } = Depot::new();
    let sweep = store.session_outbox();
    let ports = testing::sessions::Ports {
        commit: &store,
        settle: &store,
        sweep: &sweep,
        jobs: &store,
        host: &*host,
    };
    testing::sessions::all(&ports).await
}

#[tokio::test]
async fn ledger() -> Tested {
    let Depot { store, host, folder: _folder } = Depot::new();
    testing::ledger::all(&testing::ledger::Ports { claim: &store, grant: &store, host: &*host }).await
}

#[tokio::test]
async fn processed() -> Tested {
    let Depot { store, host, folder: _folder } = Depot::new();
    testing::processed::all(&testing::processed::Ports { store: &store, host: &*host }).await
}

#[tokio::test]
async fn queues() -> Tested {
    let receive_limits = ReceiveLimits { saga: 4, ..ReceiveLimits::default() };
    let Depot { store, host, folder: _folder } =
        Depot::with(Settings { receive_limits, ..Settings::default() });
    let ports = testing::queues::Ports { send: &store, receive: &store, host: &*host, receive_limit: 4 };
    testing::queues::all(&ports).await
}

struct Browser(Store);

#[async_trait]
impl Upload for Browser {
    async fn upload(
        &self,
        form: &PresignedPost,
        bytes: Vec<u8>,
    ) -> Result<Uploaded, Box<dyn std::error::Error + Send + Sync>> {
        match self.0.upload(form, bytes.as_slice()).await {
            Ok(_) => Ok(Uploaded::Stored),
            Err(UploadError::Read(error)) => Err(error.into()),
            Err(UploadError::Store(error)) => Err(error.into()),
            Err(_) => Ok(Uploaded::Refused),
        }
    }
}

#[tokio::test]
async fn objects() -> Tested {
    let Depot { store, host, folder: _folder } = Depot::new();
    let browser = Browser(store.clone());
    let ports = testing::objects::Ports {
        presign: &store,
        upload: &browser,
        read: &store,
        host: &*host,
        bucket: BUCKET,
        prefix: "uploads/",
    };
    testing::objects::all(&ports).await
}
