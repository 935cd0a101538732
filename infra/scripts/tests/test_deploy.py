import tomllib
import unittest
from unittest import mock

import deploy
from scripts import commands
from scripts.errors import Failure

CONFIG = {"dev": {"deploy": {"parameters": {"parameter_overrides": ["A=1", "B=x=y"]}}}, "bare": {}}


class Parameters(unittest.TestCase):
    def test_an_environment_has_its_own(self) -> None:
        self.assertEqual(deploy.overrides(CONFIG, "dev"), {"A": "1", "B": "x=y"})
        self.assertEqual(deploy.overrides(CONFIG, "bare"), {})

    def test_an_environment_that_is_not_there_is_refused(self) -> None:
        with self.assertRaisesRegex(Failure, "no environment prod"):
            deploy.overrides(CONFIG, "prod")

    def test_what_is_no_parameter_is_refused(self) -> None:
        for text in ("A", "=1", ""):
            with self.assertRaisesRegex(Failure, "NAME=VALUE"):
                deploy.parameter(text)


class Deploying(unittest.TestCase):
    def deployed(self, *arguments: str) -> list[str]:
        with mock.patch.object(commands, "openly") as openly:
            self.assertEqual(deploy.main(arguments), 0)
        run: list[str] = openly.call_args.args[0]
        return run

    def test_what_is_given_is_added_to_what_the_environment_has(self) -> None:
        config = tomllib.loads(deploy.CONFIG.read_text("utf-8"))
        [first, *_] = config["prod"]["deploy"]["parameters"]["parameter_overrides"]
        run = self.deployed("prod", "MongoSecretArn=arn", "SagaConcurrency=7")
        self.assertEqual(run[:4], ["sam", "deploy", "--config-env", "prod"])
        self.assertIn("--no-confirm-changeset", run)
        given = run[run.index("--parameter-overrides") + 1 :]
        self.assertIn(first, given)
        self.assertIn("MongoSecretArn=arn", given)
        self.assertEqual([one for one in given if one.startswith("SagaConcurrency")], ["SagaConcurrency=7"])

    def test_other_parameters_are_another_release(self) -> None:
        def release(*arguments: str) -> list[str]:
            return [one for one in self.deployed("prod", *arguments) if one.startswith("Release=")]

        self.assertEqual(release("A=1", "B=2"), release("B=2", "A=1"))
        self.assertNotEqual(release("MongoSecretVersion=1"), release("MongoSecretVersion=2"))
        self.assertEqual(release("Release=mine"), ["Release=mine"])

    def test_a_review_executes_nothing(self) -> None:
        self.assertIn("--no-execute-changeset", self.deployed("--review", "prod"))
