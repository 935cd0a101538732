//! The HTTP API for searches and their results.

mod bulk;
mod changes;
mod duplicates;
mod exports;
mod failures;
mod health;
mod history;
mod lists;
mod live;
mod marking_work;
mod members;
mod overview;
mod raw;
mod results;
mod reviews;
mod searches;
mod sources;
mod words;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use contracts::sample;
use http_api::router;
use imports::messages::ObjectRef;
use imports::{
    Counts, FileFence, FileId, Job, JobFile, JobState, Outcome, ParseAttempts, ParsedFile, ProjectId,
    SearchId, Study, WriteStudies,
};
use outbox::{View, WriteViews};
use references::READER_VERSION;
use serde_json::Value;
use service::AnnouncedSearch;
use tower::ServiceExt;
use uuid::Uuid;

use crate::world::World;

/// Two studies, and a record that is not text.
const FIRST: &str = "TY  - JOUR\nTI  - First\nAU  - One, Ann\nDO  - 10.5555/a\nER  - \n\n\
                     TY  - JOUR\nTI  - Zweite Ärztestudie\nJO  - Gambling\nER  - \n\n\
                     TY  - JOUR\nTI  - Bad \u{1}\u{1}\u{1}\u{1}\u{1} title\nER  - \n";
/// The first study again, and a different one.
const SECOND: &str = "TY  - JOUR\nTI  - The first one\nAU  - One A\nDO  - 10.5555/A\nER  - \n\n\
                      TY  - JOUR\nTI  - Third\nER  - \n";

/// Returns a world in which a search of both files was imported, and the path of the search.
async fn imported() -> (World, AnnouncedSearch, String) {
    let world = World::new();
    let announced = world.announce(&["a.ris", "b.ris"]).await;
    for (index, content) in [FIRST, SECOND].into_iter().enumerate() {
        world.upload(&announced, index, content).await;
    }
    world.run().await;
    let path = path_of(announced.search_id);
    (world, announced, path)
}

pub(crate) fn path_of(search: SearchId) -> String {
    format!("/projects/{}/searches/{search}", Uuid::nil())
}

pub(crate) fn api(world: &World) -> Router {
    router(world.functions.start_upload.clone())
}

/// Returns status, headers and body of a response.
async fn ask(api: &Router, path: &str, tag: Option<&str>) -> (StatusCode, HeaderMap, Vec<u8>) {
    let request = Request::get(path.replace(' ', "%20"));
    let request = tag.into_iter().fold(request, |request, tag| request.header("If-None-Match", tag));
    let (parts, body) = api.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap().into_parts();
    (parts.status, parts.headers, to_bytes(body, usize::MAX).await.unwrap().into())
}

/// Works like [`ask`], for a request with a JSON body whose response is JSON or empty.
async fn post(api: &Router, path: &str, body: &Value) -> (StatusCode, HeaderMap, Value) {
    let request = Request::post(path).header("Content-Type", "application/json");
    let request = request.body(Body::from(body.to_string())).unwrap();
    let (parts, body) = api.clone().oneshot(request).await.unwrap().into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    let answer = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body).unwrap() };
    (parts.status, parts.headers, answer)
}

pub(crate) async fn get(api: &Router, path: &str) -> Value {
    let (status, _, body) = ask(api, path, None).await;
    assert_eq!(status, StatusCode::OK, "{path}: {}", String::from_utf8_lossy(&body));
    serde_json::from_slice(&body).unwrap()
}

/// Returns the status and the detail of an error response.
async fn refusal(api: &Router, path: &str) -> (u16, String) {
    let (status, headers, body) = ask(api, path, None).await;
    assert_eq!(headers["content-type"], "application/problem+json", "{path}: {status}");
    let problem: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem["status"], status.as_u16());
    (status.as_u16(), problem["detail"].as_str().unwrap().to_owned())
}

/// Returns all items of a list, fetched page by page, and the size of each page.
async fn all(api: &Router, path: &str) -> (Vec<Value>, Vec<usize>) {
    let (mut items, mut sizes, mut after) = (Vec::new(), Vec::new(), String::new());
    loop {
        let page = get(api, &format!("{path}{after}")).await;
        let found = page["items"].as_array().unwrap();
        sizes.push(found.len());
        items.extend(found.iter().cloned());
        match page["next"].as_str() {
            Some(next) => after = format!("{}after={next}", if path.contains('?') { "&" } else { "?" }),
            None => return (items, sizes),
        }
    }
}

fn titles(items: &[Value]) -> Vec<&str> {
    items.iter().map(|item| item["title"].as_str().unwrap()).collect()
}

/// Stores a search of one file with these studies, as if they had been read.
async fn stored(world: &World, study: impl Fn(SearchId, FileId, u64) -> Study, count: u64) -> SearchId {
    let (search_id, file_id) = (sample::partition(&*world.host), testing::search::file(&*world.host));
    let fence = world.store().start(search_id, file_id, READER_VERSION).await.unwrap().fence;
    let held = FileFence { search_id, file_id, fence };
    let studies: Vec<Study> = (1..=count).map(|record| study(search_id, file_id, record)).collect();
    for batch in studies.chunks(1_000) {
        world.store().store(&held, batch.to_vec(), vec![]).await.unwrap();
    }
    let object = ObjectRef {
        bucket: "uploads".to_owned(),
        key: "uploads/none.ris".to_owned(),
        version: None,
        size_bytes: u64::MAX,
    };
    let name = "none.ris".to_owned();
    let name_of = name.clone();
    let (parts, announced_at) = (Vec::new(), None);
    let file = ParsedFile { search_id, file_id, position: 0, name: name_of, object, parts, announced_at };
    world.store().finish(&file).await.unwrap();
    let counts = Counts { records: count, studies: count, encoding: "UTF-8".to_owned(), ..Counts::default() };
    let file = JobFile {
        file_id,
        name: Some(name),
        size_bytes: Some(1),
        announced_bytes: None,
        received: true,
        outcome: Some(Outcome::Completed(counts)),
    };
    let job = Job {
        project_id: ProjectId::from_uuid(Uuid::nil()),
        files: vec![file],
        ..testing::search::job(&*world.host, search_id, 1, JobState::Completed)
    };
    world.store().write(&[View::from(&job)]).await.unwrap();
    search_id
}
