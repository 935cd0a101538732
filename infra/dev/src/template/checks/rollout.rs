//! Checks of the rollout of new versions.

use serde_json::Value;

use crate::template::view::{Function, referred};
use crate::template::{Finding, Template};

/// Describes the deployed version, including its parameters.
const RELEASE: &str = "Release";

/// Requests and messages reach the version of an alias. Every change creates a version, which is tested before, and can
/// be rolled back. SAM creates a version when the template changes, but ignores values of parameters
/// (<https://github.com/aws/serverless-application-model/issues/3820>). With a different description, CloudFormation
/// replaces the version
/// (<https://docs.aws.amazon.com/AWSCloudFormation/latest/UserGuide/aws-resource-lambda-version.html>), which Lambda
/// rejects unless the function has changed as well
/// (<https://docs.aws.amazon.com/lambda/latest/api/API_PublishVersion.html>).
pub(crate) fn versions(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, integration) in template.of_type("AWS::ApiGatewayV2::Integration") {
        let aliased =
            referred(&integration["IntegrationUri"]).and_then(|target| target.strip_suffix(".Alias"));
        let Some(function) = template.functions().find(|function| Some(function.id) == aliased) else {
            findings.push(Finding::new(id, "does not invoke the alias of a function"));
            continue;
        };
        let alarms = function.properties["DeploymentPreference"]["Alarms"].as_array();
        if alarms.is_none_or(Vec::is_empty) {
            findings.push(Finding::new(
                function.id,
                "receives all requests immediately, and no alarm rolls it back",
            ));
        }
    }
    let release = template.parameters.get(RELEASE).and_then(Value::as_str).unwrap_or(RELEASE);
    for Function { id, properties, .. } in template.functions() {
        let names = |property: &str| properties[property].as_str().is_some_and(|text| text.contains(release));
        let faults = [
            (properties["AutoPublishAlias"].is_null(), "has no versions, so it cannot be rolled back"),
            (
                properties["AutoPublishAliasAllProperties"] != true,
                "has no new version when only its settings change",
            ),
            (!names("VersionDescription"), "has no new version when only a parameter changes"),
            (!names("Description"), "is the same in every Release, so no version can be made of it"),
            (!is_tested(template, properties), "is not tested before it handles requests or messages"),
        ];
        findings
            .extend(faults.iter().filter(|(is_fault, _)| *is_fault).map(|(_, what)| Finding::new(id, *what)));
    }
    findings
}

/// The beginning of the names of functions that CodeDeploy may invoke
/// (<https://docs.aws.amazon.com/serverless-application-model/latest/developerguide/automating-updates-to-serverless-apps.html>).
const HOOK: &str = "CodeDeployHook_";

/// Returns `true` if CodeDeploy invokes a test of a new version of a function.
fn is_tested(template: &Template, properties: &Value) -> bool {
    let hook = referred(&properties["DeploymentPreference"]["Hooks"]["PreTraffic"]);
    let hook = hook.and_then(|hook| template.resources.get(hook)).unwrap_or(&Value::Null);
    hook["Properties"]["FunctionName"].as_str().is_some_and(|name| name.starts_with(HOOK))
}
