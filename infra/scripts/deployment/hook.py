"""The test of a new version, which CodeDeploy invokes.

The substitute has no CodeDeploy, so this module invokes the function in the same way, with the versions that
the substitute has published.
"""

import os
from collections.abc import Mapping
from typing import Any
from unittest import mock

from scripts.deployment import inline
from scripts.deployment.stack import Stack
from scripts.errors import check
from scripts.paths import ROOT

TEMPLATE = ROOT / "template.yaml"
NAMES = ("StartUpload", "NotifyUpload", "RunSaga", "ParseReferences", "DispatchOutbox", "ReportFaults")


class CodeDeploy:
    """A stand-in for CodeDeploy that records the reports of the function."""

    def __init__(self, name: str) -> None:
        self.group = f"reviews-{name}DeploymentGroup-0A1B"
        self.status = ""

    def get_deployment(self, **_: Any) -> Any:
        return {"deploymentInfo": {"deploymentGroupName": self.group}}

    def put_lifecycle_event_hook_execution_status(self, **given: str) -> None:
        self.status = given["status"]


def load(clients: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the definitions of the function, with these clients of AWS services."""
    boto3 = mock.Mock(client=lambda service, **_: clients[service])
    return inline.load(TEMPLATE, {"boto3": boto3, "botocore": mock.Mock(), "botocore.config": mock.Mock()})


def run(name: str, version: str, lambda_: Any) -> str:
    """Returns the status that the test reports for a version of a function."""
    codedeploy = CodeDeploy(name)
    handler = load({"codedeploy": codedeploy, "lambda": lambda_})["handler"]
    event = {"DeploymentId": "d-1", "LifecycleEventHookExecutionId": "hook"}
    with mock.patch.dict(os.environ, {name: version}):
        handler(event, None)
    return codedeploy.status


def statuses(stack: Stack) -> dict[str, str]:
    """Returns the status of the version behind the alias of each function."""
    lambda_ = stack.client("lambda")
    return {name: run(name, f"{stack.resources[name].physical}:live", lambda_) for name in NAMES}


def check_works(stack: Stack) -> None:
    failed = [name for name, status in statuses(stack).items() if status != "Succeeded"]
    check(not failed, f"the test of a new version fails for {failed}")
