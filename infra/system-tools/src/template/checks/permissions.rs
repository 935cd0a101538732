//! Checks of the functions' roles against their calls.

use std::collections::BTreeSet;

use aws::queues::Queues;
use dynamo::table::{INDEXES, ITEM_CALLS, QUERY_CALLS};
use messages::{Queue, QueueSpec};
use saga::{Service, System};
use serde_json::Value;

use super::{Finding, store};
use crate::template::Template;
use crate::template::view::{Function, referred, text};

/// An action with its resource.
pub type Call = (String, String);

/// Returns the calls of a function to a service of the application itself.
pub type OwnCalls = fn(&Template, &Function<'_>, Service) -> Vec<Call>;

/// The actions of the event source of a queue, and of the function that settles its messages.
pub(crate) const RECEIVE: [&str; 4] =
    ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes", "sqs:ChangeMessageVisibility"];
/// The calls on a dead-letter queue that a function drains.
pub(crate) const DRAIN: [&str; 3] = ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"];

/// Calls that cannot be restricted to resources
/// (<https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html>), as far as Lambda needs
/// them for a function in a VPC.
const BROAD: [&str; 6] = [
    "ec2:CreateNetworkInterface",
    "ec2:DescribeNetworkInterfaces",
    "ec2:DescribeSubnets",
    "ec2:DeleteNetworkInterface",
    "ec2:AssignPrivateIpAddresses",
    "ec2:UnassignPrivateIpAddresses",
];

/// Calls about the deployments of a stack. AWS generates the names of deployments from the name of the stack.
const OF_DEPLOYMENTS: [&str; 2] =
    ["codedeploy:GetDeployment", "codedeploy:PutLifecycleEventHookExecutionStatus"];

/// No permission covers all resources or all calls of a service. Only resources with a key prefix may end with a star,
/// because the keys are unknown.
pub(crate) fn wildcards(template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (id, resource) in &template.resources {
        let mut statements = Vec::new();
        allowing(&resource["Properties"], &mut statements);
        for (action, resource) in statements.into_iter().flat_map(grants_of) {
            if action.contains('*') {
                findings.push(Finding::new(id, format!("allows {action}")));
            }
            let below_a_prefix = resource
                .strip_suffix("/*")
                .or_else(|| resource.strip_suffix('*').filter(|r| r.ends_with('/')));
            let is_broad = resource == "*" && BROAD.contains(&action.as_str());
            // In a template that was read back, the stack has its name.
            let of_stack = resource.strip_suffix("-*").and_then(|text| text.split_once(":deploymentgroup:"));
            let is_of_stack = of_stack.is_some_and(|(_, name)| !name.is_empty() && !name.contains('*'))
                && OF_DEPLOYMENTS.contains(&action.as_str());
            if is_broad || is_of_stack {
                continue;
            }
            let explicit =
                below_a_prefix.filter(|prefix| is_in_a_bucket(template, prefix)).unwrap_or(&resource);
            if explicit.contains('*') {
                findings.push(Finding::new(id, format!("allows {action} on {resource}")));
            }
        }
    }
    findings
}

fn is_in_a_bucket(template: &Template, prefix: &str) -> bool {
    let mut buckets = template.of_type("AWS::S3::Bucket");
    prefix.contains(":s3:::") || buckets.any(|(id, _)| prefix.starts_with(&format!("${{{id}.Arn}}")))
}

/// Each role allows exactly the calls of its function on their resources.
pub(crate) fn grants<P>(system: &System<P>, own: OwnCalls, template: &Template) -> Vec<Finding> {
    let mut findings = Vec::new();
    for function in template.functions() {
        let (Some(declared), Some(role)) = (function.declaration(system), role(template, &function)) else {
            findings.push(Finding::new(function.id, "has no role of its own"));
            continue;
        };
        let needed = needed(system, own, template, &function, declared);
        let mut statements = Vec::new();
        allowing(&role.1["Policies"], &mut statements);
        for policy in role.1["ManagedPolicyArns"].as_array().into_iter().flatten().filter_map(referred) {
            allowing(template.resources.get(policy).unwrap_or(&Value::Null), &mut statements);
        }
        let granted = statements.into_iter().flat_map(grants_of);
        let granted: BTreeSet<Call> =
            granted.filter(|(action, _)| !BROAD.contains(&action.as_str())).collect();
        for (action, resource) in needed.difference(&granted) {
            findings.push(Finding::new(role.0, format!("does not allow {action} on {resource}")));
        }
        for (action, resource) in granted.difference(&needed) {
            let what = format!("allows {action} on {resource}, which {} does not do", declared.name);
            findings.push(Finding::new(role.0, what));
        }
    }
    findings
}

fn role<'a>(template: &'a Template, function: &Function<'_>) -> Option<(&'a str, &'a Value)> {
    let id = referred(&function.properties["Role"])?.to_owned();
    template.of_type("AWS::IAM::Role").find(|(role, _)| *role == id)
}

/// Returns the calls of a function's ports.
fn needed<P>(
    system: &System<P>,
    own: OwnCalls,
    template: &Template,
    function: &Function<'_>,
    declared: &saga::Function<P>,
) -> BTreeSet<Call> {
    let environment = function.properties["Environment"]["Variables"].clone();
    let arn = |setting: &str| match (&environment[setting], referred(&environment[setting])) {
        // A restored table is not a resource of the stack.
        (Value::String(table), _) => {
            format!("arn:${{AWS::Partition}}:dynamodb:${{AWS::Region}}:${{AWS::AccountId}}:table/{table}")
        }
        (_, resource) => format!("${{{}.Arn}}", resource.unwrap_or(setting)),
    };
    let queue = |queue: &Queue| arn(&Queues::setting(system.name, queue));
    let table = |service: Service| {
        arn(&backend::settings(system.name, service).into_iter().next().unwrap_or_default())
    };
    let mut calls = Vec::new();
    if let Some(group) = referred(&function.properties["LoggingConfig"]["LogGroup"]) {
        calls.extend(on(&["logs:CreateLogStream", "logs:PutLogEvents"], &format!("${{{group}.Arn}}")));
    }
    let source = function.receives(system);
    if let Some(source) = source {
        calls.extend(on(&RECEIVE, &queue(source)));
    }
    let dead = source.and_then(|queue| QueueSpec::dead_letters_of(system.queues, queue));
    let sends = declared.sends_in(system.queues);
    let sends = sends.iter().chain(&dead).map(queue).chain(on_failure(function));
    calls.extend(sends.flat_map(|queue| on(&["sqs:SendMessage"], &queue)));
    if !declared.drains.is_empty() {
        // An operator's retry counts the messages in these queues and in their dead-letter queues: its first messages have
        // to be processed before the others follow.
        let counted = declared.sends.iter().map(queue);
        calls.extend(counted.flat_map(|queue| on(&["sqs:GetQueueAttributes"], &queue)));
    }
    let drains = declared.drains.iter().map(queue);
    calls.extend(drains.flat_map(|queue| on(&DRAIN, &queue)));
    for service in declared.services {
        calls.extend(match *service {
            Service::DATABASE => match store::of_function(system, function) {
                Value::Null => secret(template),
                _ => documents(&arn(&backend::store_table(system.name).unwrap_or_default())),
            },
            Service::LEDGER => on(&["dynamodb:UpdateItem"], &table(*service)),
            Service::TOKENS => on(&["dynamodb:GetItem"], &table(*service)),
            Service::PROCESSED => on(&["dynamodb:GetItem", "dynamodb:PutItem"], &table(*service)),
            Service::DEPTHS => {
                let counted = system.queues.iter().map(|spec| queue(&spec.queue));
                counted.flat_map(|queue| on(&["sqs:GetQueueAttributes"], &queue)).collect()
            }
            service => own(template, function, service),
        });
    }
    calls.into_iter().collect()
}

/// Returns these actions on a resource.
pub fn on(actions: &[&str], resource: &str) -> Vec<Call> {
    actions.iter().map(|action| ((*action).to_owned(), resource.to_owned())).collect()
}

/// Returns the destination of failed events, which Lambda sends with the function's permissions.
fn on_failure(function: &Function<'_>) -> Option<String> {
    let destination =
        &function.properties["EventInvokeConfig"]["DestinationConfig"]["OnFailure"]["Destination"];
    referred(destination).map(|queue| format!("${{{queue}.Arn}}"))
}

/// Returns the calls for the documents in a DynamoDB table.
fn documents(table: &str) -> Vec<Call> {
    let indexes = INDEXES.iter().flat_map(|index| on(&QUERY_CALLS, &format!("{table}/index/{}", index.name)));
    on(&ITEM_CALLS, table).into_iter().chain(indexes).collect()
}

fn secret(template: &Template) -> Vec<Call> {
    let parameter = |name: &str| {
        let value = template.parameters.get(name).and_then(Value::as_str)?;
        (!value.is_empty()).then(|| value.to_owned())
    };
    let secret = parameter("MongoSecretArn");
    secret.iter().flat_map(|arn| on(&["secretsmanager:GetSecretValue", "kms:Decrypt"], arn)).collect()
}

/// Returns the statements in a value that allow something.
fn allowing<'a>(value: &'a Value, statements: &mut Vec<&'a Value>) {
    match value {
        Value::Array(items) => items.iter().for_each(|item| allowing(item, statements)),
        Value::Object(map) if map.get("Effect").is_some_and(|effect| effect == "Allow") => {
            statements.push(value);
        }
        Value::Object(map) => map.values().for_each(|item| allowing(item, statements)),
        _ => {}
    }
}

/// A condition on the secret that a key decrypts. It is more specific than the statement's resource, the key
/// (<https://docs.aws.amazon.com/secretsmanager/latest/userguide/security-encryption.html>).
const SECRET_OF_KEY: &str = "kms:EncryptionContext:SecretARN";

/// Returns every call with every resource of a statement, or with the secret that its condition names. A trust policy
/// has none.
fn grants_of(statement: &Value) -> Vec<Call> {
    let list = |value: &Value| -> Vec<String> {
        match value {
            Value::Null => Vec::new(),
            Value::Array(items) => items.iter().map(text).collect(),
            one => vec![text(one)],
        }
    };
    let secrets = list(&statement["Condition"]["StringEquals"][SECRET_OF_KEY]);
    let resources = if secrets.is_empty() { list(&statement["Resource"]) } else { secrets };
    let pairs = |action: String| {
        resources.iter().map(move |resource| (action.clone(), resource.clone())).collect::<Vec<_>>()
    };
    list(&statement["Action"]).into_iter().flat_map(pairs).collect()
}
