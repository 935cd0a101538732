//! Sample events adapted to an installation that contains their subjects.

use std::collections::BTreeMap;

use imports::messages::StartParsing;
use imports::queues::PARSE;
use imports::saga::{File, Import, State};
use imports::{
    ObjectKey, ParseCommand, Ports, PresignedPost, SearchEvent, SearchImport, UploadGrant, UploadMetadata,
};
use jiff::SignedDuration;
use messages::{AttemptId, Message};
use percent_encoding::percent_decode_str;
use saga::{Content, ExpectedMessage, ExpectedToken, Persist, Saga, next_version};
use serde_json::Value;

/// The content of every uploaded file.
const TWO_RECORDS: &str = "TY  - JOUR\nTI  - First\nAU  - One, Ann\nER  - \n\n\
                           TY  - JOUR\nTI  - Second\nAU  - Two, Bob\nER  - \n";
/// The common prefix of the ids in all samples, including the id of the search.
const SAMPLE_IDS: &str = "0199b6d0-";
/// Maximum time for the upload of a file.
const UPLOAD: SignedDuration = SignedDuration::from_mins(5);

/// The error of an event that could not be prepared.
pub type EventError = Box<dyn std::error::Error + Send + Sync>;

/// An installation that events are adapted to.
pub struct Place<'a, U> {
    /// The ports of the installation.
    pub ports: &'a Ports,
    /// The bucket for uploads.
    pub bucket: &'a str,
    /// Uploads a file with a form.
    pub upload: U,
}

/// The key and version of an object, as given by an event.
type ObjectName = (String, Option<String>);

impl<U> Place<'_, U>
where
    U: AsyncFn(&PresignedPost, &'static [u8]) -> Result<(), EventError>,
{
    /// Stores the files of an event, and grants the tokens of its messages and of the expected replies. Returns the
    /// event with the bucket and the file versions of this installation.
    pub async fn admit(&self, mut event: Value) -> Result<Value, EventError> {
        let mut stored = BTreeMap::new();
        self.admit_notifications(&mut event, &mut stored).await?;
        for record in event["Records"].as_array_mut().into_iter().flatten() {
            // No search expects the reply to a parse command in another queue.
            let queue = record["eventSourceARN"].as_str().unwrap_or_default();
            let is_command = queue.strip_suffix(PARSE.name()).is_some_and(|rest| rest.ends_with('-'));
            if let Some(body) = record["body"].as_str() {
                let body = self.admit_message(body, is_command, &mut stored).await?;
                record["body"] = body.into();
            }
        }
        Ok(event)
    }

    /// Prepares the notifications of an S3 event; events of other services have none.
    async fn admit_notifications(
        &self,
        event: &mut Value,
        stored: &mut BTreeMap<ObjectName, Option<String>>,
    ) -> Result<(), EventError> {
        for notified in notifications(event) {
            let key = notified.object.get("key").and_then(Value::as_str).unwrap_or_default();
            let key = if notified.is_encoded { decoded(key)? } else { key.to_owned() };
            if ObjectKey::parse(&self.ports.settings.key_prefix, &key).is_err() {
                continue;
            }
            notified.bucket["name"] = self.bucket.into();
            let version = notified.object.get(notified.version).and_then(Value::as_str).map(str::to_owned);
            let here = self.store_once((key, version), stored).await?;
            set(notified.object, notified.version, here);
        }
        Ok(())
    }

    /// Prepares one message and returns its body.
    async fn admit_message(
        &self,
        body: &str,
        is_command: bool,
        stored: &mut BTreeMap<ObjectName, Option<String>>,
    ) -> Result<String, EventError> {
        let Ok(message) = Message::decode(body) else {
            let Ok(mut event) = serde_json::from_str(body) else { return Ok(body.to_owned()) };
            self.admit_notifications(&mut event, stored).await?;
            return Ok(event.to_string());
        };
        let mut tokens: Vec<_> = message.token.clone().into_iter().collect();
        let mut object = message.read().ok().and_then(|event| match event {
            SearchEvent::SearchUploadSaved(saved) => Some(saved.object),
            _ => None,
        });
        if let Ok(ParseCommand::StartParsing(parse)) = message.read() {
            if is_command {
                self.expect_reply(&message, &parse).await?;
            }
            object = Some(parse.object);
            tokens.extend(parse.reply_token);
        }
        let engine = &self.ports.engine;
        let partitions = engine.partitions.as_ref().map_err(Clone::clone)?;
        partitions.tokens.grant(message.partition, &tokens, engine.host.now()).await?;
        let Some(object) = object else { return Ok(body.to_owned()) };
        let here = self.store_once((object.key, object.version), stored).await?;
        let mut body: Value = serde_json::from_str(body)?;
        let object = &mut body["data"]["object"];
        object["bucket"] = self.bucket.into();
        set(object, "version", here);
        Ok(body.to_string())
    }

    /// Stores a document of the search that expects the reply to a parse command.
    async fn expect_reply(&self, message: &Message, command: &StartParsing) -> Result<(), EventError> {
        let engine = &self.ports.engine;
        let (stores, now) = (engine.stores()?, engine.host.now());
        let stored = stores.read_documents.load_latest(message.partition, now).await?;
        let stored = stored.map(|document| document.open(&self.ports.saga())).transpose()?;
        let loaded = stored.as_ref().map(|document| document.version);
        let (state, mut expected) =
            stored.map(|document| (document.content.state, document.content.expected)).unwrap_or_default();
        let mut import = match state {
            State::Parsing(import) => import,
            State::Initial => Import {
                project_id: command.project_id,
                name: None,
                expected_files: None,
                announced: false,
                files: BTreeMap::new(),
                timeout: None,
                look: None,
                repairs: None,
                created_at: now,
            },
            // The sample was stored by an earlier call.
            State::Uploading(_) | State::Uploaded(_) | State::Completed(_) | State::Error(_) => return Ok(()),
        };
        let name = Some(command.file_name.clone());
        let file = File { name, announced_bytes: None, object: Some(command.object.clone()), outcome: None };
        import.files.insert(command.file_id, file);
        let by = ExpectedMessage::Reply(message.id.as_uuid());
        let token = message.reply_token.as_ref().or(command.reply_token.as_ref());
        expected.extend(token.map(|token| ExpectedToken { token: token.clone(), by }));
        let content = Content {
            state: State::Parsing(import),
            state_version: SearchImport::STATE_VERSION,
            queue: None,
            ended_at: None,
            processed: Vec::new(),
            expected,
            timers: BTreeMap::new(),
            attempt: AttemptId::from_uuid(engine.host.random_id()),
            fence: 0,
            keeps_claim: false,
            paused: None,
            terminated: None,
        };
        let (partition, add, cancel) = (message.partition, Vec::new(), Vec::new());
        let version = next_version(loaded, now);
        let write = Persist { partition, loaded, version, content, add, cancel }.close()?;
        stores.write_documents.persist(&[write], now).await?;
        Ok(())
    }

    /// Stores a file unless it exists, and returns its version.
    async fn store_once(
        &self,
        named: ObjectName,
        stored: &mut BTreeMap<ObjectName, Option<String>>,
    ) -> Result<Option<String>, EventError> {
        if let Some(here) = stored.get(&named) {
            return Ok(here.clone());
        }
        let (key, version) = &named;
        self.store(key).await?;
        // If the recorded event has no version, the placed event has none either.
        let here = match version {
            Some(_) => {
                let facts = self.ports.objects.clone()?.head(self.bucket, key, None).await?;
                facts.and_then(|facts| facts.version)
            }
            None => None,
        };
        stored.insert(named, here.clone());
        Ok(here)
    }

    /// Stores a file of two records under a key.
    pub async fn store(&self, key: &str) -> Result<(), EventError> {
        let metadata =
            UploadMetadata { search_name: "Gambling harms".to_owned(), expected_files: 2 }.to_map();
        let expires_at = self.ports.engine.host.now() + UPLOAD;
        let size_bytes = TWO_RECORDS.len() as u64;
        let grant = UploadGrant { key: key.to_owned(), size_bytes, metadata, expires_at };
        let uploads = self.ports.uploads.as_ref().map_err(Clone::clone)?;
        (self.upload)(&uploads.presign(&grant).await?, TWO_RECORDS.as_bytes()).await
    }
}

/// Returns a sample with new ids, so that it is not treated as a duplicate of an earlier one. The ids keep their form
/// and their last digits, which bind tokens to their search.
pub fn with_new_ids(sample: &str, ids: u32) -> String {
    sample.replace(SAMPLE_IDS, &format!("01{:06x}-", ids & 0x00ff_ffff))
}

/// A stored object in a notification.
struct NotifiedObject<'a> {
    bucket: &'a mut Value,
    object: &'a mut Value,
    /// `true` if the key is URL-encoded.
    is_encoded: bool,
    /// The name of the field with the version.
    version: &'static str,
}

/// Returns the stored objects of an S3 event, in its own format or that of EventBridge.
fn notifications(event: &mut Value) -> Vec<NotifiedObject<'_>> {
    if event.get("detail").is_some() {
        let stored = event.get_mut("detail");
        return stored.and_then(|stored| of(stored, false, "version-id")).into_iter().collect();
    }
    let records = event.get_mut("Records").and_then(Value::as_array_mut).into_iter().flatten();
    let is_created = |record: &Value| {
        record.get("eventName").and_then(Value::as_str).is_some_and(|name| name.starts_with("ObjectCreated"))
    };
    let created = records.filter(|record| is_created(record));
    created.filter_map(|record| of(record.get_mut("s3")?, true, "versionId")).collect()
}

fn of<'a>(stored: &'a mut Value, is_encoded: bool, version: &'static str) -> Option<NotifiedObject<'a>> {
    let (mut bucket, mut object) = (None, None);
    for (name, value) in stored.as_object_mut()?.iter_mut().filter(|(_, value)| value.is_object()) {
        match name.as_str() {
            "bucket" => bucket = Some(value),
            "object" => object = Some(value),
            _ => {}
        }
    }
    Some(NotifiedObject { bucket: bucket?, object: object?, is_encoded, version })
}

fn decoded(key: &str) -> Result<String, EventError> {
    Ok(percent_decode_str(&key.replace('+', " ")).decode_utf8()?.into_owned())
}

fn set(object: &mut Value, field: &str, value: Option<String>) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        Some(value) => fields.insert(field.to_owned(), value.into()),
        None => fields.remove(field),
    };
}
