//! What the database should have: its indexes, and the keys of studies of releases before.

use backend::config::Config;
use local::output;
use mongo::OnDifference;

use crate::args;

/// Builds the indexes that are missing, and with `--rebuild` those that differ, and makes what studies of releases before are
/// found by. `false` when some indexes differ and stay.
pub(crate) async fn run(args: &args::Migrate) -> anyhow::Result<bool> {
    let database = backend::services::database(&Config::from_env()?, &aws::config().await).await?;
    let on_difference = if args.rebuild { OnDifference::Rebuild } else { OnDifference::Report };
    let migration = database.ensure_indexes(on_difference).await?;
    for index in &migration.indexes {
        output::line(&index.to_string())?;
    }
    let made = database.make_missing_keys().await?;
    if made > 0 {
        output::line(&format!("{made} studies of an earlier release can be compared with others now"))?;
    }
    let differing = migration.differences().count();
    if differing > 0 {
        output::complain(&format!(
            "{differing} of the indexes are not as they should be; --rebuild drops them and builds them anew"
        ));
    }
    Ok(differing == 0)
}
