//! The searches that are measured: every message of a search with two files, with the tokens that go with it.

use std::sync::Arc;

use contracts::job::Counts;
use contracts::manifest::ManifestFile;
use contracts::message::{
    ObjectRef, ReferenceFileParsingCompleted, SearchUploadSaved, SearchUploadStarted, StartParsing,
};
use contracts::{
    Body, FileId, Host, Manifest, Message, MessageId, ProjectId, SearchId, StoreError, Token, UploadMetadata,
};
use dedup::GrantTokens;
use jiff::Timestamp;
use uuid::Uuid;

/// How many files each search has.
pub const FILES: usize = 2;

/// One search and the messages that begin it.
#[derive(Debug, Clone)]
pub struct Search {
    /// Its id.
    pub id: SearchId,
    /// Its announcement.
    pub started: Message,
    /// One stored file after the other.
    pub saved: Vec<Message>,
}

impl Search {
    /// A new search whose tokens are in the ledger.
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub async fn begin(host: &Arc<dyn Host>, ledger: &dyn GrantTokens) -> Result<Self, StoreError> {
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
        let manifest = Manifest { name: "Benchmark".to_owned(), files: files.clone() };
        let mut tokens = tokens.into_iter();
        let mut message = |body| Message {
            id: MessageId::from_uuid(host.fresh_id()),
            source: "bench".to_owned(),
            time: now,
            correlation_id: id,
            causation_id: None,
            token: tokens.next(),
            traceparent: None,
            body,
        };
        let project_id = ProjectId::from_uuid(Uuid::nil());
        let started = message(Body::SearchUploadStarted(SearchUploadStarted { project_id, manifest }));
        let saved = files.iter().map(|file| message(saved(project_id, id, file))).collect();
        Ok(Self { id, started, saved })
    }
}

fn saved(project_id: ProjectId, search: SearchId, file: &ManifestFile) -> Body {
    let metadata = UploadMetadata { search_name: "Benchmark".to_owned(), expected_files: FILES };
    Body::SearchUploadSaved(SearchUploadSaved {
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

/// What `parse-references` would reply to a command. The same command gets the same reply.
pub fn reply(command: &Message, parse: &StartParsing, now: Timestamp) -> Message {
    let counts = Counts {
        format: "RIS".to_owned(),
        encoding: "UTF-8".to_owned(),
        records: 1,
        studies: 1,
        ..Counts::default()
    };
    Message {
        id: command.id.derive(0),
        source: "bench".to_owned(),
        time: now,
        correlation_id: command.correlation_id,
        causation_id: Some(command.id),
        token: parse.reply_token.clone(),
        traceparent: None,
        body: Body::ReferenceFileParsingCompleted(ReferenceFileParsingCompleted {
            file_id: parse.file_id,
            counts,
        }),
    }
}
