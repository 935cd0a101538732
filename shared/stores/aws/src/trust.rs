//! The trusted root certificates.

use aws_smithy_http_client::Builder;
use aws_smithy_http_client::tls::rustls_provider::CryptoMode;
use aws_smithy_http_client::tls::{Provider, TlsContext, TrustStore};
use aws_smithy_runtime_api::client::http::SharedHttpClient;

/// The roots of Amazon Trust Services, which sign the endpoints of AWS. AWS recommends trusting exactly these five
/// (<https://www.amazontrust.com/repository/>). The first of these certificates expires in 2037.
const AMAZON: &str = include_str!("amazon-roots.pem");

/// Returns a client that trusts only the roots of Amazon. Otherwise every cold start reads the system's certificates,
/// more than a hundred, before its first call.
///
/// On Lambda that is enough. Elsewhere a custom endpoint may present a certificate of another authority, which the
/// system trusts; then this returns `None`, and the SDK uses its default client.
pub(crate) fn client() -> Option<SharedHttpClient> {
    let on_lambda = std::env::var_os("AWS_LAMBDA_FUNCTION_NAME").is_some();
    let elsewhere =
        std::env::vars_os().any(|(name, _)| name.to_string_lossy().starts_with("AWS_ENDPOINT_URL"));
    (on_lambda && !elsewhere).then(trusting_amazon).flatten()
}

fn trusting_amazon() -> Option<SharedHttpClient> {
    let roots = TrustStore::empty().with_pem_certificate(AMAZON);
    // Building the context does not fail for this trust store. After a failure, the caller would use the SDK's own
    // client.
    let context = TlsContext::builder().with_trust_store(roots).build().ok()?;
    Some(Builder::new().tls_provider(Provider::Rustls(CryptoMode::AwsLc)).tls_context(context).build_https())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_five_amazon_roots_are_trusted() {
        assert_eq!(AMAZON.matches("-----BEGIN CERTIFICATE-----").count(), 5);
        assert_eq!(AMAZON.matches("-----END CERTIFICATE-----").count(), 5);
        assert!(trusting_amazon().is_some());
    }
}
