//! Uploads: the notification, the folder, and the files that are still to come.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_lambda_events::s3::S3Event;
use contracts::sample;
use embedded::{BUCKET, LocalUpload, PendingUpload, UploadError};
use imports::{PresignUpload, ProjectId, UploadGrant, queues};
use messages::{Disposition, ReceiveMessages};

use crate::depot::{Depot, TestResult};

fn grant(depot: &Depot, key: &str, size_bytes: u64) -> UploadGrant {
    UploadGrant {
        key: key.to_owned(),
        size_bytes,
        metadata: BTreeMap::new(),
        expires_at: sample::later(sample::now(&*depot.host), 60),
    }
}

fn files(depot: &Depot) -> usize {
    std::fs::read_dir(depot.folder.path().join("objects")).unwrap().count()
}

async fn notification(depot: &Depot) -> Result<S3Event, Box<dyn std::error::Error + Send + Sync>> {
    let received = depot.store.receive(&queues::UPLOADS, 1, Duration::from_secs(30)).await?;
    let received = received.first().ok_or("no notification")?;
    depot.store.answer(&queues::UPLOADS, &received.receipt, &Disposition::Acknowledge).await?;
    Ok(serde_json::from_str(&received.delivery.body)?)
}

#[tokio::test]
async fn upload_sends_s3_notification() -> TestResult {
    let depot = Depot::new();
    let mut sequencers = Vec::new();
    for folder in ["a", "b"] {
        let key = format!("uploads/{folder}/My search + 50% (Ärzte).ris");
        let form = depot.store.presign(&grant(&depot, &key, 10)).await?;
        depot.store.upload(&form, b"TY  - JOUR".as_slice()).await?;
        let event = notification(&depot).await?;
        let record = event.records.first().ok_or("no record")?;
        assert_eq!(record.event_name.as_deref(), Some("ObjectCreated:Post"));
        assert_eq!(record.s3.bucket.name.as_deref(), Some(BUCKET));
        let object = &record.s3.object;
        let key = format!("uploads/{folder}/My+search+%2B+50%25+%28%C3%84rzte%29.ris");
        assert_eq!((object.key.as_ref(), object.size), (Some(&key), Some(10)));
        sequencers.push(object.sequencer.clone());
    }
    assert!(sequencers.is_sorted() && sequencers[0] != sequencers[1], "{sequencers:?}");
    Ok(())
}

#[tokio::test]
async fn refused_upload_leaves_no_file_or_notification() -> TestResult {
    let depot = Depot::new();
    let mut form = depot.store.presign(&grant(&depot, "uploads/a", 100)).await?;
    let error = depot.store.upload(&form, [0; 101].as_slice()).await.unwrap_err();
    assert!(matches!(error, UploadError::TooLarge { max_bytes: 100 }) && !error.is_retryable());
    let error = depot.store.upload(&form, [0; 99].as_slice()).await.unwrap_err();
    assert!(
        matches!(error, UploadError::TooSmall { size_bytes: 99, min_bytes: 100 }) && !error.is_retryable()
    );
    let missing = depot.folder.path().join("missing.ris");
    assert!(matches!(depot.store.upload_file(&form, &missing).await, Err(UploadError::Read(_))));
    depot.store.check_form(&form).await?;
    depot.host.advance(Duration::from_secs(60));
    assert!(matches!(depot.store.upload(&form, [1].as_slice()).await, Err(UploadError::Expired { .. })));
    form.fields.clear();
    assert!(matches!(depot.store.upload(&form, [1].as_slice()).await, Err(UploadError::NotGranted { .. })));
    assert_eq!(files(&depot), 0);
    assert_eq!(depot.store.count_messages().await?[&queues::UPLOADS].total(), 0);
    Ok(())
}

#[tokio::test]
async fn form_accepts_one_complete_upload() -> TestResult {
    let depot = Depot::new();
    let form = depot.store.presign(&grant(&depot, "uploads/a", 5)).await?;
    assert!(depot.store.upload(&form, b"bro".as_slice()).await.is_err());
    let both = [b"first", b"other"].map(|bytes| depot.store.upload(&form, bytes.as_slice()));
    let both = futures::future::join_all(both).await;
    let used = both.iter().filter(|uploaded| matches!(uploaded, Err(UploadError::Used))).count();
    assert_eq!((used, both.iter().filter(|uploaded| uploaded.is_ok()).count()), (1, 1), "{both:?}");
    // The form never becomes usable again, not even by a repeated announcement.
    let again = depot.store.presign(&grant(&depot, "uploads/a", 5)).await?;
    depot.host.advance(Duration::from_secs(61));
    assert!(matches!(depot.store.check_form(&again).await, Err(UploadError::Used)));
    assert_eq!(files(&depot), 1);
    assert_eq!(depot.store.count_messages().await?[&queues::UPLOADS].total(), 1);
    Ok(())
}

#[tokio::test]
async fn pending_uploads_are_listed_in_order() -> TestResult {
    let depot = Depot::new();
    let (search, project) = (sample::partition(&*depot.host), ProjectId::from_uuid(uuid::Uuid::from_u128(1)));
    let form = depot.store.presign(&grant(&depot, "uploads/a", 10)).await?;
    let uploads: Vec<LocalUpload> = (0..3)
        .map(|n| LocalUpload {
            file_id: testing::search::file(&*depot.host),
            path: format!("/data/Übersicht {n}.ris").into(),
            form: form.clone(),
        })
        .collect();
    depot.store.remember_uploads(search, project, uploads.clone()).await?;
    depot.store.upload_done(search, uploads[1].file_id).await?;
    let pending = |upload: &LocalUpload| PendingUpload {
        search_id: search,
        project_id: project,
        upload: upload.clone(),
    };
    assert_eq!(depot.reopened().pending_uploads().await?, [pending(&uploads[0]), pending(&uploads[2])]);
    Ok(())
}
