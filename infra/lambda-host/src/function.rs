//! A function's program that uses the Runtime API.

use std::io;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, BufReader};
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;

use crate::server::{Outcome, RuntimeApi};

/// A running function, whose process is killed when this value is dropped.
pub struct Function {
    api: RuntimeApi,
    process: Child,
    log: Arc<Mutex<Vec<String>>>,
    readers: Vec<JoinHandle<()>>,
}

/// The error of a function that could not run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The program is missing, or no port is available.
    #[error("the function cannot be started")]
    Start(#[source] io::Error),
    /// The function reported an error at its start.
    #[error("the function reports that it cannot start: {0}")]
    Init(Value),
    /// The process ended instead of waiting for events.
    #[error("the function ended unexpectedly, with this log: {0}")]
    Ended(String),
}

impl Function {
    /// Starts a program as on Lambda, with the variables that Lambda sets in addition to those of the command.
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

    /// Waits until the function requests its first event.
    ///
    /// # Errors
    /// Returns an error if the function ends or fails before that.
    pub async fn polled(&mut self) -> Result<(), Error> {
        tokio::select! {
            () = self.api.polled() => Ok(()),
            error = self.api.init_failed() => Err(Error::Init(error)),
            _ = self.process.wait() => Err(ended(&mut self.readers, &self.log).await),
        }
    }

    /// Passes an event to the function and waits for the outcome.
    ///
    /// # Errors
    /// Returns an error if the function ends or fails before that.
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

    /// Returns the process id; `None` if the process has ended.
    pub fn process_id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Kills the process, and returns all lines of its output.
    pub async fn stop(mut self) -> Vec<String> {
        // The process may have ended already.
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

/// Returns the complete output of the process.
async fn all_lines(readers: &mut Vec<JoinHandle<()>>, log: &Mutex<Vec<String>>) -> Vec<String> {
    for reader in readers.drain(..) {
        let _ = reader.await;
    }
    std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner))
}
