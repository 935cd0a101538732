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
# A resource as a template has it, or a part of one.
Json = dict[str, Any]


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
    """Returns AWS settings that select only the stand-in, because the caller's profile selects real AWS."""
    return {
        **{name: value for name, value in given.items() if not name.startswith("AWS_")},
        "AWS_ENDPOINT_URL": endpoint,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": region,
        "SAM_CLI_TELEMETRY": "0",
    }


def by_logical_id(summaries: Iterable[Json]) -> dict[str, Resource]:
    return {
        one["LogicalResourceId"]: Resource(one["ResourceType"], one["PhysicalResourceId"])
        for one in summaries
    }


class Stack:
    """A new stack on the stand-in."""

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
        self.parameters = {"Architecture": "x86_64"}
        # Without this option, `sam deploy` uses the output of `sam build`.
        self.template: list[str] = []
        self.resources: dict[str, Resource] = {}

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
            self.sam("build", *self.overrides())
        else:
            template = built.arrange(ROOT / "target" / "deployed")
            # SAM looks for its settings in the folder of the template.
            config = ROOT / "samconfig.toml"
            self.template = ["--template-file", str(template), "--config-file", str(config)]

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

    def overrides(self) -> list[str]:
        return deploy.given(self.parameters)

    def update(self) -> None:
        """Deploys the build with the current parameters."""
        place = ["--stack-name", self.name, "--s3-bucket", self.code, "--no-resolve-s3"]
        unasked = ["--no-confirm-changeset", "--capabilities", "CAPABILITY_IAM"]
        self.sam("deploy", *self.template, *place, *unasked, *self.overrides())
        self.resources = self.read_resources()

    def read_resources(self) -> dict[str, Resource]:
        pages = (
            self.client("cloudformation").get_paginator("list_stack_resources").paginate(StackName=self.name)
        )
        return by_logical_id(one for page in pages for one in page["StackResourceSummaries"])

    def of_type(self, kind: str) -> dict[str, str]:
        """Returns physical ids by logical ids."""
        return {logical: one.physical for logical, one in self.resources.items() if one.kind == kind}

    def remove(self) -> None:
        # The stand-in ends the processes of a function that is deleted individually, but not with its stack.
        for function in self.of_type("AWS::Lambda::Function").values():
            self.client("lambda").delete_function(FunctionName=function)
        self.delete()

    def delete(self) -> None:
        client = self.client("cloudformation")
        client.delete_stack(StackName=self.name)
        client.get_waiter("stack_delete_complete").wait(StackName=self.name, WaiterConfig={"Delay": 1})
