//! Connecting.

use std::time::Duration;

use mongodb::Client;
use mongodb::bson::doc;
use mongodb::error::ErrorKind;
use mongodb::options::{Acknowledgment, ClientOptions, ReadConcern, SelectionCriteria, WriteConcern};

use crate::Mongo;
use crate::fault::{Described, Fault};
use crate::settings::Settings;

/// A connection that has not been used for this long is not used again. What lies between a function and its
/// database (NAT gateways, load balancers) forgets idle connections after about 350 s without telling either end.
const MAX_IDLE: Duration = Duration::from_secs(120);

/// Why there is no database to work with. Each says which setting to change; none shows an address.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// Nothing is set.
    #[error(
        "MONGODB_URI is not set; it is the address of a MongoDB replica set, such as mongodb://host:27017/?replicaSet=rs0"
    )]
    NoUri,
    /// It is not an address.
    #[error(
        "MONGODB_URI cannot be used as an address{}; user name and password must be percent-encoded, and \
         socketTimeoutMS is not supported",
        .0.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
    )]
    MalformedUri(Option<String>),
    /// MongoDB allows no database of that name.
    #[error("MONGODB_DATABASE must be a name of 1 to 63 bytes without any of /\\. \"$*<>:|?")]
    Database,
    /// User name and password do not match.
    #[error("MongoDB refuses the user name or the password in MONGODB_URI: {0}")]
    Credentials(String),
    /// Nobody answers.
    #[error("no MongoDB server answers at the address in MONGODB_URI: {0}")]
    Unreachable(String),
    /// It has no transactions.
    #[error(
        "MONGODB_URI leads to a standalone server, which has no transactions; use a replica set (one member is \
         enough: start mongod with --replSet and initiate it)"
    )]
    Standalone,
    /// The server answered with a failure.
    #[error("MongoDB at MONGODB_URI cannot be used: {0}")]
    Refused(String),
}

impl Mongo {
    /// Connects, and asks the server once what it is.
    ///
    /// # Errors
    /// With the setting to change.
    pub async fn connect(settings: &Settings) -> Result<Self, ConnectError> {
        Ok(Self::new(client(settings).await?, settings))
    }
}

impl ConnectError {
    /// Whether a setting is wrong, so that every attempt fails.
    pub fn is_of_settings(&self) -> bool {
        match self {
            Self::NoUri | Self::MalformedUri(_) | Self::Database | Self::Standalone => true,
            Self::Credentials(_) | Self::Unreachable(_) | Self::Refused(_) => false,
        }
    }
}

/// A client for these settings, after one request to the server.
///
/// # Errors
/// With the setting to change.
pub async fn client(settings: &Settings) -> Result<Client, ConnectError> {
    check_name(&settings.database)?;
    let client =
        Client::with_options(client_options(settings).await?).map_err(|error| malformed(settings, &error))?;
    let database = client.database(&settings.database);
    let hello = tokio::time::timeout(settings.call_timeout, database.run_command(doc! { "hello": 1 }))
        .await
        .map_err(|_| ConnectError::Unreachable(Fault::NoAnswer(settings.call_timeout).to_string()))?
        .map_err(|error| refused(&error))?;
    // A router of a sharded cluster has transactions too.
    let has_transactions =
        hello.contains_key("setName") || hello.get_str("msg").is_ok_and(|msg| msg == "isdbgrid");
    if has_transactions { Ok(client) } else { Err(ConnectError::Standalone) }
}

/// The driver's options for these settings.
///
/// # Errors
/// When the address is missing or cannot be read.
pub async fn client_options(settings: &Settings) -> Result<ClientOptions, ConnectError> {
    if settings.uri.expose().trim().is_empty() {
        return Err(ConnectError::NoUri);
    }
    let parsed =
        tokio::time::timeout(settings.call_timeout, ClientOptions::parse(settings.uri.expose())).await;
    let mut options = match parsed {
        Ok(options) => options.map_err(|error| match error.kind.as_ref() {
            ErrorKind::DnsResolve { .. } => {
                ConnectError::Unreachable("its name cannot be resolved".to_owned())
            }
            _ => malformed(settings, &error),
        })?,
        Err(_) => return Err(ConnectError::Unreachable("its name cannot be resolved in time".to_owned())),
    };
    options.app_name.get_or_insert_with(|| "search-import".to_owned());
    options.max_pool_size.get_or_insert(settings.max_pool_size);
    options.server_selection_timeout.get_or_insert(settings.server_selection_timeout);
    options.connect_timeout.get_or_insert(settings.connect_timeout);
    options.max_idle_time.get_or_insert(MAX_IDLE);
    // Not for the address to choose: what the ports promise rests on these.
    options.write_concern = Some(WriteConcern::builder().w(Acknowledgment::Majority).build());
    options.read_concern = Some(ReadConcern::majority());
    options.selection_criteria =
        Some(SelectionCriteria::ReadPreference(mongodb::options::ReadPreference::Primary));
    options.retry_reads = Some(true);
    options.retry_writes = Some(true);
    Ok(options)
}

/// <https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions>
fn check_name(database: &str) -> Result<(), ConnectError> {
    let allowed = (1..=63).contains(&database.len())
        && !database.contains(['/', '\\', '.', ' ', '"', '$', '*', '<', '>', ':', '|', '?', '\0']);
    if allowed { Ok(()) } else { Err(ConnectError::Database) }
}

fn malformed(settings: &Settings, error: &mongodb::error::Error) -> ConnectError {
    let tellable = !settings.uri.may_hold_a_secret();
    ConnectError::MalformedUri(tellable.then(|| Described(error).to_string()))
}

/// What a failure of the first call says about the settings.
fn refused(error: &mongodb::error::Error) -> ConnectError {
    /// Authentication failed; and, from Atlas, the same in its own words.
    const AUTHENTICATION: [i32; 2] = [18, 8000];
    let text = Described(error).to_string();
    match error.kind.as_ref() {
        ErrorKind::Authentication { .. } => ConnectError::Credentials(text),
        ErrorKind::Command(error) if AUTHENTICATION.contains(&error.code) => ConnectError::Credentials(text),
        // With what each server said.
        ErrorKind::ServerSelection { message, .. } => ConnectError::Unreachable(message.clone()),
        ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. } => ConnectError::Unreachable(text),
        _ => ConnectError::Refused(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Uri;

    async fn refusal(uri: &str, database: &str) -> String {
        let error = Mongo::connect(&Settings::new(Uri::new(uri), database)).await.unwrap_err();
        format!("{error} {error:?}")
    }

    #[tokio::test]
    async fn a_missing_address_is_said_to_be_missing() {
        assert!(refusal(" ", "reviews").await.contains("MONGODB_URI is not set"));
    }

    #[tokio::test]
    async fn an_address_that_cannot_be_read_is_refused_without_repeating_its_password() {
        for uri in [
            "mongodb://reviewer:hun/ter2@db.example",
            "mongodb://reviewer:hunter2@db.example/?maxPoolSize=hunter2",
            "mongodb://reviewer:hun@ter2@db.example",
            "postgres://reviewer:hunter2@db.example",
            "mongodb://reviewer:hunter2@db.example/?socketTimeoutMS=5",
        ] {
            let text = refusal(uri, "reviews").await;
            assert!(text.contains("MONGODB_URI") && text.contains("percent-encoded"), "{text}");
            assert!(!text.contains("hun") && !text.contains("ter2") && !text.contains("reviewer"), "{text}");
        }
        let text = refusal("mongodb://localhost/?maxPoolSize=many", "reviews").await;
        assert!(
            text.to_lowercase().contains("maxpoolsize"),
            "without a secret it may say what is wrong: {text}"
        );
    }

    #[tokio::test]
    async fn a_database_that_cannot_exist_is_refused() {
        for name in ["", "a.b", "a b", &"x".repeat(64)] {
            assert!(refusal("mongodb://localhost", name).await.contains("MONGODB_DATABASE"), "{name}");
        }
    }
}
