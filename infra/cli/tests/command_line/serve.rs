//! The HTTP API of a program that serves a data directory.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command};
use std::time::Duration;

use reqwest::multipart::{Form, Part};
use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};
use servers::TestResult;
use servers::mongo::eventually;

use crate::program::{Program, bundled};

pub(crate) const PROJECT: &str = "8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77";
/// The path of its searches.
const SEARCHES: &str = "/projects/8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77/searches";
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// A running server.
pub(crate) struct Server {
    child: Child,
    pub(crate) api: Api,
}

/// The HTTP API of a server, for a client.
#[derive(Clone)]
pub(crate) struct Api {
    pub(crate) url: String,
    pub(crate) client: Client,
}

impl std::ops::Deref for Server {
    type Target = Api;

    fn deref(&self) -> &Api {
        &self.api
    }
}

impl Server {
    pub(crate) fn start(program: &Program) -> Self {
        Self::start_with(program, &["--listen", "127.0.0.1:0"]).0
    }

    /// Starts the server with these arguments. Also returns the lines that it printed before it was ready.
    pub(crate) fn start_with(program: &Program, args: &[&str]) -> (Self, Vec<String>) {
        let mut child = program.start(&[&["serve"], args].concat());
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines().map(Result::unwrap);
        let mut said = Vec::new();
        let line = lines
            .by_ref()
            .inspect(|line| said.push(line.clone()))
            .find(|line| line.contains("answering at"))
            .expect("it says where");
        // Read further output so that it does not fill the pipe.
        std::thread::spawn(move || lines.count());
        let url = line.split_once("answering at ").unwrap().1.to_owned();
        (Self { child, api: Api { url, client: Client::new() } }, said)
    }

    /// Returns the peak resident memory of the server in MiB, without the pages of its executable, which are large in a
    /// debug build.
    #[cfg(target_os = "linux")]
    pub(crate) fn peak_mib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let kib = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse::<u64>().unwrap()
        };
        (kib("VmHWM:") - kib("RssFile:")) / 1_024
    }

    pub(crate) fn stop(mut self) -> Option<i32> {
        let asked = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status().unwrap();
        assert!(asked.success());
        self.child.wait().unwrap().code()
    }
}

impl Api {
    pub(crate) async fn get(&self, path: &str) -> Result<Response, reqwest::Error> {
        self.client.get(format!("{}{path}", self.url)).send().await
    }

    async fn withdraw(&self, search: &str) -> Result<Response, reqwest::Error> {
        self.client.post(format!("{}{SEARCHES}/{search}/cancel", self.url)).send().await
    }

    async fn delete(&self, search: &str) -> Result<Response, reqwest::Error> {
        self.client.delete(format!("{}{SEARCHES}/{search}", self.url)).send().await
    }

    pub(crate) async fn announce(
        &self,
        key: Option<&str>,
        search: &Value,
    ) -> Result<Response, reqwest::Error> {
        let url = format!("{}/projects/{PROJECT}/searches", self.url);
        let request =
            self.client.post(url).header("content-type", "application/json").body(search.to_string());
        match key {
            Some(key) => request.header("Idempotency-Key", key).send().await,
            None => request.send().await,
        }
    }

    pub(crate) async fn upload(&self, upload: &Value, content: &[u8]) -> Result<Response, reqwest::Error> {
        let fields = upload["fields"].as_object().unwrap().iter();
        let form = fields.fold(Form::new(), |form, (name, value)| {
            form.text(name.clone(), value.as_str().unwrap().to_owned())
        });
        let form = form.part("file", Part::bytes(content.to_vec()).file_name("file"));
        self.client.post(upload["url"].as_str().unwrap()).multipart(form).send().await
    }

    pub(crate) async fn until_ended(
        &self,
        search: &str,
    ) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let mut shown = Value::Null;
        eventually("the search has ended", TIMEOUT, async || {
            shown = json_of(self.get(&format!("{SEARCHES}/{search}")).await?).await?;
            Ok::<_, Box<dyn std::error::Error + Send + Sync>>(!shown["completed_at"].is_null())
        })
        .await?;
        Ok(shown)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) async fn json_of(response: Response) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
    Ok(serde_json::from_slice(&response.bytes().await?)?)
}

/// Checks the status and the media type of an error response, and the status in its body. Returns the body.
async fn problem(response: Response, status: u16) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
    assert_eq!(response.status().as_u16(), status);
    assert_eq!(response.headers()["content-type"], "application/problem+json");
    let body = json_of(response).await?;
    assert_eq!(body["status"], status);
    assert!(body["title"].is_string() && body["detail"].is_string(), "{body}");
    Ok(body)
}

pub(crate) fn psycinfo() -> Vec<u8> {
    std::fs::read(bundled("psycinfo.ris")).unwrap()
}

pub(crate) fn search(name: &str) -> Value {
    json!({ "name": name, "files": [{ "name": "psycinfo.ris", "size_bytes": psycinfo().len() }] })
}

#[tokio::test(flavor = "multi_thread")]
async fn page_loads_nothing_from_other_origins() -> TestResult {
    let program = Program::new();
    let server = Server::start(&program);
    let page = server.get("/").await?;
    assert_eq!(page.status(), StatusCode::OK);
    let policy = page.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none';"), "{policy}");
    // The page, or the placeholder until it is built.
    let text = page.text().await?;
    assert!(text.starts_with("<!doctype html>") && text.contains("Search import"), "{text}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn search_is_imported_over_http() -> TestResult {
    let program = Program::new();
    let server = Server::start(&program);
    let response = server.announce(None, &search("Gambling harms")).await?;
    assert_eq!(response.status(), StatusCode::CREATED);
    let place = response.headers()["location"].to_str()?.to_owned();
    let announced = json_of(response).await?;
    let id = announced["search_id"].as_str().unwrap();
    assert_eq!(place, format!("{SEARCHES}/{id}"));
    // The saga updates the search's date when it starts, which may happen between two requests.
    let look = async |path: &str| -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        let mut seen = json_of(server.get(path).await?).await?;
        seen.as_object_mut().and_then(|fields| fields.remove("created_at")).ok_or("no date")?;
        Ok(seen)
    };
    let waiting = look(&place).await?;
    let elsewhere = format!("/projects/{id}/searches/{id}");
    problem(server.get(&elsewhere).await?, 404).await?;
    problem(server.client.delete(format!("{}{elsewhere}", server.url)).send().await?, 404).await?;
    assert_eq!(look(&format!("/searches/{id}")).await?, waiting);
    assert_eq!((&waiting["state"], &waiting["files"][0]["received"]), (&"Uploading".into(), &false.into()));
    let uploaded = server.upload(&announced["files"][0]["upload"], &psycinfo()).await?;
    assert_eq!(uploaded.status(), StatusCode::NO_CONTENT);
    let ended = server.until_ended(id).await?;
    assert_eq!((&ended["state"], &ended["studies"]), (&"Completed".into(), &3.into()), "{ended}");
    assert_eq!(ended["files"][0]["outcome"]["outcome"], "completed");
    assert_eq!(server.stop(), Some(0));
    let studies = program.run(&["studies", id, "--json"]).lines();
    assert_eq!(studies.len(), 3, "what was stored outlives the server");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_idempotency_key_returns_same_search() -> TestResult {
    let program = Program::new();
    let server = Server::start(&program);
    let first = json_of(server.announce(Some("embase-1"), &search("one")).await?).await?;
    let again = server.announce(Some("embase-1"), &search("one")).await?;
    assert_eq!(again.status(), StatusCode::CREATED);
    let again = json_of(again).await?;
    assert_eq!(again["search_id"], first["search_id"]);
    assert_eq!(again["files"][0]["file_id"], first["files"][0]["file_id"]);
    let other = json_of(server.announce(Some("embase-2"), &search("one")).await?).await?;
    assert_ne!(other["search_id"], first["search_id"]);
    problem(server.announce(Some("embase-1"), &search("two")).await?, 422).await?;
    // Either form is accepted, but only once.
    for (forms, status) in [(&again, StatusCode::NO_CONTENT), (&first, StatusCode::CONFLICT)] {
        let uploaded = server.upload(&forms["files"][0]["upload"], &psycinfo()).await?;
        assert_eq!(uploaded.status(), status);
    }
    let id = first["search_id"].as_str().unwrap();
    let ended = server.until_ended(id).await?;
    assert_eq!((&ended["state"], &ended["studies"]), (&"Completed".into(), &3.into()), "{ended}");
    let late = json_of(server.announce(Some("embase-1"), &search("one")).await?).await?;
    assert_eq!((&late["search_id"], &late["files"]), (&first["search_id"], &json!([])), "nothing to upload");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn running_search_is_cancelled_and_ended_deleted() -> TestResult {
    let program = Program::new();
    let server = Server::start(&program);
    let announced = json_of(server.announce(None, &search("withdrawn")).await?).await?;
    let id = announced["search_id"].as_str().unwrap();
    assert_eq!(server.withdraw(id).await?.status(), StatusCode::ACCEPTED);
    let ended = server.until_ended(id).await?;
    assert_eq!((&ended["state"], &ended["name"]), (&"Error".into(), &"withdrawn".into()), "{ended}");
    assert!(ended["reason"].as_str().unwrap().starts_with("withdrawn"), "{ended}");
    assert_eq!(server.withdraw(id).await?.status(), StatusCode::ACCEPTED, "a repeated request");

    let announced = json_of(server.announce(None, &search("read")).await?).await?;
    let id = announced["search_id"].as_str().unwrap();
    problem(server.delete(id).await?, 409).await?;
    server.upload(&announced["files"][0]["upload"], &psycinfo()).await?;
    server.until_ended(id).await?;
    problem(server.withdraw(id).await?, 409).await?;
    assert_eq!(server.delete(id).await?.status(), StatusCode::ACCEPTED);
    problem(server.delete(id).await?, 404).await?;
    problem(server.withdraw(PROJECT).await?, 404).await?;
    problem(server.withdraw("42").await?, 400).await?;
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn project_searches_are_paged_latest_first() -> TestResult {
    let program = Program::new();
    let server = Server::start(&program);
    let mut announced = Vec::new();
    for name in ["one", "two", "three"] {
        announced.push(json_of(server.announce(None, &search(name)).await?).await?["search_id"].clone());
    }
    announced.reverse();
    let list = format!("/projects/{PROJECT}/searches?limit=2");
    let first = json_of(server.get(&list).await?).await?;
    let second =
        json_of(server.get(&format!("{list}&after={}", first["next"].as_str().unwrap())).await?).await?;
    let listed: Vec<Value> = [&first, &second]
        .iter()
        .flat_map(|page| page["items"].as_array().unwrap())
        .map(|search| search["search_id"].clone())
        .collect();
    assert_eq!(listed, announced);
    assert!(second["next"].is_null(), "{second}");
    let nobodys =
        json_of(server.get("/projects/00000000-0000-0000-0000-000000000001/searches").await?).await?;
    assert_eq!(nobodys, json!({ "items": [], "next": null }));
    for bad in ["limit=0", "limit=201", "limit=x", "after=yesterday"] {
        problem(server.get(&format!("/projects/{PROJECT}/searches?{bad}")).await?, 400).await?;
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_requests_are_rejected_with_reason() -> TestResult {
    let program = Program::new();
    let server = Server::start(&program);
    problem(server.get("/nowhere").await?, 404).await?;
    for searches in [SEARCHES, "/searches"] {
        problem(server.get(&format!("{searches}/42")).await?, 400).await?;
        problem(server.get(&format!("{searches}/{PROJECT}")).await?, 404).await?;
    }
    problem(server.get(&format!("/projects/42/searches/{PROJECT}")).await?, 400).await?;
    problem(server.client.delete(format!("{}/openapi.json", server.url)).send().await?, 405).await?;
    problem(server.announce(Some(""), &search("a")).await?, 400).await?;
    problem(server.announce(Some(&"k".repeat(256)), &search("a")).await?, 400).await?;
    problem(server.announce(None, &json!({ "files": [] })).await?, 400).await?;
    problem(server.announce(None, &search(&"n".repeat(300_000))).await?, 413).await?;
    let url = format!("{}/projects/{PROJECT}/searches", server.url);
    problem(server.client.post(url).body("{}").send().await?, 415).await?;
    let long = "n".repeat(1_000);
    let files: Vec<Value> = ["../../etc/passwd", "a\u{7}.ris", &long, "good.ris"]
        .iter()
        .map(|name| json!({ "name": name, "size_bytes": 5 }))
        .chain([
            json!({ "name": "empty.ris", "size_bytes": 0 }),
            json!({ "name": "huge.ris", "size_bytes": 6_000_000_000_u64 }),
        ])
        .collect();
    let refused =
        problem(server.announce(None, &json!({ "name": "bad", "files": files })).await?, 422).await?;
    let at: Vec<u64> =
        refused["errors"].as_array().unwrap().iter().filter_map(|error| error["file"].as_u64()).collect();
    assert_eq!(at, [0, 1, 2, 4, 5], "{refused}");
    let many: Vec<Value> = (0..51).map(|n| json!({ "name": format!("{n}.ris"), "size_bytes": 1 })).collect();
    problem(server.announce(None, &json!({ "name": "many", "files": many })).await?, 422).await?;
    let listed = json_of(server.get(&format!("/projects/{PROJECT}/searches")).await?).await?;
    assert_eq!(listed["items"], json!([]), "nothing is stored");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn upload_requires_form_and_file() -> TestResult {
    let program = Program::new().setting("SEARCH_IMPORT_MAX_FILE_BYTES", "10000");
    let server = Server::start(&program);
    let announced = json_of(server.announce(None, &search("small")).await?).await?;
    let upload = &announced["files"][0]["upload"];
    let mut foreign = upload.clone();
    foreign["fields"]["key"] = "uploads/of/somebody/else".into();
    assert_eq!(server.upload(&foreign, b"TY  - JOUR").await?.status(), StatusCode::FORBIDDEN);
    let size = psycinfo().len();
    for (file, status) in [
        (0, StatusCode::BAD_REQUEST),
        (size - 1, StatusCode::BAD_REQUEST),
        (size + 1, StatusCode::PAYLOAD_TOO_LARGE),
        (10_000_000, StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        assert_eq!(server.upload(upload, &vec![b'x'; file]).await?.status(), status, "{file}");
    }
    let url = upload["url"].as_str().unwrap();
    let without = server.client.post(url).multipart(Form::new().text("key", "k")).send().await?;
    assert_eq!(without.status(), StatusCode::BAD_REQUEST);
    let shown =
        json_of(server.get(&format!("{SEARCHES}/{}", announced["search_id"].as_str().unwrap())).await?)
            .await?;
    assert_eq!(shown["files"][0]["received"], false);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn openapi_description_is_served() -> TestResult {
    let program = Program::new();
    let server = Server::start(&program);
    let description = json_of(server.get("/openapi.json").await?).await?;
    assert!(description["openapi"].as_str().unwrap().starts_with("3."), "{description}");
    let copy: Value = serde_json::from_str(include_str!("../../../../docs/openapi.json"))?;
    assert_eq!(description, copy, "as the docs have it");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn next_start_finishes_work_of_killed_server() -> TestResult {
    let program = Program::new();
    let mut searches = Vec::new();
    // Kill the server right after the response to the last upload.
    let server = Server::start(&program);
    for n in 0..5 {
        let announced = json_of(server.announce(None, &search(&n.to_string())).await?).await?;
        assert!(server.upload(&announced["files"][0]["upload"], &psycinfo()).await?.status().is_success());
        searches.push(announced["search_id"].as_str().unwrap().to_owned());
    }
    drop(server);
    let server = Server::start(&program);
    for search in searches {
        let ended = server.until_ended(&search).await?;
        assert_eq!((&ended["state"], &ended["studies"]), (&"Completed".into(), &3.into()), "{ended}");
    }
    Ok(())
}

/// The server stops while it reads a hostile file, and starts again while the file is queued.
#[tokio::test(flavor = "multi_thread")]
async fn hostile_file_delays_neither_stop_nor_restart() -> TestResult {
    let program = Program::new();
    let hostile = ["@article{a,\n", &"a={\n".repeat(1 << 18), "}\n"].concat();
    let mut searches = Vec::new();
    let server = Server::start(&program);
    for (name, content) in [("hostile.bib", hostile.into_bytes()), ("good.ris", psycinfo())] {
        let manifest = json!({ "name": name, "files": [{ "name": name, "size_bytes": content.len() }] });
        let announced = json_of(server.announce(None, &manifest).await?).await?;
        assert!(server.upload(&announced["files"][0]["upload"], &content).await?.status().is_success());
        searches.push(announced["search_id"].as_str().unwrap().to_owned());
    }
    assert!(server.get("/health").await?.status().is_success());
    assert_eq!(server.stop(), Some(0));
    let server = Server::start(&program);
    assert!(server.get("/health").await?.status().is_success());
    let good = server.until_ended(&searches[1]).await?;
    assert_eq!((&good["state"], &good["studies"]), (&"Completed".into(), &3.into()), "{good}");
    let ended = server.until_ended(&searches[0]).await?;
    assert_eq!(ended["files"][0]["outcome"]["outcome"], "failed", "{ended}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn event_stream_reports_end_of_search() -> TestResult {
    let program = Program::new();
    let server = Server::start(&program);
    let announced = json_of(server.announce(None, &search("followed")).await?).await?;
    let id = announced["search_id"].as_str().unwrap();
    let mut followed = server.get(&format!("{SEARCHES}/{id}/events")).await?;
    assert_eq!(followed.headers()["content-type"], "text/event-stream");
    let mut project = server.get(&format!("/projects/{PROJECT}/events")).await?;
    server.upload(&announced["files"][0]["upload"], &psycinfo()).await?;
    let mut seen = String::new();
    // The stream ends with the search.
    while let Some(piece) = tokio::time::timeout(TIMEOUT, followed.chunk()).await?? {
        seen.push_str(std::str::from_utf8(&piece)?);
    }
    let states = seen.lines().filter_map(|line| line.strip_prefix("data: "));
    let states: Vec<Value> = states.map(serde_json::from_str).collect::<Result<_, _>>()?;
    assert_eq!(states.first().unwrap()["state"], "Uploading", "{seen}");
    assert_eq!(states.last().unwrap()["state"], "Completed", "{seen}");
    assert!(project.chunk().await?.is_some());
    // The client neither reads further nor disconnects.
    assert_eq!(server.stop(), Some(0));
    Ok(())
}
