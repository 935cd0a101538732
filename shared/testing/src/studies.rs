//! What [`WriteStudies`] and [`ReadStudies`] promise.

use contracts::Host;
use imports::{ReadStudies, WriteStudies};

use crate::{Checked, sample};

/// What is under test.
pub struct Ports<'a> {
    /// Reads.
    pub read: &'a dyn ReadStudies,
    /// Writes.
    pub write: &'a dyn WriteStudies,
    /// Ids.
    pub host: &'a dyn Host,
}

/// Checks every promise.
///
/// # Errors
/// When a port fails.
pub async fn all(ports: &Ports<'_>) -> Checked {
    storing_twice_stores_once(ports).await?;
    pages_follow_the_records_whatever_the_order_of_storing(ports).await?;
    quarantined_records_are_listed_in_order_and_once(ports).await?;
    discarding_a_file_leaves_its_neighbours(ports).await
}

/// A batch that is stored again, in part or in whole, adds only what is new.
///
/// # Errors
/// When a port fails.
pub async fn storing_twice_stores_once(ports: &Ports<'_>) -> Checked {
    let (search, file) = (sample::search(ports.host), sample::file(ports.host));
    let studies: Vec<_> = (1..=5).map(|record| sample::study(search, file, record)).collect();
    ports.write.store(studies.split_at(3).0, &[]).await?;
    ports.write.store(&studies, &[]).await?;
    ports.write.store(&studies, &[]).await?;
    assert_eq!(ports.read.studies(search, file, 0, 100).await?, studies);
    Ok(())
}

/// By record number, each page after the last record of the one before.
///
/// # Errors
/// When a port fails.
pub async fn pages_follow_the_records_whatever_the_order_of_storing(ports: &Ports<'_>) -> Checked {
    let (search, file, other) =
        (sample::search(ports.host), sample::file(ports.host), sample::file(ports.host));
    for record in [12, 3, 7, 100, 1] {
        ports
            .write
            .store(&[sample::study(search, file, record), sample::study(search, other, record)], &[])
            .await?;
    }
    let page = async |after, limit| {
        let studies = ports.read.studies(search, file, after, limit).await?;
        Ok::<_, contracts::StoreError>(studies.iter().map(|study| study.record).collect::<Vec<_>>())
    };
    assert_eq!(page(0, 2).await?, [1, 3]);
    assert_eq!(page(3, 2).await?, [7, 12]);
    assert_eq!(page(12, 2).await?, [100]);
    assert!(page(100, 2).await?.is_empty());
    Ok(())
}

/// As studies are.
///
/// # Errors
/// When a port fails.
pub async fn quarantined_records_are_listed_in_order_and_once(ports: &Ports<'_>) -> Checked {
    let (search, file) = (sample::search(ports.host), sample::file(ports.host));
    let records: Vec<_> = [2, 9, 11].map(|number| sample::quarantined(search, file, number)).into();
    let mut reversed = records.clone();
    reversed.reverse();
    ports.write.store(&[], &reversed).await?;
    ports.write.store(&[], &records).await?;
    assert_eq!(ports.read.quarantined(search, file, 100).await?, records);
    assert_eq!(ports.read.quarantined(search, file, 2).await?, records.split_at(2).0);
    Ok(())
}

/// A refused file leaves nothing, and may be stored again.
///
/// # Errors
/// When a port fails.
pub async fn discarding_a_file_leaves_its_neighbours(ports: &Ports<'_>) -> Checked {
    let (search, file, kept) =
        (sample::search(ports.host), sample::file(ports.host), sample::file(ports.host));
    for file in [file, kept] {
        ports.write.store(&[sample::study(search, file, 1)], &[sample::quarantined(search, file, 2)]).await?;
    }
    ports.write.discard(search, file).await?;
    ports.write.discard(search, file).await?;
    assert_eq!(ports.read.studies(search, file, 0, 10).await?, []);
    assert_eq!(ports.read.quarantined(search, file, 10).await?, []);
    assert_eq!(ports.read.studies(search, kept, 0, 10).await?, [sample::study(search, kept, 1)]);
    assert_eq!(ports.read.quarantined(search, kept, 10).await?.len(), 1);
    ports.write.store(&[sample::study(search, file, 1)], &[]).await?;
    assert_eq!(ports.read.studies(search, file, 0, 10).await?.len(), 1);
    Ok(())
}
