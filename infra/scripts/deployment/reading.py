"""Reads deployed resources, and describes them as a template."""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from scripts.deployment.references import References
from scripts.deployment.stack import Client, Json, Stack
from scripts.errors import check

Resources = Iterator[tuple[str, Json]]


def template(stack: Stack) -> Json:
    """A template that refers to logical ids, like the deployed one."""
    references = References(stack.resources, stack.region)
    found = {
        logical: {**resource, "Properties": references.restore(resource["Properties"])}
        for read in (functions, queues, roles, policies, buckets, stages)
        for logical, resource in read(stack)
    }
    # The name of a bucket is not replaced, because the checks use it.
    for logical, name in stack.of_type("AWS::S3::Bucket").items():
        found[logical]["Properties"]["BucketName"] = name
    defaults = {name: {"Default": value} for name, value in stack.parameters.items()}
    return {"Parameters": defaults, "Resources": found}


def functions(stack: Stack) -> Resources:
    lambda_ = stack.client("lambda")
    mappings = lambda_.list_event_source_mappings()["EventSourceMappings"]
    rules = stack.of_type("AWS::Events::Rule")
    for logical, name in stack.of_type("AWS::Lambda::Function").items():
        # The test of new versions is not a function of the application.
        if not name.startswith(f"{stack.name}-"):
            continue
        deployed = lambda_.get_function_configuration(FunctionName=name)
        check(deployed["Runtime"] == "provided.al2023", f"{logical} runs on {deployed['Runtime']}")
        properties = {
            "Timeout": deployed["Timeout"],
            "Role": deployed["Role"],
            "Environment": deployed["Environment"],
            "LoggingConfig": deployed.get("LoggingConfig", {}),
            "Events": events(logical, sources_of(name, mappings), rules),
            "EventInvokeConfig": invocation(lambda_, name),
        }
        reserved = lambda_.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions")
        if reserved is not None:
            properties["ReservedConcurrentExecutions"] = reserved
        binary = name.removeprefix(f"{stack.name}-")
        yield (
            logical,
            {
                "Type": "AWS::Serverless::Function",
                "Metadata": {"BuildProperties": {"Binary": binary}},
                "Properties": properties,
            },
        )


def sources_of(function: str, mappings: Iterable[Json]) -> list[Json]:
    """Returns the event sources of a function, whose ARN there may end with an alias or a version."""
    return [one for one in mappings if one["FunctionArn"].split(":function:")[1].split(":")[0] == function]


def events(function: str, sources: Sequence[Json], rules: Iterable[str]) -> Json:
    queues = {f"Queue{index}": event_source(one) for index, one in enumerate(sources)}
    # SAM puts the name of the function before the name of its schedule.
    return {**queues, **{rule: {"Type": "Schedule"} for rule in rules if rule.startswith(function)}}


def event_source(mapping: Json) -> Json:
    check(mapping["State"] in ("Enabled", "Creating"), f"an event source is {mapping['State']}")
    return {
        "Type": "SQS",
        "Properties": {
            "Queue": mapping["EventSourceArn"],
            "BatchSize": mapping["BatchSize"],
            "MaximumBatchingWindowInSeconds": mapping.get("MaximumBatchingWindowInSeconds", 0),
            "ScalingConfig": mapping.get("ScalingConfig", {}),
            "FunctionResponseTypes": mapping.get("FunctionResponseTypes", []),
        },
    }


def invocation(lambda_: Client, name: str) -> Json:
    try:
        config = lambda_.get_function_event_invoke_config(FunctionName=name, Qualifier="live")
    except lambda_.exceptions.ResourceNotFoundException:
        return {}
    destination = config.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
    return {"DestinationConfig": {"OnFailure": {"Destination": destination}}} if destination else {}


def queues(stack: Stack) -> Resources:
    sqs = stack.client("sqs")
    for logical, url in stack.of_type("AWS::SQS::Queue").items():
        answer = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])
        yield logical, {"Type": "AWS::SQS::Queue", "Properties": queue(answer["Attributes"])}


def queue(attributes: Mapping[str, str]) -> Json:
    properties: Json = {name: attributes[name] for name in ("MessageRetentionPeriod", "VisibilityTimeout")}
    if "RedrivePolicy" in attributes:
        properties["RedrivePolicy"] = json.loads(attributes["RedrivePolicy"])
    return properties


def roles(stack: Stack) -> Resources:
    iam = stack.client("iam")
    for logical, role in stack.of_type("AWS::IAM::Role").items():
        names = iam.list_role_policies(RoleName=role)["PolicyNames"]
        policies = [iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names]
        documents = [{"PolicyDocument": policy} for policy in policies]
        attached = iam.list_attached_role_policies(RoleName=role)["AttachedPolicies"]
        arns = [one["PolicyArn"] for one in attached]
        properties = {"Policies": documents, "ManagedPolicyArns": arns}
        yield logical, {"Type": "AWS::IAM::Role", "Properties": properties}


def policies(stack: Stack) -> Resources:
    iam = stack.client("iam")
    for logical, arn in stack.of_type("AWS::IAM::ManagedPolicy").items():
        version = iam.get_policy(PolicyArn=arn)["Policy"]["DefaultVersionId"]
        found = iam.get_policy_version(PolicyArn=arn, VersionId=version)["PolicyVersion"]
        properties = {"PolicyDocument": found["Document"]}
        yield logical, {"Type": "AWS::IAM::ManagedPolicy", "Properties": properties}


def buckets(stack: Stack) -> Resources:
    s3 = stack.client("s3")
    for logical, bucket in stack.of_type("AWS::S3::Bucket").items():
        told = s3.get_bucket_notification_configuration(Bucket=bucket).get("QueueConfigurations", [])
        properties: Json = {"LifecycleConfiguration": {"Rules": lifecycle(s3, bucket)}}
        if told:
            properties["NotificationConfiguration"] = {"QueueConfigurations": [notified(one) for one in told]}
        yield logical, {"Type": "AWS::S3::Bucket", "Properties": properties}


def lifecycle(s3: Client, bucket: str) -> list[Json]:
    """Returns the rules in the form of a template, as far as the checks need them."""
    rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    return [
        {
            "Status": rule["Status"],
            "Prefix": rule.get("Filter", {}).get("Prefix", rule.get("Prefix", "")),
            "ExpirationInDays": rule.get("Expiration", {}).get("Days"),
        }
        for rule in rules
    ]


def notified(configuration: Json) -> Json:
    # S3 returns "Prefix", but a template contains "prefix".
    rules = configuration["Filter"]["Key"]["FilterRules"]
    lower = [{"Name": rule["Name"].lower(), "Value": rule["Value"]} for rule in rules]
    return {"Queue": configuration["QueueArn"], "Filter": {"S3Key": {"Rules": lower}}}


def stages(_stack: Stack) -> Resources:
    yield "HttpApiStage", {"Type": "AWS::ApiGatewayV2::Stage", "Properties": {}}
