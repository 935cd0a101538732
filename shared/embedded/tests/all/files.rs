//! Uploads: the notification, the folder, and the files that are still to come.

use std::collections::BTreeMap;
use std::time::Duration;

use aws_lambda_events::s3::S3Event;
use embedded::{BUCKET, LocalUpload, PendingUpload, UploadError};
use imports::{PresignUpload, ProjectId, ReadObject, UploadGrant, queues};
use messages::{Disposition, ReceiveMessages};
use testing::sample;

use crate::depot::{Depot, Tested};

fn grant(depot: &Depot, key: &str) -> UploadGrant {
    UploadGrant {
        key: key.to_owned(),
        max_bytes: 100,
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
async fn each_upload_is_notified_in_the_form_of_s3() -> Tested {
    let depot = Depot::new();
    let form = depot.store.presign(&grant(&depot, "uploads/a/My search + 50% (Ärzte).ris")).await?;
    let mut sequencers = Vec::new();
    for _ in 0..2 {
        depot.store.upload(&form, b"TY  - JOUR".as_slice()).await?;
        let event = notification(&depot).await?;
        let record = event.records.first().ok_or("no record")?;
        assert_eq!(record.event_name.as_deref(), Some("ObjectCreated:Post"));
        assert_eq!(record.s3.bucket.name.as_deref(), Some(BUCKET));
        let object = &record.s3.object;
        assert_eq!(object.key.as_deref(), Some("uploads/a/My+search+%2B+50%25+%28%C3%84rzte%29.ris"));
        assert_eq!(object.size, Some(10));
        sequencers.push(object.sequencer.clone());
    }
    assert!(sequencers.is_sorted() && sequencers[0] != sequencers[1], "{sequencers:?}");
    assert_eq!(files(&depot), 1, "the replaced file is gone");
    Ok(())
}

#[tokio::test]
async fn a_refused_upload_leaves_neither_file_nor_notification() -> Tested {
    let depot = Depot::new();
    let mut form = depot.store.presign(&grant(&depot, "uploads/a")).await?;
    let error = depot.store.upload(&form, [0; 101].as_slice()).await.unwrap_err();
    assert!(matches!(error, UploadError::TooLarge { max_bytes: 100 }) && !error.is_retryable());
    assert!(matches!(depot.store.upload(&form, [].as_slice()).await, Err(UploadError::Empty)));
    let missing = depot.folder.path().join("missing.ris");
    assert!(matches!(depot.store.upload_file(&form, &missing).await, Err(UploadError::Read(_))));
    depot.host.advance(Duration::from_secs(60));
    assert!(matches!(depot.store.upload(&form, [1].as_slice()).await, Err(UploadError::Expired { .. })));
    form.fields.clear();
    assert!(matches!(depot.store.upload(&form, [1].as_slice()).await, Err(UploadError::NotGranted { .. })));
    assert_eq!(files(&depot), 0);
    assert_eq!(depot.store.depths().await?[&queues::UPLOADS].total(), 0);
    Ok(())
}

#[tokio::test]
async fn an_object_that_is_replaced_while_it_is_read_reads_on() -> Tested {
    use futures::TryStreamExt;
    let depot = Depot::new();
    let form = depot.store.presign(&grant(&depot, "uploads/a")).await?;
    depot.store.upload(&form, b"before".as_slice()).await?;
    let object = imports::messages::ObjectRef {
        bucket: BUCKET.into(),
        key: "uploads/a".into(),
        version: None,
        size_bytes: 6,
    };
    let stream = ReadObject::open(&depot.store, &object, 0).await?.ok_or("it is stored")?;
    depot.store.upload(&form, b"after".as_slice()).await?;
    assert_eq!(stream.try_concat().await?, b"before");
    Ok(())
}

#[tokio::test]
async fn files_that_are_still_to_come_are_remembered_in_order_until_they_are_done() -> Tested {
    let depot = Depot::new();
    let (search, project) = (sample::partition(&*depot.host), ProjectId::from_uuid(uuid::Uuid::from_u128(1)));
    let form = depot.store.presign(&grant(&depot, "uploads/a")).await?;
    let uploads: Vec<LocalUpload> = (0..3)
        .map(|n| LocalUpload {
            file_id: sample::search::file(&*depot.host),
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
