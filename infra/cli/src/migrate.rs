//! The indexes of the database.

use backend::config::Config;
use local::output;
use mongo::OnDifference;

use crate::args;

/// Builds the indexes that are missing, and with `--rebuild` those that differ. `false` when some differ and stay.
pub(crate) async fn run(args: &args::Migrate) -> anyhow::Result<bool> {
    let database = backend::services::database(&Config::from_env()?, &aws::config().await).await?;
    let on_difference = if args.rebuild { OnDifference::Rebuild } else { OnDifference::Report };
    let migration = database.ensure_indexes(on_difference).await?;
    for index in &migration.indexes {
        output::line(&index.to_string())?;
    }
    let differing = migration.differences().count();
    if differing > 0 {
        output::complain(&format!(
            "{differing} of the indexes are not as they should be; --rebuild drops them and builds them anew"
        ));
    }
    Ok(differing == 0)
}
