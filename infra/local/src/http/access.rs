//! Access control for requests.
//!
//! Every program on this machine can reach a server on the loopback interface, including browsers, which run untrusted
//! code. Each request therefore has to pass three checks:
//!
//! - Is it for this server? With DNS rebinding, a page's own name resolves to this machine, so that the browser
//!   considers this server to be of the page's origin. Only the `Host` header shows the page's name.
//! - Does it come from a page of another origin? Browsers send `Sec-Fetch-Site` and `Origin`, which pages cannot
//!   change. Other clients send neither.
//! - Does the client have the token, if other machines can reach the server?

use std::collections::BTreeSet;
use std::net::IpAddr;

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use axum::response::IntoResponse;
use rand::RngExt;
use subtle::ConstantTimeEq;

use super::refusal::line;

/// <https://www.w3.org/TR/fetch-metadata/#sec-fetch-site-header>
const SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
const SEC_FETCH_DEST: HeaderName = HeaderName::from_static("sec-fetch-dest");
/// The number of random bytes of a token.
const TOKEN_BYTES: usize = 32;

/// The rules that admit requests.
#[derive(Clone, Default)]
pub struct AccessPolicy {
    /// The host names of this server, in addition to `localhost` and its addresses.
    pub hosts: Vec<String>,
    /// The token that every request needs; `None` if only programs on this machine use the server.
    pub token: Option<String>,
    /// Paths that can be read without the token: the files of a page, which contain no data and ask users for the
    /// token.
    pub open: BTreeSet<String>,
}

/// The reason why a request was denied.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccessDenied {
    /// The request does not have exactly one valid host.
    #[error("the request needs exactly one valid Host header that names this server")]
    InvalidHost,
    /// The request is for another server.
    #[error("this server is not {0:?}; the option --host of its command adds a name")]
    Misdirected(String),
    /// The request comes from a page of another origin.
    #[error("the request comes from a page of another origin")]
    CrossOrigin,
    /// The request has no valid token.
    #[error(
        "the request needs the token that the server printed when it started, as Authorization: Bearer TOKEN"
    )]
    MissingToken,
    /// A proxy forwarded the request to a server without a token, so it may come from any machine.
    #[error(
        "the request was forwarded by a proxy, but this server requires no token: start it with --host NAME, the host name \
         that clients use"
    )]
    Forwarded,
}

/// The headers that proxies add (RFC 7239, RFC 9110 section 7.6.3, and common older ones).
const PROXY_HEADERS: [&str; 5] = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];

impl AccessPolicy {
    /// Returns the policy of a server at an address, with a new token unless only programs on this machine can use it.
    /// A server with host names is behind a proxy, so its clients may be remote despite a loopback address.
    pub fn of(address: IpAddr, hosts: Vec<String>, open: BTreeSet<String>) -> Self {
        let is_local = address.is_loopback() && hosts.is_empty();
        let token = (!is_local).then(random_token);
        Self { hosts, token, open }
    }

    /// Checks a request that reached this machine at the address `local`.
    pub fn admit(&self, request: &Parts, local: IpAddr) -> Result<(), AccessDenied> {
        let authority = authority(request)?;
        if !self.is_same_origin(authority.host(), local) {
            return Err(AccessDenied::Misdirected(authority.host().to_owned()));
        }
        if is_foreign(&request.headers, &authority) && !is_navigation(request) {
            return Err(AccessDenied::CrossOrigin);
        }
        match &self.token {
            Some(token) if !self.is_open(request) && !has_token(&request.headers, token) => {
                Err(AccessDenied::MissingToken)
            }
            None if PROXY_HEADERS.iter().any(|name| request.headers.contains_key(*name)) => {
                Err(AccessDenied::Forwarded)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn is_open(&self, request: &Parts) -> bool {
        matches!(request.method, Method::GET | Method::HEAD) && self.open.contains(request.uri.path())
    }

    /// Returns `true` if the host is this server. The owner of a name can make it resolve to any machine, so names are
    /// compared with the known ones. Addresses are reliable, but behind a proxy or in a container clients use another one
    /// than this machine has.
    fn is_same_origin(&self, host: &str, local: IpAddr) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match address.parse::<IpAddr>() {
            Ok(address) => {
                let is_named = || self.hosts.iter().any(|name| name.parse() == Ok(address));
                address.is_loopback() || address.to_canonical() == local.to_canonical() || is_named()
            }
            Err(_) => {
                let is = |name: &str| host.eq_ignore_ascii_case(name);
                is("localhost") || self.hosts.iter().any(|name| is(name))
            }
        }
    }
}

/// Returns the host of a request. An address in the request line has to agree with it.
fn authority(request: &Parts) -> Result<Authority, AccessDenied> {
    let mut hosts = request.headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(AccessDenied::InvalidHost) };
    let host: Authority =
        host.to_str().ok().and_then(|host| host.parse().ok()).ok_or(AccessDenied::InvalidHost)?;
    // A host name never contains a user.
    let is_plain = !host.as_str().contains('@');
    let agrees = request.uri.authority().is_none_or(|authority| *authority == host);
    if is_plain && agrees { Ok(host) } else { Err(AccessDenied::InvalidHost) }
}

fn is_foreign(headers: &HeaderMap, authority: &Authority) -> bool {
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    // Browsers send "none" for a typed address, and "same-site" for a page on another port of this machine.
    let is_foreign = |site: &HeaderValue| site != "same-origin" && site != "none";
    sites.any(is_foreign) || headers.get_all(header::ORIGIN).iter().any(|origin| !is_of(origin, authority))
}

/// Returns `true` if a user follows a link from another site to this server's page. The page itself contains no data,
/// and its further requests come from its own origin.
fn is_navigation(request: &Parts) -> bool {
    let has = |name: HeaderName, value: &str| request.headers.get(name).is_some_and(|found| found == value);
    request.method == Method::GET
        && request.uri.path() == "/"
        && has(SEC_FETCH_MODE, "navigate")
        && has(SEC_FETCH_DEST, "document")
        && !request.headers.contains_key(header::ORIGIN)
}

fn is_of(origin: &HeaderValue, authority: &Authority) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    // Behind a proxy, the page's scheme is https, while this server's is http.
    let origin = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    origin.is_some_and(|origin| origin.eq_ignore_ascii_case(authority.as_str()))
}

fn has_token(headers: &HeaderMap, token: &str) -> bool {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, given)) = value.and_then(|value| value.split_once(' ')) else { return false };
    scheme.eq_ignore_ascii_case("bearer") && bool::from(given.trim().as_bytes().ct_eq(token.as_bytes()))
}

fn random_token() -> String {
    let bytes: [u8; TOKEN_BYTES] = rand::rng().random();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl IntoResponse for AccessDenied {
    fn into_response(self) -> Response<Body> {
        let status = match self {
            Self::InvalidHost => StatusCode::BAD_REQUEST,
            Self::Misdirected(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::CrossOrigin | Self::Forwarded => StatusCode::FORBIDDEN,
            Self::MissingToken => StatusCode::UNAUTHORIZED,
        };
        let mut response = line(status, &self.to_string());
        if self == Self::MissingToken {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use axum::extract::Request;

    use super::*;

    const LOCAL: &str = "127.0.0.1";

    fn request(access: &AccessPolicy, local: &str, headers: &[(&str, &str)]) -> Result<(), AccessDenied> {
        let request = headers.iter().fold(Request::builder().uri("/searches"), |request, (name, value)| {
            request.header(*name, *value)
        });
        access.admit(&request.body(()).unwrap().into_parts().0, local.parse().unwrap())
    }

    fn from(host: &str, more: &[(&str, &str)]) -> Result<(), AccessDenied> {
        request(&AccessPolicy::default(), LOCAL, &[&[("host", host)], more].concat())
    }

    #[test]
    fn local_names_and_addresses_are_admitted() {
        for host in ["localhost", "LOCALHOST:8080", "localhost.", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080"]
        {
            assert_eq!(from(host, &[]), Ok(()), "{host}");
        }
        for host in ["attacker.test", "attacker.test:8080", "localhost.attacker.test", "192.0.2.1", "[::2]"] {
            let Err(AccessDenied::Misdirected(named)) = from(host, &[]) else { panic!("{host}") };
            assert!(host.starts_with(&named), "{named}");
        }
        let hosts = ["imports.example", "192.0.2.7", "2001:db8::7"].map(str::to_owned).to_vec();
        let elsewhere = AccessPolicy { hosts, ..AccessPolicy::default() };
        for (host, local) in [
            ("imports.EXAMPLE:8080", "192.0.2.1"),
            ("192.0.2.1:80", "::ffff:192.0.2.1"),
            ("192.0.2.7:8080", "172.17.0.2"),
            ("[2001:db8::7]:8080", "172.17.0.2"),
        ] {
            assert_eq!(request(&elsewhere, local, &[("host", host)]), Ok(()), "{host}");
        }
    }

    #[test]
    fn request_needs_one_valid_host() {
        let access = AccessPolicy::default();
        assert_eq!(request(&access, LOCAL, &[]), Err(AccessDenied::InvalidHost));
        for host in ["", "a b", "localhost:port:", "somebody@localhost"] {
            assert_eq!(from(host, &[]), Err(AccessDenied::InvalidHost), "{host}");
        }
        assert_eq!(
            request(&access, LOCAL, &[("host", "localhost"), ("host", "attacker.test")]),
            Err(AccessDenied::InvalidHost)
        );
        let request = Request::builder().uri("http://attacker.test/searches").header("host", "localhost");
        let parts = request.body(()).unwrap().into_parts().0;
        assert_eq!(access.admit(&parts, LOCAL.parse().unwrap()), Err(AccessDenied::InvalidHost));
    }

    #[test]
    fn cross_origin_requests_are_denied() {
        let host = "localhost:8080";
        for (name, value) in [
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-site", "none"),
            ("origin", "http://localhost:8080"),
            ("origin", "https://LOCALHOST:8080"),
        ] {
            assert_eq!(from(host, &[(name, value)]), Ok(()), "{name}: {value}");
        }
        for (name, value) in [
            ("sec-fetch-site", "cross-site"),
            ("sec-fetch-site", "same-site"),
            ("origin", "null"),
            ("origin", "http://localhost:3000"),
            ("origin", "http://localhost"),
            ("origin", "http://attacker.test"),
            ("origin", "file://"),
        ] {
            assert_eq!(from(host, &[(name, value)]), Err(AccessDenied::CrossOrigin), "{name}: {value}");
        }
        let both = [("sec-fetch-site", "same-origin"), ("origin", "http://attacker.test")];
        assert_eq!(from(host, &both), Err(AccessDenied::CrossOrigin));
    }

    #[test]
    fn cross_site_link_reaches_only_the_page() {
        let access = AccessPolicy::default();
        let followed = |method: Method, uri: &str, dest: &str, more: &[(&str, &str)]| {
            let visit = [("host", LOCAL), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
            let request = Request::builder().method(method).uri(uri).header("sec-fetch-dest", dest);
            let headers = [&visit[..], more].concat();
            let request =
                headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            access.admit(&request.body(()).unwrap().into_parts().0, LOCAL.parse().unwrap())
        };
        assert_eq!(followed(Method::GET, "/", "document", &[]), Ok(()));
        for (method, uri, dest) in [
            (Method::POST, "/", "document"),
            (Method::GET, "/searches", "document"),
            (Method::GET, "/", "iframe"),
        ] {
            assert_eq!(followed(method, uri, dest, &[]), Err(AccessDenied::CrossOrigin), "{uri} {dest}");
        }
        let from_a_form = [("origin", "http://attacker.test")];
        assert_eq!(followed(Method::GET, "/", "document", &from_a_form), Err(AccessDenied::CrossOrigin));
    }

    #[test]
    fn other_machines_need_the_token() {
        let of = |address: &str| AccessPolicy::of(address.parse().unwrap(), Vec::new(), BTreeSet::new());
        assert_eq!(of(LOCAL).token, None);
        let access = of("0.0.0.0");
        let token = access.token.clone().unwrap();
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert_ne!(of("::").token, Some(token.clone()));
        let shown = |value: &str| request(&access, LOCAL, &[("host", LOCAL), ("authorization", value)]);
        assert_eq!(shown(&format!("Bearer {token}")), Ok(()));
        assert_eq!(shown(&format!("bearer {token}")), Ok(()));
        for value in ["", "Bearer", "Bearer ", &token, &format!("Bearer {token}0"), &format!("Basic {token}")]
        {
            assert_eq!(shown(value), Err(AccessDenied::MissingToken), "{value}");
        }
        assert_eq!(request(&access, LOCAL, &[("host", LOCAL)]), Err(AccessDenied::MissingToken));
    }

    #[test]
    fn named_server_requires_token_on_loopback() {
        let access =
            AccessPolicy::of(LOCAL.parse().unwrap(), vec!["imports.example".into()], BTreeSet::new());
        assert!(access.token.is_some());
        let passed_on = [("host", "imports.example")];
        assert_eq!(request(&access, LOCAL, &passed_on), Err(AccessDenied::MissingToken));
    }

    #[test]
    fn forwarded_request_without_token_is_denied() {
        for name in PROXY_HEADERS {
            let headers = [("host", LOCAL), (name, "192.0.2.7")];
            assert_eq!(
                request(&AccessPolicy::default(), LOCAL, &headers),
                Err(AccessDenied::Forwarded),
                "{name}"
            );
            let with_token = AccessPolicy { token: Some("t".into()), ..AccessPolicy::default() };
            let shown = [&headers[..], &[("authorization", "Bearer t")]].concat();
            assert_eq!(request(&with_token, LOCAL, &shown), Ok(()), "{name}");
        }
    }

    #[test]
    fn only_page_files_are_readable_without_token() {
        let access = AccessPolicy::of("0.0.0.0".parse().unwrap(), Vec::new(), ["/".to_owned()].into());
        let asked = |method: Method, uri: &str, host: &str| {
            let request = Request::builder().method(method).uri(uri).header("host", host);
            access.admit(&request.body(()).unwrap().into_parts().0, LOCAL.parse().unwrap())
        };
        assert_eq!(asked(Method::GET, "/", LOCAL), Ok(()));
        assert_eq!(asked(Method::HEAD, "/?theme=dark", LOCAL), Ok(()));
        for (method, uri) in [(Method::POST, "/"), (Method::GET, "/searches"), (Method::GET, "//")] {
            assert_eq!(asked(method, uri, LOCAL), Err(AccessDenied::MissingToken), "{uri}");
        }
        let misdirected = asked(Method::GET, "/", "attacker.test");
        assert!(matches!(misdirected, Err(AccessDenied::Misdirected(_))), "{misdirected:?}");
    }
}
