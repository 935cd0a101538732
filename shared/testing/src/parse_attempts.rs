//! The contract of [`ParseAttempts`].

use imports::{AttemptState, FileFence, ParseAttempts, ReadingStatus};
use messages::Host;

use crate::search::{self, end};
use contracts::{CheckResult, sample};

/// The adapter under test.
pub struct Ports<'a> {
    /// Tracks attempts.
    pub track: &'a dyn ParseAttempts,
    /// Ids.
    pub host: &'a dyn Host,
}

/// The version of the reader.
const READER: u32 = 1;

/// Checks the whole contract.
pub async fn all(ports: &Ports<'_>) -> CheckResult {
    attempts_are_counted_until_one_ends(ports).await?;
    progress_leaves_one_attempt_counted(ports).await?;
    status_is_kept_until_the_next_one(ports).await
}

/// Attempts at other files are counted separately.
pub async fn attempts_are_counted_until_one_ends(ports: &Ports<'_>) -> CheckResult {
    let (search, file, other) =
        (sample::partition(ports.host), search::file(ports.host), search::file(ports.host));
    ports.track.end(search, file).await?;
    for begun in 0..3 {
        assert_eq!(
            ports.track.start(search, file, READER).await?,
            AttemptState { begun, ..AttemptState::default() }
        );
    }
    ports.track.start(search, other, READER).await?;
    ports.track.end(search, file).await?;
    assert_eq!(ports.track.start(search, file, READER).await?.begun, 0);
    assert_eq!(ports.track.start(search, file, READER).await?.begun, 1);
    assert_eq!(ports.track.start(search, other, READER).await?.begun, 1);
    Ok(())
}

/// Only another checkpoint counts as progress, and an ended attempt does not count again.
pub async fn progress_leaves_one_attempt_counted(ports: &Ports<'_>) -> CheckResult {
    let (search_id, file_id) = (sample::partition(ports.host), search::file(ports.host));
    let held = FileFence { search_id, file_id, fence: 0 };
    let within = |byte: u64| ReadingStatus::Within(serde_json::json!({ "byte": byte, "name": "$begun" }));
    let start =
        async || Ok::<_, messages::StoreError>(ports.track.start(search_id, file_id, READER).await?.begun);
    for begun in 0..3 {
        assert_eq!(start().await?, begun);
    }
    ports.track.save(&held, &within(1)).await?;
    assert_eq!((start().await?, start().await?), (1, 2));
    ports.track.save(&held, &within(1)).await?;
    assert_eq!(start().await?, 3);
    ports.track.save(&held, &within(2)).await?;
    assert_eq!(start().await?, 1);
    ports.track.end(search_id, file_id).await?;
    ports.track.save(&held, &within(3)).await?;
    assert_eq!(start().await?, 0);
    Ok(())
}

/// This holds regardless of the outcome of attempts.
pub async fn status_is_kept_until_the_next_one(ports: &Ports<'_>) -> CheckResult {
    let (search_id, file_id) = (sample::partition(ports.host), search::file(ports.host));
    let within = |byte: u64| {
        ReadingStatus::Within(serde_json::json!({ "byte": byte, "carried": ["Title,Ärzte"], "none": null }))
    };
    let held = FileFence { search_id, file_id, fence: 0 };
    let reached =
        async || Ok::<_, messages::StoreError>(ports.track.start(search_id, file_id, READER).await?.place);
    assert!(ports.track.save(&held, &within(1)).await.is_err(), "nothing was begun");
    assert_eq!(reached().await?, None);
    let steps = [
        (within(1), within(1)),
        (within(9_000_000_000), within(9_000_000_000)),
        (within(2), within(2)),
        (end(0), end(0)),
        (within(3), end(0)),
        (end(3), end(3)),
    ];
    for (place, then) in steps {
        ports.track.save(&held, &place).await?;
        ports.track.end(search_id, file_id).await?;
        assert_eq!(reached().await?, Some(then), "after {place:?}");
    }
    Ok(())
}
