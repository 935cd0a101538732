import json
import os
import sys
import tempfile
import tomllib
import unittest
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import deploy
from scripts import commands, environments, parameters, stamp
from scripts.errors import Failure

SECRET = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:search-import/mongodb-AbCdE1"
STACKS = sorted(path.stem for path in environments.CONFIG.glob("*.toml"))


class Missing(Exception):
    def __init__(self, code: str, text: str = "") -> None:
        super().__init__(text)
        self.response = {"Error": {"Code": code}}


class Amazon:
    """A stand-in for an account, with the clients that a deployment uses."""

    exceptions = mock.Mock(ClientError=Missing, ResourceNotFoundException=Missing)
    meta = mock.Mock(region_name="eu-central-1")

    def __init__(self, limit: int = 1000) -> None:
        self.limit = limit
        self.reserved = 0
        self.stacks: dict[str, dict[str, Any]] = {}
        self.buckets: set[str] = set()
        self.bucket_error = "404"
        self.secret: str | None = "version-1"
        self.busses: set[str] = set()
        self.reported: list[bool] = []

    def __call__(self, _service: str, _region: str) -> "Amazon":
        return self

    def describe_stacks(self, StackName: str) -> Any:  # noqa: N803 - as boto3 has it
        if StackName not in self.stacks:
            raise Missing("ValidationError", f"Stack with id {StackName} does not exist")
        stack = self.stacks[StackName]
        given = [{"ParameterKey": k, "ParameterValue": v} for k, v in stack.get("given", {}).items()]
        outputs = [{"OutputKey": k, "OutputValue": v} for k, v in stack.get("outputs", {}).items()]
        return {"Stacks": [{"StackStatus": stack["status"], "Parameters": given, "Outputs": outputs}]}

    def get_account_settings(self) -> Any:
        unreserved = self.limit - self.reserved
        return {
            "AccountLimit": {"ConcurrentExecutions": self.limit, "UnreservedConcurrentExecutions": unreserved}
        }

    def get_caller_identity(self) -> Any:
        return {"Account": "123456789012"}

    def head_bucket(self, Bucket: str) -> None:  # noqa: N803
        if Bucket not in self.buckets:
            raise Missing(self.bucket_error)

    def describe_secret(self, SecretId: str) -> Any:  # noqa: N803
        if not self.secret:
            raise Missing("ResourceNotFoundException", SecretId)
        return {"VersionIdsToStages": {"old": ["AWSPREVIOUS"], self.secret: ["AWSCURRENT"]}}

    def describe_event_bus(self, Name: str) -> None:  # noqa: N803
        if Name not in self.busses:
            raise Missing("ResourceNotFoundException")

    def get_metric_statistics(self, **_: Any) -> Any:
        return {"Datapoints": [{}] if self.reported.pop(0) else []}


class Deploying(unittest.TestCase):
    def setUp(self) -> None:
        self.amazon = Amazon()
        self.runs: list[tuple[list[str], dict[str, str]]] = []

    def run_sam(self, command: list[str], _environment: Any) -> None:
        [values] = [one.removeprefix("file://") for one in command if one.startswith("file://")]
        self.runs.append((command, json.loads(Path(values).read_text("utf-8"))))

    def deploy(self, given: dict[str, str], *parts: str, **options: Any) -> list[dict[str, str]]:
        """Returns the values that are sent for each stack."""
        self.runs = []
        request = deploy.Request(
            "reviews", given, parts or deploy.DEFAULT_PARTS, patience=0, **{"dropped": (), **options}
        )
        self.amazon.reported = [True, True]
        account = deploy.Account("eu-central-1", self.amazon, {})
        with mock.patch.object(commands, "openly", self.run_sam), mock.patch.object(deploy, "say"):
            deploy.deploy(request, account)
        return [values for _, values in self.runs]

    def refuses(self, pattern: str, given: dict[str, str], *parts: str, **options: Any) -> None:
        with self.assertRaisesRegex(Failure, pattern):
            self.deploy(given, *parts, **options)
        self.assertEqual(self.runs, [], "something was deployed")

    def test_one_value_deploys_application_and_monitoring(self) -> None:
        application, monitoring = self.deploy({"MongoSecretArn": SECRET})
        names = [run[run.index("--stack-name") + 1] for run, _ in self.runs]
        self.assertEqual(names, ["reviews", "reviews-monitoring"])
        self.assertEqual(application["MongoSecretArn"], SECRET)
        self.assertEqual(monitoring["Application"], "reviews")
        self.assertEqual(monitoring["ConcurrencyAlarmExecutions"], "800")
        for run, _ in self.runs:
            self.assertIn("--no-confirm-changeset", run)
            self.assertEqual(run[run.index("--on-failure") + 1], "DELETE")
            self.assertIn("stack=reviews", run, "the budget filters costs by it")
            self.assertNotIn("--guided", run)

    def test_every_parameter_has_a_value(self) -> None:
        sent = self.deploy({"MongoSecretArn": SECRET, "SagaConcurrency": "7"})
        for part, values in zip(deploy.DEFAULT_PARTS, sent, strict=True):
            self.assertEqual(set(values), set(deploy.known()[part]))
        self.assertEqual(sent[0]["SagaConcurrency"], "7")
        [cleared, _] = self.deploy({"MongoSecretArn": SECRET})
        self.assertEqual(cleared["SagaConcurrency"], "2", "the default arrives")

    def test_value_may_contain_any_character(self) -> None:
        odd = "mongodb+srv://h.example/?authSource=%24external&a='b c'\"$d`e`;#"
        self.assertEqual(self.deploy({"MongoUri": odd})[0]["MongoUri"], odd)

    def test_changed_value_or_secret_is_another_release(self) -> None:
        given = {"MongoSecretArn": SECRET}
        first = self.deploy(given)[0]["Release"]
        self.assertEqual(self.deploy(given)[0]["Release"], first)
        self.assertNotEqual(self.deploy({**given, "LogFilter": "debug"})[0]["Release"], first)
        self.amazon.secret = "version-2"
        self.assertNotEqual(self.deploy(given)[0]["Release"], first)
        self.assertEqual(self.deploy({**given, "Release": "mine"})[0]["Release"], "mine")

    def test_unknown_names_and_invalid_values_are_refused(self) -> None:
        given = {"MongoSecretArn": SECRET}
        self.refuses("SagaConcurency, did you mean SagaConcurrency", {**given, "SagaConcurency": "3"})
        self.refuses("SagaConcurrency has to be at least 2", {**given, "SagaConcurrency": "1"})
        self.refuses("without user and password", {"MongoUri": "mongodb://ann:secret@h.example"})
        self.refuses("one address of MongoDB", {})
        self.refuses("one address of MongoDB", {**given, "MongoUri": "mongodb://h.example"})

    def test_reservations_of_other_functions_count(self) -> None:
        given = {"MongoSecretArn": SECRET, "ApiConcurrency": "20"}
        self.amazon.limit, self.amazon.reserved = 200, 90
        self.refuses("other functions reserve 90", given)
        self.amazon.reserved = 80
        self.deploy(given)
        # The stack itself has reserved 20 of the 100.
        self.amazon.stacks["reviews"] = {"status": "CREATE_COMPLETE", "given": {"ApiConcurrency": "20"}}
        self.amazon.reserved = 100
        self.deploy(given)
        self.refuses("other functions reserve 80", {**given, "ApiConcurrency": "21"})

    def test_late_aws_rejections_are_refused_early(self) -> None:
        given = {"MongoSecretArn": SECRET}
        self.amazon.limit = 10
        self.refuses("ApiConcurrency reserves 1 of the 10", {**given, "ApiConcurrency": "1"})
        self.refuses("the event bus reviews does not exist", {**given, "EventBusName": "reviews"})
        self.refuses("a stack that exists", {**given, "ProtectTables": "true"})
        self.amazon.buckets = {"reviews-uploads-123456789012-eu-central-1"}
        self.refuses("exists already", given)
        self.amazon.buckets, self.amazon.secret = set(), None
        self.refuses("mongodb-AbCdE1 does not exist", given)

    def test_only_known_bucket_blocks_its_name(self) -> None:
        given = {"MongoSecretArn": SECRET}
        self.amazon.bucket_error = "403"
        self.refuses("exists already", given)
        self.amazon.bucket_error = "503"
        with self.assertRaises(Missing):
            self.deploy(given)

    def test_values_dropped_by_new_template_are_refused(self) -> None:
        given = {"MongoSecretArn": SECRET}
        old = {"KeyPrefix": "files/", "Mode": "ledger", "SagaConcurrency": "10"}
        self.amazon.stacks["reviews"] = {"status": "UPDATE_COMPLETE", "given": old}
        self.refuses("KeyPrefix=files/: see the variable SEARCH_IMPORT_KEY_PREFIX", given)
        self.assertEqual(len(self.deploy(given, dropped=["KeyPrefix"])), 2)
        for kept in ({"KeyPrefix": "uploads/"}, {"MongoPoolSize": "10"}, {"MongoPoolSize": "5"}):
            self.amazon.stacks["reviews"]["given"] = kept
            self.assertEqual(len(self.deploy(given)), 2)

    def test_review_executes_nothing(self) -> None:
        self.deploy({"MongoSecretArn": SECRET}, is_review=True)
        for run, _ in self.runs:
            self.assertIn("--no-execute-changeset", run)

    def test_page_requires_application(self) -> None:
        given = {"SignInUrl": "https://sign-in.example", "SignInClientId": "page"}
        self.refuses("deploy the application first", given, "page")
        self.amazon.stacks["reviews"] = {"status": "CREATE_COMPLETE", "outputs": {"ApiId": "abcd1234"}}
        [values] = self.deploy(given, "page")
        self.assertEqual((values["ApiId"], values["ApplicationRegion"]), ("abcd1234", "eu-central-1"))
        [(run, _)] = self.runs
        self.assertEqual(run[run.index("--region") + 1], "us-east-1")
        self.assertEqual(run[run.index("--stack-name") + 1], "reviews-page-eu-central-1")

    def test_alarms_wait_for_the_first_metrics(self) -> None:
        self.amazon.reported = [False, True, True, True]
        with mock.patch("time.sleep") as sleep:
            deploy.await_metrics(lambda _: self.amazon, "reviews", patience=60)
        self.assertEqual((sleep.call_count, self.amazon.reported), (1, []))


class Environments(unittest.TestCase):
    def test_every_file_is_valid(self) -> None:
        for stack in STACKS:
            deploy.check_given(environments.read(stack))
        self.assertEqual(STACKS, ["search-import-dev", "search-import-prod"])

    def test_file_has_name_of_its_stack(self) -> None:
        with self.assertRaisesRegex(Failure, "files for the stacks search-import-dev, search-import-prod"):
            environments.read("search-import-pord")
        with self.assertRaisesRegex(Failure, "not the name of a stack"):
            environments.read("Reviews")

    def test_values_are_text_for_cloudformation(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "reviews.toml"
            file.write_text("[parameters]\nA = 1\nB = true\nC = ['x', 'y']\nD = ''\nE = 'a&b $c'\n", "utf-8")
            found = environments.read("reviews", Path(folder))
            self.assertEqual(found, {"A": "1", "B": "true", "C": "x,y", "D": "", "E": "a&b $c"})
            file.write_text("[parameter]\nA = 1\n", "utf-8")
            with self.assertRaisesRegex(Failure, "besides"):
                environments.read("reviews", Path(folder))
            file.write_text("[parameters]\nA = 1.5\n", "utf-8")
            with self.assertRaisesRegex(Failure, "A is neither"):
                environments.read("reviews", Path(folder))

    def test_mongodb_is_secret_or_connection_string(self) -> None:
        self.assertEqual(environments.of_mongodb(""), {})
        self.assertEqual(environments.of_mongodb(SECRET), {"MongoSecretArn": SECRET, "MongoUri": ""})
        uri = "mongodb+srv://h.example"
        self.assertEqual(environments.of_mongodb(uri), {"MongoSecretArn": "", "MongoUri": uri})
        with self.assertRaises(Failure):
            environments.of_mongodb("h.example")

    def test_unknown_parameter_is_refused(self) -> None:
        self.assertEqual(environments.pairs(["A=1", "B=x=y", "C="]), {"A": "1", "B": "x=y", "C": ""})
        for text in ("A", "=1", ""):
            with self.assertRaisesRegex(Failure, "NAME=VALUE"):
                environments.pairs([text])


class CommandLine(unittest.TestCase):
    def setUp(self) -> None:
        errors = SimpleNamespace(BotoCoreError=OSError, ClientError=Missing)
        modules: dict[str, Any] = {"botocore": mock.Mock(), "botocore.exceptions": errors}
        self.enterContext(mock.patch.dict(sys.modules, modules))

    def test_error_of_aws_ends_the_command(self) -> None:
        with (
            mock.patch.object(deploy, "deploy", side_effect=Missing("ExpiredToken", "the token is expired")),
            mock.patch.object(deploy, "own_account"),
            mock.patch.object(stamp, "fault", return_value=None),
            self.assertRaisesRegex(Failure, "^deploying search-import-prod: the token is expired$"),
        ):
            deploy.main(["search-import-prod"])

    def test_command_line_values_override_file(self) -> None:
        with (
            mock.patch.object(deploy, "deploy") as deployed,
            mock.patch.object(deploy, "own_account"),
            mock.patch.object(stamp, "fault", return_value=None),
            mock.patch.dict(os.environ, {"MONGODB": SECRET, "PARAMETERS": "LogFilter=a&b"}),
        ):
            self.assertEqual(deploy.main(["search-import-prod", "--review", "SagaConcurrency=7"]), 0)
        request = deployed.call_args.args[0]
        config = tomllib.loads((environments.CONFIG / "search-import-prod.toml").read_text("utf-8"))
        self.assertEqual(request.given["ParseConcurrency"], str(config["parameters"]["ParseConcurrency"]))
        self.assertEqual((request.given["SagaConcurrency"], request.given["LogFilter"]), ("7", "a&b"))
        self.assertEqual((request.given["MongoSecretArn"], request.is_review), (SECRET, True))


class Declared(unittest.TestCase):
    def test_every_template_line_is_read(self) -> None:
        for name, part in deploy.PARTS.items():
            found = parameters.declared(part.template)
            self.assertTrue(found, name)
            for parameter in found.values():
                if parameter.default is not None:
                    self.assertIsNone(parameter.fault(parameter.default), f"{name}: {parameter.name}")

    def test_unknown_property_is_refused(self) -> None:
        with self.assertRaisesRegex(Failure, "the line"):
            parameters.parse("Parameters:\n  A:\n    AllowedValues:\n      - a\n")
