//! Posts a form like a browser.

use async_trait::async_trait;
use imports::PresignedPost;
use testing::objects::{Upload, UploadOutcome};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const BOUNDARY: &str = "----a-boundary-that-no-file-contains";

pub(super) struct Browser;

#[async_trait]
impl Upload for Browser {
    async fn upload(
        &self,
        form: &PresignedPost,
        bytes: Vec<u8>,
    ) -> Result<UploadOutcome, Box<dyn std::error::Error + Send + Sync>> {
        match post(form, &bytes).await? {
            200..300 => Ok(UploadOutcome::Stored),
            400..500 => Ok(UploadOutcome::Refused),
            status => Err(format!("the server answered {status}").into()),
        }
    }
}

/// Posts a form and returns the status of the response.
async fn post(form: &PresignedPost, bytes: &[u8]) -> Result<u16, Box<dyn std::error::Error + Send + Sync>> {
    let (address, path) = form.url.trim_start_matches("http://").split_once('/').ok_or("no path")?;
    let body = multipart(form, bytes);
    let head = format!(
        "POST /{path} HTTP/1.1\r\nhost: {address}\r\ncontent-type: multipart/form-data; boundary={BOUNDARY}\r\n\
         content-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await?;
    stream.write_all(head.as_bytes()).await?;
    // The server may stop reading early; only its response counts.
    let _ = stream.write_all(&body).await;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8_lossy(&answer);
    Ok(answer.split(' ').nth(1).ok_or("no status")?.parse()?)
}

/// Encodes the fields first and the file last, because S3 ignores fields after the file.
fn multipart(form: &PresignedPost, bytes: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    for (name, value) in &form.fields {
        let disposition = format!("content-disposition: form-data; name=\"{name}\"");
        body.extend(format!("--{BOUNDARY}\r\n{disposition}\r\n\r\n{value}\r\n").as_bytes());
    }
    let disposition = "content-disposition: form-data; name=\"file\"; filename=\"file\"";
    body.extend(format!("--{BOUNDARY}\r\n{disposition}\r\n\r\n").as_bytes());
    body.extend(bytes);
    body.extend(format!("\r\n--{BOUNDARY}--\r\n").as_bytes());
    body
}
