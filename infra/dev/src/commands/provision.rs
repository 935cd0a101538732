//! Creating an environment on local servers.

use dev::provision::Provision;
use system_tools::provision::{print, require_endpoints};

use crate::args;

/// The variables with the endpoints of the local servers.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3"];

/// Creates missing resources, and prints the settings as shell commands.
pub(crate) async fn run(args: &args::Provision) -> anyhow::Result<bool> {
    require_endpoints(&ENDPOINTS)?;
    print(imports::SYSTEM, Provision::new(&aws::config().await, &args.name).create().await?)?;
    Ok(true)
}
