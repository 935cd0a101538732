//! What readers are shown. The table and its columns have the names of their first use: `job`, `search_id`, and
//! `project_id` for the list.

use async_trait::async_trait;
use messages::{PartitionKey, StoreError};
use outbox::{Cursor, Page, ReadViews, View, WriteViews};
use rusqlite::{Connection, Params, Row, params};
use uuid::Uuid;

use crate::Store;
use crate::fault::Fault;
use crate::intercept::Call;
use crate::value::{from_json, int, json, limit, nanos, parse, some_of, timestamp, uint};

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

const WRITE: &str =
    "INSERT INTO job (search_id, revision, ended, created_at, job, project_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (search_id) DO UPDATE SET revision = excluded.revision, ended = excluded.ended,
        created_at = excluded.created_at, job = excluded.job, project_id = excluded.project_id
    WHERE excluded.revision > job.revision";

const CREATE: &str =
    "INSERT INTO job (search_id, revision, ended, created_at, job, project_id) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
    ON CONFLICT (search_id) DO NOTHING";

/// Stores a view unless there is one.
pub(crate) fn create(db: &Connection, view: &View) -> Result<(), Fault> {
    put(db, view, CREATE)
}

fn put(db: &Connection, view: &View, sql: &str) -> Result<(), Fault> {
    db.prepare_cached(sql)?.execute(params![
        view.partition.to_string(),
        int(view.revision),
        view.ended,
        nanos(view.created_at),
        json(&view.body)?,
        view.list.to_string(),
    ])?;
    Ok(())
}

#[async_trait]
impl ReadViews for Store {
    async fn view(&self, partition: PartitionKey) -> Result<Option<View>, StoreError> {
        let doing = format!("reading the view of partition {partition}");
        let work = move |db: &Connection| Ok(read(db, ONE, [partition.to_string()])?.pop());
        self.look(Call::ViewsRead, doing, work).await
    }

    async fn oldest_unfinished(&self, most: usize) -> Result<Vec<View>, StoreError> {
        let doing = "listing the views that have not ended".to_owned();
        self.look(Call::ViewsUnfinished, doing, move |db| read(db, UNFINISHED, [limit(most)])).await
    }

    async fn count_unfinished_of(&self, list: Uuid, most: usize) -> Result<usize, StoreError> {
        let doing = format!("counting the views of list {list} that have not ended");
        let work = move |db: &Connection| {
            let counted = params![list.to_string(), limit(most)];
            Ok(db.prepare_cached(COUNT_UNFINISHED_OF)?.query_row(counted, |row| row.get::<_, u32>(0))?
                as usize)
        };
        self.look(Call::ViewsUnfinishedOf, doing, work).await
    }

    async fn unfinished_of(&self, list: Uuid, most: usize) -> Result<Vec<View>, StoreError> {
        let doing = format!("listing the views of list {list} that have not ended");
        let work = move |db: &Connection| read(db, UNFINISHED_OF, params![list.to_string(), limit(most)]);
        self.look(Call::ViewsUnfinishedOf, doing, work).await
    }

    async fn list(&self, list: Uuid, after: Option<Cursor>, limit: usize) -> Result<Page, StoreError> {
        let doing = format!("reading list {list} of views");
        self.look(Call::ViewsList, doing, move |db| page(db, list, after, limit)).await
    }
}

const ONE: &str = "SELECT * FROM job WHERE search_id = ?1";
pub(crate) const UNFINISHED: &str =
    "SELECT * FROM job WHERE ended = 0 ORDER BY created_at, search_id LIMIT ?1";
pub(crate) const COUNT_UNFINISHED_OF: &str =
    "SELECT count(*) FROM (SELECT 1 FROM job WHERE project_id = ?1 AND ended = 0 LIMIT ?2)";
pub(crate) const UNFINISHED_OF: &str = "SELECT * FROM job WHERE project_id = ?1 AND ended = 0 LIMIT ?2";
pub(crate) const LIST: &str = "SELECT * FROM job WHERE project_id = ?1 AND (created_at, search_id) < (?2, ?3)
    ORDER BY created_at DESC, search_id DESC LIMIT ?4";

fn page(db: &Connection, list: Uuid, after: Option<Cursor>, count: usize) -> Result<Page, Fault> {
    // Without a place in the list, after everything that can be stored.
    let (created_at, partition) = after
        .map_or((i64::MAX, String::new()), |after| (nanos(after.created_at), after.partition.to_string()));
    let found =
        read(db, LIST, params![list.to_string(), created_at, partition, limit(count.saturating_add(1))])?;
    Ok(Page::of(found, count))
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
    Ok(View {
        partition: parse("partition key", &text("search_id")?)?,
        revision: uint(row.get("revision")?),
        ended: row.get("ended")?,
        list: parse("list id", &text("project_id")?)?,
        created_at: timestamp(row.get("created_at")?),
        body: from_json(&text("job")?)?,
    })
}
