"""Imports a file through the deployment: announces it over HTTP, uploads it with its form, and waits."""

import json
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from scripts import forms
from scripts.deployment.progress import say
from scripts.deployment.stack import Json, Stack
from scripts.errors import Failure, check

# The maximum duration of a search.
END_SECONDS = 60
ENDED = ("completed", "error")
TIMEOUT_SECONDS = 60


def call(stack: Stack, method: str, path: str, body: Json | str | None = None) -> Any:
    """Sends a signed request to the deployed API."""
    from botocore.auth import SigV4Auth  # noqa: PLC0415 - only the Python of sam has it
    from botocore.awsrequest import AWSRequest  # noqa: PLC0415

    # The substitute's path of an API, because the returned host name cannot be resolved.
    [api_id] = stack.of_type("AWS::ApiGatewayV2::Api").values()
    url = f"{stack.endpoint}/_aws/execute-api/{api_id}/$default{path}"
    data = None if body is None else json.dumps(body).encode()
    request = AWSRequest(method, url, data=data, headers={"Content-Type": "application/json"})
    SigV4Auth(stack.session.get_credentials(), "execute-api", stack.region).add_auth(request)
    sent = urllib.request.Request(url, data, dict(request.headers), method=method)
    try:
        with urllib.request.urlopen(sent, timeout=TIMEOUT_SECONDS) as answer:
            text = answer.read()
            return json.loads(text) if text else None
    except urllib.error.HTTPError as error:
        text = error.read().decode(errors="replace")[:500]
        raise Failure(f"{method} {path} was answered with {error.code}: {text}") from error


def announce(stack: Stack, name: str, files: list[Json], project: uuid.UUID | None = None) -> Json:
    """Announces a search with these files, in a new project unless one is given."""
    announced: Json = call(
        stack, "POST", f"/projects/{project or uuid.uuid4()}/searches", {"name": name, "files": files}
    )
    say(f"announced search {announced['search_id']}")
    return announced


def create_review(stack: Stack) -> uuid.UUID:
    """Creates a review, which the list of reviews then contains."""
    created = call(stack, "POST", "/projects", {"name": f"deployed {uuid.uuid4()}"})["project_id"]
    listed = [one["project_id"] for one in call(stack, "GET", "/projects")["items"]]
    check(created in listed, f"review {created} is not in {listed}")
    return uuid.UUID(created)


def import_file(stack: Stack, file: Path, meanwhile: Callable[[], None] = lambda: None) -> tuple[str, Json]:
    """Imports a file into a new review, and exports the review.

    Calls `meanwhile` once the file is uploaded. Returns the id of the search, and its view after its end.
    """
    content = file.read_bytes()
    project = create_review(stack)
    announced = announce(stack, "deployed", [{"name": file.name, "size_bytes": len(content)}], project)
    search_id = announced["search_id"]
    forms.upload(announced["files"][0]["upload"], file.name, content)
    meanwhile()
    give_up = time.monotonic() + END_SECONDS
    while True:
        search = call(stack, "GET", f"/projects/{project}/searches/{search_id}")
        if search["state"].lower() in ENDED:
            call(stack, "POST", f"/projects/{project}/exports", {"format": "ris"})
            return search_id, search
        check(time.monotonic() < give_up, f"the search has not ended after {END_SECONDS} s: {search}")
        time.sleep(0.5)
