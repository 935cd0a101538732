//! The generated template passes the checks, and each check finds its fault.
#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test with a line number")]

use std::collections::BTreeMap;

use messages::{Queue, QueueSpec};
use outbox::session::CONTROL;
use rstest::rstest;
use saga::{Engine, Function, SAGA, Service, Source as Trigger, System};
use system_tools::DocumentStore;
use system_tools::template::{Finding, Rules, Source, Template, check, generate};

const WORK: Queue = Queue::named("work");
const WORK_DEAD: Queue = Queue::named("work-dead");
const NEWS: Queue = Queue::named("news");

static QUEUES: [QueueSpec; 8] = [
    QueueSpec::standard(SAGA, Queue::named("saga-dead")),
    QueueSpec::without_consumer(Queue::named("saga-dead")),
    QueueSpec::standard(WORK, WORK_DEAD),
    QueueSpec::with_consumer(WORK_DEAD, Queue::named("work-unreadable"), 20, 60, 10, 1),
    QueueSpec::without_consumer(Queue::named("work-unreadable")),
    QueueSpec::standard(CONTROL, Queue::named("control-dead")),
    QueueSpec::without_consumer(Queue::named("control-dead")),
    QueueSpec::without_consumer(NEWS),
];

const fn function(
    name: &'static str,
    services: &'static [Service],
    source: Trigger,
    sends: &'static [Queue],
) -> Function<Engine> {
    Function { name, services, source, sends, drains: &[], build: None }
}

static TO_SAGA: [Queue; 1] = [SAGA];
static OF_RUN: [Queue; 3] = [SAGA, WORK, NEWS];
static OF_HTTP: [Queue; 2] = [CONTROL, SAGA];
static ALL: [Queue; 4] = [CONTROL, SAGA, WORK, NEWS];
static DEAD: [Queue; 3] =
    [Queue::named("saga-dead"), Queue::named("work-unreadable"), Queue::named("control-dead")];

static RUN: Function<Engine> =
    function("jobs", &[Service::DATABASE, Service::LEDGER], Trigger::Queue(SAGA), &OF_RUN);
static WORKER: Function<Engine> = function(
    "worker",
    &[Service::PROCESSED, Service::TOKENS, Service("suppliers")],
    Trigger::Queue(WORK),
    &TO_SAGA,
);
static FAULTS: Function<Engine> =
    function("faults", &[Service::DATABASE, Service::LEDGER], Trigger::Queue(WORK_DEAD), &TO_SAGA);
static DISPATCH: Function<Engine> = Function::dispatch_outbox_and_failures(&ALL, &DEAD);
static HTTP: Function<Engine> =
    function("http", &[Service::DATABASE, Service::LEDGER, Service::DEPTHS], Trigger::Requests, &OF_HTTP);
static SYSTEM: System<Engine> =
    System { name: "fresh-shop", queues: &QUEUES, functions: &[&RUN, &WORKER, &FAULTS, &DISPATCH, &HTTP] };

const SECRET: &str = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:mongodb-AbCdEf";

fn findings(text: &str, parameters: &[(&str, &str)]) -> Vec<Finding> {
    let values = parameters.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    let own = ("Suppliers".to_owned(), "https://suppliers.example".to_owned());
    let values: BTreeMap<String, String> = values.chain([own]).collect();
    let template = Template::new(&Source::read(text).unwrap(), &values);
    assert!(template.refused.is_empty(), "{:?}", template.refused);
    check(&SYSTEM, &Rules::default(), &template)
}

#[rstest]
#[case::address(&[("MongoUri", "mongodb://db.example")])]
#[case::secret(&[("MongoSecretArn", SECRET)])]
fn generated_template_has_no_findings(#[case] parameters: &[(&str, &str)]) {
    assert_eq!(findings(&generate(&SYSTEM, DocumentStore::Mongodb), parameters), []);
}

#[test]
fn handler_may_send_to_its_own_queue() {
    let text = generate(&SYSTEM, DocumentStore::Dynamodb);
    let of = |start: &str, end: &str| {
        let start = text.find(start).unwrap();
        text[start..start + text[start..].find(end).unwrap()].to_owned()
    };
    assert!(of("  WorkerFunction:", "Environment").contains("RecursiveLoop: Allow"), "{text}");
    let role = of("  WorkerRole:", "\n\n");
    assert!(role.contains("sqs:SendMessage") && role.contains("!GetAtt WorkQueue.Arn"), "{role}");
}

#[test]
fn dynamodb_template_never_mentions_mongodb() {
    let text = generate(&SYSTEM, DocumentStore::Dynamodb);
    assert_eq!(findings(&text, &[]), []);
    let lower = text.to_lowercase();
    assert!(!lower.contains("mongo") && !lower.contains("secret") && !lower.contains("{{"), "{text}");
}

#[test]
fn template_needs_one_address_of_the_database() {
    let template =
        Template::new(&Source::read(&generate(&SYSTEM, DocumentStore::Mongodb)).unwrap(), &BTreeMap::new());
    assert_eq!(template.refused, ["Give either MongoSecretArn or MongoUri."]);
}

#[test]
fn foreign_queue_gets_dead_letter_queue() {
    let source = Source::read(&generate(&SYSTEM, DocumentStore::Mongodb)).unwrap();
    let template = Template::new(&source, &BTreeMap::new());
    let news = template.queues().find(|queue| queue.id == "NewsQueue").unwrap();
    assert_eq!(news.dead_letters(&template).unwrap().id, "NewsDeadQueue");
}

#[rstest]
#[case::receive_limit("maxReceiveCount: 20", "maxReceiveCount: 2", "SagaQueue", "2 deliveries")]
#[case::visibility(
    "VisibilityTimeout: 180",
    "VisibilityTimeout: 60",
    "SagaQueue",
    "hides a message for 60 s"
)]
#[case::redrive(
    "deadLetterTargetArn: !GetAtt SagaDeadQueue.Arn",
    "deadLetterTargetArn: x",
    "SagaQueue",
    "dead-letter"
)]
#[case::schedule("Type: Schedule", "Type: Api", "DispatchOutboxFunction", "no schedule starts it")]
#[case::own_queue(
    "Queue: !GetAtt WorkQueue.Arn",
    "Queue: !GetAtt SagaQueue.Arn",
    "WorkerFunction",
    "is not invoked"
)]
#[case::grant("[dynamodb:GetItem, dynamodb:PutItem]", "[dynamodb:GetItem]", "WorkerRole", "dynamodb:PutItem")]
#[case::excess(
    "[dynamodb:GetItem, dynamodb:PutItem]",
    "[dynamodb:GetItem, dynamodb:PutItem, dynamodb:Scan]",
    "WorkerRole",
    "allows dynamodb:Scan"
)]
#[case::star("Action: [dynamodb:UpdateItem]", "Action: [\"dynamodb:*\"]", "JobsRole", "allows dynamodb:*")]
#[case::setting(
    "FRESH_SHOP_SUPPLIERS: !Ref Suppliers",
    "FRESH_SHOP_SUPPLIER: !Ref Suppliers",
    "WorkerFunction",
    "FRESH_SHOP_SUPPLIERS is read and not set"
)]
#[case::handler("Handler: worker", "Handler: works", "Resources", "worker is not deployed")]
#[case::retention(
    "DeletionPolicy: RetainExceptOnCreate",
    "DeletionPolicy: Delete",
    "LedgerTable",
    "deleted with the stack"
)]
#[case::loops("      RecursiveLoop: Allow\n", "", "JobsFunction", "stops it as a loop")]
#[case::responses("[ReportBatchItemFailures]", "[]", "JobsFunction", "does not report")]
#[case::concurrency("MaximumConcurrency: 2", "MaximumConcurrency: 900", "mongodb_connections", "is 1500")]
fn planted_fault_is_found(#[case] from: &str, #[case] to: &str, #[case] resource: &str, #[case] what: &str) {
    let text = generate(&SYSTEM, DocumentStore::Mongodb);
    assert!(text.contains(from), "the template has changed: {from}");
    let found = findings(&text.replacen(from, to, 1), &[("MongoUri", "mongodb://db.example")]);
    let is_it = |finding: &Finding| finding.resource == resource && finding.what.contains(what);
    assert!(found.iter().any(is_it), "{found:#?}");
}

/// The local runner sweeps without such a function, so only the check of the template finds this.
#[test]
fn system_that_never_dispatches_is_found() {
    static WITHOUT: System<Engine> =
        System { name: "fresh-shop", queues: &QUEUES, functions: &[&RUN, &WORKER, &FAULTS, &HTTP] };
    let text = generate(&WITHOUT, DocumentStore::Dynamodb);
    let template = Template::new(&Source::read(&text).unwrap(), &BTreeMap::new());
    let found = check(&WITHOUT, &Rules::default(), &template);
    assert!(found.iter().any(|finding| finding.what.contains("no timer fires")), "{found:#?}");
}

#[rstest]
#[case::index("IndexName: outbox_ready,", "IndexName: outbox_red,", "StoreTable", "no index outbox_ready")]
#[case::key(
    "{ AttributeName: pk, KeyType: HASH }",
    "{ AttributeName: id, KeyType: HASH }",
    "StoreTable",
    "KeySchema"
)]
#[case::attribute(
    "        - { AttributeName: ready, AttributeType: S }\n",
    "",
    "StoreTable",
    "no attribute ready"
)]
#[case::expiry(
    "expires_at, Enabled: true",
    "expires_at, Enabled: false",
    "StoreTable",
    "TimeToLiveSpecification"
)]
#[case::items("dynamodb:ConditionCheckItem, ", "", "JobsRole", "does not allow dynamodb:ConditionCheckItem")]
#[case::query("[dynamodb:Query]", "[dynamodb:Scan]", "JobsRole", "does not allow dynamodb:Query")]
#[case::excess("[dynamodb:Query]", "[dynamodb:Query, dynamodb:Scan]", "JobsRole", "allows dynamodb:Scan")]
#[case::star("/index/by_time", "/index/*", "JobsRole", "/index/*")]
#[case::setting(
    "          FRESH_SHOP_STORE_TABLE: !Ref StoreTable\n",
    "",
    "JobsFunction",
    "FRESH_SHOP_STORE_TABLE is read and not set"
)]
#[case::both(
    "FRESH_SHOP_STORE_TABLE: !Ref StoreTable\n",
    "FRESH_SHOP_STORE_TABLE: !Ref StoreTable\n          MONGODB_URI: mongodb://db.example\n",
    "JobsFunction",
    "FRESH_SHOP_STORE_TABLE and MONGODB_URI are both set"
)]
#[case::unread(
    "FRESH_SHOP_STORE_TABLE: !Ref StoreTable\n",
    "FRESH_SHOP_STORE_TABLE: !Ref StoreTable\n          MONGODB_DATABASE: shop\n",
    "JobsFunction",
    "MONGODB_DATABASE is set and not read"
)]
#[case::other_table(
    "FRESH_SHOP_STORE_TABLE: !Ref StoreTable",
    "FRESH_SHOP_STORE_TABLE: !Ref LedgerTable",
    "JobsFunction",
    "another table of documents"
)]
#[case::no_table(
    "  StoreTable:\n    Type: AWS::DynamoDB::Table",
    "  StoreTable:\n    Type: AWS::SQS::Queue",
    "StoreTable",
    "is not a table of the template"
)]
fn planted_fault_in_table_of_documents_is_found(
    #[case] from: &str,
    #[case] to: &str,
    #[case] resource: &str,
    #[case] what: &str,
) {
    let text = generate(&SYSTEM, DocumentStore::Dynamodb);
    assert!(text.contains(from), "the template has changed: {from}");
    let found = findings(&text.replacen(from, to, 1), &[]);
    let is_it = |finding: &Finding| finding.resource == resource && finding.what.contains(what);
    assert!(found.iter().any(is_it), "{found:#?}");
}
