//! Fair queueing: the order in which groups of messages are received.
//!
//! The messages of a partition form a group, and so do all messages without a partition. A receive returns messages of
//! the group with the fewest messages in flight, so that a large backlog of one group does not delay the others. Among
//! groups with the same number of messages in flight, the group with the longest wait since its last turn is first.
//! Groups therefore take turns even if one worker answers each batch before it receives the next, and nothing is ever
//! in flight.
//!
//! The first waiting message (`held = 0`) of each group carries the group's turn: the time since which it waits. An
//! index orders the turns, so the cost of finding the next group does not depend on the backlog; it grows with the
//! number of groups in flight, which is at most the number of workers. Every change here and in [`crate::queues`] keeps
//! the invariant that exactly the first message of a group has a turn.

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, params};

use crate::fault::Fault;
use crate::value::{limit, nanos};

/// The messages of a queue that belong to one partition.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Group<'a> {
    pub(crate) queue: &'a str,
    /// The partition; `None` for messages that belong to no partition.
    pub(crate) partition: Option<&'a str>,
}

/// A message that can be received now or later.
pub(crate) struct WaitingMessage {
    pub(crate) seq: i64,
    pub(crate) body: String,
    pub(crate) receive_count: u32,
    /// The reason why the message was dead-lettered, if any.
    pub(crate) reason: Option<String>,
    /// The time from which the message can be received, in nanoseconds since 1970.
    visible_at: i64,
}

impl WaitingMessage {
    pub(crate) fn is_visible(&self, now: Timestamp) -> bool {
        self.visible_at <= nanos(now)
    }
}

/// The groups with something to receive, in the order of their turns.
pub(crate) const IN_TURN: &str = "SELECT search_id,
        (SELECT count(*) FROM message AS held
         WHERE held.queue = ?1 AND held.held = 1 AND held.search_id IS message.search_id)
    FROM message WHERE queue = ?1 AND turn <= ?2 ORDER BY turn, seq";

/// The messages of a group that wait, the longest visible first.
pub(crate) const WAITING: &str = "SELECT seq, body, receive_count, visible_at, reason FROM message
    WHERE queue = ?1 AND held = 0 AND search_id IS ?2 ORDER BY visible_at, seq LIMIT ?3";

/// The first message.
pub(crate) const FIRST: &str = "SELECT seq, visible_at FROM message
    WHERE queue = ?1 AND held = 0 AND search_id IS ?2 ORDER BY visible_at, seq LIMIT 1";

/// The messages in flight whose visibility timeout has passed.
pub(crate) const OVERDUE: &str = "SELECT seq, search_id, visible_at FROM message
    WHERE queue = ?1 AND held = 1 AND visible_at <= ?2";

/// Returns the partitions of the next groups, up to `max`. Each of these partitions has messages that can be received.
pub(crate) fn next(
    db: &Connection,
    queue: &str,
    now: Timestamp,
    max: usize,
) -> Result<Vec<Option<String>>, Fault> {
    let mut statement = db.prepare_cached(IN_TURN)?;
    let mut rows = statement.query(params![queue, nanos(now)])?;
    let (mut groups, mut idle) = (Vec::new(), 0);
    // Groups with nothing in flight come first, so the scan ends as soon as there are enough of them.
    while idle < max
        && let Some(row) = rows.next()?
    {
        let (partition, in_flight) = (row.get(0)?, row.get::<_, i64>(1)?);
        idle += usize::from(in_flight == 0);
        groups.push((in_flight, partition));
    }
    groups.sort_by_key(|(in_flight, _)| *in_flight);
    Ok(groups.into_iter().take(max).map(|(_, partition)| partition).collect())
}

/// The first `max` messages of a group that wait, visible or not.
pub(crate) fn waiting(db: &Connection, group: Group<'_>, max: usize) -> Result<Vec<WaitingMessage>, Fault> {
    let mut statement = db.prepare_cached(WAITING)?;
    let found = statement.query_map(params![group.queue, group.partition, limit(max)], |row| {
        Ok(WaitingMessage {
            seq: row.get(0)?,
            body: row.get(1)?,
            receive_count: row.get(2)?,
            visible_at: row.get(3)?,
            reason: row.get(4)?,
        })
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}

/// Ends a group's turn, so that it waits again, with this message as its first.
pub(crate) fn pass(db: &Connection, first: &WaitingMessage, now: Timestamp) -> Result<(), Fault> {
    set_turn(db, first.seq, Some(first.visible_at.max(nanos(now))))
}

/// Returns the turn of a message that starts to wait, in nanoseconds since 1970, or `None` if it is not the first
/// message of its group. `seq` is its number; a message that is not stored yet has the highest.
pub(crate) fn turn(
    db: &Connection,
    group: Group<'_>,
    visible_at: i64,
    seq: i64,
) -> Result<Option<i64>, Fault> {
    match first(db, group)? {
        Some((first, at)) if (at, first) < (visible_at, seq) => return Ok(None),
        Some((first, _)) => set_turn(db, first, None)?,
        None => {}
    }
    Ok(Some(visible_at))
}

/// Makes a message in flight wait again.
pub(crate) fn requeue(
    db: &Connection,
    seq: i64,
    group: Group<'_>,
    visible_at: i64,
    reason: Option<&str>,
) -> Result<(), Fault> {
    let turn = turn(db, group, visible_at, seq)?;
    db.prepare_cached(
        "UPDATE message SET held = 0, visible_at = ?2, turn = ?3, reason = coalesce(?4, reason) WHERE seq = ?1",
    )?
    .execute(params![seq, visible_at, turn, reason])?;
    Ok(())
}

/// Makes messages wait again that were received but not answered in time.
pub(crate) fn put_overdue_back(db: &Connection, queue: &str, now: Timestamp) -> Result<(), Fault> {
    let overdue = db
        .prepare_cached(OVERDUE)?
        .query_map(params![queue, nanos(now)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<Vec<(i64, Option<String>, i64)>, _>>()?;
    overdue.iter().try_for_each(|(seq, partition, visible_at)| {
        requeue(db, *seq, Group { queue, partition: partition.as_deref() }, *visible_at, None)
    })
}

/// Makes all messages in flight of all queues visible immediately; returns their number.
pub(crate) fn put_all_back(db: &Connection, now: Timestamp) -> Result<usize, Fault> {
    let in_flight = db
        .prepare("SELECT seq, queue, search_id FROM message WHERE held = 1 AND visible_at > ?1")?
        .query_map([nanos(now)], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?
        .collect::<Result<Vec<(i64, String, Option<String>)>, _>>()?;
    for (seq, queue, partition) in &in_flight {
        requeue(db, *seq, Group { queue, partition: partition.as_deref() }, nanos(now), None)?;
    }
    Ok(in_flight.len())
}

fn first(db: &Connection, group: Group<'_>) -> Result<Option<(i64, i64)>, Fault> {
    Ok(db
        .prepare_cached(FIRST)?
        .query_row(params![group.queue, group.partition], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?)
}

fn set_turn(db: &Connection, seq: i64, turn: Option<i64>) -> Result<(), Fault> {
    db.prepare_cached("UPDATE message SET turn = ?2 WHERE seq = ?1")?.execute(params![seq, turn])?;
    Ok(())
}
