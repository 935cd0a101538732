//! Error responses: a status and one line of text each.

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use axum::response::IntoResponse;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// An error response outside of the router.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) text: &'static str,
}

/// All slots are taken by connections that wait for the server.
pub(super) const FULL: Refusal =
    Refusal { status: StatusCode::SERVICE_UNAVAILABLE, text: "too many connections; please try again" };
/// Another client needed the slot.
pub(super) const REPLACED: Refusal = Refusal {
    status: StatusCode::SERVICE_UNAVAILABLE,
    text: "too many connections, and this one was waiting longest; please try again",
};
/// The server is stopping.
pub(super) const STOPPING: Refusal =
    Refusal { status: StatusCode::SERVICE_UNAVAILABLE, text: "the server is stopping" };
/// The client was too slow.
pub(super) const SLOW: Refusal =
    Refusal { status: StatusCode::REQUEST_TIMEOUT, text: "the request did not arrive in time" };
/// The client uses another protocol.
pub(super) const HTTP_2: Refusal =
    Refusal { status: StatusCode::HTTP_VERSION_NOT_SUPPORTED, text: "this server speaks HTTP/1.1" };
/// The handler panicked.
pub(super) const BROKEN: Refusal = Refusal {
    status: StatusCode::INTERNAL_SERVER_ERROR,
    text: "answering failed unexpectedly; the server's log says more",
};

impl Refusal {
    /// Returns the bytes of a complete response that ends the connection.
    pub(super) fn bytes(self) -> Vec<u8> {
        let length = self.text.len() + 1;
        format!(
            "HTTP/1.1 {}\r\ncontent-type: text/plain; charset=utf-8\r\ncontent-length: {length}\r\nconnection: close\r\n\
             \r\n{}\n",
            self.status, self.text
        )
        .into_bytes()
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response<Body> {
        line(self.status, self.text)
    }
}

/// Returns a response with one line of text.
pub(super) fn line(status: StatusCode, text: &str) -> Response<Body> {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    (status, [(header::CONTENT_TYPE, TEXT)], format!("{text}\n")).into_response()
}

/// Completes a response: adds a text to an error without one, and prevents browsers from guessing its content type.
pub(super) fn completed(method: &Method, mut response: Response<Body>) -> Response<Body> {
    let status = response.status();
    let is_refusal = status.is_client_error() || status.is_server_error();
    if is_refusal && *method != Method::HEAD && response.body().size_hint().exact() == Some(0) {
        let text = format!("{}\n", reason(status));
        response.headers_mut().remove(header::CONTENT_LENGTH);
        response.headers_mut().insert(header::CONTENT_TYPE, TEXT);
        *response.body_mut() = Body::from(text);
    }
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

fn reason(status: StatusCode) -> String {
    match status {
        StatusCode::BAD_REQUEST => "the request is not valid HTTP/1.1".to_owned(),
        StatusCode::URI_TOO_LONG => "the request's address is too long".to_owned(),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE => {
            "the request has too many header fields, or too large ones".to_owned()
        }
        status => status.canonical_reason().unwrap_or("refused").to_lowercase(),
    }
}

/// Returns an empty error response of hyper with a line of text, or `None` for other output. hyper rejects unreadable
/// requests without a body, and our own error responses are never empty.
pub(super) fn with_text(written: &[u8]) -> Option<Vec<u8>> {
    const EMPTY: &[u8] = b"\r\ncontent-length: 0\r\n";
    if !written.ends_with(b"\r\n\r\n") {
        return None;
    }
    // Responses to earlier requests may precede it.
    let begin = written.windows(7).rposition(|bytes| bytes == b"HTTP/1.")?;
    let head = written.get(begin..)?;
    let status = StatusCode::from_bytes(head.get(9..12)?).ok().filter(StatusCode::is_client_error)?;
    let length = head.windows(EMPTY.len()).position(|bytes| bytes == EMPTY)?;
    let text = reason(status);
    let mut answer = written.get(..begin + length)?.to_vec();
    let fields =
        format!("\r\ncontent-length: {}\r\ncontent-type: text/plain; charset=utf-8\r\n", text.len() + 1);
    answer.extend_from_slice(fields.as_bytes());
    answer.extend_from_slice(head.get(length + EMPTY.len()..)?);
    answer.extend_from_slice(text.as_bytes());
    answer.push(b'\n');
    Some(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn empty_hyper_error_gets_a_line() {
        let empty =
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 431 Request Header Fields Too Large\r\n\
            connection: close\r\ncontent-length: 0\r\ndate: today\r\n\r\n";
        let text = String::from_utf8(with_text(empty).unwrap()).unwrap();
        assert!(text.starts_with("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nokHTTP/1.1 431 "), "{text}");
        assert!(
            text.ends_with("date: today\r\n\r\nthe request has too many header fields, or too large ones\n")
        );
        assert!(text.contains("\r\ncontent-length: 58\r\n"), "{text}");
    }

    #[test]
    fn other_responses_are_unchanged() {
        for answer in [
            "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 100 Continue\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\nno\n",
            "HTTP/1.1 404 Not Found\r\ncontent-length: 3\r\n\r\n",
            "and so on\r\n\r\n",
        ] {
            assert_eq!(with_text(answer.as_bytes()), None, "{answer}");
        }
    }

    #[test]
    fn error_response_is_one_line() {
        let answer = String::from_utf8(FULL.bytes()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\ntoo many connections; please try again\n"), "{answer}");
    }
}
