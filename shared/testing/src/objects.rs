//! The contract of [`PresignUpload`], [`ReadObject`] and [`FindObjects`].

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::{self, StreamExt, TryStreamExt};
use imports::messages::ObjectRef;
use imports::objects::MAX_FOUND;
use imports::{FindObjects, PresignUpload, PresignedPost, ReadObject, UploadGrant};
use messages::Host;

use contracts::{CheckResult, sample};

/// The result of an upload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UploadOutcome {
    /// The object is stored.
    Stored,
    /// The form does not permit the upload.
    Refused,
}

/// Sends a form like a reviewer's browser.
#[async_trait]
pub trait Upload: Send + Sync {
    /// Uploads `bytes` with a form.
    async fn upload(
        &self,
        form: &PresignedPost,
        bytes: Vec<u8>,
    ) -> Result<UploadOutcome, Box<dyn std::error::Error + Send + Sync>>;
}

/// The adapter under test.
pub struct Ports<'a> {
    /// Creates forms.
    pub presign: &'a dyn PresignUpload,
    /// Uploads objects with the forms.
    pub upload: &'a dyn Upload,
    /// Reads.
    pub read: &'a dyn ReadObject,
    /// Lists the bucket.
    pub find: &'a dyn FindObjects,
    /// Ids and time, with the clock for the expiry of forms.
    pub host: &'a dyn Host,
    /// The bucket of the uploads.
    pub bucket: &'a str,
    /// The required prefix of keys, such as `uploads/`.
    pub prefix: &'a str,
}

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    uploaded_object_keeps_bytes_size_and_metadata(ports).await?;
    object_of_several_pieces_round_trips(ports).await?;
    upload_size_must_match_announcement(ports).await?;
    form_is_valid_for_one_key(ports).await?;
    an_expired_form_is_refused(ports).await?;
    form_is_reusable_until_object_is_stored(ports).await?;
    an_absent_object_is_none(ports).await?;
    removed_object_is_absent(ports).await?;
    objects_are_listed_by_prefix_in_order(ports).await?;
    listed_size_is_that_of_stored_object(ports).await?;
    listing_is_limited_to_one_thousand(ports).await
}

impl Ports<'_> {
    /// Returns a grant for an hour, with a key that contains all types of characters of file names.
    fn grant(&self, size_bytes: usize) -> UploadGrant {
        UploadGrant {
            key: format!("{}{}/My search + 50% (Ärzte).ris", self.prefix, self.host.fresh_id()),
            size_bytes: size_bytes as u64,
            metadata: BTreeMap::from([("search-name".to_owned(), "Spiel%20%26%20Sucht".to_owned())]),
            expires_at: sample::later(sample::now(self.host), 3600),
        }
    }

    async fn form(&self, grant: &UploadGrant) -> Result<PresignedPost, messages::StoreError> {
        let form = self.presign.presign(grant).await?;
        assert_eq!(form.expires_at, grant.expires_at);
        Ok(form)
    }

    /// Stores an object under a key.
    async fn store(&self, key: String, bytes: &[u8]) -> CheckResult {
        let form = self.form(&UploadGrant { key, ..self.grant(bytes.len()) }).await?;
        assert_eq!(self.upload.upload(&form, bytes.to_vec()).await?, UploadOutcome::Stored);
        Ok(())
    }

    /// Returns a key prefix without objects.
    fn folder(&self) -> String {
        format!("{}{}/", self.prefix, self.host.fresh_id())
    }

    async fn keys(&self, prefix: &str) -> Result<Vec<String>, messages::StoreError> {
        Ok(self.find.find(prefix).await?.into_iter().map(|found| found.key).collect())
    }

    async fn size(&self, key: &str) -> Result<Option<u64>, messages::StoreError> {
        Ok(self.read.head(self.bucket, key, None).await?.map(|facts| facts.size_bytes))
    }

    async fn bytes(&self, key: &str, size_bytes: u64) -> Result<Option<Vec<u8>>, messages::StoreError> {
        let object =
            ObjectRef { bucket: self.bucket.to_owned(), key: key.to_owned(), version: None, size_bytes };
        match self.read.open(&object, 0).await? {
            Some(stream) => Ok(Some(stream.try_concat().await?)),
            None => Ok(None),
        }
    }
}

/// The object is stored under exactly its key.
pub async fn uploaded_object_keeps_bytes_size_and_metadata(ports: &Ports<'_>) -> CheckResult {
    let grant = ports.grant(12);
    let form = ports.form(&grant).await?;
    assert_eq!(ports.size(&grant.key).await?, None, "a form alone stores nothing");
    assert_eq!(ports.upload.upload(&form, b"TY  - JOUR\r\n".to_vec()).await?, UploadOutcome::Stored);
    let facts = ports.read.head(ports.bucket, &grant.key, None).await?.ok_or("it is stored")?;
    assert_eq!((facts.size_bytes, facts.metadata), (12, grant.metadata));
    assert_eq!(ports.bytes(&grant.key, 12).await?, Some(b"TY  - JOUR\r\n".to_vec()));
    Ok(())
}

/// The object is larger than the pieces in which a store reads.
pub async fn object_of_several_pieces_round_trips(ports: &Ports<'_>) -> CheckResult {
    let bytes: Vec<u8> = (0..1_500_001_u32).flat_map(u32::to_le_bytes).collect();
    let grant = ports.grant(bytes.len());
    let form = ports.form(&grant).await?;
    assert_eq!(ports.upload.upload(&form, bytes.clone()).await?, UploadOutcome::Stored);
    let read = ports.bytes(&grant.key, bytes.len() as u64).await?;
    assert!(read.is_some_and(|read| read == bytes), "other bytes");
    for from in [1, 3_000_000, bytes.len() - 1, bytes.len()] {
        let (bucket, key) = (ports.bucket.to_owned(), grant.key.clone());
        let object = ObjectRef { bucket, key, version: None, size_bytes: bytes.len() as u64 };
        let rest = ports.read.open(&object, from as u64).await?.ok_or("it is stored")?;
        assert!(rest.try_concat().await? == bytes[from..], "other bytes from {from} on");
    }
    Ok(())
}

/// An upload with one byte less or more than announced is refused.
pub async fn upload_size_must_match_announcement(ports: &Ports<'_>) -> CheckResult {
    for (size, expected) in [
        (0, UploadOutcome::Refused),
        (999, UploadOutcome::Refused),
        (1000, UploadOutcome::Stored),
        (1001, UploadOutcome::Refused),
    ] {
        let grant = ports.grant(1000);
        let form = ports.form(&grant).await?;
        assert_eq!(ports.upload.upload(&form, vec![b'x'; size]).await?, expected, "{size} bytes");
        let stored = (expected == UploadOutcome::Stored).then_some(size as u64);
        assert_eq!(ports.size(&grant.key).await?, stored, "{size} bytes");
    }
    Ok(())
}

/// A changed form was not granted.
pub async fn form_is_valid_for_one_key(ports: &Ports<'_>) -> CheckResult {
    let grant = ports.grant(1);
    let mut form = ports.form(&grant).await?;
    let other = ports.grant(1).key;
    form.fields.insert("key".to_owned(), other.clone());
    assert_eq!(ports.upload.upload(&form, b"x".to_vec()).await?, UploadOutcome::Refused);
    assert_eq!((ports.size(&grant.key).await?, ports.size(&other).await?), (None, None));
    Ok(())
}

/// Uploads with the form are refused from its expiry on.
pub async fn an_expired_form_is_refused(ports: &Ports<'_>) -> CheckResult {
    let lifetime = 3;
    let grant =
        UploadGrant { expires_at: sample::later(sample::now(ports.host), lifetime), ..ports.grant(1) };
    let form = ports.form(&grant).await?;
    ports.host.sleep(Duration::from_secs(lifetime.unsigned_abs())).await;
    assert_eq!(ports.upload.upload(&form, b"x".to_vec()).await?, UploadOutcome::Refused);
    assert_eq!(ports.size(&grant.key).await?, None);
    Ok(())
}

/// A reviewer who sees an error tries again. A store may replace the stored object or refuse the form; in both cases,
/// the object is one of the two uploads and has the announced size.
pub async fn form_is_reusable_until_object_is_stored(ports: &Ports<'_>) -> CheckResult {
    let grant = ports.grant(6);
    let form = ports.form(&grant).await?;
    assert_eq!(ports.upload.upload(&form, b"broke".to_vec()).await?, UploadOutcome::Refused);
    assert_eq!(ports.upload.upload(&form, b"first.".to_vec()).await?, UploadOutcome::Stored);
    let expected = match ports.upload.upload(&form, b"second".to_vec()).await? {
        UploadOutcome::Stored => b"second".to_vec(),
        UploadOutcome::Refused => b"first.".to_vec(),
    };
    assert_eq!(ports.size(&grant.key).await?, Some(6));
    assert_eq!(ports.bytes(&grant.key, 6).await?, Some(expected));
    Ok(())
}

/// The result is neither an error nor an empty object.
pub async fn an_absent_object_is_none(ports: &Ports<'_>) -> CheckResult {
    let key = ports.grant(1).key;
    assert_eq!(ports.read.head(ports.bucket, &key, None).await?, None);
    assert_eq!(ports.bytes(&key, 1).await?, None);
    Ok(())
}

/// Removing it again succeeds.
pub async fn removed_object_is_absent(ports: &Ports<'_>) -> CheckResult {
    let folder = ports.folder();
    let (key, kept) = (format!("{folder}a.ris"), format!("{folder}b.ris"));
    for key in [&key, &kept] {
        ports.store(key.clone(), b"some bytes").await?;
    }
    for _ in 0..2 {
        ports.find.remove(&key).await?;
    }
    assert_eq!(ports.read.head(ports.bucket, &key, None).await?, None);
    assert_eq!(ports.bytes(&key, 1).await?, None);
    let found: Vec<String> = ports.find.find(&folder).await?.into_iter().map(|found| found.key).collect();
    assert_eq!(found, [kept]);
    Ok(())
}

/// Keys are ordered by their bytes. The folder of another search is not included, even if its name has the same prefix.
pub async fn objects_are_listed_by_prefix_in_order(ports: &Ports<'_>) -> CheckResult {
    let folder = ports.folder();
    assert_eq!(ports.keys(&folder).await?, Vec::<String>::new());
    let names = ["Z.ris", "a b.ris", "a/b+%/c.ris", "a/Ärzte.ris", "a.ris", "\u{10FFFF}.ris"];
    for name in names {
        ports.store(format!("{folder}{name}"), name.as_bytes()).await?;
    }
    let beside = folder.trim_end_matches('/');
    for other in [ports.folder(), format!("{beside}0/"), format!("{beside}-")] {
        ports.store(format!("{other}a.ris"), b"x").await?;
    }
    let mut expected = names.map(|name| format!("{folder}{name}"));
    expected.sort_unstable();
    assert_eq!(ports.keys(&folder).await?, expected);
    assert_eq!(ports.keys(&format!("{folder}a/")).await?, [expected[3].clone(), expected[4].clone()]);
    assert_eq!(ports.keys(&expected[0]).await?, expected[..1], "a key begins with itself");
    for found in ports.find.find(&folder).await? {
        let name = found.key.strip_prefix(&folder).ok_or("below the folder")?;
        assert_eq!((found.bucket.as_str(), found.version), (ports.bucket, None));
        assert_eq!(found.size_bytes, name.len() as u64);
    }
    Ok(())
}

/// A file that was uploaded twice is listed once, with its stored size.
pub async fn listed_size_is_that_of_stored_object(ports: &Ports<'_>) -> CheckResult {
    let key = format!("{}a.ris", ports.folder());
    let mut size = 0;
    for bytes in [&b"first"[..], b"the second"] {
        let form = ports.form(&UploadGrant { key: key.clone(), ..ports.grant(bytes.len()) }).await?;
        if ports.upload.upload(&form, bytes.to_vec()).await? == UploadOutcome::Stored {
            size = bytes.len() as u64;
        }
    }
    let sizes = ports.find.find(&key).await?.into_iter().map(|found| found.size_bytes).collect::<Vec<_>>();
    assert_eq!(sizes, [size]);
    Ok(())
}

/// If there is more than one page of keys, the first page is returned.
pub async fn listing_is_limited_to_one_thousand(ports: &Ports<'_>) -> CheckResult {
    let folder = ports.folder();
    let keys: Vec<String> = (0..=MAX_FOUND).map(|n| format!("{folder}{n:04}.ris")).collect();
    // The objects are stored in reverse, so that the order of keys differs from the order of storing.
    let stored = keys.iter().rev().map(|key| ports.store(key.clone(), b"x"));
    stream::iter(stored).buffer_unordered(8).try_collect::<Vec<()>>().await?;
    let found = ports.keys(&folder).await?;
    assert_eq!((found.len(), found.last()), (MAX_FOUND, keys.get(MAX_FOUND - 1)));
    assert_eq!(
        ports.keys(&format!("{folder}1")).await?,
        keys[MAX_FOUND..],
        "what is behind it can be asked for"
    );
    Ok(())
}
