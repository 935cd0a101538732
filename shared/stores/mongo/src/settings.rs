//! What may be set.

use std::fmt;
use std::time::Duration;

use jiff::SignedDuration;

/// The address of the database, credentials included. Neither `Debug` nor any error
/// prints it.
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

    /// Whether a text about this address could repeat a secret out of it. The driver quotes pieces of what it
    /// cannot read, and with an unescaped `@` or `/` in a password these are pieces of the password.
    pub(crate) fn may_hold_a_secret(&self) -> bool {
        let text = self.0.to_ascii_lowercase();
        ["@", "password", "token", "secret"].iter().any(|sign| text.contains(sign))
    }
}

impl fmt::Debug for Uri {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Uri(***)")
    }
}

/// What may be set. Where the address sets the same as an option, the address wins.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The address, `MONGODB_URI`.
    pub uri: Uri,
    /// The database, `MONGODB_DATABASE`.
    pub database: String,
    /// The most connections to one server: 10, one for each partition that a batch works on at the same time.
    pub max_pool_size: u32,
    /// How long to look for a server that takes writes: 5 s. An election takes about that long, and a function
    /// that waits longer only delays the redelivery.
    pub server_selection_timeout: Duration,
    /// How long setting up a connection may take: 5 s.
    pub connect_timeout: Duration,
    /// How long one call may take, retries of the driver included, before it counts as unanswered: 10 s. The
    /// driver has no such limit (it refuses `socketTimeoutMS`), so without it a silent network would hold a
    /// function until it is killed.
    pub call_timeout: Duration,
    /// How long the document of a saga that has ended stays: 7 days, so that late duplicates meet it. Whole
    /// seconds, the grain of a TTL index, as below.
    pub saga_retention: SignedDuration,
    /// How long the record of a session stays once it is settled: 7 days.
    pub outbox_retention: SignedDuration,
    /// How long a decision about a message stays: 30 days.
    pub history_retention: SignedDuration,
}

impl Settings {
    /// The defaults for a database at an address.
    pub fn new(uri: Uri, database: impl Into<String>) -> Self {
        Self {
            uri,
            database: database.into(),
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
    fn settings_do_not_show_the_address() {
        let settings = Settings::new(Uri::new("mongodb://reviewer:hunter2@db.example/"), "reviews");
        let shown = format!("{settings:?} {settings:#?}");
        assert!(
            !shown.contains("hunter2") && !shown.contains("reviewer") && shown.contains("reviews"),
            "{shown}"
        );
    }

    #[test]
    fn an_address_without_credentials_may_be_talked_about() {
        assert!(!Uri::new("mongodb://localhost:27017/?replicaSet=rs0").may_hold_a_secret());
        assert!(Uri::new("mongodb://a:b@localhost").may_hold_a_secret());
        assert!(
            Uri::new("mongodb://localhost/?authMechanismProperties=AWS_SESSION_TOKEN:x").may_hold_a_secret()
        );
    }
}
