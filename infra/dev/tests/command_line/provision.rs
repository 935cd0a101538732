//! Creating an environment on local servers.

use dev::provision::Provision;
use servers::TestResult;

use crate::program::Program;

#[tokio::test(flavor = "multi_thread")]
async fn repeated_provisioning_changes_nothing() -> TestResult {
    let provision = Provision::new(&aws::config().await, servers::unique("again"));
    let test = async {
        let mut first = provision.create().await?;
        let mut second = provision.create().await?;
        first.sort();
        second.sort();
        assert_eq!(first, second);
        Ok(())
    };
    let clean = async { provision.remove().await.expect("the environment can be removed") };
    servers::cleaned_up(test, clean).await
}

#[test]
fn provisioning_requires_local_endpoints() {
    let none =
        ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3"];
    let program = none.iter().fold(Program::new(), |program, name| program.setting(name, ""));
    let run = program.run(&["provision"]);
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(
        run.stderr.contains("AWS_ENDPOINT_URL_DYNAMODB") && run.stderr.contains("sam deploy"),
        "{}",
        run.stderr
    );
    let run = program.run(&["provision", "--name", "Under_score"]);
    assert!(run.stderr.contains("lower-case"), "{}", run.stderr);
}
