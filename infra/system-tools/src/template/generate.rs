//! A SAM template from the table of a system.
//!
//! It has the queues with their dead-letter queues, the tables, and the functions. The documents are in MongoDB, whose
//! address is a parameter, or in a table of the template. Each function has a role of its own, which grants the calls of
//! its ports and nothing else. Functions with scheduled work are started every minute. All functions run one program, and
//! the handler of each is its name in the table. A function for requests is behind an HTTP API.

use aws::ledger::{EXPIRES_AT, LEDGER_KEY, LEDGER_TABLE, PROCESSED_KEY, PROCESSED_TABLE};
use aws::queues::Queues;
use dynamo::STORE_TABLE;
use dynamo::table::{INDEXES, ITEM_CALLS, QUERY_CALLS};
use messages::{Queue, QueueSpec, naming};
use saga::{Function, Service, Source, System};
use serde_json::Value;

use super::checks::permissions::{DRAIN, RECEIVE};
use crate::DocumentStore;

/// The binary of the program with all functions.
const PROGRAM: &str = "lambda";
/// The timeout in seconds of a function for requests. Together with the throttle of the API it bounds the number of
/// connections to the database.
const REQUEST_TIMEOUT: u64 = 10;
/// The ratio of a queue's visibility timeout to the timeout of its function.
const VISIBILITY_FACTOR: u64 = 6;
/// The maximum number of concurrent batches of a function.
const CONCURRENCY: u32 = 2;
/// The maximum number of connections of a function to the database.
const CONNECTIONS: u32 = 2;
/// The retention in seconds of a queue, of a dead-letter queue with a consumer, and of the last dead-letter queue: 4,
/// 10 and 14 days. A message keeps its age in the next queue.
const RETENTIONS: [u64; 3] = [messages::queue::RETENTION.as_secs(), 864_000, 1_209_600];

const HEAD: &str = include_str!("head.yaml");
/// The address of MongoDB: its parameters, the rule that one of the parameters is given, and the policy of functions
/// that read the address.
const MONGODB_PARAMETERS: &str = include_str!("mongodb/parameters.yaml");
const MONGODB_RULES: &str = include_str!("mongodb/rules.yaml");
const MONGODB_POLICY: &str = include_str!("mongodb/policy.yaml");
const API: &str = include_str!("api.yaml");

/// Returns the template of a system with this database for its documents.
pub fn generate<P>(system: &System<P>, store: DocumentStore) -> String {
    let [parameters, rules, policy] = match store {
        DocumentStore::Mongodb => [MONGODB_PARAMETERS, MONGODB_RULES, MONGODB_POLICY],
        DocumentStore::Dynamodb => [""; 3],
    };
    let mut text = HEAD
        .replace("{{address}}", parameters)
        .replace("{{rules}}", rules)
        .replace("{{policy}}", policy)
        .replace("{{system}}", system.name)
        .replace("{{database}}", &naming::snake(system.name))
        .replace("{{own}}", &own_parameters(system));
    let requests = system.functions.iter().find(|function| function.source == Source::Requests);
    if let Some(function) = requests {
        text += &API.replace("{{function}}", &id(function.name, "Function"));
    }
    text += &heading("The queues");
    let queues: String = system.queues.iter().map(|spec| queue(system, spec)).collect();
    text += queues.trim_start_matches('\n');
    let uses =
        |service: Service| system.functions.iter().any(|function| function.services.contains(&service));
    if uses(Service::DATABASE) && store == DocumentStore::Dynamodb {
        text += &heading("The documents with their outboxes, sessions, records, views and failures");
        text += &table("StoreTable", &properties(&dynamo::table::properties()));
    }
    if uses(Service::LEDGER) || uses(Service::TOKENS) {
        text += &heading("The leases of partitions, and the tokens of the messages that they still accept");
        text += &table("LedgerTable", &with_key(LEDGER_KEY));
    }
    if uses(Service::PROCESSED) {
        text += &heading("The commands that were executed");
        text += &table("ProcessedTable", &with_key(PROCESSED_KEY));
    }
    text += &heading("The functions");
    let functions: String =
        system.functions.iter().map(|declared| function(system, store, declared)).collect();
    text += functions.trim_start_matches('\n');
    text += &outputs(system, requests.is_some());
    text
}

/// Returns a logical id, such as `SagaDeadQueue` for the queue `saga-dead`.
fn id(name: &str, kind: &str) -> String {
    format!("{}{kind}", naming::namespace(name))
}

fn heading(title: &str) -> String {
    format!("\n  # --- {title} {}\n\n", "-".repeat(110_usize.saturating_sub(title.len())))
}

/// Returns the services that the engine does not provide.
fn own_services<P>(system: &System<P>) -> Vec<Service> {
    let services = system.functions.iter().flat_map(|function| function.services);
    let mut own: Vec<Service> = services.copied().filter(|service| !service.is_of_engine()).collect();
    own.sort();
    own.dedup();
    own
}

fn own_parameters<P>(system: &System<P>) -> String {
    let parameter = |service: Service| {
        let id = naming::namespace(service.0);
        format!("  {id}:\n    Type: String\n    Description: The setting of the service {}.\n", service.0)
    };
    own_services(system).into_iter().map(parameter).collect()
}

fn queue<P>(system: &System<P>, spec: &QueueSpec) -> String {
    let is_dead_letter_queue = QueueSpec::is_dead_letter_queue(system.queues, &spec.queue);
    let name = spec.queue.name();
    match (&spec.dead_letters, is_dead_letter_queue) {
        (Some(dead), is_behind) => {
            let retention = RETENTIONS[usize::from(is_behind)];
            queue_resource(
                name,
                retention,
                Some(spec.visibility.as_secs()),
                Some(RedrivePolicy { queue: dead.name(), receive_limit: spec.receive_limit }),
            )
        }
        (None, true) => queue_resource(name, RETENTIONS[2], None, None),
        // Another system reads it, and needs a place for the messages that it cannot read.
        (None, false) => {
            let dead = format!("{name}-dead");
            let redrive = RedrivePolicy { queue: &dead, receive_limit: None };
            let queue = queue_resource(name, RETENTIONS[1], None, Some(redrive));
            queue + &queue_resource(&dead, RETENTIONS[2], None, None)
        }
    }
}

/// The dead-letter queue of a queue.
#[derive(Clone, Copy)]
struct RedrivePolicy<'a> {
    queue: &'a str,
    receive_limit: Option<u32>,
}

fn queue_resource(
    name: &str,
    retention: u64,
    visibility: Option<u64>,
    redrive: Option<RedrivePolicy<'_>>,
) -> String {
    let mut text = format!(
        "
  {}:
    Type: AWS::SQS::Queue
    Properties:
      QueueName: !Sub ${{AWS::StackName}}-{name}
      SqsManagedSseEnabled: true
      MessageRetentionPeriod: {retention}
",
        id(name, "Queue")
    );
    if let Some(visibility) = visibility.filter(|seconds| *seconds > 0) {
        text += &format!("      VisibilityTimeout: {visibility}\n");
    }
    if let Some(RedrivePolicy { queue, receive_limit }) = redrive {
        text += &format!(
            "      RedrivePolicy:
        deadLetterTargetArn: !GetAtt {}.Arn
        maxReceiveCount: {}
",
            id(queue, "Queue"),
            receive_limit.unwrap_or(20)
        );
    }
    text
}

/// Returns a table that is retained when the stack is deleted.
fn table(id: &str, properties: &str) -> String {
    format!(
        "  {id}:
    Type: AWS::DynamoDB::Table
    UpdateReplacePolicy: Retain
    DeletionPolicy: RetainExceptOnCreate
    Properties:
      DeletionProtectionEnabled: !Ref ProtectTables
{properties}"
    )
}

/// Returns the properties of a table with this key.
fn with_key(key: &str) -> String {
    format!(
        "      BillingMode: PAY_PER_REQUEST
      AttributeDefinitions: [{{ AttributeName: {key}, AttributeType: S }}]
      KeySchema: [{{ AttributeName: {key}, KeyType: HASH }}]
      TimeToLiveSpecification: {{ AttributeName: {EXPIRES_AT}, Enabled: true }}
      PointInTimeRecoverySpecification: {{ PointInTimeRecoveryEnabled: true }}
"
    )
}

/// Returns the properties of a resource as lines, with one line for each item of a list.
fn properties(described: &Value) -> String {
    let property = |(name, value): (&String, &Value)| match value {
        Value::Array(items) => {
            let items: String = items.iter().map(|item| format!("        - {}\n", flow(item))).collect();
            format!("      {name}:\n{items}")
        }
        other => format!("      {name}: {}\n", flow(other)),
    };
    described.as_object().into_iter().flatten().map(property).collect()
}

/// Returns a value on one line. Its texts are names, which need no quotes.
fn flow(value: &Value) -> String {
    match value {
        Value::String(name) => name.clone(),
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::Object(pairs) => {
            let pairs = pairs.iter().map(|(name, value)| format!("{name}: {}", flow(value)));
            format!("{{ {} }}", pairs.collect::<Vec<_>>().join(", "))
        }
        other => other.to_string(),
    }
}

fn function<P>(system: &System<P>, store: DocumentStore, declared: &Function<P>) -> String {
    let name = declared.name;
    let [function, role, logs] = ["Function", "Role", "Logs"].map(|kind| id(name, kind));
    let own = declared.source.queue();
    let spec = own.and_then(|queue| QueueSpec::of(system.queues, queue));
    let timeout = spec.map_or(REQUEST_TIMEOUT, |spec| spec.visibility.as_secs() / VISIBILITY_FACTOR);
    let mut text = format!(
        "
  {function}:
    Type: AWS::Serverless::Function
    Metadata:
      BuildMethod: rust-cargolambda
      BuildProperties: {{ Binary: {PROGRAM} }}
    Properties:
      FunctionName: !Sub ${{AWS::StackName}}-{name}
      Handler: {name}
      Timeout: {timeout}
      Role: !GetAtt {role}.Arn
      LoggingConfig: {{ LogGroup: !Ref {logs} }}
"
    );
    if own.is_some_and(|queue| declared.sends_in(system.queues).contains(queue)) {
        // Otherwise Lambda stops a chain of messages to the same function.
        text += "      RecursiveLoop: Allow\n";
    }
    let variables: String = variables(system, store, declared)
        .iter()
        .map(|(name, value)| format!("          {name}: {value}\n"))
        .collect();
    if !variables.is_empty() {
        text += &format!("      Environment:\n        Variables:\n{variables}");
    }
    text += &events(declared, spec);
    let has_address = store == DocumentStore::Mongodb && declared.services.contains(&Service::DATABASE);
    text += &role_resource(&role, declared.name, has_address, &statements(system, store, declared, &logs));
    text += &format!(
        "
  {logs}:
    Type: AWS::Logs::LogGroup
    UpdateReplacePolicy: Delete
    DeletionPolicy: Delete
    Properties:
      LogGroupName: !Sub /aws/lambda/${{AWS::StackName}}-{name}
      RetentionInDays: !Ref LogRetentionDays
"
    );
    text
}

/// Returns the environment of a function.
fn variables<P>(system: &System<P>, store: DocumentStore, declared: &Function<P>) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    let mut set = |name: String, value: String| {
        if variables.iter().all(|(known, _)| *known != name) {
            variables.push((name, value));
        }
    };
    for service in declared.services {
        match *service {
            Service::DATABASE if store == DocumentStore::Dynamodb => {
                set(naming::setting(system.name, STORE_TABLE), "!Ref StoreTable".to_owned());
            }
            Service::DATABASE => {
                set("MONGODB_URI".to_owned(), "!Ref MongoUri".to_owned());
                set("MONGODB_URI_SECRET_ARN".to_owned(), "!Ref MongoSecretArn".to_owned());
                set("MONGODB_DATABASE".to_owned(), "!Ref MongoDatabase".to_owned());
                set(naming::setting(system.name, "MONGODB_POOL_SIZE"), format!("\"{CONNECTIONS}\""));
            }
            Service::LEDGER | Service::TOKENS => {
                set(naming::setting(system.name, LEDGER_TABLE), "!Ref LedgerTable".to_owned());
            }
            Service::PROCESSED => {
                set(naming::setting(system.name, PROCESSED_TABLE), "!Ref ProcessedTable".to_owned());
            }
            Service::DEPTHS => {}
            own => {
                let reference = format!("!Ref {}", naming::namespace(own.0));
                backend::settings(system.name, own).into_iter().for_each(|name| set(name, reference.clone()));
            }
        }
    }
    for queue in declared.queues(system.queues) {
        set(Queues::setting(system.name, &queue), format!("!Ref {}", id(queue.name(), "Queue")));
    }
    variables
}

fn events<P>(declared: &Function<P>, spec: Option<&QueueSpec>) -> String {
    let mut events = String::new();
    if let Some(spec) = spec {
        events += &format!(
            "        Queue:
          Type: SQS
          Properties:
            Queue: !GetAtt {}.Arn
            BatchSize: {}
            ScalingConfig: {{ MaximumConcurrency: {CONCURRENCY} }}
            FunctionResponseTypes: [ReportBatchItemFailures]
",
            id(spec.queue.name(), "Queue"),
            spec.batch_size
        );
    }
    if !declared.has_scheduled_work() {
        return if events.is_empty() { events } else { format!("      Events:\n{events}") };
    }
    format!(
        "      EventInvokeConfig:
        MaximumRetryAttempts: 0 # The next event of the schedule continues the work.
        MaximumEventAgeInSeconds: 60
      Events:
{events}        EveryMinute:
          Type: Schedule
          Properties:
            Schedule: rate(1 minute)
"
    )
}

/// An allowed set of actions on resources.
struct Statement {
    actions: Vec<&'static str>,
    resources: Vec<String>,
}

impl Statement {
    fn new(actions: &[&'static str], ids: impl IntoIterator<Item = String>) -> Self {
        Self::on(actions, ids.into_iter().map(|id| format!("!GetAtt {id}.Arn")))
    }

    fn on(actions: &[&'static str], resources: impl IntoIterator<Item = String>) -> Self {
        let mut resources: Vec<String> = resources.into_iter().collect();
        resources.sort();
        resources.dedup();
        Self { actions: actions.to_vec(), resources }
    }
}

/// Returns the calls that a function's role grants.
fn statements<P>(
    system: &System<P>,
    store: DocumentStore,
    declared: &Function<P>,
    logs: &str,
) -> Vec<Statement> {
    let of = |queue: &Queue| id(queue.name(), "Queue");
    let own = declared.source.queue();
    let dead = own.and_then(|queue| QueueSpec::dead_letters_of(system.queues, queue));
    let mut statements = vec![
        Statement::new(&["logs:CreateLogStream", "logs:PutLogEvents"], [logs.to_owned()]),
        Statement::new(&RECEIVE, own.map(of)),
        Statement::new(&["sqs:SendMessage"], declared.sends_in(system.queues).iter().chain(&dead).map(of)),
        Statement::new(&DRAIN, declared.drains.iter().map(of)),
    ];
    if !declared.drains.is_empty() {
        // A retry of failures counts the messages in the queues to which it sends, and in their dead-letter queues.
        statements.push(Statement::new(&["sqs:GetQueueAttributes"], declared.sends.iter().map(of)));
    }
    if store == DocumentStore::Dynamodb && declared.services.contains(&Service::DATABASE) {
        let indexes = INDEXES.map(|index| format!("!Sub ${{StoreTable.Arn}}/index/{}", index.name));
        statements.push(Statement::new(&ITEM_CALLS, ["StoreTable".to_owned()]));
        statements.push(Statement::on(&QUERY_CALLS, indexes));
    }
    for service in declared.services {
        let table = |actions: &[&'static str], id: &str| Statement::new(actions, [id.to_owned()]);
        statements.push(match *service {
            Service::LEDGER => table(&["dynamodb:UpdateItem"], "LedgerTable"),
            Service::TOKENS => table(&["dynamodb:GetItem"], "LedgerTable"),
            Service::PROCESSED => table(&["dynamodb:GetItem", "dynamodb:PutItem"], "ProcessedTable"),
            Service::DEPTHS => {
                Statement::new(&["sqs:GetQueueAttributes"], system.queues.iter().map(|spec| of(&spec.queue)))
            }
            _ => continue,
        });
    }
    statements.retain(|statement| !statement.resources.is_empty());
    statements
}

fn role_resource(id: &str, policy: &str, has_address: bool, statements: &[Statement]) -> String {
    let mut text = format!(
        "
  {id}:
    Type: AWS::IAM::Role
    Properties:
      AssumeRolePolicyDocument:
        Version: \"2012-10-17\"
        Statement: [{{ Effect: Allow, Principal: {{ Service: lambda.amazonaws.com }}, Action: sts:AssumeRole }}]
"
    );
    if has_address {
        text += "      ManagedPolicyArns: [!If [ReadsSecret, !Ref SecretPolicy, !Ref AWS::NoValue]]\n";
    }
    text += &format!(
        "      Policies:
        - PolicyName: {policy}
          PolicyDocument:
            Version: \"2012-10-17\"
            Statement:
"
    );
    for Statement { actions, resources } in statements {
        text += &format!(
            "              - Effect: Allow
                Action: [{}]
                Resource:
",
            actions.join(", ")
        );
        text.extend(resources.iter().map(|resource| format!("                  - {resource}\n")));
    }
    text
}

fn outputs<P>(system: &System<P>, has_api: bool) -> String {
    let mut text = "\nOutputs:\n".to_owned();
    let mut output = |id: &str, description: &str, value: &str| {
        text += &format!("  {id}:\n    Description: {description}\n    Value: {value}\n");
    };
    if has_api {
        output("ApiUrl", "The address of the HTTP API", "!GetAtt HttpApi.ApiEndpoint");
    }
    for function in system.functions {
        let role = id(function.name, "Role");
        let description = format!("The role of {}", function.name);
        output(&format!("{role}Arn"), &description, &format!("!GetAtt {role}.Arn"));
    }
    text
}
