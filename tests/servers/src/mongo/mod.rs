//! MongoDB: a database for each test on the server at `MONGODB_URI`, or a server of a test's own.

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

use crate::Tested;

pub use fail::FailPoint;
pub use proxy::Proxy;
pub use replica_set::ReplicaSet;
pub use server::{OwnServer, StartError};

/// The address of the server.
///
/// # Panics
/// When `MONGODB_URI` is not set.
pub fn uri() -> String {
    match std::env::var("MONGODB_URI") {
        Ok(uri) if !uri.trim().is_empty() => uri,
        _ => panic!("MONGODB_URI is not set: run `make services` or `make test`"),
    }
}

/// The server itself, as host and port.
///
/// # Errors
/// When the address cannot be read.
pub async fn host() -> Result<String, mongodb::error::Error> {
    let options = mongodb::options::ClientOptions::parse(uri()).await?;
    Ok(options.hosts.first().map(ToString::to_string).unwrap_or_default())
}

/// An address with one more option.
pub fn with_option(uri: &str, option: &str) -> String {
    match uri.split_once('?') {
        Some((_, options)) if !options.is_empty() => format!("{uri}&{option}"),
        Some(_) => format!("{uri}{option}"),
        None if uri.matches('/').count() > 2 => format!("{uri}?{option}"),
        None => format!("{uri}/?{option}"),
    }
}

/// A database of one test's own, with its indexes. It is dropped by [`Scratch::end`].
pub struct Scratch {
    /// The adapter under test.
    pub mongo: Mongo,
    /// Its settings.
    pub settings: Settings,
    /// The database, through a connection of the test's own.
    pub database: Database,
    /// The name that the adapter's connections give, for fail points.
    pub app_name: String,
    sent: Arc<Mutex<Vec<Document>>>,
}

/// What a test may change about its database.
#[derive(Debug, Clone)]
pub struct Setup {
    /// [`Settings::saga_retention`], [`Settings::outbox_retention`] and [`Settings::history_retention`].
    pub retention: SignedDuration,
    /// See [`Settings::call_timeout`].
    pub call_timeout: Duration,
    /// Whether the indexes are there from the beginning.
    pub indexed: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            retention: SignedDuration::from_hours(7 * 24),
            call_timeout: Duration::from_secs(30),
            indexed: true,
        }
    }
}

impl Scratch {
    /// A database on the common server.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn new() -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        Self::with(&uri(), Setup::default()).await
    }

    /// A database on the server at `uri`.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn with(uri: &str, setup: Setup) -> Result<Self, Box<dyn std::error::Error + Send + Sync>> {
        let unique = Uuid::now_v7().simple().to_string();
        let (name, app_name) = (format!("test_{unique}"), format!("adapter-{unique}"));
        let own = Client::with_uri_str(uri).await?;
        let settings = Settings {
            saga_retention: setup.retention,
            outbox_retention: setup.retention,
            history_retention: setup.retention,
            call_timeout: setup.call_timeout,
            ..Settings::new(Uri::new(with_option(uri, &format!("appName={app_name}"))), &name)
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

    /// One of its collections, as it is.
    pub fn collection(&self, name: &str) -> Collection<Document> {
        self.database.collection(name)
    }

    /// The commands that the adapter has sent since the last call.
    pub fn sent(&self) -> Vec<Document> {
        std::mem::take(&mut *self.sent.lock().unwrap_or_else(std::sync::PoisonError::into_inner))
    }

    /// The names of [`Scratch::sent`].
    pub fn commands(&self) -> Vec<String> {
        self.sent().iter().filter_map(|command| command.keys().next().cloned()).collect()
    }

    /// Lets commands of this test's adapter fail, and of no other.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn fail(
        &self,
        times: i32,
        commands: &[&str],
        how: Document,
    ) -> Result<FailPoint, mongodb::error::Error> {
        FailPoint::set(self.database.client(), &self.app_name, times, commands, how).await
    }

    /// Writes down how every operation on the database is carried out.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn profile(&self) -> Result<(), mongodb::error::Error> {
        // By itself the server keeps no more than a megabyte.
        let create = doc! { "create": "system.profile", "capped": true, "size": 64 << 20 };
        self.database.run_command(create).await?;
        self.database.run_command(doc! { "profile": 2, "slowms": 0, "sampleRate": 1.0 }).await.map(|_| ())
    }

    /// Drops the database.
    ///
    /// # Errors
    /// When the server refuses.
    pub async fn end(self) -> Tested {
        self.database.run_command(doc! { "profile": 0 }).await?;
        self.database.drop().await?;
        Ok(())
    }
}

/// Waits until something holds.
///
/// # Panics
/// When it does not within the time.
pub async fn eventually<E>(
    what: &str,
    within: Duration,
    holds: impl AsyncFnMut() -> Result<bool, E>,
) -> Result<(), E> {
    assert!(comes_true(within, holds).await?, "not within {within:?}: {what}");
    Ok(())
}

/// Waits until something holds; whether it does within the time.
pub async fn comes_true<E>(
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
