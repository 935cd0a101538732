//! A server of a test's own, for what would disturb others.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mongodb::Client;
use mongodb::bson::doc;
use tempfile::TempDir;

use super::eventually;

/// A `mongod` that ends with this value.
pub struct OwnServer {
    child: Child,
    port: u16,
    _folder: TempDir,
}

/// Why there is no server.
#[derive(Debug)]
pub struct StartError(String);

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// What can go wrong while starting.
type Failure = Box<dyn std::error::Error + Send + Sync>;

impl OwnServer {
    /// Starts the binary at `MONGOD` as a replica set of one, with parameters such as `name=value`.
    ///
    /// # Errors
    /// When it is not there or does not start.
    pub async fn replica_set(parameters: &[&str]) -> Result<Self, Failure> {
        let mut more = vec!["--replSet", "rs0"];
        more.extend(parameters.iter().flat_map(|parameter| ["--setParameter", parameter]));
        let server = Self::start(&more)?;
        let member = doc! { "_id": 0, "host": format!("127.0.0.1:{}", server.port) };
        let initiate = doc! { "replSetInitiate": { "_id": "rs0", "members": [member] } };
        let admin = server.admin().await?;
        eventually("mongod answers", Duration::from_secs(30), async || {
            Ok::<_, Failure>(admin.run_command(doc! { "ping": 1 }).await.is_ok())
        })
        .await?;
        admin.run_command(initiate).await?;
        server.wait_for_primary().await?;
        Ok(server)
    }

    /// Starts the binary at `MONGOD` by itself, without transactions.
    ///
    /// # Errors
    /// When it is not there or does not start.
    pub async fn standalone() -> Result<Self, Failure> {
        let server = Self::start(&[])?;
        server.wait_for_primary().await?;
        Ok(server)
    }

    fn start(more: &[&str]) -> Result<Self, Failure> {
        let binary =
            std::env::var_os("MONGOD").map(PathBuf::from).filter(|path| path.is_file()).ok_or_else(|| {
                StartError("MONGOD does not name a mongod: run `make services` or `make test`".to_owned())
            })?;
        // In memory where there is such a folder: MongoDB waits for the disk a lot.
        let memory = PathBuf::from("/dev/shm");
        let folder = if memory.is_dir() { TempDir::new_in(memory)? } else { TempDir::new()? };
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let child = Command::new(binary)
            .args(["--bind_ip", "127.0.0.1", "--nounixsocket", "--oplogSize", "50"])
            .args(["--wiredTigerCacheSizeGB", "0.25", "--setParameter", "enableTestCommands=1"])
            .args(["--port", &port.to_string()])
            .arg("--dbpath")
            .arg(folder.path())
            .arg("--logpath")
            .arg(folder.path().join("log"))
            .args(more)
            .stdout(Stdio::null())
            .spawn()?;
        Ok(Self { child, port, _folder: folder })
    }

    /// Its address.
    pub fn uri(&self) -> String {
        format!("mongodb://127.0.0.1:{}/?directConnection=true", self.port)
    }

    /// Its `admin` database.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub async fn admin(&self) -> Result<mongodb::Database, Failure> {
        Ok(Client::with_uri_str(self.uri()).await?.database("admin"))
    }

    /// Waits until it takes writes.
    ///
    /// # Errors
    /// When the address cannot be used.
    pub async fn wait_for_primary(&self) -> Result<(), Failure> {
        let admin = self.admin().await?;
        eventually("mongod takes writes", Duration::from_secs(30), async || {
            let hello = admin.run_command(doc! { "hello": 1 }).await;
            Ok(hello.is_ok_and(|hello| hello.get_bool("isWritablePrimary").unwrap_or(false)))
        })
        .await
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
