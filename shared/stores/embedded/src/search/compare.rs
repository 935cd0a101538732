//! Finding and marking the studies of a project that may be the same work.

use async_trait::async_trait;
use imports::{Candidate, CompareStudies, Mark, ProjectId, Revision};
use messages::StoreError;
use rusqlite::Connection;

use crate::Store;
use crate::intercept::Call;
use crate::search::keys;
use crate::search::study_rows;
use crate::value::uint;

#[async_trait]
impl CompareStudies for Store {
    async fn revise(&self, project: ProjectId) -> Result<Revision, StoreError> {
        let doing = format!("counting a change of project {project}");
        let work = move |db: &Connection| {
            let sql = "INSERT INTO project (project_id, revision) VALUES (?1, 1)
                ON CONFLICT (project_id) DO UPDATE SET revision = revision + 1 RETURNING revision";
            let revision = db.prepare_cached(sql)?.query_row([project.to_string()], |row| row.get(0))?;
            Ok(uint(revision))
        };
        self.change(Call::StudiesRevise, doing, work).await
    }

    async fn sharing(
        &self,
        project: ProjectId,
        keys: &[u64],
        max: usize,
    ) -> Result<Vec<Candidate>, StoreError> {
        let doing = format!("finding studies of project {project} by {} keys", keys.len());
        let keys = keys.to_vec();
        let filter = self.shared_keys().current();
        let work = move |db: &Connection| {
            let Some(project) = keys::number_of(db, project)? else { return Ok(Vec::new()) };
            let may_have = |key: &u64| filter.as_ref().is_none_or(|filter| filter.may_share(project, *key));
            keys::sharing(db, project, keys.into_iter().filter(may_have), max)
        };
        self.look(Call::StudiesSharing, doing, work).await
    }

    async fn mark(&self, revision: Revision, marks: &[Mark]) -> Result<(), StoreError> {
        if marks.is_empty() {
            return Ok(());
        }
        let doing = format!("marking {} studies", marks.len());
        let marks = marks.to_vec();
        let work = move |db: &Connection| study_rows::mark(db, revision, &marks);
        // A power failure undoes it together with the later writes to this database that end the comparison: the progress
        // of the file or the acknowledgement of the command. The comparison is then repeated.
        self.change_in_passing(Call::StudiesMark, doing, work).await
    }
}
