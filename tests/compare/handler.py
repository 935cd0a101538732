"""A Python version of run-saga for a batch without effects, for the cold start benchmark.

The loop is that of a custom runtime; Lambda's own Python runtime does more. Imports count towards the start
time, so types use only built-in names."""

import json
import os
import re
import urllib.request

UUID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
TYPES = {"SearchUploadStarted", "SearchUploadSaved", "UploadTimeout"}


def is_event(body: str) -> bool:
    try:
        message = json.loads(body)
        if not isinstance(message, dict) or message["specversion"] != "1.0":
            return False
        kind = re.fullmatch(r"search-import\.(\w+)\.v1", message["type"])
        search, data = message["correlationid"], message["data"]
        token = message["token"].split(":")
        return bool(
            kind
            and kind[1] in TYPES
            and UUID.fullmatch(search)
            and token[1] == search[-12:]
            and "file_id" in data
        )
    except (ValueError, KeyError, IndexError, AttributeError, TypeError, RecursionError):
        return False


def handle(event: dict[str, list[dict[str, str]]]) -> dict[str, list[dict[str, str]]]:
    failed = [record["messageId"] for record in event["Records"] if not is_event(record["body"])]
    return {"batchItemFailures": [{"itemIdentifier": message} for message in failed]}


def serve(api: str) -> None:
    while True:
        with urllib.request.urlopen(f"{api}/next") as invocation:
            request, event = invocation.headers["lambda-runtime-aws-request-id"], json.load(invocation)
        answer = json.dumps(handle(event)).encode()
        urllib.request.urlopen(urllib.request.Request(f"{api}/{request}/response", answer)).read()


if __name__ == "__main__":
    serve(f"http://{os.environ['AWS_LAMBDA_RUNTIME_API']}/2018-06-01/runtime/invocation")
