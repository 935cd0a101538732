//! The policy of an upload form, and its signature (Signature Version 4;
//! <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-authentication-HTTPPOST.html>).
//!
//! Every field of the form has to match a condition of the policy, and the policy is signed; so the form can be sent
//! as it is, with a file of the announced size, until it expires, and in no other way. S3 has no condition that refuses
//! a second file under the same key: it becomes a new version of the object, which its search no longer reads.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::sign::v4::{calculate_signature, generate_signing_key};
use aws_smithy_types::base64;
use imports::UploadGrant;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

/// The maximum validity of a signature
/// (<https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-query-string-auth.html>). A signature expires earlier if the
/// credentials that created it expire earlier.
pub const MAX_VALIDITY: Duration = Duration::from_secs(604_800);

const SERVICE: &str = "s3";
const ALGORITHM: &str = "AWS4-HMAC-SHA256";

/// A grant that no form can be made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum MalformedGrant {
    /// S3 would put the name of the uploaded file in its place
    /// (<https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-HTTPPOSTForms.html>).
    #[error("the key contains \"${{filename}}\", which S3 replaces")]
    Placeholder,
    /// S3 would refuse the form.
    #[error("its validity exceeds seven days")]
    TooLong,
}

/// The credentials, the region and the time of a signature.
pub(crate) struct Signer<'a> {
    pub(crate) credentials: &'a Credentials,
    pub(crate) region: &'a str,
    pub(crate) now: Timestamp,
}

impl Signer<'_> {
    fn credential(&self) -> String {
        let (id, date) = (self.credentials.access_key_id(), self.now.strftime("%Y%m%d"));
        format!("{id}/{date}/{}/{SERVICE}/aws4_request", self.region)
    }

    fn sign(&self, text: &str) -> String {
        let secret = self.credentials.secret_access_key();
        let key = generate_signing_key(secret, SystemTime::from(self.now), self.region, SERVICE);
        calculate_signature(key, text.as_bytes())
    }
}

/// The fields of the form for a grant.
pub(crate) fn fields(
    bucket: &str,
    grant: &UploadGrant,
    signer: &Signer<'_>,
) -> Result<BTreeMap<String, String>, MalformedGrant> {
    check(grant, signer.now)?;
    let mut fields = BTreeMap::from([
        ("key".to_owned(), grant.key.clone()),
        ("x-amz-algorithm".to_owned(), ALGORITHM.to_owned()),
        ("x-amz-credential".to_owned(), signer.credential()),
        ("x-amz-date".to_owned(), signer.now.strftime("%Y%m%dT%H%M%SZ").to_string()),
    ]);
    if let Some(token) = signer.credentials.session_token() {
        fields.insert("x-amz-security-token".to_owned(), token.to_owned());
    }
    for (name, value) in &grant.metadata {
        fields.insert(format!("x-amz-meta-{name}"), value.clone());
    }
    let policy = base64::encode(policy(bucket, grant, &fields).to_string());
    fields.insert("x-amz-signature".to_owned(), signer.sign(&policy));
    fields.insert("policy".to_owned(), policy);
    Ok(fields)
}

fn check(grant: &UploadGrant, now: Timestamp) -> Result<(), MalformedGrant> {
    if grant.key.contains("${filename}") {
        return Err(MalformedGrant::Placeholder);
    }
    let longest = SignedDuration::try_from(MAX_VALIDITY).unwrap_or(SignedDuration::MAX);
    if grant.expires_at.duration_since(now) > longest {
        return Err(MalformedGrant::TooLong);
    }
    Ok(())
}

fn policy(bucket: &str, grant: &UploadGrant, fields: &BTreeMap<String, String>) -> Value {
    let mut conditions = vec![
        json!({ "bucket": bucket }),
        json!(["content-length-range", grant.size_bytes, grant.size_bytes]),
    ];
    conditions.extend(fields.iter().map(|(name, value)| json!({ name: value })));
    let expiration = grant.expires_at.strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string();
    json!({ "expiration": expiration, "conditions": conditions })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of
    /// <https://docs.aws.amazon.com/AmazonS3/latest/API/sigv4-post-example.html>, line ends as published.
    const EXAMPLE: &str = concat!(
        "{ \"expiration\": \"2015-12-30T12:00:00.000Z\",\r\n",
        "  \"conditions\": [\r\n",
        "    {\"bucket\": \"sigv4examplebucket\"},\r\n",
        "    [\"starts-with\", \"$key\", \"user/user1/\"],\r\n",
        "    {\"acl\": \"public-read\"},\r\n",
        "    {\"success_action_redirect\": ",
        "\"http://sigv4examplebucket.s3.amazonaws.com/successful_upload.html\"},\r\n",
        "    [\"starts-with\", \"$Content-Type\", \"image/\"],\r\n",
        "    {\"x-amz-meta-uuid\": \"14365123651274\"},\r\n",
        "    {\"x-amz-server-side-encryption\": \"AES256\"},\r\n",
        "    [\"starts-with\", \"$x-amz-meta-tag\", \"\"],\r\n",
        "\r\n",
        "    {\"x-amz-credential\": \"AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request\"},\r\n",
        "    {\"x-amz-algorithm\": \"AWS4-HMAC-SHA256\"},\r\n",
        "    {\"x-amz-date\": \"20151229T000000Z\" }\r\n",
        "  ]\r\n",
        "}",
    );

    fn credentials(session: Option<&str>) -> Credentials {
        let secret = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY";
        Credentials::new("AKIAIOSFODNN7EXAMPLE", secret, session.map(str::to_owned), None, "example")
    }

    fn grant() -> UploadGrant {
        UploadGrant {
            key: "uploads/a \"b\" ä.ris".into(),
            size_bytes: 1_000,
            metadata: BTreeMap::from([("search-name".into(), "A%20b".into())]),
            expires_at: "2015-12-29T01:00:00Z".parse().unwrap(),
        }
    }

    fn signed(
        grant: &UploadGrant,
        session: Option<&str>,
    ) -> Result<BTreeMap<String, String>, MalformedGrant> {
        let now = "2015-12-29T00:00:00Z".parse().unwrap();
        let credentials = credentials(session);
        fields("bucket", grant, &Signer { credentials: &credentials, region: "us-east-1", now })
    }

    fn decoded(fields: &BTreeMap<String, String>) -> Value {
        serde_json::from_slice(&base64::decode(&fields["policy"]).unwrap()).unwrap()
    }

    #[test]
    fn published_example_has_its_signature() {
        let credentials = credentials(None);
        let now = "2015-12-29T00:00:00Z".parse().unwrap();
        let signer = Signer { credentials: &credentials, region: "us-east-1", now };
        assert_eq!(signer.credential(), "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request");
        assert_eq!(
            signer.sign(&base64::encode(EXAMPLE)),
            "8afdbf4008c03f22c2cd3cdb72e4afbb1f6a588f3255ac628749a66d7f09699e"
        );
    }

    #[test]
    fn policy_matches_the_grant() {
        let fields = signed(&grant(), None).unwrap();
        assert_eq!(
            decoded(&fields),
            json!({
                "expiration": "2015-12-29T01:00:00.000Z",
                "conditions": [
                    { "bucket": "bucket" },
                    ["content-length-range", 1_000, 1_000],
                    { "key": "uploads/a \"b\" ä.ris" },
                    { "x-amz-algorithm": "AWS4-HMAC-SHA256" },
                    { "x-amz-credential": "AKIAIOSFODNN7EXAMPLE/20151229/us-east-1/s3/aws4_request" },
                    { "x-amz-date": "20151229T000000Z" },
                    { "x-amz-meta-search-name": "A%20b" },
                ],
            })
        );
    }

    #[test]
    fn form_fields_are_policy_conditions() {
        let fields = signed(&grant(), Some("a-session")).unwrap();
        assert_eq!(fields["x-amz-security-token"], "a-session");
        let policy = decoded(&fields).to_string();
        for (name, value) in
            fields.iter().filter(|(name, _)| !["policy", "x-amz-signature"].contains(&name.as_str()))
        {
            assert!(policy.contains(&json!({ name: value }).to_string()), "{name}");
        }
    }

    #[test]
    fn form_does_not_contain_secret_key() {
        let fields = format!("{:?}", signed(&grant(), None).unwrap());
        assert!(!fields.contains("wJalrXUtnFEMI"));
    }

    #[test]
    fn unusable_grant_is_refused() {
        let replaced = UploadGrant { key: "uploads/${filename}".into(), ..grant() };
        assert_eq!(signed(&replaced, None), Err(MalformedGrant::Placeholder));
        let eternal = UploadGrant { expires_at: "2016-01-05T00:00:01Z".parse().unwrap(), ..grant() };
        assert_eq!(signed(&eternal, None), Err(MalformedGrant::TooLong));
    }
}
