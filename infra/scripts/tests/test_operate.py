import io
import json
import re
import unittest
from contextlib import redirect_stdout
from types import SimpleNamespace
from typing import Any, ClassVar

import operate
from scripts.errors import Failure
from scripts.paths import ROOT

ANN = {"Account": "123456789012", "Arn": "arn:aws:sts::123456789012:assumed-role/operator/ann"}
SIGNED = {"JwtIssuer": ""}
TOKENS = {"JwtIssuer": "https://id.example", "ScopePrefix": "searches:", "ProjectsClaim": "projects"}


def sample(name: str) -> Any:
    return json.loads((ROOT / "tests" / "events" / f"{name}.json").read_text("utf-8"))


class Requests(unittest.TestCase):
    """Compares the events with the samples that the function is tested with."""

    def test_signed_request_is_sent(self) -> None:
        made = operate.request("GET", "/admin/failures/groups?state=open", None, ANN, SIGNED)
        self.assertEqual(made, sample("http-operator-signed"))

    def test_request_with_token_is_sent(self) -> None:
        path = "/admin/failures/0199b6d0-7d61-7d00-b000-000000000010/archive"
        made = operate.request("POST", path, '{"reason": "a test"}', ANN, TOKENS)
        self.assertEqual(made, sample("http-operator-with-token"))

    def test_invalid_request_is_refused(self) -> None:
        with self.assertRaisesRegex(Failure, "none of GET"):
            operate.request("PATCH", "/admin", None, ANN, SIGNED)
        with self.assertRaisesRegex(Failure, "begins with a slash"):
            operate.request("GET", "admin", None, ANN, SIGNED)
        with self.assertRaisesRegex(Failure, "the content is not JSON: Expecting"):
            operate.request("POST", "/admin", "{", ANN, SIGNED)


class Answers(unittest.TestCase):
    def test_response_is_printed_and_errors_fail(self) -> None:
        for status, is_well in ((200, True), (404, False)):
            shown = io.StringIO()
            with redirect_stdout(shown):
                self.assertEqual(operate.show({"statusCode": status, "body": '{"a":1}'}), is_well)
            self.assertEqual(shown.getvalue(), '{\n  "a": 1\n}\n')


class Stand:
    """A stand-in for a stack's function, with prepared responses, that records its requests."""

    def __init__(self, answers: dict[str, tuple[int, Any]]) -> None:
        self.answers, self.asked, self.described = answers, list[str](), 0
        self.versions = set[str]()

    def client(self, _service: str) -> Any:
        return self

    def describe_stacks(self, StackName: str) -> Any:  # noqa: ARG002, N803 - as boto3 has it
        self.described += 1
        return {"Stacks": [{"Parameters": [{"ParameterKey": "JwtIssuer", "ParameterValue": ""}]}]}

    def get_caller_identity(self) -> Any:
        return ANN

    def invoke(self, FunctionName: str, Payload: bytes, Qualifier: str = "$LATEST") -> Any:  # noqa: N803
        self.versions.add(f"{FunctionName}:{Qualifier}")
        event = json.loads(Payload)
        method = event["requestContext"]["http"]["method"]
        asked = f"{method} {event['rawPath']}?{event['rawQueryString']}".rstrip("?")
        self.asked.append(asked + event.get("body", ""))
        status, said = self.answers[asked]
        answer = {"statusCode": status, "body": json.dumps(said)}
        return {"Payload": io.BytesIO(json.dumps(answer).encode())}

    def run(self, *arguments: str) -> tuple[bool | None, str]:
        shown = io.StringIO()
        with redirect_stdout(shown):
            went_well = operate.run(operate.StackApi(self.client, "stack"), arguments)
        return went_well, shown.getvalue()


FIRST = "GET /admin/searches?limit=200&state=Uploading,Uploaded,Parsing"
ALL = "GET /admin/searches?limit=200"
SECOND = f"{FIRST}&after=a%20place"
EFFECTS = "GET /admin/effects?limit=200"


def page(search: str, following: str | None) -> tuple[int, Any]:
    return 200, {"items": [{"search_id": search, "state": "Parsing", "project_id": "p"}], "next": following}


def effect(kind: str, search: str | None) -> dict[str, str | None]:
    return {"kind": kind, "search_id": search}


def settled(done: str) -> tuple[int, Any]:
    return 200, {"done": done, "words": f"it is {done}"}


class AfterRestore(unittest.TestCase):
    COMPARE = "POST /admin/projects/p/after-restore"
    UNLISTED = "POST /admin/searches/c/after-restore"
    DELETED = "POST /admin/searches/deleted/after-restore"
    PATHS = ("POST /admin/searches/a/after-restore", "POST /admin/searches/b/after-restore")

    def stand(self, done: str = "cancelled") -> Stand:
        one, other = self.PATHS
        answers = {FIRST: page("a", "a place"), SECOND: page("b", None)}
        answers |= {ALL: page("a", None), self.COMPARE: (200, {"compared": 2})}
        effects = [effect("view", one) for one in (None, "b", "c", "deleted")]
        answers[EFFECTS] = (200, {"items": [*effects, effect("message", "e")], "next": None})
        answers |= {self.UNLISTED: settled("looking"), self.DELETED: (404, {})}
        return Stand({**answers, one: settled(done), other: settled("waiting")})

    def test_decided_studies_are_compared_after_restore_of_the_database(self) -> None:
        stand = self.stand()
        _, shown = stand.run("after-restore")
        self.assertEqual(stand.asked[-2:], [ALL, self.COMPARE])
        self.assertIn("review p: 2 decided studies are compared again\n", shown)

    def test_every_open_search_is_settled(self) -> None:
        stand = self.stand()
        went_well, shown = stand.run("after-restore", "--ledger-alone")
        self.assertTrue(went_well)
        told = '{"ledger_alone": true}'
        paths = (*self.PATHS, self.UNLISTED, self.DELETED)
        self.assertEqual(stand.asked, [FIRST, SECOND, EFFECTS, *(path + told for path in paths)])
        self.assertIn("search a, Parsing: it is cancelled\nsearch b, Parsing: it is waiting\n", shown)
        self.assertIn("\nsearch c, not listed: it is looking\n", shown)
        self.assertNotIn("deleted", shown)

    def test_stack_is_described_once(self) -> None:
        stand = self.stand()
        stand.run("after-restore")
        self.assertGreater(len(stand.asked), 1)
        self.assertEqual(stand.described, 1)

    def test_requests_reach_version_of_api(self) -> None:
        stand = self.stand()
        stand.run("after-restore")
        self.assertEqual(stand.versions, {"stack-start-upload:live"})

    def test_busy_search_is_reported_for_retry(self) -> None:
        went_well, shown = self.stand("busy").run("after-restore")
        self.assertFalse(went_well)
        self.assertIn("retry 1 of them", shown)

    def test_dry_run_changes_nothing(self) -> None:
        stand = self.stand()
        self.assertTrue(stand.run("after-restore", "--dry-run")[0])
        self.assertEqual(stand.asked, [FIRST, SECOND, EFFECTS])

    def test_error_ends_the_command(self) -> None:
        stand = Stand({FIRST: (403, {"detail": "this is for operators"})})
        with self.assertRaisesRegex(Failure, "403: .*this is for operators"):
            stand.run("after-restore")

    def test_unknown_option_is_refused(self) -> None:
        stand = self.stand()
        for arguments in (["after-restore", "--all"], ["after-restore", "x", "y"], ["GET"], []):
            self.assertIsNone(stand.run(*arguments)[0], arguments)
        self.assertEqual(stand.asked, [])


class Deployed:
    """A stand-in for the functions of a stack."""

    meta = SimpleNamespace(region_name="eu-central-1")
    own: ClassVar = {
        "stack-start-upload": {"MONGODB_URI": "", "MONGODB_DATABASE": "a b", "RUST_LOG": "info"},
        "stack-parse-references": {"MONGODB_DATABASE": "other", "SEARCH_IMPORT_PROCESSED_TABLE": "t"},
    }

    def get_function_configuration(self, FunctionName: str) -> Any:  # noqa: N803 - as boto3 has it
        return {"Environment": {"Variables": self.own.get(FunctionName, {})}}


class Settings(unittest.TestCase):
    def test_settings_of_all_functions_are_printed_for_a_shell(self) -> None:
        shown = io.StringIO()
        with redirect_stdout(shown):
            self.assertTrue(operate.run(operate.StackApi(lambda _: Deployed(), "stack"), ["settings"]))
        expected = [
            "export SEARCH_IMPORT_BACKEND=aws",
            "export AWS_REGION=eu-central-1",
            "export MONGODB_DATABASE='a b'",
            "export SEARCH_IMPORT_PROCESSED_TABLE=t",
        ]
        self.assertEqual(shown.getvalue().splitlines(), expected)

    def test_functions_are_those_of_the_template(self) -> None:
        template = (ROOT / "template.yaml").read_text("utf-8")
        named = set(re.findall(r"FunctionName: !Sub \$\{AWS::StackName\}-([a-z-]+)", template))
        self.assertEqual(named - {"check-version"}, set(operate.FUNCTIONS))
