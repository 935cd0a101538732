//! Every operation that the HTTP API describes, asked for by callers whose project it is and by others.

use events::{Installation, event};
use functions::start_upload::{NewFile, NewSearch, StartUpload};
use imports::{JobState, ProjectId};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::start_upload::ask;

const CLAIM: &str = "projects";
const OURS: &str = "8f0c6a52-5a0e-4b6f-9c55-0d2f4f3c1e77";
const TEMPLATE: &str = include_str!("../../../template.yaml");
const THEIRS: &str = "019b76da-a800-700a-8000-000000000001";

/// A request by somebody whose token says this of their projects; none without the claim.
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

/// All operations, as the API describes them: method and path.
async fn operations(function: &StartUpload) -> Vec<(String, String)> {
    let asked = request("GET", "/openapi.json", None, None);
    let answer = ask(function.clone(), Some(CLAIM), asked).await;
    let description: Value = serde_json::from_str(answer["body"].as_str().unwrap()).unwrap();
    let mut operations = Vec::new();
    for (path, methods) in description["paths"].as_object().unwrap() {
        for method in methods.as_object().unwrap().keys() {
            operations.push((method.to_uppercase(), path.clone()));
        }
    }
    assert!(operations.len() >= 6, "{operations:?}");
    operations
}

/// The status of the answer to an operation on our project and a search in it.
async fn status(
    function: &StartUpload,
    operation: &(String, String),
    search: &str,
    projects: Option<&str>,
) -> u64 {
    let (method, path) = operation;
    let path = path.replace("{project}", OURS).replace("{search}", search);
    assert!(!path.contains('{'), "{path} has a part that this test does not know");
    let body = json!(manifest("asked for by somebody"));
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
async fn no_operation_answers_somebody_whose_project_it_is_not() {
    let installation = Installation::new();
    let function = StartUpload::over(&installation.backend().ports).unwrap();
    let announced = function.create(of(OURS), &manifest("ours")).await.unwrap();
    let search = announced.search_id.to_string();
    let operations = operations(&function).await;
    for operation in &operations {
        for foreign in [Some(THEIRS), Some(""), Some("[]"), None] {
            assert_eq!(
                status(&function, operation, &search, foreign).await,
                404,
                "{operation:?} for {foreign:?}"
            );
        }
    }
    let jobs = installation.backend().ports.jobs().unwrap();
    let listed = jobs.of_project(of(OURS), None, 10).await.unwrap().items;
    assert_eq!(listed.len(), 1, "nothing was announced");
    assert_eq!(listed[0].state, JobState::Uploading, "nothing was withdrawn");
    for operation in &operations {
        for ours in [&format!("[{THEIRS} {OURS}]"), "*"] {
            let status = status(&function, operation, &search, Some(ours)).await;
            assert!((200..300).contains(&status), "{operation:?} for {ours:?}: {status}");
        }
    }
}

#[tokio::test]
async fn every_operation_has_a_route_of_its_own() {
    let installation = Installation::new();
    let function = StartUpload::over(&installation.backend().ports).unwrap();
    let operations = operations(&function).await;
    for (method, path) in &operations {
        assert!(TEMPLATE.contains(&format!("RouteKey: {method} {path}\n")), "{method} {path}");
    }
    // The description itself is no operation.
    assert_eq!(TEMPLATE.matches("RouteKey: ").count(), operations.len() + 1);
}
