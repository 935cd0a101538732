//! Refusals: a status and one line of text each.

use axum::body::{Body, HttpBody};
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use axum::response::IntoResponse;

const TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");

/// What is refused before there is a request to be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) status: StatusCode,
    pub(super) text: &'static str,
}

/// Nobody can be asked to leave.
pub(super) const FULL: Refusal =
    Refusal { status: StatusCode::SERVICE_UNAVAILABLE, text: "too many connections; please try again" };
/// Somebody else needed the place.
pub(super) const MADE_ROOM: Refusal = Refusal {
    status: StatusCode::SERVICE_UNAVAILABLE,
    text: "too many connections, and this one was waiting longest; please try again",
};
/// The server ends.
pub(super) const STOPPING: Refusal =
    Refusal { status: StatusCode::SERVICE_UNAVAILABLE, text: "the server is stopping" };
/// The client took too long.
pub(super) const SLOW: Refusal =
    Refusal { status: StatusCode::REQUEST_TIMEOUT, text: "the request did not arrive in time" };
/// Another protocol.
pub(super) const HTTP_2: Refusal =
    Refusal { status: StatusCode::HTTP_VERSION_NOT_SUPPORTED, text: "this server speaks HTTP/1.1" };
/// A fault of ours.
pub(super) const BROKEN: Refusal = Refusal {
    status: StatusCode::INTERNAL_SERVER_ERROR,
    text: "answering failed unexpectedly; the server's log says more",
};

impl Refusal {
    /// The whole answer, for a connection that ends with it.
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

/// One line of text.
pub(super) fn line(status: StatusCode, text: &str) -> Response<Body> {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    (status, [(header::CONTENT_TYPE, TEXT)], format!("{text}\n")).into_response()
}

/// An answer as it leaves: a refusal without a word gets one, and browsers take every answer for what it says it is.
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

/// hyper answers what it cannot read with a status alone. If that is what is about to be written, the same with a line
/// of text: our own refusals are never empty.
pub(super) fn with_text(written: &[u8]) -> Option<Vec<u8>> {
    const EMPTY: &[u8] = b"\r\ncontent-length: 0\r\n";
    if !written.ends_with(b"\r\n\r\n") {
        return None;
    }
    // Answers to earlier requests may be before it.
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
    fn an_empty_refusal_of_hyper_gets_its_line() {
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
    fn other_answers_stay_as_they_are() {
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
    fn a_refusal_is_one_line() {
        let answer = String::from_utf8(FULL.bytes()).unwrap();
        assert!(answer.starts_with("HTTP/1.1 503 Service Unavailable\r\n"), "{answer}");
        assert!(answer.ends_with("\r\n\r\ntoo many connections; please try again\n"), "{answer}");
    }
}
