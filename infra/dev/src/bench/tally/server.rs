//! Our engine behind HTTP, for clients that work with any engine.
//!
//! An event is passed to the engine like a message on Lambda, and the response follows when that attempt has ended:
//! then the state is durable, and the partition is released. A client without a response sends the event again.

use std::path::Path as Folder;
use std::sync::Arc;

use anyhow::Context;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use backend::{BackendKind, Config, Mode, SystemHost};
use dedup::GrantTokens;
use embedded::{Settings, Store};
use messages::store::chain;
use messages::{
    Consumer, Delivery, Disposition, Host, Message, MessageId, PartitionKey, Payload, StoreError, Token,
};
use saga::{Engine, ReadDocuments};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use uuid::Uuid;

use super::hops::{Hop, Hops};
use super::{EVENTS, QUEUES, RUN, SYSTEM, Saga, Tallies, Tally, TallyEvent};
use crate::provision::Provision;

/// The options of the server.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The stores; `None` to respond immediately without storing anything, which measures the clients.
    pub backend: Option<BackendKind>,
    /// The mode in which duplicates are recognized.
    pub mode: Mode,
    /// `true` if ends are announced.
    pub announce: bool,
    /// `true` if the engine's calls are timed.
    pub hops: bool,
}

/// Serves until a client posts to `/stop`. Calls `listening` with the address.
pub async fn serve(
    dir: &Folder,
    options: Options,
    listening: impl FnOnce(&str) -> std::io::Result<()>,
) -> anyhow::Result<()> {
    let stop = Arc::new(Notify::new());
    let opened = OpenStores::open(dir, options).await?;
    let routes = match &opened {
        OpenStores::Nothing => answers_at_once(),
        OpenStores::Embedded(engine) => routes((**engine).clone(), options)?,
        OpenStores::Services(services) => routes(services.engine.clone(), options)?,
    };
    let stopped = Arc::clone(&stop);
    let routes = routes.route("/stop", post(async move || stop.notify_one()));
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    listening(&format!("http://{}", listener.local_addr()?))?;
    axum::serve(listener, routes).with_graceful_shutdown(async move { stopped.notified().await }).await?;
    opened.close().await
}

enum OpenStores {
    Nothing,
    Embedded(Box<Engine>),
    Services(Box<Services>),
}

impl OpenStores {
    async fn open(dir: &Folder, options: Options) -> anyhow::Result<Self> {
        let host: Arc<dyn Host> = Arc::new(SystemHost);
        // Decisions are not recorded, because the other engines do not record them either.
        let observer = Arc::new(());
        match options.backend {
            None => Ok(Self::Nothing),
            Some(BackendKind::Embedded) => {
                let store = Arc::new(Store::open(dir, Arc::clone(&host), Settings::new(&QUEUES))?);
                let config = Config { mode: options.mode, data_dir: dir.to_owned(), ..Config::default() };
                let opened = backend::engine::embedded(&SYSTEM, &store, host, observer, config);
                Ok(Self::Embedded(Box::new(opened.ports)))
            }
            Some(BackendKind::Aws) => {
                let name = format!("tally-{}", host.fresh_id().simple());
                let sdk = aws::config().await;
                let provision = Provision::new(&sdk, &name);
                let made = provision.create().await?;
                let mut config = Config::from_pairs(imports::SYSTEM, std::env::vars().chain(made))?;
                config.mode = options.mode;
                config.services.mongodb_database.push_str(&format!("_{name}"));
                let opened = backend::engine::services(&SYSTEM, config, host, observer).await?;
                Ok(Self::Services(Box::new(Services {
                    provision,
                    engine: opened.ports,
                    config: opened.config,
                })))
            }
        }
    }

    /// Removes the resources of the benchmark from the servers.
    async fn close(self) -> anyhow::Result<()> {
        if let Self::Services(services) = self {
            let database = backend::services::database(&services.config, &aws::config().await).await?;
            database.drop_database().await?;
            services.provision.remove().await?;
        }
        Ok(())
    }
}

/// A temporary environment on the configured servers.
struct Services {
    provision: Provision,
    engine: Engine,
    config: Config,
}

#[derive(Clone)]
struct Server {
    run: Arc<dyn Consumer>,
    tokens: Arc<dyn GrantTokens>,
    documents: Arc<dyn ReadDocuments>,
    host: Arc<dyn Host>,
    hops: Arc<Hops>,
    ledger: bool,
}

fn routes(engine: Engine, options: Options) -> anyhow::Result<Router> {
    let hops = Arc::new(Hops::default());
    let engine = if options.hops { hops.watch(engine)? } else { engine };
    let server = Server {
        run: engine.run(RUN.name, Tallies { announce: options.announce })?,
        tokens: Arc::clone(&engine.partitions()?.tokens),
        documents: Arc::clone(&engine.stores()?.read_documents),
        host: Arc::clone(&engine.host),
        hops,
        ledger: options.mode == Mode::Ledger,
    };
    Ok(Router::new()
        .route("/tally/{key}/begin", post(begin))
        .route("/tally/{key}/event", post(event))
        .route("/tally/{key}/state", post(state))
        .route("/hops", get(report))
        .with_state(server))
}

fn answers_at_once() -> Router {
    let at_once = async |Path(_): Path<String>, Json(_): Json<EventBody>| Json(json!({}));
    let all: Vec<u8> = (0..EVENTS).collect();
    Router::new()
        .route("/tally/{key}/event", post(at_once))
        .route("/tally/{key}/state", post(async move || Json(json!({ "events": all }))))
}

#[derive(Deserialize)]
struct EventBody {
    event: u8,
}

#[derive(Serialize)]
struct TallyView {
    events: Vec<u8>,
}

type ErrorResponse = (StatusCode, String);

fn refused(error: &StoreError) -> ErrorResponse {
    (StatusCode::SERVICE_UNAVAILABLE, error.chain())
}

fn partition(key: &str) -> PartitionKey {
    PartitionKey::named(Tallies::NAME, key)
}

/// Returns the id of an event, which its copies share.
fn id(partition: PartitionKey, event: u8) -> Uuid {
    Uuid::new_v5(&partition.as_uuid(), &[event])
}

fn token(partition: PartitionKey, event: u8) -> Token {
    Token::minted_at_entry(partition, id(partition, event))
}

/// Grants the tokens of all expected events in one call, like an entry point.
async fn begin(State(server): State<Server>, Path(key): Path<String>) -> Result<Json<Value>, ErrorResponse> {
    let partition = partition(&key);
    let tokens: Vec<Token> = (0..EVENTS).map(|event| token(partition, event)).collect();
    let granted = server.tokens.grant(partition, &tokens, server.host.now()).await;
    granted.map(|()| Json(json!({}))).map_err(|error| refused(&error))
}

async fn event(
    State(server): State<Server>,
    Path(key): Path<String>,
    Json(EventBody { event }): Json<EventBody>,
) -> Result<Json<Value>, ErrorResponse> {
    let body = encode(&server, &key, event)
        .map_err(|error| (StatusCode::INTERNAL_SERVER_ERROR, chain(error.as_ref())))?;
    let delivery = Delivery { record_id: "1".to_owned(), body, receive_count: 1, reason: None };
    match server.run.consume(&[delivery], None).await.pop() {
        Some(Disposition::Acknowledge) => Ok(Json(json!({}))),
        Some(Disposition::Retry { reason, .. }) => Err((StatusCode::SERVICE_UNAVAILABLE, reason)),
        Some(Disposition::DeadLetter { reason }) => Err((StatusCode::BAD_REQUEST, reason)),
        None => Err((StatusCode::INTERNAL_SERVER_ERROR, "nothing was answered".to_owned())),
    }
}

fn encode(server: &Server, key: &str, event: u8) -> anyhow::Result<String> {
    let partition = partition(key);
    let (message, now) = (MessageId::from_uuid(id(partition, event)), server.host.now());
    let body = TallyEvent::Counted { event }.body()?;
    let message = Message::new(message, "clients", partition, now, body);
    let token = server.ledger.then(|| token(partition, event));
    Message { token, ..message }.encode().context("an event cannot be encoded")
}

async fn state(
    State(server): State<Server>,
    Path(key): Path<String>,
) -> Result<Json<TallyView>, ErrorResponse> {
    let found = server.documents.load_latest(partition(&key), server.host.now()).await;
    let tally = found
        .and_then(|document| document.map(|document| document.open(&Tallies { announce: false })).transpose())
        .map_err(|error| refused(&error))?
        .map_or_else(Tally::default, |document| document.content.state);
    Ok(Json(TallyView { events: tally.events }))
}

async fn report(State(server): State<Server>) -> Json<Vec<Hop>> {
    Json(server.hops.report())
}
