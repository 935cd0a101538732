//! All operations of the HTTP API, requested by callers with and without access to the project.

use embedded::Store;
use events::{Installation, event};
use imports::messages::ObjectRef;
use imports::{
    Counts, FileFence, FileId, Job, JobFile, JobState, Outcome, ParseAttempts, ParsedFile, ProjectId,
    QuarantinedRecord, SearchId, Study, StudyId, WriteStudies,
};
use jiff::Timestamp;
use outbox::{View, WriteViews};
use references::{Quarantine, Reference};
use serde_json::{Value, json};
use service::{NewFile, NewSearch, SearchService};
use uuid::Uuid;

use crate::start_upload::ask;

const CLAIM: &str = "projects";
const OURS: &str = "8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77";
const THEIRS: &str = "019b76da-a800-700a-8000-000000000001";

/// Returns a request with this claim about the caller's projects, or without the claim.
fn request(method: &str, path: &str, projects: Option<&str>, body: Option<&Value>) -> Value {
    let mut event = event("http-own-project");
    event["rawPath"] = path.into();
    event["headers"]["content-type"] = "application/json".into();
    let context = &mut event["requestContext"];
    context["http"]["method"] = method.into();
    context["http"]["path"] = path.into();
    let claims = context["authorizer"]["jwt"]["claims"].as_object_mut().unwrap();
    claims.remove(CLAIM);
    claims.extend(projects.map(|projects| (CLAIM.to_owned(), projects.into())));
    if let Some(body) = body {
        event["body"] = body.to_string().into();
    }
    event
}

fn of(project: &str) -> ProjectId {
    ProjectId::from_uuid(Uuid::parse_str(project).unwrap())
}

fn manifest(name: &str) -> NewSearch {
    NewSearch { name: name.into(), files: vec![NewFile { name: "secret.ris".into(), size_bytes: 1 }] }
}

/// Returns the method and path of all described operations.
async fn operations(function: &SearchService) -> Vec<(String, String)> {
    let asked = request("GET", "/openapi.json", None, None);
    let answer = ask(function.clone(), Some(CLAIM), asked).await;
    let description: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    let mut operations = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            operations.push((method.to_uppercase(), path.clone()));
        }
    }
    assert!(operations.len() >= 13, "{operations:?}");
    operations
}

/// Stores a search of our project with a completed file: a study and an unreadable record.
async fn imported(store: &Store) -> SearchId {
    let (search_id, file_id) =
        (SearchId::from_uuid(Uuid::from_u128(1)), FileId::from_uuid(Uuid::from_u128(2)));
    let fence = store.start(search_id, file_id, 1).await.unwrap().fence;
    let study = Study {
        id: StudyId::of(search_id, file_id, 1),
        project_id: of(OURS),
        search_id,
        file_id,
        record: 1,
        line: 1,
        bytes: None,
        reference: Reference { title: "secret".into(), ..Reference::default() },
        duplicate: None,
    };
    let (reason, excerpt) = ("no title".to_owned(), "secret".to_owned());
    let record = Quarantine { number: 2, line: 2, bytes: 0..1, reason, excerpt };
    let unread = QuarantinedRecord { search_id, file_id, record };
    store.store(&FileFence { search_id, file_id, fence }, vec![study], vec![unread]).await.unwrap();
    let (bucket, key) = ("uploads".to_owned(), "secret.ris".to_owned());
    let object = ObjectRef { bucket, key, version: None, size_bytes: 1 };
    let name = "secret.ris".to_owned();
    let name_of = name.clone();
    let file = ParsedFile {
        search_id,
        file_id,
        position: 0,
        name: name_of,
        object,
        parts: Vec::new(),
        announced_at: None,
    };
    store.finish(&file).await.unwrap();
    let counts = Counts { records: 2, studies: 1, quarantined: 1, ..Counts::default() };
    let outcome = Some(Outcome::Completed(counts));
    let (size_bytes, announced_bytes, received) = (Some(1), None, true);
    let job = Job {
        search_id,
        project_id: of(OURS),
        name: Some("ours".to_owned()),
        state: JobState::Completed,
        reason: None,
        files: vec![JobFile { file_id, name: Some(name), size_bytes, announced_bytes, received, outcome }],
        repairs: None,
        created_at: Timestamp::UNIX_EPOCH,
        completed_at: None,
        revision: 1,
    };
    store.write(&[View::from(&job)]).await.unwrap();
    search_id
}

/// Returns the status of an operation on our project and a search in it.
async fn status(
    function: &SearchService,
    operation: &(String, String),
    search: &str,
    projects: Option<&str>,
) -> u64 {
    let (method, path) = operation;
    let path = path.replace("{project}", OURS).replace("{search}", search);
    let path = path.replace("{study}", "0-1").replace("{record}", "0-2");
    // The id of an export that may be in progress.
    let path = path.replace("{export}", &Uuid::now_v7().to_string());
    let bulk = Uuid::from_u128(3);
    let path = path.replace("{bulk}", &bulk.to_string());
    assert!(!path.contains('{'), "{path} has a part that this test does not know");
    let body = match path.rsplit('/').next() {
        Some("repair" | "exports") => json!({}),
        Some("sources") if !path.contains("/searches/") => json!({ "searched_on": "2026-05-17" }),
        Some("bulk") => json!({ "id": bulk, "rule": "same_doi" }),
        Some("sources") => json!({ "files": [] }),
        Some("members") => json!({ "name": "a stranger", "role": "reader" }),
        Some("remove") => json!({ "name": "a stranger" }),
        Some(OURS) => json!({ "name": "Named by a stranger" }),
        Some("decisions") => {
            let study = json!({ "search_id": search, "file_id": Uuid::from_u128(2), "record": 1 });
            json!({ "decision": "keep", "studies": [study] })
        }
        _ => json!(manifest("requested by a stranger")),
    };
    let asked = request(method, &path, projects, (method == "POST").then_some(&body));
    let answer = ask(function.clone(), Some(CLAIM), asked).await;
    let status = answer["statusCode"].as_u64().unwrap();
    if status == 404 {
        let text = answer["body"].as_str().unwrap();
        assert!(!text.contains("secret") && !text.contains(search), "{method} {path}: {text}");
    }
    status
}

#[tokio::test]
async fn foreign_callers_get_404_from_every_operation() {
    let installation = Installation::new();
    let function = SearchService::over(&installation.backend().ports, &functions::SYSTEM).unwrap();
    let announced = function.create(of(OURS), &manifest("ours")).await.unwrap();
    let (announced, imported) = (announced.search_id, imported(&installation.store).await);
    // Operations without a project are open to all callers.
    let mut operations = operations(&function).await;
    operations.retain(|(_, path)| path.contains('{') && !path.starts_with("/admin/"));
    // One search is cancelled; the other is read, and deleted last.
    operations.sort_by_key(|(method, path)| (method == "DELETE", path.clone()));
    let search = |(method, path): &(String, String)| {
        // In the earlier version's paths, DELETE cancels.
        let cancels = path.ends_with("/cancel") || (method == "DELETE" && path.starts_with("/searches/"));
        if cancels { announced } else { imported }.to_string()
    };
    for operation in &operations {
        for foreign in [Some(THEIRS), Some(""), Some("[]"), None] {
            assert_eq!(
                status(&function, operation, &search(operation), foreign).await,
                404,
                "{operation:?} for {foreign:?}"
            );
        }
    }
    let jobs = installation.backend().ports.jobs().unwrap();
    let listed = jobs.of_project(of(OURS), None, 10).await.unwrap().items;
    assert_eq!(listed.len(), 2, "nothing was announced");
    assert_eq!(listed[0].state, JobState::Uploading, "nothing was cancelled");
    for operation in &operations {
        for ours in [&*format!("[{THEIRS} {OURS}]"), "*"] {
            let status = status(&function, operation, &search(operation), Some(ours)).await;
            let is_gone = status == 404 && operation.0 == "DELETE" && ours == "*";
            let is_expected = match operation.1.rsplit('/').next() {
                // Buffered hosts do not stream.
                Some("events") => 501..502,
                // The review has no pairs, so no bulk action was stored.
                Some("undo") => 404..405,
                // There is nothing to repair.
                Some("repair") => 409..410,
                // An import of the review has not ended.
                Some("{project}") if operation.0 == "DELETE" => 409..410,
                _ => 200..300,
            };
            assert!(is_expected.contains(&status) || is_gone, "{operation:?} for {ours:?}: {status}");
        }
    }
}

/// The scope alone is not enough: an identity provider may grant it to every user of the page.
#[tokio::test]
async fn admin_operations_need_scope_and_all_projects() {
    let installation = Installation::new();
    let function = SearchService::over(&installation.backend().ports, &functions::SYSTEM).unwrap();
    let mut operations = operations(&function).await;
    operations.retain(|(_, path)| path.starts_with("/admin/"));
    assert!(operations.len() >= 10, "{operations:?}");
    for (method, path) in operations {
        let path = path
            .replace("{failure}", OURS)
            .replace("{operation}", OURS)
            .replace("{search}", OURS)
            .replace("{project}", OURS);
        let body = json!({ "all": true });
        for (scope, projects, is_refused) in [
            (None, "*", true),
            (Some("searches:write"), "*", true),
            (Some("searches:operate"), OURS, true),
            (Some("searches:operate"), "", true),
            (Some("searches:operate"), "*", false),
        ] {
            let mut asked = request(&method, &path, Some(projects), (method == "POST").then_some(&body));
            let claims = asked["requestContext"]["authorizer"]["jwt"]["claims"].as_object_mut().unwrap();
            claims.remove("scope");
            claims.extend(scope.map(|scope| ("scope".to_owned(), scope.into())));
            let answer = ask(function.clone(), Some(CLAIM), asked).await;
            assert_eq!(answer["statusCode"] == 403, is_refused, "{method} {path} with {scope:?}: {answer}");
        }
    }
}
