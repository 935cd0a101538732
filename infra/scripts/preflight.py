"""Checks that AWS would make only in the middle of a deployment, or not at all."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

from scripts.errors import Failure, check
from scripts.migration import check_retired

# Returns a client of boto3 for the name of a service, in the region of the stack.
Clients = Callable[[str], Any]
# Concurrent executions that Lambda keeps for functions without a reservation
# (https://docs.aws.amazon.com/lambda/latest/dg/configuration-concurrency.html).
UNRESERVED = 100


@dataclass(frozen=True)
class Deployed:
    """A stack before a deployment."""

    status: str
    parameters: Mapping[str, str]
    outputs: Mapping[str, str]

    @property
    def exists(self) -> bool:
        return bool(self.status)


def deployed(clients: Clients, stack: str) -> Deployed:
    client = clients("cloudformation")
    try:
        [found] = client.describe_stacks(StackName=stack)["Stacks"]
    except client.exceptions.ClientError as error:
        if "does not exist" in str(error):
            return Deployed("", {}, {})
        raise
    # A stack that only has a change set was never created.
    if found["StackStatus"] == "REVIEW_IN_PROGRESS":
        return Deployed("", {}, {})
    parameters = {one["ParameterKey"]: one["ParameterValue"] for one in found.get("Parameters", [])}
    outputs = {one["OutputKey"]: one["OutputValue"] for one in found.get("Outputs", [])}
    return Deployed(found["StackStatus"], parameters, outputs)


def check_application(
    clients: Clients, stack: str, values: Mapping[str, str], before: Deployed, dropped: Collection[str]
) -> str:
    """Checks the account for a deployment of the application. Returns the version of the secret, if any."""
    check_retired(before.parameters, dropped)
    # A part of the reserved executions is already reserved by this stack.
    check_concurrency(clients, int(values["ApiConcurrency"]), int(before.parameters.get("ApiConcurrency", 0)))
    if values["EventBusName"]:
        check_bus(clients, values["EventBusName"])
    if not before.exists:
        check(
            values["ProtectTables"] != "true",
            "ProtectTables is for a stack that exists: a failed creation could not delete protected tables",
        )
        check_bucket(clients, stack)
    return secret_version(clients, values["MongoSecretArn"])


def concurrency(clients: Clients) -> int:
    """Returns the maximum number of concurrent executions of the account."""
    return int(clients("lambda").get_account_settings()["AccountLimit"]["ConcurrentExecutions"])


def check_concurrency(clients: Clients, reserved: int, reserved_before: int) -> None:
    limits = clients("lambda").get_account_settings()["AccountLimit"]
    limit = int(limits["ConcurrentExecutions"])
    free = int(limits.get("UnreservedConcurrentExecutions", limit)) + reserved_before
    check(
        reserved <= reserved_before or reserved + UNRESERVED <= free,
        f"ApiConcurrency reserves {reserved} of the {limit} concurrent executions of the account, other "
        f"functions reserve {limit - free}, and Lambda keeps {UNRESERVED} unreserved: set 0, or raise the "
        "limit of the account",
    )


def check_bus(clients: Clients, name: str) -> None:
    client = clients("events")
    try:
        client.describe_event_bus(Name=name)
    except client.exceptions.ResourceNotFoundException:
        raise Failure(f"the event bus {name} does not exist in this account and region") from None


def check_bucket(clients: Clients, stack: str) -> None:
    """Checks for the bucket of an earlier stack of this name."""
    account = clients("sts").get_caller_identity()["Account"]
    s3 = clients("s3")
    name = f"{stack}-uploads-{account}-{s3.meta.region_name}"
    try:
        s3.head_bucket(Bucket=name)
    except s3.exceptions.ClientError as error:
        code = error.response["Error"]["Code"]
        if code in ("404", "NoSuchBucket"):
            return
        # A bucket of another account (403) or region (301) exists. Other errors say nothing about the bucket.
        if code not in ("301", "403"):
            raise
    raise Failure(f"the bucket {name} exists already: see docs/teardown.md, section Reusing the name")


def secret_version(clients: Clients, arn: str) -> str:
    if not arn:
        return ""
    client = clients("secretsmanager")
    try:
        found = client.describe_secret(SecretId=arn)
    except client.exceptions.ResourceNotFoundException:
        raise Failure(f"the secret {arn} does not exist in this region") from None
    versions = found.get("VersionIdsToStages", {})
    return next((version for version, stages in versions.items() if "AWSCURRENT" in stages), "")
