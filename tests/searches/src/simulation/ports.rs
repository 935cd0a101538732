//! The application's own ports: objects, studies, progress and upload forms. Each performs its call in one piece, as the
//! contract suites demand of an adapter; what lies between two calls is the scheduler's.

use async_trait::async_trait;
use futures::StreamExt;
use futures::stream;
use imports::messages::ObjectRef;
use imports::objects::ObjectStream;
use imports::{
    FileId, FindObjects, Identity, Mark, ObjectFacts, ParsedFile, PresignUpload, PresignedPost, Progress,
    Quarantined, ReadObject, ReadProgress, ReadStudies, ReportProgress, SearchId, Study, UploadGrant,
    WriteStudies,
};
use messages::StoreError;
use references::Known;
use simulation::access::short;
use simulation::{Access, Call, Scene};

use super::NO_LOOK;
use super::outside::Outside;

/// Looking an object up.
const OBJECTS_HEAD: Call = Call::own(0, "objects.head");
/// Reading an object.
const OBJECTS_OPEN: Call = Call::own(1, "objects.open");
/// Storing studies.
const STUDIES_STORE: Call = Call::own(2, "studies.store").late();
/// Asking how far a file is stored.
const STUDIES_STORED: Call = Call::own(3, "studies.stored");
/// Remembering that a file was read to its end.
const STUDIES_FINISH: Call = Call::own(4, "studies.finish").late();
/// Reading which files were, and what their studies are recognised by.
const STUDIES_READ: Call = Call::own(5, "studies.read");
/// Marking duplicates.
const STUDIES_MARK: Call = Call::own(6, "studies.mark").late();
/// Removing the studies of a file.
const STUDIES_DISCARD: Call = Call::own(7, "studies.discard").late().rare();
/// Looking through the uploaded files.
const OBJECTS_FIND: Call = Call::own(8, "objects.find").rare();

/// All of them.
pub(super) static CALLS: [Call; 9] = [
    OBJECTS_HEAD,
    OBJECTS_OPEN,
    STUDIES_STORE,
    STUDIES_STORED,
    STUDIES_FINISH,
    STUDIES_READ,
    STUDIES_MARK,
    STUDIES_DISCARD,
    OBJECTS_FIND,
];

/// The ports of one worker.
pub(super) struct Own(pub(super) Access<Outside>);

#[async_trait]
impl ReadObject for Own {
    async fn head(
        &self,
        _: &str,
        key: &str,
        version: Option<&str>,
    ) -> Result<Option<ObjectFacts>, StoreError> {
        let (key, version) = (key.to_owned(), version.map(str::to_owned));
        let head = move |scene: &mut Scene<'_, Outside>| {
            let stored = scene.object(&key, version.as_deref())?;
            let (size_bytes, version) = (stored.object.size_bytes, stored.object.version.clone());
            Some(ObjectFacts { size_bytes, version, metadata: stored.metadata.clone() })
        };
        self.0.call(OBJECTS_HEAD, head).await
    }

    async fn open(&self, object: &ObjectRef) -> Result<Option<ObjectStream>, StoreError> {
        let object = object.clone();
        let open = move |scene: &mut Scene<'_, Outside>| {
            let Some(stored) = scene.object(&object.key, object.version.as_deref()) else { return Ok(None) };
            // Nobody ever succeeds in reading a poisonous file.
            let broken = || StoreError::unavailable("reading an object", "the object cannot be read");
            let bytes = stored.bytes.ok_or_else(broken)?;
            Ok(Some(stream::iter([Ok(bytes.to_vec())]).boxed()))
        };
        self.0.call(OBJECTS_OPEN, open).await?
    }
}

#[async_trait]
impl FindObjects for Own {
    async fn find(&self, prefix: &str) -> Result<Vec<ObjectRef>, StoreError> {
        let (prefix, sees) = (prefix.to_owned(), !self.0.has(NO_LOOK));
        let find = move |scene: &mut Scene<'_, Outside>| {
            let now = scene.now();
            scene.looked.entry(prefix.clone()).or_insert(now);
            if sees { scene.found(&prefix) } else { Vec::new() }
        };
        self.0.call(OBJECTS_FIND, find).await
    }
}

/// Progress is for the eye alone.
#[async_trait]
impl ReportProgress for Own {
    async fn report(&self, _: SearchId, _: FileId, _: Progress) -> Result<(), StoreError> {
        Ok(())
    }
}

#[async_trait]
impl ReadProgress for Own {
    async fn progress(&self, _: SearchId) -> Result<Vec<(FileId, Progress)>, StoreError> {
        Ok(Vec::new())
    }
}

/// Making a form takes no call.
#[async_trait]
impl PresignUpload for Own {
    async fn presign(&self, grant: &UploadGrant) -> Result<PresignedPost, StoreError> {
        let mut fields = grant.metadata.clone();
        fields.insert("key".to_owned(), grant.key.clone());
        Ok(PresignedPost { url: "simulated".to_owned(), fields, expires_at: grant.expires_at })
    }
}

#[async_trait]
impl WriteStudies for Own {
    async fn store(&self, studies: &[Study], _: &[Quarantined]) -> Result<(), StoreError> {
        let studies = studies.to_vec();
        let store = move |scene: &mut Scene<'_, Outside>| {
            let count = studies.len();
            for study in studies {
                let (file, record) = ((study.search_id, study.file_id), study.record);
                let known = scene.studies.entry(file).or_default();
                known.entry(record).or_insert_with(|| Identity::of(record, study.reference));
            }
            scene.note(|| format!("studies.store    {count} studies"));
        };
        self.0.call(STUDIES_STORE, store).await
    }

    async fn discard(&self, search: SearchId, file: FileId) -> Result<(), StoreError> {
        let discard = move |scene: &mut Scene<'_, Outside>| {
            let found = scene.studies.remove(&(search, file)).map_or(0, |studies| studies.len());
            scene.files.remove(&(search, file));
            scene.note(|| format!("studies.discard  file {} of {}: {found}", short(&file), short(&search)));
        };
        self.0.call(STUDIES_DISCARD, discard).await
    }

    async fn finish(&self, file: &ParsedFile) -> Result<(), StoreError> {
        let file = file.clone();
        let finish = move |scene: &mut Scene<'_, Outside>| {
            scene.files.entry((file.search_id, file.file_id)).or_insert(file);
        };
        self.0.call(STUDIES_FINISH, finish).await
    }

    async fn mark(&self, marks: &[Mark]) -> Result<(), StoreError> {
        let marks = marks.to_vec();
        let mark = move |scene: &mut Scene<'_, Outside>| {
            for Mark { search_id, file_id, record, duplicate } in marks {
                let new = (duplicate.position, duplicate.record);
                let mark = scene.marks.entry((search_id, file_id, record)).or_insert(new);
                *mark = new.min(*mark);
            }
        };
        self.0.call(STUDIES_MARK, mark).await
    }
}

#[async_trait]
impl ReadStudies for Own {
    /// For readers, of which there are none here.
    async fn studies(&self, _: SearchId, _: FileId, _: u64, _: usize) -> Result<Vec<Study>, StoreError> {
        Ok(Vec::new())
    }

    /// No file here has any.
    async fn quarantined(
        &self,
        _: SearchId,
        _: FileId,
        _: u64,
        _: usize,
    ) -> Result<Vec<Quarantined>, StoreError> {
        Ok(Vec::new())
    }

    async fn identities(
        &self,
        search: SearchId,
        file: FileId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Identity>, StoreError> {
        let read = move |scene: &mut Scene<'_, Outside>| {
            let Some(known) = scene.studies.get(&(search, file)) else { return Vec::new() };
            known.range(after + 1..).map(|(_, study)| study.clone()).take(limit).collect()
        };
        self.0.call(STUDIES_READ, read).await
    }

    async fn stored(&self, search: SearchId, file: FileId) -> Result<Known, StoreError> {
        let look = move |scene: &mut Scene<'_, Outside>| {
            let known = scene.studies.get(&(search, file));
            let last = known.and_then(|known| known.keys().next_back().copied());
            Known { records: last.unwrap_or(0), quarantined: 0 }
        };
        self.0.call(STUDIES_STORED, look).await
    }

    async fn parsed(&self, search: SearchId) -> Result<Vec<ParsedFile>, StoreError> {
        self.0.call(STUDIES_READ, move |scene| scene.files_of(search)).await
    }

    async fn duplicates(&self, _: SearchId, _: FileId) -> Result<u64, StoreError> {
        Ok(0)
    }
}
