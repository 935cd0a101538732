//! Creating an environment on local servers.

use dev::provision::Provision;
use local::output;

use crate::args;

/// The variables with the endpoints of the local servers.
const ENDPOINTS: [&str; 3] = ["AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3"];

/// Creates missing resources, and prints the settings as shell commands.
pub(crate) async fn run(args: &args::Provision) -> anyhow::Result<bool> {
    let is_set = |name: &str| std::env::var(name).is_ok_and(|value| !value.is_empty());
    if let Some(name) = ENDPOINTS.iter().find(|name| !is_set(name) && !is_set("AWS_ENDPOINT_URL")) {
        anyhow::bail!(
            "{name} is not set: this is for servers of your own, such as those of `make services`; on AWS, \
             `sam deploy` creates everything"
        );
    }
    let settings = Provision::new(&aws::config().await, &args.name).create().await?;
    output::line("export SEARCH_IMPORT_BACKEND=aws")?;
    for (name, value) in settings {
        output::line(&format!("export {name}={value}"))?;
    }
    Ok(true)
}
