//! The data directory as this program uses it.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use backend::Backend;
use config::Config;
use embedded::{Lock, ReceiveLimits, Settings, Store};
use worker::SystemHost;

use crate::args::Output;

/// How often a message may be received here. Each interruption of this program counts as one, and an import that
/// a user interrupts a few times is not poison.
const RECEIVE_LIMIT: u32 = 20;

/// The settings: the environment's, and what was given on the command line instead.
pub(crate) fn settings(output: &Output) -> anyhow::Result<Config> {
    let mut config = Config::from_env()?;
    if let Some(dir) = &output.data_dir {
        config.data_dir.clone_from(dir);
    }
    Ok(config)
}

/// Opens the data directory for work, as the only program that works in it.
pub(crate) async fn open(config: Config) -> anyhow::Result<(Backend, Lock)> {
    let lock = Store::lock(&config.data_dir)?;
    let limit = RECEIVE_LIMIT;
    let receive_limits =
        ReceiveLimits { uploads: limit, saga: limit, parse: limit, parse_dead: limit, control: limit };
    let settings = Settings { receive_limits, ..Settings::with_retention(config.saga_retention) };
    let host = Arc::new(SystemHost);
    let store = Arc::new(Store::open(&config.data_dir, host.clone(), settings)?);
    store.recover(&lock).await?;
    let backend = Backend { queue: store.clone(), observer: store.clone(), store, host, config };
    Ok((backend, lock))
}

/// Opens the data directory to look into it, beside a program that may be working in it.
pub(crate) fn look_into(dir: &Path) -> anyhow::Result<Store> {
    Store::open_read_only(dir, Arc::new(SystemHost))
        .with_context(|| format!("looking into {} failed", dir.display()))
}
