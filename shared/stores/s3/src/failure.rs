//! Failed calls about one object, without its key: that holds the token of the upload.

use aws_sdk_s3::config::http::HttpResponse;
use aws_sdk_s3::error::{ProvideErrorMetadata, SdkError};
use imports::key::nickname;
use messages::StoreError;
use messages::store::chain;

use crate::resource;

/// The error of a call that was `doing` something to an object, such as "opening".
pub(crate) fn failed<E>(doing: &str, bucket: &str, key: &str, error: &SdkError<E, HttpResponse>) -> StoreError
where
    E: ProvideErrorMetadata + std::error::Error + 'static,
{
    without_key(aws::failed(format!("{doing} {}", nickname(key)), &resource(bucket), error), key)
}

/// The message of S3 may name the object, for example if it names a missing permission.
fn without_key(error: StoreError, key: &str) -> StoreError {
    let (may_pass, doing, source) = match error {
        StoreError::Unavailable { doing, source } => (true, doing, source),
        StoreError::Unusable { doing, source } => (false, doing, source),
    };
    let said = chain(source.as_ref());
    let mut hidden = said.replace(key, "(its key)");
    // A URL contains the key in another spelling, but the ids of the key unchanged.
    for part in key.split('/').filter(|part| part.len() >= MIN_SECRET_LENGTH) {
        hidden = hidden.replace(part, "(part of its key)");
    }
    let source = if hidden == said { source } else { hidden.into() };
    if may_pass { StoreError::unavailable(doing, source) } else { StoreError::unusable(doing, source) }
}

/// The minimum length of the parts of a key that are hidden. Shorter parts are words; longer parts are ids, tokens and
/// the name, which appears elsewhere.
const MIN_SECRET_LENGTH: usize = 32;

#[cfg(test)]
mod tests {
    use aws_sdk_s3::error::ErrorMetadata;
    use aws_sdk_s3::primitives::SdkBody;

    use super::*;

    const TOKEN: &str = "34dfe9bb-fffb-569b-be25-4d6a34677b00";

    fn store_error(code: &str, message: &str) -> StoreError {
        let error = ErrorMetadata::builder().code(code).message(message).build();
        let status = 403.try_into().unwrap();
        let error = SdkError::service_error(error, HttpResponse::new(status, SdkBody::empty()));
        failed("opening", "uploads", &key(), &error)
    }

    fn key() -> String {
        let [project, search, file] = [1, 2, 3].map(|n| format!("00000000-0000-0000-0000-{n:012}"));
        format!("uploads/{project}/{search}/{file}/{TOKEN}/a b.ris")
    }

    #[test]
    fn refused_object_is_named_without_its_key() {
        for spelled in [key(), key().replace(' ', "%20"), key().replace('/', "%2F")] {
            let arn = format!("not allowed to perform s3:GetObject on arn:aws:s3:::uploads/{spelled}");
            for code in ["AccessDenied", "MethodNotAllowed"] {
                let error = store_error(code, &arn).chain();
                assert!(
                    error.contains("opening file 00000000-0000-0000-0000-000000000003 of search"),
                    "{error}"
                );
                assert!(error.contains("s3:GetObject") && !error.contains(TOKEN), "{error}");
            }
        }
    }
}
