//! The members of reviews, and the roles in which they may act.

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use http_api::{BodyMode, router_for};
use serde_json::{Value, json};
use service::{Principal, ProjectAccess};
use tower::ServiceExt;
use uuid::Uuid;

use super::{api, get, imported, path_of, post};
use crate::world::World;

/// Returns the API as a person sees it whose token lists no review.
fn as_person(world: &World, name: &str) -> Router {
    let principal = Principal::from(ProjectAccess::none()).identified(name);
    router_for(world.functions.start_upload.clone(), BodyMode::Streaming, move |_| principal.clone())
}

async fn status(api: &Router, method: Method, path: &str, body: &Value) -> u16 {
    let request = Request::builder().method(method).uri(path).header("content-type", "application/json");
    let request = request.body(Body::from(body.to_string())).unwrap();
    api.clone().oneshot(request).await.unwrap().status().as_u16()
}

async fn add(api: &Router, review: &str, name: &str, role: &str) -> u16 {
    post(api, &format!("{review}/members"), &json!({ "name": name, "role": role })).await.0.as_u16()
}

async fn remove(api: &Router, review: &str, name: &str) -> u16 {
    post(api, &format!("{review}/members/remove"), &json!({ "name": name })).await.0.as_u16()
}

async fn members(api: &Router, review: &str) -> Vec<(String, String)> {
    let list = get(api, &format!("{review}/members")).await;
    let text = |member: &Value, field: &str| member[field].as_str().unwrap().to_owned();
    let items = list["items"].as_array().unwrap().iter();
    items.map(|member| (text(member, "name"), text(member, "role"))).collect()
}

fn named(members: &[(&str, &str)]) -> Vec<(String, String)> {
    members.iter().map(|(name, role)| ((*name).to_owned(), (*role).to_owned())).collect()
}

/// Creates a review of Ann's, and returns its path.
async fn review(world: &World) -> String {
    let (status, _, made) = post(&as_person(world, "ann"), "/projects", &json!({ "name": "Sleep" })).await;
    assert_eq!((status.as_u16(), &made["role"]), (201, &json!("owner")));
    format!("/projects/{}", made["project_id"].as_str().unwrap())
}

#[tokio::test]
async fn person_owns_the_review_that_they_create() {
    let world = World::new();
    let review = review(&world).await;
    let (ann, bob) = (as_person(&world, "ann"), as_person(&world, "bob"));
    assert_eq!(members(&ann, &review).await, named(&[("ann", "owner")]));
    let (again, _, known) = post(&ann, "/projects", &json!({ "name": "SLEEP" })).await;
    assert_eq!(
        (again.as_u16(), format!("/projects/{}", known["project_id"].as_str().unwrap())),
        (200, review.clone())
    );
    assert_eq!(post(&bob, "/projects", &json!({ "name": "sleep" })).await.0.as_u16(), 409);
    assert_eq!(status(&bob, Method::GET, &format!("{review}/members"), &Value::Null).await, 404);
    assert_eq!(get(&bob, "/projects").await["items"], json!([]));
    assert_eq!(get(&ann, "/config.json").await["caller"]["name"], json!("ann"));
}

/// The id of a review that an operator or the command line names is derived from the name. Its imports may exist before
/// the review is listed.
#[tokio::test]
async fn unlisted_review_name_grants_no_access() {
    let world = World::new();
    let derived = imports::ProjectId::named("Sleep").unwrap();
    let review = review(&world).await;
    assert_ne!(review, format!("/projects/{derived}"));
    let path = format!("/projects/{derived}/searches");
    assert_eq!(status(&as_person(&world, "ann"), Method::GET, &path, &Value::Null).await, 404);
}

#[tokio::test]
async fn each_role_permits_its_own_requests_only() {
    let (world, announced, search) = imported().await;
    let review = format!("/projects/{}", Uuid::nil());
    let everyone = api(&world);
    for (name, role) in [("rita", "reader"), ("rob", "reviewer"), ("olga", "owner")] {
        assert_eq!(add(&everyone, &review, name, role).await, 200);
    }
    let study = |file: usize| json!({ "search_id": announced.search_id, "file_id": announced.files[file].file_id, "record": 1 });
    let decision = json!({ "decision": "different", "studies": [study(0), study(1)] });
    let named = json!({ "name": "Everything" });
    // The lowest role that permits a request, and the response to it.
    let requests = [
        (Method::GET, format!("{review}/searches"), Value::Null, "rita", 200),
        (Method::GET, search.clone(), Value::Null, "rita", 200),
        (Method::POST, format!("{search}/exports"), json!({}), "rita", 200),
        (Method::POST, format!("{review}/exports"), json!({}), "rita", 200),
        (Method::POST, format!("{review}/duplicates/decisions"), decision, "rob", 202),
        (Method::POST, format!("{search}/sources"), json!({ "files": [] }), "rob", 204),
        (Method::POST, format!("{search}/cancel"), Value::Null, "rob", 409),
        (Method::POST, review.clone(), named, "olga", 200),
        (Method::POST, format!("{review}/members"), json!({ "name": "eve", "role": "owner" }), "olga", 200),
        (Method::POST, format!("{review}/members/remove"), json!({ "name": "eve" }), "olga", 204),
        (Method::DELETE, search.clone(), Value::Null, "rob", 202),
        (Method::DELETE, review.clone(), Value::Null, "olga", 204),
    ];
    for (method, path, body, lowest, expected) in requests {
        let mut is_permitted = false;
        for name in ["rita", "rob", "olga"] {
            let found = status(&as_person(&world, name), method.clone(), &path, &body).await;
            if name == lowest {
                assert_eq!(found, expected, "{name}: {method} {path}");
                is_permitted = true;
            } else {
                assert_eq!(found != 403, is_permitted, "{name}: {method} {path}: {found}");
            }
        }
        world.run().await;
    }
}

#[tokio::test]
async fn removed_member_has_no_access() {
    let world = World::new();
    let review = review(&world).await;
    let (ann, bob) = (as_person(&world, "ann"), as_person(&world, "bob"));
    assert_eq!(add(&ann, &review, " bob ", "reviewer").await, 200);
    assert_eq!(members(&bob, &review).await, named(&[("ann", "owner"), ("bob", "reviewer")]));
    assert_eq!(remove(&bob, &review, "ann").await, 403, "a reviewer removes no other member");
    assert_eq!(remove(&bob, &review, "bob").await, 204, "a member may leave");
    assert_eq!(status(&bob, Method::GET, &format!("{review}/members"), &Value::Null).await, 404);
    assert_eq!(add(&ann, &review, "bob", "owner").await, 200);
    assert_eq!(remove(&bob, &review, "ann").await, 204, "an owner removes every member");
    assert_eq!(remove(&bob, &review, "bob").await, 409, "the only owner stays");
    assert_eq!(add(&bob, &review, "bob", "reader").await, 409, "the only owner stays an owner");
    let entries = get(&bob, &format!("{review}/activity")).await;
    let entries: Vec<_> = entries["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| [&entry["by"], &entry["action"], &entry["member"], &entry["role"]].map(Clone::clone))
        .collect();
    let entry =
        |by: &str, member: &str, role: Value| [json!(by), json!("changed_member"), json!(member), role];
    assert_eq!(
        entries,
        [
            entry("bob", "ann", Value::Null),
            entry("ann", "bob", json!("owner")),
            entry("bob", "bob", Value::Null),
            entry("ann", "bob", json!("reviewer")),
        ]
    );
}

#[tokio::test]
async fn invalid_members_are_refused() {
    let world = World::new();
    let review = review(&world).await;
    let ann = as_person(&world, "ann");
    for name in ["", " ", "a\nb", &"a".repeat(256)] {
        assert_eq!(add(&ann, &review, name, "reader").await, 422, "{name:?}");
    }
    assert_eq!(add(&ann, &review, "bob", "admin").await, 400);
    assert_eq!(members(&ann, &review).await, named(&[("ann", "owner")]));
}

#[tokio::test]
async fn deleted_review_has_no_members() {
    let world = World::new();
    let review = review(&world).await;
    let (ann, bob) = (as_person(&world, "ann"), as_person(&world, "bob"));
    assert_eq!(add(&ann, &review, "bob", "owner").await, 200);
    assert_eq!(status(&bob, Method::DELETE, &review, &Value::Null).await, 204);
    for person in [&ann, &bob] {
        assert_eq!(status(person, Method::GET, &format!("{review}/members"), &Value::Null).await, 404);
        assert_eq!(get(person, "/config.json").await["caller"]["projects"], json!([]));
    }
}

#[tokio::test]
async fn caller_without_identity_is_no_member() {
    let world = World::new();
    let review = review(&world).await;
    assert_eq!(add(&as_person(&world, "ann"), &review, "somebody", "owner").await, 200);
    let access = |_: &axum::http::Extensions| ProjectAccess::none();
    let unnamed = router_for(world.functions.start_upload.clone(), BodyMode::Streaming, access);
    assert_eq!(status(&unnamed, Method::GET, &format!("{review}/members"), &Value::Null).await, 404);
    assert_eq!(get(&api(&world), "/config.json").await["caller"]["name"], Value::Null);
}

#[tokio::test]
async fn foreign_search_is_hidden_from_members() {
    let (world, _, search) = imported().await;
    let review = review(&world).await;
    let bob = as_person(&world, "bob");
    assert_eq!(add(&as_person(&world, "ann"), &review, "bob", "reader").await, 200);
    for (method, path) in [
        (Method::GET, search.clone()),
        (Method::DELETE, search.clone()),
        (Method::POST, format!("{search}/cancel")),
    ] {
        assert_eq!(status(&bob, method.clone(), &path, &Value::Null).await, 404, "{method} {path}");
    }
    let id = search.rsplit('/').next().unwrap().parse().unwrap();
    assert_eq!(path_of(id), search);
}
