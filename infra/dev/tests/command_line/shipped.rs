//! The shipped template passes all checks in every environment, and each check finds its fault.

use std::collections::BTreeMap;

use dev::template::{Finding, Source, Template, check, environments};

const TEMPLATE: &str = include_str!("../../../../template.yaml");
const SAMCONFIG: &str = include_str!("../../../../samconfig.toml");
const RUNBOOK: &str = include_str!("../../../../docs/runbook.md");
const COSTS: &str = include_str!("../../../../docs/costs.md");
const DEPLOY: &str = include_str!("../../../../docs/deploy.md");
const SECRET: &str = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:mongodb-AbCdEf";

/// Resolves the template with these values of its parameters, and the defaults of the others.
fn template(text: &str, values: &[(&str, &str)]) -> Template {
    let values = values.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    Template::new(&Source::read(text).unwrap(), &values.collect())
}

fn findings(text: &str, values: &[(&str, &str)]) -> Vec<Finding> {
    check(&template(text, values))
}

/// Returns the template with a text replaced, which it must contain.
fn planted(from: &str, to: &str) -> String {
    assert!(TEMPLATE.contains(from), "the template has changed: {from}");
    TEMPLATE.replacen(from, to, 1)
}

/// Plants a fault, and expects one finding with this text about this resource.
#[track_caller]
fn finds(from: &str, to: &str, resource: &str, what: &str) {
    finds_with(&[], from, to, resource, what);
}

#[track_caller]
fn finds_with(values: &[(&str, &str)], from: &str, to: &str, resource: &str, what: &str) {
    let found = findings(&planted(from, to), values);
    let is_it = |finding: &Finding| finding.resource == resource && finding.what.contains(what);
    assert!(found.iter().any(is_it), "expected {resource}: …{what}…, found {found:#?}");
}

#[test]
fn shipped_template_passes_in_every_environment() {
    let environments = environments::read(SAMCONFIG).unwrap();
    assert_eq!(environments.keys().collect::<Vec<_>>(), ["default", "dev", "prod"]);
    let source = Source::read(TEMPLATE).unwrap();
    for (name, values) in environments {
        assert_eq!(check(&Template::new(&source, &values)), [], "{name}");
        let known: Vec<&str> = source.defaults().map(|(parameter, _)| parameter).collect();
        assert!(
            values.keys().all(|value| known.contains(&value.as_str())),
            "{name} sets an unknown parameter"
        );
    }
}

#[test]
fn shipped_template_passes_with_all_options() {
    let values = [
        ("MongoSecretArn", SECRET),
        ("MongoSecretKeyArn", "arn:aws:kms:eu-central-1:123456789012:key/0a1b"),
        ("ApiAuthorization", "JWT"),
        ("JwtIssuer", "https://id.example"),
        ("JwtAudience", "reviews"),
        ("AllowedOrigins", "https://a.example,https://b.example"),
        ("Page", "true"),
        ("SignInUrl", "https://sign-in.example"),
        ("SignInClientId", "page"),
        ("SubnetIds", "subnet-1,subnet-2"),
        ("SecurityGroupIds", "sg-1"),
        ("ApiConcurrency", "0"),
        ("AccountConcurrency", "60"),
        ("SagaBatchWindowSeconds", "20"),
        ("AlarmTopicArn", "arn:aws:sns:eu-central-1:123456789012:alarms"),
        ("Architecture", "x86_64"),
        ("MongoSecretVersion", "01234567-89ab-cdef-0123-456789abcdef"),
        ("ShiftRequests", "true"),
        ("ProtectTables", "true"),
        ("RestoredLedgerTable", "ledger-of-yesterday"),
        ("RestoredProcessedTable", "processed-of-yesterday"),
        ("EventBusName", "reviews"),
        ("CollectorEndpoint", "http://localhost:4318"),
        ("CollectorLayerArn", "arn:aws:lambda:eu-central-1:123456789012:layer:collector:7"),
        ("Tracing", "Active"),
        ("MonthlyBudget", "200"),
    ];
    assert_eq!(findings(TEMPLATE, &values), []);
}

#[test]
fn every_alarm_is_in_the_runbook() {
    let template = template(TEMPLATE, &[("EventBusName", "reviews")]);
    let alarms: Vec<&str> = template.of_type("AWS::CloudWatch::Alarm").map(|(id, _)| id).collect();
    // One of them is used only with the bus.
    assert!(COSTS.contains(&format!("| {} alarms (0.10 each)", alarms.len() - 1)), "{}", alarms.len());
    let headings: String = RUNBOOK.lines().filter(|line| line.starts_with("### ")).collect();
    assert!(alarms.iter().all(|alarm| headings.contains(alarm)), "{alarms:?}");
}

#[test]
fn finds_a_visibility_timeout_that_is_too_short() {
    finds("VisibilityTimeout: 5400", "VisibilityTimeout: 5399", "ParseQueue", "needs 5400 s");
    let window = [("SagaBatchWindowSeconds", "20")];
    finds_with(&window, "VisibilityTimeout: 200", "VisibilityTimeout: 180", "SagaQueue", "needs 200 s");
}

#[test]
fn finds_a_low_receive_limit() {
    finds("maxReceiveCount: 20", "maxReceiveCount: 2", "UploadsQueue", "after 2 deliveries");
}

#[test]
fn finds_a_queue_unlike_its_specification() {
    // Longer than the function's timeout, so that no other check fails.
    finds(
        "VisibilityTimeout: 360",
        "VisibilityTimeout: 361",
        "ParseDeadQueue",
        "for 361 s, but 360 s are agreed",
    );
    finds("VisibilityTimeout: 200", "VisibilityTimeout: 201", "SagaQueue", "for 201 s, but 200 s are agreed");
    finds(
        "maxReceiveCount: 20",
        "maxReceiveCount: 21",
        "UploadsQueue",
        "makes 21 deliveries of a message, but 20",
    );
    finds("BatchSize: 1 #", "BatchSize: 2 #", "ParseQueue", "2 messages at once, but at most 1");
    let fewer = [("SagaBatchSize", "5")];
    assert_eq!(findings(TEMPLATE, &fewer), [], "a deployment may choose smaller batches");
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
    finds("/${KeyPrefix}*", "*", "StartUploadRole", "allows s3:PutObject on arn");
}

#[test]
fn finds_missing_or_short_lived_dead_letter_queues() {
    let redrive = "      RedrivePolicy:\n        deadLetterTargetArn: !GetAtt ControlDeadQueue.Arn\n        maxReceiveCount: 20\n";
    finds(redrive, "", "ControlQueue", "has no dead-letter queue");
    let long = [("ParseDeadRetentionSeconds", "345600")];
    finds_with(&long, "ParseDeadQueue:", "ParseDeadQueue:", "ParseDeadQueue", "no longer than ParseQueue");
}

#[test]
fn finds_messages_older_than_assumed() {
    let short = [("MessageLifetimeSeconds", "1209599")];
    finds_with(&short, "Mode:", "Mode:", "RunSaga", "can live in SagaQueue");
    let short_documents = [("Mode", "optimistic")];
    finds_with(
        &short_documents,
        "Mode:",
        "Mode:",
        "RunSaga",
        "SAGA_RETENTION_SECONDS must be at least 1209600",
    );
}

#[test]
fn finds_more_connections_than_mongodb_allows() {
    let many = [("SagaConcurrency", "100")];
    finds_with(&many, "Mode:", "Mode:", "MongoConnectionLimit", "may open 3264 connections");
    // Concurrent requests: the burst, plus the rate times the maximum duration.
    let unreserved = [("ApiConcurrency", "0")];
    finds_with(&unreserved, "Mode:", "Mode:", "MongoConnectionLimit", "may open 11424 connections");
    let unlimited = "            ScalingConfig: { MaximumConcurrency: !Ref SagaConcurrency }\n";
    finds(unlimited, "", "RunSaga", "any number of times");
}

#[test]
fn exports_expire_and_exclude_uploads() {
    let ends = "            ExpirationInDays: 1\n";
    finds(ends, "", "UploadBucket", "never expire");
    finds("Prefix: exports/", "Prefix: export/", "UploadBucket", "never expire");
    let below = [("KeyPrefix", "exports/uploads/")];
    finds_with(&below, "MemorySize: 256", "MemorySize: 256", "NotifyUpload", "where exports are");
    let (folder, all) = ("-${AWS::Region}/exports/*", "-${AWS::Region}/*");
    finds(folder, all, "StartUploadRole", "s3:GetObject");
}

#[test]
fn uploads_outlive_their_messages() {
    finds("Prefix: !Ref KeyPrefix", "Prefix: files/", "UploadBucket", "(uploads/) never expire");
    let short = [("UploadRetentionDays", "14")];
    finds_with(&short, "Mode:", "Mode:", "UploadBucket", "for 14 days, no longer than a message");
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
    for function in ["NotifyUpload", "RunSaga", "ParseReferences", "DispatchOutbox", "ReportFaults"] {
        let alarm = format!("  {function}RetriesAlarm:\n    Type: AWS::CloudWatch::Alarm");
        let other = format!("  {function}RetriesAlarm:\n    Type: AWS::CloudWatch::Dashboard");
        finds(&alarm, &other, function, "no alarm watches what it retries");
    }
    let alarms = [
        ("MetricName: RetriedDeliveries", "MetricName: MessagesRetried", "NotifyUpload", "what it retries"),
        ("MetricName: 5xx", "MetricName: 4xx", "HttpApi", "answers of 5xx"),
        ("MetricName: DestinationDeliveryFailures", "MetricName: Errors", "NotifyUpload", "cannot deliver"),
        ("MetricName: UnreadFiles", "MetricName: Studies", "ReportFaults", "files that were never read"),
        ("Value: !GetAtt SagaQueue.QueueName", "Value: saga", "SagaQueue", "the age of its messages"),
    ];
    for (from, to, resource, what) in alarms {
        finds(from, to, resource, what);
    }
    let topic = [("AlarmTopicArn", "arn:aws:sns:eu-central-1:123456789012:alarms")];
    let bus = [("EventBusName", "reviews")];
    let waiting = "Value: !GetAtt EventsQueue.QueueName";
    finds_with(&bus, waiting, "Value: events", "EventsQueue", "the age of its messages");
    let action = "      AlarmActions: !If [TellsOfAlarms, [!Ref AlarmTopicArn], !Ref AWS::NoValue]\n";
    finds_with(&topic, action, "", "EventsDeadAlarm", "tells nobody");
}

/// A busy queue also invokes the function, and would hide a missing schedule.
#[test]
fn finds_a_schedule_without_alarm() {
    for (metric, function) in [("OutboxAge", "DispatchOutbox"), ("OpenFailures", "ReportFaults")] {
        let counted = format!(
            "      MetricName: {metric}\n      Dimensions: [{{ Name: FunctionName, Value: !Ref {function} }}]\n      \
             Statistic: SampleCount"
        );
        let lambdas = counted.replace("SampleCount", "Sum");
        finds(&counted, &lambdas, function, "when its schedule does not start it");
    }
    finds("TreatMissingData: breaching", "TreatMissingData: missing", "ReportFaults", "its schedule");
}

#[test]
fn finds_more_reserved_than_the_account_can_spare() {
    let small = [("AccountConcurrency", "119")];
    finds_with(&small, "Mode:", "Mode:", "AccountConcurrency", "with 20 reserved");
    assert_eq!(findings(TEMPLATE, &[("AccountConcurrency", "120")]), []);
}

#[test]
fn finds_an_oversized_environment() {
    let address = format!("mongodb://{}", "a".repeat(2_000));
    let long = [("MongoUri", &*address)];
    finds_with(&long, "Mode:", "Mode:", "ReportFaults", "limit is 4096");
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
    finds("ApplicationLogLevel: TRACE, ", "", "StartUpload", "dropped by Lambda");
    finds("LogFormat: JSON", "LogFormat: Text", "StartUpload", "does not log as JSON");
    let inside = [
        ("SubnetIds", "subnet-1"),
        ("SecurityGroupIds", "sg-1"),
        ("CollectorEndpoint", "http://collector.internal:4318"),
    ];
    let own = "          OTEL_EXPORTER_OTLP_ENDPOINT: !If [ReachesCollectorOutside, !Sub \"${CollectorEndpoint}\", \"\"]\n";
    finds_with(&inside, own, "", "NotifyUpload", "cannot reach the collector");
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
}

/// The template's own rules reject parameters before anything is created.
fn refused(values: &[(&str, &str)]) -> Vec<String> {
    template(TEMPLATE, &[&[("MongoSecretArn", SECRET)], values].concat()).refused
}

#[test]
fn template_rules_reject_invalid_parameters() {
    assert_eq!(refused(&[]), [""; 0]);
    let jwt = [("ApiAuthorization", "JWT"), ("JwtIssuer", "https://id.example/"), ("JwtAudience", "reviews")];
    assert_eq!(refused(&jwt), [""; 0]);
    let topic = ("AlarmTopicArn", "arn:aws:sns:eu-central-1:123456789012:alarms");
    let whole = [("SubnetIds", "subnet-1"), ("SecurityGroupIds", "sg-1"), ("MonthlyBudget", "5"), topic];
    assert_eq!(refused(&whole), [""; 0]);
    let no_scopes = [jwt[0], jwt[1], jwt[2], ("ReadScopes", "")];
    let refusals: [(&[(&str, &str)], &str); 9] = [
        (&no_scopes, "lets every valid token in"),
        (&[("MongoUri", "mongodb://db.example")], "either MongoSecretArn or MongoUri"),
        (&jwt[..1], "give JwtIssuer and JwtAudience"),
        (&jwt[..2], "takes tokens that the issuer made for others"),
        (&whole[..1], "SubnetIds and SecurityGroupIds together"),
        (&whole[1..2], "SubnetIds and SecurityGroupIds together"),
        (&whole[2..3], "give AlarmTopicArn"),
        (&[("CollectorLayerArn", "arn:aws:lambda:eu-central-1:1:layer:c:7")], "give CollectorEndpoint"),
        (
            &[("Page", "true"), ("SignInUrl", "https://a.example"), ("SignInClientId", "a")],
            "needs ApiAuthorization JWT",
        ),
    ];
    for (values, why) in refusals {
        let found = refused(values);
        assert!(found.iter().any(|text| text.contains(why)), "{values:?}: {found:?}");
    }
}

/// The instructions for an empty account name every role that needs a user in the database.
#[test]
fn instructions_name_every_database_role() {
    let template = template(TEMPLATE, &[("SubnetIds", "subnet-1"), ("SecurityGroupIds", "sg-1")]);
    let inside = template.functions().filter(|function| !function.properties["VpcConfig"].is_null());
    let roles: Vec<String> = inside.map(|function| format!("`{}RoleArn`", function.id)).collect();
    assert_eq!(roles.len(), 5);
    for role in roles {
        assert!(DEPLOY.contains(&role), "docs/deploy.md does not name {role}");
    }
}

/// The budget filters costs by the tag of the stack.
#[test]
fn every_environment_tags_its_stack() {
    let config: BTreeMap<String, toml::Value> = toml::from_str(SAMCONFIG).unwrap();
    for environment in ["default", "dev", "prod"] {
        let name = config[environment]["global"]["parameters"]["stack_name"].as_str().unwrap();
        let tags = config[environment]["deploy"]["parameters"]["tags"].as_str().unwrap();
        assert!(tags.contains(&format!("stack={name}")), "{environment}: {tags}");
    }
}

/// A stack whose first creation failed blocks its name until it is deleted.
#[test]
fn every_environment_deletes_failed_creations() {
    let config: BTreeMap<String, toml::Value> = toml::from_str(SAMCONFIG).unwrap();
    for environment in ["default", "dev", "prod"] {
        let parameters = &config[environment]["deploy"]["parameters"];
        assert_eq!(parameters["on_failure"].as_str(), Some("DELETE"), "{environment}");
    }
}

#[test]
fn finds_a_notification_for_another_prefix() {
    finds(
        "Value: !Ref KeyPrefix",
        "Value: files/",
        "UploadBucket",
        "prefix \"files/\", but the function handles those with \"uploads/\"",
    );
    finds("Rules: [{ Name: prefix, Value: !Ref KeyPrefix }]", "Rules: []", "UploadBucket", "prefix none");
}

#[test]
fn finds_missing_and_unused_variables() {
    finds(
        "        SEARCH_IMPORT_OUTBOX_BATCH: !Ref OutboxBatch\n",
        "",
        "StartUpload",
        "SEARCH_IMPORT_OUTBOX_BATCH is read and not set",
    );
    finds(
        "SEARCH_IMPORT_PARSE_UNREADABLE_QUEUE_URL",
        "SEARCH_IMPORT_UNREADABLE_QUEUE_URL",
        "ReportFaults",
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
fn finds_values_that_prevent_a_start() {
    let odd = [("SessionIncrementSeconds", "16")];
    finds_with(&odd, "Mode:", "Mode:", "DispatchOutbox", "INCREMENT_SECONDS must be at most 15");
}

#[test]
fn finds_a_batch_that_succeeds_or_fails_as_a_whole() {
    finds(
        "            FunctionResponseTypes: [ReportBatchItemFailures]\n",
        "",
        "NotifyUpload",
        "does not report which messages",
    );
}

#[test]
fn finds_a_role_that_allows_too_little_or_too_much() {
    finds(
        "                  - !GetAtt EventsQueue.Arn\n",
        "",
        "RunSagaRole",
        "does not allow sqs:SendMessage on ${EventsQueue.Arn}",
    );
    finds(
        "Action: [dynamodb:GetItem, dynamodb:PutItem]",
        "Action: [dynamodb:GetItem, dynamodb:PutItem, dynamodb:Scan]",
        "ParseReferencesRole",
        "allows dynamodb:Scan on ${ProcessedTable.Arn}, which parse-references does not do",
    );
    finds_with(
        &[("MongoSecretArn", SECRET)],
        "Resource: !Ref MongoSecretArn",
        "Resource: arn:aws:secretsmanager:eu-central-1:123456789012:secret:other",
        "StartUploadRole",
        "does not allow secretsmanager:GetSecretValue",
    );
}

#[test]
fn finds_a_function_behind_another_queue() {
    let (own, other) = ("Queue: !GetAtt ParseDeadQueue.Arn", "Queue: !GetAtt SagaDeadQueue.Arn");
    finds(own, other, "ReportFaults", "is not invoked by the queue that it works on");
    finds(own, other, "ReportFaults", "is invoked by SagaDeadQueue");
}

#[test]
fn finds_a_function_that_is_not_deployed() {
    finds("Binary: report-faults", "Binary: report-fault", "Resources", "report-faults is not deployed");
}

#[test]
fn routes_require_signature_or_scoped_token() {
    let authorization = "AuthorizationType: !If [WithTokens, JWT, AWS_IAM]";
    finds(authorization, "AuthorizationType: NONE", "CreateSearchRoute", "open to everybody");
    let jwt = [("ApiAuthorization", "JWT"), ("JwtIssuer", "https://id.example"), ("JwtAudience", "reviews")];
    let scopes = "AuthorizationScopes: !If [WithTokens, !Ref WriteScopes, !Ref AWS::NoValue]";
    finds_with(&jwt, scopes, "ApiKeyRequired: false", "CreateSearchRoute", "open to every valid token");
    finds_with(
        &jwt,
        "Default: searches:write",
        "Default: \"\"",
        "DeleteSearchRoute",
        "open to every valid token",
    );
}

#[test]
fn page_reaches_every_route_and_bucket_is_private() {
    let page = [("Page", "true"), ("SignInUrl", "https://sign-in.example"), ("SignInClientId", "page")];
    let distribution = "PageDistribution";
    let faults = [
        ("PathPattern: /admin/*", "PathPattern: /administration/*", "does not hand GET /admin/health on"),
        (
            "OPTIONS, PUT, PATCH, POST, DELETE]",
            "OPTIONS]",
            "does not hand POST /projects/{project}/searches on",
        ),
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
    let template = template(TEMPLATE, &[("Page", "true"), ("SignInUrl", "https://sign-in.example")]);
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
