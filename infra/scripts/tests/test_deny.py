import contextlib
import io
import unittest
from unittest import mock

import deny
from scripts import commands
from scripts.errors import Failure


class Vulnerabilities(unittest.TestCase):
    def setUp(self) -> None:
        self.openly = self.enterContext(mock.patch.object(commands, "openly"))
        self.fetch = self.enterContext(mock.patch.object(commands, "quietly"))
        self.say = self.enterContext(mock.patch.object(deny, "say"))

    def checked(self) -> list[str]:
        run = [call.args[0] for call in self.openly.call_args_list]
        self.assertEqual(run[0], deny.CRATES)
        return [check for command in run[1:] for check in command[len(deny.CHECK) :]]

    def test_vulnerabilities_are_checked_with_database(self) -> None:
        deny.deny({"ADVISORIES": "required"})
        self.assertEqual(self.checked(), ["bans", "licenses", "sources", "advisories"])
        self.say.assert_not_called()

    def test_found_vulnerability_is_a_failure(self) -> None:
        self.openly.side_effect = [None, None, Failure("cargo deny ended with 1")]
        with self.assertRaises(Failure):
            deny.deny({})

    def test_missing_database_is_reported_and_passes(self) -> None:
        self.fetch.side_effect = Failure("no network")
        for environment in ({}, {"ADVISORIES": ""}, {"CI": "true"}):
            with self.subTest(environment):
                self.openly.reset_mock()
                deny.deny(environment)
                self.assertEqual(self.checked(), ["bans", "licenses", "sources"])
                self.assertRegex(
                    self.say.call_args.args[0], "^KNOWN VULNERABILITIES WERE NOT CHECKED .*: no network$"
                )

    def test_missing_required_database_is_a_failure(self) -> None:
        self.fetch.side_effect = Failure("no network")
        with self.assertRaisesRegex(Failure, "cannot be checked: no network$"):
            deny.deny({"ADVISORIES": "required"})

    def test_vulnerabilities_are_checked_after_offline_checks(self) -> None:
        self.openly.side_effect = Failure("a licence")
        with self.assertRaisesRegex(Failure, "^a licence$"):
            deny.deny({})
        self.fetch.assert_not_called()


class Arguments(unittest.TestCase):
    def test_arguments_are_refused(self) -> None:
        with mock.patch.object(deny, "deny") as called, contextlib.redirect_stderr(io.StringIO()):
            self.assertEqual([deny.main([]), deny.main(["bans"])], [0, 2])
        called.assert_called_once()
