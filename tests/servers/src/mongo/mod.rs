//! MongoDB: a separate database per test on the server at `MONGODB_URI`, or a separate server.

mod fail;
mod proxy;
mod replica_set;
mod server;

use std::sync::Arc;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use jiff::SignedDuration;
use mongo::{Mongo, OnDifference, Settings, Uri};
use mongodb::bson::{Document, doc};
use mongodb::event::EventHandler;
use mongodb::event::command::CommandEvent;
use mongodb::{Client, Collection, Database};
use uuid::Uuid;

use crate::TestResult;

pub use fail::FailPoint;
pub use proxy::Proxy;
pub use replica_set::ReplicaSet;
pub use server::{OwnServer, StartError};

/// Returns the address of the server.
///
/// # Panics
/// Panics if `MONGODB_URI` is not set.
pub fn uri() -> String {
    match std::env::var("MONGODB_URI") {
        Ok(uri) if !uri.trim().is_empty() => uri,
        _ => panic!("MONGODB_URI is not set: run `make services` or `make test`"),
    }
}

/// Returns the host and port of the server.
pub async fn host() -> Result<String, mongodb::error::Error> {
    let options = mongodb::options::ClientOptions::parse(uri()).await?;
    Ok(options.hosts.first().map(ToString::to_string).unwrap_or_default())
}

/// Adds an option to an address.
pub fn with_option(uri: &str, option: &str) -> String {
    match uri.split_once('?') {
        Some((_, options)) if !options.is_empty() => format!("{uri}&{option}"),
        Some(_) => format!("{uri}{option}"),
        None if uri.matches('/').count() > 2 => format!("{uri}?{option}"),
        None => format!("{uri}/?{option}"),
    }
}

/// The database of a single test, with its indexes. [`Scratch::end`] drops it.
pub struct Scratch {
    /// The adapter under test.
    pub mongo: Mongo,
    /// The settings of the adapter.
    pub settings: Settings,
    /// The database, through a separate connection of the test.
    pub database: Database,
    /// The application name of the adapter's connections, for fail points.
    pub app_name: String,
    sent: Arc<Mutex<Vec<Document>>>,
}

/// The settings of a test database.
#[derive(Debug, Clone)]
pub struct Setup {
    /// [`Settings::saga_retention`], [`Settings::outbox_retention`] and [`Settings::history_retention`].
    pub retention: SignedDuration,
    /// See [`Settings::call_timeout`].
    pub call_timeout: Duration,
    /// See [`Settings::system`].
    pub system: String,
    /// `true` if the indexes are created at the start.
    pub indexed: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            retention: SignedDuration::from_hours(7 * 24),
            call_timeout: Duration::from_secs(30),
            system: imports::SYSTEM.to_owned(),
            indexed: true,
        }
    }
}

impl Scratch {
    /// Creates a database on the shared server.
    pub async fn new() -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Self::with(&uri(), Setup::default()).await
    }

    /// Creates a database on the server at `uri`.
    pub async fn with(uri: &str, setup: Setup) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let unique = Uuid::now_v7().simple().to_string();
        let (name, app_name) = (format!("test_{unique}"), format!("adapter-{unique}"));
        let own = Client::with_uri_str(uri).await?;
        let settings = Settings {
            saga_retention: setup.retention,
            outbox_retention: setup.retention,
            history_retention: setup.retention,
            call_timeout: setup.call_timeout,
            database: name.clone(),
            ..Settings::new(&setup.system, Uri::new(with_option(uri, &format!("appName={app_name}"))))
        };
        let sent = Arc::new(Mutex::new(Vec::new()));
        let mut options = mongo::connect::client_options(&settings).await?;
        let heard = Arc::clone(&sent);
        options.command_event_handler = Some(EventHandler::callback(move |event| {
            if let CommandEvent::Started(started) = event {
                let mut heard = heard.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                heard.push(started.command);
            }
        }));
        let mongo = Mongo::new(Client::with_options(options)?, &settings);
        if setup.indexed {
            mongo.ensure_indexes(OnDifference::Report).await?;
        }
        let database = own.database(&name);
        Ok(Self { mongo, settings, database, app_name, sent })
    }

    /// Returns a collection.
    pub fn collection(&self, name: &str) -> Collection<Document> {
        self.database.collection(name)
    }

    /// Returns the commands that the adapter has sent since the last call.
    pub fn sent(&self) -> Vec<Document> {
        std::mem::take(&mut *self.sent.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// Returns the names of [`Scratch::sent`].
    pub fn commands(&self) -> Vec<String> {
        self.sent().iter().filter_map(|command| command.keys().next().cloned()).collect()
    }

    /// Makes commands of this test's adapter fail.
    pub async fn fail(
        &self,
        times: i32,
        commands: &[&str],
        how: Document,
    ) -> Result<FailPoint, mongodb::error::Error> {
        FailPoint::set(self.database.client(), &self.app_name, times, commands, how).await
    }

    /// Starts to record the execution plan of every operation on the database.
    pub async fn profile(&self) -> Result<(), mongodb::error::Error> {
        // By default the server keeps only one megabyte.
        let create = doc! { "create": "system.profile", "capped": true, "size": 64 << 20 };
        self.database.run_command(create).await?;
        self.database.run_command(doc! { "profile": 2, "slowms": 0, "sampleRate": 1.0 }).await.map(|_| ())
    }

    /// Drops the database.
    pub async fn end(self) -> TestResult {
        self.database.run_command(doc! { "profile": 0 }).await?;
        self.database.drop().await?;
        Ok(())
    }
}

/// Waits until a condition holds.
///
/// The condition is printed first, so that the output of a test that is stopped names what it waited for.
///
/// # Panics
/// Panics if the condition does not hold in time.
pub async fn eventually<E>(
    what: &str,
    within: Duration,
    holds: impl AsyncFnMut() -> Result<bool, E>,
) -> Result<(), E> {
    eprintln!("waiting until: {what}");
    assert!(holds_within(within, holds).await?, "not within {within:?}: {what}");
    Ok(())
}

/// Waits until a condition holds, and returns whether it did in time.
pub async fn holds_within<E>(
    within: Duration,
    mut holds: impl AsyncFnMut() -> Result<bool, E>,
) -> Result<bool, E> {
    let end = Instant::now() + within;
    while !holds().await? {
        if Instant::now() >= end {
            return Ok(false);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    Ok(true)
}
