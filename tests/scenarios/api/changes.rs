//! The change feed for clients that poll.

use axum::Router;
use axum::http::StatusCode;
use contracts::sample;
use imports::{FileId, Job, JobState, Progress, ProjectId, ReportProgress, SearchId};
use outbox::{View, WriteViews};
use serde_json::Value;
use service::{MAX_SEEN, ProjectAccess};
use uuid::Uuid;

use super::{api, ask, get, path_of, refusal};
use crate::world::{TWO_RECORDS, World};

const CHANGES: &str = "/projects/00000000-0000-0000-0000-000000000000/changes";

/// A client that polls.
struct Client {
    api: Router,
    limit: usize,
    next: String,
}

impl Client {
    async fn begin(world: &World, limit: usize) -> Self {
        let api = api(world);
        let begin = get(&api, CHANGES).await;
        assert_eq!(begin["items"], serde_json::json!([]));
        Self { next: begin["next"].as_str().unwrap().to_owned(), api, limit }
    }

    fn path(&self) -> String {
        format!("{CHANGES}?limit={}&since={}", self.limit, self.next)
    }

    async fn poll(&mut self) -> Vec<Value> {
        let answer = get(&self.api, &self.path()).await;
        self.next = answer["next"].as_str().unwrap().to_owned();
        answer["items"].as_array().unwrap().clone()
    }

    /// Returns the state of each changed search, by search.
    async fn states(&mut self) -> Vec<(String, String)> {
        let state = |item: &Value| match &item["search"] {
            Value::Null => (item["deleted"] == true).then(|| "deleted".to_owned()),
            search => search["state"].as_str().map(str::to_owned),
        };
        let told = self.poll().await;
        told.iter()
            .map(|item| (item["search_id"].as_str().unwrap().to_owned(), state(item).unwrap()))
            .collect()
    }
}

fn told(search: SearchId, state: &str) -> (String, String) {
    (search.to_string(), state.to_owned())
}

#[tokio::test]
async fn polling_client_receives_each_change_once() {
    let world = World::new();
    let earlier = world.announce(&["earlier.ris"]).await.search_id;
    let mut client = Client::begin(&world, 50).await;
    assert_eq!(client.states().await, [], "earlier changes are in the list");

    let announced = world.announce(&["a.ris", "b.ris"]).await;
    let search = announced.search_id;
    assert_eq!(client.states().await, [told(search, "Uploading")]);
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    let [item] = client.poll().await.try_into().unwrap();
    assert_eq!(
        item["search"],
        get(&client.api, &path_of(search)).await,
        "the change contains the search as a request returns it"
    );
    assert_eq!(item["search"]["files"][0]["received"], true);
    world.upload(&announced, 1, TWO_RECORDS).await;
    world.run().await;
    assert_eq!(client.states().await, [told(search, "Completed")]);
    // The sweep rewrites known state.
    world.pass(std::time::Duration::from_secs(60)).await;
    assert_eq!(client.states().await, []);

    let everywhere = ProjectAccess::All;
    world.functions.start_upload.cancel(&everywhere, earlier).await.unwrap();
    world.run().await;
    assert_eq!(client.states().await, [told(earlier, "Error")]);
    world.functions.start_upload.delete(&everywhere, search).await.unwrap();
    assert_eq!(client.states().await, [told(search, "deleted")]);
    world.run().await;
    assert_eq!(client.states().await, []);
}

#[tokio::test]
async fn stream_client_receives_only_new_changes() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let mut client = Client::begin(&world, 50).await;
    client.poll().await;
    let (_, headers, _) = ask(&client.api, &client.path(), None).await;
    let tag = headers["etag"].to_str().unwrap().to_owned();
    let next = client.next.clone();
    assert_eq!(client.poll().await, Vec::<Value>::new());
    assert_eq!(client.next, next, "the cursor stays the same without changes");
    let ask = async || ask(&client.api, &client.path(), Some(&tag)).await.0;
    assert_eq!(ask().await, StatusCode::NOT_MODIFIED);
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    assert_eq!(ask().await, StatusCode::OK);
}

#[tokio::test]
async fn reading_progress_is_a_change() {
    let world = World::new();
    let announced = world.announce(&["a.ris"]).await;
    let mut client = Client::begin(&world, 50).await;
    let (search, file): (SearchId, FileId) = (announced.search_id, announced.files[0].file_id);
    for records in [1, 2] {
        world.store().report(search, file, Progress { records, bytes: records }).await.unwrap();
        let [item] = client.poll().await.try_into().unwrap();
        assert_eq!(item["search"]["files"][0]["progress"]["records"], records);
        assert_eq!(client.poll().await, Vec::<Value>::new());
    }
}

/// Stores searches without documents, only with views.
async fn write(world: &World, count: usize, state: JobState) -> Vec<String> {
    let jobs = (0..count).map(|_| {
        let job = testing::search::job(&*world.host, sample::partition(&*world.host), 1, state);
        Job { project_id: ProjectId::from_uuid(Uuid::nil()), ..job }
    });
    let jobs: Vec<Job> = jobs.collect();
    world.store().write(&jobs.iter().map(View::from).collect::<Vec<_>>()).await.unwrap();
    jobs.iter().map(|job| job.search_id.to_string()).collect()
}

/// A client catches up after any absence, also with changes made in the meantime.
#[tokio::test]
async fn absent_client_catches_up_page_by_page() {
    let world = World::new();
    write(&world, 10, JobState::Completed).await;
    let mut client = Client::begin(&world, 40).await;
    let mut missed = write(&world, 230, JobState::Completed).await;
    let (mut caught, mut sizes) = (Vec::new(), Vec::new());
    loop {
        let page: Vec<String> = client.states().await.into_iter().map(|(search, _)| search).collect();
        sizes.push(page.len());
        caught.extend(page);
        if sizes.len() == 3 {
            missed.extend(write(&world, 1, JobState::Error).await);
        }
        if sizes.last().is_some_and(|size| *size < client.limit) {
            break;
        }
    }
    assert_eq!((caught, sizes), (missed, vec![40, 40, 40, 40, 40, 31]));
    assert_eq!(client.states().await, []);
}

/// With this many searches some changes are repeated, but none is skipped.
#[tokio::test]
async fn no_change_is_skipped_beyond_cursor_capacity() {
    let world = World::new();
    write(&world, 2 * MAX_SEEN, JobState::Parsing).await;
    let announced = world.announce(&["a.ris"]).await;
    let mut client = Client::begin(&world, MAX_SEEN).await;
    for _ in 0..6 {
        client.poll().await;
    }
    world.upload(&announced, 0, TWO_RECORDS).await;
    world.run().await;
    let mut heard = Vec::new();
    for _ in 0..6 {
        heard.extend(client.states().await);
    }
    assert!(heard.contains(&told(announced.search_id, "Completed")), "{heard:?}");
}

#[tokio::test]
async fn invalid_cursor_is_refused() {
    let world = World::new();
    let client = Client::begin(&world, 50).await;
    let next = &client.next;
    for query in ["since=", "since=x", "limit=0", "limit=101", "limit=x", &format!("since={next}.1")] {
        assert_eq!(refusal(&client.api, &format!("{CHANGES}?{query}")).await.0, 400, "{query}");
    }
    let other = CHANGES.replace("00000000-", "00000001-");
    let (status, why) = refusal(&client.api, &format!("{other}?since={next}")).await;
    assert_eq!((status, why.contains("of this review")), (400, true), "{why}");
}
