//! Recovery after the database or the ledger was restored to an earlier time.

use std::pin::pin;

use futures::{StreamExt, TryStreamExt, stream};
use local::{output, user_name};
use serde_json::json;
use service::{AfterRestore, OpenReads, RestoreOutcome, SearchService};

use crate::args;
use crate::humanize::counted;
use crate::workspace::{self, Workspace};

/// The number of imports that are processed concurrently. Each import needs several round trips to the stores.
const CONCURRENT_IMPORTS: usize = 16;

/// Resumes or ends every search that had not ended at the time of the backup. Returns `false` if some searches have to
/// be retried.
pub(crate) async fn run(args: &args::AfterRestore) -> anyhow::Result<bool> {
    let workspace = Workspace::operate(workspace::settings(&args.output.location)?).await?;
    let reading = if args.ledger_alone { OpenReads::Continue } else { OpenReads::End };
    let service = SearchService::over(workspace.ports(), &functions::SYSTEM)?;
    let function = AfterRestore::new(service, reading, user_name());
    let unfinished = function.unfinished().await?;
    let settled = unfinished.iter().map(async |job| match args.dry_run {
        true => Ok((job, None)),
        false => function.settle(job.search_id).await.map(|done| (job, Some(done))),
    });
    let mut settled = pin!(stream::iter(settled).buffered(CONCURRENT_IMPORTS));
    let mut busy = 0;
    while let Some((job, done)) = settled.try_next().await? {
        busy += u64::from(done == Some(RestoreOutcome::Busy));
        let what = done.map_or("has not ended", RestoreOutcome::words);
        if args.output.json {
            output::json(&json!({ "search_id": job.search_id, "state": job.state, "done": what }))?;
        } else {
            output::line(&format!("import {}, {}: {what}", job.search_id, job.state))?;
        }
    }
    // With the ledger alone, the database has the marks of all decisions.
    if !args.dry_run && !args.ledger_alone {
        for project in function.projects().await? {
            let studies = function.compare_decided(project).await? as u64;
            if studies > 0 && args.output.json {
                output::json(&json!({ "project_id": project, "compared": studies }))?;
            } else if studies > 0 {
                let count = counted(studies, "decided study is", "decided studies are");
                output::line(&format!("review {project}: {count} compared again"))?;
            }
        }
    }
    let count = counted(unfinished.len() as u64, "import had", "imports had");
    output::remark(&format!("{count} not ended"));
    if busy > 0 {
        output::complain(&format!("{busy} of them are being worked on; run this command again in a minute"));
    }
    Ok(busy == 0)
}
