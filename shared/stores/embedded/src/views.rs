//! Views for readers. The table and its columns have the names of their first use: `job`, `search_id`, and `project_id`
//! for the list.

use std::collections::BTreeMap;

use async_trait::async_trait;
use messages::store::some_of;
use messages::{PartitionKey, StoreError};
use outbox::{AgeFilter, Cursor, Page, ReadViews, View, ViewPosition, WriteViews};
use rusqlite::{Connection, Params, Row, params};
use uuid::Uuid;

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::{from_json, int, json, limit, nanos, parse, timestamp, uint};

#[async_trait]
impl WriteViews for Store {
    async fn write(&self, views: &[View]) -> Result<(), StoreError> {
        let doing =
            format!("storing the view of partition {}", some_of(views.iter().map(|view| view.partition)));
        let views = views.to_vec();
        let work = move |db: &Connection| views.iter().try_for_each(|view| put(db, view, WRITE));
        self.change(Call::ViewsWrite, doing, work).await
    }
}

/// One thread writes, so ascending numbers are committed in order.
macro_rules! insert {
    ($on_conflict:literal) => {
        concat!(
            "INSERT INTO job (search_id, revision, ended, created_at, job, project_id, also_in, changed_in, changed)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?8, ?7,
                (SELECT coalesce(max(changed), 0) + 1 FROM job WHERE changed_in = ?7))
             ON CONFLICT (search_id) DO ",
            $on_conflict
        )
    };
}

pub(crate) const WRITE: &str = insert!(
    "UPDATE SET revision = excluded.revision, ended = excluded.ended, created_at = excluded.created_at,
        job = excluded.job, project_id = excluded.project_id, also_in = excluded.also_in,
        changed_in = excluded.changed_in, changed = excluded.changed
     WHERE excluded.revision > job.revision"
);

const CREATE: &str = insert!("NOTHING");

/// Stores a view unless one exists.
pub(crate) fn create(db: &Connection, view: &View) -> Result<(), Fault> {
    put(db, view, CREATE)
}

fn put(db: &Connection, view: &View, sql: &str) -> Result<(), Fault> {
    let (partition, created_at) = (view.partition.to_string(), nanos(view.created_at));
    let further: Vec<Uuid> = view.further_lists().collect();
    let also_in = (!further.is_empty()).then(|| json(&further)).transpose()?;
    let stored = db.prepare_cached(sql)?.execute(params![
        partition,
        int(view.revision),
        view.ended,
        created_at,
        json(&view.body)?,
        view.list.to_string(),
        view.reported_in().to_string(),
        also_in,
    ])?;
    if stored == 0 {
        return Ok(());
    }
    db.prepare_cached(LEAVE_LISTS)?.execute([&partition])?;
    let mut join = db.prepare_cached(JOIN_LIST)?;
    for list in further {
        join.execute(params![list.to_string(), created_at, partition])?;
    }
    Ok(())
}

const LEAVE_LISTS: &str = "DELETE FROM further_list WHERE search_id = ?1";
const JOIN_LIST: &str = "INSERT INTO further_list (list, created_at, search_id) VALUES (?1, ?2, ?3)";

#[async_trait]
impl ReadViews for Store {
    async fn view(&self, partition: PartitionKey) -> Result<Option<View>, StoreError> {
        let doing = format!("reading the view of partition {partition}");
        let work = move |db: &Connection| Ok(read(db, ONE, [partition.to_string()])?.pop());
        self.look(Call::ViewsRead, doing, work).await
    }

    async fn by_age(
        &self,
        meant: &AgeFilter,
        after: Option<Cursor>,
        limit: usize,
    ) -> Result<Page, StoreError> {
        let (doing, meant) = ("listing views by their age".to_owned(), *meant);
        self.look(Call::ViewsByAge, doing, move |db| by_age(db, &meant, after, limit)).await
    }

    async fn count_unfinished_of(&self, list: Uuid, max: usize) -> Result<usize, StoreError> {
        let doing = format!("counting the views of list {list} that have not ended");
        let work = move |db: &Connection| {
            let counted = params![list.to_string(), limit(max)];
            Ok(db.prepare_cached(COUNT_UNFINISHED_OF)?.query_row(counted, |row| row.get::<_, u32>(0))?
                as usize)
        };
        self.look(Call::ViewsUnfinishedOf, doing, work).await
    }

    async fn unfinished_of(&self, list: Uuid, max: usize) -> Result<Vec<View>, StoreError> {
        let doing = format!("listing the views of list {list} that have not ended");
        let work = move |db: &Connection| read(db, UNFINISHED_OF, params![list.to_string(), limit(max)]);
        self.look(Call::ViewsUnfinishedOf, doing, work).await
    }

    async fn list(&self, list: Uuid, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let doing = format!("reading list {list} of views");
        self.look(Call::ViewsList, doing, move |db| page(db, list, after, limit)).await
    }

    async fn changed(
        &self,
        list: Uuid,
        since: u64,
        after: Option<ViewPosition>,
        limit: usize,
    ) -> Result<Vec<(ViewPosition, View)>, StoreError> {
        let doing = format!("reading changes of list {list} of views");
        self.look(Call::ViewsChanged, doing, move |db| changed(db, list, since, after, limit)).await
    }

    async fn last_written(&self, list: Uuid) -> Result<u64, StoreError> {
        let doing = format!("looking when list {list} of views changed last");
        let work = move |db: &Connection| {
            let last = db.prepare_cached(LAST_WRITTEN)?.query_row([list.to_string()], |row| row.get(0))?;
            Ok(uint(last))
        };
        self.look(Call::ViewsChanged, doing, work).await
    }

    fn settled(&self, at: u64) -> u64 {
        at
    }
}

const ONE: &str = "SELECT * FROM job WHERE search_id = ?1";
pub(crate) const UNFINISHED: &str =
    "SELECT * FROM job WHERE ended = 0 AND (created_at, search_id) > (?1, ?2) AND created_at < ?3
    ORDER BY created_at, search_id LIMIT ?4";
pub(crate) const ENDED: &str =
    "SELECT * FROM job WHERE ended = 1 AND (created_at, search_id) < (?1, ?2) AND created_at < ?3
    ORDER BY created_at DESC, search_id DESC LIMIT ?4";
pub(crate) const UNFINISHED_IN: &str =
    "SELECT * FROM job WHERE project_id = ?5 AND ended = 0 AND (created_at, search_id) > (?1, ?2)
    AND created_at < ?3 ORDER BY created_at, search_id LIMIT ?4";
/// Most views of a project have ended, so the project's own index is used.
pub(crate) const ENDED_IN: &str =
    "SELECT * FROM job WHERE project_id = ?5 AND +ended = 1 AND (created_at, search_id) < (?1, ?2)
    AND created_at < ?3 ORDER BY created_at DESC, search_id DESC LIMIT ?4";
pub(crate) const COUNT_UNFINISHED_OF: &str =
    "SELECT count(*) FROM (SELECT 1 FROM job WHERE project_id = ?1 AND ended = 0 LIMIT ?2)";
pub(crate) const UNFINISHED_OF: &str = "SELECT * FROM job WHERE project_id = ?1 AND ended = 0 LIMIT ?2";
pub(crate) const LIST: &str = "SELECT * FROM job WHERE project_id = ?1 AND (created_at, search_id) < (?2, ?3)
    ORDER BY created_at DESC, search_id DESC LIMIT ?4";

/// Returns a query of the views that have this list as a further list.
macro_rules! further {
    ($condition:literal, $order:literal) => {
        concat!(
            "SELECT job.* FROM further_list CROSS JOIN job USING (search_id) WHERE list = ?1 AND ",
            $condition,
            " ORDER BY ",
            $order,
            " LIMIT ?4"
        )
    };
}

pub(crate) const FURTHER: &str = further!(
    "(further_list.created_at, further_list.search_id) < (?2, ?3)",
    "further_list.created_at DESC, further_list.search_id DESC"
);
pub(crate) const FURTHER_UNFINISHED: &str = further!(
    "(further_list.created_at, further_list.search_id) > (?2, ?3) AND further_list.created_at < ?5 AND +ended = 0",
    "further_list.created_at, further_list.search_id"
);
pub(crate) const FURTHER_ENDED: &str = further!(
    "(further_list.created_at, further_list.search_id) < (?2, ?3) AND further_list.created_at < ?5 AND +ended = 1",
    "further_list.created_at DESC, further_list.search_id DESC"
);

pub(crate) const OPEN_IN_ORDER: &str =
    "SELECT * FROM job WHERE project_id = ?1 AND ended = 0 AND (changed, search_id) > (?2, ?3)
    ORDER BY changed, search_id LIMIT ?4";
pub(crate) const WRITTEN_IN_ORDER: &str =
    "SELECT * FROM job WHERE changed_in = ?1 AND (changed, search_id) > (?2, ?3)
    ORDER BY changed, search_id LIMIT ?4";
pub(crate) const LAST_WRITTEN: &str = "SELECT coalesce(max(changed), 0) FROM job WHERE changed_in = ?1";

/// A text that sorts after the text of every partition.
const AFTER_ALL: &str = "~";

fn changed(
    db: &Connection,
    list: Uuid,
    since: u64,
    after: Option<ViewPosition>,
    count: usize,
) -> Result<Vec<(ViewPosition, View)>, Fault> {
    let list = list.to_string();
    let after = after.map(|after| (int(after.at), after.partition.to_string()));
    let begin = (int(since), AFTER_ALL.to_owned());
    let mut found = BTreeMap::new();
    for (sql, (at, partition)) in [
        (OPEN_IN_ORDER, after.clone().unwrap_or_default()),
        (WRITTEN_IN_ORDER, after.map_or(begin.clone(), |after| after.max(begin))),
    ] {
        let mut statement = db.prepare_cached(sql)?;
        let mut rows = statement.query(params![list, at, partition, limit(count)])?;
        while let Some(row) = rows.next()? {
            let view = view(row)?;
            let place = ViewPosition { at: uint(row.get("changed")?), partition: view.partition };
            found.insert(place, view);
        }
    }
    Ok(found.into_iter().take(count).collect())
}

fn by_age(db: &Connection, meant: &AgeFilter, after: Option<Cursor>, count: usize) -> Result<Page, Fault> {
    let (begin, in_all, in_one, further) = match meant.ended {
        false => ((i64::MIN, String::new()), UNFINISHED, UNFINISHED_IN, FURTHER_UNFINISHED),
        true => ((i64::MAX, AFTER_ALL.to_owned()), ENDED, ENDED_IN, FURTHER_ENDED),
    };
    let (created_at, partition) =
        after.map_or(begin, |after| (nanos(after.created_at), after.partition.to_string()));
    let (before, max) = (nanos(meant.before), limit(count.saturating_add(1)));
    let Some(list) = meant.list.map(|list| list.to_string()) else {
        return Ok(Page::of(read(db, in_all, params![created_at, partition, before, max])?, count));
    };
    let own = read(db, in_one, params![created_at, partition, before, max, list])?;
    let further = read(db, further, params![list, created_at, partition, max, before])?;
    Ok(Page::of_both(own, further, meant.ended, count))
}

fn page(db: &Connection, list: Uuid, after: Option<Cursor>, count: usize) -> Result<Page, Fault> {
    // Without a cursor, the position is after every possible value.
    let (created_at, partition) = after
        .map_or((i64::MAX, String::new()), |after| (nanos(after.created_at), after.partition.to_string()));
    let (list, max) = (list.to_string(), limit(count.saturating_add(1)));
    let read = |sql| read(db, sql, params![list, created_at, partition, max]);
    Ok(Page::of_both(read(LIST)?, read(FURTHER)?, true, count))
}

fn read(db: &Connection, sql: &str, params: impl Params) -> Result<Vec<View>, Fault> {
    let mut statement = db.prepare_cached(sql)?;
    let mut rows = statement.query(params)?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        found.push(view(row)?);
    }
    Ok(found)
}

fn view(row: &Row<'_>) -> Result<View, Fault> {
    let text = |column| row.get::<_, String>(column);
    let also_in: Option<String> = row.get("also_in")?;
    Ok(View {
        partition: parse("partition key", &text("search_id")?)?,
        revision: uint(row.get("revision")?),
        ended: row.get("ended")?,
        list: parse("list id", &text("project_id")?)?,
        also_in: also_in.map(|lists| from_json(&lists)).transpose()?.unwrap_or_default(),
        created_at: timestamp(row.get("created_at")?),
        body: from_json(&text("job")?)?,
    })
}
