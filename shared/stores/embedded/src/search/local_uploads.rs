//! Files that are still to be uploaded from this machine, so that a start after a crash finishes them.

use std::path::{Component, Path, PathBuf};

use imports::{FileId, ProjectId, SearchId};

use imports::PresignedPost;
use messages::StoreError;
use rusqlite::{Connection, params};

use crate::Store;
use crate::fault::Fault;
use crate::value::{from_json, json, parse};

/// One file to be uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalUpload {
    /// The file.
    pub file_id: FileId,
    /// The path of the file's content.
    pub path: PathBuf,
    /// The form to upload the file with.
    pub form: PresignedPost,
}

/// One file that is still to be uploaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingUpload {
    /// The search.
    pub search_id: SearchId,
    /// The review.
    pub project_id: ProjectId,
    /// The file.
    pub upload: LocalUpload,
}

impl Store {
    /// Remembers files until [`Store::upload_done`].
    ///
    /// # Errors
    /// Returns an error if the store does not answer, or a path is not valid Unicode.
    pub async fn remember_uploads(
        &self,
        search: SearchId,
        project: ProjectId,
        uploads: Vec<LocalUpload>,
    ) -> Result<(), StoreError> {
        let doing = format!("remembering the files of search {search}");
        let work =
            move |db: &Connection| uploads.iter().try_for_each(|upload| put(db, search, project, upload));
        self.threads().write(doing, work).await
    }

    /// Returns the pending uploads in the order of their announcement.
    pub async fn pending_uploads(&self) -> Result<Vec<PendingUpload>, StoreError> {
        self.threads().read("listing the files to be uploaded".to_owned(), list).await
    }

    /// Forgets a file: it was uploaded, or never will be.
    pub async fn upload_done(&self, search: SearchId, file: FileId) -> Result<(), StoreError> {
        let doing = format!("forgetting file {file} of search {search}");
        let work = move |db: &Connection| {
            db.prepare_cached("DELETE FROM pending_upload WHERE search_id = ?1 AND file_id = ?2")?
                .execute(params![search.to_string(), file.to_string()])?;
            Ok(())
        };
        self.threads().write(doing, work).await
    }
}

fn put(db: &Connection, search: SearchId, project: ProjectId, upload: &LocalUpload) -> Result<(), Fault> {
    db.prepare_cached(
        "INSERT OR REPLACE INTO pending_upload (search_id, project_id, file_id, path, form)
         VALUES (?1, ?2, ?3, ?4, ?5)",
    )?
    .execute(params![
        search.to_string(),
        project.to_string(),
        upload.file_id.to_string(),
        path_text(&upload.path)?,
        json(&upload.form)?,
    ])?;
    Ok(())
}

fn path_text(path: &Path) -> Result<&str, Fault> {
    path.to_str().ok_or_else(|| Fault::Malformed {
        what: "path in Unicode",
        text: path.to_string_lossy().into_owned(),
    })
}

/// The stored value is the canonical path of a file that a user named on the command line.
fn whole_path(text: String) -> Result<PathBuf, Fault> {
    let path = PathBuf::from(&text);
    let is_plain = |part| !matches!(part, Component::ParentDir | Component::CurDir);
    if path.is_absolute() && path.components().all(is_plain) {
        Ok(path)
    } else {
        Err(Fault::Malformed { what: "whole path of a file", text })
    }
}

fn list(db: &Connection) -> Result<Vec<PendingUpload>, Fault> {
    let mut statement = db.prepare_cached(
        "SELECT search_id, project_id, file_id, path, form FROM pending_upload ORDER BY seq",
    )?;
    let mut rows = statement.query([])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let text = |column| row.get::<_, String>(column);
        found.push(PendingUpload {
            search_id: parse("search id", &text(0)?)?,
            project_id: parse("project id", &text(1)?)?,
            upload: LocalUpload {
                file_id: parse("file id", &text(2)?)?,
                path: whole_path(text(3)?)?,
                form: from_json(&text(4)?)?,
            },
        });
    }
    Ok(found)
}
