#!/usr/bin/env python3
"""Deploys the shipped template to a stand-in for AWS, reads it back, and puts a file through it.

    services.py run -- tools.py run sam cargo-lambda -- deployment.py

What is deployed is read back through the services' own interfaces and written as a template again, with which
`dev check-template` repeats its checks: so what the code expects is compared with what is there. Then a file
goes the way of every file: announced over HTTP, uploaded with the form that came back, and found as studies in MongoDB.

The stand-in has gaps. Each is filled in the open, in `GAPS`, and reported; the template stays right for AWS.
"""

import json
import os
import subprocess
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from pathlib import Path

from services import Failure

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SAMPLE = ROOT / "tests" / "samples" / "pubmed.nbib"
ACCOUNT = "000000000000"
# A search that takes longer than this is not going to end.
END_SECONDS = 60


def say(text):
    print(f"deployment: {text}", flush=True)


def check(holds, what):
    if not holds:
        raise Failure(what)


def run(command, **options):
    result = subprocess.run(command, cwd=ROOT, **options)
    check(result.returncode == 0, f"{' '.join(map(str, command[:3]))} ended with {result.returncode}")
    return result


def setting(name):
    value = os.environ.get(name)
    if not value:
        raise Failure(f"{name} is not set: run `make test-deploy`")
    return value


# --- Deploying --------------------------------------------------------------------------------------------------------


class Stack:
    """A stack of its own, on the stand-in."""

    def __init__(self):
        try:
            import boto3
        except ImportError:
            raise Failure("run this with the Python of sam: `make test-deploy`") from None
        self.endpoint = setting("AWS_ENDPOINT_URL_SQS")
        self.region = os.environ.get("AWS_REGION", "us-east-1")
        self.name = f"si-{uuid.uuid4().hex[:8]}"
        self.database = f"{self.name}-database"
        self.session = boto3.Session("test", "test", region_name=self.region)
        self.parameters = {"Architecture": "x86_64"}
        self.resources = {}

    def client(self, service):
        return self.session.client(service, endpoint_url=self.endpoint)

    def environment(self):
        given = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
        return {
            **given,
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": self.region,
            "SAM_CLI_TELEMETRY": "0",
        }

    def sam(self, *arguments):
        say(f"sam {' '.join(arguments[:2])}")
        run(["sam", *arguments], env=self.environment())

    def overrides(self):
        return [f"{name}={value}" for name, value in self.parameters.items()]

    def deploy(self):
        secret = self.client("secretsmanager").create_secret(
            Name=f"{self.name}-mongodb", SecretString=json.dumps({"uri": setting("MONGODB_URI")})
        )
        self.parameters["MongoSecretArn"] = secret["ARN"]
        self.parameters["MongoDatabase"] = self.database
        bucket = f"{self.name}-code"
        self.client("s3").create_bucket(Bucket=bucket)
        self.sam("validate", "--lint")
        self.sam("build", "--parameter-overrides", *self.overrides())
        self.sam(
            "deploy",
            "--stack-name",
            self.name,
            "--s3-bucket",
            bucket,
            "--no-resolve-s3",
            "--no-confirm-changeset",
            "--capabilities",
            "CAPABILITY_IAM",
            "--parameter-overrides",
            *self.overrides(),
        )
        self.resources = self.read_resources()
        answer = self.client("cloudformation").describe_stacks(StackName=self.name)
        self.outputs = {one["OutputKey"]: one["OutputValue"] for one in answer["Stacks"][0]["Outputs"]}

    def read_resources(self):
        """The physical ids of what was created, by logical id."""
        pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=self.name)
        found = [one for page in pages for one in page["StackResourceSummaries"]]
        return {one["LogicalResourceId"]: (one["ResourceType"], one["PhysicalResourceId"]) for one in found}

    def of_type(self, kind):
        return {logical: physical for logical, (type_, physical) in self.resources.items() if type_ == kind}

    def remove(self):
        # The stand-in ends the processes of a function that is deleted by itself, and not of one that goes with its stack.
        for function in self.of_type("AWS::Lambda::Function").values():
            self.client("lambda").delete_function(FunctionName=function)
        self.client("cloudformation").delete_stack(StackName=self.name)


# --- The gaps of the stand-in -----------------------------------------------------------------------------------------


def time_to_live(stack):
    """A TimeToLiveSpecification in a template is not applied."""
    dynamodb, filled = stack.client("dynamodb"), []
    for table in stack.of_type("AWS::DynamoDB::Table").values():
        state = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        if state.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
            wanted = {"AttributeName": "expires_at", "Enabled": True}
            dynamodb.update_time_to_live(TableName=table, TimeToLiveSpecification=wanted)
            filled.append(table)
    return filled


def lifecycle(stack):
    """The LifecycleConfiguration of a bucket is not applied."""
    s3, filled = stack.client("s3"), []
    for bucket in stack.of_type("AWS::S3::Bucket").values():
        try:
            s3.get_bucket_lifecycle_configuration(Bucket=bucket)
        except s3.exceptions.ClientError as error:
            check(error.response["Error"]["Code"] == "NoSuchLifecycleConfiguration", f"{bucket}: {error}")
            abort = {"AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 1}}
            rule = {"ID": "clean-up", "Status": "Enabled", "Filter": {}, **abort}
            s3.put_bucket_lifecycle_configuration(Bucket=bucket, LifecycleConfiguration={"Rules": [rule]})
            filled.append(bucket)
    return filled


def reserved_concurrency(stack):
    """The ReservedConcurrentExecutions of a function are not applied."""
    lambda_, function = stack.client("lambda"), stack.resources["StartUpload"][1]
    if "ReservedConcurrentExecutions" in lambda_.get_function_concurrency(FunctionName=function):
        return []
    # The default of the template's ApiConcurrency.
    lambda_.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=20)
    return [function]


def maximum_concurrency(stack):
    """A MaximumConcurrency that is a parameter stays text, and its queue is not polled."""
    lambda_ = stack.client("lambda")
    filled = []
    own = stack.of_type("AWS::Lambda::EventSourceMapping").values()
    for mapping in lambda_.list_event_source_mappings()["EventSourceMappings"]:
        if mapping["UUID"] not in own:
            continue
        limit = int(mapping["ScalingConfig"]["MaximumConcurrency"])
        lambda_.update_event_source_mapping(UUID=mapping["UUID"], ScalingConfig={"MaximumConcurrency": limit})
        filled.append(mapping["EventSourceArn"].rsplit(":", 1)[-1])
    return filled


GAPS = [time_to_live, lifecycle, reserved_concurrency, maximum_concurrency]


# --- Reading back -----------------------------------------------------------------------------------------------------


class Reading:
    """What is deployed, as a template again: physical names and ARNs become references to logical ids."""

    def __init__(self, stack):
        self.stack = stack
        self.names = {}
        for logical, (kind, physical) in stack.resources.items():
            self.names[physical] = {"Ref": logical}
            if kind == "AWS::SQS::Queue":
                self.arn("sqs", physical.rsplit("/", 1)[-1], logical)
            elif kind == "AWS::DynamoDB::Table":
                self.arn("dynamodb", f"table/{physical}", logical)
            elif kind == "AWS::Lambda::Function":
                self.arn("lambda", f"function:{physical}", logical)
            elif kind == "AWS::Logs::LogGroup":
                self.arn("logs", f"log-group:{physical}", logical)
                self.arn("logs", f"log-group:{physical}:*", logical)
            elif kind == "AWS::IAM::Role":
                self.names[f"arn:aws:iam::{ACCOUNT}:role/{physical}"] = {"Fn::GetAtt": [logical, "Arn"]}

    def arn(self, service, rest, logical):
        arn = f"arn:aws:{service}:{self.stack.region}:{ACCOUNT}:{rest}"
        self.names[arn] = {"Fn::GetAtt": [logical, "Arn"]}

    def logical(self, value):
        """A value with its references restored."""
        if isinstance(value, list):
            return [self.logical(item) for item in value]
        if isinstance(value, dict):
            return {key: self.logical(item) for key, item in value.items()}
        if isinstance(value, str) and value in self.names:
            return self.names[value]
        if isinstance(value, str) and value.startswith("arn:aws:s3:::"):
            return value.replace("arn:aws:", "arn:${AWS::Partition}:", 1)
        return value

    def template(self):
        resources = {}
        for read in (self.functions, self.queues, self.roles, self.bucket, self.stage):
            resources.update(read())
        defaults = {name: {"Default": value} for name, value in self.stack.parameters.items()}
        parameters = {"MongoConnectionLimit": {"Default": 1500}, **defaults}
        return {"Parameters": parameters, "Resources": resources}

    def functions(self):
        lambda_ = self.stack.client("lambda")
        mappings = lambda_.list_event_source_mappings()["EventSourceMappings"]
        for logical, name in self.stack.of_type("AWS::Lambda::Function").items():
            deployed = lambda_.get_function_configuration(FunctionName=name)
            own = [one for one in mappings if one["FunctionArn"].split(":function:")[1].split(":")[0] == name]
            properties = {
                "Timeout": deployed["Timeout"],
                "Role": deployed["Role"],
                "Environment": deployed["Environment"],
                "LoggingConfig": deployed.get("LoggingConfig", {}),
                "Events": {f"Queue{index}": self.event(one) for index, one in enumerate(own)},
            }
            rules = self.stack.of_type("AWS::Events::Rule")
            properties["Events"].update({rule: {"Type": "Schedule"} for rule in rules if rule.startswith(logical)})
            reserved = lambda_.get_function_concurrency(FunctionName=name).get("ReservedConcurrentExecutions")
            if reserved is not None:
                properties["ReservedConcurrentExecutions"] = reserved
            properties["EventInvokeConfig"] = self.failures(lambda_, name)
            binary = name.removeprefix(f"{self.stack.name}-")
            check(deployed["Runtime"] == "provided.al2023", f"{logical} runs on {deployed['Runtime']}")
            yield (
                logical,
                {
                    "Type": "AWS::Serverless::Function",
                    "Metadata": {"BuildProperties": {"Binary": binary}},
                    "Properties": self.logical(properties),
                },
            )

    @staticmethod
    def event(mapping):
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

    @staticmethod
    def failures(lambda_, name):
        try:
            config = lambda_.get_function_event_invoke_config(FunctionName=name, Qualifier="$LATEST")
        except lambda_.exceptions.ResourceNotFoundException:
            return {}
        destination = config.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        return {"DestinationConfig": {"OnFailure": {"Destination": destination}}} if destination else {}

    def queues(self):
        sqs = self.stack.client("sqs")
        for logical, url in self.stack.of_type("AWS::SQS::Queue").items():
            attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
            properties = {
                "MessageRetentionPeriod": attributes["MessageRetentionPeriod"],
                "VisibilityTimeout": attributes["VisibilityTimeout"],
            }
            if "RedrivePolicy" in attributes:
                properties["RedrivePolicy"] = json.loads(attributes["RedrivePolicy"])
            check(attributes.get("SqsManagedSseEnabled") == "true", f"{logical} is not encrypted")
            yield logical, {"Type": "AWS::SQS::Queue", "Properties": self.logical(properties)}

    def roles(self):
        iam = self.stack.client("iam")
        for logical, role in self.stack.of_type("AWS::IAM::Role").items():
            names = iam.list_role_policies(RoleName=role)["PolicyNames"]
            policies = [iam.get_role_policy(RoleName=role, PolicyName=name)["PolicyDocument"] for name in names]
            documents = [{"PolicyDocument": policy} for policy in policies]
            yield logical, {"Type": "AWS::IAM::Role", "Properties": {"Policies": self.logical(documents)}}

    def bucket(self):
        s3 = self.stack.client("s3")
        for logical, bucket in self.stack.of_type("AWS::S3::Bucket").items():
            self.check_bucket(s3, bucket)
            told = s3.get_bucket_notification_configuration(Bucket=bucket)
            configurations = []
            for one in told.get("LambdaFunctionConfigurations", []):
                rules = one["Filter"]["Key"]["FilterRules"]
                lower = [{"Name": rule["Name"].lower(), "Value": rule["Value"]} for rule in rules]
                configurations.append({"Function": one["LambdaFunctionArn"], "Filter": {"S3Key": {"Rules": lower}}})
            notification = {"LambdaConfigurations": configurations}
            properties = self.logical({"NotificationConfiguration": notification})
            yield logical, {"Type": "AWS::S3::Bucket", "Properties": {"BucketName": bucket, **properties}}

    @staticmethod
    def check_bucket(s3, bucket):
        check(s3.get_bucket_versioning(Bucket=bucket).get("Status") == "Enabled", "the bucket keeps no versions")
        block = s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"]
        check(all(block.values()), "the bucket is not private")
        s3.get_bucket_encryption(Bucket=bucket)
        policy = json.loads(s3.get_bucket_policy(Bucket=bucket)["Policy"])
        tls = [one["Condition"]["Bool"]["aws:SecureTransport"] for one in policy["Statement"] if one["Effect"] == "Deny"]
        check([str(one).lower() for one in tls] == ["false"], "the bucket takes requests without TLS")
        rules = s3.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
        check(any("AbortIncompleteMultipartUpload" in rule for rule in rules), "unfinished uploads stay for ever")

    def stage(self):
        api = self.stack.client("apigatewayv2")
        [api_id] = self.stack.of_type("AWS::ApiGatewayV2::Api").values()
        routes = api.get_routes(ApiId=api_id)["Items"]
        open_ = [one["RouteKey"] for one in routes if one.get("AuthorizationType", "NONE") == "NONE"]
        check(not open_, f"open to everybody: {open_}")
        say(f"routes: {', '.join(sorted(one['RouteKey'] for one in routes))}")
        yield "HttpApiStage", {"Type": "AWS::ApiGatewayV2::Stage", "Properties": {}}


def compare(stack):
    """Repeats the checks of the template on what is deployed."""
    for table in stack.of_type("AWS::DynamoDB::Table").values():
        state = stack.client("dynamodb").describe_time_to_live(TableName=table)["TimeToLiveDescription"]
        check(state.get("AttributeName") == "expires_at", f"{table} does not expire its items")
    path = ROOT / "target" / "deployed" / "template.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(Reading(stack).template(), indent=1))
    run([program("dev"), "check-template", path])


def program(name):
    target = os.environ.get("CARGO_TARGET_DIR", ROOT / "target")
    return Path(target) / "debug" / name


# --- A file -----------------------------------------------------------------------------------------------------------


def api(stack, method, path, body=None):
    """A request to the deployed API, signed as its callers do."""
    from botocore.auth import SigV4Auth
    from botocore.awsrequest import AWSRequest

    # The stand-in's own way to an API: the name that it gives one, on an address, is no name of a host.
    [api_id] = stack.of_type("AWS::ApiGatewayV2::Api").values()
    url = f"{stack.endpoint}/_aws/execute-api/{api_id}/$default{path}"
    data = None if body is None else json.dumps(body).encode()
    request = AWSRequest(method, url, data=data, headers={"Content-Type": "application/json"})
    SigV4Auth(stack.session.get_credentials(), "execute-api", stack.region).add_auth(request)
    sent = urllib.request.Request(url, data, dict(request.headers), method=method)
    try:
        with urllib.request.urlopen(sent, timeout=60) as answer:
            return json.loads(answer.read())
    except urllib.error.HTTPError as error:
        raise Failure(f"{method} {path} was answered with {error.code}: {error.read().decode()[:500]}") from error


def upload(form, name, content):
    """Sends a file with the form that came with the announcement."""
    edge = uuid.uuid4().hex
    fields = "".join(
        f'--{edge}\r\nContent-Disposition: form-data; name="{key}"\r\n\r\n{value}\r\n' for key, value in form["fields"].items()
    )
    file = f'--{edge}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    body = fields.encode() + file.encode() + content + f"\r\n--{edge}--\r\n".encode()
    headers = {"Content-Type": f"multipart/form-data; boundary={edge}"}
    urllib.request.urlopen(urllib.request.Request(form["url"], body, headers), timeout=60).close()


def import_file(stack):
    content = SAMPLE.read_bytes()
    manifest = {"name": "deployed", "files": [{"name": SAMPLE.name, "size_bytes": len(content)}]}
    announced = api(stack, "POST", f"/projects/{uuid.uuid4()}/searches", manifest)
    say(f"announced search {announced['search_id']}")
    upload(announced["files"][0]["upload"], SAMPLE.name, content)
    give_up = time.monotonic() + END_SECONDS
    while True:
        search = api(stack, "GET", f"/searches/{announced['search_id']}")
        if search["state"].lower() in ("completed", "error"):
            return announced["search_id"], search
        check(time.monotonic() < give_up, f"the search has not ended after {END_SECONDS} s: {search}")
        time.sleep(0.5)


def studies(stack, search_id):
    """The studies of a search, as MongoDB holds them."""
    command = [program("search-import"), "studies", search_id, "--backend", "aws", "--json"]
    environment = {**stack.environment(), "MONGODB_URI": setting("MONGODB_URI"), "MONGODB_DATABASE": stack.database}
    return [json.loads(line) for line in run(command, env=environment, stdout=subprocess.PIPE).stdout.splitlines()]


def tell(stack):
    """Where a search got stuck: what waits in the queues, and what the functions logged."""
    sqs, logs = stack.client("sqs"), stack.client("logs")
    for logical, url in stack.of_type("AWS::SQS::Queue").items():
        attributes = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
        waiting, hidden = "ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"
        say(f"{logical}: {attributes.get(waiting)} waiting, {attributes.get(hidden)} being worked on")
    for group in stack.of_type("AWS::Logs::LogGroup").values():
        for event in logs.filter_log_events(logGroupName=group, limit=1000)["events"][-20:]:
            say(f"{group}: {event['message'].rstrip()}")


def main():
    began = time.monotonic()
    stack = Stack()
    try:
        stack.deploy()
        for fill in GAPS:
            say(f"filled: {fill.__doc__} ({', '.join(fill(stack)) or 'it was applied this time'})")
        compare(stack)
        search_id, search = import_file(stack)
        check(search["state"].lower() == "completed", f"the search failed: {search}")
        stored = studies(stack, search_id)
        check(len(stored) > 0, "MongoDB holds no studies of it")
        check(len(stored) == search["studies"], f"MongoDB holds {len(stored)} studies, and the API says {search}")
        say(f"{SAMPLE.name}: {len(stored)} studies in MongoDB")
    except Failure:
        tell(stack)
        raise
    finally:
        stack.remove()
    say(f"deployed, compared and used in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        print(f"deployment: {failure}", file=sys.stderr)
        sys.exit(1)
