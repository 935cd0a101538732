//! Who is answered at all.
//!
//! A server on the loopback interface is reached by every program of this machine, browsers included, and a browser runs
//! what strangers wrote. So three things are asked before a request is looked at:
//!
//! - Was this server meant? A page whose name has come to mean this machine (DNS rebinding) is, to the browser, of the
//!   same origin as this server; only the `Host` that it sends shows the stranger's name.
//! - Does it come from a page of somebody else? Browsers say so (`Sec-Fetch-Site`, `Origin`), and pages can't make them
//!   say otherwise. What is not a browser sends neither.
//! - Where other machines can reach the server: does the client have its token?

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
/// How many random bytes a token has.
const TOKEN_BYTES: usize = 32;

/// Who is answered.
#[derive(Clone, Default)]
pub struct Door {
    /// The names under which clients may know this server, besides `localhost` and the address that they reach.
    pub hosts: Vec<String>,
    /// What every request has to show; none where only programs of this machine use the server.
    pub token: Option<String>,
    /// The paths that are read without it: the files of a page, which hold nothing and ask people for the token.
    pub open: BTreeSet<String>,
}

/// Whoever is not answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Stranger {
    /// There is not exactly one valid host.
    #[error("the request does not say, in one valid Host header, which server it is for")]
    Nameless,
    /// It is for another server.
    #[error("this server is not {0:?}; search-import serve --host adds a name")]
    Misdirected(String),
    /// It is made by a page of another origin.
    #[error("the request comes from a page of another origin")]
    Foreign,
    /// It shows no token, or a wrong one.
    #[error(
        "the request needs the token that the server printed when it started, as Authorization: Bearer TOKEN"
    )]
    Tokenless,
    /// A proxy passes it on to a server that asks for no token, so it may come from anywhere.
    #[error(
        "the request was passed on by a proxy, and this server asks for no token: start it with --host NAME, the name \
         that clients know it by"
    )]
    Forwarded,
}

/// The headers that a proxy adds (RFC 7239, RFC 9110 section 7.6.3, and the usual ones from before them).
const OF_PROXIES: [&str; 5] = ["forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip"];

impl Door {
    /// Returns the door of a server at an address: with a new token unless only programs of this machine use it. A
    /// server with names of its own is behind a proxy, so a loopback address says nothing about its clients.
    pub fn of(address: IpAddr, hosts: Vec<String>, open: BTreeSet<String>) -> Self {
        let is_local = address.is_loopback() && hosts.is_empty();
        let token = (!is_local).then(fresh_token);
        Self { hosts, token, open }
    }

    /// Lets a request in that reached this machine at `local`.
    ///
    /// # Errors
    /// When it is a stranger's.
    pub fn admit(&self, request: &Parts, local: IpAddr) -> Result<(), Stranger> {
        let authority = authority(request)?;
        if !self.is_ours(authority.host(), local) {
            return Err(Stranger::Misdirected(authority.host().to_owned()));
        }
        if is_foreign(&request.headers, &authority) && !is_visit(request) {
            return Err(Stranger::Foreign);
        }
        match &self.token {
            Some(token) if !self.is_open(request) && !shows(&request.headers, token) => {
                Err(Stranger::Tokenless)
            }
            None if OF_PROXIES.iter().any(|name| request.headers.contains_key(*name)) => {
                Err(Stranger::Forwarded)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn is_open(&self, request: &Parts) -> bool {
        matches!(request.method, Method::GET | Method::HEAD) && self.open.contains(request.uri.path())
    }

    /// A name can be made to mean any machine by whoever owns it; an address means what it says.
    fn is_ours(&self, host: &str, local: IpAddr) -> bool {
        let host = host.strip_suffix('.').unwrap_or(host);
        let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        match address.parse::<IpAddr>() {
            Ok(address) => address.is_loopback() || address.to_canonical() == local.to_canonical(),
            Err(_) => {
                let is = |name: &str| host.eq_ignore_ascii_case(name);
                is("localhost") || self.hosts.iter().any(|name| is(name))
            }
        }
    }
}

/// The host that a request is for. An address in the request line must not say otherwise.
fn authority(request: &Parts) -> Result<Authority, Stranger> {
    let mut hosts = request.headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return Err(Stranger::Nameless) };
    let host: Authority = host.to_str().ok().and_then(|host| host.parse().ok()).ok_or(Stranger::Nameless)?;
    // Nobody's name has a user in it.
    let is_plain = !host.as_str().contains('@');
    let agrees = request.uri.authority().is_none_or(|authority| *authority == host);
    if is_plain && agrees { Ok(host) } else { Err(Stranger::Nameless) }
}

fn is_foreign(headers: &HeaderMap, authority: &Authority) -> bool {
    let mut sites = headers.get_all(SEC_FETCH_SITE).iter();
    // "none" is somebody who typed the address; "same-site" is another port of this machine.
    let is_foreign = |site: &HeaderValue| site != "same-origin" && site != "none";
    sites.any(is_foreign) || headers.get_all(header::ORIGIN).iter().any(|origin| !is_of(origin, authority))
}

/// Somebody follows a link of another page to the page of this server, which shows nothing by itself. What it then asks for
/// comes from its own origin.
fn is_visit(request: &Parts) -> bool {
    let says = |name: HeaderName, value: &str| request.headers.get(name).is_some_and(|said| said == value);
    request.method == Method::GET
        && request.uri.path() == "/"
        && says(SEC_FETCH_MODE, "navigate")
        && says(SEC_FETCH_DEST, "document")
        && !request.headers.contains_key(header::ORIGIN)
}

fn is_of(origin: &HeaderValue, authority: &Authority) -> bool {
    let Ok(origin) = origin.to_str() else { return false };
    // Behind a proxy the page is https, and we are not.
    let origin = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    origin.is_some_and(|origin| origin.eq_ignore_ascii_case(authority.as_str()))
}

fn shows(headers: &HeaderMap, token: &str) -> bool {
    let shown = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let Some((scheme, shown)) = shown.and_then(|shown| shown.split_once(' ')) else { return false };
    scheme.eq_ignore_ascii_case("bearer") && bool::from(shown.trim().as_bytes().ct_eq(token.as_bytes()))
}

fn fresh_token() -> String {
    let bytes: [u8; TOKEN_BYTES] = rand::rng().random();
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

impl IntoResponse for Stranger {
    fn into_response(self) -> Response<Body> {
        let status = match self {
            Self::Nameless => StatusCode::BAD_REQUEST,
            Self::Misdirected(_) => StatusCode::MISDIRECTED_REQUEST,
            Self::Foreign | Self::Forwarded => StatusCode::FORBIDDEN,
            Self::Tokenless => StatusCode::UNAUTHORIZED,
        };
        let mut response = line(status, &self.to_string());
        if self == Self::Tokenless {
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

    fn asked(door: &Door, local: &str, headers: &[(&str, &str)]) -> Result<(), Stranger> {
        let request = headers.iter().fold(Request::builder().uri("/searches"), |request, (name, value)| {
            request.header(*name, *value)
        });
        door.admit(&request.body(()).unwrap().into_parts().0, local.parse().unwrap())
    }

    fn from(host: &str, more: &[(&str, &str)]) -> Result<(), Stranger> {
        asked(&Door::default(), LOCAL, &[&[("host", host)], more].concat())
    }

    #[test]
    fn this_machine_is_known_by_its_names_and_addresses() {
        for host in ["localhost", "LOCALHOST:8080", "localhost.", "127.0.0.1:8080", "127.9.9.9", "[::1]:8080"]
        {
            assert_eq!(from(host, &[]), Ok(()), "{host}");
        }
        for host in ["attacker.test", "attacker.test:8080", "localhost.attacker.test", "192.0.2.1", "[::2]"] {
            let Err(Stranger::Misdirected(named)) = from(host, &[]) else { panic!("{host}") };
            assert!(host.starts_with(&named), "{named}");
        }
        let elsewhere = Door { hosts: vec!["imports.example".into()], ..Door::default() };
        for (host, local) in [("imports.EXAMPLE:8080", "192.0.2.1"), ("192.0.2.1:80", "::ffff:192.0.2.1")] {
            assert_eq!(asked(&elsewhere, local, &[("host", host)]), Ok(()), "{host}");
        }
    }

    #[test]
    fn a_request_says_once_which_server_it_is_for() {
        let door = Door::default();
        assert_eq!(asked(&door, LOCAL, &[]), Err(Stranger::Nameless));
        for host in ["", "a b", "localhost:port:", "somebody@localhost"] {
            assert_eq!(from(host, &[]), Err(Stranger::Nameless), "{host}");
        }
        assert_eq!(
            asked(&door, LOCAL, &[("host", "localhost"), ("host", "attacker.test")]),
            Err(Stranger::Nameless)
        );
        let request = Request::builder().uri("http://attacker.test/searches").header("host", "localhost");
        let parts = request.body(()).unwrap().into_parts().0;
        assert_eq!(door.admit(&parts, LOCAL.parse().unwrap()), Err(Stranger::Nameless));
    }

    #[test]
    fn pages_of_other_origins_are_refused() {
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
            assert_eq!(from(host, &[(name, value)]), Err(Stranger::Foreign), "{name}: {value}");
        }
        let both = [("sec-fetch-site", "same-origin"), ("origin", "http://attacker.test")];
        assert_eq!(from(host, &both), Err(Stranger::Foreign));
    }

    #[test]
    fn a_link_of_another_page_leads_to_the_page_and_to_nothing_else() {
        let door = Door::default();
        let followed = |method: Method, uri: &str, dest: &str, more: &[(&str, &str)]| {
            let visit = [("host", LOCAL), ("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
            let request = Request::builder().method(method).uri(uri).header("sec-fetch-dest", dest);
            let headers = [&visit[..], more].concat();
            let request =
                headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            door.admit(&request.body(()).unwrap().into_parts().0, LOCAL.parse().unwrap())
        };
        assert_eq!(followed(Method::GET, "/", "document", &[]), Ok(()));
        for (method, uri, dest) in [
            (Method::POST, "/", "document"),
            (Method::GET, "/searches", "document"),
            (Method::GET, "/", "iframe"),
        ] {
            assert_eq!(followed(method, uri, dest, &[]), Err(Stranger::Foreign), "{uri} {dest}");
        }
        let from_a_form = [("origin", "http://attacker.test")];
        assert_eq!(followed(Method::GET, "/", "document", &from_a_form), Err(Stranger::Foreign));
    }

    #[test]
    fn other_machines_need_the_token() {
        let of = |address: &str| Door::of(address.parse().unwrap(), Vec::new(), BTreeSet::new());
        assert_eq!(of(LOCAL).token, None);
        let door = of("0.0.0.0");
        let token = door.token.clone().unwrap();
        assert_eq!(token.len(), 2 * TOKEN_BYTES);
        assert_ne!(of("::").token, Some(token.clone()));
        let shown = |value: &str| asked(&door, LOCAL, &[("host", LOCAL), ("authorization", value)]);
        assert_eq!(shown(&format!("Bearer {token}")), Ok(()));
        assert_eq!(shown(&format!("bearer {token}")), Ok(()));
        for value in ["", "Bearer", "Bearer ", &token, &format!("Bearer {token}0"), &format!("Basic {token}")]
        {
            assert_eq!(shown(value), Err(Stranger::Tokenless), "{value}");
        }
        assert_eq!(asked(&door, LOCAL, &[("host", LOCAL)]), Err(Stranger::Tokenless));
    }

    #[test]
    fn server_with_a_name_needs_the_token_on_loopback_too() {
        let door = Door::of(LOCAL.parse().unwrap(), vec!["imports.example".into()], BTreeSet::new());
        assert!(door.token.is_some());
        let passed_on = [("host", "imports.example")];
        assert_eq!(asked(&door, LOCAL, &passed_on), Err(Stranger::Tokenless));
    }

    #[test]
    fn request_through_a_proxy_is_refused_without_a_token() {
        for name in OF_PROXIES {
            let headers = [("host", LOCAL), (name, "192.0.2.7")];
            assert_eq!(asked(&Door::default(), LOCAL, &headers), Err(Stranger::Forwarded), "{name}");
            let with_token = Door { token: Some("t".into()), ..Door::default() };
            let shown = [&headers[..], &[("authorization", "Bearer t")]].concat();
            assert_eq!(asked(&with_token, LOCAL, &shown), Ok(()), "{name}");
        }
    }

    #[test]
    fn without_the_token_the_files_of_the_page_are_read_and_nothing_else() {
        let door = Door::of("0.0.0.0".parse().unwrap(), Vec::new(), ["/".to_owned()].into());
        let asked = |method: Method, uri: &str, host: &str| {
            let request = Request::builder().method(method).uri(uri).header("host", host);
            door.admit(&request.body(()).unwrap().into_parts().0, LOCAL.parse().unwrap())
        };
        assert_eq!(asked(Method::GET, "/", LOCAL), Ok(()));
        assert_eq!(asked(Method::HEAD, "/?theme=dark", LOCAL), Ok(()));
        for (method, uri) in [(Method::POST, "/"), (Method::GET, "/searches"), (Method::GET, "//")] {
            assert_eq!(asked(method, uri, LOCAL), Err(Stranger::Tokenless), "{uri}");
        }
        let misdirected = asked(Method::GET, "/", "attacker.test");
        assert!(matches!(misdirected, Err(Stranger::Misdirected(_))), "{misdirected:?}");
    }
}
