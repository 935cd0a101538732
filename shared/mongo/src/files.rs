//! Files that were read to their end, and the marks of duplicates, which need to know them.

use futures::TryStreamExt;
use imports::{Fenced, FileId, Mark, ParsedFile, SearchId, StudyId, Tier};
use mongodb::ClientSession;
use mongodb::bson::{Document, doc};

use crate::fault::Fault;
use crate::names::collections;
use crate::pipeline::Statement;
use crate::studies::{DUPLICATE, SEARCH};
use crate::value::{Key, int, literal, serde_field, to_bson};
use crate::{Mongo, reading};

const ID: &str = "_id";
/// The place among the files of the search.
pub(crate) const POSITION: &str = "Position";
const FILE: &str = "File";

/// Stores a file unless it is stored, or was removed.
pub(crate) async fn finish(mongo: &Mongo, file: &ParsedFile) -> Result<(), Fault> {
    if reading::is_refused(mongo, file.search_id, file.file_id).await? {
        return Ok(());
    }
    let fields = doc! {
        SEARCH: file.search_id.key(),
        POSITION: int(file.position),
        FILE: to_bson(file)?,
    };
    let files = mongo.collection(collections::FILE);
    files
        .update_one(by_id(file.search_id, file.file_id), doc! { "$setOnInsert": fields })
        .upsert(true)
        .await?;
    Ok(())
}

/// Forgets, within a transaction, that a file was read.
pub(crate) async fn forget(mongo: &Mongo, client: &mut ClientSession, file: &Fenced) -> Result<(), Fault> {
    mongo
        .collection(collections::FILE)
        .delete_one(by_id(file.search_id, file.file_id))
        .session(client)
        .await?;
    Ok(())
}

/// Records are numbered from 1, so that 0 stands for the file itself.
pub(crate) fn by_id(search: SearchId, file: FileId) -> Document {
    doc! { ID: StudyId::of(search, file, 0).key() }
}

pub(crate) async fn parsed(mongo: &Mongo, search: SearchId) -> Result<Vec<ParsedFile>, Fault> {
    let files = mongo.collection(collections::FILE);
    let found = files.find(doc! { SEARCH: search.key() }).sort(doc! { POSITION: 1 }).await?;
    let decode = async |stored: Document| {
        serde_field(&stored, FILE)
            .map_err(|why| Fault::foreign(collections::FILE, stored.get(ID), "a file", &why))
    };
    found.map_err(Fault::from).and_then(decode).try_collect().await
}

pub(crate) async fn mark(mongo: &Mongo, marks: &[Mark]) -> Result<(), Fault> {
    if marks.is_empty() {
        return Ok(());
    }
    let statements = marks.iter().map(statement).collect::<Result<Vec<_>, _>>()?;
    mongo.update(collections::STUDY, statements).await?.expect_none_taken()
}

/// Only a mark that ranks below it is replaced: [`imports::Duplicate::rank`].
fn statement(mark: &Mark) -> Result<Statement, Fault> {
    let field = |name: &str| format!("{DUPLICATE}.{name}");
    let (position, record, tier) = (field("position"), field("record"), field("tier"));
    let (new_position, new_record) = (int(mark.duplicate.position), int(mark.duplicate.record));
    // Marks of releases before have no tier, and are certain.
    let (as_sure, less_sure) = match mark.duplicate.tier {
        Tier::Certain => (doc! { "$nin": ["likely", "possible"] }, doc! { "$in": ["likely", "possible"] }),
        Tier::Likely => (doc! { "$eq": "likely" }, doc! { "$eq": "possible" }),
        Tier::Possible => (doc! { "$eq": "possible" }, doc! { "$in": [] }),
    };
    let below = [
        doc! { DUPLICATE: { "$exists": false } },
        doc! { &tier: less_sure },
        doc! { &tier: as_sure.clone(), &position: { "$gt": new_position } },
        doc! { &tier: as_sure, &position: new_position, &record: { "$gt": new_record } },
    ];
    Ok(Statement {
        filter: doc! { ID: StudyId::of(mark.search_id, mark.file_id, mark.record).key(), "$or": below.to_vec() },
        pipeline: vec![doc! { "$set": { DUPLICATE: literal(to_bson(&mark.duplicate)?) } }],
        upsert: false,
    })
}
