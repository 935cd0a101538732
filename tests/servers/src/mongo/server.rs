//! A separate server for a test that would disturb others.

use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use mongodb::bson::{Document, doc};
use mongodb::{Client, Database};
use tempfile::TempDir;

use super::eventually;

/// A `mongod` that is stopped when the value is dropped.
pub struct OwnServer {
    child: Child,
    port: u16,
    _folder: TempDir,
}

/// The reason why a server did not start.
#[derive(Debug)]
pub struct StartError(String);

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for StartError {}

/// The name of every replica set.
pub(super) const SET: &str = "rs0";
/// Maximum time for a server to start, or for a set to elect a primary.
pub(super) const TIMEOUT: Duration = Duration::from_secs(30);

/// An error while starting a server.
pub(super) type Failure = Box<dyn std::error::Error + Send + Sync>;

impl OwnServer {
    /// Starts the binary at `MONGOD` as a replica set of one, with parameters such as `name=value`.
    pub async fn replica_set(parameters: &[&str]) -> Result<Self, Failure> {
        let server = Self::start_in_set(parameters)?;
        initiate(&[&server], doc! {}).await?;
        server.wait_for_primary().await?;
        Ok(server)
    }

    /// Starts a server that can become a member of a replica set.
    pub(super) fn start_in_set(parameters: &[&str]) -> Result<Self, Failure> {
        let mut more = vec!["--replSet", SET];
        more.extend(parameters.iter().flat_map(|parameter| ["--setParameter", parameter]));
        Self::start(&more)
    }

    /// Starts the binary at `MONGOD` as a standalone server, without transactions.
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
        // Uses memory if possible, because MongoDB syncs to disk often.
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

    /// Returns the host and port.
    pub(super) fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Returns the address of this server only, without other members of its set.
    pub fn uri(&self) -> String {
        format!("mongodb://{}/?directConnection=true", self.host())
    }

    /// Returns the `admin` database.
    pub async fn admin(&self) -> Result<Database, Failure> {
        Ok(Client::with_uri_str(self.uri()).await?.database("admin"))
    }

    /// Waits until the server accepts writes.
    pub async fn wait_for_primary(&self) -> Result<(), Failure> {
        let admin = self.admin().await?;
        eventually("mongod takes writes", TIMEOUT, async || Ok(hello_flag(&admin, "isWritablePrimary").await))
            .await
    }

    /// Suspends the process: it keeps its connections, but does not respond.
    pub fn pause(&self) -> Result<(), Failure> {
        self.signal("-STOP")
    }

    /// Resumes the process.
    pub fn resume(&self) -> Result<(), Failure> {
        self.signal("-CONT")
    }

    /// Makes the server ignore heartbeats, or restores the default. A server that ignores heartbeats responds as a
    /// primary although it has a successor. Otherwise it would learn of the successor within milliseconds after it is
    /// resumed, before or after a pending read.
    pub async fn ignore_successors(&self, ignore: bool) -> Result<(), Failure> {
        let mode = if ignore { "alwaysOn" } else { "off" };
        let step_down = doc! { "configureFailPoint": "blockHeartbeatStepdown", "mode": mode };
        self.admin().await?.run_command(step_down).await?;
        Ok(())
    }

    fn signal(&self, signal: &str) -> Result<(), Failure> {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status()?;
        if status.success() { Ok(()) } else { Err(StartError(format!("kill {signal}: {status}")).into()) }
    }
}

/// Initiates a replica set of waiting servers.
pub(super) async fn initiate(members: &[&OwnServer], settings: Document) -> Result<(), Failure> {
    let first = members.first().ok_or_else(|| StartError("a set of no members".to_owned()))?.admin().await?;
    for member in members {
        let admin = member.admin().await?;
        eventually("mongod answers", TIMEOUT, async || {
            Ok::<_, Failure>(admin.run_command(doc! { "ping": 1 }).await.is_ok())
        })
        .await?;
    }
    let members: Vec<_> =
        (0..).zip(members).map(|(id, member)| doc! { "_id": id, "host": member.host() }).collect();
    let set = doc! { "_id": SET, "members": members, "settings": settings };
    first.run_command(doc! { "replSetInitiate": set }).await?;
    Ok(())
}

/// Returns a boolean field of the server's `hello` response.
pub(super) async fn hello_flag(admin: &Database, what: &str) -> bool {
    let hello = admin.run_command(doc! { "hello": 1 }).await;
    hello.is_ok_and(|hello| hello.get_bool(what).unwrap_or(false))
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
