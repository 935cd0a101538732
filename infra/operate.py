#!/usr/bin/env python3
"""Operates a stack from outside its VPC: a request below /admin, by invoking start-upload itself.

    tools.py run sam -- python infra/operate.py STACK METHOD PATH [JSON]

    … search-import-prod GET /admin/failures/groups
    … search-import-prod POST /admin/retries '{"cause": "2e42", "canary": 1}'

The function answers as it does to the HTTP API, with the code that the command line has, and its role reaches
the database. Nothing listens anywhere: who may invoke the function (`lambda:InvokeFunction`) may do this. The
record of what operators do names the ARN of whoever is signed in to AWS here; CloudTrail, which no caller can
choose, has it too where data events of the function are on. Exits with 1 when the answer is an error.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from scripts import console
from scripts.errors import Failure, check

METHODS = ("GET", "POST", "DELETE")


def request(
    method: str, path: str, body: str | None, identity: Mapping[str, str], parameters: Mapping[str, str]
) -> dict[str, Any]:
    """The event of a request, as API Gateway makes them (payload format 2.0)."""
    check(method in METHODS, f"{method} is none of {', '.join(METHODS)}")
    check(path.startswith("/"), f"a path begins with a slash, and {path!r} does not")
    if body is not None:
        json.loads(body)
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
            "apiId": "invoked",
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
    return event if body is None else {**event, "body": body}


def authorizer(identity: Mapping[str, str], parameters: Mapping[str, str]) -> dict[str, Any]:
    """Who asks, as the API's door would say it."""
    if parameters.get("ApiAuthorization") == "JWT":
        claims = {"sub": identity["Arn"], "scope": parameters["OperatorScope"]}
        return {"jwt": {"claims": {**claims, parameters["ProjectsClaim"]: "*"}}}
    return {"iam": {"accountId": identity["Account"], "userArn": identity["Arn"]}}


def show(answer: Mapping[str, Any]) -> bool:
    """Prints an answer; whether it is none of an error."""
    body = answer.get("body") or ""
    try:
        print(json.dumps(json.loads(body), indent=2, ensure_ascii=False))
    except ValueError:
        print(body)
    return int(answer["statusCode"]) < 400


def main(arguments: Sequence[str]) -> int:
    match arguments:
        case [stack, method, path]:
            body = None
        case [stack, method, path, body]:
            pass
        case _:
            return console.usage(__doc__)
    try:
        import boto3  # noqa: PLC0415 - only the Python of sam has it
        from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415
    except ImportError:
        raise Failure("run this with the Python of sam: `tools.py run sam -- python …`") from None
    try:
        [found] = boto3.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        parameters = {one["ParameterKey"]: one["ParameterValue"] for one in found["Parameters"]}
        identity = boto3.client("sts").get_caller_identity()
        event = request(method.upper(), path, body, identity, parameters)
        payload = json.dumps(event).encode()
        said = boto3.client("lambda").invoke(FunctionName=f"{stack}-start-upload", Payload=payload)
        answer = json.loads(said["Payload"].read())
    except (BotoCoreError, ClientError) as error:
        raise Failure(f"operating {stack}: {error}") from error
    check("FunctionError" not in said, f"{stack}-start-upload failed: {answer}")
    return 0 if show(answer) else 1


if __name__ == "__main__":
    console.start("operate", main)
