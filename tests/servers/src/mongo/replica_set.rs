//! A replica set of three servers, for faults that need a majority.

use mongodb::bson::{Document, doc};

use super::eventually;
use super::server::{Failure, OwnServer, SET, TIMEOUT, hello_flag, initiate};

/// A replica set that is stopped when the value is dropped. Members are numbered from 0.
pub struct ReplicaSet([OwnServer; 3]);

impl ReplicaSet {
    /// Starts three servers with a shorter election timeout than the default.
    pub async fn start() -> Result<Self, Failure> {
        let member = || OwnServer::start_in_set(&[]);
        let set = Self([member()?, member()?, member()?]);
        initiate(&set.0.each_ref(), Self::settings()).await?;
        set.primary().await?;
        Ok(set)
    }

    fn settings() -> Document {
        doc! { "electionTimeoutMillis": 2_000, "heartbeatIntervalMillis": 500 }
    }

    /// Returns the address of the replica set.
    pub fn uri(&self) -> String {
        let hosts = self.0.each_ref().map(OwnServer::host).join(",");
        format!("mongodb://{hosts}/?replicaSet={SET}")
    }

    /// Returns a member.
    ///
    /// # Panics
    /// Panics if `number` is not a member.
    pub fn member(&self, number: usize) -> &OwnServer {
        &self.0[number]
    }

    /// Waits for a primary.
    pub async fn primary(&self) -> Result<usize, Failure> {
        self.elected(&[0, 1, 2]).await
    }

    /// Waits for another primary than this one.
    pub async fn new_primary(&self, old: usize) -> Result<usize, Failure> {
        self.elected(&[(old + 1) % 3, (old + 2) % 3]).await
    }

    /// Waits until this member is a secondary.
    pub async fn is_secondary(&self, number: usize) -> Result<(), Failure> {
        let admin = self.member(number).admin().await?;
        eventually("it has stepped down", TIMEOUT, async || Ok(hello_flag(&admin, "secondary").await)).await
    }

    async fn elected(&self, candidates: &[usize]) -> Result<usize, Failure> {
        let mut admins = Vec::new();
        for number in candidates {
            admins.push((*number, self.member(*number).admin().await?));
        }
        let mut primary = None;
        eventually("there is a primary", TIMEOUT, async || {
            for (number, admin) in &admins {
                if hello_flag(admin, "isWritablePrimary").await {
                    primary = Some(*number);
                }
            }
            Ok::<_, Failure>(primary.is_some())
        })
        .await?;
        Ok(primary.unwrap_or_default())
    }
}
