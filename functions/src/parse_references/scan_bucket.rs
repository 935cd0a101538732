//! Scanning the bucket for the files of a search, because a notification may be late or lost.

use dedup::{HandlerError, HandlerResult};
use imports::manifest::MAX_FILES;
use imports::messages::{LookForUploads, ObjectRef, SearchUploadSaved, UploadsFound};
use imports::{ObjectKey, SearchEvent, SearchId};

use super::ParseReferences;

/// The maximum number of reported objects: every file of a search, and those of one undone request.
const MAX_OBJECTS: usize = 2 * MAX_FILES;

impl ParseReferences {
    /// Reports the files that the saga does not know, in one reply, so that none arrives too late. A file may be stored
    /// under several names if a restore has undone an earlier request under the same idempotency key. The saga selects
    /// the object with the announced name.
    pub(super) async fn scan_bucket(
        &self,
        search: SearchId,
        command: &LookForUploads,
    ) -> Result<HandlerResult, HandlerError> {
        let prefix = ObjectKey::folder(&self.key_prefix, command.project_id, search);
        let mut files = Vec::new();
        for object in self.bucket.find(&prefix).await? {
            let Ok(key) = ObjectKey::parse(&self.key_prefix, &object.key) else { continue };
            let is_admitted = key.token.is_some() || self.admit_untokened;
            let is_new = !command.known.contains(&key.file);
            if !is_admitted || !is_new || files.len() == MAX_OBJECTS {
                continue;
            }
            let facts = self.objects.head(&object.bucket, &object.key, None).await?;
            let Some(facts) = facts else { continue };
            let object = ObjectRef { version: facts.version, size_bytes: facts.size_bytes, ..object };
            files.push(SearchUploadSaved::of(&key, object, facts.metadata));
        }
        let why = format!("found {} objects that the saga did not know", files.len());
        let (look_id, index) = (command.look_id, files.len());
        let found = UploadsFound { look_id, files };
        // Redeliveries of the command may find different files, and a message id must always have the same content.
        HandlerResult::completed(why).reply_as(index, &SearchEvent::UploadsFound(found))
    }
}
