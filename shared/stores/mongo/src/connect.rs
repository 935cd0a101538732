//! Connection to the database.

use std::time::Duration;

use mongodb::Client;
use mongodb::bson::doc;
use mongodb::error::ErrorKind;
use mongodb::options::{Acknowledgment, ClientOptions, ReadConcern, SelectionCriteria, WriteConcern};

use crate::driver_error::{DriverErrorText, timeout_text};
use crate::settings::Settings;

/// Idle time after which a connection is closed. NAT gateways and load balancers between a function and its database
/// drop idle connections after about 350 s, without notifying either end.
const MAX_IDLE: Duration = Duration::from_secs(120);

/// Reasons for a failed connection. Each text names the setting to change, and none contains an address.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address is not set.
    #[error(
        "MONGODB_URI is not set; it is the address of a MongoDB replica set, such as mongodb://host:27017/?replicaSet=rs0"
    )]
    NoUri,
    /// The address is invalid.
    #[error(
        "MONGODB_URI cannot be used as an address{}; user name and password must be percent-encoded, and \
         socketTimeoutMS is not supported",
        .0.as_ref().map(|why| format!(": {why}")).unwrap_or_default()
    )]
    MalformedUri(Option<String>),
    /// The name of the database is invalid.
    #[error("MONGODB_DATABASE must be a name of 1 to 63 bytes without any of /\\. \"$*<>:|?")]
    Database,
    /// The server rejects the user name or the password.
    #[error("MongoDB refuses the user name or the password in MONGODB_URI: {0}")]
    Credentials(String),
    /// No server answers.
    #[error("no MongoDB server answers at the address in MONGODB_URI: {0}")]
    Unreachable(String),
    /// The server is standalone and does not support transactions.
    #[error(
        "MONGODB_URI leads to a standalone server, which has no transactions; use a replica set (one member is \
         enough: start mongod with --replSet and initiate it)"
    )]
    Standalone,
    /// The server answered with an error.
    #[error("MongoDB at MONGODB_URI cannot be used: {0}")]
    Refused(String),
}

impl ConnectError {
    /// Returns whether a setting is wrong, so that every attempt fails.
    pub fn is_of_settings(&self) -> bool {
        match self {
            Self::NoUri | Self::MalformedUri(_) | Self::Database | Self::Standalone => true,
            Self::Credentials(_) | Self::Unreachable(_) | Self::Refused(_) => false,
        }
    }
}

/// Creates a client for these settings and sends one request to the server.
///
/// # Errors
/// Returns an error that names the setting to change.
pub async fn client(settings: &Settings) -> Result<Client, ConnectError> {
    check_name(&settings.database)?;
    let client =
        Client::with_options(client_options(settings).await?).map_err(|error| malformed(settings, &error))?;
    let database = client.database(&settings.database);
    let hello = tokio::time::timeout(settings.call_timeout, database.run_command(doc! { "hello": 1 }))
        .await
        .map_err(|_| ConnectError::Unreachable(timeout_text(settings.call_timeout)))?
        .map_err(|error| refused(&error))?;
    // A router of a sharded cluster supports transactions too.
    let has_transactions =
        hello.contains_key("setName") || hello.get_str("msg").is_ok_and(|msg| msg == "isdbgrid");
    if has_transactions { Ok(client) } else { Err(ConnectError::Standalone) }
}

/// Returns the driver's options for these settings.
///
/// # Errors
/// Returns an error if the address is missing or invalid.
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
    options.app_name.get_or_insert_with(|| settings.system.clone());
    options.max_pool_size.get_or_insert(settings.max_pool_size);
    options.server_selection_timeout.get_or_insert(settings.server_selection_timeout);
    options.connect_timeout.get_or_insert(settings.connect_timeout);
    options.max_idle_time.get_or_insert(MAX_IDLE);
    // The address cannot override these options, because the guarantees of the ports depend on them.
    options.write_concern = Some(WriteConcern::builder().w(Acknowledgment::Majority).build());
    options.read_concern = Some(ReadConcern::majority());
    options.selection_criteria =
        Some(SelectionCriteria::ReadPreference(mongodb::options::ReadPreference::Primary));
    options.retry_reads = Some(true);
    options.retry_writes = Some(true);
    Ok(options)
}

/// Checks the name against <https://www.mongodb.com/docs/manual/reference/limits/#naming-restrictions>.
fn check_name(database: &str) -> Result<(), ConnectError> {
    let allowed = (1..=63).contains(&database.len())
        && !database.contains(['/', '\\', '.', ' ', '"', '$', '*', '<', '>', ':', '|', '?', '\0']);
    if allowed { Ok(()) } else { Err(ConnectError::Database) }
}

fn malformed(settings: &Settings, error: &mongodb::error::Error) -> ConnectError {
    let may_show = !settings.uri.may_contain_secret();
    ConnectError::MalformedUri(may_show.then(|| DriverErrorText(error).to_string()))
}

/// Derives the error of the settings from a failure of the first call.
fn refused(error: &mongodb::error::Error) -> ConnectError {
    /// Codes of a failed authentication, the second one from Atlas.
    const AUTHENTICATION: [i32; 2] = [18, 8000];
    let text = DriverErrorText(error).to_string();
    match error.kind.as_ref() {
        ErrorKind::Authentication { .. } => ConnectError::Credentials(text),
        ErrorKind::Command(error) if AUTHENTICATION.contains(&error.code) => ConnectError::Credentials(text),
        // The message contains the state of each server.
        ErrorKind::ServerSelection { message, .. } => ConnectError::Unreachable(message.clone()),
        ErrorKind::Io(_) | ErrorKind::ConnectionPoolCleared { .. } => ConnectError::Unreachable(text),
        _ => ConnectError::Refused(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Mongo;
    use crate::settings::Uri;

    async fn refusal(uri: &str, database: &str) -> String {
        let error = Mongo::connect(&Settings {
            database: database.to_owned(),
            ..Settings::new("reviews", Uri::new(uri))
        })
        .await
        .unwrap_err();
        format!("{error} {error:?}")
    }

    #[tokio::test]
    async fn missing_address_is_reported() {
        assert!(refusal(" ", "reviews").await.contains("MONGODB_URI is not set"));
    }

    #[tokio::test]
    async fn invalid_address_is_rejected_without_its_password() {
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
            "an error without a secret contains the reason: {text}"
        );
    }

    #[tokio::test]
    async fn invalid_database_name_is_rejected() {
        for name in ["", "a.b", "a b", &"x".repeat(64)] {
            assert!(refusal("mongodb://localhost", name).await.contains("MONGODB_DATABASE"), "{name}");
        }
    }
}
