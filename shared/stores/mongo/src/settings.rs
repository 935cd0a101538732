//! Settings of the connection and of the retention.

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;

/// The address of the database, which may contain credentials. `Debug` and errors never display it.
#[derive(Clone, PartialEq, Eq)]
pub struct Uri(String);

impl Uri {
    /// Wraps an address: `mongodb://…` or `mongodb+srv://…`.
    pub fn new(uri: impl Into<String>) -> Self {
        Self(uri.into())
    }

    pub(crate) fn expose(&self) -> &str {
        &self.0
    }

    /// Returns whether an error text about this address may contain a secret. The driver quotes parts of an invalid
    /// address, and if a password contains an unescaped `@` or `/`, these are parts of the password.
    pub(crate) fn may_contain_secret(&self) -> bool {
        let text = self.0.to_ascii_lowercase();
        ["@", "password", "token", "secret"].iter().any(|sign| text.contains(sign))
    }
}

impl fmt::Debug for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Uri(***)")
    }
}

/// Settings. Options in the address take precedence over the fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The address, `MONGODB_URI`.
    pub uri: Uri,
    /// The name of the system, from which the names of the collections are derived.
    pub system: String,
    /// The database, `MONGODB_DATABASE`.
    pub database: String,
    /// Maximum number of connections to one server: 10, one for each partition that a batch processes concurrently.
    pub max_pool_size: u32,
    /// Time limit for the selection of a primary: 5 s. An election takes about that long, and a function that waits
    /// longer only delays the redelivery.
    pub server_selection_timeout: Duration,
    /// Time limit for establishing a connection: 5 s.
    pub connect_timeout: Duration,
    /// Time limit of one call, including the driver's retries: 10 s. The driver has no such limit (it does not support
    /// `socketTimeoutMS`), so without it a network that drops packets would block a function until its own time limit.
    pub call_timeout: Duration,
    /// Retention of the documents of ended sagas: 7 days, so that late duplicates are detected. Like the retentions
    /// below, it is a whole number of seconds, the resolution of a TTL index.
    pub saga_retention: SignedDuration,
    /// Retention of the records of settled sessions: 7 days.
    pub outbox_retention: SignedDuration,
    /// Retention of the decisions about messages: 30 days.
    pub history_retention: SignedDuration,
}

impl Settings {
    /// Returns the default settings for the database of a system at an address. The name of the database is derived
    /// from the name of the system.
    pub fn new(system: &str, uri: Uri) -> Self {
        Self {
            uri,
            database: messages::naming::snake(system),
            system: system.to_owned(),
            max_pool_size: 10,
            server_selection_timeout: Duration::from_secs(5),
            connect_timeout: Duration::from_secs(5),
            call_timeout: Duration::from_secs(10),
            saga_retention: SignedDuration::from_hours(7 * 24),
            outbox_retention: SignedDuration::from_hours(7 * 24),
            history_retention: SignedDuration::from_hours(30 * 24),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_do_not_display_the_address() {
        let settings = Settings::new("reviews", Uri::new("mongodb://reviewer:hunter2@db.example/"));
        let shown = format!("{settings:?} {settings:#?}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("reviewer") && shown.contains("reviews"),
            "{shown}"
        );
    }

    #[test]
    fn address_without_credentials_may_be_displayed() {
        assert!(!Uri::new("mongodb://localhost:27017/?replicaSet=rs0").may_contain_secret());
        assert!(Uri::new("mongodb://a:b@localhost").may_contain_secret());
        assert!(
            Uri::new("mongodb://localhost/?authMechanismProperties=AWS_SESSION_TOKEN:x").may_contain_secret()
        );
    }
}
