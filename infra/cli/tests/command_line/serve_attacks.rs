//! Malformed and unauthorized requests to a server: every rejection has its status and one line of text, no connection
//! hangs, and afterwards the server still responds.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use reqwest::StatusCode;
use serde_json::{Value, json};
use servers::TestResult;

use crate::program::Program;
use crate::serve::{PROJECT, Server, json_of, psycinfo, search};

/// A time beyond every limit of the server.
const BOUND: Duration = Duration::from_secs(90);
const BOUNDARY: &str = "form-boundary";

/// The bytes of a request, and the expected status.
type Attack = (&'static str, u16, Vec<u8>);

fn raw(name: &'static str, status: u16, bytes: impl Into<Vec<u8>>) -> Attack {
    (name, status, bytes.into())
}

/// Returns a request with these header fields in addition to those of every request.
fn request(name: &'static str, status: u16, line: &str, fields: &str, body: impl AsRef<[u8]>) -> Attack {
    let body = body.as_ref();
    let length = body.len();
    let mut bytes = format!(
        "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {length}\r\n{fields}\r\n"
    )
    .into_bytes();
    bytes.extend_from_slice(body);
    (name, status, bytes)
}

fn not_http() -> Vec<Attack> {
    let get = |rest: &str| format!("GET / HTTP/1.1\r\nhost: localhost\r\n{rest}");
    let post = |rest: &str| {
        format!(
            "POST /projects/{PROJECT}/searches HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\
                 content-type: application/json\r\n{rest}"
        )
    };
    vec![
        raw("noise", 400, vec![0xff; 64]),
        raw("zeros", 400, vec![0; 64]),
        raw("a TLS hello", 400, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec()),
        raw("HTTP/2", 505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
        raw("HTTP/0.9", 400, "GET /\r\n\r\n"),
        raw("HTTP/3", 400, "GET / HTTP/3.0\r\nhost: localhost\r\n\r\n"),
        raw("SSH", 400, "SSH-2.0-OpenSSH_9.9\r\n"),
        raw("SMTP", 400, "EHLO localhost\r\n\r\n"),
        raw("no method", 400, " / HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        raw("a method of symbols", 400, "G(T / HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        raw("a space in the address", 400, "GET /a b HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        raw("a control character in the address", 400, "GET /\x01 HTTP/1.1\r\nhost: localhost\r\n\r\n"),
        raw("a field without a colon", 400, get("nothing\r\n\r\n")),
        raw("a field with a space in its name", 400, get("a b: c\r\n\r\n")),
        raw("a field without a name", 400, get(": c\r\n\r\n")),
        raw("a NUL in a field", 400, get("a: \0\r\n\r\n")),
        raw("a folded field", 400, get("a: b\r\n c\r\n\r\n")),
        raw("a bare carriage return", 400, get("a: b\rc: d\r\n\r\n")),
        raw("101 fields", 431, get(&format!("{}\r\n", "a: b\r\n".repeat(101)))),
        raw("10,000 fields", 431, get(&format!("{}\r\n", "a: b\r\n".repeat(10_000)))),
        raw("a field of 40 kB", 431, get(&format!("a: {}\r\n\r\n", "b".repeat(40_000)))),
        raw("a field of 4 MB", 431, get(&format!("a: {}\r\n\r\n", "b".repeat(4_000_000)))),
        raw(
            "an address of 40 kB",
            431,
            format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "a".repeat(40_000)),
        ),
        raw("a length in words", 400, post("content-length: ten\r\n\r\n0123456789")),
        raw("a negative length", 400, post("content-length: -1\r\n\r\n0123456789")),
        raw("a length with a sign", 400, post("content-length: +10\r\n\r\n0123456789")),
        raw("a length beyond 64 bits", 400, post("content-length: 99999999999999999999\r\n\r\n0123456789")),
        raw("two lengths", 400, post("content-length: 5\r\ncontent-length: 10\r\n\r\n0123456789")),
        raw("an encoding that is not chunked", 400, post("transfer-encoding: gzip\r\n\r\n0123456789")),
        raw("chunked, but not at last", 400, post("transfer-encoding: chunked, gzip\r\n\r\n0\r\n\r\n")),
        raw("a chunk of no size", 400, post("transfer-encoding: chunked\r\n\r\nx\r\n\r\n")),
        raw("a chunk of a huge size", 400, post("transfer-encoding: chunked\r\n\r\nffffffffffffffffff\r\n")),
        raw(
            "a chunk longer than it says",
            400,
            post("transfer-encoding: chunked\r\n\r\n1\r\n{}\r\n0\r\n\r\n"),
        ),
        raw(
            "a chunk with a long extension",
            400,
            post(&format!("transfer-encoding: chunked\r\n\r\n1;{}\r\n{{\r\n0\r\n\r\n", "x".repeat(100_000))),
        ),
    ]
}

fn foreign_clients() -> Vec<Attack> {
    let list = format!("/projects/{PROJECT}/searches");
    let get = |host: &str| format!("GET {list} HTTP/1.1\r\n{host}connection: close\r\n\r\n");
    let from = |name, field: &str| request(name, 403, &format!("GET {list}"), &format!("{field}\r\n"), "");
    vec![
        raw("no host", 400, get("")),
        raw("no host in HTTP/1.0", 400, format!("GET {list} HTTP/1.0\r\n\r\n")),
        raw("an empty host", 400, get("host:\r\n")),
        raw("two hosts", 400, get("host: localhost\r\nhost: localhost\r\n")),
        raw("a host with a user", 400, get("host: somebody@localhost\r\n")),
        raw("a host with a path", 400, get("host: localhost/x\r\n")),
        raw("a host that was rebound", 421, get("host: attacker.test:8080\r\n")),
        raw("a host that begins like ours", 421, get("host: localhost.attacker.test\r\n")),
        raw("a host that ends like ours", 421, get("host: attacker-localhost\r\n")),
        raw("another machine's address", 421, get("host: 192.0.2.1\r\n")),
        raw("every address", 421, get("host: 0.0.0.0\r\n")),
        raw(
            "an address that says another host",
            400,
            format!(
                "GET http://attacker.test{list} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
            ),
        ),
        from("a foreign page that reads", "sec-fetch-site: cross-site"),
        from("a page on another port", "sec-fetch-site: same-site"),
        from("a page that says two things", "sec-fetch-site: same-origin\r\nsec-fetch-site: cross-site"),
        from("a foreign origin", "origin: http://attacker.test"),
        from("the origin of a file", "origin: null"),
        from("the origin of another port", "origin: http://localhost:1"),
        request(
            "a foreign page that announces",
            403,
            &format!("POST {list}"),
            "origin: http://attacker.test\r\ncontent-type: text/plain\r\n",
            "{}",
        ),
        request(
            "a foreign page that withdraws",
            403,
            &format!("DELETE /searches/{PROJECT}"),
            "origin: http://attacker.test\r\n",
            "",
        ),
        request(
            "a foreign page that uploads",
            403,
            "POST /uploads",
            "sec-fetch-site: cross-site\r\ncontent-type: multipart/form-data; boundary=x\r\n",
            "",
        ),
        request(
            "a foreign page that asks first",
            403,
            &format!("OPTIONS {list}"),
            "origin: http://attacker.test\r\naccess-control-request-method: DELETE\r\n",
            "",
        ),
    ]
}

fn requests() -> Vec<Attack> {
    let list = format!("/projects/{PROJECT}/searches");
    let announce = |name, status, body: &[u8]| {
        request(name, status, &format!("POST {list}"), "content-type: application/json\r\n", body)
    };
    let manifest = |files: Value| json!({ "name": "n", "files": files }).to_string();
    vec![
        request("nothing there", 404, "GET /nowhere", "", ""),
        request("a path upwards", 404, "GET /../../etc/passwd", "", ""),
        request("an escaped path upwards", 404, "GET /%2e%2e/%2e%2e/etc/passwd", "", ""),
        request("a broken escape", 400, "GET /searches/%zz", "", ""),
        request("an escaped NUL", 400, "GET /searches/%00", "", ""),
        request("an address that no UTF-8 escapes", 400, "GET /searches/%ff%fe", "", ""),
        request("a long address", 404, &format!("GET /{}", "a".repeat(20_000)), "", ""),
        request("an asterisk", 404, "OPTIONS *", "", ""),
        request("a proxy's request", 400, "CONNECT example.test:443", "", ""),
        request("an unknown method", 405, &format!("BREW {list}"), "", ""),
        request("a method that is not for this", 405, &format!("DELETE {list}"), "", ""),
        request("a trace", 405, &format!("TRACE {list}"), "", ""),
        request("a search that is no id", 400, "GET /searches/42", "", ""),
        request("a search that is not there", 404, &format!("GET /searches/{PROJECT}"), "", ""),
        request("a project that is no id", 400, "GET /projects/'%20OR%201=1/searches", "", ""),
        request("a negative limit", 400, &format!("GET {list}?limit=-1"), "", ""),
        request("a large limit", 400, &format!("GET {list}?limit=99999999999999999999"), "", ""),
        request("a cursor without an id", 400, &format!("GET {list}?after=1.1"), "", ""),
        request(
            "a page before all time",
            400,
            &format!("GET {list}?after=-{}.{PROJECT}", "9".repeat(30)),
            "",
            "",
        ),
        request("no type", 415, &format!("POST {list}"), "", "{}"),
        request("another type", 415, &format!("POST {list}"), "content-type: text/xml\r\n", "<a/>"),
        announce("no body", 400, b""),
        announce("no JSON", 400, b"{"),
        announce("no UTF-8", 400, b"\"\xff\""),
        announce("deep JSON", 400, "[".repeat(100_000).as_bytes()),
        announce("a number", 400, b"1e999"),
        announce("a body of 300 kB", 413, &vec![b' '; 300_000]),
        announce("a body of 10 MB", 413, &vec![b' '; 10_000_000]),
        announce("no files", 422, manifest(json!([])).as_bytes()),
        announce("a path for a name", 422, manifest(json!([{ "name": "../x", "size_bytes": 1 }])).as_bytes()),
        announce("a file of no size", 422, manifest(json!([{ "name": "x", "size_bytes": 0 }])).as_bytes()),
        announce("a size below zero", 400, manifest(json!([{ "name": "x", "size_bytes": -1 }])).as_bytes()),
        announce(
            "a size of 18 EB",
            422,
            manifest(json!([{ "name": "x", "size_bytes": u64::MAX }])).as_bytes(),
        ),
        request(
            "an empty key",
            400,
            &format!("POST {list}"),
            "content-type: application/json\r\nidempotency-key:\r\n",
            "{}",
        ),
        request(
            "a key beyond ASCII",
            400,
            &format!("POST {list}"),
            "content-type: application/json\r\nidempotency-key: \u{e4}\r\n",
            "{}",
        ),
    ]
}

fn part(name: &str, text: &str) -> String {
    format!("--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"{name}\"\r\n\r\n{text}\r\n")
}

/// Returns a form of these parts with its final boundary.
fn form(name: &'static str, status: u16, parts: &str) -> Attack {
    unended(name, status, &format!("{parts}--{BOUNDARY}--\r\n"))
}

fn unended(name: &'static str, status: u16, body: &str) -> Attack {
    let kind = format!("content-type: multipart/form-data; boundary={BOUNDARY}\r\n");
    request(name, status, "POST /uploads", &kind, body)
}

/// Returns attacks on uploads. `key` belongs to a form for a file of `size` bytes.
fn uploads(key: &str, size: usize) -> Vec<Attack> {
    let upload = |name, status, line: &str, kind: &str| request(name, status, line, kind, "x");
    let key = part("key", key);
    let file = part("file", &"x".repeat(size));
    let flood = "x".repeat(8_000_000);
    vec![
        upload("reading uploads", 405, "GET /uploads", ""),
        upload("putting an upload", 405, "PUT /uploads", ""),
        upload("deleting uploads", 405, "DELETE /uploads", ""),
        upload("asking what uploads allow", 405, "OPTIONS /uploads", ""),
        upload("a path below", 404, "POST /uploads/x", ""),
        upload("no type", 400, "POST /uploads", ""),
        upload("another type", 400, "POST /uploads", "content-type: application/json\r\n"),
        upload("no boundary", 400, "POST /uploads", "content-type: multipart/form-data\r\n"),
        unended("no parts", 400, ""),
        form("only an end", 400, ""),
        unended("no boundary in sight", 413, &flood),
        unended("lines and no boundary in sight", 413, &"\r\n--form-boundar\r\n".repeat(500_000)),
        unended("a part whose head never ends", 413, &format!("--{BOUNDARY}\r\na: {flood}")),
        unended("a part of many fields", 400, &format!("--{BOUNDARY}\r\n{}\r\n", "a: b\r\n".repeat(5_000))),
        unended("a part without a head", 400, &format!("--{BOUNDARY}\r\nx\r\n\r\n")),
        form("a field of 9 kB", 400, &part("key", &"x".repeat(9_000))),
        form("a field of 8 MB", 400, &part("key", &flood)),
        form("60 fields", 400, &(0..60).map(|n| part(&n.to_string(), "")).collect::<String>()),
        form("a field twice", 400, &format!("{key}{key}{file}")),
        form("no file", 400, &key),
        form("a file without a form", 403, &file),
        form("a form that nobody made", 403, &format!("{}{file}", part("key", "uploads/of/somebody/else"))),
        form("a key with line breaks", 403, &format!("{}{file}", part("key", "a\r\nb\u{1b}[2J"))),
        form("a file before its form", 403, &format!("{file}{key}")),
        form("an empty file", 400, &format!("{key}{}", part("file", ""))),
        form("a file that is too short", 400, &format!("{key}{}", part("file", "x"))),
        form("a file that is too long", 413, &format!("{key}{}", part("file", &"x".repeat(size + 1)))),
        form("a file that is much too long", 413, &format!("{key}{}", part("file", &flood))),
        unended("a file that breaks off", 400, &format!("{key}{}", part("file", "x"))),
    ]
}

/// Sends bytes and reads until the server closes the connection.
fn answer(address: &str, bytes: &[u8]) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(BOUND))?;
    let mut writing = stream.try_clone()?;
    let mut said = Vec::new();
    std::thread::scope(|scope| {
        // The server may close the connection before it has read all bytes.
        scope.spawn(move || writing.write_all(bytes));
        stream.read_to_end(&mut said)
    })?;
    Ok(String::from_utf8_lossy(&said).into_owned())
}

/// Returns the fault of a response, if any.
fn fault(status: u16, answer: &std::io::Result<String>) -> Option<String> {
    let answer = match answer {
        Ok(answer) => answer,
        Err(error) => return Some(error.to_string()),
    };
    let said = answer.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5));
    let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
    let is_line = !body.trim().is_empty() && body.lines().count() == 1 && !body.contains('\u{1b}');
    let is_right = said == Some(&status.to_string()) && is_line;
    (!is_right).then(|| answer.chars().take(500).collect())
}

#[tokio::test(flavor = "multi_thread")]
async fn attacks_are_rejected_with_one_line() -> TestResult {
    let program = Program::new();
    let server = Server::start(&program);
    let announced = json_of(server.announce(None, &search("attacked")).await?).await?;
    let upload = &announced["files"][0]["upload"];
    let key = upload["fields"]["key"].as_str().unwrap();
    let attacks = [not_http(), foreign_clients(), requests(), uploads(key, psycinfo().len())].concat();
    assert!(attacks.len() >= 100, "{}", attacks.len());
    let address = server.url.strip_prefix("http://").unwrap();
    let faults: Vec<String> = std::thread::scope(|scope| {
        let attack = |(name, status, bytes): &Attack| {
            let fault = fault(*status, &answer(address, bytes))?;
            Some(format!("{name}: not {status} but {fault:?}"))
        };
        let under_way: Vec<_> = attacks.iter().map(|one| scope.spawn(move || attack(one))).collect();
        under_way.into_iter().filter_map(|attack| attack.join().unwrap()).collect()
    });
    assert!(faults.is_empty(), "{} of {}:\n{}", faults.len(), attacks.len(), faults.join("\n"));
    // The form is still unused, and nothing else was stored.
    assert_eq!(server.upload(upload, &psycinfo()).await?.status(), StatusCode::NO_CONTENT);
    let listed = json_of(server.get(&format!("/projects/{PROJECT}/searches")).await?).await?;
    assert_eq!(listed["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(server.stop(), Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn other_machines_need_the_printed_token() -> TestResult {
    let program = Program::new();
    let (server, said) =
        Server::start_with(&program, &["--listen", "0.0.0.0:0", "--host", "imports.example"]);
    let token = said.iter().find_map(|line| line.trim().strip_prefix("Authorization: ")).expect("a token");
    let url = server.url.replace("0.0.0.0", "127.0.0.1");
    let list = format!("{url}/projects/{PROJECT}/searches");
    assert_eq!(server.client.get(&list).send().await?.status(), StatusCode::UNAUTHORIZED);
    // The page contains no data, and asks users for the token.
    assert_eq!(server.client.get(&url).send().await?.status(), StatusCode::OK);
    let shown =
        |host: &str| server.client.get(&list).header("authorization", token).header("host", host).send();
    assert_eq!(shown("127.0.0.1").await?.status(), StatusCode::OK);
    assert_eq!(shown("imports.example").await?.status(), StatusCode::OK);
    assert_eq!(shown("attacker.test").await?.status(), StatusCode::MISDIRECTED_REQUEST);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_clients_need_the_printed_token() -> TestResult {
    let program = Program::new();
    let (server, said) =
        Server::start_with(&program, &["--listen", "127.0.0.1:0", "--host", "imports.example"]);
    let token = said.iter().find_map(|line| line.trim().strip_prefix("Authorization: ")).expect("a token");
    let searches = format!("{}/projects/{PROJECT}/searches", server.url);
    let groups = format!("{}/admin/failures/groups", server.url);
    // A proxy may forward the host name that its clients use, or the server's address.
    for host in ["imports.example", "127.0.0.1"] {
        for request in [
            server.client.get(&searches),
            server.client.get(&groups),
            server.client.delete(format!("{searches}/{PROJECT}")),
        ] {
            let status = request.header("host", host).send().await?.status();
            assert_eq!(status, StatusCode::UNAUTHORIZED, "{host}");
        }
        let shown = server.client.get(&searches).header("host", host).header("authorization", token);
        assert_eq!(shown.send().await?.status(), StatusCode::OK, "{host}");
    }
    assert_eq!(server.stop(), Some(0));
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_ignores_partial_requests_and_idle_connections() -> TestResult {
    let program = Program::new();
    let server = Server::start(&program);
    let address = server.url.strip_prefix("http://").unwrap();
    let sent: [&[u8]; 3] = [b"", b"G", b"POST /uploads HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n"];
    let mut held = Vec::new();
    for bytes in sent {
        let mut stream = TcpStream::connect(address)?;
        stream.write_all(bytes)?;
        held.push(stream);
    }
    // The server has accepted the connections, because it accepts them in order.
    assert_eq!(server.get("/openapi.json").await?.status(), StatusCode::OK);
    assert_eq!(server.stop(), Some(0));
    Ok(())
}
