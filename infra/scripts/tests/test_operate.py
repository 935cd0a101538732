import io
import json
import unittest
from contextlib import redirect_stdout
from typing import Any

import operate
from scripts.errors import Failure
from scripts.paths import ROOT

ANN = {"Account": "123456789012", "Arn": "arn:aws:sts::123456789012:assumed-role/operator/ann"}
SIGNED = {"ApiAuthorization": "IAM"}
TOKENS = {"ApiAuthorization": "JWT", "OperatorScope": "searches:operate", "ProjectsClaim": "projects"}


def sample(name: str) -> Any:
    return json.loads((ROOT / "tests" / "events" / f"{name}.json").read_text("utf-8"))


class Requests(unittest.TestCase):
    """They are the samples that the function is tested with."""

    def test_of_a_stack_whose_callers_sign(self) -> None:
        made = operate.request("GET", "/admin/failures/groups?state=open", None, ANN, SIGNED)
        self.assertEqual(made, sample("http-operator-signed"))

    def test_of_a_stack_whose_callers_bring_tokens(self) -> None:
        path = "/admin/failures/0199b6d0-7d61-7d00-b000-000000000010/archive"
        made = operate.request("POST", path, '{"reason": "a test"}', ANN, TOKENS)
        self.assertEqual(made, sample("http-operator-with-token"))

    def test_what_is_none_is_refused(self) -> None:
        with self.assertRaisesRegex(Failure, "none of GET"):
            operate.request("PATCH", "/admin", None, ANN, SIGNED)
        with self.assertRaisesRegex(Failure, "begins with a slash"):
            operate.request("GET", "admin", None, ANN, SIGNED)
        with self.assertRaises(ValueError):
            operate.request("POST", "/admin", "{", ANN, SIGNED)


class Answers(unittest.TestCase):
    def test_are_shown_and_an_error_is_one(self) -> None:
        for status, is_well in ((200, True), (404, False)):
            shown = io.StringIO()
            with redirect_stdout(shown):
                self.assertEqual(operate.show({"statusCode": status, "body": '{"a":1}'}), is_well)
            self.assertEqual(shown.getvalue(), '{\n  "a": 1\n}\n')
