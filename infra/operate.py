#!/usr/bin/env python3
"""Operates a stack from outside its VPC: a request below /admin, by invoking start-upload itself.

    tools.py run sam -- python infra/operate.py STACK METHOD PATH [JSON]
    tools.py run sam -- python infra/operate.py STACK after-restore [--ledger-alone] [--dry-run]
    tools.py run sam -- python infra/operate.py STACK settings

    … search-import-prod GET /admin/failures/groups
    … search-import-prod POST /admin/retries '{"cause": "2e42", "canary": 1}'

The function handles the request like one of the HTTP API, and its role has access to the database. No
endpoint is exposed: the permission to invoke the alias `live` of the function (`lambda:InvokeFunction`) is
required. The audit log names the ARN of the AWS identity of this session. CloudTrail, which callers cannot
influence, also has it if data events of the function are enabled. Exits with 1 if the response is an error,
and for after-restore if a search has to be retried.

`settings` prints the settings of the stack's functions for `search-import`, as commands of a shell. They
contain the password of the database if the stack was deployed with MongoUri instead of a secret.
"""

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import quote

from scripts import aws, console, region
from scripts.errors import Failure, check

METHODS = ("GET", "POST", "DELETE")
# The page size of lists of searches, which is the maximum of the API.
PAGE = 200
NOT_FOUND = 404
# The alias of the version that the API serves. The latest version may still be tested by its deployment.
ALIAS = "live"
# The functions of a stack. If two functions have different values of a setting, the value of the first one
# applies.
FUNCTIONS = (
    "start-upload",
    "run-saga",
    "parse-references",
    "dispatch-outbox",
    "report-faults",
    "notify-upload",
)
SETTINGS = ("SEARCH_IMPORT_", "MONGODB_")
# Searches in these states have not ended.
OPEN_STATES = "Uploading,Uploaded,Parsing"


def request(
    method: str, path: str, content: str | None, identity: Mapping[str, str], parameters: Mapping[str, str]
) -> dict[str, Any]:
    """Returns the event of a request, like API Gateway (payload format 2.0)."""
    check(method in METHODS, f"{method} is none of {', '.join(METHODS)}")
    check(path.startswith("/"), f"a path begins with a slash, and {path!r} does not")
    if content is not None:
        check_json(content)
    bare, _, query = path.partition("?")
    sender = {"sourceIp": "127.0.0.1", "userAgent": "operate"}
    http = {"method": method, "path": bare, "protocol": "HTTP/1.1", **sender}
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": bare,
        "rawQueryString": query,
        "headers": {"content-type": "application/json"},
        "requestContext": {
            "accountId": identity["Account"],
            "authorizer": authorizer(identity, parameters),
            "http": http,
            "requestId": "invoked",
            "routeKey": "$default",
            "stage": "$default",
            "time": "01/Jan/1970:00:00:00 +0000",
            "timeEpoch": 0,
        },
        "isBase64Encoded": False,
    }
    return event if content is None else {**event, "body": content}


def check_json(content: str) -> None:
    try:
        json.loads(content)
    except ValueError as error:
        raise Failure(f"the content is not JSON: {error}") from None


def authorizer(identity: Mapping[str, str], parameters: Mapping[str, str]) -> dict[str, Any]:
    """Returns the caller's identity in the form of the API's authorizer."""
    if parameters.get("JwtIssuer"):
        claims = {"sub": identity["Arn"], "scope": f"{parameters['ScopePrefix']}operate"}
        return {"jwt": {"claims": {**claims, parameters["ProjectsClaim"]: "*"}}}
    return {"iam": {"accountId": identity["Account"], "userArn": identity["Arn"]}}


def body(answer: Mapping[str, Any]) -> Any:
    text = answer.get("body") or ""
    try:
        return json.loads(text)
    except ValueError:
        return text


def is_well(answer: Mapping[str, Any]) -> bool:
    return int(answer["statusCode"]) < 400


def body_of(answer: Mapping[str, Any], asked: str) -> Any:
    """Returns the body of the response to a request, or fails if it is an error."""
    check(is_well(answer), f"{asked} was answered with {answer['statusCode']}: {body(answer)}")
    return body(answer)


def show(answer: Mapping[str, Any]) -> bool:
    """Prints a response. Returns whether it is not an error."""
    content = body(answer)
    print(content if isinstance(content, str) else json.dumps(content, indent=2, ensure_ascii=False))
    return is_well(answer)


@dataclass(frozen=True)
class StackApi:
    """The function of a stack that handles requests of the API."""

    # Returns a client of boto3 for the name of a service.
    client: Callable[[str], Any]
    stack: str

    # Read once, because AWS throttles the descriptions of stacks.
    @cached_property
    def parameters(self) -> Mapping[str, str]:
        [found] = self.client("cloudformation").describe_stacks(StackName=self.stack)["Stacks"]
        return {one["ParameterKey"]: one["ParameterValue"] for one in found["Parameters"]}

    @cached_property
    def identity(self) -> Mapping[str, str]:
        found: Mapping[str, str] = self.client("sts").get_caller_identity()
        return found

    def ask(self, method: str, path: str, content: str | None = None) -> Any:
        """Returns the function's response to API Gateway."""
        event = request(method.upper(), path, content, self.identity, self.parameters)
        function = f"{self.stack}-start-upload"
        payload = json.dumps(event).encode()
        said = self.client("lambda").invoke(FunctionName=function, Qualifier=ALIAS, Payload=payload)
        answer = json.loads(said["Payload"].read())
        check("FunctionError" not in said, f"{function} failed: {answer}")
        return answer

    def found(self, method: str, path: str, content: str | None = None) -> Any:
        """Returns the body of the response, or fails if it is an error."""
        return body_of(self.ask(method, path, content), f"{method} {path}")


def pages(api: StackApi, path: str) -> Iterator[Mapping[str, Any]]:
    """Returns the items of all pages of a list."""
    after = ""
    while True:
        page = api.found("GET", f"{path}{after}")
        yield from page["items"]
        if page["next"] is None:
            return
        after = f"&after={quote(page['next'], safe='')}"


def searches(api: StackApi, states: str = "") -> Iterator[Mapping[str, Any]]:
    """Returns the searches in these states, or all of them."""
    return pages(api, f"/admin/searches?limit={PAGE}" + (f"&state={states}" if states else ""))


def unlisted(api: StackApi) -> set[str]:
    """Returns the searches whose views are still to be written. Lists may lack those that began recently."""
    effects = pages(api, f"/admin/effects?limit={PAGE}")
    return {effect["search_id"] for effect in effects if effect["kind"] == "view" and effect["search_id"]}


def after_restore(api: StackApi, ledger_alone: bool, dry_run: bool) -> bool:
    """Resumes or ends each unfinished search. Returns whether none has to be retried."""
    # List all of them first: a search that ends in between would shift the following pages.
    listed = {search["search_id"]: search["state"] for search in searches(api, OPEN_STATES)}
    unfinished = listed | dict.fromkeys(sorted(unlisted(api) - listed.keys()), "not listed")
    busy = 0
    for search_id, state in unfinished.items():
        done = "has not ended" if search_id in listed else "may not have ended"
        if not dry_run:
            path = f"/admin/searches/{search_id}/after-restore"
            response = api.ask("POST", path, json.dumps({"ledger_alone": ledger_alone}))
            if search_id not in listed and response["statusCode"] == NOT_FOUND:
                # The view that is still to be written removes a deleted search from the list.
                continue
            answer = body_of(response, f"POST {path}")
            done, busy = answer["words"], busy + (answer["done"] == "busy")
        print(f"search {search_id}, {state}: {done}", flush=True)
    if not ledger_alone and not dry_run:
        for project in sorted({search["project_id"] for search in searches(api)}):
            compared = api.found("POST", f"/admin/projects/{project}/after-restore")["compared"]
            if compared:
                print(f"review {project}: {compared} decided studies are compared again", flush=True)
    print(f"{len(unfinished)} had not ended; retry {busy} of them in a minute")
    return busy == 0


def settings(api: StackApi) -> dict[str, str]:
    """Returns the settings of the stack's functions, the backend and the region."""
    client, found = api.client("lambda"), dict[str, str]()
    for function in FUNCTIONS:
        configuration = client.get_function_configuration(FunctionName=f"{api.stack}-{function}")
        found = configuration["Environment"]["Variables"] | found
    # The template sets a parameter without a value to the empty string.
    own = {name: value for name, value in sorted(found.items()) if name.startswith(SETTINGS) and value}
    return {"SEARCH_IMPORT_BACKEND": "aws", "AWS_REGION": client.meta.region_name, **own}


def run(api: StackApi, arguments: Sequence[str]) -> bool | None:
    """Returns whether the command succeeded, or None if the arguments are invalid."""
    match arguments:
        case ["settings"]:
            for name, value in settings(api).items():
                print(f"export {name}={shlex.quote(value)}")
            return True
        case ["after-restore", *options] if {*options} <= {"--ledger-alone", "--dry-run"}:
            return after_restore(api, "--ledger-alone" in options, "--dry-run" in options)
        case ["after-restore", *_]:
            return None
        case [method, path]:
            return show(api.ask(method, path))
        case [method, path, content]:
            return show(api.ask(method, path, content))
        case _:
            return None


def main(arguments: Sequence[str]) -> int:
    if not arguments:
        return console.usage(__doc__)
    try:
        import boto3  # noqa: PLC0415 - only the Python of sam has it
    except ImportError:
        raise Failure("run this with the Python of sam: `tools.py run sam -- python …`") from None
    stack, *wanted = arguments
    with aws.reported(f"operating {stack}"):
        session = boto3.Session(region_name=region.selected())
        went_well = run(StackApi(session.client, stack), wanted)
    return console.usage(__doc__) if went_well is None else int(not went_well)


if __name__ == "__main__":
    console.start("operate", main, __doc__)
