//! The shipped templates pass all checks in every environment, and each check finds its fault.

use std::collections::BTreeMap;

use dev::template::view::text;
use dev::template::{Finding, Limits, Source, Template, check, environments};
use serde_json::Value;

/// The templates of the deployment, beginning with the template of the application.
const TEMPLATES: [&str; 4] = [
    include_str!("../../../../template.yaml"),
    include_str!("../../../../infra/templates/monitoring.yaml"),
    include_str!("../../../../infra/templates/page.yaml"),
    include_str!("../../../../infra/templates/sign-in.yaml"),
];
const ENVIRONMENTS: [(&str, &str); 2] = [
    ("dev", include_str!("../../../../config/search-import-dev.toml")),
    ("prod", include_str!("../../../../config/search-import-prod.toml")),
];
const RUNBOOK: &str = include_str!("../../../../docs/runbook.md");
const COSTS: &str = include_str!("../../../../docs/costs.md");
const DEPLOY: &str = include_str!("../../../../docs/deploy.md");
const SECRET: &str = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:mongodb-AbCdEf";

/// Resolves several templates together, with these values of parameters and the defaults of all other parameters.
fn template_of(texts: &[String], values: &[(&str, &str)], limits: Limits) -> Template {
    let sources: Vec<Source> = texts.iter().map(|text| Source::read(text).unwrap()).collect();
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Template::of_all(&sources, &values.collect(), limits).unwrap()
}

fn template(values: &[(&str, &str)]) -> Template {
    template_of(&TEMPLATES.map(str::to_owned), values, Limits::default())
}

fn findings(values: &[(&str, &str)]) -> Vec<Finding> {
    check(&template(values))
}

/// Returns the templates with a text replaced, which one of them must contain.
fn planted(from: &str, to: &str) -> Vec<String> {
    let mut texts = TEMPLATES.map(str::to_owned).to_vec();
    let text = texts.iter_mut().find(|text| text.contains(from));
    let text = text.unwrap_or_else(|| panic!("the templates have changed: {from}"));
    *text = text.replacen(from, to, 1);
    texts
}

/// Plants a fault, and expects one finding with this text about this resource.
#[track_caller]
fn finds(from: &str, to: &str, resource: &str, what: &str) {
    finds_with(&[], from, to, resource, what);
}

/// Expects a finding for these values of parameters.
#[track_caller]
fn finds_for(values: &[(&str, &str)], resource: &str, what: &str) {
    expect(&findings(values), resource, what);
}

#[track_caller]
fn expect(found: &[Finding], resource: &str, what: &str) {
    let is_it = |finding: &Finding| finding.resource == resource && finding.what.contains(what);
    assert!(found.iter().any(is_it), "expected {resource}: …{what}…, found {found:#?}");
}

#[track_caller]
fn finds_with(values: &[(&str, &str)], from: &str, to: &str, resource: &str, what: &str) {
    let template = template_of(&planted(from, to), values, Limits::default());
    expect(&check(&template), resource, what);
}

/// Adds a variable to every function.
#[track_caller]
fn finds_variable(name: &str, value: &str, resource: &str, what: &str) {
    let variables = "        RUST_LOG: !Ref LogFilter\n";
    finds(variables, &format!("        {name}: \"{value}\"\n{variables}"), resource, what);
}

#[test]
fn shipped_templates_pass_in_every_environment() {
    let sources = TEMPLATES.map(|text| Source::read(text).unwrap());
    let known: Vec<&str> =
        sources.iter().flat_map(|source| source.defaults().map(|(parameter, _)| parameter)).collect();
    for (name, text) in ENVIRONMENTS {
        let environment = environments::read(text).unwrap();
        let template = Template::of_all(&sources, &environment.values, environment.limits).unwrap();
        assert_eq!(check(&template), [], "{name}");
        let unknown = environment.values.keys().find(|value| !known.contains(&value.as_str()));
        assert_eq!(unknown, None, "{name} sets an unknown parameter");
    }
}

#[test]
fn shipped_templates_pass_with_defaults() {
    let limits = Limits { mongodb_connections: 500, account_concurrency: 10 };
    let template = template_of(&TEMPLATES.map(str::to_owned), &[("MongoSecretArn", SECRET)], limits);
    assert_eq!(check(&template), []);
}

#[test]
fn shipped_templates_pass_with_all_options() {
    let values = [
        ("MongoSecretArn", SECRET),
        ("PageKeySha256", "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"),
        ("JwtIssuer", "https://id.example"),
        ("JwtAudience", "reviews"),
        ("ScopePrefix", "searches/"),
        ("AllowedOrigins", "https://a.example,https://b.example"),
        ("SignInUrl", "https://sign-in.example"),
        ("SignInClientId", "page"),
        ("PageDomain", "reviews.example"),
        ("CertificateArn", "arn:aws:acm:us-east-1:123456789012:certificate/0a1b"),
        ("SubnetIds", "subnet-1,subnet-2"),
        ("SecurityGroupIds", "sg-1"),
        ("ApiConcurrency", "20"),
        ("AlarmTopicArn", "arn:aws:sns:eu-central-1:123456789012:alarms"),
        ("Architecture", "x86_64"),
        ("ShiftRequests", "true"),
        ("ProtectTables", "true"),
        ("RestoredTables", "ledger-of-yesterday,processed-of-yesterday"),
        ("EventBusName", "reviews"),
        ("CollectorLayerArn", "arn:aws:lambda:eu-central-1:123456789012:layer:collector:7"),
        ("MonthlyBudget", "200"),
    ];
    assert_eq!(findings(&values), []);
}

/// A restored ledger without restored processed commands, and the reverse.
#[test]
fn each_table_can_be_restored_alone() {
    for (tables, ledger, processed) in [("old,", "old", "ProcessedTable"), (",old", "LedgerTable", "old")] {
        let values = [("ApiConcurrency", "20"), ("RestoredTables", tables)];
        assert_eq!(findings(&values), [], "{tables}");
        let template = template(&values);
        let parse = template.functions().find(|function| function.id == "ParseReferences").unwrap();
        let environment = parse.environment();
        let table = |name: &str| environment[name].trim_matches(['$', '{', '}']).to_owned();
        assert_eq!(table("SEARCH_IMPORT_LEDGER_TABLE"), ledger);
        assert_eq!(table("SEARCH_IMPORT_PROCESSED_TABLE"), processed);
    }
}

/// The size that a team can own.
#[test]
fn application_template_stays_small() {
    assert!(TEMPLATES[0].lines().count() <= 1_400);
    assert!(Source::read(TEMPLATES[0]).unwrap().defaults().count() <= 25);
}

#[test]
fn every_alarm_is_in_the_runbook() {
    let template = template(&[("EventBusName", "reviews")]);
    let alarms: Vec<&str> = template.of_type("AWS::CloudWatch::Alarm").map(|(id, _)| id).collect();
    // One of these alarms is used only with the bus.
    assert!(COSTS.contains(&format!("| {} alarms (0.10 each)", alarms.len() - 1)), "{}", alarms.len());
    let headings: String = RUNBOOK.lines().filter(|line| line.starts_with("### ")).collect();
    assert!(alarms.iter().all(|alarm| headings.contains(alarm)), "{alarms:?}");
}

#[test]
fn finds_short_visibility_timeout() {
    finds("VisibilityTimeout: 5400", "VisibilityTimeout: 5399", "ParseQueue", "needs 5400 s");
    let window = "            BatchSize: 10\n            FunctionResponseTypes: [ReportBatchItemFailures]\n\n  # It sends";
    let longer = format!("            MaximumBatchingWindowInSeconds: 20\n{window}");
    finds(window, &longer, "SagaQueue", "needs 200 s");
}

#[test]
fn finds_low_receive_limit() {
    finds("maxReceiveCount: 20", "maxReceiveCount: 2", "UploadsQueue", "after 2 deliveries");
}

#[test]
fn finds_queue_differing_from_specification() {
    // Longer than the function's timeout, so that no other check fails.
    finds(
        "VisibilityTimeout: 360",
        "VisibilityTimeout: 361",
        "ParseDeadQueue",
        "for 361 s, but the specification has 360 s",
    );
    finds(
        "maxReceiveCount: 20",
        "maxReceiveCount: 21",
        "UploadsQueue",
        "makes 21 deliveries of a message, but the specification has 20",
    );
    finds("BatchSize: 1 #", "BatchSize: 2 #", "ParseQueue", "2 messages per batch, but the limit is 1");
}

#[test]
fn finds_wildcards() {
    finds(
        "Action: [dynamodb:GetItem, dynamodb:UpdateItem]",
        "Action: [dynamodb:GetItem, dynamodb:*]",
        "StartUploadRole",
        "allows dynamodb:*",
    );
    finds(
        "Resource: !If [HasOwnLedger, !GetAtt LedgerTable.Arn,",
        "Resource: !If [HasOwnLedger, \"*\",",
        "StartUploadRole",
        "allows dynamodb:UpdateItem on *",
    );
    finds("/uploads/*", "*", "StartUploadRole", "allows s3:PutObject on arn");
}

#[test]
fn finds_missing_or_short_lived_dead_letter_queues() {
    let redrive = "      RedrivePolicy:\n        deadLetterTargetArn: !GetAtt ControlDeadQueue.Arn\n        maxReceiveCount: 20\n";
    finds(redrive, "", "ControlQueue", "has no dead-letter queue");
    finds(
        "MessageRetentionPeriod: 864000 # 10",
        "MessageRetentionPeriod: 345600 #",
        "ParseDeadQueue",
        "no longer than ParseQueue",
    );
}

#[test]
fn finds_messages_older_than_assumed() {
    finds_variable("SEARCH_IMPORT_MESSAGE_LIFETIME_SECONDS", "1209599", "RunSaga", "can live in SagaQueue");
    let mode = "optimistic\"\n        SEARCH_IMPORT_SAGA_RETENTION_SECONDS: \"604800";
    finds_variable(
        "SEARCH_IMPORT_MODE",
        mode,
        "RunSaga",
        "SAGA_RETENTION_SECONDS must be a number of seconds, at least 1209600",
    );
}

#[test]
fn finds_more_connections_than_mongodb_allows() {
    let many = [("SagaConcurrency", "100"), ("ApiConcurrency", "20")];
    finds_for(&many, "mongodb_connections", "may open 1792 connections");
    // Concurrent requests: the burst, plus the rate times the maximum duration.
    finds_for(&[("SagaConcurrency", "10")], "mongodb_connections", "may open 6552 connections");
    let unlimited = "            ScalingConfig: { MaximumConcurrency: !Ref SagaConcurrency }\n";
    finds(unlimited, "", "RunSaga", "no limit of concurrent executions");
}

#[test]
fn exports_expire_and_exclude_uploads() {
    let ends = "            ExpirationInDays: 1\n";
    finds(ends, "", "UploadBucket", "never expire");
    finds("Prefix: exports/", "Prefix: export/", "UploadBucket", "never expire");
    let (prefix, below) = ("KEY_PREFIX: uploads/", "KEY_PREFIX: exports/uploads/");
    finds(prefix, below, "NotifyUpload", "where exports are");
    let (folder, all) = ("-${AWS::Region}/exports/*", "-${AWS::Region}/*");
    finds(folder, all, "StartUploadRole", "s3:GetObject");
}

#[test]
fn uploads_outlive_their_messages() {
    finds(
        "            Prefix: uploads/",
        "            Prefix: files/",
        "UploadBucket",
        "(uploads/) never expire",
    );
    finds_for(&[("UploadRetentionDays", "14")], "UploadBucket", "for 14 days, no longer than a message");
    finds("AbortIncompleteMultipartUpload", "Abort", "UploadBucket", "parts of unfinished uploads");
}

#[test]
fn upload_queue_accepts_only_its_bucket() {
    let policy = "UploadsQueuePolicy";
    finds("Queues: [!Ref UploadsQueue]", "Queues: []", "UploadsQueue", "no policy that lets its bucket send");
    finds("\"aws:SourceAccount\": !Ref AWS::AccountId", "a: b", policy, "the buckets of other accounts");
    finds("ArnLike: { \"aws:SourceArn\":", "ArnLike: { \"a\":", policy, "lets other buckets send");
    finds("    DependsOn: UploadsQueuePolicy #", "    #", "UploadBucket", "made before UploadsQueuePolicy");
}

#[test]
fn finds_metrics_without_alarm() {
    let retried = "    - [NotifyUpload, RunSaga, ParseReferences, DispatchOutbox, ReportFaults]\n    - ${Of}RetriesAlarm:";
    for function in ["NotifyUpload", "RunSaga", "ParseReferences", "DispatchOutbox"] {
        let without = retried.replace(&format!("{function}, "), "");
        finds(retried, &without, function, "no alarm watches what it retries");
    }
    let alarms = [
        ("MetricName: RetriedDeliveries", "MetricName: MessagesRetried", "NotifyUpload", "what it retries"),
        ("MetricName: 5xx", "MetricName: 4xx", "HttpApi", "answers of 5xx"),
        ("MetricName: DestinationDeliveryFailures", "MetricName: Errors", "NotifyUpload", "cannot deliver"),
        ("MetricName: UnreadFiles", "MetricName: Studies", "ReportFaults", "files that were never read"),
        ("[Uploads, Saga, Parse,", "[Uploads, Parse,", "SagaQueue", "the age of its messages"),
        ("RecursiveInvocationsDropped", "Dropped", "RunSaga", "stops as a loop"),
        ("      RecursiveLoop: Allow #", "      #", "RunSaga", "sends to its own queue, and Lambda stops it"),
    ];
    for (from, to, resource, what) in alarms {
        finds(from, to, resource, what);
    }
    let topic = [("AlarmTopicArn", "arn:aws:sns:eu-central-1:123456789012:alarms")];
    let bus = [("EventBusName", "reviews")];
    let waiting = "Value: !Sub \"${Application}-events\"";
    finds_with(&bus, waiting, "Value: events", "EventsQueue", "the age of its messages");
    let action = "      AlarmActions: !If [TellsOfAlarms, [!Ref AlarmTopicArn], !Ref AWS::NoValue]\n";
    finds_with(&topic, action, "", "ApiAlarm", "notifies no topic");
}

/// A busy queue also invokes the function, and would hide a missing schedule.
#[test]
fn finds_schedule_without_alarm() {
    for (metric, function) in [("OutboxAge", "dispatch-outbox"), ("OpenFailures", "report-faults")] {
        let resource = if metric == "OutboxAge" { "DispatchOutbox" } else { "ReportFaults" };
        let counted = format!(
            "      MetricName: {metric}\n      Dimensions: [{{ Name: FunctionName, Value: !Sub \"${{Application}}-{function}\" \
             }}]\n      Statistic: SampleCount"
        );
        let lambdas = counted.replace("SampleCount", "Sum");
        finds(&counted, &lambdas, resource, "when its schedule does not start it");
    }
    finds("TreatMissingData: breaching", "TreatMissingData: missing", "ReportFaults", "its schedule");
}

#[test]
fn finds_excessive_reserved_concurrency() {
    let texts = TEMPLATES.map(str::to_owned);
    let of = |account_concurrency| {
        let limits = Limits { account_concurrency, ..Limits::default() };
        check(&template_of(&texts, &[("ApiConcurrency", "20")], limits))
    };
    expect(&of(119), "account_concurrency", "with 20 reserved");
    assert_eq!(of(120), []);
}

#[test]
fn finds_oversized_environment() {
    let address = format!("mongodb://{}", "a".repeat(3_000));
    let long = [("MongoUri", &*address)];
    finds_for(&long, "ReportFaults", "limit is 4096");
}

#[test]
fn data_outlives_only_created_stacks() {
    let policy = "    DeletionPolicy: RetainExceptOnCreate\n";
    finds(policy, "    DeletionPolicy: Retain\n", "UploadBucket", "blocks the next");
    finds(policy, "", "UploadBucket", "is deleted with the stack");
    let ledger = "  LedgerTable:\n    Type: AWS::DynamoDB::Table\n    UpdateReplacePolicy: Retain\n";
    let replaced = ledger.replace("Retain", "Delete");
    finds(ledger, &replaced, "LedgerTable", "is deleted when an update replaces it");
    let protection = "DeletionProtectionEnabled: !Ref ProtectTables";
    finds(protection, "DeletionProtectionEnabled: true", "LedgerTable", "from its first create on");
    finds(protection, "TableClass: STANDARD", "LedgerTable", "cannot be protected");
    finds("PointInTimeRecoveryEnabled: true", "PointInTimeRecoveryEnabled: false", "LedgerTable", "restored");
    finds(
        "Sid: TlsOnly\n            Effect: Deny",
        "Sid: TlsOnly\n            Effect: Audit",
        "UploadBucket",
        "without TLS",
    );
}

#[test]
fn finds_dropped_logs_and_unreachable_collectors() {
    finds(", ApplicationLogLevel: TRACE", "", "StartUpload", "dropped by Lambda");
    finds("LogFormat: JSON", "LogFormat: Text", "StartUpload", "does not log as JSON");
    let inside = [("SubnetIds", "subnet-1"), ("SecurityGroupIds", "sg-1")];
    let own = "!If [HasCollectorLayer, \"http://localhost:4318\", \"\"]";
    finds_with(&inside, own, "http://collector.internal:4318", "NotifyUpload", "cannot reach the collector");
}

#[test]
fn new_api_version_can_be_rolled_back() {
    let alias = "IntegrationUri: !Ref StartUpload.Alias";
    finds(
        alias,
        "IntegrationUri: !GetAtt StartUpload.Arn",
        "StartUploadIntegration",
        "the alias of a function",
    );
    finds("AutoPublishAliasAllProperties: true", "Tags: {}", "StartUpload", "only its settings change");
    finds("VersionDescription: !Ref Release", "Tags: {}", "StartUpload", "when only a parameter changes");
    finds(" (${Release})", "", "StartUpload", "the same in every Release");
    finds("    AutoPublishAlias: live\n", "", "RunSaga", "has no versions");
    let hook = "Type: AllAtOnce, Hooks: { PreTraffic: !Ref CheckVersion } }";
    finds(hook, "Type: AllAtOnce }", "NotifyUpload", "is not tested before");
    finds(
        "FunctionName: !Sub CodeDeployHook_",
        "FunctionName: !Sub Hook_",
        "RunSaga",
        "is not tested before",
    );
    finds(
        "Alarms: [!Ref ApiAlarm, !Ref StartUploadErrorsAlarm]",
        "Alarms: []",
        "StartUpload",
        "rolls it back",
    );
}

#[test]
fn page_may_send_signature_headers() {
    let pages = [("AllowedOrigins", "https://a.example")];
    finds_with(
        &pages,
        "x-amz-content-sha256, ",
        "",
        "HttpApi",
        "does not let a page send x-amz-content-sha256",
    );
}

#[test]
fn only_unrestrictable_calls_cover_all_resources() {
    let inside = [("SubnetIds", "subnet-1"), ("SecurityGroupIds", "sg-1")];
    finds_with(
        &inside,
        "- ec2:DescribeSubnets",
        "- ec2:DescribeInstances",
        "NetworkPolicy",
        "ec2:DescribeInstances on *",
    );
    let (call, other) = ("[codedeploy:GetDeployment,", "[codedeploy:DeleteApplication,");
    finds(call, other, "CheckVersionRole", "codedeploy:DeleteApplication on arn");
}

/// The templates' own rules reject parameters before anything is created.
fn refused(values: &[(&str, &str)]) -> Vec<String> {
    let mut refused = template(&[&[("MongoSecretArn", SECRET)], values].concat()).refused;
    // The region of the page is not a parameter.
    refused.retain(|text| !text.contains("us-east-1"));
    refused
}

#[test]
fn template_rules_reject_invalid_parameters() {
    assert_eq!(refused(&[]), [""; 0]);
    let jwt = [("JwtIssuer", "https://id.example/"), ("JwtAudience", "reviews")];
    assert_eq!(refused(&jwt), [""; 0]);
    let topic = ("AlarmTopicArn", "arn:aws:sns:eu-central-1:123456789012:alarms");
    let whole = [("SubnetIds", "subnet-1"), ("SecurityGroupIds", "sg-1"), ("MonthlyBudget", "5"), topic];
    assert_eq!(refused(&whole), [""; 0]);
    let refusals: [(&[(&str, &str)], &str); 9] = [
        (&[("PageKeySha256", &"0".repeat(64))], "With PageKeySha256, give JwtIssuer"),
        (&[jwt[0], jwt[1], ("ScopePrefix", "")], "which other applications may use"),
        (&[("MongoUri", "mongodb://db.example")], "either MongoSecretArn or MongoUri"),
        (&jwt[..1], "accepts tokens that the issuer made for other applications"),
        (&jwt[1..], "the API accepts no tokens"),
        (&whole[..1], "SubnetIds and SecurityGroupIds together"),
        (&whole[1..2], "SubnetIds and SecurityGroupIds together"),
        (&whole[2..3], "give AlarmTopicArn"),
        (&[("PageDomain", "reviews.example")], "PageDomain and CertificateArn together"),
    ];
    for (values, why) in refusals {
        let found = refused(values);
        assert!(found.iter().any(|text| text.contains(why)), "{values:?}: {found:?}");
    }
}

/// The instructions for an empty account name every role that needs a user in the database.
#[test]
fn instructions_name_every_database_role() {
    let template = template(&[("SubnetIds", "subnet-1"), ("SecurityGroupIds", "sg-1")]);
    let inside = template.functions().filter(|function| !function.properties["VpcConfig"].is_null());
    let roles: Vec<String> = inside.map(|function| format!("`{}RoleArn`", function.id)).collect();
    assert_eq!(roles.len(), 5);
    for role in roles {
        assert!(DEPLOY.contains(&role), "docs/deploy.md does not name {role}");
    }
}

#[test]
fn finds_notification_for_another_prefix() {
    finds(
        "Value: uploads/",
        "Value: files/",
        "UploadBucket",
        "prefix \"files/\", but the function handles those with \"uploads/\"",
    );
    finds("Rules: [{ Name: prefix, Value: uploads/ }]", "Rules: []", "UploadBucket", "prefix none");
}

#[test]
fn finds_missing_and_unused_variables() {
    finds(
        "        SEARCH_IMPORT_PROJECTS_CLAIM: !If [WithTokens, !Ref ProjectsClaim, \"\"]\n",
        "",
        "StartUpload",
        "SEARCH_IMPORT_PROJECTS_CLAIM is read and not set",
    );
    finds(
        "SEARCH_IMPORT_PARSE_UNREADABLE_QUEUE_URL",
        "SEARCH_IMPORT_UNREADABLE_QUEUE_URL",
        "StartUpload",
        "PARSE_UNREADABLE_QUEUE_URL is read and not set",
    );
    finds(
        "        RUST_LOG:",
        "        SEARCH_IMPORT_COLOUR: red\n        RUST_LOG:",
        "RunSaga",
        "SEARCH_IMPORT_COLOUR is set and not read",
    );
}

#[test]
fn finds_values_preventing_start() {
    let name = "SEARCH_IMPORT_SESSION_INCREMENT_SECONDS";
    finds_variable(name, "16", "DispatchOutbox", "INCREMENT_SECONDS must be at most 15");
}

#[test]
fn finds_batch_without_partial_failures() {
    finds(
        "            FunctionResponseTypes: [ReportBatchItemFailures]\n",
        "",
        "NotifyUpload",
        "does not report which messages",
    );
}

#[test]
fn finds_insufficient_or_excessive_role() {
    finds(
        "                  - !GetAtt ParseQueue.Arn\n                  - !GetAtt EventsQueue.Arn\n",
        "                  - !GetAtt ParseQueue.Arn\n",
        "RunSagaRole",
        "does not allow sqs:SendMessage on ${EventsQueue.Arn}",
    );
    finds(
        "                  - !GetAtt UploadsDeadQueue.Arn\n",
        "",
        "StartUploadRole",
        "does not allow sqs:GetQueueAttributes on ${UploadsDeadQueue.Arn}",
    );
    finds(
        "Action: [dynamodb:GetItem, dynamodb:PutItem]",
        "Action: [dynamodb:GetItem, dynamodb:PutItem, dynamodb:Scan]",
        "ParseReferencesRole",
        "allows dynamodb:Scan on ${ProcessedTable.Arn}, which parse-references does not do",
    );
    finds_with(
        &[("MongoSecretArn", SECRET)],
        "Resource: !Ref MongoSecretArn }",
        "Resource: \"arn:aws:secretsmanager:eu-central-1:123456789012:secret:other\" }",
        "StartUploadRole",
        "does not allow secretsmanager:GetSecretValue",
    );
}

#[test]
fn finds_function_on_another_queue() {
    let (own, other) = ("Queue: !GetAtt ParseDeadQueue.Arn", "Queue: !GetAtt SagaDeadQueue.Arn");
    finds(own, other, "ReportFaults", "is not invoked by the queue that it works on");
    finds(own, other, "ReportFaults", "is invoked by SagaDeadQueue");
}

#[test]
fn finds_undeployed_function() {
    finds("Binary: report-faults", "Binary: report-fault", "Resources", "report-faults is not deployed");
}

#[test]
fn routes_require_signature_or_scoped_token() {
    let authorization = "AuthorizationType: !If [WithTokens, JWT, AWS_IAM]";
    finds(authorization, "AuthorizationType: NONE", "PostProjectsRoute", "open to everybody");
    let jwt = [("JwtIssuer", "https://id.example"), ("JwtAudience", "reviews")];
    let scopes = "          AuthorizationScopes:";
    finds_with(&jwt, scopes, "          Scopes:", "PostProjectsRoute", "open to every valid token");
}

#[test]
fn every_operation_has_a_route_with_its_scope() {
    let in_loop = |route: &str| format!("      - {route}\n");
    finds(&in_loop("CreateReview"), "", "HttpApi", "has 0 routes for POST /projects");
    finds(&in_loop("ReadAdmin"), "", "HttpApi", "has 0 routes for GET /admin/health");
    let tokens = [("JwtIssuer", "https://id.example"), ("JwtAudience", "reviews")];
    let what = "requires another scope than read for POST /projects/{project}/exports";
    finds_with(&tokens, &in_loop("MakeReviewExport"), "", "PostProjectsRoute", what);
    let admin = "GET /admin/{proxy+}\", Scope: ";
    let what = "requires another scope than operate for GET /admin/audit";
    finds_with(&tokens, &format!("{admin}operate"), &format!("{admin}read"), "ReadAdminRoute", what);
    let pages = [("AllowedOrigins", "https://page.example")];
    let what = "does not allow pages the method of DELETE /projects/{project}";
    finds_with(&pages, "[GET, POST, DELETE]", "[GET, POST]", "HttpApi", what);
}

/// Without its conditions, the permission would cover every key of the account.
#[test]
fn key_is_granted_for_one_secret() {
    let condition = "kms:EncryptionContext:SecretARN: !Ref MongoSecretArn";
    let secret = [("MongoSecretArn", SECRET)];
    finds_with(
        &secret,
        condition,
        "aws:RequestedRegion: eu-central-1",
        "SecretPolicy",
        "allows kms:Decrypt on",
    );
    let other = "kms:EncryptionContext:SecretARN: another";
    finds_with(&secret, condition, other, "StartUploadRole", "does not allow kms:Decrypt on");
}

#[test]
fn every_request_has_one_route() {
    let (route, other) = ("\"POST /admin/{proxy+}\"", "\"POST /{proxy+}\"");
    finds(route, other, "PostAdminRoute", "takes requests of PostProjectsRoute");
    finds(route, "\"ANY /admin/{proxy+}\"", "PostAdminRoute", "preflight requests");
    finds(route, "$default", "PostAdminRoute", "preflight requests");
}

#[test]
fn page_reaches_every_route_and_bucket_is_private() {
    let page = [("SignInUrl", "https://sign-in.example"), ("SignInClientId", "page")];
    let distribution = "PageDistribution";
    let faults = [
        ("PathPattern: /admin/*", "PathPattern: /administration/*", "does not hand GET /admin/{proxy+} on"),
        ("PathPattern: /projects*", "PathPattern: /projects/*", "does not hand POST /projects on"),
        ("OPTIONS, PUT, PATCH, POST, DELETE]", "OPTIONS]", "does not hand POST /projects/{proxy+} on"),
        ("4135ea2d-6df8-44a3-9df3-4b5a84be39ad", "658327ea-f89d-4fab-a63d-7e88639e58f6", "uncached"),
        ("ViewerProtocolPolicy: redirect-to-https", "ViewerProtocolPolicy: allow-all", "without TLS"),
        ("SigningBehavior: always", "SigningBehavior: never", "unsigned"),
    ];
    for (from, to, what) in faults {
        finds_with(&page, from, to, distribution, what);
    }
}

/// The deployed page has the policy of the page served by `serve`, except for uploads and sign-in.
#[test]
fn deployed_page_has_the_served_policy() {
    let template = template(&[("SignInUrl", "https://sign-in.example")]);
    let headers = &template.resources["PageHeaders"]["Properties"]["ResponseHeadersPolicyConfig"];
    let security = &headers["SecurityHeadersConfig"];
    let policy = security["ContentSecurityPolicy"]["ContentSecurityPolicy"].as_str().unwrap();
    let (before, others) = policy.split_once(" https://").unwrap();
    let (others, after) = others.split_once(';').unwrap();
    assert_eq!(format!("{before};{after}"), local::http::page::POLICY);
    let others: Vec<&str> = others.split(' ').collect();
    assert!(
        matches!(others[..], [bucket, "https://sign-in.example"] if bucket.contains("-uploads-")),
        "{others:?}"
    );
    assert_eq!(security["ReferrerPolicy"]["ReferrerPolicy"], "no-referrer");
}

/// A second region may have a stack with the same name.
#[test]
fn names_across_regions_contain_the_region() {
    let template = template(&[("MonthlyBudget", "5")]);
    let names = [
        ("AWS::S3::Bucket", "/BucketName"),
        ("AWS::CloudWatch::Dashboard", "/DashboardName"),
        ("AWS::Budgets::Budget", "/Budget/BudgetName"),
        // Names of IAM are global. Without one, CloudFormation generates it.
        ("AWS::IAM::Role", "/RoleName"),
        ("AWS::IAM::ManagedPolicy", "/ManagedPolicyName"),
    ];
    let mut named = 0;
    for (kind, name) in names {
        let resources = template.of_type(kind);
        let found = resources.filter_map(|(id, properties)| Some((id, properties.pointer(name)?)));
        for (id, name) in found {
            assert!(text(name).contains("${AWS::Region}"), "{id}: {name}");
            named += 1;
        }
    }
    assert_eq!(named, 3);
}

/// The types of resources that hold data, messages, or an address that clients know.
const LASTING: [&str; 6] = [
    "AWS::DynamoDB::Table",
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
    "AWS::ApiGatewayV2::Api",
];

/// Resources keep their logical ids and properties, because CloudFormation would replace them, or delete them with what
/// they hold. `UPDATE=1` records a change that is known to keep them.
#[test]
fn lasting_resources_keep_their_ids_and_properties() {
    let source = Source::read(TEMPLATES[0]).unwrap();
    let values = [("AllowedOrigins".to_owned(), "https://review.example".to_owned())];
    let template = Template::new(&source, &values.into());
    let lasting = template.resources.into_iter();
    let lasting: BTreeMap<String, Value> = lasting
        .filter(|(_, resource)| LASTING.iter().any(|kind| resource["Type"] == *kind))
        .map(|(id, resource)| (id, as_text(resource)))
        .collect();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/lasting.json");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, serde_json::to_string_pretty(&lasting).unwrap() + "\n").unwrap();
    }
    let recorded: BTreeMap<String, Value> =
        serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(recorded.keys().collect::<Vec<_>>(), lasting.keys().collect::<Vec<_>>());
    for (id, before) in &recorded {
        assert_eq!(&lasting[id], before, "{id}");
    }
}

/// Returns a value with its numbers and truth values as text, because CloudFormation does not distinguish them.
fn as_text(value: Value) -> Value {
    match value {
        Value::Object(map) => map.into_iter().map(|(name, value)| (name, as_text(value))).collect(),
        Value::Array(items) => items.into_iter().map(as_text).collect(),
        Value::Number(number) => number.to_string().into(),
        Value::Bool(value) => value.to_string().into(),
        other => other,
    }
}
