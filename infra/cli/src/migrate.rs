//! Migrating the database of the aws backend: its indexes, and the keys of studies stored by earlier versions.

use backend::config::Config;
use local::output;
use mongo::OnDifference;

use crate::args;

/// Creates missing indexes, rebuilds differing ones with `--rebuild`, and adds the keys by which studies of earlier
/// versions are compared. Returns `false` if differing indexes remain.
pub(crate) async fn run(args: &args::Migrate) -> anyhow::Result<bool> {
    let database = backend::services::database(&Config::from_env()?, &aws::config().await).await?;
    let on_difference = if args.rebuild { OnDifference::Rebuild } else { OnDifference::Report };
    let migration = database.ensure_indexes(on_difference).await?;
    for index in &migration.indexes {
        output::line(&index.to_string())?;
    }
    let made = database.make_missing_keys().await?;
    if made > 0 {
        output::line(&format!("{made} studies of an earlier version can now be compared with others"))?;
    }
    let differing = migration.differences().count();
    if differing > 0 {
        output::complain(&format!(
            "{differing} of the indexes differ from those of this version; --rebuild drops and recreates them"
        ));
    }
    Ok(differing == 0)
}
