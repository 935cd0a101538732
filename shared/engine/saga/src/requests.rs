//! Requests whose response is stored under their idempotency key.
//!
//! A client repeats a request that timed out, without knowing whether the first one took effect. It sends the same key,
//! such as the `Idempotency-Key` header of an HTTP request. The response is committed in the session of the request,
//! together with its records and messages. A repeated request gets the stored response and has no further effect.

use async_trait::async_trait;
use jiff::{SignedDuration, Timestamp};
use messages::StoreError;
use outbox::session::CommitError;
use outbox::{Key, StageError};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::engine::{EntryPoint, OpenSession};

/// The kind of the records that contain responses.
const RESPONSES: &str = "response";
/// The maximum length of a key in bytes.
const MAX_KEY: usize = 255;

/// A request that takes effect once. Its name and serialized form are stored with the response, to detect that a client
/// uses a key for two different requests. The serialized form therefore has to contain everything that distinguishes
/// them, such as the id of the entity that a path names, and to be equal for repetitions: a field that is encrypted with
/// random numbers requires [`IdempotentRequest::is_repeated`].
#[async_trait]
pub trait IdempotentRequest: Serialize + Send + Sync {
    /// The name of the request, which is stored with the response. Another kind of request cannot use the key.
    const NAME: &'static str;

    /// The reason why the request failed. A failure is not stored, so the request may be repeated with the same key.
    type Error;

    /// The time for which the response is kept, 30 days unless the application sets another one. Later, a request with the
    /// same key is a new request.
    const RETENTION: SignedDuration = SignedDuration::from_hours(30 * 24);

    /// Returns `true` if the stored form of the first request with a key is this request, possibly as an earlier version
    /// of the program stored it.
    fn is_repeated(&self, stored: &Value, own: &Value) -> bool {
        stored == own
    }

    /// Performs the request in a session, and returns its response. Refusals that are final are responses too. The
    /// function is called again after a conflict, so it may only use the session. [`OpenSession::set_work`] adds writes of
    /// the application's own tables.
    ///
    /// # Errors
    /// Returns an error if the request failed.
    async fn perform(&self, session: &mut OpenSession<'_>) -> Result<Response, Self::Error>;
}

/// A response.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The status of the response, such as that of HTTP.
    pub status: u16,
    /// The body of the response.
    pub body: Value,
}

/// The result of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestOutcome {
    /// The response.
    pub response: Response,
    /// `true` if the response was stored by an earlier request with the same key.
    pub is_repeated: bool,
}

/// The reason why a request has no response.
#[derive(Debug, thiserror::Error)]
pub enum RequestError<E> {
    /// The key is empty or longer than 255 bytes. For HTTP: status 400.
    #[error("the idempotency key is empty or longer than {MAX_KEY} bytes")]
    InvalidKey,
    /// The key was used for another request. For HTTP: status 422.
    #[error("the idempotency key was used for another request")]
    KeyReused,
    /// The request itself failed.
    #[error("the request failed")]
    Failed(E),
    /// A store is unavailable.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The request cannot be represented in JSON, or its stored response cannot be read.
    #[error(transparent)]
    Stage(#[from] StageError),
    /// The session was not committed, or its outcome is unknown. The request may be repeated with the same key.
    #[error(transparent)]
    Commit(#[from] CommitError),
}

/// The stored form of a response.
#[derive(Serialize, Deserialize)]
struct StoredResponse {
    /// `None` in the records of earlier versions.
    #[serde(default)]
    name: Option<String>,
    request: Value,
    response: Response,
}

impl EntryPoint {
    /// Performs a request, or returns the stored response of an earlier request with the same key. If several requests
    /// with the same key are concurrent, one takes effect. `client` distinguishes the keys of different clients.
    ///
    /// Responses are records, which are kept for [`IdempotentRequest::RETENTION`].
    ///
    /// # Errors
    /// Returns an error if the key is invalid or was used for another request, the request failed, its work refused the
    /// commit ([`CommitError::Refused`]; no response is stored), or a store is unavailable.
    pub async fn respond_once<R: IdempotentRequest>(
        &self,
        client: &str,
        key: &str,
        partition: messages::PartitionKey,
        request: &R,
    ) -> Result<RequestOutcome, RequestError<R::Error>> {
        if key.is_empty() || key.len() > MAX_KEY {
            return Err(RequestError::InvalidKey);
        }
        // The length separates client and key, so that different pairs never have the same record.
        let record = Key::new(RESPONSES, format!("{}:{client}{key}", client.len()));
        let is_conflict =
            |error: &RequestError<R::Error>| matches!(error, RequestError::Commit(CommitError::Changed));
        self.repeat_conflicts(|| self.try_respond(&record, partition, request), is_conflict).await
    }

    async fn try_respond<R: IdempotentRequest>(
        &self,
        record: &Key,
        partition: messages::PartitionKey,
        request: &R,
    ) -> Result<RequestOutcome, RequestError<R::Error>> {
        let staged = |error: serde_json::Error| StageError::new("Response", error.into());
        let content = serde_json::to_value(request).map_err(staged)?;
        let mut session = self.session(partition);
        if let Some(found) = session.read(record.clone()).await? {
            let found: StoredResponse = serde_json::from_value(found.body).map_err(staged)?;
            let has_name = found.name.is_none_or(|name| name == R::NAME);
            return match has_name && request.is_repeated(&found.request, &content) {
                true => Ok(RequestOutcome { response: found.response, is_repeated: true }),
                false => Err(RequestError::KeyReused),
            };
        }
        let response = request.perform(&mut session).await.map_err(RequestError::Failed)?;
        let stored = json!(StoredResponse {
            name: Some(R::NAME.to_owned()),
            request: content,
            response: response.clone()
        });
        let now = self.sessions.dispatcher.reporter.host.now();
        let kept_until = now.saturating_add(R::RETENTION).unwrap_or(Timestamp::MAX);
        session.write_until(record.clone(), stored, kept_until);
        session.commit().await?;
        Ok(RequestOutcome { response, is_repeated: false })
    }
}
