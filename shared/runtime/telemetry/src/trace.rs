//! A span for each message, sent as OTLP over HTTP in its JSON form
//! (<https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding>).
//!
//! Ids are derived and not random (see [`messages::trace`]), so that the sender and the receiver of a message agree on
//! them however often it is delivered. SDK spans cannot do that, so this module writes the JSON itself. It is sent to a
//! local collector, such as a Lambda extension: plain HTTP without TLS.

use std::time::Duration;

use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::CONTENT_TYPE;
use hyper::{Method, Request, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use jiff::Timestamp;
use messages::{DecisionRecord, Traceparent, Verdict};
use serde_json::{Value, json};

/// The variable that names the collector
/// (<https://opentelemetry.io/docs/specs/otel/protocol/exporter/>).
pub const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
/// The maximum time that an invocation waits for the collector.
const TIMEOUT: Duration = Duration::from_secs(1);

/// An endpoint that spans cannot be sent to.
#[derive(Debug, thiserror::Error)]
#[error(
    "{ENDPOINT} is not an address such as http://localhost:4318; the connection to a collector does not use TLS"
)]
pub struct WrongEndpoint;

/// The reason why spans were not sent.
#[derive(Debug, thiserror::Error)]
pub enum SendError {
    /// No connection could be made.
    #[error("the collector does not answer")]
    Unreachable(#[source] hyper_util::client::legacy::Error),
    /// The request took too long.
    #[error("the collector did not answer within {} s", TIMEOUT.as_secs())]
    TooSlow,
    /// The collector did not accept the spans.
    #[error("the collector answered with status {0}")]
    Refused(u16),
    /// The spans could not be encoded.
    #[error("the request cannot be made")]
    Request(#[from] hyper::http::Error),
}

/// The handling of one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Span {
    trace: u128,
    id: u64,
    parent: Option<u64>,
    observation: DecisionRecord,
}

impl Span {
    /// Returns the span of a decision; `None` if it belongs to no trace, or only reports that a message was sent.
    ///
    /// A sender's own observation is the span that the message's `traceparent` names, if the message begins a trace.
    /// Otherwise it is a child of that span, such as the span of a request. The delivery that had an effect is the
    /// parent of everything that the message caused. Every other delivery is a sibling of that span.
    pub fn of(observation: &DecisionRecord) -> Option<Self> {
        let named = observation.traceparent.as_deref().and_then(Traceparent::parse);
        let (partition, message) = (observation.partition?, observation.message_id?);
        let had_effect = matches!(observation.verdict, Verdict::Handled | Verdict::Recovered);
        let (id, parent) = match named {
            Some(sender) if observation.source == observation.function => {
                let own = Traceparent::of(partition, message.derive(0)).span;
                (own, Some(sender.span).filter(|parent| *parent != own))
            }
            _ if observation.verdict == Verdict::Dispatched => return None,
            named => {
                let own = Traceparent::of(partition, message).span;
                // The time distinguishes deliveries without an effect.
                let moment = observation.at.as_nanosecond() as u64;
                (if had_effect { own } else { (own ^ moment).max(1) }, named.map(|sender| sender.span))
            }
        };
        Some(Self { trace: observation.trace()?, id, parent, observation: observation.clone() })
    }

    fn json(&self, system: &str) -> Value {
        let own = messages::naming::snake(system);
        let DecisionRecord { at, began_at, function, message, verdict, why, .. } = &self.observation;
        let text = |key: &str, value: &str| json!({ "key": key, "value": { "stringValue": value } });
        let id_of = |id: Option<String>| id.unwrap_or_default();
        let mut span = json!({
            "traceId": format!("{:032x}", self.trace),
            "spanId": format!("{:016x}", self.id),
            "name": format!("{function} {message}"),
            // Producer or consumer of a message.
            "kind": if self.parent.is_none() { 4 } else { 5 },
            "startTimeUnixNano": nanos(began_at.unwrap_or(*at)),
            "endTimeUnixNano": nanos(*at),
            "attributes": [
                text(&format!("{own}.decision"), verdict.name()),
                text(&format!("{own}.why"), why),
                text("messaging.message.conversation_id", &id_of(self.observation.partition.map(|id| id.to_string()))),
                text("messaging.message.id", &id_of(self.observation.message_id.map(|id| id.to_string()))),
            ],
            "status": { "code": if *verdict == Verdict::Rejected || *verdict == Verdict::Retried { 2 } else { 0 } },
        });
        if let Some(parent) = self.parent {
            span["parentSpanId"] = format!("{parent:016x}").into();
        }
        span
    }
}

/// OTLP's JSON has 64-bit numbers as text.
fn nanos(at: Timestamp) -> String {
    at.as_nanosecond().to_string()
}

/// The request's body.
fn export(system: &str, spans: &[Span]) -> Value {
    let spans_json: Vec<Value> = spans.iter().map(|span| span.json(system)).collect();
    let service = json!({ "key": "service.name", "value": { "stringValue": system } });
    json!({ "resourceSpans": [{
        "resource": { "attributes": [service] },
        "scopeSpans": [{ "scope": { "name": system }, "spans": spans_json }],
    }]})
}

/// The collector that receives spans.
pub struct Collector {
    uri: Uri,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Collector {
    /// The collector at an address, to whose `/v1/traces` spans are sent.
    ///
    /// # Errors
    /// Returns an error if it is not an address, or requires TLS.
    pub fn at(endpoint: &str) -> Result<Self, WrongEndpoint> {
        let uri: Uri =
            format!("{}/v1/traces", endpoint.trim_end_matches('/')).parse().map_err(|_| WrongEndpoint)?;
        if uri.scheme_str() != Some("http") || uri.host().is_none() {
            return Err(WrongEndpoint);
        }
        Ok(Self { uri, client: Client::builder(TokioExecutor::new()).build_http() })
    }

    /// Sends spans of a system once. A function does not wait for a second attempt.
    ///
    /// # Errors
    /// Returns an error if the collector has not accepted the spans in time.
    pub async fn send(&self, system: &str, spans: &[Span]) -> Result<(), SendError> {
        let request = Request::builder()
            .method(Method::POST)
            .uri(&self.uri)
            .header(CONTENT_TYPE, "application/json")
            .body(Full::from(export(system, spans).to_string()))?;
        let answer = tokio::time::timeout(TIMEOUT, self.client.request(request)).await;
        let answer = answer.map_err(|_| SendError::TooSlow)?.map_err(SendError::Unreachable)?;
        let status = answer.status();
        if status.is_success() { Ok(()) } else { Err(SendError::Refused(status.as_u16())) }
    }
}

#[cfg(test)]
mod tests;
