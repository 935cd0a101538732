//! The errors of AWS clients, with messages that tell operators what to do.
//!
//! The message of a service is passed on, except if it refuses a signature: that message repeats the signed text, which
//! may include the session token.

use std::error::Error;
use std::fmt;

use aws_runtime::retries::classifiers::{THROTTLING_ERRORS, TRANSIENT_ERRORS};
use aws_smithy_runtime_api::client::orchestrator::HttpResponse;
use aws_smithy_runtime_api::client::result::SdkError;
use aws_smithy_types::error::metadata::ProvideErrorMetadata;
use messages::StoreError;

/// The resource of a call, and the setting that names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resource {
    /// The type of resource, such as "table".
    pub kind: &'static str,
    /// The name or address of the resource.
    pub name: String,
    /// The environment variable that sets the name or address.
    pub setting: String,
}

impl fmt::Display for Resource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} \"{}\" (set by {})", self.kind, self.name, self.setting)
    }
}

/// The reason why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The resource does not exist in this region and account.
    #[error("there is no {0}")]
    Missing(Resource),
    /// The credentials are unknown.
    #[error(
        "the credentials were refused ({0}): check the function's role, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )]
    Credentials(String),
    /// The credentials have expired, and are renewed automatically.
    #[error("the credentials have expired ({0})")]
    Expired(String),
    /// The credentials are valid but lack a permission.
    #[error("the function's role does not allow it on the {resource}: {message}")]
    Denied {
        /// The resource.
        resource: Resource,
        /// The message of the service.
        message: String,
    },
    /// Anything else that the service answers.
    #[error("the service answered {code} for the {resource}: {message}")]
    Answered {
        /// The resource.
        resource: Resource,
        /// The error's name, or the status of the answer.
        code: String,
        /// The message of the service.
        message: String,
    },
    /// The service did not answer, or the answer cannot be read.
    #[error("the {resource} was not reached: {message}")]
    NotReached {
        /// The resource.
        resource: Resource,
        /// The message of the client.
        message: String,
    },
}

/// Converts the error of a client's call: temporary errors become unavailable, all others unusable. Faults that an
/// operator corrects, such as a missing queue or permission, count as temporary, so that no message is dead-lettered
/// because of them.
pub fn failed<E>(
    doing: impl Into<String>,
    resource: &Resource,
    error: &SdkError<E, HttpResponse>,
) -> StoreError
where
    E: ProvideErrorMetadata + Error + 'static,
{
    let (may_pass, failure) = judge(resource.clone(), error);
    if may_pass { StoreError::unavailable(doing, failure) } else { StoreError::unusable(doing, failure) }
}

fn judge<E>(resource: Resource, error: &SdkError<E, HttpResponse>) -> (bool, Failure)
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match error {
        SdkError::ServiceError(answer) => {
            let status = answer.raw().status().as_u16();
            let code = answer.err().code().map_or_else(|| format!("status {status}"), str::to_owned);
            // Some responses have no message, such as those to HEAD.
            let message = answer.err().message().unwrap_or("no explanation").to_owned();
            (may_pass(&code, status), answered(resource, code, message))
        }
        SdkError::ConstructionFailure(_) => (false, not_reached(resource, error)),
        _ => (true, not_reached(resource, error)),
    }
}

fn not_reached<E>(resource: Resource, error: &SdkError<E, HttpResponse>) -> Failure
where
    E: Error + 'static,
{
    Failure::NotReached { resource, message: messages::store::chain(error) }
}

fn answered(resource: Resource, code: String, message: String) -> Failure {
    match kind(&code) {
        Kind::Missing => Failure::Missing(resource),
        Kind::Credentials => Failure::Credentials(code),
        Kind::Expired => Failure::Expired(code),
        Kind::Denied => Failure::Denied { resource, message },
        Kind::Other => Failure::Answered { resource, code, message },
    }
}

/// Returns `true` if a call or an entry of a batch with this error code may succeed later, at once or after an operator
/// has corrected the cause. SQS also states throttled and KMS errors as faults of the sender.
pub(crate) fn may_pass(code: &str, status: u16) -> bool {
    let named = THROTTLING_ERRORS.contains(&code) || TRANSIENT_ERRORS.contains(&code);
    // The key of an encrypted queue is throttled, disabled or not permitted
    // (<https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/API_SendMessage.html#API_SendMessage_Errors>).
    let of_key =
        code.trim_start_matches("AWS.SimpleQueueService.").starts_with("Kms") || code.starts_with("KMS.");
    // SQS: too many messages are being worked on.
    named || of_key || kind(code) != Kind::Other || code == "OverLimit" || status >= 500 || status == 429
}

#[derive(PartialEq, Eq)]
enum Kind {
    Missing,
    Credentials,
    Expired,
    Denied,
    Other,
}

/// Returns the kind of an error code. DynamoDB, SQS and S3 have different codes for the same errors
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>,
/// <https://docs.aws.amazon.com/AWSSimpleQueueService/latest/APIReference/CommonErrors.html>,
/// <https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html>).
fn kind(code: &str) -> Kind {
    match code {
        "ResourceNotFoundException"
        | "QueueDoesNotExist"
        | "AWS.SimpleQueueService.NonExistentQueue"
        | "NoSuchBucket" => Kind::Missing,
        "UnrecognizedClientException"
        | "InvalidClientTokenId"
        | "InvalidAccessKeyId"
        | "InvalidToken"
        | "SignatureDoesNotMatch"
        | "InvalidSignatureException"
        | "IncompleteSignature"
        | "IncompleteSignatureException"
        | "MissingAuthenticationToken"
        | "MissingAuthenticationTokenException" => Kind::Credentials,
        "ExpiredToken" | "ExpiredTokenException" => Kind::Expired,
        "AccessDenied" | "AccessDeniedException" | "AllAccessDisabled" => Kind::Denied,
        _ => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use aws_smithy_runtime_api::client::result::ConnectorError;
    use aws_smithy_runtime_api::http::StatusCode;
    use aws_smithy_types::body::SdkBody;
    use aws_smithy_types::error::ErrorMetadata;

    use super::*;

    fn error(code: &str, status: u16, message: &str) -> StoreError {
        let metadata = ErrorMetadata::builder().code(code).message(message).build();
        let response = HttpResponse::new(StatusCode::try_from(status).unwrap(), SdkBody::empty());
        store_error(&SdkError::service_error(metadata, response))
    }

    fn store_error(error: &SdkError<ErrorMetadata, HttpResponse>) -> StoreError {
        let resource = Resource { kind: "table", name: "ledger".into(), setting: "LEDGER_TABLE".into() };
        failed("claiming", &resource, error)
    }

    #[test]
    fn only_transient_or_correctable_errors_are_retried() {
        for (code, status) in [
            ("ProvisionedThroughputExceededException", 400),
            ("ThrottlingException", 400),
            ("SlowDown", 503),
            ("InternalServerError", 500),
            ("ExpiredTokenException", 400),
            ("OverLimit", 403),
            ("ResourceNotFoundException", 400),
            ("QueueDoesNotExist", 400),
            ("AccessDeniedException", 400),
            ("UnrecognizedClientException", 400),
        ] {
            assert!(error(code, status, "").is_retryable(), "{code}");
        }
        for (code, status) in [("ValidationException", 400), ("InvalidMessageContents", 400)] {
            assert!(!error(code, status, "").is_retryable(), "{code}");
        }
    }

    #[test]
    fn missing_resource_names_its_setting() {
        let message = error("ResourceNotFoundException", 400, "Requested resource not found").chain();
        assert_eq!(message, "claiming failed: there is no table \"ledger\" (set by LEDGER_TABLE)");
    }

    #[test]
    fn signature_error_hides_signed_text() {
        let message = error("InvalidSignatureException", 403, "x-amz-security-token:IQoJb3").chain();
        assert!(message.contains("InvalidSignatureException") && !message.contains("IQoJb3"), "{message}");
    }

    #[test]
    fn broken_connection_is_retryable() {
        let broken = SdkError::dispatch_failure(ConnectorError::io("connection reset".into()));
        let error = store_error(&broken);
        assert!(error.is_retryable());
        assert!(error.chain().contains("connection reset"), "{}", error.chain());
    }
}
