//! What [`TrackReading`] promises.

use imports::{Counts, Place, Reading, Share, TrackReading, WriteStudies};
use messages::Host;

use crate::sample::search;
use crate::{Checked, sample};

/// What is under test.
pub struct Ports<'a> {
    /// Keeps track.
    pub track: &'a dyn TrackReading,
    /// Discards.
    pub write: &'a dyn WriteStudies,
    /// Ids.
    pub host: &'a dyn Host,
}

/// Checks every promise.
///
/// # Errors
/// When a port fails.
pub async fn all(ports: &Ports<'_>) -> Checked {
    attempts_are_counted_until_one_ends_by_itself(ports).await?;
    a_place_stays_until_another_is_reached_or_the_file_is_discarded(ports).await
}

/// Those of other files are counted by themselves.
///
/// # Errors
/// When a port fails.
pub async fn attempts_are_counted_until_one_ends_by_itself(ports: &Ports<'_>) -> Checked {
    let (search, file, other) =
        (sample::partition(ports.host), search::file(ports.host), search::file(ports.host));
    for begun in 0..3 {
        assert_eq!(ports.track.begin(search, file).await?, Reading { begun, place: None });
    }
    ports.track.begin(search, other).await?;
    ports.track.pause(search, file).await?;
    assert_eq!(ports.track.begin(search, file).await?.begun, 0);
    assert_eq!(ports.track.begin(search, file).await?.begun, 1);
    assert_eq!(ports.track.begin(search, other).await?.begun, 1);
    Ok(())
}

/// Whatever becomes of the attempts; discarding a file forgets them too.
///
/// # Errors
/// When a port fails.
pub async fn a_place_stays_until_another_is_reached_or_the_file_is_discarded(ports: &Ports<'_>) -> Checked {
    let (search, file) = (sample::partition(ports.host), search::file(ports.host));
    let within = |byte: u64| {
        Place::Within(serde_json::json!({ "byte": byte, "carried": ["Title,Ärzte"], "none": null }))
    };
    let counts = Counts {
        format: "RIS".to_owned(),
        format_certainty: "certain".to_owned(),
        encoding: "UTF-8".to_owned(),
        encoding_certainty: "certain".to_owned(),
        records: 3,
        studies: 2,
        quarantined: 1,
    };
    let end = |unmarked| Place::End { counts: counts.clone(), unmarked };
    let reached = async || Ok::<_, messages::StoreError>(ports.track.begin(search, file).await?.place);
    ports.track.reach(search, file, &within(1)).await?;
    assert_eq!(reached().await?, None, "nothing was begun");
    let steps = [
        (within(1), within(1)),
        (within(9_000_000_000), within(9_000_000_000)),
        (within(2), within(2)),
        (end(vec![Share::ALL]), end(vec![Share::ALL])),
        (within(3), end(vec![Share::ALL])),
        (end(Vec::new()), end(Vec::new())),
    ];
    for (place, then) in steps {
        ports.track.reach(search, file, &place).await?;
        ports.track.pause(search, file).await?;
        assert_eq!(reached().await?, Some(then), "after {place:?}");
    }
    ports.write.discard(search, file).await?;
    ports.track.pause(search, file).await?;
    assert_eq!(ports.track.begin(search, file).await?, Reading::default());
    Ok(())
}
