//! Uploads: forms as S3 accepts them, in bounded memory.

use std::collections::BTreeMap;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use axum::Router;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::extract::multipart::{Field, MultipartError, MultipartRejection};
use axum::extract::{DefaultBodyLimit, FromRequest, Multipart, Request, State};
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::post;
use embedded::{Store, UploadError};
use futures::{Stream, TryStreamExt};
use imports::{PresignUpload, PresignedPost, UploadGrant};
use jiff::Timestamp;
use messages::StoreError;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::io::StreamReader;

use super::limits::Limits;
use super::refusal::line;

/// The path of uploads.
pub const UPLOADS: &str = "/uploads";
/// The maximum size of a form before its file.
const MAX_BYTES_BEFORE_FILE: usize = 64 * 1024;
/// The maximum size of a field.
const MAX_FIELD_BYTES: usize = 8 * 1024;
/// The maximum number of fields before the file. The forms of this server have a single field.
const MAX_FIELDS: usize = 50;

/// Returns the route for uploads into a data directory. As with S3, a form's last field is the file.
pub fn uploads(store: Arc<Store>, limits: &Limits) -> Router {
    let permits = Semaphore::new(limits.uploads.min(Semaphore::MAX_PERMITS));
    let uploads = Arc::new(Uploads { store, permits, wait: limits.upload_wait });
    let only_post = async || line(StatusCode::METHOD_NOT_ALLOWED, "files are uploaded with POST");
    // The form contains the size of the file, which limits the body.
    Router::new()
        .route(UPLOADS, post(take).fallback(only_post))
        .layer(DefaultBodyLimit::disable())
        .with_state(uploads)
}

/// Creates forms for uploads into a data directory through this server.
pub struct UploadsAt {
    /// The store that creates the forms.
    pub store: Arc<Store>,
    /// The address of the uploads.
    pub url: String,
}

#[async_trait]
impl PresignUpload for UploadsAt {
    async fn presign(&self, grant: &UploadGrant) -> Result<PresignedPost, StoreError> {
        Ok(PresignedPost { url: self.url.clone(), ..self.store.presign(grant).await? })
    }
}

/// The state that uploads share.
struct Uploads {
    store: Arc<Store>,
    permits: Semaphore,
    wait: Duration,
}

/// The reason why an upload was rejected.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the request is not a form: {}", .0.body_text())]
    NoForm(#[from] MultipartRejection),
    #[error("the form cannot be read: {}", .0.body_text())]
    Form(#[from] MultipartError),
    #[error("the form has more than {MAX_BYTES_BEFORE_FILE} bytes before its file")]
    TooMuchBeforeFile,
    #[error("a field of the form is too large, or there are too many")]
    Fields,
    #[error("the form has the field {0:?} twice")]
    Twice(String),
    #[error("the form has no field \"file\"")]
    NoFile,
    #[error("too many files are being uploaded; please try again")]
    Full,
    #[error(transparent)]
    Upload(#[from] UploadError),
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            // A truncated body is not an error of this server.
            Self::Form(error) if error.status().is_server_error() => StatusCode::BAD_REQUEST,
            Self::Form(error) => error.status(),
            Self::NoForm(rejection) => rejection.status(),
            Self::TooMuchBeforeFile | Self::Upload(UploadError::TooLarge { .. }) => {
                StatusCode::PAYLOAD_TOO_LARGE
            }
            Self::Upload(UploadError::NotGranted { .. } | UploadError::Expired { .. }) => {
                StatusCode::FORBIDDEN
            }
            Self::Upload(UploadError::Used) => StatusCode::CONFLICT,
            Self::Full | Self::Upload(UploadError::Store(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Fields | Self::Twice(_) | Self::NoFile | Self::Upload(_) => StatusCode::BAD_REQUEST,
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        let text = match &self {
            Self::Upload(UploadError::Store(error)) => {
                tracing::error!(error = error.chain(), "an upload failed");
                "the file cannot be stored at the moment; please try again".to_owned()
            }
            refusal => refusal.to_string(),
        };
        line(self.status(), &text)
    }
}

async fn take(State(uploads): State<Arc<Uploads>>, request: Request) -> Result<StatusCode, Refusal> {
    let has_file = Arc::new(AtomicBool::new(false));
    let is_too_much = Arc::new(AtomicBool::new(false));
    let request = request.map(|body| {
        Body::from_stream(FormBody {
            body: body.into_data_stream(),
            has_given: false,
            before_file: 0,
            has_file: Arc::clone(&has_file),
            is_too_much: Arc::clone(&is_too_much),
        })
    });
    let form = Multipart::from_request(request, &()).await?;
    match uploads.take(form, &has_file).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(_) if is_too_much.load(Ordering::Relaxed) => Err(Refusal::TooMuchBeforeFile),
        Err(refusal) => Err(refusal),
    }
}

impl Uploads {
    async fn take(&self, mut form: Multipart, has_file: &AtomicBool) -> Result<(), Refusal> {
        let mut fields = BTreeMap::new();
        while let Some(field) = form.next_field().await? {
            let name = field.name().unwrap_or_default().to_owned();
            if name == "file" {
                has_file.store(true, Ordering::Relaxed);
                let form = PresignedPost { url: String::new(), fields, expires_at: Timestamp::MAX };
                self.store.check_form(&form).await?;
                let _permit = permit(&self.permits, self.wait).await?;
                let bytes = StreamReader::new(field.map_err(io::Error::other));
                self.store.upload(&form, std::pin::pin!(bytes)).await?;
                return Ok(());
            }
            if fields.len() == MAX_FIELDS {
                return Err(Refusal::Fields);
            }
            let text = text(field).await?;
            if fields.contains_key(&name) {
                return Err(Refusal::Twice(name));
            }
            fields.insert(name, text);
        }
        Err(Refusal::NoFile)
    }
}

/// Waits for other uploads to end.
async fn permit(permits: &Semaphore, wait: Duration) -> Result<SemaphorePermit<'_>, Refusal> {
    match tokio::time::timeout(wait, permits.acquire()).await {
        Ok(Ok(permit)) => Ok(permit),
        Ok(Err(_)) | Err(_) => Err(Refusal::Full),
    }
}

async fn text(mut field: Field<'_>) -> Result<String, Refusal> {
    let mut bytes = Vec::new();
    while let Some(piece) = field.chunk().await? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > MAX_FIELD_BYTES {
            return Err(Refusal::Fields);
        }
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// The body of a form, one chunk at a time and with bounded fields.
///
/// The form parser reads all available bytes before it parses them, and it searches for the next boundary without a
/// limit. This stream therefore returns pending once after each chunk, and limits the bytes before the file.
struct FormBody {
    body: BodyDataStream,
    has_given: bool,
    before_file: usize,
    has_file: Arc<AtomicBool>,
    is_too_much: Arc<AtomicBool>,
}

#[derive(Debug, thiserror::Error)]
enum BodyError {
    #[error("the data before the file is too large")]
    TooMuchBeforeFile,
    #[error(transparent)]
    Body(axum::Error),
}

impl Stream for FormBody {
    type Item = Result<Bytes, BodyError>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.has_given {
            self.has_given = false;
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if !self.has_file.load(Ordering::Relaxed) && self.before_file > MAX_BYTES_BEFORE_FILE {
            self.is_too_much.store(true, Ordering::Relaxed);
            return Poll::Ready(Some(Err(BodyError::TooMuchBeforeFile)));
        }
        let piece = ready!(Pin::new(&mut self.body).poll_next(cx));
        if let Some(Ok(piece)) = &piece {
            self.has_given = true;
            self.before_file = self.before_file.saturating_add(piece.len());
        }
        Poll::Ready(piece.map(|piece| piece.map_err(BodyError::Body)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn upload_beyond_the_limit_is_refused() {
        let permits = Semaphore::new(1);
        let first = permit(&permits, Duration::ZERO).await.expect("nothing else is being uploaded");
        let refused = permit(&permits, Duration::ZERO).await.expect_err("one is being uploaded");
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        drop(first);
        assert!(permit(&permits, Duration::ZERO).await.is_ok());
    }
}
