#!/usr/bin/env python3
"""Deploys the stacks of an application, without questions.

    tools.py run sam -- python infra/deploy.py STACK [NAME=VALUE ...]
        [--review] [--part PART]... [--drop NAME]... [--patience SECONDS]

STACK is the name of the application's stack. Its parameters are in config/STACK.toml, and those of the
command line replace them. MONGODB in the environment (or of `make`) is the address of MongoDB: the ARN of a
secret, or a connection string without user and password. Each deployment sends a value for every parameter,
so new defaults arrive and removed values are cleared. Unknown names, invalid values, and what AWS would
reject late are refused before anything is uploaded.

The parts are application and monitoring, which are deployed by default, and sign-in and page. The page is
deployed in us-east-1, the others in the region of the environment. With --review, change sets are created
and shown, and not executed. --drop allows the loss of a value of a parameter that no longer exists. The first
deployment of the monitoring waits for the first metrics, at most ten minutes or --patience.
"""

import argparse
import hashlib
import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from scripts import aws, commands, console, environments, parameters, preflight, region, stamp
from scripts.console import say
from scripts.errors import Failure, check
from scripts.paths import ROOT
from scripts.preflight import Deployed

BUILT = ROOT / ".aws-sam" / "build" / "template.yaml"
TEMPLATES = ROOT / "infra" / "templates"
# CloudFront requires its certificate, its web ACL and its log deliveries there.
REGION_OF_PAGES = "us-east-1"
# The share of the account's concurrent executions that causes an alarm.
ALARM_SHARE = 0.8
# The alarms on these metrics fire if data is missing.
FIRST_METRICS = (("OutboxAge", "dispatch-outbox"), ("OpenFailures", "report-faults"))


@dataclass(frozen=True)
class Part:
    """A template and its stack."""

    template: Path
    # The name of the stack, for an application and its region.
    stack: Callable[[str, str], str]
    capabilities: tuple[str, ...] = ()
    region: str | None = None


PARTS = {
    "application": Part(ROOT / "template.yaml", lambda stack, _: stack, ("CAPABILITY_IAM",)),
    "monitoring": Part(TEMPLATES / "monitoring.yaml", lambda stack, _: f"{stack}-monitoring"),
    "sign-in": Part(TEMPLATES / "sign-in.yaml", lambda stack, _: f"{stack}-sign-in", ("CAPABILITY_IAM",)),
    # The name of the stack contains the region, because the pages of all regions are in the same region.
    "page": Part(
        TEMPLATES / "page.yaml", lambda stack, region: f"{stack}-page-{region}", (), REGION_OF_PAGES
    ),
}
DEFAULT_PARTS = ("application", "monitoring")


@dataclass(frozen=True)
class Account:
    """The AWS account and region of a deployment."""

    region: str
    # Returns a client of boto3 for a service and a region.
    client: Callable[[str, str], Any]
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    # More options of `sam deploy`.
    options: tuple[str, ...] = ("--resolve-s3",)

    def clients(self, region: str | None = None) -> preflight.Clients:
        return lambda service: self.client(service, region or self.region)


@dataclass(frozen=True)
class Request:
    """The command line."""

    stack: str
    given: Mapping[str, str]
    parts: Sequence[str] = DEFAULT_PARTS
    is_review: bool = False
    dropped: Sequence[str] = ()
    # The seconds to wait for the first metrics, before alarms fire without them.
    patience: float = 600
    # Templates that replace the templates of the parts. The template of the application has the code of its
    # functions.
    templates: Mapping[str, Path] = field(default_factory=lambda: {"application": BUILT})


def known() -> dict[str, parameters.Parameters]:
    """Returns the parameters of each part."""
    return {name: parameters.declared(part.template) for name, part in PARTS.items()}


def check_given(given: Mapping[str, str]) -> None:
    """Refuses unknown names and values that CloudFormation rejects."""
    of_parts = known()
    environments.check_names(given, {name for part in of_parts.values() for name in part})
    for part in of_parts.values():
        for name, value in given.items():
            fault = part[name].fault(value) if name in part else None
            check(fault is None, str(fault))


def check_built(given: Mapping[str, str]) -> None:
    """Refuses functions and a template that were built from other sources, or for another processor."""
    fault = stamp.fault(given.get("Architecture") or str(known()["application"]["Architecture"].default))
    check(fault is None, str(fault))


def release(*parts: Mapping[str, str]) -> str:
    """Returns a name for the release, which changes with each value."""
    content = json.dumps([sorted(part.items()) for part in parts])
    return hashlib.sha256(content.encode()).hexdigest()[:10]


def of_application(request: Request, account: Account, application: Deployed) -> dict[str, str]:
    """Returns the values that other parts receive from the application."""
    outputs = {"ApiId": application.outputs["ApiId"]} if "ApiId" in application.outputs else {}
    return {"Application": request.stack, "ApplicationRegion": account.region, **outputs}


def changes(before: Mapping[str, str], values: Mapping[str, str]) -> list[str]:
    """Returns the changed values, one per line. New parameters do not count."""
    pairs = ((name, before[name], value) for name, value in values.items() if name in before)
    return [f"{name}: {old!r} becomes {new!r}" for name, old, new in pairs if old != new]


def command(name: str, region: str, values: Path, request: Request) -> list[str]:
    part = PARTS[name]
    template = request.templates.get(name, part.template)
    stack = part.stack(request.stack, region)
    executed = ["--no-execute-changeset"] if request.is_review else ["--no-confirm-changeset"]
    return [
        *("sam", "deploy", "--stack-name", stack, "--template-file", str(template)),
        *("--config-file", str(ROOT / "samconfig.toml"), "--region", part.region or region),
        *("--capabilities", *(part.capabilities or ("CAPABILITY_AUTO_EXPAND",))),
        # A stack whose first creation fails could only be deleted, and would block its name.
        *("--on-failure", "DELETE", "--no-fail-on-empty-changeset", *executed),
        *("--tags", "application=search-import", f"stack={request.stack}", f"part={name}"),
        *("--parameter-overrides", f"file://{values}"),
    ]


def deploy_part(
    name: str, request: Request, account: Account, values: Mapping[str, str], before: Deployed
) -> None:
    part = PARTS[name]
    for line in changes(before.parameters, values):
        say(f"{name}: {line}")
    with tempfile.TemporaryDirectory() as folder:
        # JSON is YAML, in which a value may contain any character.
        file = Path(folder) / "parameters.yaml"
        file.write_text(json.dumps(values), "utf-8")
        run = command(name, account.region, file, request)
        say(f"deploying {part.stack(request.stack, account.region)}")
        commands.openly([*run, *account.options], {**account.environment, "SAM_CLI_TELEMETRY": "0"})


def values_of(name: str, request: Request, account: Account, before: Deployed) -> dict[str, str]:
    """Returns a value for every parameter of a part."""
    declared = known()[name]
    if name == "application":
        environments.check_values(request.given)
        values = parameters.all_values(declared, request.given)
        clients = account.clients()
        version = preflight.check_application(clients, request.stack, values, before, request.dropped)
        named = {"Release": release({**values, "Release": ""}, {"secret": version})}
        return {**values, **named, **{key: request.given[key] for key in named if key in request.given}}
    application = preflight.deployed(account.clients(), request.stack)
    check(
        name != "page" or "ApiId" in application.outputs,
        f"{request.stack} has no HTTP API: deploy the application first",
    )
    most = ALARM_SHARE * preflight.concurrency(account.clients())
    of_account = {"ConcurrencyAlarmExecutions": str(max(1, round(most)))}
    own = of_application(request, account, application)
    return parameters.all_values(declared, {**of_account, **request.given, **own})


def deploy(request: Request, account: Account) -> None:
    check_given(request.given)
    for name in request.parts:
        part = PARTS[name]
        stack = part.stack(request.stack, account.region)
        before = preflight.deployed(account.clients(part.region), stack)
        if name == "monitoring" and not before.exists and not request.is_review:
            await_metrics(account.clients(), request.stack, request.patience)
        deploy_part(name, request, account, values_of(name, request, account, before), before)


def await_metrics(clients: preflight.Clients, stack: str, patience: float) -> None:
    """Waits until both schedules have run once, so that their alarms do not fire at their creation."""
    give_up = time.monotonic() + patience
    while missing := [metric for metric, of in FIRST_METRICS if not reported(clients, stack, metric, of)]:
        if time.monotonic() >= give_up:
            say(f"no function has reported {', '.join(missing)} yet: expect alarms")
            return
        time.sleep(10)


def reported(clients: preflight.Clients, stack: str, metric: str, function: str) -> bool:
    now = datetime.now(UTC)
    found = clients("cloudwatch").get_metric_statistics(
        Namespace="SearchImport",
        MetricName=metric,
        Dimensions=[{"Name": "FunctionName", "Value": f"{stack}-{function}"}],
        StartTime=now - timedelta(minutes=10),
        EndTime=now,
        Period=60,
        Statistics=["SampleCount"],
    )
    return bool(found["Datapoints"])


def own_account() -> Account:
    try:
        import boto3  # noqa: PLC0415 - only the Python of sam has it
    except ImportError:
        raise Failure("run this with the Python of sam: `make deploy STACK=…`") from None
    with aws.reported("opening a session of AWS"):
        session = boto3.Session(region_name=region.selected())
    check(bool(session.region_name), "no region is set: export AWS_REGION")
    return Account(session.region_name, lambda service, name: session.client(service, region_name=name))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser("deploy.py", usage=__doc__)
    parser.add_argument("stack")
    parser.add_argument("--review", action="store_true")
    parser.add_argument("--part", action="append", choices=[*PARTS])
    parser.add_argument("--drop", action="append", default=[])
    parser.add_argument("--patience", type=float, default=Request.patience)
    parser.add_argument("parameters", nargs="*")
    asked = parser.parse_intermixed_args(arguments)
    given = {
        **environments.read(asked.stack),
        **environments.of_mongodb(os.environ.get("MONGODB", "")),
        # The arguments of `make`, which no shell may interpret.
        **environments.pairs(os.environ.get("PARAMETERS", "").split()),
        **environments.pairs(asked.parameters),
    }
    parts = asked.part or DEFAULT_PARTS
    if "application" in parts:
        check_built(given)
    account = own_account()
    with aws.reported(f"deploying {asked.stack}"):
        deploy(Request(asked.stack, given, parts, asked.review, asked.drop, asked.patience), account)
    return 0


if __name__ == "__main__":
    console.start("deploy", main)
