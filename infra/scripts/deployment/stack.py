"""A stack on the substitute: its creation, its updates and its deletion."""

import json
import os
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import deploy
from scripts import commands
from scripts.deployment import built
from scripts.deployment.progress import say
from scripts.errors import Failure
from scripts.paths import ROOT

# A client of boto3, which creates its methods at run time and has no types.
Client = Any
# A resource of a template, or a part of one.
Json = dict[str, Any]
# The folder of the templates that are deployed to the substitute.
FOLDER = ROOT / "target" / "deployed"


@dataclass(frozen=True)
class Resource:
    kind: str
    physical: str


def setting(name: str, given: Mapping[str, str] = os.environ) -> str:
    value = given.get(name)
    if not value:
        raise Failure(f"{name} is not set: run `make test-deploy`")
    return value


def environment(given: Mapping[str, str], endpoint: str, region: str) -> dict[str, str]:
    """Returns AWS settings that select only the substitute, because the caller's profile selects real AWS."""
    return {
        **{name: value for name, value in given.items() if not name.startswith("AWS_")},
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": region,
        "SAM_CLI_TELEMETRY": "0",
        # Seconds between two requests for a change set or for events. The default 5 respects limits of AWS.
        "SAM_CLI_POLL_DELAY": "0.5",
    }


def by_logical_id(summaries: Iterable[Json]) -> dict[str, Resource]:
    return {
        one["LogicalResourceId"]: Resource(one["ResourceType"], one["PhysicalResourceId"])
        for one in summaries
    }


class Stack:
    """A new stack on the substitute."""

    def __init__(self) -> None:
        try:
            import boto3  # noqa: PLC0415 - only the Python of sam has it
        except ImportError:
            raise Failure("run this with the Python of sam: `make test-deploy`") from None
        self.endpoint = setting("AWS_ENDPOINT_URL_SQS")
        self.region = os.environ.get("AWS_REGION", "us-east-1")
        self.name = f"si-{uuid.uuid4().hex[:8]}"
        self.database = f"{self.name}-database"
        self.session: Any = boto3.Session("test", "test", region_name=self.region)
        # Without a reservation, the throttle of the API would allow more connections than the database has.
        self.parameters = {"Architecture": "x86_64", "ApiConcurrency": "20"}
        self.templates = {"application": deploy.BUILT}
        self.resources: dict[str, Resource] = {}
        self.buckets_of_page: list[str] = []

    def client(self, service: str) -> Client:
        return self.session.client(service, endpoint_url=self.endpoint)

    def environment(self) -> dict[str, str]:
        return environment(os.environ, self.endpoint, self.region)

    def sam(self, *arguments: str) -> None:
        say(f"sam {' '.join(arguments[:2])}")
        commands.openly(["sam", *arguments], self.environment())

    def prepare(self) -> None:
        secret = self.client("secretsmanager").create_secret(
            Name=f"{self.name}-mongodb", SecretString=json.dumps({"uri": setting("MONGODB_URI")})
        )
        self.parameters["MongoSecretArn"] = secret["ARN"]
        self.parameters["MongoDatabase"] = self.database
        self.client("s3").create_bucket(Bucket=self.code)
        self.sam("validate", "--lint")
        if os.environ.get("FUNCTIONS") == "sam":
            self.sam("build", "--parameter-overrides", "Architecture=x86_64")
        else:
            self.templates["application"] = built.arrange(FOLDER)
        self.templates["page"] = built.arrange_page(FOLDER)

    def status(self) -> str:
        """Returns CloudFormation's description of the stack, which is empty if the stack does not exist."""
        client = self.client("cloudformation")
        try:
            [found] = client.describe_stacks(StackName=self.name)["Stacks"]
        except client.exceptions.ClientError:
            return ""
        return str(found["StackStatus"])

    @property
    def code(self) -> str:
        """Returns the bucket of the programs."""
        return f"{self.name}-code"

    @property
    def account(self) -> deploy.Account:
        return deploy.Account(
            self.region,
            lambda service, region: self.session.client(
                service, endpoint_url=self.endpoint, region_name=region
            ),
            self.environment(),
            ("--s3-bucket", self.code, "--no-resolve-s3"),
        )

    def deploy(self, *parts: str, given: Mapping[str, str] | None = None, is_review: bool = False) -> None:
        """Deploys parts as `make deploy` does, with the current parameters or others."""
        values = self.parameters if given is None else given
        # The substitute has no metrics that the deployment could wait for.
        request = deploy.Request(self.name, values, parts, is_review, patience=0, templates=self.templates)
        deploy.deploy(request, self.account)

    def update(self) -> None:
        """Deploys the application and its monitoring with the current parameters."""
        self.deploy(*deploy.DEFAULT_PARTS)
        self.resources = self.read_resources(self.name)

    def deploy_page(self) -> None:
        self.deploy("page")
        resources = self.read_resources(self.stack_of("page")).values()
        self.buckets_of_page = [one.physical for one in resources if one.kind == "AWS::S3::Bucket"]

    def stack_of(self, part: str) -> str:
        return deploy.PARTS[part].stack(self.name, self.region)

    def read_resources(self, name: str) -> dict[str, Resource]:
        pages = self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=name)
        return by_logical_id(one for page in pages for one in page["StackResourceSummaries"])

    def of_type(self, kind: str) -> dict[str, str]:
        """Returns physical ids by logical ids."""
        return {logical: one.physical for logical, one in self.resources.items() if one.kind == kind}

    def remove(self) -> None:
        # The substitute ends the processes of a function that is deleted alone, but not with its stack.
        for function in self.of_type("AWS::Lambda::Function").values():
            self.client("lambda").delete_function(FunctionName=function)
        self.delete()

    def delete(self) -> None:
        client = self.client("cloudformation")
        # The application is deleted last, because the other stacks import its outputs.
        for part in reversed(deploy.PARTS):
            name = self.stack_of(part)
            client.delete_stack(StackName=name)
            client.get_waiter("stack_delete_complete").wait(StackName=name, WaiterConfig={"Delay": 1})
