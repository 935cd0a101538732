//! Changes of a project's searches since a client's last request.
//!
//! The client receives a cursor of what it has seen and sends it back ([`ChangeCursor`]), so the server stores
//! nothing for it. Each request examines the searches that may have changed: the unfinished ones, and those written
//! since, in the order of the store. Searches that are as the client has seen them are omitted. Nothing depends on
//! the clock of a server.

use std::fmt;

use futures::{StreamExt, TryStreamExt, stream};
use imports::{Job, Jobs, ProjectId, SearchId};
use messages::StoreError;
use outbox::ViewPosition;
use serde::Serialize;
use uuid::Uuid;

/// The maximum number of searches that are examined for one response, and that a client's [`ChangeCursor`] records.
/// If a project has more unfinished searches, some are reported repeatedly.
pub const MAX_SEEN: usize = 100;
/// The number of searches that are read concurrently.
const CONCURRENT_READS: usize = 8;

/// A search that has changed.
#[derive(Debug, Clone)]
pub struct Change {
    /// The search.
    pub search_id: SearchId,
    /// The current state; `None` if the search was deleted.
    pub now: Option<Job>,
}

/// The searches of a project that a client has seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangeCursor {
    project: ProjectId,
    /// The client has seen everything that was written up to here ([`ViewPosition::at`]).
    since: u64,
    /// The position in the current pass over the searches that may have changed; `None` between two passes.
    within: Option<ViewPosition>,
    /// The searches seen in this pass, or in the last one: a tag of each search's state.
    seen_tags: Vec<u64>,
    /// The searches seen before this pass that have not been reached again.
    earlier_tags: Vec<u64>,
}

impl ChangeCursor {
    fn new(project: ProjectId, since: u64) -> Self {
        Self { project, since, within: None, seen_tags: Vec::new(), earlier_tags: Vec::new() }
    }

    /// Parses the text form; returns `None` for any other text, and for a cursor of another project.
    pub fn read(project: ProjectId, text: &str) -> Option<Self> {
        let mut fields = text.split('.');
        fields.next().filter(|of| *of == mark(project))?;
        let (since, seen_tags) = (number(fields.next()?)?, tags(fields.next()?)?);
        let seen = Self { seen_tags, ..Self::new(project, since) };
        let Some(at) = fields.next() else { return Some(seen) };
        let partition = SearchId::from_uuid(Uuid::try_parse(fields.next()?).ok()?);
        let within = Some(ViewPosition { at: number(at)?, partition });
        let earlier_tags = tags(fields.next()?)?;
        fields.next().is_none().then_some(Self { within, earlier_tags, ..seen })
    }

    /// Returns `true` if the pass is complete; otherwise the next request continues it.
    pub fn is_whole(&self) -> bool {
        self.within.is_none()
    }

    /// Records that the client has seen this state. Returns `true` if it had seen it before.
    fn mark_seen(&mut self, tag: u64) -> bool {
        let place = self.earlier_tags.iter().position(|known| *known == tag);
        if let Some(place) = place {
            self.earlier_tags.swap_remove(place);
        }
        let is_known = place.is_some() || self.seen_tags.contains(&tag);
        if self.seen_tags.len() < MAX_SEEN && !self.seen_tags.contains(&tag) {
            self.seen_tags.push(tag);
        }
        is_known
    }
}

/// Formats the cursor as one word of letters, digits and dots.
impl fmt::Display for ChangeCursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tags = |tags: &[u64]| tags.iter().map(|tag| format!("{tag:016x}")).collect::<String>();
        write!(f, "{}.{:x}.{}", mark(self.project), self.since, tags(&self.seen_tags))?;
        match self.within {
            None => Ok(()),
            Some(ViewPosition { at, partition }) => {
                write!(f, ".{at:x}.{}.{}", partition.as_uuid().simple(), tags(&self.earlier_tags))
            }
        }
    }
}

/// A tag of the project, so that its cursor is rejected by other projects.
fn mark(project: ProjectId) -> String {
    let mut mark = Uuid::new_v5(&project.as_uuid(), b"changes").simple().to_string();
    mark.truncate(8);
    mark
}

fn number(text: &str) -> Option<u64> {
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    u64::from_str_radix(text, 16).ok().filter(|_| is_number)
}

fn tags(text: &str) -> Option<Vec<u64>> {
    const DIGITS: usize = 16;
    let has_tags = text.len() <= DIGITS * MAX_SEEN && text.len().is_multiple_of(DIGITS);
    let tag = |digits| std::str::from_utf8(digits).ok().and_then(number);
    has_tags.then(|| text.as_bytes().chunks(DIGITS).map(tag).collect()).flatten()
}

/// Returns up to `limit` changed searches of a project, and the next cursor. Without a cursor, nothing has changed:
/// the client first requests a cursor, then lists the searches, and then requests the changes since.
///
/// If there are `limit` changes, more may follow immediately.
pub async fn changes(
    jobs: &Jobs,
    project: ProjectId,
    seen: Option<&ChangeCursor>,
    limit: usize,
) -> Result<(Vec<Change>, ChangeCursor), StoreError> {
    let written = &jobs.views.written;
    let mut next = match seen {
        Some(seen) => seen.clone(),
        None => ChangeCursor::new(project, written.settled(written.last_written(project.as_uuid()).await?)),
    };
    // A new pass begins. The tags of the last pass show which searches have not changed since then.
    if next.within.is_none() {
        next.earlier_tags = std::mem::take(&mut next.seen_tags);
    }
    let found = jobs.changed(project, next.since, next.within, MAX_SEEN).await?;
    let is_all = found.len() < MAX_SEEN;
    let looks = stream::iter(found).map(|(place, job)| async move {
        let tag = tag_of(jobs, place.partition, job.as_ref()).await?;
        Ok::<_, StoreError>((place, tag, job))
    });
    let looked: Vec<(ViewPosition, u64, Option<Job>)> =
        looks.buffered(CONCURRENT_READS).try_collect().await?;
    let mut changes = Vec::new();
    for (place, tag, now) in looked {
        if seen.is_some() && changes.len() == limit {
            return Ok((changes, next));
        }
        if !next.mark_seen(tag) && seen.is_some() {
            changes.push(Change { search_id: place.partition, now });
        }
        next.within = Some(place);
    }
    // The pass is complete. The next page begins at the last write that no other write can precede any more.
    if is_all {
        let last = next.within.take().map_or(0, |last| written.settled(last.at));
        next.since = next.since.max(last);
        next.earlier_tags.clear();
    }
    Ok((changes, next))
}

/// Returns a tag that identifies the state of a search.
async fn tag_of(jobs: &Jobs, search: SearchId, job: Option<&Job>) -> Result<u64, StoreError> {
    match job {
        None => tag(&(search, "deleted")),
        // A search that has ended changes only if it is stored again.
        Some(job) if job.state.has_ended() => tag(&(search, job.revision)),
        // Some revisions do not change the data that clients see.
        Some(job) => tag(&(Job { revision: 0, ..job.clone() }, jobs.progress(search).await?)),
    }
}

fn tag(of: &impl Serialize) -> Result<u64, StoreError> {
    let text = serde_json::to_vec(of)
        .map_err(|error| StoreError::unusable("serializing a search for a change cursor", error))?;
    Ok(Uuid::new_v5(&Uuid::NAMESPACE_OID, &text).as_u64_pair().0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROJECT: ProjectId = ProjectId::from_uuid(Uuid::nil());

    #[test]
    fn cursor_round_trips_and_rejects_other_text() {
        let within = ViewPosition { at: 0x1f, partition: SearchId::from_uuid(Uuid::from_u128(7)) };
        let nothing = ChangeCursor::new(PROJECT, 0);
        for seen in [
            nothing.clone(),
            ChangeCursor { seen_tags: vec![0, u64::MAX], ..ChangeCursor::new(PROJECT, u64::MAX) },
            ChangeCursor {
                within: Some(within),
                seen_tags: vec![2],
                earlier_tags: vec![3; MAX_SEEN],
                ..nothing
            },
        ] {
            let text = seen.to_string();
            assert_eq!(ChangeCursor::read(PROJECT, &text), Some(seen));
            let other = ProjectId::from_uuid(Uuid::from_u128(1));
            assert_eq!(ChangeCursor::read(other, &text), None, "another project's cursor");
        }
        let many = format!("1.{}", "0".repeat(16 * (MAX_SEEN + 1)));
        let odd = "1.+000000000000000";
        for wrong in
            ["", "1", ".", "x.", "+1.", "1.0", odd, "1.ääääääää", &many, "1..0", "1..2...", "1..2..0."]
        {
            assert_eq!(ChangeCursor::read(PROJECT, &format!("{}.{wrong}", mark(PROJECT))), None, "{wrong}");
        }
    }

    #[test]
    fn changes_beyond_the_cursor_capacity_repeat() {
        let mut seen = ChangeCursor { earlier_tags: vec![1, 2], ..ChangeCursor::new(PROJECT, 0) };
        assert_eq!([1, 3, 3, 1].map(|tag| seen.mark_seen(tag)), [true, false, true, true]);
        assert_eq!((seen.seen_tags, seen.earlier_tags), (vec![1, 3], vec![2]));
        let mut full =
            ChangeCursor { seen_tags: (0..MAX_SEEN as u64).collect(), ..ChangeCursor::new(PROJECT, 0) };
        assert_eq!([1_000, 1_000].map(|tag| full.mark_seen(tag)), [false, false]);
    }
}
