//! The `check` command, which finds stored studies that no search counts.

use local::{output, user_name};
use serde_json::json;
use service::orphan_studies::OrphanStudies;

use crate::args;
use crate::humanize::counted;
use crate::workspace::{self, Workspace};

/// Lists the files whose studies no search counts, and deletes the studies if requested. Returns `false` if some
/// studies remain.
pub(crate) async fn run(args: &args::Check) -> anyhow::Result<bool> {
    let workspace = Workspace::operate(workspace::settings(&args.output.location)?).await?;
    let orphans = OrphanStudies::over(workspace.ports(), &functions::SYSTEM, user_name())?;
    let (mut files, mut studies, mut left) = (0, 0, 0);
    let mut cursor = None;
    loop {
        let page = orphans.page(cursor).await?;
        for (file, reason) in page.files {
            let is_deleted = args.delete && orphans.delete(&file).await?;
            (files, studies) = (files + 1, studies + file.studies);
            left += u64::from(!is_deleted);
            if args.output.json {
                output::json(&json!({
                    "search_id": file.search_id,
                    "file_id": file.file_id,
                    "project_id": file.project_id,
                    "studies": file.studies,
                    "why": reason.to_string(),
                    "deleted": is_deleted,
                }))?;
            } else {
                let done = if is_deleted { "; deleted" } else { "" };
                let count = counted(file.studies, "study", "studies");
                let (search, file) = (file.search_id, file.file_id);
                output::line(&format!("import {search}, file {file}: {count}; {reason}{done}"))?;
            }
        }
        let Some(next) = page.next else { break };
        cursor = Some(next);
    }
    output::remark(&summary(files, studies, left, args.delete));
    Ok(left == 0)
}

fn summary(files: u64, studies: u64, left: u64, delete: bool) -> String {
    if files == 0 {
        return "every stored study belongs to an import".to_owned();
    }
    let what = format!("{} of {}", counted(studies, "study", "studies"), counted(files, "file", "files"));
    match (delete, left) {
        (false, _) => format!("{what} belong to no import; `search-import check --delete` deletes them"),
        (true, 0) => format!("deleted {what}"),
        (true, _) => format!("{} left; run the command again", counted(left, "file is", "files are")),
    }
}
