//! The measured searches: every message of a search with two files, with its tokens.

use std::sync::Arc;

use dedup::GrantTokens;
use imports::messages::{
    ObjectRef, ReferenceFileParsingCompleted, SearchUploadSaved, SearchUploadStarted, StartParsing,
};
use imports::{Counts, FileId, Manifest, ManifestFile, ProjectId, SearchEvent, SearchId, UploadMetadata};
use jiff::Timestamp;
use messages::{EncodeError, Host, Message, MessageId, Payload, Token};
use uuid::Uuid;

/// The sender of the messages.
const SOURCE: &str = "bench";
/// The number of files in each search.
pub const FILES: usize = 2;

/// One search and its first messages.
#[derive(Debug, Clone)]
pub struct Search {
    /// The id of the search.
    pub id: SearchId,
    /// The announcement of the search.
    pub started: Message,
    /// The search's stored files in order.
    pub saved: Vec<Message>,
}

impl Search {
    /// Creates a search whose tokens are in the ledger.
    pub async fn begin(host: &Arc<dyn Host>, ledger: &dyn GrantTokens) -> anyhow::Result<Self> {
        let id = SearchId::from_uuid(host.fresh_id());
        let now = host.now();
        let tokens: Vec<Token> = (0..=FILES).map(|_| Token::minted_at_entry(id, host.fresh_id())).collect();
        ledger.grant(id, &tokens, now).await?;
        let files: Vec<ManifestFile> = (0..FILES)
            .map(|n| ManifestFile {
                file_id: FileId::from_uuid(host.fresh_id()),
                name: format!("{n}.ris"),
                size_bytes: 1_000,
            })
            .collect();
        let manifest = Manifest { name: "Benchmark".to_owned(), files: files.clone(), repairs: None };
        let mut tokens = tokens.into_iter();
        let mut message = |event: SearchEvent| {
            let message = MessageId::from_uuid(host.fresh_id());
            let message = Message::new(message, SOURCE, id, now, event.body()?);
            Ok::<_, EncodeError>(Message { token: tokens.next(), ..message })
        };
        let project_id = ProjectId::from_uuid(Uuid::nil());
        let started =
            message(SearchEvent::SearchUploadStarted(SearchUploadStarted { project_id, manifest }))?;
        let saved =
            files.iter().map(|file| message(saved(project_id, id, file))).collect::<Result<_, _>>()?;
        Ok(Self { id, started, saved })
    }
}

fn saved(project_id: ProjectId, search: SearchId, file: &ManifestFile) -> SearchEvent {
    let metadata = UploadMetadata { search_name: "Benchmark".to_owned(), expected_files: FILES };
    SearchEvent::SearchUploadSaved(SearchUploadSaved {
        project_id,
        file_id: file.file_id,
        file_name: file.name.clone(),
        object: ObjectRef {
            bucket: "bench".to_owned(),
            key: format!("uploads/{search}/{}", file.file_id),
            version: None,
            size_bytes: file.size_bytes,
        },
        metadata: metadata.to_map(),
    })
}

/// Returns the reply of `parse-references` to a command. The same command gets the same reply.
pub fn reply(command: &Message, parse: &StartParsing, now: Timestamp) -> Result<Message, EncodeError> {
    let counts = Counts {
        format: "RIS".to_owned(),
        encoding: "UTF-8".to_owned(),
        records: 1,
        studies: 1,
        ..Counts::default()
    };
    let completed = ReferenceFileParsingCompleted { file_id: parse.file_id, counts };
    let body = SearchEvent::ReferenceFileParsingCompleted(completed).body()?;
    let reply = command.caused_message(command.id.derive(0), SOURCE, now, body);
    Ok(Message { token: parse.reply_token.clone(), ..reply })
}
