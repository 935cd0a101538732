import json
import tempfile
import unittest
from pathlib import Path
from typing import Any
from unittest import mock

import deployment
from scripts import commands, forms
from scripts.deployment import built, checks, gaps, program, reading, stack
from scripts.deployment.references import References
from scripts.deployment.stack import Json, Resource
from scripts.errors import Failure

REGION = "us-east-1"
RESOURCES = {
    "SagaQueue": Resource("AWS::SQS::Queue", "http://127.0.0.1:1/000000000000/si-saga"),
    "Ledger": Resource("AWS::DynamoDB::Table", "si-ledger"),
    "RunSaga": Resource("AWS::Lambda::Function", "si-run-saga"),
    "RunSagaLogs": Resource("AWS::Logs::LogGroup", "/aws/lambda/si-run-saga"),
    "RunSagaRole": Resource("AWS::IAM::Role", "si-role"),
    "Uploads": Resource("AWS::S3::Bucket", "si-uploads"),
}

MAPPING: Json = {
    "State": "Enabled",
    "FunctionArn": "arn:aws:lambda:us-east-1:000000000000:function:si-run-saga:live",
    "EventSourceArn": "arn:aws:sqs:us-east-1:000000000000:si-saga",
    "BatchSize": 10,
    "FunctionResponseTypes": ["ReportBatchItemFailures"],
}


class Built(unittest.TestCase):
    def test_every_function_has_its_program_archive(self) -> None:
        text, names = built.with_code(built.TEMPLATE.read_text("utf-8"))
        self.assertIn("run-saga", names)
        self.assertEqual(len(names), text.count("Type: AWS::Serverless::Function"))
        self.assertNotIn("BuildMethod", text)
        for name in names:
            self.assertRegex(text, rf"    Properties:\n      CodeUri: {name}\.zip\n")

    def test_resources_of_unknown_types_are_left_out(self) -> None:
        last = "  C:\n    Type: T::C\nOutputs:\n"
        text = f"Resources:\n  A:\n    Type: T::A\n    Properties:\n      B: 1\n\n{last}"
        left, removed = built.without(text, ["T::A"])
        self.assertEqual((left, removed), (f"Resources:\n{last}", ["A"]))
        _, removed = built.without(built.PAGE.read_text("utf-8"), built.UNKNOWN_TYPES)
        self.assertEqual(len(removed), 3)


class Restoring(unittest.TestCase):
    def restore(self, value: Any) -> Any:
        return References(RESOURCES, REGION).restore(value)

    def test_physical_name_becomes_reference(self) -> None:
        self.assertEqual(self.restore("si-ledger"), {"Ref": "Ledger"})

    def test_arn_becomes_attribute(self) -> None:
        arns = {
            f"arn:aws:sqs:{REGION}:000000000000:si-saga": "SagaQueue",
            f"arn:aws:dynamodb:{REGION}:000000000000:table/si-ledger": "Ledger",
            f"arn:aws:lambda:{REGION}:000000000000:function:si-run-saga": "RunSaga",
            f"arn:aws:logs:{REGION}:000000000000:log-group:/aws/lambda/si-run-saga": "RunSagaLogs",
            f"arn:aws:logs:{REGION}:000000000000:log-group:/aws/lambda/si-run-saga:*": "RunSagaLogs",
            "arn:aws:iam::000000000000:role/si-role": "RunSagaRole",
        }
        for arn, logical in arns.items():
            self.assertEqual(self.restore(arn), {"Fn::GetAtt": [logical, "Arn"]})

    def test_object_arn_regains_its_partition(self) -> None:
        self.assertEqual(self.restore("arn:aws:s3:::si-uploads/*"), "arn:${AWS::Partition}:s3:::si-uploads/*")

    def test_values_are_restored_but_not_keys(self) -> None:
        value = {"si-ledger": ["si-role", {"a": "si-ledger"}], "b": 1, "c": None}
        expected = {"si-ledger": [{"Ref": "RunSagaRole"}, {"a": {"Ref": "Ledger"}}], "b": 1, "c": None}
        self.assertEqual(self.restore(value), expected)


class Reading(unittest.TestCase):
    def test_event_source_is_read(self) -> None:
        properties = {
            "Queue": "arn:aws:sqs:us-east-1:000000000000:si-saga",
            "BatchSize": 10,
            "MaximumBatchingWindowInSeconds": 0,
            "ScalingConfig": {},
            "FunctionResponseTypes": ["ReportBatchItemFailures"],
        }
        self.assertEqual(reading.event_source(MAPPING), {"Type": "SQS", "Properties": properties})

    def test_disabled_event_source_is_refused(self) -> None:
        with self.assertRaisesRegex(Failure, "^an event source is Disabled$"):
            reading.event_source({**MAPPING, "State": "Disabled"})

    def test_sources_match_whole_function_name(self) -> None:
        self.assertEqual(reading.sources_of("si-run-saga", [MAPPING]), [MAPPING])
        self.assertEqual(reading.sources_of("si-run", [MAPPING]), [])

    def test_events_of_function_are_read(self) -> None:
        found = reading.events("Dispatch", [MAPPING], ["DispatchEveryMinute", "OtherEveryMinute"])
        self.assertEqual(list(found), ["Queue0", "DispatchEveryMinute"])

    def test_queue_is_read(self) -> None:
        attributes = {"MessageRetentionPeriod": "60", "VisibilityTimeout": "30", "QueueArn": "arn"}
        plain = {"MessageRetentionPeriod": "60", "VisibilityTimeout": "30"}
        self.assertEqual(reading.queue(attributes), plain)
        redrive = {"maxReceiveCount": 5}
        found = reading.queue({**attributes, "RedrivePolicy": json.dumps(redrive)})
        self.assertEqual(found, {**plain, "RedrivePolicy": redrive})

    def test_notification_is_read(self) -> None:
        rules = [{"Name": "Prefix", "Value": "uploads/"}]
        configuration = {"QueueArn": "arn", "Filter": {"Key": {"FilterRules": rules}}, "Id": "x"}
        lower = {"S3Key": {"Rules": [{"Name": "prefix", "Value": "uploads/"}]}}
        self.assertEqual(reading.notified(configuration), {"Queue": "arn", "Filter": lower})

    def test_template_keeps_name_of_its_bucket(self) -> None:
        deployed = mock.Mock(resources=RESOURCES, region=REGION, parameters={"Architecture": "x86_64"})
        deployed.of_type = lambda kind: {"Uploads": "si-uploads"} if kind == "AWS::S3::Bucket" else {}
        s3 = deployed.client.return_value
        s3.get_bucket_notification_configuration.return_value = {}
        rule = {"Status": "Enabled", "Filter": {"Prefix": "exports/"}, "Expiration": {"Days": 1}}
        s3.get_bucket_lifecycle_configuration.return_value = {"Rules": [rule]}
        s3.list_event_source_mappings.return_value = {"EventSourceMappings": []}
        found = reading.template(deployed)
        self.assertEqual(found["Resources"]["Uploads"]["Properties"]["BucketName"], "si-uploads")
        [ends] = found["Resources"]["Uploads"]["Properties"]["LifecycleConfiguration"]["Rules"]
        self.assertEqual(ends, {"Status": "Enabled", "Prefix": "exports/", "ExpirationInDays": 1})
        self.assertEqual(found["Parameters"]["Architecture"], {"Default": "x86_64"})
        self.assertEqual(list(found["Resources"]), ["Uploads", "HttpApiStage"])


class Checks(unittest.TestCase):
    def statement(self, effect: str, secure: object) -> Json:
        return {"Effect": effect, "Condition": {"Bool": {"aws:SecureTransport": secure}}}

    def test_policy_refuses_requests_without_tls(self) -> None:
        for secure in (False, "false", "False"):
            self.assertTrue(checks.refuses_plain_http({"Statement": [self.statement("Deny", secure)]}))

    def test_policy_admitting_plain_http_is_found(self) -> None:
        for statements in ([], [self.statement("Allow", "false")], [self.statement("Deny", "true")]):
            self.assertFalse(checks.refuses_plain_http({"Statement": statements}))

    def test_route_without_authorization_is_open(self) -> None:
        routes = [
            {"RouteKey": "GET /a", "AuthorizationType": "AWS_IAM"},
            {"RouteKey": "GET /b", "AuthorizationType": "NONE"},
            {"RouteKey": "GET /c"},
        ]
        self.assertEqual(checks.open_routes(routes), ["GET /b", "GET /c"])

    def test_search_must_have_stored_its_count(self) -> None:
        with mock.patch.object(deployment, "say"):
            deployment.check_search({"state": "COMPLETED", "studies": 2}, ["a", "b"])
        wrong: list[tuple[Json, list[str]]] = [
            ({"state": "Error", "studies": 1}, ["a"]),
            ({"state": "Completed", "studies": 0}, []),
            ({"state": "Completed", "studies": 2}, ["a"]),
        ]
        for found, stored in wrong:
            with self.subTest(found), self.assertRaises(Failure):
                deployment.check_search(found, stored)


class Stacks(unittest.TestCase):
    def test_stack_ignores_aws_of_caller(self) -> None:
        given = {"HOME": "/home", "AWS_PROFILE": "production", "AWS_REGION": "eu-central-1"}
        expected = {
            "HOME": "/home",
            "AWS_ENDPOINT_URL": "http://stand-in",
            "AWS_ACCESS_KEY_ID": "test",
            "AWS_SECRET_ACCESS_KEY": "test",
            "AWS_DEFAULT_REGION": "us-east-1",
            "SAM_CLI_TELEMETRY": "0",
            "SAM_CLI_POLL_DELAY": "0.5",
        }
        self.assertEqual(stack.environment(given, "http://stand-in", "us-east-1"), expected)

    def test_stack_requires_its_settings(self) -> None:
        self.assertEqual(stack.setting("A", {"A": "b"}), "b")
        for given in ({}, {"A": ""}):
            with self.assertRaisesRegex(Failure, "^A is not set: run `make test-deploy`$"):
                stack.setting("A", given)

    def test_stack_resources_have_logical_ids(self) -> None:
        summary = {"LogicalResourceId": "L", "ResourceType": "T", "PhysicalResourceId": "p", "More": 1}
        self.assertEqual(stack.by_logical_id([summary]), {"L": Resource("T", "p")})


class Gaps(unittest.TestCase):
    def test_gap_is_described_in_one_line(self) -> None:
        for gap in gaps.GAPS:
            self.assertRegex(gap.__doc__ or "", r"^[^\n]+\.$")

    def test_only_missing_resources_are_filled(self) -> None:
        deployed = mock.Mock()
        deployed.of_type.return_value = {"A": "a", "B": "b"}
        dynamodb = deployed.client.return_value
        states = [{"TimeToLiveStatus": "ENABLED"}, {"TimeToLiveStatus": "DISABLED"}]
        dynamodb.describe_time_to_live.side_effect = [{"TimeToLiveDescription": state} for state in states]
        self.assertEqual(gaps.time_to_live(deployed), ["b"])
        wanted = {"AttributeName": "expires_at", "Enabled": True}
        dynamodb.update_time_to_live.assert_called_once_with(TableName="b", TimeToLiveSpecification=wanted)

    def test_limit_becomes_number_for_own_sources(self) -> None:
        deployed = mock.Mock()
        deployed.of_type.return_value = {"A": "1"}
        mapping = {"EventSourceArn": "arn:aws:sqs:r:a:saga", "ScalingConfig": {"MaximumConcurrency": "5"}}
        lambda_ = deployed.client.return_value
        lambda_.list_event_source_mappings.return_value = {
            "EventSourceMappings": [{**mapping, "UUID": "1"}, {**mapping, "UUID": "2"}]
        }
        self.assertEqual(gaps.maximum_concurrency(deployed), ["saga"])
        lambda_.update_event_source_mapping.assert_called_once_with(
            UUID="1", ScalingConfig={"MaximumConcurrency": 5}
        )


class Uploads(unittest.TestCase):
    def test_form_ends_with_its_file(self) -> None:
        body = forms.form_data({"key": "a/b", "policy": "p"}, "file.ris", b"\x00\xff", "edge")
        expected = (
            b'--edge\r\nContent-Disposition: form-data; name="key"\r\n\r\na/b\r\n'
            b'--edge\r\nContent-Disposition: form-data; name="policy"\r\n\r\np\r\n'
            b'--edge\r\nContent-Disposition: form-data; name="file"; filename="file.ris"\r\n\r\n'
            b"\x00\xff\r\n--edge--\r\n"
        )
        self.assertEqual(body, expected)

    def test_sample_exists(self) -> None:
        self.assertTrue(deployment.SAMPLE.exists())


class Program(unittest.TestCase):
    def test_program_is_in_cargo_target(self) -> None:
        self.assertEqual(program.program("dev", {"CARGO_TARGET_DIR": "/t"}), Path("/t/debug/dev"))
        self.assertEqual(program.program("dev", {}).parts[-3:], ("target", "debug", "dev"))

    def test_study_is_one_line(self) -> None:
        with mock.patch.object(commands, "output", return_value='{"a": 1}\n{"a": 2}\n'):
            self.assertEqual(program.studies("id", {}), [{"a": 1}, {"a": 2}])

    def test_template_that_was_read_is_checked(self) -> None:
        with (
            tempfile.TemporaryDirectory() as root,
            mock.patch.object(program, "ROOT", Path(root)),
            mock.patch.object(commands, "openly") as openly,
        ):
            program.check_template({"Resources": {}})
            [_, command, _, file] = openly.call_args.args[0]
            self.assertEqual((command, json.loads(file.read_text())), ("check-template", {"Resources": {}}))
