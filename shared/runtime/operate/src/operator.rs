//! The operator of a deployment, as the claims of a verified token identify them.

use std::collections::HashMap;

/// The value in a claim that means access to everything.
pub const ALL: &str = "*";

/// An operator of the deployment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// The name, for the audit log.
    pub name: String,
}

impl Operator {
    /// Returns the operator that the claims of a token identify.
    ///
    /// An operator's token has `scope` among its scopes, and `*` among the elements of `claim`, such as the user's
    /// groups. The scope alone does not identify a person: Cognito gives every user of an app client all scopes of that
    /// client (<https://docs.aws.amazon.com/cognito/latest/developerguide/cognito-user-pools-define-resource-servers.html>).
    /// Scopes are read from `scope` and from `scp`, which Okta and Entra use.
    ///
    /// If neither a claim is configured nor a token is present, the host authorizes callers itself, and every caller is
    /// an operator. If only one of the two exists, the configuration is wrong, and the caller is not an operator.
    pub fn of(claim: Option<&str>, scope: &str, claims: Option<&HashMap<String, String>>) -> Option<Self> {
        let (claim, claims) = match (claim, claims) {
            (None, None) => return Some(Self::unnamed()),
            (Some(claim), Some(claims)) => (claim, claims),
            (Some(_), None) | (None, Some(_)) => return None,
        };
        let mut scopes = ["scope", "scp"].into_iter().filter_map(|name| claims.get(name));
        let has_scope = scopes.any(|scopes| elements(scopes).any(|granted| granted == scope));
        let is_everywhere = claims.get(claim).is_some_and(|claim| elements(claim).any(|one| one == ALL));
        (has_scope && is_everywhere).then(|| Self { name: name(identity(Some(claims)).as_deref()) })
    }

    /// Returns the operator where callers do not sign in.
    pub fn unnamed() -> Self {
        Self { name: name(None) }
    }
}

/// Returns the elements of a list in a claim, which are separated by spaces or commas, with or without brackets and
/// quotes. API Gateway puts brackets around the elements of a list
/// (<https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-jwt-authorizer.html>).
pub fn elements(claim: &str) -> impl Iterator<Item = &str> {
    claim
        .split(|c: char| c.is_whitespace() || matches!(c, ',' | '[' | ']' | '"'))
        .filter(|part| !part.is_empty())
}

/// Returns the identity of the caller from the claims of a token: the `sub`, which a provider never assigns twice.
pub fn identity(claims: Option<&HashMap<String, String>>) -> Option<String> {
    claims.and_then(|claims| claims.get("sub")).cloned()
}

/// Returns the name under which actions of a caller are recorded.
pub fn name(identity: Option<&str>) -> String {
    identity.unwrap_or("somebody").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77";

    #[test]
    fn operator_needs_the_scope_and_all_projects() {
        let token = |name: &str, scope: &str, projects: &str| {
            let claims = [("sub", "ann"), ("projects", projects), (name, scope)];
            HashMap::from(claims.map(|(name, value)| (name.to_owned(), value.to_owned())))
        };
        let of = |name: &str, scope: &str, projects: &str| {
            Operator::of(Some("projects"), "searches:operate", Some(&token(name, scope, projects)))
        };
        let operator = Some(Operator { name: "ann".to_owned() });
        for (name, scope) in [
            ("scope", "searches:operate"),
            ("scope", "openid searches:operate email"),
            ("scp", "openid searches:operate"),
            ("scp", "[openid searches:operate]"),
            ("scp", r#"["openid","searches:operate"]"#),
        ] {
            assert_eq!(of(name, scope, "*"), operator, "{name} {scope}");
            assert_eq!(of(name, scope, ONE), None, "a reviewer of one project");
            assert_eq!(of(name, scope, ""), None, "a user without projects");
        }
        for scope in ["", "openid", "searches:read searches:write", "searches:operated"] {
            assert_eq!(of("scope", scope, "*"), None, "{scope}");
        }
        assert_eq!(of("roles", "searches:operate", "*"), None, "another claim");
        assert_eq!(Operator::of(Some("projects"), "x", None), None, "the configuration is wrong");
        let token = token("scope", "searches:operate", "*");
        assert_eq!(
            Operator::of(None, "searches:operate", Some(&token)),
            None,
            "no claim is read of the token"
        );
        assert!(Operator::of(None, "x", None).is_some());
    }
}
