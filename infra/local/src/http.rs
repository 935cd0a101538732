//! The HTTP API on a port of this machine, and the uploads that S3 takes in the cloud.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

use async_trait::async_trait;
use axum::Router;
use axum::extract::multipart::{Field, MultipartError};
use axum::extract::{DefaultBodyLimit, Multipart, State};
use axum::http::StatusCode;
use axum::routing::post;
use embedded::{Store, UploadError};
use futures::TryStreamExt;
use imports::{PresignUpload, PresignedPost, UploadGrant};
use jiff::Timestamp;
use messages::StoreError;
use tokio::net::TcpListener;
use tokio_util::io::StreamReader;

/// Where files are uploaded.
pub const UPLOADS: &str = "/uploads";
/// What a form may have beside the file. Ours have one field.
const MAX_FIELDS: usize = 50;
const MAX_FIELD_BYTES: usize = 8 * 1024;

/// Answers requests until `stop` resolves; those under way are finished.
///
/// # Errors
/// When the port is lost.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: impl Future<Output = ()> + Send + 'static,
) -> io::Result<()> {
    axum::serve(listener, router).with_graceful_shutdown(stop).await
}

/// Takes uploads into a data directory, as S3 takes them: a form whose last field is the file.
pub fn uploads(store: Arc<Store>) -> Router {
    // The permission says how large a file may be.
    Router::new().route(UPLOADS, post(take)).layer(DefaultBodyLimit::disable()).with_state(store)
}

/// Forms of a data directory, for its uploads at an address.
pub struct UploadsAt {
    /// Makes the forms.
    pub store: Arc<Store>,
    /// Where they lead.
    pub url: String,
}

#[async_trait]
impl PresignUpload for UploadsAt {
    async fn presign(&self, grant: &UploadGrant) -> Result<PresignedPost, StoreError> {
        Ok(PresignedPost { url: self.url.clone(), ..self.store.presign(grant).await? })
    }
}

/// Why an upload was not taken.
#[derive(Debug, thiserror::Error)]
enum Refusal {
    #[error("the form cannot be read: {}", .0.body_text())]
    Form(#[from] MultipartError),
    #[error("a field of the form is too large, or there are too many")]
    Fields,
    #[error("the form has no field \"file\"")]
    NoFile,
    #[error(transparent)]
    Upload(#[from] UploadError),
}

impl Refusal {
    fn status(&self) -> StatusCode {
        match self {
            Self::Form(error) => error.status(),
            Self::Upload(UploadError::NotGranted { .. } | UploadError::Expired { .. }) => {
                StatusCode::FORBIDDEN
            }
            Self::Upload(UploadError::Store(_)) => StatusCode::SERVICE_UNAVAILABLE,
            Self::Fields | Self::NoFile | Self::Upload(_) => StatusCode::BAD_REQUEST,
        }
    }
}

async fn take(State(store): State<Arc<Store>>, form: Multipart) -> Result<StatusCode, (StatusCode, String)> {
    match take_form(&store, form).await {
        Ok(()) => Ok(StatusCode::NO_CONTENT),
        Err(refusal) => {
            let why = match &refusal {
                Refusal::Upload(UploadError::Store(error)) => {
                    tracing::error!(error = error.chain(), "an upload failed");
                    "the file cannot be stored at the moment; please try again".to_owned()
                }
                refusal => refusal.to_string(),
            };
            Err((refusal.status(), why))
        }
    }
}

async fn take_form(store: &Store, mut form: Multipart) -> Result<(), Refusal> {
    let mut fields = BTreeMap::new();
    while let Some(field) = form.next_field().await? {
        let name = field.name().unwrap_or_default().to_owned();
        if name == "file" {
            let form = PresignedPost { url: String::new(), fields, expires_at: Timestamp::MAX };
            let bytes = StreamReader::new(field.map_err(io::Error::other));
            store.upload(&form, std::pin::pin!(bytes)).await?;
            return Ok(());
        }
        if fields.len() == MAX_FIELDS {
            return Err(Refusal::Fields);
        }
        fields.insert(name, text(field).await?);
    }
    Err(Refusal::NoFile)
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
