//! A program that runs against the Runtime API.

use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::server::{Outcome, RuntimeApi};

/// A running function; its process ends with its value.
pub struct Function {
    api: RuntimeApi,
    process: Child,
    log: Arc<Mutex<Vec<String>>>,
    readers: Vec<JoinHandle<()>>,
}

/// Why a function could not be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is missing, or there is no port to listen on.
    #[error("the function cannot be started")]
    Start(#[source] io::Error),
    /// It said why it cannot work.
    #[error("the function reports that it cannot start: {0}")]
    Init(Value),
    /// It ended when it should have waited for events.
    #[error("the function ended by itself, with this log: {0}")]
    Ended(String),
}

impl Function {
    /// Starts a program as Lambda would, with the variables that Lambda sets; those of the caller are the command's.
    ///
    /// # Errors
    /// When the program cannot be started.
    pub async fn start(mut command: Command) -> Result<Self, Error> {
        let api = RuntimeApi::listen().await.map_err(Error::Start)?;
        command
            .env("AWS_LAMBDA_RUNTIME_API", api.address().to_string())
            .env("AWS_LAMBDA_FUNCTION_NAME", "function")
            .env("AWS_LAMBDA_FUNCTION_VERSION", "$LATEST")
            .env("AWS_LAMBDA_FUNCTION_MEMORY_SIZE", "256")
            .env("AWS_LAMBDA_LOG_STREAM_NAME", "local")
            .env("AWS_LAMBDA_LOG_GROUP_NAME", "local")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut process = command.spawn().map_err(Error::Start)?;
        let log = Arc::new(Mutex::new(Vec::new()));
        let mut readers = Vec::new();
        readers.extend(process.stdout.take().map(|out| tokio::spawn(copy(out, Arc::clone(&log)))));
        readers.extend(process.stderr.take().map(|err| tokio::spawn(copy(err, Arc::clone(&log)))));
        Ok(Self { api, process, log, readers })
    }

    /// Resolves once it asks for its first event.
    ///
    /// # Errors
    /// When it ends or gives up before that.
    pub async fn polled(&mut self) -> Result<(), Error> {
        tokio::select! {
            () = self.api.polled() => Ok(()),
            error = self.api.init_failed() => Err(Error::Init(error)),
            _ = self.process.wait() => Err(ended(&mut self.readers, &self.log).await),
        }
    }

    /// Hands it an event and waits for what comes of it.
    ///
    /// # Errors
    /// When it ends or gives up before that.
    pub async fn invoke(&mut self, event: &Value) -> Result<Outcome, Error> {
        let outcome = tokio::select! {
            outcome = self.api.invoke(event) => outcome,
            error = self.api.init_failed() => return Err(Error::Init(error)),
            _ = self.process.wait() => None,
        };
        match outcome {
            Some(outcome) => Ok(outcome),
            None => Err(ended(&mut self.readers, &self.log).await),
        }
    }

    /// The process's number; none when it has ended.
    pub fn process_id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Ends it, and returns all lines that it wrote.
    pub async fn stop(mut self) -> Vec<String> {
        // It may have ended by itself.
        let _ = self.process.kill().await;
        all_lines(&mut self.readers, &self.log).await
    }
}

async fn copy(from: impl AsyncRead + Unpin, log: Arc<Mutex<Vec<String>>>) {
    let mut lines = BufReader::new(from).lines();
    while let Ok(Some(line)) = lines.next_line().await {
        log.lock().unwrap_or_else(PoisonError::into_inner).push(line);
    }
}

async fn ended(readers: &mut Vec<JoinHandle<()>>, log: &Mutex<Vec<String>>) -> Error {
    Error::Ended(all_lines(readers, log).await.join("\n"))
}

/// What was written until the process ended, to the last line.
async fn all_lines(readers: &mut Vec<JoinHandle<()>>, log: &Mutex<Vec<String>>) -> Vec<String> {
    for reader in readers.drain(..) {
        let _ = reader.await;
    }
    std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner))
}
