import io
import json
import re
import unittest
from typing import Any

from scripts.deployment import hook


class Functions:
    """Answers and records every event."""

    def __init__(self, answer: Any, error: str | None = None) -> None:
        self.answer, self.error, self.events = answer, error, list[Any]()

    def invoke(self, FunctionName: str, Payload: str) -> Any:  # noqa: N803 - as boto3 has it
        self.events.append((FunctionName, json.loads(Payload)))
        error = {"FunctionError": self.error} if self.error else {}
        return {"Payload": io.BytesIO(json.dumps(self.answer).encode()), **error}


def timeout_of(template: str, function: str) -> str:
    """Returns the timeout of a function in seconds."""
    found = re.search(rf"^  {function}:\n(?:(?!  \w).*\n)*?      Timeout: (\d+)", template, re.MULTILINE)
    assert found, function
    return found[1]


class Hook(unittest.TestCase):
    def test_every_function_has_an_event(self) -> None:
        events = hook.load({})["EVENTS"]
        self.assertEqual([*events], [*hook.NAMES])
        for event in events.values():
            json.dumps(event())

    def test_working_version_succeeds(self) -> None:
        for name in hook.NAMES:
            functions = Functions({"batchItemFailures": []} if name != "StartUpload" else {"statusCode": 200})
            self.assertEqual(hook.run(name, f"{name}:7", functions), "Succeeded", name)
            [(version, _)] = functions.events
            self.assertEqual(version, f"{name}:7")

    def test_failing_version_is_held_back(self) -> None:
        failed = {"batchItemFailures": [{"itemIdentifier": "a"}]}
        for answer, error in (({"statusCode": 503}, None), (failed, None), ({}, "Unhandled")):
            self.assertEqual(hook.run("RunSaga", "RunSaga:7", Functions(answer, error)), "Failed")

    def test_slowest_function_does_not_exhaust_the_time(self) -> None:
        """Without a report, CodeDeploy waits for an hour."""
        text = hook.TEMPLATE.read_text("utf-8")
        scheduled = {"DispatchOutbox", "ReportFaults"}
        timeouts = {name: int(timeout_of(text, name)) for name in (*scheduled, "CheckVersion")}
        start_seconds = 10
        slowest = max(timeouts[name] for name in scheduled) + start_seconds
        self.assertLess(slowest, hook.load({})["READ_SECONDS"])
        self.assertLess(hook.load({})["READ_SECONDS"], timeouts["CheckVersion"])

    def test_failing_test_function_is_a_failure(self) -> None:
        self.assertEqual(hook.run("RunSaga", "RunSaga:7", object()), "Failed")
